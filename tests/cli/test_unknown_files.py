"""Files that are no TFRecord, or hold no Examples: each is named, with what to do."""

from __future__ import annotations

import gzip
import io
import zipfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import recordkit as rk
from recordkit import records

from .conftest import Done

if TYPE_CHECKING:
    from collections.abc import Callable


def npy() -> bytes:
    file = io.BytesIO()
    np.save(file, np.arange(100))
    return file.getvalue()


def zipped() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a.txt", "text")
    return file.getvalue()


EXAMPLE = bytes.fromhex("0a0c0a0a0a016112051a030a0101")
# As a Frame of Waymo's begins: a context with a name, the time, a pose, a camera's picture.
FRAME = b"\x0a\x0b\x0a\x09segment-1\x10\x95\xb1\xbd\xd5\xad\x8f\xe4\x02\x1a\x03\x0a\x01\x00\x22\x02\x08\x01"
CONVERT = "recordkit opens TFRecord files: read this with its own library, and write it with recordkit.write."
FETCH = "The download failed and its answer was saved in place of the file: fetch the file again."
LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22e\nsize 12345\n"
WRONG = {
    "git lfs": (LFS, "a Git LFS pointer", "The data was not downloaded: git lfs pull"),
    "html": (b"<!DOCTYPE html><html><title>404</title></html>", "an HTML page", FETCH),
    "xml": (
        b"<?xml version='1.0' encoding='UTF-8'?><Error><Code>AccessDenied</Code></Error>",
        "an XML error page of an object store (AccessDenied)",
        FETCH,
    ),
    "npy": (npy(), "a NumPy array (.npy)", "recordkit.write(path, np.load(...)) makes records of it."),
    "parquet": (b"PAR1\x15\x04\x15\x10\x15" + bytes(50) + b"PAR1", "a Parquet file", CONVERT),
    "tar": (
        b"a.txt".ljust(257, b"\0") + b"ustar\x0000" + bytes(1000),
        "a tar archive",
        "Unpack it, and open the files that are in it.",
    ),
    "zip": (zipped(), "a zip archive", "Unpack it, and open the files that are in it."),
    "zstd": (
        b"\x28\xb5\x2f\xfd\x04\x00" + b"\x59" * 40,
        "compressed with zstd",
        "Decompress it first: recordkit reads plain, gzip and zlib files.",
    ),
    "ds_store": (
        b"\0\0\0\x01Bud1" + bytes(100),
        "a .DS_Store, the notes of macOS about a folder",
        "Open the record files next to it, and leave this one out.",
    ),
    "riegeli": (
        bytes.fromhex("83af70d10d884a3f") + bytes(100),
        "a Riegeli or ArrayRecord file",
        CONVERT,
    ),
    "unframed example": (
        EXAMPLE,
        "a serialized Example without the frame of a record",
        "Every message has to be framed as a record: recordkit.records.pack does that.",
    ),
    "text index": (
        b"0 27\n27 27\n54 27\n",
        "a text index of DALI or vahidk/tfrecord",
        "Open the record files next to it, and leave this one out.",
    ),
    "zeros": (
        bytes(4096),
        "zeros and nothing else",
        "A crash or a broken copy destroyed its content: fetch the file again from its source.",
    ),
}


class TestWrongFile:
    @pytest.mark.parametrize("command", ["info", "count", "head", "cat", "schema", "stats", "verify"])
    @pytest.mark.parametrize("kind", WRONG)
    def test_is_named_by_every_command_that_looks(self, kind: str, command: str, run: Callable[..., Done]) -> None:
        data, what, advice = WRONG[kind]
        Path("a.tfrecord").write_bytes(data)

        done = run(command, "a.tfrecord")

        assert done.status == 1
        if command == "verify":
            assert "a.tfrecord: wrong file\n" in done.out
            assert what in done.out
        else:
            assert done.out == ""
            assert done.err == f"error: a.tfrecord: this is {what}, not a TFRecord file\n  {advice}\n"

    def test_in_gzip_without_a_time_is_not_read_as_half_a_megabyte_of_record(self, run: Callable[..., Done]) -> None:
        Path("a.tfrecord").write_bytes(gzip.compress(LFS, mtime=0))

        done = run("info", "a.tfrecord")

        assert done.status == 1
        assert done.err == (
            "error: a.tfrecord: this is gzip around something other than records: a Git LFS pointer\n"
            "  The data was not downloaded: git lfs pull\n"
        )


