from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recordkit as rk
from recordkit import _core
from recordkit.filesystems import LocalFile, OpenFiles
from recordkit.storage.read import MappedRecords, RecordFile, fetch, fetch_later
from recordkit.storage.read._record_index import cached_index_path
from tests.chance import generator
from tests.dataset.files import flip, save
from tests.storage.ways import folder

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def payloads(file: int, count: int) -> list[bytes]:
    """Payloads of differing lengths, none twice."""
    return [b"%d/%d" % (file, number) * (1 + number * 7 % 30) for number in range(count)]


def saved(at: Path, counts: list[int]) -> list[RecordFile]:
    paths = [save(at / f"file-{file}", payloads(file, count)) for file, count in enumerate(counts)]
    open_files = OpenFiles(2)  # fewer than there are
    return [RecordFile(LocalFile(path), None, open_files) for path in paths]


def asked(wanted: list[tuple[int, int]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    pairs = np.array(wanted, np.int64).reshape(-1, 2)
    return np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1])


def all_of(counts: list[int]) -> list[tuple[int, int]]:
    return [(file, number) for file, count in enumerate(counts) for number in range(count)]


class TestFetch:
    @settings(max_examples=30)
    @given(counts=st.lists(st.integers(1, 30), min_size=2, max_size=4), data=st.data())
    def test_gives_records_of_all_files_in_the_order_asked_for(self, counts: list[int], data: st.DataObject) -> None:
        wanted = data.draw(st.lists(st.sampled_from(all_of(counts)), max_size=60))
        with folder() as at:
            chunk = fetch(saved(at, counts), *asked(wanted))

        assert list(chunk) == [payloads(file, counts[file])[number] for file, number in wanted]

    def test_many_blocks_of_the_index_are_read_as_they_are_needed(self, tmp_path: Path) -> None:
        counts = [5000, 1024, 3000]
        files, everything = saved(tmp_path, counts), all_of(counts)
        order = np.random.default_rng(3).permutation(len(everything)).tolist()

        few = fetch(files, *asked([(0, 0), (2, 2999)]))
        rest = fetch(files, *asked([everything[i] for i in order]))

        contents = [payloads(file, count) for file, count in enumerate(counts)]
        assert list(few) == [contents[0][0], contents[2][2999]]
        assert list(rest) == [contents[file][number] for file, number in (everything[i] for i in order)]

    def test_is_the_same_from_many_threads(self, tmp_path: Path) -> None:
        counts = [2000, 3000]
        files, wanted = saved(tmp_path, counts), all_of(counts)[::-3]

        with ThreadPoolExecutor(4) as pool:
            chunks = list(pool.map(lambda _: bytes(fetch(files, *asked(wanted))), range(8)))

        assert len(set(chunks)) == 1

    @pytest.mark.drawn
    @pytest.mark.parametrize("at_once", [1, 2, 3, 4])
    def test_more_files_than_can_be_open_at_once_are_read_some_after_the_others(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int
    ) -> None:
        monkeypatch.setattr("recordkit.storage.read._fetch.files_at_once", lambda: at_once)
        counts = [3, 1, 2, 1, 3, 2, 1]
        wanted = all_of(counts) * 2
        generator(f"groups of {at_once}").shuffle(wanted)

        files = saved(tmp_path, counts)
        chunk, later = fetch(files, *asked(wanted)), fetch_later(files, *asked(wanted))

        assert not isinstance(later, MappedRecords)
        assert list(chunk) == list(later) == [payloads(file, counts[file])[number] for file, number in wanted]

    def test_a_table_that_has_grown_large_is_begun_anew(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("recordkit.storage.read._record_index._TABLE_BYTES", 0)
        files, wanted = saved(tmp_path, [3000, 3000]), [(0, 2999), (1, 5)]

        for _ in range(2):
            assert list(fetch(files, *asked(wanted))) == [payloads(0, 3000)[2999], payloads(1, 3000)[5]]


class TestDamage:
    wanted = ((1, 4), (0, 2), (1, 0), (0, 5), (1, 3))

    def failing(self, files: list[RecordFile]) -> rk.CorruptRecordError:
        fetch(files, *asked([(0, 0), (1, 0)]))  # the index is made
        with pytest.raises(rk.CorruptRecordError) as caught:
            fetch(files, *asked(list(self.wanted)))
        return caught.value

    def test_a_damaged_payload_is_named_by_file_and_record(self, tmp_path: Path) -> None:
        files = saved(tmp_path, [6, 6])
        fetch(files, *asked([(0, 0), (1, 0)]))
        offset = int(files[1].places()[0][3])
        flip(tmp_path / "file-1", offset + 13)

        error = self.failing(files)

        assert (error.path, error.record, error.offset) == (str(tmp_path / "file-1"), 3, offset)
        assert error.kind == "bad_payload_crc"

    def test_a_file_that_was_cut_short_names_the_first_record_it_has_lost(self, tmp_path: Path) -> None:
        files = saved(tmp_path, [6, 6])
        fetch(files, *asked([(0, 0), (1, 0)]))
        os.truncate(tmp_path / "file-0", int(files[0].places()[0][5]) + 20)

        error = self.failing(files)

        assert (error.path, error.record) == (str(tmp_path / "file-0"), 5)

    def test_an_index_with_a_damaged_block_is_made_anew(self, tmp_path: Path) -> None:
        fetch(saved(tmp_path, [3000, 3000]), *asked([(0, 0), (1, 0)]))
        index = cached_index_path(tmp_path / "file-1")
        assert index is not None
        flip(index, index.stat().st_size - 1)  # in the last block of numbers
        files: Any = [RecordFile(LocalFile(tmp_path / f"file-{file}")) for file in range(2)]

        chunk = fetch(files, *asked([(1, 2999), (0, 1)]))

        assert list(chunk) == [payloads(1, 3000)[2999], payloads(0, 3000)[1]]


class TestTable:
    def test_what_does_not_fit_it_is_refused(self) -> None:
        table = _core.PlaceTable(5, 4)

        with pytest.raises(ValueError, match="for each record"):
            table.put(0, 0, 16, 2, b"1234567")
        with pytest.raises(ValueError, match="for each record"):
            table.put(0, 0, 16, 3, bytes(12))
        with pytest.raises(IndexError):
            table.put(2, 0, 16, 0, b"")
        with pytest.raises(IndexError):
            table.lacking(np.array([5]))
        with pytest.raises(ValueError, match="lacks a block"):
            table.places(np.array([4]))
        assert table.lacking(np.array([4, 0, 4])) == [0, 1]

    def test_files_and_records_that_are_not_there_are_refused(self) -> None:
        table, zero = _core.PlaceTable(1, 4), np.zeros(1, np.int64)

        with pytest.raises(IndexError, match="no such record"):
            _core.find_places([table], zero, zero - 1)
        with pytest.raises(IndexError, match="no such file"):
            _core.find_places([table], zero + 1, zero)
