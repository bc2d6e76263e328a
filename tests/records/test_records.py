from __future__ import annotations

import errno
import hashlib
import io
import os
import pickle
import struct
import subprocess
import sys
import threading
from contextlib import suppress
from itertools import accumulate, chain, pairwise
from types import SimpleNamespace
from typing import IO, TYPE_CHECKING, Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordkit import _core, records
from recordkit.errors import CorruptRecordError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

EMPTY = bytes.fromhex("0000000000000000 29039807 d8ea82a2")
ABC = bytes.fromhex("0300000000000000 b099490e 616263 6e57f121")
EXAMPLE = bytes.fromhex("0e00000000000000 c5e5693f 0a0c0a0a0a016112051a030a0101 39e87850")
EVENT = bytes.fromhex("09000080 3899d6d7 411a0d") + b"brain.Event:2"
F5 = b"".join(records.pack(b"payload-%03d" % i) for i in range(5))

PAYLOADS = st.lists(st.binary(max_size=200) | st.binary(min_size=1000, max_size=3000), max_size=12)


def framed(payloads: list[bytes]) -> bytes:
    return bytes(records.pack_many(payloads))


def header(length: int) -> bytes:
    """A header whose checksum is right, whatever length it claims."""
    raw = struct.pack("<Q", length)
    return raw + struct.pack("<I", _core.mask_crc(_core.crc32c(raw)))


def read_all(reader: records.Reader) -> list[bytes]:
    return [payload for chunk in reader for payload in chunk]


