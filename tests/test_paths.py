"""Odd paths: every function that takes one answers with an error of recordkit that names it, or does what was asked."""

from __future__ import annotations

import errno
import logging
import os
import pickle
import shutil
import tempfile
import threading
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import recordkit as rk
from recordkit import storage, tf
from recordkit.errors import NotFoundError, PermissionDeniedError, RecordKitError, StorageError
from recordkit.filesystems import given_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROWS = [{"id": number, "text": "x" * number} for number in range(8)]
GOOD = "good.tfrecord"
NOT_UTF8 = os.fsdecode(b"caf\xe9.tfrecord")

# What none of the functions may take, and a word of the error.
REFUSED = {
    "s3://bucket/train": "s3:",
    "gs://bucket/a.tfrecord": "gs:",
    "hdfs://host:8020/a@3": "hdfs:",
    "https://example.org/a*.tfrecord": "https:",
    "file:///tmp/a.tfrecord": "Give the path itself: /tmp/a.tfrecord",
    "": "empty",
    "a\0b.tfrecord": "zero byte",
    "half\ud800.tfrecord": "cannot be part of a file's name",
    "x" * 256: "256 bytes",
    "/".join(["y" * 200] * 25): "5,024 bytes",
    f"{GOOD}/inside": "",
    "loop.tfrecord": "",
}
SOMETHING_ELSE = ("pipe.tfrecord", "broken.tfrecord")


def _create(path: Any) -> None:
    with rk.create(path, {"id": "int64"}) as writer:
        writer.write({"id": 1})


def _append(path: Any) -> None:
    with rk.append(path) as writer:
        writer.write({"id": 1, "text": ""})


def _tf_write(path: Any) -> None:
    with tf.io.TFRecordWriter(path) as writer:
        writer.write(b"payload")


