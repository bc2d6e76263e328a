from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import recordkit as rk
from recordkit import _core, records
from recordkit.filesystems import LocalFile
from recordkit.storage.format._index import Fingerprint, Index
from recordkit.storage.read import RecordFile
from recordkit.storage.read._record_index import build_index, cached_index_path, find_index, identities, index_path
from tests.dataset.files import WAYS, flip, save, stored
from tests.storage.ways import folder

TORN_HEADER, BAD_LENGTH, TORN_PAYLOAD, BAD_PAYLOAD = 1, 2, 3, 4


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "recordkit" / "index"


def numbers(count: int, start: int = 0) -> list[bytes]:
    """Payloads of differing lengths."""
    return [b"%d" % number * (number % 5) for number in range(start, start + count)]


def saved(path: Path, *payloads: bytes) -> LocalFile:
    return LocalFile(save(path, payloads))


class TestHops:
    @given(st.lists(st.one_of(st.binary(max_size=30), st.just(b"x" * 5000)), max_size=40), st.integers(1, 50))
    def test_are_the_lengths_and_checksums_of_all_records(self, payloads: list[bytes], most: int) -> None:
        with folder() as at:
            file = saved(at / "a", *payloads)
            lengths: list[int] = []
            crcs: list[int] = []
            offset = 0
            while True:
                some, sums, fault, offset = _core.scan_headers(file.descriptor, offset, most, 1 << 30)
                assert fault == 0
                lengths, crcs = lengths + some.tolist(), crcs + sums.tolist()
                if len(some) < most:
                    break

            assert lengths == [len(payload) for payload in payloads]
            assert crcs == [_core.crc32c(payload) for payload in payloads]
            assert offset == file.size
            assert sum(map(len, identities(file))) == 12 * len(payloads)

    @pytest.mark.parametrize("cut", range(1, 27))
    def test_end_where_a_torn_record_starts(self, tmp_path: Path, cut: int) -> None:
        file = saved(tmp_path / "a", *[b"payload-%03d" % number for number in range(5)])
        os.truncate(file.path, 108 + cut)

        lengths, _, fault, offset = _core.scan_headers(file.descriptor, 0, 100, 1 << 30)

        assert (len(lengths), offset, fault) == (4, 108, TORN_HEADER if cut < 12 else TORN_PAYLOAD)

    @pytest.mark.parametrize("length", [2**64 - 1, 2**63, 2**64 - 16, 1 << 40])
    def test_a_length_beyond_the_file_is_torn_whatever_it_is(self, tmp_path: Path, length: int) -> None:
        header = length.to_bytes(8, "little")
        path = tmp_path / "a"
        path.write_bytes(records.pack(b"one") + header + _core.mask_crc(_core.crc32c(header)).to_bytes(4, "little"))

        file = LocalFile(path)

        assert _core.scan_headers(file.descriptor, 0, 100, 1 << 30)[2:] == (TORN_PAYLOAD, 19)

    def test_a_damaged_length_is_named_by_record_and_offset(self, tmp_path: Path) -> None:
        file = saved(tmp_path / "a", b"one", b"two", b"three")
        flip(file.path, 38 + 3)

        with pytest.raises(rk.CorruptRecordError, match="record 2 at byte 38: the length's checksum") as caught:
            list(identities(file))

        assert (caught.value.record, caught.value.offset, caught.value.kind) == (2, 38, "bad_length_crc")


