from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest

from recordkit.errors import ConflictError, StorageError, TargetExistsError
from recordkit.filesystems import IF_ABSENT, LocalFileSystem
from recordkit.testing import FileSystemContract

if TYPE_CHECKING:
    from pathlib import Path


class TestLocalFileSystem(FileSystemContract):
    @pytest.fixture
    def files(self) -> LocalFileSystem:
        return LocalFileSystem(sync=False)

    @pytest.fixture
    def folder(self, tmp_path: Path) -> str:
        return str(tmp_path / "new" / "folder")

    def test_a_file_of_this_machine_has_a_descriptor(self, files: LocalFileSystem, folder: str) -> None:
        files.put(f"{folder}/a", b"one")
        file = files.open(f"{folder}/a")

        assert file.local is not None
        assert os.pread(file.local.descriptor, 3, 0) == b"one"

    def test_a_folder_or_a_pipe_is_no_file(self, files: LocalFileSystem, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe")

        for path in (tmp_path, tmp_path / "pipe"):
            with pytest.raises(StorageError, match="expected a file"):
                files.open(str(path))

    def test_nothing_but_the_file_stays_behind(self, files: LocalFileSystem, tmp_path: Path) -> None:
        files.put(str(tmp_path / "a"), b"one")
        with pytest.raises(ConflictError):
            files.put(str(tmp_path / "a"), b"two", IF_ABSENT)
        files.create(str(tmp_path / "b")).abort()
        files.remove(str(tmp_path / "none"))

        assert [path.name for path in tmp_path.iterdir()] == ["a"]

    def test_what_a_writer_that_died_has_left_is_not_listed(self, files: LocalFileSystem, tmp_path: Path) -> None:
        writer = files.create(str(tmp_path / "a"))
        writer.write(b"half of it")

        assert list(files.list(str(tmp_path))) == []
        assert len(list(tmp_path.iterdir())) == 1

        writer.abort()

    def test_the_longest_name_can_be_written(self, files: LocalFileSystem, tmp_path: Path) -> None:
        files.put(str(tmp_path / ("x" * 255)), b"one", IF_ABSENT)

        assert files.open(str(tmp_path / ("x" * 255))).read_at(0, 3) == b"one"

    def test_rename_refuses_a_taken_name_if_asked_to(self, files: LocalFileSystem, tmp_path: Path) -> None:
        files.put(str(tmp_path / "a"), b"one")
        files.put(str(tmp_path / "b"), b"two")

        with pytest.raises(TargetExistsError):
            files.rename(str(tmp_path / "a"), str(tmp_path / "b"), IF_ABSENT)
        files.rename(str(tmp_path / "a"), str(tmp_path / "c"), IF_ABSENT)
        files.rename(str(tmp_path / "c"), str(tmp_path / "b"))

        assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("b", b"one")]

    def test_two_folders_change_places(self, files: LocalFileSystem, tmp_path: Path) -> None:
        files.put(str(tmp_path / "a" / "one"), b"")
        files.put(str(tmp_path / "b" / "two"), b"")

        assert files.exchange(str(tmp_path / "a"), str(tmp_path / "b"))

        assert {str(path.relative_to(tmp_path)) for path in tmp_path.glob("*/*")} == {"a/two", "b/one"}


class TestSyncedFileSystem(TestLocalFileSystem):
    @pytest.fixture
    def files(self) -> LocalFileSystem:
        return LocalFileSystem(sync=True)


def test_a_write_that_may_not_last_is_in_doubt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = LocalFileSystem()

    def fail(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)

    with pytest.raises(StorageError, match="fsync of the folder failed") as caught:
        files.put(str(tmp_path / "a"), b"one")

    assert type(caught.value).__name__ == "OutcomeUnknownError"
    assert (tmp_path / "a").read_bytes() == b"one"