class Trickle:
    """A source that never gives more than so many bytes at once, as a slow network might."""

    def __init__(self, data: bytes, most: int) -> None:
        self._rest, self._most = memoryview(data), most

    def readinto(self, to: Any) -> int:
        size = min(self._most, len(to), len(self._rest))
        to[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size


class Scripted:
    """A source that plays a list of answers: bytes to give, or an exception to raise."""

    def __init__(self, *answers: bytes | Exception) -> None:
        self._answers = list(answers)

    def readinto(self, to: Any) -> int:
        answer = self._answers.pop(0) if self._answers else b""
        if isinstance(answer, Exception):
            raise answer
        to[: len(answer)] = answer
        return len(answer)


def as_file(source: object) -> IO[bytes]:
    return cast("IO[bytes]", source)


class TestGoldenVectors:
    @pytest.mark.parametrize(
        ("payload", "record"), [(b"", EMPTY), (b"abc", ABC), (EXAMPLE[12:-4], EXAMPLE)], ids=["empty", "abc", "example"]
    )
    def test_pack_gives_the_known_bytes(self, payload: bytes, record: bytes) -> None:
        assert records.pack(payload) == record
        assert list(records.chunk(record)) == [payload]

    def test_crc_of_the_check_string(self) -> None:
        assert _core.crc32c(b"123456789") == 0xE3069283

    def test_the_event_of_tensorboard(self) -> None:
        record = records.pack(EVENT)

        assert struct.unpack("<QI", record[:12]) == (24, 0x224B7FA3)
        assert struct.unpack("<I", record[-4:]) == (0xAB364B12,)

    def test_five_records_have_the_known_digest(self) -> None:
        digest = hashlib.sha256(F5).hexdigest()

        assert digest == "dea248d09864601d9930310831b15fec61bdff96951deaae0b472459c4f8eb74"
        assert records.scan(F5).tolist() == [0, 27, 54, 81, 108]


@pytest.mark.usefixtures("crc_path")
class TestEveryCrcPath:
    @given(PAYLOADS)
    def test_scan_finds_what_pack_wrote(self, payloads: list[bytes]) -> None:
        file = b"".join(map(records.pack, payloads))

        offsets = [*records.scan(file).tolist(), len(file)]

        assert [file[a + 12 : b - 4] for a, b in pairwise(offsets)] == payloads

    @given(st.binary(max_size=5000), st.integers(0, 5000))
    def test_the_crc_of_two_pieces_is_that_of_the_whole(self, data: bytes, cut: int) -> None:
        head, tail = data[:cut], data[cut:]

        whole = _core.crc32c(data)

        assert _core.crc32c(tail, _core.crc32c(head)) == whole
        assert _core.crc32c_combine(_core.crc32c(head), _core.crc32c(tail), len(tail)) == whole

    def test_every_length_and_alignment_gives_the_crc_of_the_definition(self) -> None:
        data = np.random.default_rng(7).integers(0, 256, 1200, np.uint8).tobytes()
        table = [bit_by_bit(byte) for byte in range(256)]
        state, expected = 0xFFFFFFFF, [0]
        for byte in data:
            state = table[(state ^ byte) & 0xFF] ^ (state >> 8)
            expected.append(state ^ 0xFFFFFFFF)

        found = [_core.crc32c(data[:size]) for size in range(len(data) + 1)]
        shifted = [_core.crc32c(memoryview(b"x" * shift + data)[shift:]) for shift in range(33)]

        assert found == expected
        assert shifted == [expected[-1]] * 33

    def test_every_path_gives_the_golden_file(self, crc_path: str) -> None:
        assert _core.crc32c_path() == crc_path
        assert hashlib.sha256(framed([b"payload-%03d" % i for i in range(5)])).hexdigest().startswith("dea248d0")

    def test_a_flipped_bit_anywhere_is_found(self) -> None:
        file = bytearray(framed([b"x" * 100, b"y" * 300]))

        for bit in range(8 * len(file)):
            file[bit // 8] ^= 1 << bit % 8
            with pytest.raises(CorruptRecordError):
                records.scan(file)
            file[bit // 8] ^= 1 << bit % 8


def bit_by_bit(state: int) -> int:
    for _ in range(8):
        state = state >> 1 ^ (0x82F63B78 if state & 1 else 0)
    return state


class TestCrcPaths:
    def test_a_path_this_processor_does_not_have_is_refused(self) -> None:
        before = _core.crc32c_path()

        assert not _core.crc32c_use_path("abacus")
        assert _core.crc32c_path() == before

    def test_the_portable_path_is_always_there(self) -> None:
        assert _core.crc32c_paths()[-1] == "portable"


class TestPack:
    @given(PAYLOADS)
    def test_many_are_the_same_as_one_by_one(self, payloads: list[bytes]) -> None:
        many = records.pack_many(payloads)

        assert bytes(many) == b"".join(map(records.pack, payloads))
        assert list(many) == payloads

    @pytest.mark.parametrize("kind", [bytes, bytearray, memoryview, lambda b: np.frombuffer(b, np.uint8)])
    def test_takes_anything_with_bytes_in_it(self, kind: Callable[[bytes], Any]) -> None:
        assert records.pack(kind(b"abc")) == ABC

    @pytest.mark.parametrize("wrong", ["text", 3, None])
    def test_refuses_what_has_no_bytes(self, wrong: Any) -> None:
        with pytest.raises(TypeError):
            records.pack(wrong)

    def test_takes_a_generator(self) -> None:
        assert len(records.pack_many(b"x" * n for n in range(5))) == 5


class TestScan:
    @given(st.binary(max_size=400))
    def test_any_bytes_are_either_records_or_a_corrupt_record_error(self, junk: bytes) -> None:
        with suppress(CorruptRecordError):
            records.scan(junk)

    @given(PAYLOADS, st.data())
    def test_a_cut_file_is_records_or_an_error_at_the_record_that_was_cut(
        self, payloads: list[bytes], data: st.DataObject
    ) -> None:
        file = framed(payloads)
        starts = [*records.scan(file).tolist(), len(file)]
        size = data.draw(st.integers(0, len(file)))

        if size in starts:
            assert records.scan(file[:size]).tolist() == starts[: starts.index(size)]
            return
        with pytest.raises(CorruptRecordError) as caught:
            records.scan(file[:size])

        record = sum(start < size for start in starts) - 1
        left = size - starts[record]
        assert (caught.value.record, caught.value.offset) == (record, starts[record])
        assert caught.value.kind == ("torn_header" if left < 12 else "torn_payload")

    def test_flipped_payload_bit_is_found_where_it_is(self) -> None:
        good, bad = records.pack(b"good"), bytearray(records.pack(b"bad!"))
        bad[13] ^= 1

        with pytest.raises(CorruptRecordError) as caught:
            records.scan(good + bytes(bad), path="train-00000")

        assert caught.value.offset == len(good)
        assert caught.value.record == 1

    def test_an_empty_file_has_no_records(self) -> None:
        assert records.scan(b"").tolist() == []
        assert list(records.chunk(b"")) == []

    def test_records_without_payload_are_records(self) -> None:
        file = EMPTY + ABC + EMPTY + EMPTY

        assert list(records.chunk(file)) == [b"", b"abc", b"", b""]
        assert records.scan(file).tolist() == [0, 16, 35, 51]

    def test_the_first_of_two_faults_is_told(self) -> None:
        file = bytearray(F5)
        file[27 + 12] ^= 1
        file[81] ^= 1

        with pytest.raises(CorruptRecordError) as caught:
            records.scan(file)

        assert (caught.value.record, caught.value.offset, caught.value.kind) == (1, 27, "bad_payload_crc")

    def test_a_non_contiguous_buffer_is_refused(self) -> None:
        with pytest.raises(BufferError):
            records.scan(memoryview(F5)[::2])


class TestErrorText:
    @pytest.mark.parametrize(
        ("file", "path", "kind", "text"),
        [
            (ABC[:5], None, "torn_header", "record 0 at byte 0: the file ends inside the 12-byte header"),
            (ABC[:-1], "a", "torn_payload", "a: record 0 at byte 0: the file ends inside the payload"),
            (
                EMPTY + ABC[:14] + b"X" + ABC[15:],
                None,
                "bad_payload_crc",
                (
                    "record 1 at byte 16: the payload's checksum does not match\n"
                    "  The record before it is sound; recordkit.repair also finds those after it."
                ),
            ),
            (
                ABC + EMPTY + ABC[:7],
                "a/b.tfrecord",
                "torn_header",
                (
                    "a/b.tfrecord: record 2 at byte 35: the file ends inside the 12-byte header\n"
                    "  The 2 records before it are sound."
                ),
            ),
            (
                b"version https://git-lfs.github.com",
                "a",
                "bad_length_crc",
                (
                    "a: record 0 at byte 0: the length's checksum does not match\n"
                    "  This may not be an uncompressed TFRecord file at all."
                ),
            ),
            (
                ABC + b"version https://git-lfs.github.com",
                None,
                "bad_length_crc",
                (
                    "record 1 at byte 19: the length's checksum does not match\n"
                    "  The record before it is sound; recordkit.repair also finds those after it."
                ),
            ),
        ],
        ids=["header", "payload", "crc", "repair", "not a record file", "damage later"],
    )
    def test_says_where_what_and_what_to_do(self, file: bytes, path: str | None, kind: str, text: str) -> None:
        with pytest.raises(CorruptRecordError) as caught:
            records.scan(file, path=path)

        assert str(caught.value) == text
        assert (caught.value.kind, caught.value.path) == (kind, path)

    def test_too_large_says_which_limit_to_raise(self) -> None:
        with pytest.raises(CorruptRecordError) as caught:
            records.scan(ABC, path="a", max_record_bytes=2)

        assert caught.value.kind == "too_large"
        assert str(caught.value) == (
            "a: record 0 at byte 0: the record is larger than max_record_bytes allows\n"
            "  If you trust the file, open it with a larger max_record_bytes."
        )

    def test_errors_of_both_ways_to_read_survive_pickling(self) -> None:
        for read in (records.scan, lambda data, path: records.Reader(io.BytesIO(data), path=path).read()):
            with pytest.raises(CorruptRecordError) as caught:
                read(ABC[:-1], path="train")

            again = pickle.loads(pickle.dumps(caught.value))

            assert (str(again), vars(again)) == (str(caught.value), vars(caught.value))


class TestChunk:
    def test_counts_and_indexes_like_a_list(self) -> None:
        chunk = records.chunk(F5)

        assert (len(chunk), chunk.nbytes, chunk.first_record, chunk.file_offset) == (5, 135, 0, 0)
        assert (chunk[0], chunk[-1]) == (b"payload-000", b"payload-004")
        assert chunk.lengths.tolist() == [11] * 5
        assert bytes(chunk) == F5

    @pytest.mark.parametrize("index", [5, -6])
    def test_an_index_outside_is_an_error(self, index: int) -> None:
        with pytest.raises(IndexError):
            records.chunk(F5)[index]

    @given(PAYLOADS, st.integers(0, 13), st.integers(0, 13))
    def test_a_slice_is_a_chunk_of_its_own(self, payloads: list[bytes], start: int, stop: int) -> None:
        whole = records.pack_many(payloads)
        numbers = range(len(payloads))[start:stop]

        part = whole.slice(start, stop)

        assert list(part) == payloads[start:stop]
        assert bytes(part) == framed(payloads[start:stop])
        assert part.offsets.tolist() == [whole.offsets[i] for i in numbers]
        if numbers:
            assert (part.first_record, part.file_offset) == (start, whole.offsets[start])

    def test_a_slice_of_a_slice_keeps_its_place_in_the_file(self) -> None:
        part = records.chunk(F5).slice(1, 5).slice(2, 3)

        assert (list(part), part.first_record, part.offsets.tolist()) == ([b"payload-003"], 3, [81])

    def test_lives_on_without_the_buffer_it_was_made_from(self) -> None:
        data = bytearray(F5)
        chunk = records.chunk(data)
        part = chunk.slice(3, 5)

        with pytest.raises(BufferError):
            data.clear()
        del data, chunk

        assert list(part) == [b"payload-003", b"payload-004"]

    def test_cannot_be_written_to(self) -> None:
        assert memoryview(records.pack_many([b"abc"])).readonly

    def test_can_be_written_to_a_file(self, tmp_path: Path) -> None:
        path = tmp_path / "file"

        path.write_bytes(records.pack_many([b"abc", b""]))

        assert path.read_bytes() == ABC + EMPTY


class TestMaxRecordBytes:
    @given(st.integers(0, 50), st.integers(0, 50))
    def test_payloads_up_to_the_limit_pass_and_no_longer_ones(self, length: int, limit: int) -> None:
        file = records.pack(b"x" * length)
        reader = records.Reader(io.BytesIO(file), max_record_bytes=limit)

        if length <= limit:
            assert len(records.chunk(file, max_record_bytes=limit)) == 1
            assert read_all(reader) == [b"x" * length]
            return
        for read in (lambda: records.scan(file, max_record_bytes=limit), reader.read):
            with pytest.raises(CorruptRecordError) as caught:
                read()
            assert caught.value.kind == "too_large"

    def test_smaller_records_before_it_are_given_first(self) -> None:
        reader = records.Reader(io.BytesIO(ABC + EMPTY + EXAMPLE), max_record_bytes=13)

        assert list(reader.read() or []) == [b"abc", b""]
        with pytest.raises(CorruptRecordError) as caught:
            reader.read()

        assert (caught.value.record, caught.value.offset, caught.value.kind) == (2, 35, "too_large")


class TestHostileLengths:
    @pytest.mark.parametrize("length", [2**64 - 1, 2**64 - 16, 2**63, 2**63 - 1, 2**40, 2**33])
    def test_a_length_from_the_file_allocates_nothing(
        self, length: int, room_for: Callable[[int], AbstractContextManager[None]]
    ) -> None:
        file = ABC + header(length) + b"x" * 1000
        kinds = []

        with room_for(64 << 20):
            with pytest.raises(MemoryError):
                bytearray(128 << 20)  # the limit is real
            for read in (records.scan, lambda data: read_all(records.Reader(io.BytesIO(data)))):
                with pytest.raises(CorruptRecordError) as caught:
                    read(file)
                kinds.append((caught.value.kind, caught.value.record, caught.value.offset))
            rescued = records.salvage(file)

        assert kinds == [("torn_payload", 1, 19)] * 2
        assert [found.offset for found in rescued.found] == [0]

    def test_memory_grows_with_what_arrives(self, room_for: Callable[[int], AbstractContextManager[None]]) -> None:
        piece = bytes(64 << 10)
        source = Scripted(header(2**33), *[piece] * 160)  # ten MiB of eight GiB

        with room_for(64 << 20), pytest.raises(CorruptRecordError) as caught:
            records.Reader(as_file(source)).read()

        assert caught.value.kind == "torn_payload"


class TestReader:
    @pytest.fixture(params=["descriptor", "raw file", "buffered file", "memory", "one byte at a time"])
    def open_as(self, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[bytes], int | IO[bytes]]]:
        path = tmp_path / "file.tfrecord"
        opened: list[IO[bytes]] = []

        def open_as(data: bytes) -> int | IO[bytes]:
            if request.param == "memory":
                return io.BytesIO(data)
            if request.param == "one byte at a time":
                return as_file(Trickle(data, 1))
            path.write_bytes(data)
            opened.append(path.open("rb", buffering=0 if request.param == "raw file" else -1))
            return opened[-1].fileno() if request.param == "descriptor" else opened[-1]

        yield open_as
        for file in opened:
            file.close()

    @pytest.mark.parametrize("chunk_bytes", [1, 100, 1 << 19])
    def test_gives_every_record_in_order(self, open_as: Callable[[bytes], int | IO[bytes]], chunk_bytes: int) -> None:
        payloads = [bytes([i]) * (i * 37 % 400) for i in range(60)]

        chunks = list(records.Reader(open_as(framed(payloads)), chunk_bytes=chunk_bytes))

        assert [payload for chunk in chunks for payload in chunk] == payloads
        assert [chunk.first_record for chunk in chunks] == [0, *accumulate(map(len, chunks))][:-1]
        assert np.concatenate([chunk.offsets for chunk in chunks]).tolist() == records.scan(framed(payloads)).tolist()
        assert b"".join(map(bytes, chunks)) == framed(payloads)

    def test_gives_exactly_as_many_records_as_asked_for(self, open_as: Callable[[bytes], int | IO[bytes]]) -> None:
        payloads = [b"x" * n for n in range(50)]
        reader = records.Reader(open_as(framed(payloads)), chunk_bytes=64)

        parts = [list(reader.read(n) or []) for n in (1, 7, 40, 40, 40)]

        assert parts == [payloads[:1], payloads[1:8], payloads[8:48], payloads[48:], []]

    def test_an_empty_file_gives_none(self, open_as: Callable[[bytes], int | IO[bytes]]) -> None:
        reader = records.Reader(open_as(b""))

        assert reader.read() is None
        assert reader.read(3) is None

    def test_gives_the_sound_records_before_the_error(self, open_as: Callable[[bytes], int | IO[bytes]]) -> None:
        file = bytearray(F5)
        file[81 + 12] ^= 1
        reader = records.Reader(open_as(bytes(file)), path="here")

        assert list(reader.read() or []) == [b"payload-000", b"payload-001", b"payload-002"]
        for _ in range(2):
            with pytest.raises(CorruptRecordError) as caught:
                reader.read()
            assert (caught.value.record, caught.value.offset) == (3, 81)
        assert str(caught.value) == (
            "here: record 3 at byte 81: the payload's checksum does not match\n"
            "  The 3 records before it are sound; recordkit.repair also finds those after it."
        )

    @given(PAYLOADS, st.lists(st.none() | st.integers(1, 6)), st.integers(1, 4000), st.integers(1, 4000))
    def test_any_calls_give_the_file_once(
        self, payloads: list[bytes], counts: list[int | None], chunk_bytes: int, most: int
    ) -> None:
        reader = records.Reader(as_file(Trickle(framed(payloads), most)), chunk_bytes=chunk_bytes)

        parts = [reader.read(count) for count in counts]
        rest = read_all(reader)

        found = [list(part) if part is not None else [] for part in parts]
        assert [*chain(*found), *rest] == payloads
        for count, part, before in zip(counts, found, accumulate(map(len, found), initial=0), strict=False):
            if count is not None:
                assert len(part) == min(count, len(payloads) - before)

    @given(PAYLOADS, st.data())
    def test_starting_at_any_record_gives_the_rest(self, payloads: list[bytes], data: st.DataObject) -> None:
        file = framed(payloads)
        starts = [*records.scan(file).tolist(), len(file)]
        number = data.draw(st.integers(0, len(payloads)))
        source = Trickle(file[starts[number] :], 100)

        chunks = list(records.Reader(as_file(source), offset=starts[number], first_record=number, chunk_bytes=500))

        assert [payload for chunk in chunks for payload in chunk] == payloads[number:]
        assert [offset for chunk in chunks for offset in chunk.offsets.tolist()] == starts[number:-1]

    @given(st.binary(max_size=300), PAYLOADS, st.integers(1, 4000))
    def test_any_bytes_give_what_scan_gives(self, junk: bytes, payloads: list[bytes], chunk_bytes: int) -> None:
        file = framed(payloads) + junk
        sound, fault, offset = _core.scan(file, 2**64 - 1)
        reader = records.Reader(as_file(Trickle(file, 50)), chunk_bytes=chunk_bytes)
        found: list[bytes] = []
        caught = None

        try:
            for chunk in reader:
                found += chunk
        except CorruptRecordError as error:
            caught = error

        assert found == list(sound)
        assert (caught is None) == (fault == 0)
        if caught is not None:
            assert (caught.record, caught.offset) == (len(sound), offset)

    def test_starts_at_a_byte_of_a_real_file_and_leaves_its_position_alone(self, tmp_path: Path) -> None:
        path = tmp_path / "file.tfrecord"
        path.write_bytes(F5 + ABC[:-1])

        with path.open("rb") as file:
            file.seek(5)
            reader = records.Reader(file, offset=54, first_record=2)
            chunk = reader.read(3)
            with pytest.raises(CorruptRecordError) as caught:
                reader.read()
            position = file.tell()

        assert list(chunk or []) == [b"payload-002", b"payload-003", b"payload-004"]
        assert (caught.value.record, caught.value.offset, caught.value.path) == (5, 135, str(path))
        assert position == 5

    def test_chunks_stay_as_they_are_while_reading_goes_on(self) -> None:
        payloads = [bytes([i % 256]) * 1000 for i in range(4000)]
        reader = records.Reader(io.BytesIO(framed(payloads)), chunk_bytes=300_000)

        chunks = list(reader)

        assert len(chunks) > 5
        assert [payload for chunk in chunks for payload in chunk] == payloads

    @pytest.mark.parametrize("chunk_bytes", [3000, 100_000, 1 << 20])
    def test_a_chunk_holds_about_as_many_bytes_as_asked_for(self, chunk_bytes: int) -> None:
        payloads = [b"x" * 1000] * 4000

        sizes = [chunk.nbytes for chunk in records.Reader(io.BytesIO(framed(payloads)), chunk_bytes=chunk_bytes)]

        assert min(sizes[:-1]) > chunk_bytes - len(framed(payloads[:1]))
        assert max(sizes) <= 2 * chunk_bytes

    def test_asking_for_no_records_is_an_error_and_not_the_end(self) -> None:
        with pytest.raises(ValueError, match="from 1 up, found 0"):
            records.Reader(io.BytesIO(ABC)).read(0)

    def test_asking_on_at_the_end_while_a_chunk_is_alive_gives_none(self) -> None:
        reader = records.Reader(io.BytesIO(ABC))
        chunk = reader.read()

        assert [reader.read(), reader.read(1), reader.read()] == [None, None, None]
        assert list(chunk or []) == [b"abc"]

    def test_chunks_outlive_reader_and_file(self, tmp_path: Path) -> None:
        path = tmp_path / "file"
        path.write_bytes(F5)

        with path.open("rb") as file:
            chunk = records.Reader(file).read()
        path.unlink()

        assert chunk is not None
        assert chunk[4] == b"payload-004"

    def test_a_record_much_longer_than_a_chunk_comes_whole(self) -> None:
        payloads = [b"a", bytes(range(256)) * 8192, b"b"]

        found = read_all(records.Reader(io.BytesIO(framed(payloads)), chunk_bytes=1000))

        assert found == payloads

    def test_a_file_that_grows_is_read_on_from_a_new_reader(self, tmp_path: Path) -> None:
        path = tmp_path / "file"
        path.write_bytes(F5)

        with path.open("r+b") as file:
            first = read_all(records.Reader(file))
            os.pwrite(file.fileno(), ABC, 135)
            rest = read_all(records.Reader(file, offset=135, first_record=5))

        assert (len(first), rest) == (5, [b"abc"])

    @pytest.mark.slow
    def test_a_record_over_four_gib_is_read_and_checked(self, tmp_path: Path) -> None:
        size = 2**32 + 5
        path = tmp_path / "sparse.tfrecord"
        with path.open("wb") as file:
            file.write(header(size))
            file.seek(size, os.SEEK_CUR)
            file.write(struct.pack("<I", _core.mask_crc(crc_of_zeros(size))) + ABC)
        assert path.stat().st_blocks * 512 < 1 << 20

        with path.open("rb") as file:
            chunks = list(records.Reader(file))
        path.unlink()

        assert [length for chunk in chunks for length in chunk.lengths.tolist()] == [size, 3]
        assert [offset for chunk in chunks for offset in chunk.offsets.tolist()] == [0, size + 16]
        assert chunks[-1][-1] == b"abc"


def crc_of_zeros(size: int) -> int:
    """The CRC of so many zero bytes, by doubling."""
    crc, power, length = 0, _core.crc32c(b"\0"), 1
    while size:
        if size & 1:
            crc = _core.crc32c_combine(crc, power, length)
        power = _core.crc32c_combine(power, power, length)
        size, length = size >> 1, length * 2
    return crc


class TestReaderFailures:
    def test_an_error_of_the_source_keeps_its_number_and_nothing_is_lost(self) -> None:
        file = framed([b"payload-%03d" % i for i in range(2000)])
        pieces = [file[at : at + 700] for at in range(0, len(file), 700)]
        answers = [answer for piece in pieces for answer in (OSError(errno.EIO, "disk on fire"), piece)]
        reader = records.Reader(as_file(Scripted(*answers)), chunk_bytes=2000)
        found: list[bytes] = []
        failures = []

        while True:
            try:
                chunk = reader.read()
            except OSError as error:
                failures.append((error.errno, error.strerror))
                continue
            if chunk is None:
                break
            found += chunk

        assert found == [b"payload-%03d" % i for i in range(2000)]
        assert failures == [(errno.EIO, "disk on fire")] * len(pieces)

    def test_an_error_of_a_descriptor_has_its_number(self, tmp_path: Path) -> None:
        descriptor = os.open(tmp_path, os.O_RDONLY)
        reader = records.Reader(descriptor)

        with pytest.raises(OSError, match="directory") as caught:
            reader.read()
        os.close(descriptor)
        with pytest.raises(OSError, match="descriptor") as closed:
            reader.read()

        assert (caught.value.errno, closed.value.errno) == (errno.EISDIR, errno.EBADF)

    def test_any_exception_of_the_source_comes_through(self) -> None:
        reader = records.Reader(as_file(Scripted(ABC, KeyError("whatever"))))

        with pytest.raises(KeyError, match="whatever"):
            reader.read()

        assert read_all(reader) == [b"abc"]

    def test_a_source_that_is_not_blocking_is_told_in_words(self) -> None:
        class Nothing:
            def readinto(self, to: object) -> None:
                return None

        with pytest.raises(ValueError, match="not in blocking mode"):
            records.Reader(as_file(Nothing())).read()

    @pytest.mark.parametrize("count", [2**20, -1, "many"])
    def test_a_source_that_lies_about_its_count_is_an_error(self, count: Any) -> None:
        class Liar:
            def readinto(self, to: memoryview) -> Any:
                return len(to) + count if isinstance(count, int) and count > 0 else count

        with pytest.raises((ValueError, TypeError, RuntimeError)):
            records.Reader(as_file(Liar())).read()

    def test_a_view_that_the_source_kept_is_dead(self) -> None:
        class Keeper(io.BytesIO):
            views: list[Any] = []

            def readinto(self, to: Any) -> int:
                self.views.append(to)
                return super().readinto(to)

        source = Keeper(ABC)
        read_all(records.Reader(source))

        with pytest.raises(ValueError, match="released"):
            bytes(source.views[0])

    def test_an_object_that_cannot_be_read_is_refused_at_once(self) -> None:
        with pytest.raises(TypeError, match="expected a file descriptor or an open file, found object"):
            records.Reader(as_file(object()))

    def test_a_later_call_of_the_core_names_the_same_record(self) -> None:
        file = bytearray(F5)
        file[27 + 12] ^= 1
        reader = _core.Reader(io.BytesIO(file), 1 << 19, 2**64 - 1)

        answers = [reader.next() for _ in range(3)]
        facts = [(chunk.first_record + len(chunk), fault, offset) for chunk, fault, offset in answers]

        assert facts == [(1, 4, 27)] * 3


class TestReaderThreads:
    @pytest.mark.parametrize("source", ["file", "object"])
    @pytest.mark.parametrize("count", [None, 7])
    def test_each_record_is_given_once(self, tmp_path: Path, source: str, count: int | None) -> None:
        payloads = [b"%06d" % i * (i % 9) for i in range(20_000)]
        path = tmp_path / "file"
        path.write_bytes(framed(payloads))
        found: dict[int, bytes] = {}

        with path.open("rb") as file:
            given = file if source == "file" else as_file(Trickle(path.read_bytes(), 1000))
            reader = records.Reader(given, chunk_bytes=4096)

            def work() -> None:
                while (chunk := reader.read(count)) is not None:
                    for number, payload in enumerate(chunk, chunk.first_record):
                        assert found.setdefault(number, payload) is payload

            run_together(work)

        assert [found[number] for number in range(len(payloads))] == payloads
        assert len(found) == len(payloads)

    def test_every_thread_is_told_the_same_error(self) -> None:
        payloads = [b"%06d" % i for i in range(3000)]
        file = bytearray(framed(payloads))
        file[22 * 2000 + 12] ^= 1
        reader = records.Reader(as_file(Trickle(bytes(file), 300)), chunk_bytes=500)
        told: list[tuple[int | None, int | None]] = []

        def work() -> None:
            try:
                while reader.read() is not None:
                    pass
            except CorruptRecordError as error:
                told.append((error.record, error.offset))

        run_together(work)

        assert set(told) == {(2000, 44_000)}

    def test_where_a_reader_stands_can_be_asked_while_another_thread_waits_for_its_source(self) -> None:
        # A thread that waits for the reader's lock with the interpreter's in its hands would stop all others.
        program = """
import io, threading, time
from recordkit import records

class Slow(io.BytesIO):
    def readinto(self, to):
        time.sleep(0.01)
        return super().readinto(memoryview(to)[:100])

reader = records.Reader(Slow(records.pack(b"x" * 84) * 50), chunk_bytes=100)
thread = threading.Thread(target=lambda: [chunk for chunk in iter(reader.read, None)])
thread.start()
while thread.is_alive():
    reader.next_record
print(reader.next_record)
"""

        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100, check=True)

        assert done.stdout == "50\n"


def run_together(work: Callable[[], None], threads: int = 8) -> None:
    """Runs `work` in several threads at once, and raises what any of them raised."""
    failures: list[BaseException] = []
    start = threading.Barrier(threads)

    def run() -> None:
        start.wait()
        try:
            work()
        except BaseException as error:
            failures.append(error)

    running = [threading.Thread(target=run) for _ in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    if failures:
        raise failures[0]


class _Only:
    """Bytes that can be read, and nothing else."""

    def __init__(self, data: bytes, most: int = 1 << 30) -> None:
        self._file, self._most = io.BytesIO(data), most

    def read(self, size: int) -> bytes:
        return self._file.read(min(size, self._most))


class TestAnyObjectWithRead:
    @pytest.mark.parametrize("most", [1, 7, 1 << 30])
    def test_is_read(self, most: int) -> None:
        data = b"".join(records.pack(bytes([number]) * number) for number in range(50))

        reader = records.Reader(_Only(data, most))  # type: ignore[arg-type]

        assert [payload for chunk in reader for payload in chunk] == [bytes([number]) * number for number in range(50)]

    @pytest.mark.parametrize("piece", ["text", None, b"x" * (2 << 20)])
    def test_must_give_as_many_bytes_as_were_asked_for(self, piece: Any) -> None:
        file: Any = SimpleNamespace(read=lambda size: piece)

        with pytest.raises(TypeError, match="SimpleNamespace: "):
            records.Reader(file).read()
        with pytest.raises(TypeError, match="expected a file descriptor or an open file, found str"):
            records.Reader("a.tfrecord")  # type: ignore[arg-type]

    def test_any_number_of_records_can_be_asked_for(self) -> None:
        chunk = records.Reader(io.BytesIO(records.pack(b"one"))).read(10**30)

        assert chunk is not None
        assert list(chunk) == [b"one"]
