from __future__ import annotations

import gzip
import io
import pickle
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recordkit as rk
from recordkit import records
from recordkit.codecs._gzip import compress_member
from recordkit.filesystems import LocalFile, ObjectFile
from recordkit.storage.read import RecordFile
from tests.dataset.files import WAYS, flip, save, stored
from tests.storage.ways import folder

if TYPE_CHECKING:
    from pathlib import Path

    from recordkit.records import Chunk
    from recordkit.storage.read import Damage, Stream

ways = st.sampled_from(WAYS)


def numbers(count: int) -> list[bytes]:
    return [b"%d" % number * (number % 7) for number in range(count)]


def frames(count: int) -> list[bytes]:
    return [records.pack(payload) for payload in numbers(count)]


def in_memory(count: int, way: str) -> RecordFile:
    return RecordFile(ObjectFile(io.BytesIO(stored(frames(count), way)), "memory"))


def on_disk(path: Path, count: int, way: str) -> RecordFile:
    return RecordFile(LocalFile(save(path / "a", numbers(count), way)))


def chunks(stream: Stream, size: int | None = None) -> list[Chunk]:
    found = []
    while (chunk := stream.read(size)) is not None:
        found.append(chunk)
    return found


def everything(stream: Stream, size: int | None = None) -> list[bytes]:
    return [payload for chunk in chunks(stream, size) for payload in chunk]


class TestStream:
    @settings(max_examples=60)
    @given(
        count=st.integers(0, 60),
        first=st.integers(0, 70),
        size=st.one_of(st.none(), st.integers(1, 30)),
        way=ways,
        local=st.booleans(),
    )
    def test_gives_the_records_from_any_on(
        self, count: int, first: int, size: int | None, way: str, local: bool
    ) -> None:
        with folder() as at:
            file = on_disk(at, count, way) if local else in_memory(count, way)

            found = chunks(file.stream(min(first, count)), size)

            assert [payload for chunk in found for payload in chunk] == numbers(count)[first:]
            expected = min(first, count)
            for chunk in found:
                assert not len(chunk) or chunk.first_record == expected
                expected += len(chunk)

    @pytest.mark.parametrize("way", WAYS)
    def test_tells_at_the_end_how_many_there_are(self, way: str) -> None:
        stream = in_memory(25, way).stream()

        chunks(stream, 4)

        assert stream.next_record == 25

    @pytest.mark.parametrize("first", [0, 5])
    @pytest.mark.parametrize("local", [False, True])
    def test_damage_is_named_where_it_is_wherever_reading_began(self, tmp_path: Path, local: bool, first: int) -> None:
        path = save(tmp_path / "a", numbers(20))
        at = int(records.scan(path.read_bytes())[12])
        flip(path, at + 12)
        file = RecordFile(LocalFile(path) if local else ObjectFile(io.BytesIO(path.read_bytes()), str(path)))
        stream = file.stream(first)

        with pytest.raises(rk.CorruptRecordError) as caught:
            everything(stream)

        assert (caught.value.record, caught.value.offset, caught.value.path) == (12, at, str(path))

    @pytest.mark.parametrize("first", [0, 5])
    @pytest.mark.parametrize("local", [False, True])
    def test_the_records_behind_damage_are_found_wherever_reading_began(
        self, tmp_path: Path, local: bool, first: int
    ) -> None:
        path = save(tmp_path / "a", numbers(20))
        at = int(records.scan(path.read_bytes())[12])
        flip(path, at + 12)
        file = RecordFile(LocalFile(path) if local else ObjectFile(io.BytesIO(path.read_bytes()), str(path)))
        told: list[Damage] = []

        found = everything(file.stream(first, tell=told.append))

        assert found == [*numbers(12)[first:], *numbers(20)[13:]]
        assert [(damage.kind, damage.record, damage.offset) for damage in told] == [("bad_payload_crc", 12, at)]

    @pytest.mark.parametrize(
        ("way", "first"),
        # Behind a damaged member of ours records go by the numbers that the headers say.
        [(way, first) for way in WAYS for first in (0, 8, 16) if (way, first) != ("ours", 16)],
    )
    def test_damage_before_or_behind_the_first_that_is_asked_for_is_passed_over(
        self, tmp_path: Path, way: str, first: int
    ) -> None:
        packed = frames(30)
        packed[10] = packed[10][:2] + b"\xff" + packed[10][3:]  # its length
        path = tmp_path / "a"
        path.write_bytes(stored(packed, way))
        sound = [*numbers(30)[:10], *numbers(30)[11:]]

        stream = RecordFile(LocalFile(path)).stream(first, tell=lambda damage: None)

        assert everything(stream, 3) == sound[first:]

    def test_where_all_that_is_left_is_damaged_nothing_is_left(self, tmp_path: Path) -> None:
        path = save(tmp_path / "a", numbers(10))
        flip(path, int(records.scan(path.read_bytes())[9]) + 12)
        stream = RecordFile(LocalFile(path)).stream(9, tell=lambda damage: None)

        assert everything(stream) == []
        assert stream.next_record == 10


