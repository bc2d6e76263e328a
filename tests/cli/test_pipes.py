"""Pipes, sockets and devices where files are expected: a pipe that the user names is read, nothing else ever waits."""

from __future__ import annotations

import gc
import os
import socket
import threading
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import recordkit as rk
from recordkit.filesystems import _streams
from tests.limits import in_time

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .conftest import Done

SECONDS = 30  # on a machine that is busy; each takes a fraction of one

LOOK = {
    "bench": ["--seconds", "0.01"],
    "cat": [],
    "count": [],
    "head": [],
    "info": [],
    "schema": [],
    "stats": [],
    "verify": [],
}
CHANGE: dict[str, list[str]] = {
    "add": ["y", "--value", "1"],
    "append": ["{itself}"],
    "bake": ["--out", "out"],
    "delete": ["--where", "id == 1"],
    "diff": ["{itself}"],
    "drop": ["id"],
    "filter": ["--where", "id == 1", "--out", "out"],
    "index": [],
    "rename": ["id=number", "--out", "out"],
    "repair": ["-o", "out.tfrecord"],
}


def written(path: Path, count: int = 5) -> Path:
    rk.write(path, [{"id": number} for number in range(count)])
    return path


def message_of(command: str, path: str) -> list[str]:
    return [command, path, *(word.format(itself=path) for word in (LOOK | CHANGE)[command])]


def strange(path: Path, kind: str) -> None:
    """Put something under a name that is no file."""
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(os.path.relpath(path))


@contextmanager
def fed(path: Path, data: bytes, *, endless: bool = False) -> Iterator[None]:
    """A pipe into which data is written, once or for ever."""
    os.mkfifo(path)

    def feed() -> None:
        with suppress(BrokenPipeError), path.open("wb") as pipe:
            while pipe.write(data) and endless:
                pass

    feeder = threading.Thread(target=feed, daemon=True)
    feeder.start()
    yield
    gc.collect()  # an error has kept it open
    # Where nobody read it, it still waits for one who does.
    os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
    feeder.join(SECONDS)
    assert not feeder.is_alive()


@pytest.mark.parametrize("command", LOOK | CHANGE)
@pytest.mark.parametrize("kind", ["device", "socket"])
def test_a_device_or_socket_is_refused_at_once(kind: str, command: str, run: Callable[..., Done]) -> None:
    strange(Path("it.tfrecord"), kind)

    with in_time(SECONDS):
        done = run(*message_of(command, "it.tfrecord"))

    assert done.status != 0
    assert f"found a {kind}" in done.out + done.err


@pytest.mark.parametrize("command", LOOK | CHANGE)
def test_what_is_no_file_in_a_folder_is_left_out(command: str, run: Callable[..., Done]) -> None:
    Path("data").mkdir()
    written(Path("data/a.tfrecord"))
    for kind in ("pipe", "device", "socket"):
        strange(Path(f"data/{kind}.tfrecord"), kind)
    before = {path.name for path in Path("data").iterdir()}

    with in_time(SECONDS):
        done = run(*message_of(command, "data"))

    assert (done.status, done.err) == (0, "") or command in {"append", "repair"}
    assert before <= {path.name for path in Path("data").iterdir()}


@pytest.mark.usefixtures("in_folder")
def test_what_is_left_out_is_listed() -> None:
    Path("data").mkdir()
    written(Path("data/a.tfrecord"))
    for kind in ("pipe", "device", "socket"):
        strange(Path(f"data/{kind}.tfrecord"), kind)

    left_out = {path.name: reason for path, reason in rk.open("data").left_out if path.suffix}
    by_glob = {path.name: reason for path, reason in rk.open("data/*.tfrecord").left_out}

    assert left_out == by_glob
    assert left_out == {"pipe.tfrecord": "a pipe", "device.tfrecord": "a device", "socket.tfrecord": "a socket"}


class TestANamedPipe:
    @pytest.mark.parametrize("command", ["cat", "count", "head", "info", "schema", "verify"])
    def test_is_read(self, command: str, run: Callable[..., Done]) -> None:
        data = written(Path("one.tfrecord")).read_bytes()

        with in_time(SECONDS), fed(Path("pipe"), data):
            done = run(command, "pipe")

        assert (done.status, done.err) == (0, "")
        assert done.out

    @pytest.mark.parametrize("command", sorted({*LOOK, *CHANGE} - {"cat", "count", "head", "info", "schema", "verify"}))
    def test_is_read_or_refused(self, command: str, run: Callable[..., Done]) -> None:
        data = written(Path("one.tfrecord")).read_bytes()

        with in_time(SECONDS), fed(Path("pipe"), data):
            done = run(*message_of(command, "pipe"))

        assert done.status == 0 or "pipe" in done.out + done.err

    def test_is_a_dataset(self, tmp_path: Path) -> None:
        data = written(tmp_path / "one.tfrecord").read_bytes()

        for name in ("text", Path("path")):
            path = tmp_path / name
            with in_time(SECONDS), fed(path, data):
                rows: list[Any] = list(rk.open(str(path) if isinstance(name, str) else path))
            assert [int(row["id"]) for row in rows] == [0, 1, 2, 3, 4]

    @pytest.mark.parametrize("command", ["cat", "count", "head", "info", "schema", "verify"])
    @pytest.mark.parametrize("data", [bytes(4096), b"y\n" * 2048, b"\x1f\x8b\x08" + bytes(4093), b"\n" * 4096])
    def test_without_an_end_is_refused(self, command: str, data: bytes, run: Callable[..., Done]) -> None:
        with in_time(SECONDS), fed(Path("pipe"), data, endless=True):
            done = run(command, "pipe")

        assert done.status != 0
        assert "pipe" in done.out + done.err
        assert "Save it to a file" not in done.out + done.err


def test_a_pipe_that_nobody_writes_into_is_not_waited_for_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.setattr(_streams, "WAIT_FOR_WRITER", 0.01)

    with in_time(SECONDS), pytest.raises(rk.StorageError, match=r"pipe: this is a pipe, and no program wrote into it"):
        rk.open(tmp_path / "pipe")