READERS: dict[str, Callable[[Any], Any]] = {
    "open": lambda path: rk.open(path).head(),  # a pipe is read when somebody asks for records
    "open list": lambda path: rk.open([GOOD, path])[:],
    "open with overlay": lambda path: rk.open(GOOD, overlays=[path]),
    "verify": rk.verify,
    "stats": rk.stats,
    "diff": lambda path: rk.diff(GOOD, path),
    "follow": lambda path: next(rk.follow(path, timeout=0)),
    "repair": lambda path: rk.repair(path, "repaired.tfrecord"),
    "index": rk.index,
    "write_text_index": lambda path: storage.write_text_index(path, overwrite=True),
    "read_text_index": lambda path: storage.read_text_index(path, f"{GOOD}.idx"),
    "text index": lambda path: storage.read_text_index(GOOD, path),
    "Schema.load": rk.Schema.load,
    "TFRecordDataset": lambda path: list(tf.data.TFRecordDataset(path)),
    "TFRecordDataset list": lambda path: list(tf.data.TFRecordDataset([GOOD, path])),
    "tf.io.read_file": tf.io.read_file,
}
CHANGES: dict[str, Callable[[Any], Any]] = {
    "append": _append,
    "commit": rk.commit,
    "add_fields": lambda path: rk.add_fields(path, {"one": 1}),
    "drop_fields": lambda path: rk.drop_fields(path, ["id"]),
    "delete": lambda path: rk.delete(path, where="id > 100"),
    "bake": lambda path: rk.bake(path, "out"),
    "rename_fields": lambda path: rk.rename_fields(path, {"id": "key"}, out="out"),
    "cast_fields": lambda path: rk.cast_fields(path, {"id": "int32"}, out="out"),
    "filter": lambda path: rk.filter(path, "id > 3", out="out"),
}
WRITERS: dict[str, Callable[[Any], Any]] = {
    "write": lambda path: rk.write(path, ROWS),
    "create": _create,
    "repair to": lambda path: rk.repair(GOOD, path),
    "add_fields to": lambda path: rk.add_fields(GOOD, {"one": 1}, out=path),
    "add_fields overlay": lambda path: rk.add_fields(GOOD, {"one": 1}, overlay=path),
    "drop_fields to": lambda path: rk.drop_fields(GOOD, ["id"], out=path),
    "bake to": lambda path: rk.bake(GOOD, path),
    "filter to": lambda path: rk.filter(GOOD, "id > 3", out=path),
    "cache": lambda path: list(rk.open(GOOD).cache(path)),
    "TFRecordWriter": _tf_write,
    "Schema.save": lambda path: rk.Schema({"id": "int64"}).save(path),
}
OVERWRITERS: dict[str, Callable[[Any], Any]] = {
    "write": lambda path: rk.write(path, ROWS, overwrite=True),
    "repair to": lambda path: rk.repair(GOOD, path, overwrite=True),
    "add_fields to": lambda path: rk.add_fields(GOOD, {"one": 1}, out=path, overwrite=True),
    "add_fields overlay": lambda path: rk.add_fields(GOOD, {"one": 1}, overlay=path, overwrite=True),
    "drop_fields to": lambda path: rk.drop_fields(GOOD, ["id"], out=path, overwrite=True),
    "bake to": lambda path: rk.bake(GOOD, path, overwrite=True),
    "filter to": lambda path: rk.filter(GOOD, "id > 3", out=path, overwrite=True),
    "cache": lambda path: list(rk.open(GOOD).cache(path)),
    "TFRecordWriter": _tf_write,
    "Schema.save": lambda path: rk.Schema({"id": "int64"}).save(path, overwrite=True),
    "tf.io.write_file": lambda path: tf.io.write_file(path, b"content"),
    "write_text_index": lambda path: storage.write_text_index(GOOD, path, overwrite=True),
}
OTHERS: dict[str, Callable[[Any], Any]] = {
    "discard": rk.discard,
    "quarantined": lambda path: list(rk.quarantined(path)),
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a sound file, a pipe, and links that lead nowhere; the working directory."""
    monkeypatch.chdir(tmp_path)
    rk.write(GOOD, ROWS, sync=False)
    storage.write_text_index(GOOD)
    os.mkfifo("pipe.tfrecord")
    Path("loop.tfrecord").symlink_to("loop.tfrecord")
    Path("broken.tfrecord").symlink_to("nowhere")
    return tmp_path


def there(folder: Path) -> set[Path]:
    return set(folder.rglob("*"))


class TestRefused:
    @pytest.mark.parametrize("function", [*READERS, *CHANGES, *WRITERS])
    def test_by_name_and_nothing_is_made(self, function: str, here: Path) -> None:
        call, before = {**READERS, **CHANGES, **WRITERS}[function], there(here)

        for path, words in REFUSED.items():
            if function == "Schema.save" and path == "loop.tfrecord":
                continue  # a link is replaced as any other name
            with pytest.raises(RecordKitError) as caught:
                call(path)
            shown = path if path.isprintable() else repr(path)
            assert words in str(caught.value), path
            assert shown in str(caught.value) or Path(shown).name in str(caught.value)
            if function not in ("add_fields to", "drop_fields to", "bake to", "filter to", "add_fields overlay"):
                assert there(here) == before, path

    @pytest.mark.parametrize("function", OTHERS)
    @pytest.mark.parametrize("path", [path for path, words in REFUSED.items() if words])
    def test_where_nothing_would_be_found_too(self, function: str, path: str, here: Path) -> None:
        with pytest.raises(StorageError):
            OTHERS[function](path)

    def test_an_address_that_pathlib_has_cut(self, here: Path) -> None:
        with pytest.raises(StorageError, match="begins with s3:"):
            rk.write(Path("s3://bucket/train"), ROWS)

        Path("s3:").mkdir()  # whoever has such a folder means it
        assert given_path(Path("s3:/bucket")) == "s3:/bucket"

    def test_what_is_no_path_is_a_type_error(self, here: Path) -> None:
        taken = {name: call for name, call in WRITERS.items() if name != "TFRecordWriter"}  # as TensorFlow's takes them
        calls: list[Callable[[Any], Any]] = [rk.open, rk.verify, *taken.values()]
        for call in calls:
            with pytest.raises(TypeError, match="found bytes"):
                call(b"good.tfrecord")


class TestMissing:
    @pytest.mark.parametrize("function", [*READERS, *CHANGES])
    @pytest.mark.parametrize("path", ["missing.tfrecord", "no/such/folder"])
    def test_is_a_file_not_found_error_that_names_it(self, function: str, path: str, here: Path) -> None:
        with pytest.raises(FileNotFoundError) as caught:
            {**READERS, **CHANGES}[function](path)

        assert isinstance(caught.value, NotFoundError)
        assert path in str(caught.value)
        assert caught.value.errno == errno.ENOENT
        again = pickle.loads(pickle.dumps(caught.value))
        assert (type(again), str(again), again.errno) == (NotFoundError, str(caught.value), errno.ENOENT)


@contextmanager
def _something_else_in(pipe: str) -> Iterator[None]:
    """Write Parquet into a pipe whenever somebody reads it, as some functions do."""
    done = threading.Event()

    def write() -> None:
        while not done.is_set():
            with suppress(BrokenPipeError), open(pipe, "wb", buffering=0) as file:  # noqa: PTH123
                file.write(b"PAR1" * 1000)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        done.set()
        reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)  # a writer may wait for someone to do so
        while thread.is_alive():  # it may also wait for room, where a reader has not read all
            with suppress(BlockingIOError):
                os.read(reading, 1 << 16)
            thread.join(0.01)
        os.close(reading)


class TestWhatIsNoFile:
    @pytest.mark.parametrize("function", [*READERS, *CHANGES, *WRITERS])
    @pytest.mark.parametrize("path", SOMETHING_ELSE)
    def test_is_refused_or_left_as_it_was(self, function: str, path: str, here: Path) -> None:
        before = os.lstat(path)

        with _something_else_in("pipe.tfrecord"):
            if function == "verify":
                assert path == "broken.tfrecord" or not rk.verify(path).ok
            elif not (path == "broken.tfrecord" and function in WRITERS):  # a link is a name that can be replaced
                named = "nowhere" if (path, function) == ("broken.tfrecord", "append") else path  # through the link
                with pytest.raises(RecordKitError, match=named):
                    {**READERS, **CHANGES, **WRITERS}[function](path)

        if path == "pipe.tfrecord":
            assert os.lstat(path).st_ino == before.st_ino


class TestOverwriting:
    @pytest.mark.parametrize("function", OVERWRITERS)
    def test_replaces_neither_pipes_nor_devices_nor_folders_of_others(self, function: str, here: Path) -> None:
        os.mkfifo("pipe")
        Path("mine.tfrecord").mkdir()
        Path("mine.tfrecord", "letter.txt").write_text("dear")

        for path in ("pipe.tfrecord", "pipe", "mine.tfrecord"):
            before = os.lstat(path).st_ino
            with pytest.raises(RecordKitError, match=path):
                OVERWRITERS[function](path)
            assert os.lstat(path).st_ino == before
        assert Path("mine.tfrecord", "letter.txt").read_text() == "dear"


def _as_nobody(call: Callable[[], Any]) -> BaseException | None:
    """Return what a call raises when it is made by a user without any rights."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.setgid(65534)
            os.setuid(65534)
            call()
            error = None
        except BaseException as caught:
            error = caught
        os.write(writing, pickle.dumps((type(error).__mro__, str(error))))
        os._exit(0)
    os.close(writing)
    with open(reading, "rb") as file:  # noqa: PTH123 - a number
        kinds, words = pickle.loads(file.read())
    os.waitpid(child, 0)
    if PermissionDeniedError in kinds:
        return PermissionDeniedError(words)
    return RecordKitError(words) if RecordKitError in kinds else AssertionError(f"{kinds[0]}: {words}")


class TestPermissionDenied:
    @pytest.mark.parametrize("function", [*READERS, *CHANGES, *WRITERS])
    def test_is_an_error_that_names_the_path(self, function: str, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        with tempfile.TemporaryDirectory() as name:
            Path(name).chmod(0o777)
            shutil.copytree(here, Path(name, "closed"), symlinks=True, ignore=shutil.ignore_patterns("pipe*"))
            shutil.copy(GOOD, name)
            shutil.copy(f"{GOOD}.idx", name)
            Path(name, "closed").chmod(0)
            monkeypatch.chdir(name)

            error = _as_nobody(lambda: {**READERS, **CHANGES, **WRITERS}[function](f"closed/{GOOD}"))

            monkeypatch.chdir(here)

        assert isinstance(error, PermissionDeniedError), error
        assert "closed" in str(error)


class TestSidesOfLongAndOddNames:
    @pytest.mark.parametrize(
        "name",
        [
            "a" * 232 + ".tfrecord",
            "a" * 246 + ".tfrecord",
            "a" * 243 + ".tfrecord.gz",
            "\u00fc" * 123 + ".tfrecord",
            NOT_UTF8,
        ],
    )
    def test_files_are_written_changed_and_repaired_as_any_other(
        self, name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.ERROR, "recordkit")  # processes of pytest cannot hand on names that are no text
        path, out = tmp_path / name, tmp_path / "out" / name
        compression: Any = "gzip" if name.endswith("gz") else None

        assert (
            rk.write(
                path, [*ROWS, {"id": "no"}], {"id": "int64", "text": "string"}, on_error="skip", compression=compression
            ).skipped
            == 1
        )
        assert len(list(rk.quarantined(path))) == 1
        with rk.append(path, compression=compression) as writer:
            writer.write({"id": 8, "text": ""})
        rk.index(path)
        rk.add_fields(path, {"one": 1})
        rk.delete(path, where="id < 2")
        assert [row["id"] for row in rk.open(path).shuffle(1).batch(3).unbatch()] != []
        assert [(row["id"], row["one"]) for row in rk.open(path)] == [(number, 1) for number in range(2, 9)]
        assert rk.verify(path).ok

        rk.bake(path, out)
        rk.filter(path, "id > 3", out=tmp_path / "more" / name)
        assert len(rk.open(out)) == 7
        rk.write(out, ROWS, overwrite=True, compression=compression)
        data = bytearray(out.read_bytes())
        if compression is None:
            data[60] ^= 1
        out.write_bytes(data)
        repaired = rk.repair(out, tmp_path / "repaired" / name)
        assert repaired.recovered == len(ROWS) - (compression is None)

    def test_folders_too(self, tmp_path: Path) -> None:
        for name in (os.fsdecode(b"caf\xe9"), "n" * 200):
            path = tmp_path / name
            rk.write(path, ROWS, shards=2)
            rk.add_fields(path, {"one": 1})
            rk.delete(path, where="id < 2")
            rk.bake(path, tmp_path / f"out-{name}", overwrite=True) if len(name) < 200 else None
            assert [row["id"] for row in rk.open(path)] == [*range(2, 8)]
        with pytest.raises(StorageError, match="more than 200 bytes\n  Pass a shorter name="):
            rk.write(tmp_path / ("n" * 240), ROWS)
        rk.write(tmp_path / ("n" * 240), ROWS, name="short")
        assert rk.verify(tmp_path / ("n" * 240)).ok

    def test_repr_shows_no_control_characters(self, tmp_path: Path) -> None:
        path = tmp_path / "a\nb\x1b[31m.tfrecord"
        rk.write(path, [{"x\r\x1b[2J": 1, "y": 2}])

        text = repr(rk.open(path))

        assert all(line.isprintable() for line in text.splitlines())
        assert text.splitlines()[0].endswith("a\\nb\\x1b[31m.tfrecord: 1 record, 1 file, 47 bytes)")
        assert text.splitlines()[1:] == ["  x\\r\\x1b[2J  int64", "  y           int64"]
