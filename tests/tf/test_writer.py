"""TFRecordWriter: what it leaves on the disk, and when."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING, Any

import pytest

import recordkit as rk
from recordkit import tf as ours
from recordkit.tf.io import TFRecordOptions, TFRecordWriter

if TYPE_CHECKING:
    from pathlib import Path


def payloads(path: Path) -> list[bytes]:
    return list(rk.open(path, raw=True))


class TestFiles:
    @pytest.mark.parametrize(
        "name", ["a.tfrecord", "plain", "x.bin", "train-00000-of-00002", "x.tfrecord-00000-of-00001"]
    )
    def test_any_name_is_a_file(self, tmp_path: Path, name: str) -> None:
        with TFRecordWriter(str(tmp_path / name)) as writer:
            writer.write(b"one")
            writer.write(b"")

        assert (tmp_path / name).is_file()
        assert payloads(tmp_path / name) == [b"one", b""]

    @pytest.mark.parametrize("path_type", [str, lambda path: path, lambda path: ours.constant(str(path))])
    def test_folders_are_made(self, tmp_path: Path, path_type: Any) -> None:
        path = tmp_path / "a" / "b" / "odd"

        TFRecordWriter(path_type(path)).close()

        assert payloads(path) == []

    @pytest.mark.parametrize("name", ["a.tfrecord", "odd"])
    def test_what_was_there_is_replaced_when_the_new_is_whole(self, tmp_path: Path, name: str) -> None:
        path = tmp_path / name
        path.write_bytes(b"before")
        writer = TFRecordWriter(path)
        writer.write(b"new")
        writer.flush()

        assert path.read_bytes() == b"before"
        writer.close()
        assert payloads(path) == [b"new"]

    @pytest.mark.parametrize("name", ["a.tfrecord", "odd"])
    def test_nothing_is_there_behind_an_exception(self, tmp_path: Path, name: str) -> None:
        def write() -> None:
            with TFRecordWriter(tmp_path / name) as writer:
                writer.write(b"one")
                raise KeyError

        with pytest.raises(KeyError):
            write()

        assert not (tmp_path / name).exists()

    @pytest.mark.parametrize("record", [b"a", bytearray(b"a"), memoryview(b"a"), ours.constant("a")])
    def test_records_are_bytes_or_tensors_of_them(self, tmp_path: Path, record: Any) -> None:
        with TFRecordWriter(tmp_path / "a.tfrecord") as writer:
            writer.write(record)

        assert payloads(tmp_path / "a.tfrecord") == [b"a"]

    def test_what_is_no_bytes_is_refused_in_words(self, tmp_path: Path) -> None:
        with (
            TFRecordWriter(tmp_path / "a.tfrecord") as writer,
            pytest.raises(TypeError, match="a record must be bytes, found Ex"),
        ):
            writer.write(ours.train.Example())

    def test_closing_again_does_nothing_and_writing_then_is_an_error(self, tmp_path: Path) -> None:
        writer = TFRecordWriter(tmp_path / "a.tfrecord")
        writer.close()
        writer.close()

        with pytest.raises(ValueError, match="Writer is closed"):
            writer.write(b"a")


class TestOptions:
    @pytest.mark.parametrize(
        ("options", "start"),
        [
            (None, b"\3\0\0"),
            ("", b"\3\0\0"),
            ("GZIP", b"\x1f\x8b"),
            ("ZLIB", b"\x78"),
            (TFRecordOptions("GZIP"), b"\x1f\x8b"),
            (TFRecordOptions(compression_type="ZLIB", compression_level=9), b"\x78\xda"),
            (TFRecordOptions(), b"\3\0\0"),
        ],
    )
    def test_compression(self, tmp_path: Path, options: Any, start: bytes) -> None:
        with TFRecordWriter(tmp_path / "a.tfrecord", options) as writer:
            writer.write(b"one")

        assert (tmp_path / "a.tfrecord").read_bytes().startswith(start)
        assert payloads(tmp_path / "a.tfrecord") == [b"one"]

    @pytest.mark.parametrize("make", [TFRecordOptions, lambda name: TFRecordWriter("never-made.tfrecord", name)])
    def test_compression_that_is_none_is_refused(self, make: Any) -> None:
        with pytest.raises(ValueError, match='Not a valid compression_type: "gzip"'):
            make("gzip")

    @pytest.mark.tensorflow
    @pytest.mark.parametrize("options", ["", "GZIP", "ZLIB"])
    def test_tensorflow_reads_what_was_written(self, tmp_path: Path, tf: Any, options: str) -> None:
        records = [bytes([number]) * number * 100 for number in range(50)]

        with TFRecordWriter(tmp_path / "a.tfrecord", options) as writer:
            for record in records:
                writer.write(record)

        assert list(tf.data.TFRecordDataset(str(tmp_path / "a.tfrecord"), options).as_numpy_iterator()) == records


class TestNeverClosed:
    def test_is_published_when_nothing_refers_to_it(self, tmp_path: Path) -> None:
        writer = TFRecordWriter(tmp_path / "a.tfrecord")
        writer.write(b"one")

        with pytest.warns(RuntimeWarning, match="never closed; the file is published as it is\n  Use it in a with"):
            del writer

        assert payloads(tmp_path / "a.tfrecord") == [b"one"]

    def test_is_published_where_an_older_exception_is_being_handled(self, tmp_path: Path) -> None:
        try:
            raise KeyError
        except KeyError:
            writer = TFRecordWriter(tmp_path / "a.tfrecord")
            with pytest.warns(RuntimeWarning, match="the file is published"):
                del writer

        assert payloads(tmp_path / "a.tfrecord") == []

    @pytest.mark.parametrize("options", ["''", "'GZIP'"])
    @pytest.mark.parametrize(
        ("end", "status", "words", "there"),
        [
            ("", 0, "the file is published as it is", True),
            ("raise KeyError", 1, "an exception is being handled, so the file is discarded", False),
        ],
    )
    def test_at_exit(self, tmp_path: Path, options: str, end: str, status: int, words: str, there: bool) -> None:
        program = f"""
            from recordkit import tf
            writer = tf.io.TFRecordWriter({str(tmp_path / "a.tfrecord")!r}, {options})
            writer.write(b"one")
            {end}
            """
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=60, check=False
        )

        assert done.returncode == status
        assert words in done.stderr
        assert [name.name for name in tmp_path.iterdir() if name.is_file()] == ["a.tfrecord"] * there
        assert not there or payloads(tmp_path / "a.tfrecord") == [b"one"]