class TestFetch:
    @given(payloads=st.lists(st.binary(max_size=60), min_size=1, max_size=30), data=st.data())
    def test_gives_the_records_at_these_places_in_this_order(self, payloads: list[bytes], data: st.DataObject) -> None:
        wanted = data.draw(st.lists(st.integers(0, len(payloads) - 1), max_size=40))
        sizes = np.array([len(payload) + 16 for payload in payloads], np.uint64)
        starts = np.cumsum(sizes) - sizes
        with folder() as at:
            file = saved(at / "a", *payloads)

            chunk, fault = _core.fetch(file.descriptor, starts[wanted], sizes[wanted])

            assert (list(chunk), fault) == ([payloads[i] for i in wanted], 0)
            assert list(records.chunk(chunk)) == list(chunk)

    def test_ends_before_the_first_that_is_not_a_record_of_that_size(self, tmp_path: Path) -> None:
        file = saved(tmp_path / "a", b"one", b"two", b"three")
        starts, sizes = np.array([0, 19, 38], np.uint64), np.array([19, 19, 21], np.uint64)

        for wrong_start, wrong_size, fault in ((20, 19, 2), (19, 18, 2), (19, 38, 2), (19, 5, 3), (50, 19, 3)):
            starts[1], sizes[1] = wrong_start, wrong_size
            chunk, found = _core.fetch(file.descriptor, starts, sizes)
            assert (list(chunk), found) == ([b"one"], fault)

    def test_a_damaged_payload_is_found(self, tmp_path: Path) -> None:
        file = saved(tmp_path / "a", b"one", b"two", b"three")
        flip(file.path, 19 + 13)

        chunk, fault = _core.fetch(file.descriptor, np.array([0, 19], np.uint64), np.array([19, 19], np.uint64))

        assert (list(chunk), fault) == ([b"one"], BAD_PAYLOAD)

    def test_places_beyond_reason_take_no_memory(self, tmp_path: Path) -> None:
        file = saved(tmp_path / "a", b"one")
        huge = np.array([2**64 - 1], np.uint64)

        assert _core.fetch(file.descriptor, np.zeros(1, np.uint64), huge)[1] == TORN_PAYLOAD
        assert _core.fetch(file.descriptor, huge, huge)[1] == TORN_PAYLOAD


class TestJoin:
    @given(st.lists(st.lists(st.binary(max_size=20), max_size=5), max_size=5))
    def test_is_all_records_one_behind_the_other(self, groups: list[list[bytes]]) -> None:
        joined = _core.join([records.pack_many(group) for group in groups])

        assert list(joined) == [payload for group in groups for payload in group]
        assert bytes(joined) == b"".join(records.pack(payload) for group in groups for payload in group)

    def test_of_parts_of_chunks_only_the_parts(self) -> None:
        chunk = records.pack_many([b"a", b"b", b"c", b"d"])

        assert list(_core.join([chunk.slice(3, 4), chunk.slice(1, 3), chunk.slice(2, 2)])) == [b"d", b"b", b"c"]


