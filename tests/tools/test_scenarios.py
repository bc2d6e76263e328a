"""The list of failure scenarios, A to D and F, through what users call: open, verify and repair.

What each layer below does with them is in the tests of that layer; here is one line a scenario.
"""

from __future__ import annotations

import gzip
import io
import random
import struct
import zlib
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest

import recordkit as rk
from recordkit import _core, records
from recordkit.codecs._gzip import compress_member
from recordkit.errors import CorruptRecordError, SchemaError, StorageError, WrongFileError
from recordkit.storage.format._index import Fingerprint, IndexBuilder
from recordkit.tools import repair, verify
from tests.storage.damages import F5, flip, put

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

Facts = list[tuple[str, int, int, int]]  # kind, record, offset, length


class Case(NamedTuple):
    """The bytes of a file, the records that are recovered, and what is wrong with it."""

    data: bytes
    kept: list[bytes]
    damage: Facts


def p(digits: str) -> list[bytes]:
    """Payloads of F5."""
    return [b"payload-00" + digit.encode() for digit in digits]


def headed(payload: bytes, checksum: Callable[[bytes], int], order: str) -> bytes:
    header = struct.pack(f"{order}Q", len(payload))
    tail = payload + struct.pack(f"{order}I", checksum(payload))
    return header + struct.pack(f"{order}I", checksum(header)) + tail


ALL = p("01234")
NESTED = records.pack(b"before") + flip(records.pack(F5), 1) + records.pack(b"after")
CRLF = b"".join(records.pack(b"line\n%d" % number) for number in range(5))
BIG = [b"%04d" % number + random.Random(number).randbytes(300) for number in range(80)]
BLOCKS = b"".join(map(records.pack, BIG))
SWAPPED = BLOCKS[:4096] + BLOCKS[8192:12288] + BLOCKS[4096:8192] + BLOCKS[12288:]
FALSE_HEADER = records.pack(b"no record")[:21] + b"!!!!"


def a_cases() -> Iterator[tuple[str, Case]]:
    yield "a0_sound", Case(F5, ALL, [])
    yield "a1_payload", Case(flip(F5, 12), p("1234"), [("bad_payload_crc", 0, 0, 27)])
    for byte in range(23, 27):
        yield f"a2_data_crc_{byte}", Case(flip(F5, byte), p("1234"), [("bad_payload_crc", 0, 0, 27)])
    for byte in range(8, 12):
        yield f"a3_length_crc_{byte}", Case(flip(F5, byte), ALL, [("bad_length_crc", 0, 0, 27)])
    for name, byte, new in (
        ("off_by_one", 0, b"\x0c"),
        ("4_gib_more", 4, b"\x01"),
        ("largest", 0, b"\xff" * 8),
        ("negative", 7, b"\x80"),
    ):
        yield f"a4_length_{name}", Case(put(F5, byte, new), p("1234"), [("bad_length", 0, 0, 27)])
        yield f"a5_middle_{name}", Case(put(F5, 54 + byte, new), p("0134"), [("bad_length", 2, 54, 27)])
    for size in (1, 3, 8, 12):
        yield f"a6_deleted_{size}", Case(F5[:60] + F5[60 + size :], p("0134"), [("bad_length", 2, 54, 27 - size)])
    yield "a6_deleted_27", Case(F5[:60] + F5[87:], p("0134"), [])
    for size in (1, 5):
        inserted = F5[:60] + b"i" * size + F5[60:]
        yield f"a6_inserted_{size}", Case(inserted, p("0134"), [("bad_length", 2, 54, 27 + size)])
    zeros: Facts = [("bad_payload_crc", 1, 27, 23), ("zeros", 2, 50, 50), ("bad_length", 2, 100, 8)]
    yield "a7_zeroed", Case(put(F5, 50, bytes(50)), p("04"), zeros)
    for name, new in (("ff", b"\xff" * 50), ("random", random.Random(7).randbytes(50))):
        yield f"a7_{name}", Case(put(F5, 50, new), p("04"), [("bad_payload_crc", 1, 27, 81)])
    for size in (1, 7, 8, 11, 12, 16, 4096):
        yield f"a8_zero_tail_{size}", Case(F5 + bytes(size), ALL, [("zeros", 5, 135, size)])
    for size in (0, *range(109, 135), *range(27, 135, 27)):
        whole, left = divmod(size, 27)
        kind = "torn_header" if left < 12 else "torn_payload"
        yield f"a9_cut_to_{size}", Case(F5[:size], ALL[:whole], [(kind, whole, size - left, left)] * bool(left))
    yield "a10_empty_record", Case(F5[:54] + records.pack(b"") + F5[54:], [*p("01"), b"", *p("234")], [])
    yield "a11_sound_around_records", Case(records.pack(F5), [F5], [])
    nested: Facts = [("bad_length", 1, 22, 151), ("nested", 1, 34, 135)]
    yield "a11_nested", Case(NESTED, [b"before", b"after"], nested)
    yield "a12_false_header", Case(F5 + FALSE_HEADER + F5, ALL + ALL, [("bad_payload_crc", 5, 135, 25)])
    yield "a15_joined", Case(F5 + F5, ALL + ALL, [])
    yield "a15_stray_bytes", Case(F5 + b"???" + F5, ALL + ALL, [("bad_length", 5, 135, 3)])
    yield "a15_went_on_after_a_crash", Case(F5[:128] + F5, p("0123") + ALL, [("bad_payload_crc", 4, 108, 20)])


