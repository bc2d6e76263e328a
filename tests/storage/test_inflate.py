from __future__ import annotations

import gzip
import io
import pickle
import random
import struct
import tracemalloc
import zlib
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib.util import find_spec
from typing import IO, TYPE_CHECKING, Literal, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recordkit
from recordkit import records
from recordkit.codecs import _gzip, _gzip_members, _gzip_salvage, _inflate, _seek
from recordkit.codecs._gzip import compress_member, read_member_header
from recordkit.codecs._gzip_members import inflate_member, members_of
from recordkit.codecs._gzip_salvage import Gap, segments
from recordkit.codecs._inflate import Inflated, container_of
from recordkit.codecs._seek import Checkpoints
from recordkit.errors import CorruptRecordError
from recordkit.filesystems import ByteFile, LocalFile, ObjectFile
from recordkit.storage.format._index import Fingerprint, Index

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Zipped = Literal["gzip", "zlib"]

F5 = b"".join(records.pack(b"payload-%03d" % number) for number in range(5))
LIBRARIES = ["zlib", *(["isal.isal_zlib"] if find_spec("isal") else [])]


@pytest.fixture(scope="module", params=LIBRARIES, autouse=True)
def library(request: pytest.FixtureRequest) -> Iterator[str]:
    """Each library that is there in turn."""
    fastest = _inflate.fastest.__wrapped__() if request.param != "zlib" else _inflate._ZLIB
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_inflate, "fastest", lambda: fastest)
        patch.setattr(_gzip_salvage, "fastest", lambda: fastest)
        yield request.param


def of(data: bytes) -> ObjectFile:
    return ObjectFile(io.BytesIO(data), "a.gz")