class TestCache:
    def fetched(self, path: Path, *wanted: int) -> list[bytes]:
        return list(RecordFile(LocalFile(path)).fetch(np.array(wanted)))

    def test_an_index_is_kept_there_and_not_beside_the_data(self, tmp_path: Path, cache: Path) -> None:
        path = save(tmp_path / "data" / "a", numbers(9))

        assert self.fetched(path, 3, 8) == [numbers(9)[3], numbers(9)[8]]

        assert [entry.name for entry in path.parent.iterdir()] == ["a"]
        assert list(cache.iterdir()) == [cached_index_path(path)]

    def test_it_is_used_the_next_time(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = save(tmp_path / "a", numbers(9))
        self.fetched(path, 3)
        monkeypatch.setattr("recordkit.storage.read._record_file.build_index", None)

        assert self.fetched(path, 4) == [numbers(9)[4]]

    def test_counting_and_reading_in_order_need_none(self, tmp_path: Path, cache: Path) -> None:
        file = RecordFile(LocalFile(save(tmp_path / "a", numbers(9))))

        assert file.count == 9
        assert file.stream().read() is not None
        assert not cache.exists()

    @pytest.mark.parametrize("way", WAYS)
    def test_one_of_a_file_that_has_grown_is_made_anew(self, tmp_path: Path, way: str) -> None:
        path = save(tmp_path / "a", numbers(9), way)
        self.fetched(path, 3)
        save(path, numbers(12), way)

        assert self.fetched(path, 3, 11) == [numbers(12)[3], numbers(12)[11]]

    def test_one_of_a_file_that_was_cut_is_made_anew(self, tmp_path: Path) -> None:
        path = save(tmp_path / "a", numbers(9))
        self.fetched(path, 8)
        save(path, numbers(6))

        assert self.fetched(path, 5) == [numbers(6)[5]]
        assert RecordFile(LocalFile(path)).count == 6

    def test_one_of_another_file_of_the_same_size_and_ends_does_no_harm(self, tmp_path: Path) -> None:
        ends = [b"e" * 5000]
        one, two = [*ends, b"aa", b"bbbb", b"c", *ends], [*ends, b"aaaa", b"bb", b"d", *ends]
        path = save(tmp_path / "a", one)
        assert self.fetched(path, 1, 2, 3) == one[1:4]
        fingerprint = Fingerprint.of(path)
        save(path, two)
        assert Fingerprint.of(path) == fingerprint

        for wanted in ([1], [2], [3], [1, 2, 3, 4]):
            assert self.fetched(path, *wanted) == [two[i] for i in wanted]

    @pytest.mark.parametrize("other", [b"", b"RKINDEX1", b"x" * 500])
    def test_what_is_no_index_is_passed_over(self, tmp_path: Path, other: bytes) -> None:
        path = save(tmp_path / "a", numbers(9))
        place = cached_index_path(path)
        assert place is not None
        place.parent.mkdir(parents=True)
        place.write_bytes(other)

        assert self.fetched(path, 5) == [numbers(9)[5]]
        assert len(Index(place, Fingerprint.of(path))) == 9

    def test_that_of_another_file_is_passed_over(self, tmp_path: Path) -> None:
        one, two = save(tmp_path / "a", numbers(9)), save(tmp_path / "b", numbers(9, 50))
        self.fetched(one, 1)
        self.fetched(two, 1)
        here, there = cached_index_path(one), cached_index_path(two)
        assert here is not None
        assert there is not None
        here.write_bytes(there.read_bytes())

        assert self.fetched(one, 5) == [numbers(9)[5]]

    @pytest.mark.parametrize("where", ["cache", "beside"])
    def test_one_that_is_damaged_anywhere_is_made_anew(self, tmp_path: Path, where: str) -> None:
        path = save(tmp_path / "a", numbers(30))
        self.fetched(path, 1)
        place = cached_index_path(path)
        assert place is not None
        sound = place.read_bytes()
        if where == "beside":
            place = index_path(path)
            place.parent.mkdir()

        for at in range(len(sound)):
            place.write_bytes(sound[:at] + bytes([sound[at] ^ 0x10]) + sound[at + 1 :])
            assert self.fetched(path, 3, 29) == [numbers(30)[3], numbers(30)[29]]
        for size in range(0, len(sound), 5):
            place.write_bytes(sound[:size])
            assert self.fetched(path, 29) == [numbers(30)[29]]

    def test_one_that_vanishes_while_it_is_used_is_made_anew(self, tmp_path: Path, cache: Path) -> None:
        path = save(tmp_path / "a", numbers(3000))
        file = RecordFile(LocalFile(path))
        assert list(file.fetch_one(1)) == [numbers(3)[1]]

        for entry in cache.iterdir():
            entry.unlink()

        assert list(file.fetch_one(2999)) == [numbers(3000)[2999]]

    def test_where_nothing_can_be_kept_it_works_all_the_same(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "file").write_bytes(b"")
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
        path = save(tmp_path / "a", numbers(9))

        assert self.fetched(path, 5) == [numbers(9)[5]]

    def test_a_user_without_a_home_has_no_cache(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def homeless() -> Path:
            raise RuntimeError("Could not determine home directory.")

        monkeypatch.delenv("XDG_CACHE_HOME")
        monkeypatch.setattr(Path, "home", homeless)
        path = save(tmp_path / "a", numbers(9))

        assert cached_index_path(path) is None
        assert self.fetched(path, 5) == [numbers(9)[5]]

    def test_it_is_under_the_home_folder_by_default(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("XDG_CACHE_HOME", "")
        monkeypatch.setenv("HOME", str(tmp_path))

        place = cached_index_path(tmp_path / "a")

        assert place is not None
        assert place.parent == tmp_path / ".cache" / "recordkit" / "index"

    def test_a_torn_tail_is_not_indexed(self, tmp_path: Path, cache: Path) -> None:
        path = save(tmp_path / "a", numbers(9))
        os.truncate(path, path.stat().st_size - 1)

        with pytest.raises(rk.CorruptRecordError, match="record 8 at byte"):
            self.fetched(path, 2)

        assert not cache.exists()


class TestPlaces:
    @pytest.mark.parametrize("count", [0, 1, 1023, 1024, 1025, 5000])
    def test_are_those_that_scanning_finds(self, tmp_path: Path, count: int) -> None:
        frames = [records.pack(payload) for payload in numbers(count)]
        path = tmp_path / "a"
        path.write_bytes(stored(frames, "plain"))
        wanted = np.array(sorted({0, count // 3, count - 1, max(0, count - 1025)}) if count else [], np.int64)

        places = build_index(LocalFile(path), None)
        starts, sizes = places.many(wanted)

        offsets = records.scan(path.read_bytes())
        assert len(places) == count
        assert starts.tolist() == offsets[wanted].tolist()
        assert sizes.tolist() == [len(frames[i]) for i in wanted]
        assert [places.one(int(i))[0].tolist() for i in wanted] == [[start] for start in starts.tolist()]
        assert find_index(LocalFile(path), None) is not None
