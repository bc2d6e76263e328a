"""Changes: one at a time, by locks that need no times, no process ids and no files that stay."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import recordkit as rk
from recordkit.filesystems import _local_writes
from recordkit.storage.staging._change_lock import changing
from tests.dataset.bases import listing, read

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]
ROWS = [{"id": number} for number in range(6)]
HOLD = """
import sys, time
from pathlib import Path
from recordkit.storage.staging._change_lock import changing
with changing(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def base(tmp_path: Path) -> Path:
    rk.write(tmp_path / "base", ROWS, sync=False)
    return tmp_path / "base"


@pytest.fixture(autouse=True)
def nothing_said_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_local_writes, "_said", set())


def every_change(base: Path) -> None:
    """Change a dataset in each way that takes a lock."""
    with rk.append(base) as writer:
        writer.write({"id": 6})
    rk.add_fields(base, {"x": list(range(7))})
    rk.delete(base, where="id == 1")
    rk.drop_fields(base, "x")
    rk.bake(base, base, overwrite=True)
    assert [row["id"] for row in read(base)] == [0, 2, 3, 4, 5, 6]


def is_free(folder: Path) -> bool:
    """Whether another thread can have the lock at once."""
    found: list[bool] = []

    def look() -> None:
        try:
            with changing(folder, wait=0):
                found.append(True)
        except rk.TargetBusyError:
            found.append(False)

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    return found[0]


class TestALock:
    def test_is_one_persons_at_a_time_and_may_be_taken_again_by_the_same(self, base: Path) -> None:
        with changing(base):
            with changing(base):
                assert not is_free(base)
            assert not is_free(base)
        assert is_free(base)

    def test_leaves_nothing_and_reading_needs_none(self, base: Path) -> None:
        before = listing(base.parent)

        with changing(base):
            assert read(base) == ROWS
            assert rk.verify(base).ok
            assert listing(base.parent) == before

        assert listing(base.parent) == before

    def test_goes_with_the_process_that_had_it_however_it_ends(self, base: Path) -> None:
        process = subprocess.Popen([sys.executable, "-c", HOLD, str(base)], stdout=subprocess.PIPE, cwd=ROOT)
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        os.utime(base, ns=(0, 0))  # times say nothing
        assert not is_free(base)

        process.kill()
        process.wait()
        process.stdout.close()

        assert is_free(base)

    def test_of_a_folder_that_was_replaced_is_not_that_of_the_new_one(self, base: Path) -> None:
        with changing(base):
            base.rename(base.with_name("old"))
            rk.write(base, ROWS, sync=False)
            assert is_free(base)

    def test_is_waited_for(self, base: Path) -> None:
        done: list[int] = []
        thread = threading.Thread(target=lambda: done.append(rk.delete(base, where="id < 2").records))
        with changing(base):
            thread.start()
            thread.join(0.2)
            assert not done
        thread.join()

        assert done == [2]

    def test_that_is_not_let_go_of_in_time_is_an_error(self, base: Path) -> None:
        process = subprocess.Popen([sys.executable, "-c", HOLD, str(base)], stdout=subprocess.PIPE, cwd=ROOT)
        assert process.stdout is not None
        process.stdout.readline()

        with pytest.raises(rk.TargetBusyError, match=r"another writer is using it"), changing(base, wait=0.1):
            pass

        process.kill()
        process.wait()
        process.stdout.close()


def refusing(kind: Callable[[int], bool], code: int) -> Any:
    """A `flock` that some files refuse."""
    whole = fcntl.flock

    def flock(descriptor: int, operation: int) -> None:
        if kind(os.fstat(descriptor).st_mode):
            raise OSError(code, os.strerror(code))
        whole(descriptor, operation)

    return flock


