"""The contract of file systems."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from recordkit.errors import ConflictError, NotFoundError, OutcomeUnknownError
from recordkit.filesystems import ALWAYS, IF_ABSENT, IfUnchanged, Range

if TYPE_CHECKING:
    from collections.abc import Callable

    from recordkit.filesystems import FileSystem

_WRITERS = 4
_ROUNDS = 10


class FileSystemContract:
    """Tests that a file system keeps its promises.

    Inherit from it in a test module, and override the two fixtures:

    ```python
    class TestBucket(FileSystemContract):
        @pytest.fixture
        def files(self):
            return BucketFileSystem("my-test-bucket")

        @pytest.fixture
        def folder(self):
            return f"contract/{uuid.uuid4()}"
    ```
    """

    @pytest.fixture
    def files(self) -> FileSystem:
        """The file system under test."""
        raise NotImplementedError

    @pytest.fixture
    def folder(self) -> str:
        """The path of a folder that does not exist yet."""
        raise NotImplementedError

    # --- Reading

    def test_what_was_put_is_read(self, files: FileSystem, folder: str) -> None:
        files.put(f"{folder}/a", b"0123456789")

        file = files.open(f"{folder}/a")

        assert file.size == 10
        assert file.read_at(0, 10) == b"0123456789"
        assert file.read_at(3, 4) == b"3456"
        assert file.read_at(8, 5) == b"89"
        assert file.read_at(10, 1) == b""
        file.close()

    def test_ranges_come_in_the_order_asked_for(self, files: FileSystem, folder: str) -> None:
        files.put(f"{folder}/a", bytes(range(256)) * 100)
        file = files.open(f"{folder}/a")

        found = file.read_many([Range(20_000, 3), Range(0, 2), Range(0, 2), Range(25_599, 10)])

        assert found == [bytes([32, 33, 34]), b"\0\1", b"\0\1", b"\xff"]
        assert file.read_many([]) == []
        file.close()

    def test_a_reopened_file_outlives_the_first(self, files: FileSystem, folder: str) -> None:
        files.put(f"{folder}/a", b"one")
        first = files.open(f"{folder}/a")

        second = first.reopened()
        first.close()

        assert second.read_at(0, 3) == b"one"
        assert second.name == first.name
        second.close()

    def test_an_empty_file_is_a_file(self, files: FileSystem, folder: str) -> None:
        files.put(f"{folder}/a", b"")

        found = files.stat(f"{folder}/a")

        assert found is not None
        assert (found.size, found.is_folder) == (0, False)
        assert files.open(f"{folder}/a").read_at(0, 1) == b""

    def test_a_file_that_is_not_there(self, files: FileSystem, folder: str) -> None:
        files.put(f"{folder}/a", b"one")

        assert files.stat(f"{folder}/b") is None
        assert files.stat(f"{folder}/a/b") is None
        with pytest.raises(NotFoundError) as caught:
            files.open(f"{folder}/b")

        assert f"{folder}/b" in str(caught.value)

    def test_an_open_file_never_gives_bytes_of_another_version(self, files: FileSystem, folder: str) -> None:
        files.put(f"{folder}/a", b"old")
        file = files.open(f"{folder}/a")
        files.put(f"{folder}/a", b"NEW")

        try:
            found = file.read_at(0, 3)
        except OSError:
            return

        assert found == b"old"

    # --- Versions

    def test_the_version_is_the_same_wherever_it_is_asked_for(self, files: FileSystem, folder: str) -> None:
        version = files.put(f"{folder}/a", b"one")

        found = files.stat(f"{folder}/a")

        assert found is not None
        assert found.version == version == files.open(f"{folder}/a").version

    def test_other_bytes_have_another_version(self, files: FileSystem, folder: str) -> None:
        versions = [files.put(f"{folder}/a", bytes([number, 0])) for number in range(100)]

        assert len(set(versions)) == 100

    # --- Listing

    def test_a_listing_has_files_and_folders(self, files: FileSystem, folder: str) -> None:
        files.put(f"{folder}/a", b"one")
        files.put(f"{folder}/b/c", b"four")
        files.put(f"{folder}/b/d/e", b"")

        found = {(entry.name, entry.size, entry.is_folder) for entry in files.list(folder)}

        assert found == {("a", 3, False), ("b", 0, True)}
        assert {entry.name for entry in files.list(f"{folder}/b")} == {"c", "d"}

    def test_a_folder_that_is_not_there_is_empty(self, files: FileSystem, folder: str) -> None:
        files.put(f"{folder}/file", b"")

        assert list(files.list(f"{folder}/none")) == []
        assert list(files.list(f"{folder}/fil")) == []

    def test_a_folder_is_no_file(self, files: FileSystem, folder: str) -> None:
        files.put(f"{folder}/a", b"one")

        found = files.stat(folder)

        assert found is not None
        assert found.is_folder

    # --- Writing

    def test_put_replaces(self, files: FileSystem, folder: str) -> None:
        files.put(f"{folder}/a", b"a longer text")
        files.put(f"{folder}/a", memoryview(b"short"), ALWAYS)

        assert files.open(f"{folder}/a").read_at(0, 20) == b"short"

    def test_a_created_file_appears_when_it_is_closed(self, files: FileSystem, folder: str) -> None:
        writer = files.create(f"{folder}/a")
        writer.write(b"one ")

        assert files.stat(f"{folder}/a") is None
        assert list(files.list(folder)) == []

        writer.write(b"two")
        writer.close()

        assert files.open(f"{folder}/a").read_at(0, 20) == b"one two"
        assert [entry.name for entry in files.list(folder)] == ["a"]

    def test_a_created_file_replaces_another_when_it_is_closed(self, files: FileSystem, folder: str) -> None:
        files.put(f"{folder}/a", b"old")
        writer = files.create(f"{folder}/a")
        writer.write(b"new")

        assert files.open(f"{folder}/a").read_at(0, 20) == b"old"

        writer.close()

        assert files.open(f"{folder}/a").read_at(0, 20) == b"new"

    def test_an_aborted_file_never_appears(self, files: FileSystem, folder: str) -> None:
        files.put(f"{folder}/a", b"old")
        writer = files.create(f"{folder}/a")
        writer.write(b"new")

        writer.abort()

        assert files.open(f"{folder}/a").read_at(0, 20) == b"old"
        assert [entry.name for entry in files.list(folder)] == ["a"]

    def test_a_removed_file_is_gone_and_can_be_removed_again(self, files: FileSystem, folder: str) -> None:
        files.put(f"{folder}/a", b"one")

        files.remove(f"{folder}/a")
        files.remove(f"{folder}/a")
        files.remove(f"{folder}/none/b")

        assert files.stat(f"{folder}/a") is None
        assert list(files.list(folder)) == []

    # --- Conditions

    def test_if_absent_writes_only_where_nothing_is(self, files: FileSystem, folder: str) -> None:
        self._needs_conditions(files)
        files.put(f"{folder}/a", b"one", IF_ABSENT)

        with pytest.raises(ConflictError) as caught:
            files.put(f"{folder}/a", b"two", IF_ABSENT)

        assert f"{folder}/a" in str(caught.value)
        assert not isinstance(caught.value, OutcomeUnknownError)
        assert files.open(f"{folder}/a").read_at(0, 3) == b"one"

    def test_if_unchanged_writes_only_over_that_version(self, files: FileSystem, folder: str) -> None:
        self._needs_conditions(files)
        first = files.put(f"{folder}/a", b"one")
        second = files.put(f"{folder}/a", b"two", IfUnchanged(first))

        with pytest.raises(ConflictError):
            files.put(f"{folder}/a", b"six", IfUnchanged(first))

        assert files.open(f"{folder}/a").read_at(0, 3) == b"two"
        assert files.put(f"{folder}/a", b"six", IfUnchanged(second)) not in (first, second)

    def test_if_unchanged_never_creates(self, files: FileSystem, folder: str) -> None:
        self._needs_conditions(files)
        version = files.put(f"{folder}/a", b"one")
        files.remove(f"{folder}/a")

        for name in ("a", "b"):
            with pytest.raises(ConflictError):
                files.put(f"{folder}/{name}", b"two", IfUnchanged(version))

        assert list(files.list(folder)) == []

    def test_after_a_removal_the_name_is_absent(self, files: FileSystem, folder: str) -> None:
        self._needs_conditions(files)
        files.put(f"{folder}/a", b"one")
        files.remove(f"{folder}/a")

        files.put(f"{folder}/a", b"two", IF_ABSENT)

        assert files.open(f"{folder}/a").read_at(0, 3) == b"two"

    def test_a_refused_put_leaves_nothing(self, files: FileSystem, folder: str) -> None:
        self._needs_conditions(files)
        files.put(f"{folder}/a", b"one")
        with pytest.raises(ConflictError):
            files.put(f"{folder}/a", b"two", IF_ABSENT)

        assert [entry.name for entry in files.list(folder)] == ["a"]

    def test_of_several_writers_one_wins(self, files: FileSystem, folder: str) -> None:
        self._needs_conditions(files)
        for number in range(_ROUNDS):
            won: list[int] = []

            def write(writer: int, path: str = f"{folder}/{number}", won: list[int] = won) -> None:
                try:
                    files.put(path, bytes([writer]), IF_ABSENT)
                except ConflictError:
                    return
                won.append(writer)

            _at_once(write)

            assert [files.open(f"{folder}/{number}").read_at(0, 2)] == [bytes(won)]

    def test_no_change_of_a_counter_is_lost(self, files: FileSystem, folder: str) -> None:
        self._needs_conditions(files)
        path = f"{folder}/counter"
        files.put(path, b"0")

        def count(_: int) -> None:
            done = 0
            while done < _ROUNDS:
                file = files.open(path)
                assert file.version is not None
                now, version = int(file.read_at(0, 10)), file.version
                file.close()
                try:
                    files.put(path, str(now + 1).encode(), IfUnchanged(version))
                except ConflictError:
                    continue
                done += 1

        _at_once(count)

        assert int(files.open(path).read_at(0, 10)) == _WRITERS * _ROUNDS

    def _needs_conditions(self, files: FileSystem) -> None:
        if not files.can.conditional_put:
            pytest.skip("this file system has no conditional put")


def _at_once(work: Callable[[int], None]) -> None:
    """Run a function in several threads, each with its number, and raise the first error."""
    errors: list[BaseException] = []

    def run(number: int) -> None:
        try:
            work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(_WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
