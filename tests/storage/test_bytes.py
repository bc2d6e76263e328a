from __future__ import annotations

import gzip
import io
import os
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordkit import records
from recordkit.errors import StorageError
from recordkit.filesystems import LentFile, LocalFile, ObjectFile, OpenFiles, PipeFile, _streams
from recordkit.storage.read import RecordFile

DATA = bytes(range(256)) * 40


class Slow(io.RawIOBase):
    """Gives less than it is asked for, as a pipe does, and cannot go back."""

    def __init__(self, data: bytes, most: int = 7) -> None:
        self._inner, self._most = io.BytesIO(data), most

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        return self._inner.read(self._most if size < 0 else min(size, self._most))


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "a"
    path.write_bytes(DATA)
    return path


places = st.tuples(st.integers(0, len(DATA) + 10), st.integers(0, len(DATA) + 10))


class TestLocalFile:
    @pytest.mark.parametrize(("offset", "size"), [(0, 10), (5, 0), (250, 12), (len(DATA) - 3, 10), (len(DATA) + 5, 4)])
    def test_reads_any_part_and_fewer_only_at_the_end(self, path: Path, offset: int, size: int) -> None:
        assert LocalFile(path).read_at(offset, size) == DATA[offset : offset + size]

    def test_is_not_open_before_it_is_read_nor_for_its_size(self, path: Path) -> None:
        before = descriptors()
        file = LocalFile(path)

        assert (file.name, file.size) == (str(path), len(DATA))
        assert descriptors() == before
        file.read_at(0, 1)
        assert (file.size, descriptors()) == (len(DATA), before + 1)

    def test_tells_the_size_of_now(self, path: Path) -> None:
        file = LocalFile(path)
        file.read_at(0, 1)

        path.write_bytes(DATA + b"more")

        assert file.size == len(DATA) + 4

    def test_is_closed_with_the_object_and_opened_again_when_it_is_read(self, path: Path) -> None:
        before = descriptors()
        file = LocalFile(path)
        file.read_at(0, 1)
        file.close()
        file.close()

        assert descriptors() == before
        assert file.read_at(0, 2) == DATA[:2]
        del file
        assert descriptors() == before

    def test_pickles_as_its_path(self, path: Path) -> None:
        file = LocalFile(path)
        file.read_at(0, 1)

        copy = pickle.loads(pickle.dumps(file))

        assert copy._descriptor == -1
        assert copy.read_at(0, 3) == DATA[:3]

    def test_what_cannot_be_read_is_named(self, tmp_path: Path) -> None:
        file = LocalFile(tmp_path / "none")

        for read in (lambda: file.size, lambda: file.read_at(0, 1)):
            with pytest.raises(StorageError, match="none: cannot be read: No such file or directory") as caught:
                read()
            assert (caught.value.path, caught.value.errno) == (str(tmp_path / "none"), 2)


class TestOpenFiles:
    def test_keeps_no_more_open_than_it_may(self, tmp_path: Path) -> None:
        files = [LocalFile(tmp_path / str(number)) for number in range(20)]
        for file in files:
            file.path.write_bytes(b"x")
        keeper, before = OpenFiles(5), descriptors()

        for file in files * 2:
            assert os.pread(keeper.borrow(file), 1, 0) == b"x"
            keeper.give_back(file)

        assert descriptors() == before + 5

    def test_never_closes_one_that_is_used(self, tmp_path: Path) -> None:
        files = [LocalFile(tmp_path / str(number)) for number in range(9)]
        for number, file in enumerate(files):
            file.path.write_bytes(bytes([number]))
        keeper = OpenFiles(2)

        held = keeper.borrow(files[0])
        for file in files[1:]:
            keeper.borrow(file)
            keeper.give_back(file)

        assert os.pread(held, 1, 0) == b"\0"
        keeper.give_back(files[0])

    def test_gives_each_thread_the_right_file(self, tmp_path: Path) -> None:
        files = [LocalFile(tmp_path / str(number)) for number in range(30)]
        for number, file in enumerate(files):
            file.path.write_bytes(bytes([number]))
        lent = [LentFile(file, keeper) for keeper in [OpenFiles(3)] for file in files]

        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda number: lent[number].read_at(0, 9), list(range(30)) * 30))

        assert found == [bytes([number]) for number in range(30)] * 30

    def test_a_file_that_is_not_there_is_not_held(self, tmp_path: Path) -> None:
        keeper = OpenFiles(0)
        file = LentFile(LocalFile(tmp_path / "none"), keeper)

        for _ in range(3):
            with pytest.raises(StorageError, match="cannot be read"):
                file.read_at(0, 1)

    def test_files_that_share_one_share_one_behind_pickling(self, tmp_path: Path) -> None:
        keeper = OpenFiles(3)
        files = [RecordFile(LocalFile(tmp_path / name), None, keeper) for name in "ab"]

        one, two = pickle.loads(pickle.dumps(files))

        assert one._open_files is two._open_files is not keeper