def table(size: int, seed: int = 0) -> bytes:
    """Bytes that compress about as rows of small numbers do."""
    draw = random.Random(seed)
    return b"".join(b"row %d: %d\n" % (i, draw.randrange(10_000)) for i in range(size // 12))


def noise(size: int, seed: int = 0) -> bytes:
    return random.Random(seed).randbytes(size)


def read(data: bytes, compression: Zipped = "gzip", size: int = 1 << 16) -> tuple[bytes, CorruptRecordError | None]:
    """All that a file gives, and the error behind it."""
    file, buffer, pieces = Inflated(of(data), compression), bytearray(size), []
    try:
        while count := file.readinto(buffer):
            pieces.append(bytes(buffer[:count]))
    except CorruptRecordError as error:
        return b"".join(pieces), error
    return b"".join(pieces), None


def kind_and_offset(error: CorruptRecordError | None) -> tuple[str | None, int | None]:
    return (error.kind, error.offset) if error else (None, None)


def parts(data: bytes, compression: Zipped = "gzip", *, nested: bool = True) -> list[bytes | tuple[int, int, str]]:
    """What `segments` gives, with pieces that join joined."""
    found: list[bytes | tuple[int, int, str]] = []
    for part in segments(of(data), compression, nested=nested):
        if isinstance(part, Gap):
            found.append((part.offset, part.length, part.kind))
        elif found and isinstance(found[-1], bytes):
            found[-1] += part
        else:
            found.append(part)
    return found


def flipped(data: bytes, byte: int) -> bytes:
    changed = bytearray(data)
    changed[byte] ^= 1
    return bytes(changed)


def content(data: bytes) -> bytes:
    return b"\0".join(part for part in parts(data) if isinstance(part, bytes))


def with_options(raw: bytes) -> bytes:
    """A member with all that a header may have: extra field, name, comment, checksum."""
    header = b"\x1f\x8b\x08" + bytes([2 | 4 | 8 | 16]) + b"\1\2\3\4\0\3" + b"\5\0extra" + b"name\0" + b"comment\0"
    header += (zlib.crc32(header) & 0xFFFF).to_bytes(2, "little")
    return header + gzip.compress(raw, mtime=0)[10:]


CONTENTS = st.binary(max_size=300) | st.binary(max_size=20).map(lambda some: some * 9000)
MEMBERS = st.one_of(
    st.builds(gzip.compress, CONTENTS, st.integers(0, 9)),
    st.builds(lambda raw, level: compress_member(raw, 1, level), CONTENTS, st.integers(0, 9)),
    st.builds(with_options, CONTENTS),
)
FILES = st.lists(MEMBERS, max_size=6).map(b"".join)
TWO = gzip.compress(F5, mtime=0) + with_options(F5)
FIRST = len(gzip.compress(F5, mtime=0))


class TestInflated:
    @given(FILES, st.integers(1, 1 << 20))
    def test_gives_what_gzip_gives(self, data: bytes, size: int) -> None:
        raw, error = read(data, size=size if len(data) < 1000 else size + 4096)

        assert error is None
        assert raw == gzip.decompress(data)

    @given(CONTENTS, st.integers(0, 9), st.integers(9, 15))
    def test_gives_what_zlib_gives(self, raw: bytes, level: int, window: int) -> None:
        stream = zlib.compressobj(level, wbits=window)

        data = stream.compress(raw) + stream.flush()

        assert read(data, "zlib") == (raw, None)

    @given(st.binary(max_size=200), st.sampled_from(["gzip", "zlib"]), st.booleans())
    def test_any_bytes_are_read_or_a_corrupt_record_error(self, junk: bytes, compression: Zipped, start: bool) -> None:
        read(b"\x1f\x8b\x08\0\0\0\0\0\0\0" * start + junk, compression)

    def test_several_members_are_one_content(self) -> None:
        assert read(TWO) == (F5 + F5, None)

    def test_many_tiny_members_are_one_content(self) -> None:
        data = (gzip.compress(b"") + gzip.compress(b"a")) * 3000

        assert read(data) == (b"a" * 3000, None)

    def test_content_much_larger_than_the_file_is_read_to_its_end(self) -> None:
        raw = table(5 << 20) + bytes(3 << 20)

        assert read(gzip.compress(raw)) == (raw, None)

    @pytest.mark.parametrize("cut", range(len(TWO)))
    def test_cut_is_named(self, cut: int) -> None:
        start = 0 if cut < FIRST else FIRST
        decoded = zlib.decompressobj(31).decompress(TWO[start:cut])

        raw, error = read(TWO[:cut])

        assert raw == (F5 if start else b"") + decoded
        if cut in (0, FIRST):
            assert error is None
        elif FIRST - 8 <= cut < FIRST or cut >= len(TWO) - 8:
            assert kind_and_offset(error) == ("gzip_no_trailer", start)
        else:
            assert kind_and_offset(error) == ("gzip_torn", start)

    def test_flipped_bit_is_found_or_harmless(self) -> None:
        harmless = set()
        for byte in range(len(TWO)):
            for bit in range(8):
                data = bytearray(TWO)
                data[byte] ^= 1 << bit
                raw, error = read(bytes(data))
                if error is None:
                    harmless.add(byte)
                    assert raw == F5 + F5
                else:
                    assert raw.startswith(F5) or byte < FIRST
                    assert error.offset == (0 if byte < FIRST else FIRST) or error.kind == "gzip_trailing"

        # "Is text", time, level and system, in the header without a checksum; bits that fill up the end of a stream.
        assert harmless <= {*range(3, 10), FIRST - 9, len(TWO) - 9}

    def test_damage_deep_inside_comes_behind_all_that_is_before_it(self) -> None:
        data = bytearray(gzip.compress(table(3 << 20)))
        middle = len(data) // 2
        data[middle : middle + 40] = b"\xff" * 40
        careful, before = zlib.decompressobj(31), bytearray()
        with suppress(zlib.error):
            for byte in data:
                before += careful.decompress(bytes([byte]))

        raw, error = read(bytes(data))

        assert kind_and_offset(error) == ("gzip_damaged", 0)
        assert raw == before

    @pytest.mark.parametrize("place", [-1, -8])
    def test_wrong_checksum_or_size_is_found_behind_the_content(self, place: int) -> None:
        data = bytearray(TWO)
        data[place] ^= 1

        raw, error = read(bytes(data))

        assert raw == F5 + F5
        assert kind_and_offset(error) == ("gzip_damaged", FIRST)

    @pytest.mark.parametrize("count", [1, 7, 512, 1 << 20])
    def test_zeros_behind_the_last_member_are_named(self, count: int) -> None:
        raw, error = read(TWO + bytes(count))

        assert raw == F5 + F5
        assert kind_and_offset(error) == ("zeros", len(TWO))

    @pytest.mark.parametrize("tail", [b"x", b"\0\0\0x", bytes(1 << 20) + b"x", b"\x1f\0", F5])
    def test_bytes_that_are_no_gzip_are_named(self, tail: bytes) -> None:
        raw, error = read(TWO + tail)

        assert raw == F5 + F5
        assert kind_and_offset(error) == ("gzip_trailing", len(TWO))

    @pytest.mark.parametrize("compression", ["gzip", "zlib"])
    def test_plain_file_is_damaged_from_its_start(self, compression: Zipped) -> None:
        assert kind_and_offset(read(F5, compression)[1]) == (f"{compression}_damaged", 0)

    @pytest.mark.parametrize("name", ["gzip", "raw deflate"])
    def test_zlib_is_not(self, name: str) -> None:
        data = gzip.compress(F5) if name == "gzip" else zlib.compress(F5)[2:-4]

        assert kind_and_offset(read(data, "zlib")[1]) == ("zlib_damaged", 0)

    def test_zlib_damage_is_named(self) -> None:
        data = zlib.compress(F5)
        damaged = data[:-1] + bytes([data[-1] ^ 1])

        assert [kind_and_offset(read(data[:cut], "zlib")[1])[0] for cut in range(1, len(data))] == ["zlib_torn"] * (
            len(data) - 1
        )
        assert kind_and_offset(read(damaged, "zlib")[1]) == ("zlib_damaged", 0)
        assert kind_and_offset(read(data + data, "zlib")[1]) == ("zlib_trailing", len(data))
        assert kind_and_offset(read(data + bytes(9), "zlib")[1]) == ("zeros", len(data))

    def test_preset_dictionary_is_damage(self) -> None:
        stream = zlib.compressobj(zdict=b"payload")

        assert kind_and_offset(read(stream.compress(F5) + stream.flush(), "zlib")[1]) == ("zlib_damaged", 0)

    def test_header_without_end_is_damage(self) -> None:
        endless = b"\x1f\x8b\x08\x08\0\0\0\0\0\0" + b"n" * (1 << 19)

        assert kind_and_offset(read(endless)[1]) == ("gzip_damaged", 0)
        assert kind_and_offset(read(endless[:1000])[1]) == ("gzip_torn", 0)

    @pytest.mark.parametrize("end", [b"", b"\0" * 8])
    def test_bomb_takes_little_memory(self, end: bytes) -> None:
        file = of(gzip.compress(bytes(80 << 20), 9)[:-8] + end)
        inflated, buffer, total = Inflated(file, "gzip"), bytearray(32 << 20), 0

        tracemalloc.start()
        with suppress(CorruptRecordError):
            while count := inflated.readinto(buffer):
                total += count
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()

        assert total == 80 << 20
        assert peak < 16 << 20

    def test_size_in_the_trailer_wraps_at_4_GiB(self) -> None:
        assert container_of("gzip").trailer(7, 2**32 + 5) == struct.pack("<II", 7, 5)

    @pytest.mark.parametrize("data", [F5, TWO[:5], TWO[:30], TWO + b"x", TWO + b"\x1f\x8b\x09"])
    def test_same_error_comes_again(self, data: bytes) -> None:
        inflated, buffer = Inflated(of(data), "gzip"), bytearray(1000)
        errors: list[tuple[str | None, int | None]] = []

        while len(errors) < 3:
            try:
                inflated.readinto(buffer)
            except CorruptRecordError as error:
                errors.append(kind_and_offset(error))

        assert errors == [kind_and_offset(read(data)[1])] * 3

    def test_error_names_the_file_and_comes_again(self) -> None:
        file = Inflated(of(TWO[:-3]), "gzip")
        buffer = bytearray(1000)
        while file.readinto(buffer) and file._inflater.raw < 2 * len(F5):
            pass

        with pytest.raises(CorruptRecordError):
            file.readinto(buffer)
        with pytest.raises(CorruptRecordError) as caught:
            file.readinto(buffer)

        copy = pickle.loads(pickle.dumps(caught.value))
        assert (copy.path, copy.offset, copy.kind) == ("a.gz", FIRST, "gzip_no_trailer")
        assert str(copy).startswith(
            f"a.gz: byte {FIRST}, found at byte {len(TWO) - 8}: the file ends before the checksum"
        )

    def test_records_can_be_read_from_it(self) -> None:
        reader = records.Reader(cast("IO[bytes]", Inflated(of(TWO), "gzip")))

        assert [len(chunk) for chunk in reader] == [10]


class TestMembers:
    def written(self, folder: Path) -> tuple[LocalFile, Index]:
        path = folder / "a.tfrecord.gz"
        numbers = np.arange(300_000)
        with recordkit.create(path, {"x": "int64", "y": "float32"}, compression="gzip") as writer:
            writer.write_batch({"x": numbers, "y": np.sqrt(numbers, dtype=np.float32)})
        return LocalFile(path), Index(next(folder.glob("_recordkit/*.rki")), Fingerprint.of(path))

    def test_agree_with_the_index(self, tmp_path: Path) -> None:
        file, index = self.written(tmp_path)

        members = members_of(file)

        assert members is not None
        assert len(members) > 5
        assert [(m.offset, m.raw_offset, m.first_record) for m in members] == index.members().tolist()
        assert sum(m.raw_bytes for m in members) == index.raw_bytes
        assert sum(m.records for m in members) == len(index)

    def test_together_are_the_content(self, tmp_path: Path) -> None:
        file, index = self.written(tmp_path)

        raw = b"".join(inflate_member(file.read_at(m.offset, m.file_bytes)) for m in members_of(file) or ())

        assert len(raw) == index.raw_bytes
        assert raw == gzip.decompress(file.path.read_bytes())

    @pytest.mark.parametrize(
        "tail", [b"x", bytes(50), gzip.compress(b"foreign", mtime=0), compress_member(b"", 0, 6)[:-1]]
    )
    def test_are_none_if_anything_else_is_there(self, tail: bytes) -> None:
        ours = compress_member(F5, 5, 6)

        assert members_of(of(ours + ours)) is not None
        assert members_of(of(ours + ours + tail)) is None
        assert members_of(of(tail)) is None
        assert members_of(of(b"")) is None

    def test_content_above_4_GiB_is_believed_if_the_size_agrees(self) -> None:
        class Faked(ByteFile):
            name = "faked"
            size = 5_000_000

            def read_at(self, offset: int, size: int) -> bytes:
                start = compress_member(b"", 0, 6)[:16] + struct.pack("<QQQ", self.size, 2**32 + 3, 1)
                end = {self.size - 4: struct.pack("<I", self.last)}
                return start[:size] if offset == 0 else end[offset]

            last = 3

        file = Faked()

        assert [member.raw_bytes for member in members_of(file) or ()] == [2**32 + 3]
        file.last = 4
        assert members_of(file) is None

    @pytest.mark.parametrize("missing", [False, True])
    @pytest.mark.parametrize("raw", [b"", F5, bytes(1 << 20), noise(100_000)])
    def test_inflate_to_what_they_were_made_of(
        self, raw: bytes, missing: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        member = compress_member(raw, 1, 6)
        if missing:
            monkeypatch.setattr(_gzip, "_libdeflate", lambda: None)

        assert inflate_member(member) == raw
        assert inflate_member(member, read_member_header(member)) == raw

    @pytest.mark.parametrize("room", [0, _gzip_members._ROOM])
    @pytest.mark.parametrize("missing", [False, True])
    def test_damage_is_a_value_error(self, missing: bool, room: int, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(_gzip_members, "_ROOM", room)
        member = compress_member(F5, 5, 6)
        if missing:
            monkeypatch.setattr(_gzip, "_libdeflate", lambda: None)

        for byte in [*range(4), *range(10, 32), *range(40, len(member))]:
            for bit in range(8):
                damaged = bytearray(member)
                damaged[byte] ^= 1 << bit
                try:
                    assert inflate_member(damaged) == F5
                except ValueError:
                    continue
                # Bits behind the end of a stream that fill up its last byte mean nothing.
                assert byte == len(member) - 9

    @pytest.mark.parametrize("claimed", [0, 1, len(F5) - 1, len(F5) + 1, 40_000])
    def test_wrong_size_in_the_header_is_damage(self, claimed: int) -> None:
        member = bytearray(compress_member(F5, 5, 6))
        member[24:32] = claimed.to_bytes(8, "little")

        with pytest.raises(ValueError, match="gzip"):
            inflate_member(member)

    def test_claim_takes_no_memory(self) -> None:
        member = bytearray(compress_member(noise(1 << 20), 1, 6))
        member[24:32] = (1 << 30).to_bytes(8, "little")

        tracemalloc.start()
        with pytest.raises(ValueError, match="gzip"):
            inflate_member(member)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()

        assert peak < 8 << 20


@pytest.fixture
def close_points(monkeypatch: pytest.MonkeyPatch) -> None:
    """States every few KiB, and few of them, so that small files have many and lose some."""
    monkeypatch.setattr(_seek, "_SPACING", 1 << 13)
    monkeypatch.setattr(_seek, "_STEP", 1 << 12)
    monkeypatch.setattr(_seek, "_FEED", 1 << 8)
    monkeypatch.setattr(_seek, "_MOST_POINTS", 16)


RAW = table(300_000) + bytes(200_000) + noise(100_000)
FOREIGN: dict[str, tuple[bytes, Zipped]] = {
    "one member": (gzip.compress(RAW), "gzip"),
    "several": (b"".join(gzip.compress(RAW[at : at + 70_000]) for at in range(0, len(RAW), 70_000)), "gzip"),
    "zlib": (zlib.compress(RAW), "zlib"),
}


@pytest.mark.usefixtures("close_points")
class TestCheckpoints:
    @pytest.mark.parametrize("name", FOREIGN)
    @settings(max_examples=20)
    @given(places=st.lists(st.tuples(st.integers(0, len(RAW) + 10), st.integers(0, 50_000)), max_size=8))
    def test_read_as_slices(self, name: str, places: list[tuple[int, int]]) -> None:
        data, compression = FOREIGN[name]

        file = Checkpoints(of(data), compression)

        for offset, size in places:
            assert file.read_at(offset, size) == RAW[offset : offset + size]
        assert file.size == len(RAW)
        assert len(file._points) <= 16

    def test_content_in_a_row_is_decompressed_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        given_bytes = []
        step = _inflate.Inflater.step

        def counted(self: _inflate.Inflater, most: int) -> bytes:
            piece = step(self, most)
            given_bytes.append(len(piece))
            return piece

        monkeypatch.setattr(_inflate.Inflater, "step", counted)
        file = Checkpoints(of(FOREIGN["one member"][0]), "gzip")

        assert b"".join(file.read_at(at, 1000) for at in range(0, len(RAW), 1000)) == RAW
        assert sum(given_bytes) == len(RAW)

    def test_later_reads_start_nearby(self) -> None:
        file = Checkpoints(of(FOREIGN["one member"][0]), "gzip")
        assert file.size == len(RAW)

        starts = [file._nearest(offset).raw for offset in range(0, len(RAW), 1000)]

        gaps = np.arange(0, len(RAW), 1000) - starts
        assert gaps.min() >= 0
        assert gaps.max() <= 2 * file._spacing + 256 * 1032

    def test_states_keep_little(self) -> None:
        file = Checkpoints(of(FOREIGN["one member"][0]), "gzip")
        assert file.size == len(RAW)

        for point in file._points:
            assert not point._input._piece
            assert point._stream is None or len(point._stream.unconsumed_tail) <= 256

    def test_threads_read_what_one_would(self) -> None:
        file = Checkpoints(of(FOREIGN["several"][0]), "gzip")
        draw = random.Random(1)
        places = [(draw.randrange(len(RAW)), draw.randrange(5000)) for _ in range(300)]

        with ThreadPoolExecutor(8) as pool:
            pieces = list(pool.map(lambda place: file.read_at(*place), places))

        assert pieces == [RAW[offset : offset + size] for offset, size in places]
        assert [point.raw for point in file._points] == sorted({point.raw for point in file._points})

    def test_copy_starts_again(self, tmp_path: Path) -> None:
        path = tmp_path / "a.gz"
        path.write_bytes(FOREIGN["one member"][0])
        file = Checkpoints(LocalFile(path), "gzip")
        assert file.size == len(RAW)

        copy = pickle.loads(pickle.dumps(file))

        assert len(copy._points) == 1
        assert copy.read_at(400_000, 10) == RAW[400_000:400_010]
        assert (copy.name, copy.size) == (str(path), len(RAW))

    def test_damage_raises_where_it_is_and_not_before(self) -> None:
        data = FOREIGN["one member"][0]
        file = Checkpoints(of(data[:-20_000]), "gzip")

        assert file.read_at(300_000, 1000) == RAW[300_000:301_000]
        for offset in (len(RAW) - 1000, len(RAW) - 1000, len(RAW) + 5):
            with pytest.raises(CorruptRecordError) as caught:
                file.read_at(offset, 10)
            assert kind_and_offset(caught.value) == ("gzip_torn", 0)
        with pytest.raises(CorruptRecordError):
            _ = file.size


OURS = [compress_member(table(20_000, seed), 1, 6) for seed in range(4)]
OURS_RAW = [table(20_000, seed) for seed in range(4)]
THEIRS = [gzip.compress(raw, mtime=0) for raw in OURS_RAW]


class TestSegments:
    @given(FILES)
    def test_sound_file_is_all_there_without_a_gap(self, data: bytes) -> None:
        raw = gzip.decompress(data)

        assert parts(data) == ([raw] if raw else [])

    @pytest.mark.parametrize("members", [OURS, THEIRS], ids=["ours", "theirs"])
    def test_damage_inside_a_member_costs_no_other(self, members: list[bytes]) -> None:
        damaged = bytearray(members[1])
        damaged[len(damaged) // 2 : len(damaged) // 2 + 30] = b"\xff" * 30
        start = len(members[0])

        found = parts(members[0] + bytes(damaged) + members[2] + members[3])

        assert len(found) == 3
        before, gap, after = found
        assert isinstance(before, bytes)
        assert before.startswith(OURS_RAW[0] + OURS_RAW[1][:5000])
        assert after == OURS_RAW[2] + OURS_RAW[3]
        assert isinstance(gap, tuple)
        assert gap[0] + gap[1] == start + len(damaged)
        assert start + len(damaged) // 2 <= gap[0]
        assert gap[2] == "gzip_damaged"

    @pytest.mark.parametrize("members", [OURS, THEIRS], ids=["ours", "theirs"])
    def test_wrong_checksum_leaves_a_gap_of_the_trailer(self, members: list[bytes]) -> None:
        damaged = bytearray(members[0])
        damaged[-8] ^= 1

        found = parts(bytes(damaged) + members[1])

        assert found == [OURS_RAW[0], (len(damaged) - 8, 8, "gzip_damaged"), OURS_RAW[1]]

    @settings(max_examples=150)
    @given(
        st.sampled_from(["ours", "theirs"]),
        st.integers(0, 2**32),
        st.sampled_from(["flip", "zero", "cut out", "put in"]),
        st.integers(1, 9000),
    )
    def test_every_member_that_is_whole_is_found(self, whose: str, place: int, damage: str, length: int) -> None:
        data, kept = damaged(OURS if whose == "ours" else THEIRS, place, damage, length)

        found = content(data)

        for number in kept:
            assert OURS_RAW[number] in found

    @pytest.mark.parametrize("members", [OURS, THEIRS], ids=["ours", "theirs"])
    def test_each_flipped_bit_of_a_start_costs_only_that_member(self, members: list[bytes]) -> None:
        for byte in range(60):
            data = bytearray(b"".join(members))
            data[len(members[0]) + byte] ^= 1 << byte % 8

            found = content(bytes(data))

            assert all(OURS_RAW[number] in found for number in (0, 2, 3))

    def test_ends_are_gaps_of_their_kinds(self) -> None:
        whole, end = OURS[0], len(OURS[0])

        assert parts(whole + bytes(700)) == [OURS_RAW[0], (end, 700, "zeros")]
        assert parts(whole + b"x" * 700) == [OURS_RAW[0], (end, 700, "gzip_trailing")]
        assert parts(whole[:-3]) == [OURS_RAW[0], (end - 8, 5, "gzip_no_trailer")]
        assert parts(whole[:-8]) == [OURS_RAW[0], (end - 8, 0, "gzip_no_trailer")]
        assert parts(whole + whole[:17]) == [OURS_RAW[0], (end, 17, "gzip_torn")]
        assert parts(whole[:2000])[-1] == (2000, 0, "gzip_torn")
        assert parts(b"") == []

    def test_zeros_between_members_are_told_from_other_bytes(self) -> None:
        one, two, end = THEIRS[0], THEIRS[1], len(THEIRS[0])

        assert parts(one + bytes(100_000) + two) == [OURS_RAW[0], (end, 100_000, "zeros"), OURS_RAW[1]]
        assert parts(one + b"x" * 100_000 + two) == [OURS_RAW[0], (end, 100_000, "gzip_trailing"), OURS_RAW[1]]

    def test_gzip_inside_a_payload_is_not_taken_for_a_member_of_ours(self) -> None:
        inner = gzip.compress(noise(30_000))
        outer = bytearray(compress_member(noise(100) + inner * 3, 1, 0))
        outer[60] ^= 1
        outer[41] ^= 1  # the length of its stored block, so that it fails at once

        found = parts(OURS[0] + bytes(outer) + OURS[1])

        assert found[-1] == OURS_RAW[1]
        assert len(found) == 3

    @pytest.mark.parametrize("inner", [THEIRS[0], THEIRS[0] + THEIRS[1], OURS[0]], ids=["one", "two", "ours"])
    @pytest.mark.parametrize("byte", [-8, -40], ids=["trailer", "content"])
    def test_gzip_inside_a_payload_is_not_entered_from_behind(self, inner: bytes, byte: int) -> None:
        raw = noise(100) + inner + noise(100)
        outer = bytearray(gzip.compress(raw, 0))
        outer[byte] ^= 1

        found = parts(bytes(outer) + THEIRS[2], nested=False)

        assert found[1:] == [(len(outer) - 8, 8, "gzip_damaged"), OURS_RAW[2]]

    @pytest.mark.parametrize("inner", [THEIRS[0], OURS[0]], ids=["theirs", "ours"])
    def test_member_inside_a_damaged_one_is_given_and_said_to_be_so(self, inner: bytes) -> None:
        outer = flipped(gzip.compress(noise(100) + inner + noise(100), 0), -8)

        _, gap, given, *rest = segments(of(outer + THEIRS[2]), "gzip")

        assert isinstance(gap, Gap)
        assert "may be part of its content" in gap.words
        assert given == OURS_RAW[0]
        assert rest[-1] == OURS_RAW[2]

    def test_member_that_was_moved_far_into_another_is_found(self) -> None:
        outer = gzip.compress(noise(3 << 20), 0)

        assert OURS_RAW[0] in content(outer[:100] + THEIRS[0] + outer[100 + len(THEIRS[0]) :])

    def test_members_of_ours_in_a_payload_do_not_make_a_file_ours(self) -> None:
        outer = flipped(gzip.compress(noise(100) + OURS[0] + noise(100), 0), 11)

        assert parts(outer + THEIRS[1] + b"?" + THEIRS[2])[-3:] == [
            OURS_RAW[1],
            (len(outer + THEIRS[1]), 1, "gzip_trailing"),
            OURS_RAW[2],
        ]

    def test_end_that_a_damaged_member_tells_is_not_gone_to(self) -> None:
        torn = bytearray(OURS[0][:3000])
        torn[16:24] = (len(torn) + len(OURS[1])).to_bytes(8, "little")

        found = parts(bytes(torn) + OURS[1] + OURS[2], nested=False)

        assert found[-1] == OURS_RAW[1] + OURS_RAW[2]

    def test_zlib_gives_what_stands_before_damage(self) -> None:
        data = bytearray(zlib.compress(OURS_RAW[0]))
        data[3000:3030] = b"\xff" * 30

        before, gap = parts(bytes(data), "zlib")

        assert isinstance(before, bytes)
        assert OURS_RAW[0].startswith(before[:5000])
        assert isinstance(gap, tuple)
        assert gap[0] + gap[1] == len(data)
        assert gap[2] == "zlib_damaged"
        assert parts(zlib.compress(F5) * 2, "zlib") == [
            F5,
            (len(zlib.compress(F5)), len(zlib.compress(F5)), "zlib_trailing"),
        ]

    @settings(max_examples=50)
    @given(st.lists(st.sampled_from([b"\x1f\x8b\x08\0", b"\x1f", b"\0\0\0\0", b"RK", *OURS[:1], b"abc"]), max_size=30))
    def test_gaps_stand_in_order_within_the_file(self, pieces: list[bytes]) -> None:
        data = b"".join(pieces)

        gaps = [part for part in segments(of(data), "gzip") if isinstance(part, Gap)]

        assert all(gap.offset >= 0 and gap.length >= 0 and gap.offset + gap.length <= len(data) for gap in gaps)
        assert [gap.offset for gap in gaps] == sorted(gap.offset for gap in gaps)

    def test_many_false_starts_do_not_hide_the_end_that_a_member_tells(self) -> None:
        junk = b"\x1f\x8b\x08" * (1 << 20)
        header = OURS[0][:16] + (40 + len(junk)).to_bytes(8, "little") + OURS[0][24:40]

        assert parts(header + junk + OURS[1])[-1] == OURS_RAW[1]

    @pytest.mark.parametrize("name", ["magics", "fixed blocks", "stored blocks", "ours", "ends", "inside"])
    def test_hostile_file_costs_a_bounded_amount_of_work(self, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(_gzip_salvage, "_MANY", 100)
        start = b"\x1f\x8b\x08\0\0\0\0\0\0\0"
        stored = start + b"\0\xff\xff\0\0"
        lying = compress_member(b"abc", 1, 6)[:16] + (48 * 1000).to_bytes(8, "little") + bytes([3] + [0] * 15)
        hostile = {
            "ends": lying + b"\x4b" * 8,
            "inside": gzip.compress(b"abc", mtime=0) + b"x",
            "magics": start,
            "fixed blocks": start + b"\x4b" * 20,
            "stored blocks": stored,
            "ours": compress_member(b"abc", 1, 6)[:-8] + bytes(8),
        }
        file = Counted((hostile[name] * 40_000)[: 1 << 19])

        given_bytes = sum(len(part) for part in segments(file, "gzip") if isinstance(part, bytes))

        assert file.read < 100 * file.size
        assert given_bytes < 100 * file.size


class Counted(ByteFile):
    """A file that counts how much of it was read."""

    name = "counted"

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.read = 0

    @property
    def size(self) -> int:
        return len(self._data)

    def read_at(self, offset: int, size: int) -> bytes:
        piece = self._data[offset : offset + size]
        self.read += len(piece)
        return piece


def damaged(members: list[bytes], place: int, damage: str, length: int) -> tuple[bytes, list[int]]:
    """The members with one damage, and the numbers of those that it left whole."""
    data = b"".join(members)
    start = place % len(data)
    end = min(len(data), start + (1 if damage == "flip" else 0 if damage == "put in" else length))
    new = {
        "flip": bytes([data[start] ^ 1 << place % 8]),
        "zero": bytes(end - start),
        "cut out": b"",
        "put in": noise(length, place),
    }[damage]
    bounds = np.cumsum([0, *map(len, members)]).tolist()
    kept = [n for n in range(len(members)) if bounds[n + 1] <= start or bounds[n] >= end]
    return data[:start] + new + data[end:], kept
