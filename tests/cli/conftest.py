"""Fixtures: commands run in this process, piped or on a terminal of their own, on a small dataset."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import re
import struct
import sys
import termios
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import recordkit as rk
from recordkit import images
from recordkit.cli import main

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

STYLES = re.compile(r"\x1b\[[\d;]*m")


@dataclass(frozen=True)
class Done:
    """What a command has done."""

    status: int
    out: str
    err: str = ""

    @property
    def bare(self) -> str:
        """What is seen of it on a terminal, colours apart."""
        return STYLES.sub("", self.out)


@contextmanager
def _standard_input(data: bytes) -> Iterator[io.TextIOWrapper]:
    """Give bytes through a pipe, as a shell does."""
    reading, writing = os.pipe()

    def write() -> None:
        with open(writing, "wb") as file, suppress(BrokenPipeError):  # noqa: PTH123 - a number
            file.write(data)

    writer = threading.Thread(target=write)
    writer.start()
    with open(reading, "rb") as file, io.TextIOWrapper(file) as text:  # noqa: PTH123
        yield text
    writer.join()


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No setting of whoever runs the tests changes what is printed."""
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "RECORDKIT_TRACEBACK"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")


@pytest.fixture
def in_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Be in the folder of the test."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Done]:
    """Runs a command as in a pipe, in a folder of its own."""
    monkeypatch.chdir(tmp_path)

    def running(*words: Any, given: bytes | None = None) -> Done:
        capsys.readouterr()
        with _standard_input(given or b"") as text, monkeypatch.context() as patch:
            patch.setattr(sys, "stdin", text)
            status = main(list(map(str, words)))
        return Done(status, *capsys.readouterr())

    return running


@pytest.fixture
def on_terminal(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Done]:
    """Runs a command on a terminal so many letters wide."""
    monkeypatch.chdir(tmp_path)

    def running(*words: Any, width: int = 80) -> Done:
        leader, follower = pty.openpty()
        fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
        monkeypatch.setenv("COLUMNS", str(width))  # asked for before the terminal, which here is another one's
        with (
            reading(leader) as seen,
            open(follower, "w", encoding="utf-8") as screen,  # noqa: PTH123 - a number
            monkeypatch.context() as patch,
        ):
            patch.setattr(sys, "stdout", screen)
            patch.setattr(sys, "stderr", screen)
            status = main(list(map(str, words)))
        return Done(status, seen.decode().replace("\r\n", "\n"))

    return running


@contextmanager
def reading(leader: int) -> Iterator[bytearray]:
    """Give what comes to see on a terminal until its other end is closed; then this one is, too."""
    seen = bytearray()
    reader = threading.Thread(target=_read_all, args=(leader, seen))
    reader.start()
    try:
        yield seen
    finally:
        reader.join()
        os.close(leader)


def _read_all(descriptor: int, seen: bytearray) -> None:
    while True:
        try:
            seen += os.read(descriptor, 1 << 16)
        except OSError:  # the other end was closed
            return


SCHEMA = {
    "id": "int64",
    "image": "png",
    "label": "int64",
    "caption": "string?",
    "tokens": "int64[?]",
    "point": "float32[2]",
    "depth": "float64[?,?]",
}


def rows(count: int = 6) -> Iterator[dict[str, Any]]:
    """Yield rows, the same on every machine."""
    picture = images.encode(np.zeros((4, 6, 3), np.uint8), "png")
    for number in range(count):
        yield {
            "id": number,
            "image": picture,
            "label": number % 3,
            "caption": None if number == 1 else f"picture {number}",
            "tokens": list(range(number)),
            "point": [number / 2, np.nan if number == 4 else -1.0],
            "depth": np.full((number % 2 + 1, 2), number / 4),
        }


@pytest.fixture
def train(tmp_path: Path) -> str:
    """Six records in two files."""
    with rk.create(tmp_path / "train", SCHEMA, records_per_shard=3) as writer:
        for row in rows():
            writer.write(row)
    return "train"


@pytest.fixture
def damaged(tmp_path: Path) -> str:
    """A file of five records, the third of which is damaged."""
    data = bytearray(b"".join(rk.records.pack(b"payload-%03d" % number) for number in range(5)))
    data[70] ^= 1
    (tmp_path / "bad.tfrecord").write_bytes(data)
    return "bad.tfrecord"
