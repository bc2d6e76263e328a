from __future__ import annotations

import bz2
import gzip
import io
import lzma
import sqlite3
import tarfile
import zipfile
import zlib
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from recordkit import _core, examples, records
from recordkit.codecs._gzip import compress_member
from recordkit.errors import WrongFileError
from recordkit.filesystems import LocalFile, ObjectFile
from recordkit.storage.format import _index
from recordkit.storage.read._file_kind import _STARTS, compression_of
from tests import wire

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

F5 = b"".join(records.pack(b"payload-%03d" % number) for number in range(5))
EXAMPLE = wire.example(wire.entry("a", wire.ints(1)))
SEQUENCE = EXAMPLE + wire.delimited(
    2, wire.delimited(1, wire.delimited(1, b"s") + wire.delimited(2, wire.steps(wire.ints(1))))
)
TABLE = pa.table({"x": list(range(100))})
HTML = b"<!DOCTYPE html>\n<html><head><title>Sign in</title></head></html>\n"
S3 = b'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>AccessDenied</Code><Message>secret words</Message></Error>'
LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 12345\n"


def sniff(data: bytes, name: str = "a.tfrecord") -> str | None:
    return compression_of(ObjectFile(io.BytesIO(data), name))


def refused(data: bytes) -> WrongFileError:
    with pytest.raises(WrongFileError) as caught:
        sniff(data)
    return caught.value


def saved(write: Callable[[Any], object]) -> bytes:
    file = io.BytesIO()
    write(file)
    return file.getvalue()


def tar(data: bytes) -> bytes:
    def write(file: io.BytesIO) -> None:
        with tarfile.open(fileobj=file, mode="w") as archive:
            entry = tarfile.TarInfo("a.tfrecord")
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))

    return saved(write)


def zipped(data: bytes) -> bytes:
    def write(file: io.BytesIO) -> None:
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("a.tfrecord", data)

    return saved(write)


def arrow(make: Callable[..., Any]) -> bytes:
    def write(file: io.BytesIO) -> None:
        with make(file, TABLE.schema) as writer:
            writer.write_table(TABLE)

    return saved(write)


def compressed(codec: str) -> bytes:
    return bytes(pa.compress(F5 * 9, codec=codec, asbytes=True))


def framed_by_arrow(codec: str) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, codec) as stream:
        stream.write(F5 * 9)
    return bytes(sink.getvalue().to_pybytes())


def sqlite() -> bytes:
    with sqlite3.connect(":memory:") as database:
        database.execute("create table t (x)")
        return bytes(database.serialize())