class TestOtherPayloads:
    @pytest.mark.parametrize(
        ("payload", "message"),
        [
            (b"\x09\x00\x00\x80\x38\x99\xd6\xd7\x41\x1a\x0dbrain.Event:2", "tf.Event, as TensorBoard reads"),
            ("zwölf Boxkämpfer".encode(), "text"),
            (b"\x08\x96\x01\x12\x03abc\x1d\x00\x00\x80\x3f", "a protobuf message, but not an Example"),
            (FRAME, "a protobuf message, but not an Example"),
            (b"\xff\xfe\xfd" * 9, "bytes, but not an Example"),
            (b"", "none: the payloads are empty"),
        ],
    )
    def test_are_told_apart(self, payload: bytes, message: str, run: Callable[..., Done]) -> None:
        Path("a.tfrecord").write_bytes(records.pack(payload) * 3)

        done = run("info", "a.tfrecord")

        assert (done.status, done.err) == (0, "")
        assert "\n  records     3\n" in done.out
        assert f"\n  message     {message}\n" in done.out

    def test_of_lists_of_examples_are_not_taken_for_sequences(self, run: Callable[..., Done]) -> None:
        list_with_context = b"".join(field + bytes([len(EXAMPLE)]) + EXAMPLE for field in (b"\x0a", b"\x0a", b"\x12"))
        Path("a.tfrecord").write_bytes(records.pack(list_with_context) * 3)

        done = run("info", "a.tfrecord")

        assert (done.status, done.err) == (0, "")
        assert done.out == (
            "a.tfrecord\n  records     3\n  size        192 bytes in 1 file\n  compression none\n"
            "  message     ExampleListWithContext, as in TF-Ranking\n  record size 48 bytes\n\n"
            "  first payload: 48 bytes: 0a 0e 0a 0c 0a 0a 0a 01 61 12 05 1a…\n"
        )

    def test_of_sequence_examples_have_fields(self, run: Callable[..., Done]) -> None:
        schema = rk.Schema({"id": "int64"}, sequences={"step": "float32"})
        rk.write("a.tfrecord", [{"id": 1, "step": [0.5, 2.0]}, {"id": 2, "step": [1.0]}], schema)
        Path("b.tfrecord").write_bytes(Path("a.tfrecord").read_bytes())

        done = run("info", "b.tfrecord")

        assert done.status == 0
        assert "\n  message     SequenceExample\n" in done.out
        assert "\nstep   sequence of float32  1 to 2 long, 0.5 to 2" in done.out


class TestCompression:
    @pytest.mark.parametrize(
        ("name", "packed", "compression"),
        [
            ("a.tfrecord.gz", lambda data: data, "none"),
            ("a.tfrecord", gzip.compress, "gzip"),
            ("a.tfrecord", lambda data: gzip.compress(data, mtime=0), "gzip"),
            ("a.tfrecord", zlib.compress, "zlib"),
        ],
    )
    def test_is_told_from_the_bytes_whatever_the_name_says(
        self, name: str, packed: Callable[[bytes], bytes], compression: str, run: Callable[..., Done]
    ) -> None:
        Path(name).write_bytes(packed(records.pack(EXAMPLE) * 2))

        done = run("info", name)

        assert (done.status, done.err) == (0, "")
        assert f"\n  compression {compression}\n" in done.out
        assert "\na      int64  1\n" in done.out


class TestFolders:
    def test_empty_one_is_said_to_be(self, run: Callable[..., Done]) -> None:
        Path("data").mkdir()

        done = run("info", "data")

        assert (done.status, done.out) == (2, "")
        assert done.err == "error: data: the folder is empty\n  Pass the folder that holds the records.\n"

    def test_markers_and_indexes_are_left_out(self, run: Callable[..., Done], train: str) -> None:
        files = sorted(Path(train).glob("*.tfrecord"))
        Path("data").mkdir()
        for name in ("_SUCCESS", ".part-0.crc", ".DS_Store", "part-0.tfrecord.idx"):
            Path("data", name).write_bytes(b"0 27\n")
        Path("data", "part-0.tfrecord").write_bytes(files[0].read_bytes())

        for found in (["data"], ["data/*"], sorted(map(str, Path("data").iterdir()))):  # the last by the shell
            done = run("count", *found)
            assert (done.status, done.out) == (0, "3\n")
            assert done.err.count("left out: data/") == (4 if len(found) > 1 else 0)

    def test_marker_alone_is_opened_as_it_is(self, run: Callable[..., Done]) -> None:
        Path("_SUCCESS").touch()

        assert run("count", "_SUCCESS") == Done(0, "0\n")

    def test_shard_that_is_missing_is_named(self, run: Callable[..., Done]) -> None:
        Path("data").mkdir()
        for number in range(128):
            if number != 31:
                Path("data", f"a-{number:05d}-of-00128.tfrecord").write_bytes(records.pack(EXAMPLE))

        done, verified = run("info", "data"), run("verify", "data")

        words = "data/a-?????-of-00128.tfrecord: 00031 is missing; found 127 of 128 shards\n"
        advice = "  Restore them, or pass the other files as a list to read those.\n"
        assert done == Done(2, "", f"error: {words}{advice}")
        assert verified == Done(1, f"127 files, 127 sound records, 3.81 KB: 1 problem\n  {words}")

    def test_two_totals_of_one_name_are_refused(self, run: Callable[..., Done]) -> None:
        Path("data").mkdir()
        for name in ("a-00000-of-00002", "a-00001-of-00002", "a-00000-of-00001"):
            Path("data", f"{name}.tfrecord").write_bytes(records.pack(EXAMPLE))

        done, verified = run("info", "data"), run("verify", "data")

        words = "data: 'a' has shards of 2 sets: 1 file of 00001 and 2 files of 00002\n"
        advice = (
            "  One may be left from an earlier run. Remove it, or pass a glob such as 'a-?????-of-00001.tfrecord'.\n"
        )
        assert done == Done(2, "", f"error: {words}{advice}")
        assert verified == Done(1, f"3 files, 3 sound records, 90 bytes: 1 problem\n  {words}")
