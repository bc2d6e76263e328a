"""Streams: files that the caller opened, and pipes, which can be read only once, from front to back."""

from __future__ import annotations

import errno
import os
import select
import stat
import sys
import threading
import weakref
from collections.abc import Sequence
from typing import IO, TYPE_CHECKING

from recordkit.errors import StorageError

from ._pieces import cut_short, read_piece
from ._protocol import UNKNOWN_SIZE, ByteFile

if TYPE_CHECKING:
    from typing import Any

_KEPT = 8 << 20
WAIT_FOR_WRITER = 30.0  # seconds, of a pipe that has a name


class ObjectFile(ByteFile):
    """A seekable file object that the caller opened and will close."""

    def __init__(self, file: IO[bytes], name: str | None = None) -> None:
        self._file = file
        own = getattr(file, "name", None)
        self.name = name or (own if isinstance(own, str) else f"<{type(file).__name__}>")
        self._lock = threading.Lock()
        with self._lock:
            self._size = file.seek(0, os.SEEK_END)

    @property
    def size(self) -> int:
        """How many bytes there were when the file was given."""
        return self._size

    def read_at(self, offset: int, size: int) -> bytes:
        """Return `size` bytes from `offset` on; fewer only at the end of the file."""
        with self._lock:
            self._file.seek(offset)
            return _read_all(self._file, size)

    def check_not_truncated(self, record: int | None = None, offset: int | None = None) -> None:
        """Raise if the file became shorter."""
        with self._lock:
            now = self._file.seek(0, os.SEEK_END)
        if now < self.size:
            raise cut_short(self.name, self.size, now, record=record, offset=offset)


class PipeFile(ByteFile):
    """A file that can only be read once, from front to back, such as standard input.

    Its first 8 MiB are kept, so that they can be read again.
    """

    seekable = False

    def __init__(self, file: IO[bytes]) -> None:
        own = getattr(file, "name", None)
        self.name = own if isinstance(own, str) else f"<{type(file).__name__}>"
        self._file = file
        self._kept = bytearray()
        self._at = 0
        self._ended = False
        self._lock = threading.Lock()

    @property
    def size(self) -> int:
        """How many bytes there are; `UNKNOWN_SIZE` until the pipe has ended."""
        return self._at if self._ended else UNKNOWN_SIZE

    def read_at(self, offset: int, size: int) -> bytes:
        """Return `size` bytes from `offset` on; fewer only at the end.

        Raises:
            StorageError: They were read already, or are not the next ones.
        """
        with self._lock:
            known = bytes(self._kept[offset : offset + size])
            if len(known) == size or (self._ended and offset + len(known) >= self._at):
                return known
            if offset + len(known) != self._at:
                message = (
                    f"{self.name}: a pipe is read once, from front to back\n"
                    "  Save it to a file to count its records, read them in any order or read them twice."
                )
                raise StorageError(message, path=self.name)
            return known + self._next(size - len(known))

    def _next(self, size: int) -> bytes:
        piece = _read_all(self._file, size)
        if self._at == len(self._kept) and self._at < _KEPT:
            self._kept += piece
        self._at += len(piece)
        self._ended = len(piece) < size
        return piece


def _named_pipe(path: str | os.PathLike[str]) -> PipeFile | None:
    """Return the pipe of a name, such as `/dev/stdin` or the `<(…)` of a shell; None if it is not a pipe.

    Raises:
        StorageError: It cannot be opened, or no program opens it for writing in time.
    """
    try:
        if not stat.S_ISFIFO(os.stat(path).st_mode):  # noqa: PTH116 - it may be text that no path can be
            return None
        # Non-blocking, or opening would wait until another program writes, perhaps forever.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except ValueError:
        return None
    except OSError as error:
        if isinstance(error, FileNotFoundError | NotADirectoryError) or error.errno == errno.ENAMETOOLONG:
            return None
        message = f"{os.fspath(path)}: cannot be read: {os.strerror(error.errno or 0)}"
        raise StorageError(message, path=os.fspath(path), errno=error.errno) from error
    file = open(path, "rb", opener=lambda *_: descriptor)  # noqa: SIM115 - it stays open as long as it is read
    waiting = select.poll()
    waiting.register(descriptor, select.POLLIN)
    # The `<(…)` of a shell has a writer already, which may be slow.
    is_connected = os.path.realpath(path).startswith(("/proc/", "/dev/"))
    if not is_connected and not waiting.poll(1000 * WAIT_FOR_WRITER):
        file.close()
        message = (
            f"{os.fspath(path)}: this is a pipe, and no program wrote into it within {WAIT_FOR_WRITER:g} seconds\n"
            "  Start the program that writes first, or pass an open file."
        )
        raise StorageError(message, path=os.fspath(path))
    os.set_blocking(descriptor, True)
    pipe = PipeFile(file)
    weakref.finalize(pipe, file.close)
    return pipe


def _read_all(file: IO[bytes], size: int) -> bytes:
    """Return `size` bytes; fewer only at the end."""
    pieces, left = [], size
    while left and len(piece := read_piece(file, left)):
        pieces.append(piece)
        left -= len(piece)
    return bytes(pieces[0]) if len(pieces) == 1 else b"".join(pieces)


def as_open_file(where: Any) -> ByteFile | None:
    """Return a file that the caller opened, standard input for `"-"`, or the pipe of a name; None for other names.

    Raises:
        StorageError: The pipe cannot be opened.
        TypeError: It cannot be read.
    """
    if where == "-":
        where = sys.stdin.buffer
    if isinstance(where, str | os.PathLike | Sequence) and not isinstance(where, bytes):
        return _named_pipe(where) if isinstance(where, str | os.PathLike) else None
    if not hasattr(where, "read"):
        message = f"expected a path, a list of paths or an open file, found {type(where).__name__}"
        raise TypeError(message)
    seekable = getattr(where, "seekable", None)
    return ObjectFile(where) if seekable is not None and seekable() else PipeFile(where)