class TestFetch:
    @settings(max_examples=60)
    @given(count=st.integers(1, 60), way=ways, local=st.booleans(), data=st.data())
    def test_gives_any_records(self, count: int, way: str, local: bool, data: st.DataObject) -> None:
        wanted = sorted(data.draw(st.lists(st.integers(0, count - 1), max_size=20)))
        with folder() as at:
            file = on_disk(at, count, way) if local else in_memory(count, way)

            assert file.count == count
            assert list(file.fetch(np.array(wanted, np.int64))) == [numbers(count)[i] for i in wanted]
            for i in wanted[:4]:
                one = file.fetch_one(i)
                assert (list(one), one.first_record) == ([numbers(count)[i]], i)
                assert int(one.offsets[0]) == sum(map(len, frames(i)))

    def test_file_whose_records_cannot_be_counted_says_so_for_each(self, tmp_path: Path) -> None:
        path = tmp_path / "a"
        path.write_bytes(records.pack(b"one") + records.pack(b"two"))
        flip(path, 19 + 8)
        file = RecordFile(LocalFile(path))

        for number in range(2):
            with pytest.raises(rk.CorruptRecordError, match="record 1 at byte 19"):
                file.fetch_one(number)

    def test_members_without_records_do_no_harm(self, tmp_path: Path) -> None:
        path, packed = tmp_path / "a", frames(4)
        empty = compress_member([], 0, 1)
        path.write_bytes(
            empty + compress_member(packed[:2], 2, 1) + empty + empty + compress_member(packed[2:], 2, 1) + empty
        )
        file = RecordFile(LocalFile(path))

        assert (file.count, list(file.fetch(np.arange(4)))) == (4, numbers(4))
        assert [list(file.fetch_one(i)) for i in range(4)] == [[payload] for payload in numbers(4)]
        assert everything(file.stream()) == numbers(4)
        assert everything(file.stream(2)) == numbers(4)[2:]

    @pytest.mark.parametrize("claimed", [1, 3])
    def test_a_member_that_miscounts_is_an_error(self, tmp_path: Path, claimed: int) -> None:
        path, packed = tmp_path / "a", frames(4)
        path.write_bytes(compress_member(packed[:2], claimed, 1) + compress_member(packed[2:], 2, 1))
        file = RecordFile(LocalFile(path))

        with pytest.raises(
            rk.CorruptRecordError, match=f"member at byte 0 has 2 records, and its header says {claimed}"
        ):
            file.fetch_one(0)
        with pytest.raises(rk.CorruptRecordError, match="its header says"):
            everything(file.stream())

    @pytest.mark.parametrize("way", ["ours", "foreign", "zlib"])
    def test_a_damaged_record_inside_sound_compression_is_named(self, tmp_path: Path, way: str) -> None:
        packed = frames(20)
        packed[9] = packed[9][:-1] + bytes([packed[9][-1] ^ 1])
        path = tmp_path / "a"
        path.write_bytes(stored(packed, way))
        file = RecordFile(LocalFile(path))

        for read in (lambda: file.fetch_one(9), lambda: file.fetch(np.array([9])), lambda: everything(file.stream())):
            with pytest.raises(rk.CorruptRecordError) as caught:
                read()
            assert (caught.value.record, caught.value.kind) == (9, "bad_payload_crc")
            assert caught.value.offset == sum(map(len, packed[:9]))

    def test_a_cut_gzip_file_is_named(self, tmp_path: Path) -> None:
        path = tmp_path / "a"
        path.write_bytes(gzip.compress(b"".join(frames(500)))[:-300])

        with pytest.raises(rk.CorruptRecordError, match=r"/a: "):
            RecordFile(LocalFile(path)).count  # noqa: B018


class TestPickling:
    @pytest.mark.parametrize("way", WAYS)
    def test_keeps_what_it_was_made_of(self, tmp_path: Path, way: str) -> None:
        file = on_disk(tmp_path, 30, way)
        assert list(file.fetch_one(3)) == [numbers(4)[3]]

        copy = pickle.loads(pickle.dumps(file))

        assert (copy.name, copy.count, list(copy.fetch_one(29))) == (file.name, 30, [numbers(30)[29]])