WRONG: list[tuple[str, bytes]] = [
    ("git_lfs", LFS),
    ("git_annex", b"/annex/objects/MD5E-s1--d41d8cd9.tfrecord\n"),
    ("git_annex", b"../.git/annex/objects/xx/yy/MD5E-s1--d41d8cd9.tfrecord"),
    ("html", HTML),
    ("html", b"\xef\xbb\xbf\r\n<HTML lang=de>" + "für".encode() * 5000),
    ("xml_error", S3),
    ("xml_error", b"<Error><Code>NoSuchKey</Code></Error>"),
    ("xml", b"<?xml version='1.0'?><svg/>"),
    ("npy", saved(lambda file: np.save(file, np.arange(9)))),
    ("npz", saved(lambda file: np.savez(file, x=np.arange(9)))),
    ("npz", saved(lambda file: np.savez_compressed(file, x=np.arange(9)))),
    ("zip", zipped(F5)),
    ("zip", saved(lambda file: zipfile.ZipFile(file, "w").close())),
    ("parquet", saved(lambda file: pyarrow.parquet.write_table(TABLE, file))),
    ("tar", tar(F5)),
    ("bzip2", bz2.compress(F5)),
    ("bzip2", bz2.compress(b"")),
    ("xz", lzma.compress(F5)),
    ("zstd", compressed("zstd")),
    ("lz4", framed_by_arrow("lz4")),
    ("snappy", b"\xff\x06\x00\x00sNaPpY\x01\x0b\x00\x00" + b"rest" * 9),
    ("riegeli", bytes.fromhex("83af70d10d884a3f") + bytes(8) + b"\x40" + bytes(47)),
    ("recordio", bytes.fromhex("0a23d7ce10000000") + b"payload" * 9),
    ("hadoop_crc", b"crc\x00\x00\x00\x02\x00" + bytes(range(40))),
    ("ds_store", b"\x00\x00\x00\x01Bud1\x00\x00\x10\x00" + bytes(99)),
    ("hdf5", b"\x89HDF\r\n\x1a\n\x00\x00\x00\x00\x00\x08\x08\x00" + bytes(99)),
    ("avro", b"Obj\x01\x04\x14avro.codec\x08null\x16avro.schema"),
    ("arrow", arrow(pa.ipc.new_file)),
    ("arrow", arrow(pa.ipc.new_stream)),
    ("sqlite", sqlite()),
    ("jpeg", bytes.fromhex("ffd8ffe000104a46494600010100000100010000ffdb")),
    ("png", b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"),
    ("json", b'{"a": [1, 2]}'),
    ("json", b"[\n  {}, 7.5]\n"),
    ("json", b'{"a": 1}\n' * 9999),
    ("text", b"id,label\n1,cat\n2,dog\n"),
    ("text", "Übergrößen\n".encode() * 1000),
    ("text", b"[section]\nkey = value\n"),
    ("text_index", b"0 135\n135 135\n270 99\n"),
    ("text_index", b"0 135\n"),
    ("text_index", b"".join(b"%d 135\n" % (135 * number) for number in range(9999))),
    ("recordkit_index", _index.IndexBuilder().to_bytes(_index.Fingerprint(0, 0, 0))),
    ("zeros", bytes(12)),
    ("zeros", bytes(1 << 22)),
    ("example", EXAMPLE),
    ("example", bytes(wire.example(wire.entry("image", wire.texts(bytes(100_000)))))),
    ("sequence_example", SEQUENCE),
    ("checkpoint", b"\x00\x00\x06\x08\x01" + bytes(60) + bytes.fromhex("57fb808b247547db")),
    ("checkpoint", b"\x01\x00\x00\x00" + bytes(9000) + b"\x1a\x1cw/.ATTRIBUTES/VARIABLE_VALUE*\x02\x08\x01"),
]  # fmt: skip


class TestRecords:
    @pytest.mark.parametrize("data", [F5, records.pack(b""), b"", F5[:12]])
    def test_plain_and_empty_files(self, data: bytes) -> None:
        assert sniff(data) is None

    @pytest.mark.parametrize(
        "data",
        [
            gzip.compress(F5, mtime=0),
            gzip.compress(b"", mtime=0),
            gzip.compress(b"", mtime=0) * 3 + gzip.compress(F5, mtime=0),
            compress_member(F5, 5, 6) * 2,
            gzip.compress(F5, mtime=0) + bytes(512),
            gzip.compress(F5[1:], mtime=0),
            gzip.compress(bytes(5000) + F5, mtime=0),
        ],
    )
    def test_gzip_under_any_name(self, data: bytes) -> None:
        assert sniff(data, "plain.tfrecord") == "gzip"

    @pytest.mark.parametrize("level", range(10))
    @pytest.mark.parametrize("raw", [F5, b"", F5 * 999])
    def test_zlib_under_any_name(self, raw: bytes, level: int) -> None:
        assert sniff(zlib.compress(raw, level), "a.tfrecord.gz") == "zlib"

    def test_gzip_cut_anywhere_is_still_gzip(self) -> None:
        data = gzip.compress(F5)

        assert {sniff(data[:size]) for size in range(2, len(data))} == {"gzip"}

    def test_zlib_cut_anywhere_but_at_its_very_start_is_still_zlib(self) -> None:
        data = zlib.compress(F5)

        assert {sniff(data[:size]) for size in range(8, len(data))} == {"zlib"}

    def test_zlib_damaged_behind_its_first_record_is_still_zlib(self) -> None:
        rng = np.random.default_rng(1)
        data = bytearray(zlib.compress(b"".join(records.pack(rng.bytes(99)) for _ in range(9))))
        data[300] ^= 0xFF

        assert sniff(bytes(data)) == "zlib"

    def test_a_sound_header_decides_over_any_signature(self) -> None:
        starts = [int.from_bytes(data[:8], "little") for _, data in WRONG if data[4:8] != bytes(4)]
        headers = [records.pack(b""), *(header_of(length) for length in [0x9C78, 0x8B1F, 559903, *starts])]

        assert {sniff(bytes(header) + b"rest") for header in headers} == {None}

    def test_a_local_file_is_told_by_its_bytes(self, tmp_path: Path) -> None:
        (tmp_path / "a.tfrecord").write_bytes(gzip.compress(F5))

        assert compression_of(LocalFile(tmp_path / "a.tfrecord")) == "gzip"


def header_of(length: int) -> bytes:
    data = length.to_bytes(8, "little")
    return data + _core.mask_crc(_core.crc32c(data)).to_bytes(4, "little")


class TestDamaged:
    """A damaged TFRecord file is never taken for something else."""

    def test_cut_anywhere(self) -> None:
        assert {sniff(F5[:size]) for size in range(len(F5))} == {None}

    @given(st.integers(0, 27 * 8 - 1), st.integers(0, 2000))
    def test_any_bit_of_the_first_record_flipped(self, bit: int, length: int) -> None:
        data = bytearray(records.pack(b"x" * length) + F5)
        data[bit // 8 % 12] ^= 1 << bit % 8

        assert sniff(bytes(data)) is None

    @given(st.binary(min_size=1, max_size=12))
    @example(b"\xff" * 8)
    @example(bytes(12))
    @example(b"\x78\x9c")
    def test_the_first_header_overwritten(self, junk: bytes) -> None:
        data = junk + F5[len(junk) :]
        if any(signature.pattern.match(data) for signature in _STARTS) or data.startswith(b"\x1f\x8b\x08"):
            return

        assert sniff(data) is None

    @pytest.mark.parametrize("length", [0x9C78, 0x8B1F, 559_903, 0x4B50, 0x0A0A, 0x7B, 0x5B, 0x3C])
    def test_lengths_that_look_like_a_signature(self, length: int) -> None:
        data = bytearray(records.pack(bytes(length)))
        data[9] ^= 0x10

        assert sniff(bytes(data)) is None

    def test_zeros_before_records(self) -> None:
        assert sniff(bytes(5000) + F5) is None
        assert sniff(bytes(3 << 20) + b"\x01" + bytes(3 << 20)) is None

    @given(st.binary(max_size=300))
    def test_any_bytes_have_an_answer(self, data: bytes) -> None:
        with suppress(WrongFileError):
            assert sniff(data) in (None, "gzip", "zlib")


class TestWrongFiles:
    @pytest.mark.parametrize(("kind", "data"), WRONG, ids=[f"{i}-{kind}" for i, (kind, _) in enumerate(WRONG)])
    def test_is_named(self, kind: str, data: bytes) -> None:
        error = refused(data)

        assert (error.kind, error.path) == (kind, "a.tfrecord")
        assert str(error).startswith("a.tfrecord: this is ")
        assert str(error).count("\n  ") == 1

    @pytest.mark.parametrize(("compress", "name"), [(gzip.compress, "gzip"), (zlib.compress, "zlib")])
    @pytest.mark.parametrize(
        ("kind", "data"),
        [
            ("tar", tar(F5)),
            ("json", b'{"a": 1}\n' * 9999),
            ("text", b"a,b\n1,2\n"),
            ("example", EXAMPLE * 400),
            ("npy", saved(lambda file: np.save(file, np.arange(9)))),
            ("gzip", gzip.compress(F5, mtime=0)),
            ("html", HTML),
        ],
    )
    def test_what_is_inside_is_named(
        self, compress: Callable[[bytes], bytes], name: str, kind: str, data: bytes
    ) -> None:
        assert refused(compress(data)).kind == f"{kind}_in_{name}"

    def test_every_signature_of_a_start_has_a_case(self) -> None:
        assert {signature.kind for signature in _STARTS} <= {kind for kind, _ in WRONG}

    def test_an_example_of_our_encoder_is_known(self) -> None:
        (payload,) = examples.encode({"x": examples.Values("float", np.zeros(3, np.float32), count=3)}, 1)

        assert refused(payload).kind == "example"


class TestWords:
    def test_git_lfs(self) -> None:
        assert str(refused(LFS)) == (
            "a.tfrecord: this is a Git LFS pointer, not a TFRecord file\n  The data was not downloaded: git lfs pull"
        )

    def test_an_object_store_gives_its_code_and_nothing_more(self) -> None:
        assert str(refused(S3)) == (
            "a.tfrecord: this is an XML error page of an object store (AccessDenied), not a TFRecord file\n"
            "  The download failed and its answer was saved in place of the file: fetch the file again."
        )

    def test_zeros(self) -> None:
        assert str(refused(bytes(99))) == (
            "a.tfrecord: this is zeros and nothing else, not a TFRecord file\n"
            "  A crash or a broken copy destroyed its content: fetch the file again from its source."
        )

    def test_zstd(self) -> None:
        assert str(refused(compressed("zstd"))) == (
            "a.tfrecord: this is compressed with zstd, not a TFRecord file\n"
            "  Decompress it first: recordkit reads plain, gzip and zlib files."
        )

    def test_an_unframed_example(self) -> None:
        assert str(refused(EXAMPLE)) == (
            "a.tfrecord: this is a serialized Example without the frame of a record, not a TFRecord file\n"
            "  Every message has to be framed as a record: recordkit.records.pack does that."
        )

    def test_a_tar_in_gzip(self) -> None:
        assert str(refused(gzip.compress(tar(F5)))) == (
            "a.tfrecord: this is gzip around something other than records: a tar archive\n"
            "  Unpack it, and open the files that are in it."
        )
