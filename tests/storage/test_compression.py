from __future__ import annotations

import gzip
import os
import random
import struct
import threading
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordkit import records
from recordkit.codecs import _gzip
from recordkit.codecs._gzip import (
    MemberHeader,
    ZlibStream,
    compress_member,
    iter_member_headers,
    library_name,
    looks_compressed,
    read_member_header,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LEVELS = range(10)
PIECES = st.lists(st.binary(max_size=300) | st.binary(max_size=20).map(lambda some: some * 400), max_size=5)
MEMBERS = st.lists(st.tuples(PIECES, st.integers(0, 2**64 - 1), st.sampled_from(LEVELS)), max_size=6)


@pytest.fixture(scope="module", params=["deflate", "zlib"], autouse=True)
def library(request: pytest.FixtureRequest) -> Iterator[str]:
    """Each library in turn: everything holds with the one that everybody has, too."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "zlib":
            patch.setattr(_gzip, "_libdeflate", lambda: None)
        assert library_name().split()[0] == request.param, "install the group `test`"
        yield request.param


def table(size: int, seed: int = 0) -> bytes:
    """Bytes that compress about as rows of small numbers do."""
    draw = random.Random(seed)
    return b"".join(b"row %d: %d\n" % (i, draw.randrange(10_000)) for i in range(size // 12))


def decompressed(data: bytes) -> tuple[list[bytes], list[int]]:
    """What each member holds, and its size, by zlib's own reading of the headers."""
    contents, sizes = [], []
    while data:
        stream = zlib.decompressobj(wbits=31)
        contents.append(stream.decompress(data))
        assert stream.eof
        sizes.append(len(data) - len(stream.unused_data))
        data = stream.unused_data
    return contents, sizes


class TestMembers:
    @given(MEMBERS)
    def test_joined_members_are_one_gzip_file_of_the_joined_bytes(
        self, members: list[tuple[list[bytes], int, int]]
    ) -> None:
        file = b"".join(compress_member(list(pieces), count, level) for pieces, count, level in members)
        raws = [b"".join(pieces) for pieces, _, _ in members]
        assert gzip.decompress(file) == b"".join(raws)
        contents, sizes = decompressed(file)
        assert contents == raws
        headers = [header for _, header in iter_member_headers(file)]
        assert [header.member_bytes for header in headers] == sizes
        assert [header.raw_bytes for header in headers] == [len(raw) for raw in raws]
        assert [header.records for header in headers] == [count for _, count, _ in members]

    @pytest.mark.parametrize("level", LEVELS)
    def test_every_level_keeps_the_bytes(self, level: int) -> None:
        for raw in (b"", b"x", table(300_000), os.urandom(200_000)):
            assert gzip.decompress(compress_member(raw, 1, level)) == raw

    def test_higher_levels_are_smaller_and_level_0_stores(self) -> None:
        raw = table(1 << 20)
        sizes = [len(compress_member(raw, 1, level)) for level in (9, 6, 1, 0)]
        assert sizes == sorted(sizes)
        assert sizes[-1] > len(raw) > 2 * sizes[1]

    @pytest.mark.parametrize("level", [-1, 10, 12])
    def test_other_levels_are_refused(self, level: int) -> None:
        with pytest.raises(ValueError, match=f"0 to 9, found {level}"):
            compress_member(b"", 0, level)
        with pytest.raises(ValueError, match=f"0 to 9, found {level}"):
            ZlibStream(level)

    @given(PIECES, st.sampled_from(LEVELS))
    def test_how_bytes_are_cut_into_pieces_does_not_show(self, pieces: list[bytes], level: int) -> None:
        assert compress_member(list(pieces), 3, level) == compress_member(b"".join(pieces), 3, level)

    def test_any_buffer_is_taken(self) -> None:
        chunk = records.pack_many([b"one", b"two"])
        raw = bytes(chunk)
        expected = compress_member(raw, 2, 6)
        for same in (bytearray(raw), memoryview(raw), chunk, [chunk], memoryview(raw + b"12").cast("H")[:-1]):
            assert compress_member(same, 2, 6) == expected

    def test_no_pieces_are_an_empty_member(self) -> None:
        assert gzip.decompress(compress_member([], 0, 6)) == b""
        assert compress_member([], 0, 6) == compress_member(b"", 0, 6)

    def test_neither_time_nor_system_is_told(self) -> None:
        member = compress_member(b"abc", 1, 6)
        assert member[:10].hex(" ") == "1f 8b 08 04 00 00 00 00 00 ff"
        assert member[10:16].hex(" ") == "1c 00 52 4b 18 00"
        assert struct.unpack_from("<QQQ", member, 16) == (len(member), 3, 1)

    def test_threads_give_the_bytes_that_one_thread_gives(self) -> None:
        raws = [table(200_000, seed) for seed in range(12)]
        alone = [compress_member(raw, 1, 6) for raw in raws]
        with ThreadPoolExecutor(4) as pool:
            for _ in range(3):
                assert list(pool.map(lambda raw: compress_member(raw, 1, 6), raws)) == alone

    def test_other_threads_run_while_a_member_is_made(self) -> None:
        raw, done, turns = table(16 << 20), threading.Event(), 0

        def compress() -> None:
            compress_member(raw, 1, 6)
            done.set()

        worker = threading.Thread(target=compress)
        worker.start()
        while not done.is_set():
            time.sleep(0.001)
            turns += 1
        worker.join()
        assert turns > 10

    @pytest.mark.slow
    def test_300_megabytes_of_zeros_are_a_small_member(self) -> None:
        raw = bytes(300_000_000)
        member = compress_member(raw, 1, 6)
        assert len(member) < 2_000_000
        assert read_member_header(member) == MemberHeader(40, len(member), len(raw), 1)
        assert zlib.decompress(member, wbits=31) == raw

    def test_the_size_is_at_most_3_percent_over_one_stream_of_zlib(self) -> None:
        raw = table(16 << 20)
        members = [compress_member(raw[at : at + (1 << 20)], 1, 6) for at in range(0, len(raw), 1 << 20)]
        assert sum(map(len, members)) <= 1.03 * len(zlib.compress(raw, 6))


class TestHeaders:
    @given(st.binary(max_size=80))
    def test_arbitrary_bytes_are_no_header_of_ours_or_a_possible_one(self, data: bytes) -> None:
        for start in (b"", b"\x1f\x8b\x08\x04", b"\x1f\x8b\x08\x04\0\0\0\0\0\xff\x1c\0RK\x18\0"):
            header = read_member_header(start + data)
            assert header is None or 0 < header.header_bytes < header.member_bytes

    @given(st.binary(max_size=500), st.data())
    def test_a_header_cut_short_is_none_and_a_whole_one_is_enough(self, raw: bytes, data: st.DataObject) -> None:
        member = compress_member(raw, 1, 6)
        header = read_member_header(member)
        assert header is not None
        assert read_member_header(member[: header.header_bytes]) == header
        assert read_member_header(member[: data.draw(st.integers(0, header.header_bytes - 1))]) is None

    def test_foreign_members_have_no_header_of_ours(self) -> None:
        assert read_member_header(gzip.compress(b"abc")) is None
        assert read_member_header(zlib.compress(b"abc")) is None
        assert read_member_header(records.pack(b"abc")) is None
        bgzf = bytes.fromhex("1f8b08040000000000ff0600424302001b0003000000000000000000")
        assert gzip.decompress(bgzf) == b""
        assert read_member_header(bgzf) is None

    def test_our_subfield_is_found_behind_another(self) -> None:
        member = compress_member(b"abc", 1, 6)
        other = b"XY\x02\0hi"
        sizes = struct.pack("<QQQ", len(member) + len(other), 3, 1)
        both = member[:10] + struct.pack("<H", 28 + len(other)) + other + member[12:16] + sizes + member[40:]
        assert gzip.decompress(both) == b"abc"
        assert read_member_header(both) == MemberHeader(40 + len(other), len(both), 3, 1)

    @pytest.mark.parametrize(
        "sizes",
        [(0, 0, 0), (48, 0, 0), (49, 1033, 1), (100, 2**63, 1)],
        ids=["nothing", "no body", "more than deflate can hold", "petabytes"],
    )
    def test_impossible_sizes_are_none(self, sizes: tuple[int, int, int]) -> None:
        member = compress_member(b"abc", 1, 6)
        assert read_member_header(member[:16] + struct.pack("<QQQ", *sizes) + member[40:]) is None

    def test_sizes_beyond_4_gigabytes_fit(self) -> None:
        start = compress_member(b"", 0, 6)[:16]
        large = MemberHeader(40, 2**33, 2**34, 2**35)
        assert read_member_header(start + struct.pack("<QQQ", 2**33, 2**34, 2**35)) == large

    def test_headers_are_listed_up_to_the_first_member_that_is_foreign_or_torn(self) -> None:
        ours = compress_member(b"abc", 1, 6)
        for rest in (gzip.compress(b"abc"), ours[:-1], ours[:20], b"\0" * 100):
            assert [offset for offset, _ in iter_member_headers(ours + ours + rest)] == [0, len(ours)]


class TestZlib:
    @given(PIECES, st.sampled_from(LEVELS))
    def test_a_stream_holds_the_joined_bytes(self, pieces: list[bytes], level: int) -> None:
        stream = ZlibStream(level)
        data = b"".join([*map(stream.compress, pieces), stream.finish()])
        assert zlib.decompress(data) == b"".join(pieces)

    def test_how_bytes_are_cut_does_not_show(self) -> None:
        raw = table(1 << 20)

        def in_steps(size: int) -> bytes:
            stream = ZlibStream(6)
            cut = [raw[at : at + size] for at in range(0, len(raw), size)]
            return b"".join([*map(stream.compress, cut), stream.finish()])

        assert in_steps(1000) == in_steps(77_777) == in_steps(len(raw)) == zlib.compress(raw, 6)

    def test_its_library_is_zlib_whatever_makes_members(self) -> None:
        assert library_name("zlib") == f"zlib {zlib.ZLIB_RUNTIME_VERSION}"


@pytest.mark.tensorflow
class TestTensorFlow:
    PAYLOADS = [b"", b"x", *(table(30_000, seed) for seed in range(40)), os.urandom(100_000)]

    def read(self, tf: Any, path: Path, compression: str) -> list[bytes]:
        return [bytes(payload.numpy()) for payload in tf.data.TFRecordDataset(str(path), compression)]

    @pytest.mark.parametrize("level", [0, 1, 6, 9])
    def test_it_reads_many_members_as_one_file(self, tf: Any, tmp_path: Path, level: int) -> None:
        path = tmp_path / "data.tfrecord.gz"
        groups = [self.PAYLOADS[at : at + 3] for at in range(0, len(self.PAYLOADS), 3)]
        members = [compress_member([records.pack_many(group)], len(group), level) for group in groups]
        path.write_bytes(b"".join(members))
        assert self.read(tf, path, "GZIP") == self.PAYLOADS

    def test_it_reads_an_empty_member_as_no_records(self, tf: Any, tmp_path: Path) -> None:
        path = tmp_path / "data.tfrecord.gz"
        path.write_bytes(compress_member(b"", 0, 6))
        assert self.read(tf, path, "GZIP") == []

    def test_it_reads_the_stream(self, tf: Any, tmp_path: Path) -> None:
        path = tmp_path / "data.tfrecord"
        stream = ZlibStream(6)
        path.write_bytes(b"".join([*(stream.compress(records.pack(p)) for p in self.PAYLOADS), stream.finish()]))
        assert self.read(tf, path, "ZLIB") == self.PAYLOADS


class TestHint:
    @pytest.mark.parametrize(
        "signature",
        [
            b"\xff\xd8\xff\xe0\0\x10JFIF",
            b"\x89PNG\r\n\x1a\n",
            b"RIFF\x10\0\0\0WEBPVP8 ",
            b"\x1f\x8b\x08\x00",
            b"\x28\xb5\x2f\xfd",
            b"\0\0\0\x20ftypisom",
        ],
        ids=["JPEG", "PNG", "WebP", "gzip", "zstd", "mp4"],
    )
    def test_a_signature_before_most_of_the_payload_is_seen(self, signature: bytes) -> None:
        assert looks_compressed(b"\n\x10\n\x0e\n\x05image\x12" + signature + b"some content " * 20)
        assert not looks_compressed(b"a long text about it " * 200 + signature + b"short")

    def test_noise_is_seen_without_a_signature(self) -> None:
        assert looks_compressed(b"header" * 10 + random.Random(1).randbytes(20_000))

    def test_text_numbers_and_short_payloads_are_not_taken_for_compressed(self) -> None:
        draw = random.Random(1)
        floats = struct.pack("<5000f", *(draw.gauss(0, 1) for _ in range(5000)))
        assert not any(map(looks_compressed, [b"", b"x", table(100_000), floats, draw.randbytes(100), bytes(10_000)]))

    @given(st.binary(max_size=300))
    def test_any_bytes_have_an_answer(self, payload: bytes) -> None:
        assert looks_compressed(payload) in (True, False)