class TestObjectFile:
    @given(st.lists(places, max_size=5))
    def test_reads_any_part_in_any_order(self, parts: list[tuple[int, int]]) -> None:
        file = ObjectFile(io.BytesIO(DATA))

        assert [file.read_at(*part) for part in parts] == [DATA[at : at + size] for at, size in parts]
        assert file.size == len(DATA)

    def test_short_reads_are_gone_on_with(self) -> None:
        class NeedMoreBytes(io.BytesIO):
            def read(self, size: int | None = -1, /) -> bytes:
                return super().read(min(size or 0, 5))

        assert ObjectFile(NeedMoreBytes(DATA)).read_at(3, 100) == DATA[3:103]

    def test_its_name_is_the_files_own_or_its_kind(self, path: Path) -> None:
        with path.open("rb") as file:
            assert ObjectFile(file).name == str(path)
        assert ObjectFile(io.BytesIO()).name == "<BytesIO>"
        assert ObjectFile(io.BytesIO(), "given").name == "given"

    def test_many_threads_do_not_disturb_each_other(self) -> None:
        file = ObjectFile(io.BytesIO(DATA))

        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda at: file.read_at(at, 9), range(0, len(DATA), 3)))

        assert found == [DATA[at : at + 9] for at in range(0, len(DATA), 3)]


class TestPipeFile:
    def test_nothing_is_read_before_it_is_asked_for(self) -> None:
        inner = Slow(DATA)

        PipeFile(inner)  # type: ignore[arg-type]

        assert inner._inner.tell() == 0

    @given(st.lists(st.integers(1, 3000), max_size=8))
    def test_reads_from_front_to_back(self, sizes: list[int]) -> None:
        file = PipeFile(Slow(DATA))  # type: ignore[arg-type]
        at, found = 0, b""

        for size in sizes:
            piece = file.read_at(at, size)
            assert piece == DATA[at : at + size]
            at, found = at + len(piece), found + piece

        assert found == DATA[:at]

    @given(first=places, second=places)
    def test_the_beginning_can_be_read_again(self, first: tuple[int, int], second: tuple[int, int]) -> None:
        file = PipeFile(Slow(DATA, 1000))  # type: ignore[arg-type]
        file.read_at(0, first[1])

        for at, size in (first, second):
            if at + size <= first[1]:
                assert file.read_at(at, size) == DATA[at : at + size]

    def test_what_was_read_and_not_kept_is_an_error(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(_streams, "_KEPT", 100)
        file = PipeFile(Slow(DATA))  # type: ignore[arg-type]
        for at in range(0, 1000, 50):
            assert file.read_at(at, 50) == DATA[at : at + 50]

        assert file.read_at(10, 90) == DATA[10:100]
        for at, size in ((10, 200), (500, 10), (2000, 1)):
            with pytest.raises(StorageError, match="a pipe is read once, from front to back\n  Save it to a file"):
                file.read_at(at, size)
        assert file.read_at(1000, 50) == DATA[1000:1050]

    def test_at_the_end_there_is_nothing_and_the_size_is_known(self) -> None:
        file = PipeFile(Slow(DATA))  # type: ignore[arg-type]
        assert file.size > len(DATA)

        assert file.read_at(0, len(DATA) + 1) == DATA

        assert file.size == len(DATA)
        assert file.read_at(len(DATA), 5) == b""

    def test_a_real_pipe_with_gzip_in_it_gives_its_records(self) -> None:
        packed = gzip.compress(b"".join(records.pack(b"%d" % number) for number in range(20_000)))
        reading, writing = os.pipe()

        def write() -> None:
            with os.fdopen(writing, "wb") as file:
                file.write(packed)

        thread = threading.Thread(target=write)
        thread.start()
        with os.fdopen(reading, "rb") as file:
            stream = RecordFile(PipeFile(file)).stream()
            found = []
            while (chunk := stream.read()) is not None:
                found += list(chunk)
        thread.join()

        assert found == [b"%d" % number for number in range(20_000)]