class TestAFileSystemThatCannot:
    @pytest.mark.parametrize("code", [errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK])
    def test_lock_is_written_to_with_a_warning(
        self, base: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, code: int
    ) -> None:
        monkeypatch.setattr(fcntl, "flock", refusing(lambda mode: True, code))

        every_change(base)

        assert f"this file system has no locks (flock: {os.strerror(code)})" in caplog.text
        assert "make sure that only one does" in caplog.text
        assert not list(base.rglob("lock"))

    @pytest.mark.parametrize("code", [errno.EBADF, errno.EINVAL])
    def test_lock_folders_has_a_file_for_it_while_it_is_needed(
        self, base: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, code: int
    ) -> None:
        monkeypatch.setattr(fcntl, "flock", refusing(stat.S_ISDIR, code))

        every_change(base)
        with changing(base):
            assert (base / "_recordkit" / "lock").exists()
            assert not is_free(base)

        assert is_free(base)
        assert "no locks" not in caplog.text
        assert not list(base.rglob("lock"))

    @pytest.mark.parametrize("code", [errno.EINVAL, errno.ENOSYS, errno.ENOTSUP])
    def test_sync_folders_is_written_to_with_a_warning(
        self, base: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, code: int
    ) -> None:
        whole = os.fsync

        def fsync(descriptor: int) -> None:
            if stat.S_ISDIR(os.fstat(descriptor).st_mode):
                raise OSError(code, os.strerror(code))
            whole(descriptor)

        monkeypatch.setattr(os, "fsync", fsync)

        every_change(base)

        assert f"this file system has no fsync of folders ({os.strerror(code)})" in caplog.text
        assert "a loss of power may take it" in caplog.text

    def test_sync_a_folder_for_another_reason_is_an_error(self, base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def fsync(descriptor: int) -> None:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

        monkeypatch.setattr(os, "fsync", fsync)

        with pytest.raises(rk.StorageError, match="fsync"):
            rk.delete(base, where="id == 1")

        assert read(base) == ROWS


class TestMeanwhile:
    """What happens between the first look at a dataset and the moment when a change is to appear."""

    def test_fields_are_not_added_to_rows_that_came(self, base: Path) -> None:
        def slow(row: dict[str, Any]) -> int:
            if row["id"] == 0:
                with rk.append(base, sync=False) as writer:
                    writer.write({"id": 6})
            return 1

        with pytest.raises(rk.StorageError, match="was changed during the run"):
            rk.add_fields(base, {"x": rk.Computed("int64", slow, reads=["id"])}, workers=1)

        assert read(base) == [*ROWS, {"id": 6}]
        assert not any((base / "_recordkit" / "overlays").iterdir())

    @pytest.mark.parametrize("replace", [False, True])
    def test_a_field_of_another_with_the_same_name_is_not_hidden(self, base: Path, replace: bool) -> None:
        def slow(row: dict[str, Any]) -> int:
            if row["id"] == 0:
                rk.add_fields(base, {"y": 0, "x": 7}, replace=True, sync=False, workers=1)
            return 1

        source = rk.Computed("int64", slow, reads=["id"])
        with pytest.raises(rk.SchemaError, match="x: another writer has added, changed or dropped this field"):
            rk.add_fields(base, {"x": source}, replace=replace, workers=1)

        assert [row["x"] for row in read(base)] == [7] * 6
        assert len(list((base / "_recordkit" / "overlays").iterdir())) == 1

    def test_rows_are_not_appended_to_other_fields(self, base: Path) -> None:
        writer = rk.append(base)
        writer.write({"id": 6})
        rk.add_fields(base, {"x": 1})

        with pytest.raises(rk.StorageError, match="has changed while rows were being appended to it"):
            writer.close()

        assert [row["id"] for row in read(base)] == list(range(6))

    def test_a_dataset_is_not_written_over_by_what_was_made_of_it_before(self, base: Path) -> None:
        def slow(row: dict[str, Any]) -> bool:
            if row["id"] == 0:
                rk.delete(base, where="id == 5")
            return True

        with pytest.raises(rk.StorageError, match="was changed during the run"):
            rk.filter(base, slow, out=base, overwrite=True, workers=1)

        assert read(base) == ROWS[:5]