A = dict(a_cases())


def seen(damages: Any) -> Facts:
    return [(damage.kind, damage.record, damage.offset, damage.length) for damage in damages]


def payloads_of(path: Path, **options: Any) -> list[bytes]:
    return list(rk.open(path, raw=True, **options).records())


def saved(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


class TestA:
    """Framing damage."""

    @pytest.mark.parametrize("name", A)
    def test_is_named_and_repaired(self, name: str, tmp_path: Path) -> None:
        data, kept, damage = A[name]
        src, dst = saved(tmp_path / "a.tfrecord", data), tmp_path / "new.tfrecord"

        report, repaired = verify(src), repair(src, dst)

        assert (report.ok, report.records, seen(report.damage)) == (not damage, len(kept), damage)
        assert seen(sorted([*repaired.lost, *repaired.notes], key=lambda each: each.offset)) == damage
        assert payloads_of(dst) == kept
        assert verify(dst).ok

    @pytest.mark.parametrize("name", [name for name, case in A.items() if case.damage])
    def test_is_raised_or_skipped_by_readers(self, name: str, tmp_path: Path) -> None:
        data, kept, damage = A[name]
        path = saved(tmp_path / "a.tfrecord", data)

        with pytest.raises(CorruptRecordError) as caught:
            payloads_of(path)
        tolerant = rk.open(path, raw=True, on_error="skip")

        assert (caught.value.record, caught.value.offset) == damage[0][1:3]
        assert list(tolerant.records()) == kept
        assert seen(tolerant.damage) == damage

    def test_a6_swapped_blocks_cost_what_stands_across_their_edges(self, tmp_path: Path) -> None:
        src, dst = saved(tmp_path / "a.tfrecord", SWAPPED), tmp_path / "new.tfrecord"

        report, _ = verify(src), repair(src, dst)

        assert not report.ok
        assert len(set(BIG) - set(payloads_of(dst))) <= 4
        assert set(payloads_of(dst)) <= set(BIG)
        assert verify(dst).records == report.records

    def test_a6_duplicated_block_is_noted(self, tmp_path: Path) -> None:
        twice = b"".join(map(records.pack, [*BIG[:40], *BIG[20:]]))

        report = verify(saved(tmp_path / "a.tfrecord", twice))

        assert report.ok
        assert "records 40 to 59" in report.files[0].notes[0]
        assert "a block may have been written twice" in report.files[0].notes[0]

    def test_a7_a8_zeros_are_called_so(self, tmp_path: Path) -> None:
        region = verify(saved(tmp_path / "a.tfrecord", A["a7_zeroed"].data))
        tail = verify(saved(tmp_path / "b.tfrecord", A["a8_zero_tail_4096"].data))

        assert "zero-filled region 50…99" in str(region)
        assert "zero tail of 4096 bytes (unclean shutdown?)" in str(tail)

    def test_a9_empty_file_is_noted(self, tmp_path: Path) -> None:
        report = verify(saved(tmp_path / "a.tfrecord", b""))

        assert (report.ok, report.records) == (True, 0)
        assert "empty" in str(report)

    def test_a11_nested_records_are_kept_if_asked_for(self, tmp_path: Path) -> None:
        src, dst = saved(tmp_path / "a.tfrecord", NESTED), tmp_path / "new.tfrecord"

        repair(src, dst, nested=True)

        assert payloads_of(dst) == [b"before", *ALL, b"after"]
        assert "possibly part of its content" in str(verify(src))

    @pytest.mark.parametrize(
        ("kind", "data"),
        [
            ("unmasked_crc", b"".join(headed(each, _core.crc32c, "<") for each in ALL)),
            ("zlib_crc", b"".join(headed(each, zlib.crc32, "<") for each in ALL)),
            ("zero_crc", b"".join(headed(each, lambda _: 0, "<") for each in ALL)),
            (
                "big_endian",
                b"".join(headed(each, lambda data: _core.mask_crc(_core.crc32c(data)), ">") for each in ALL),
            ),
            ("lf_to_crlf", CRLF.replace(b"\n", b"\r\n")),
        ],
    )
    @pytest.mark.parametrize("compress", [bytes, gzip.compress])
    def test_a13_a14_one_reason_for_all_is_named(self, kind: Any, data: bytes, compress: Any, tmp_path: Path) -> None:
        src, dst = saved(tmp_path / "a.tfrecord", compress(data)), tmp_path / "new.tfrecord"

        (file,) = verify(src).files

        assert seen(file.damage) == [(kind, 0, 0, len(data))]
        assert f"accept={kind!r}" in file.notes[0]
        assert repair(src, dst, accept=kind).recovered == 5
        assert verify(dst).ok

    def test_a14_carriage_returns_that_are_gone_are_named(self, tmp_path: Path) -> None:
        lines = [b"a\r\nb", b"no line", b"c\r\nd\r\n", b"none"]
        shrunk = b"".join(map(records.pack, lines)).replace(b"\r\n", b"\n")
        src, dst = saved(tmp_path / "a.tfrecord", shrunk), tmp_path / "new.tfrecord"

        (file,) = verify(src).files
        repair(src, dst)

        assert (file.verdict, file.records) == ("damaged", 2)
        assert "a transfer in text mode has taken them out" in file.notes[0]
        assert payloads_of(dst) == [b"no line", b"none"]

    def test_a16_bytes_that_change_are_told_from_damage(self) -> None:
        report = verify(Unstable(F5, 66, 2))
        kinds = []
        for reading in range(2, 6):  # the first ones are a look at what the file is
            try:
                list(rk.open(Unstable(F5, 66, reading), raw=True).records())
            except CorruptRecordError as error:
                kinds.append(error.kind)

        assert (report.records, seen(report.damage)) == (5, [("unstable_read", 2, 54, 27)])
        assert set(kinds) == {"unstable_read"}


class Unstable(io.BytesIO):
    """A file that gives one byte wrong, once: when it is read for the given time."""

    def __init__(self, data: bytes, byte: int, reading: int) -> None:
        super().__init__(data)
        self._byte = byte
        self._left = reading

    def read(self, size: int | None = -1, /) -> bytes:
        start = self.tell()
        data = super().read(size)
        if start <= self._byte < start + len(data):
            self._left -= 1
            if not self._left:
                return flip(data, self._byte - start)
        return data


LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 12345\n"
ARRAY = io.BytesIO()
np.save(ARRAY, np.arange(10))
EXAMPLE = bytes.fromhex("0a0c0a0a0a016112051a030a0101")
B: dict[str, tuple[bytes, str]] = {
    "git_lfs": (LFS, "git lfs pull"),
    "html": (b"<!DOCTYPE html><title>403</title>", "HTML"),
    "xml_error": (b"<?xml version='1.0'?><Error><Code>AccessDenied</Code></Error>", "AccessDenied"),
    "npy": (ARRAY.getvalue(), "np.load"),
    "parquet": (b"PAR1\x15\x04\x15\x10" + bytes(40) + b"PAR1", "Parquet"),
    "tar": (b"name".ljust(257, b"\0") + b"ustar\0" + bytes(249), "tar"),
    "zstd": (b"\x28\xb5\x2f\xfd\x24\x05\x29\x00" + b"hello" * 10, "zstd"),
    "ds_store": (b"\0\0\0\x01Bud1" + bytes(100), "macOS"),
    "hadoop_crc": (b"crc\0\0\0\x02\0" + bytes(range(40)), "Hadoop"),
    "riegeli": (bytes.fromhex("83af70d10d884a3f") + bytes(100), "Riegeli"),
    "example": (EXAMPLE, "without the frame"),
    "zeros": (bytes(4096), "zeros"),
}


class TestB:
    """Not the expected file."""

    @pytest.mark.parametrize("kind", B)
    def test_is_refused_by_name(self, kind: str, tmp_path: Path) -> None:
        data, words = B[kind]
        path = saved(tmp_path / "a.tfrecord", data)

        with pytest.raises(WrongFileError, match=words) as caught:
            rk.open(path)
        (file,) = verify(path).files

        assert caught.value.kind == kind
        assert (file.verdict, [damage.kind for damage in file.damage], file.records) == ("wrong_file", [kind], 0)
        assert words in str(file)

    def test_gzip_without_a_time_is_no_long_record(self, tmp_path: Path) -> None:
        data = gzip.compress(F5, mtime=0)

        assert payloads_of(saved(tmp_path / "a.tfrecord", data)) == ALL

    def test_one_wrong_file_does_not_hide_the_others(self, tmp_path: Path) -> None:
        saved(tmp_path / "a.tfrecord", F5)
        saved(tmp_path / "b.tfrecord", LFS)

        assert [file.verdict for file in verify(tmp_path).files] == ["sound", "wrong_file"]

    def test_what_a_glob_catches_by_accident_is_left_out(self, tmp_path: Path) -> None:
        saved(tmp_path / "a.tfrecord", F5)
        for name in ("_SUCCESS", ".a.tfrecord.crc", "a.tfrecord.crc", ".DS_Store", "a.tfrecord.idx"):
            saved(tmp_path / name, b"\0other")

        found = rk.open(str(tmp_path / "*"), raw=True)

        assert list(found.records()) == ALL
        assert {path.name for path, _ in found.left_out} >= {"_SUCCESS", "a.tfrecord.crc", "a.tfrecord.idx"}
        assert verify(str(tmp_path / "*")).ok

    def test_missing_shard_and_two_totals_are_named(self, tmp_path: Path) -> None:
        for number in range(128):
            saved(tmp_path / f"train-{number:05d}-of-00128.tfrecord", F5)
        (tmp_path / "train-00031-of-00128.tfrecord").unlink()

        with pytest.raises(StorageError, match="00031 is missing"):
            rk.open(tmp_path)
        missing = verify(tmp_path)
        saved(tmp_path / "train-00000-of-00002.tfrecord", F5)
        with pytest.raises(StorageError, match="2 sets"):
            rk.open(tmp_path)
        two = verify(tmp_path)

        assert (missing.records, "00031 is missing" in str(missing)) == (127 * 5, True)
        assert (two.records, "2 sets" in str(two)) == (128 * 5, True)

    def test_empty_folder_is_an_error(self, tmp_path: Path) -> None:
        for look in (rk.open, verify):
            with pytest.raises(StorageError, match="empty"):
                look(tmp_path)


GZ, STORED = gzip.compress(F5, mtime=0), gzip.compress(F5, 0, mtime=0)
C: dict[str, tuple[bytes, list[bytes], list[str]]] = {
    "two_members": (GZ + GZ, ALL + ALL, []),
    "ours": (compress_member(F5, 5, 6) + compress_member(F5, 5, 6), ALL + ALL, []),
    "zlib": (zlib.compress(F5), ALL, []),
    "between_members": (GZ, ALL, []),
    "cut_in_header": (GZ + GZ[:5], ALL, ["gzip_torn"]),
    "cut_in_deflate": (GZ + STORED[:80], ALL + p("01"), ["gzip_torn"]),
    "cut_before_trailer": (GZ[:-8], ALL, ["gzip_no_trailer"]),
    "cut_in_trailer": (GZ[:-3], ALL, ["gzip_no_trailer"]),
    "flipped_deflate": (flip(STORED, 90) + GZ, [*p("0134"), *ALL], ["bad_payload_crc", "gzip_damaged"]),
    "flipped_checksum": (flip(GZ, len(GZ) - 6) + GZ, ALL + ALL, ["gzip_damaged"]),
    "trailing_zeros": (GZ + bytes(100), ALL, ["zeros"]),
    "trailing_bytes": (GZ + b"not gzip", ALL, ["gzip_trailing"]),
    "zlib_cut": (zlib.compress(F5, 0)[:100], p("012"), ["zlib_torn"]),
    "zlib_no_trailer": (zlib.compress(F5)[:-4], ALL, ["zlib_torn"]),
    "zlib_trailing": (zlib.compress(F5) + b"more", ALL, ["zlib_trailing"]),
    "record_inside": (gzip.compress(flip(F5, 12)), p("1234"), ["bad_payload_crc"]),
    "bomb": (gzip.compress(records.pack(bytes(1 << 24)), 9), [bytes(1 << 24)], []),
}


class TestC:
    """Compression."""

    @pytest.mark.parametrize("name", C)
    def test_is_named_and_repaired(self, name: str, tmp_path: Path) -> None:
        data, kept, damage = C[name]
        src, dst = saved(tmp_path / "a.tfrecord", data), tmp_path / "new.tfrecord"

        report, repaired = verify(src), repair(src, dst)

        assert (report.records, [each.kind for each in report.damage]) == (len(kept), damage)
        assert [each.kind for each in (*repaired.lost, *repaired.notes)] == damage
        assert payloads_of(dst) == kept
        assert verify(dst).ok

    @pytest.mark.parametrize("name", [name for name, case in C.items() if case[2]])
    def test_is_never_a_silent_early_end(self, name: str, tmp_path: Path) -> None:
        data, kept, _ = C[name]
        path = saved(tmp_path / "a.tfrecord", data)

        with pytest.raises(CorruptRecordError):
            payloads_of(path)

        assert payloads_of(path, on_error="skip") == kept

    @pytest.mark.parametrize(("name", "data"), [("a.tfrecord.gz", F5), ("a.tfrecord", GZ), ("a.tfrecord.gz", GZ)])
    def test_names_do_not_matter(self, name: str, data: bytes, tmp_path: Path) -> None:
        path = saved(tmp_path / name, data)

        assert payloads_of(path) == ALL
        assert verify(path).ok


PACKED, UNPACKED = "0a0c0a0a0a016112051a030a0101", "0a0b0a090a016112041a020801"
EMPTY, UNSET = "0a090a070a016112021a00", "0a070a050a01611200"
MINUS = "0a150a130a0161120e1a0c0a0a" + "ff" * 9 + "01"
FLOAT = "0a0f0a0d0a0161120812060a04ecd11e3f"
TWO_BYTES = "0a110a0f0a0161120a0a080a036100000a0162"
TWICE = "0a180a0a0a016112051a030a01010a0a0a016112051a030a0102"
D: dict[str, tuple[list[str], str, list[Any]]] = {  # payloads, inferred type, values
    "packed": ([PACKED], "int64", [1]),
    "unpacked": ([UNPACKED], "int64", [1]),
    "both": ([PACKED, UNPACKED], "int64", [1, 1]),
    "empty_list": ([EMPTY], "int64[?]", [[]]),
    "unset_kind": ([PACKED, UNSET], "int64?", [1, None]),
    "one_or_none": ([PACKED, EMPTY], "int64[?]", [[1], []]),
    "minus_one": ([MINUS], "int64", [-1]),
    "float": ([FLOAT], "float32", [0.6203906536102295]),
    "nul_bytes": ([TWO_BYTES], "string[2]", [["a\0\0", "b"]]),
    "same_key_twice": ([TWICE], "int64", [2]),
    "zero_length": (["", PACKED], "int64?", [None, 1]),
}
D_BAD = {
    "truncated_varint": "0a0c0a0a0a016112051a030a01ff",
    "length_past_the_end": "0aff0a",
    "key_not_utf8": "0a0c0a0a0a01ff12051a030a0101",
}


def examples_file(path: Path, payloads: list[str]) -> Path:
    return saved(path, b"".join(records.pack(bytes.fromhex(payload)) for payload in payloads))


def plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else value.to_list() if hasattr(value, "to_list") else value


class TestD:
    """Example payloads."""

    @pytest.mark.parametrize("name", D)
    def test_is_read_with_and_without_a_schema(self, name: str, tmp_path: Path) -> None:
        payloads, inferred, values = D[name]
        path = examples_file(tmp_path / "a.tfrecord", payloads)

        found, declared = rk.open(path), rk.open(path, schema={"a": inferred})

        assert found.schema == rk.Schema({"a": inferred})
        for ds in (found, declared):
            assert [plain(row["a"]) for row in ds] == values
        assert verify(path, check="examples").ok
        assert verify(path, check="examples", schema={"a": inferred}).ok

    @pytest.mark.parametrize("name", D_BAD)
    def test_malformed_payload_is_named_with_its_record(self, name: str, tmp_path: Path) -> None:
        path = examples_file(tmp_path / "a.tfrecord", [PACKED, D_BAD[name], PACKED])

        with pytest.raises(CorruptRecordError) as caught:
            rk.open(path, schema={"a": "int64"})
        report = verify(path, check="examples", schema={"a": "int64"})

        assert (caught.value.kind, caught.value.record) == ("malformed", 1)
        assert seen(report.damage) == [("malformed", 1, 30, 16 + len(D_BAD[name]) // 2)]
        assert seen(verify(path, check="examples").damage) == seen(report.damage)
        assert verify(path).ok

    def test_other_kind_in_the_next_shard_is_named(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        examples_file(tmp_path / "a-00000-of-00002.tfrecord", [PACKED, PACKED])
        second = examples_file(tmp_path / "a-00001-of-00002.tfrecord", [FLOAT])

        assert rk.open(tmp_path).schema is None
        assert "a: left out of the fields: records have float and int64 lists" in caplog.text
        with pytest.raises(SchemaError) as caught:
            list(rk.open(tmp_path, schema={"a": "int64"}))
        report = verify(tmp_path, check="examples", schema={"a": "int64"})

        assert (caught.value.path, caught.value.field, caught.value.record) == (str(second), "a", 0)
        assert [(damage.path, damage.kind) for damage in report.damage] == [(str(second), "schema")]
        assert not verify(tmp_path, check="examples").ok

    def test_wrong_name_is_named(self, tmp_path: Path) -> None:
        rk.write(tmp_path / "a.tfrecord", [{"label": 1}])

        with pytest.raises(SchemaError, match="Did you mean 'label'"):
            rk.open(tmp_path / "a.tfrecord", schema={"lable": "int64"})

    def test_field_missing_in_half_the_shards_is_optional(self, tmp_path: Path) -> None:
        examples_file(tmp_path / "a-00000-of-00002.tfrecord", [PACKED])
        examples_file(tmp_path / "a-00001-of-00002.tfrecord", [""])

        assert [plain(row["a"]) for row in rk.open(tmp_path)] == [1, None]

    def test_ends_of_int64_and_bits_of_nan_are_kept(self, tmp_path: Path) -> None:
        nan = np.array([0x7FC00123, 0x7F800000], np.uint32).view(np.float32)
        ends = np.array([-(2**63), 2**63 - 1])
        rk.write(tmp_path / "a.tfrecord", {"nan": nan, "end": ends}, schema={"nan": "float32", "end": "int64"})

        batch = rk.open(tmp_path / "a.tfrecord")[:]

        assert batch["nan"].view(np.uint32).tolist() == nan.view(np.uint32).tolist()
        assert batch["end"].tolist() == ends.tolist()

    def test_ten_thousand_keys_are_read(self, tmp_path: Path) -> None:
        entries = [b"\x0a\x0f\x0a\x06k%05d\x12\x05\x1a\x03\x0a\x01\x01" % number for number in range(10_000)]
        size = bytes([170_000 & 127 | 128, 170_000 >> 7 & 127 | 128, 170_000 >> 14])

        (row,) = rk.open(saved(tmp_path / "a.tfrecord", records.pack(b"\x0a" + size + b"".join(entries))))

        assert row == {f"k{number:05d}": 1 for number in range(10_000)}


class TestF:
    """Indexes beside the files."""

    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        path = tmp_path / "a.tfrecord"
        rk.write(path, [{"id": number, "name": "n" * number} for number in range(20)])
        return path

    def index_of(self, path: Path) -> Path:
        return path.parent / "_recordkit" / f"{path.name}.rki"

    def put_index(self, path: Path, lengths: Any) -> None:
        builder = IndexBuilder()
        builder.add(np.array(lengths, np.uint64))
        self.index_of(path).write_bytes(builder.to_bytes(Fingerprint.of(path)))

    def kinds(self, path: Path) -> list[str]:
        return [damage.kind for damage in verify(path).damage]

    def ids(self, path: Path) -> list[int]:
        ds = rk.open(path)
        return [int(ds[number]["id"]) for number in range(len(ds))]

    def test_index_of_another_file(self, path: Path) -> None:
        other = path.with_name("b.tfrecord")
        rk.write(other, [{"id": number} for number in range(5)])
        self.index_of(path).write_bytes(self.index_of(other).read_bytes())

        assert self.kinds(path) == ["index"]
        assert self.ids(path) == list(range(20))

    def test_same_size_and_other_content(self, path: Path) -> None:
        other = path.with_name("b.tfrecord")
        rk.write(other, [{"id": number + 1, "name": "m" * number} for number in range(20)])
        assert other.stat().st_size == path.stat().st_size
        path.write_bytes(other.read_bytes())

        assert self.kinds(path) == ["record_digest", "index"]
        assert self.ids(path) == list(range(1, 21))

    def test_appended_after_indexing(self, path: Path) -> None:
        data = path.read_bytes()
        path.write_bytes(data + data)

        assert self.kinds(path) == ["record_count", "file_size", "index"]
        assert self.ids(path) == [*range(20), *range(20)]

    def test_index_of_a_file_that_was_cut_since(self, path: Path) -> None:
        offsets = records.scan(path.read_bytes())
        path.write_bytes(path.read_bytes()[: int(offsets[7])])

        assert self.kinds(path) == ["record_count", "file_size", "index"]
        assert self.ids(path) == list(range(7))

    def test_file_cut_inside_a_record(self, path: Path) -> None:
        path.write_bytes(path.read_bytes()[:-3])

        assert self.kinds(path) == ["torn_payload"]

    @pytest.mark.parametrize("data", [b"", b"RKINDEX1", bytes(64)])
    def test_empty_or_torn_index(self, data: bytes, path: Path) -> None:
        self.index_of(path).write_bytes(data)

        assert self.kinds(path) == ["index"]
        assert self.ids(path) == list(range(20))

    def test_index_with_one_record_fewer_or_in_another_order(self, path: Path) -> None:
        lengths = records.chunk(path.read_bytes()).lengths.tolist()

        for wrong in (lengths[:-1], lengths[::-1], [*lengths, 0]):
            self.put_index(path, wrong)

            assert self.kinds(path) == ["index"]
        self.put_index(path, lengths)
        assert verify(path).ok

    def test_index_is_not_believed_over_the_records(self, path: Path) -> None:
        lengths = records.chunk(path.read_bytes()).lengths.tolist()
        self.put_index(path, [lengths[1], lengths[0], *lengths[2:]])

        assert self.ids(path) == list(range(20))
        assert [int(row["id"]) for row in rk.open(path)] == list(range(20))

    def test_no_index_is_needed(self, path: Path) -> None:
        self.index_of(path).unlink()

        assert verify(path).ok
        assert self.ids(path) == list(range(20))

    def test_file_of_one_record(self, tmp_path: Path) -> None:
        rk.write(tmp_path / "one.tfrecord", [{"id": 7}])

        assert verify(tmp_path / "one.tfrecord").ok
        assert self.ids(tmp_path / "one.tfrecord") == [7]
