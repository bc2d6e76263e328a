"""Bytes: where those of a file come from, at any place, whatever kind of file it is."""

from __future__ import annotations

import os
import stat
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import IO, TYPE_CHECKING, Protocol

from recordkit import _core
from recordkit.errors import StorageError
from recordkit.memory import mapped_at_most
from recordkit.records import read_piece

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

_KEPT = 8 << 20
_MAPPED_AT_ONCE = 64 << 10  # what the system maps of a file when one place of it is touched


_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def open_regular(path: Path) -> int:
    """Return the descriptor of a file, opened for reading. Nothing is waited for, as it would be at a pipe.

    Raises:
        StorageError: It is no file but a folder, a pipe, a socket or a device.
        OSError: It cannot be opened.
    """
    _check_regular(path, path.stat().st_mode)
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        _check_regular(path, os.fstat(descriptor).st_mode)  # it may have changed since
    except StorageError:
        os.close(descriptor)
        raise
    return descriptor


def _check_regular(path: Path, mode: int) -> None:
    if not stat.S_ISREG(mode):
        found = _KINDS.get(stat.S_IFMT(mode), "something else")
        message = f"{path}: expected a file, found {found}\n  Put the file itself in its place, or take it away."
        raise StorageError(message, path=str(path))


def unreadable(path: Path, error: OSError) -> StorageError:
    """Return the error for a file or folder that the system does not let us read."""
    message = f"{path}: cannot be read: {os.strerror(error.errno or 0)}"
    return StorageError(message, path=str(path), errno=error.errno)


class ByteFile(Protocol):
    """What can be read at any place, from many threads.

    Attributes:
        name: What errors call it.
        size: How many bytes there are.
    """

    @property
    def name(self) -> str:
        """What errors call it."""
        ...

    @property
    def size(self) -> int:
        """How many bytes there are."""
        ...

    def read_at(self, offset: int, size: int) -> bytes:
        """Return `size` bytes from `offset` on; fewer only at the end of the file."""
        ...


class LocalFile:
    """A file of this machine, opened when it is first read.

    Pickling keeps the path only; the copy opens the file again.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = str(path)
        self._descriptor = -1
        self._lock = threading.Lock()
        self._map: _core.FileMap | None = None
        self._was_mapped = False
        self._reads = 0

    @property
    def size(self) -> int:
        """The size now, asked of the system each time. The file is not opened for it."""
        if self._descriptor >= 0:
            return os.fstat(self._descriptor).st_size
        try:
            return self.path.stat().st_size
        except OSError as error:
            raise unreadable(self.path, error) from error

    @property
    def descriptor(self) -> int:
        """The open file's."""
        if self._descriptor < 0:
            with self._lock:
                if self._descriptor < 0:
                    self._descriptor = self._opened()
        return self._descriptor

    def _opened(self) -> int:
        try:
            return open_regular(self.path)
        except StorageError:
            raise
        except OSError as error:
            raise unreadable(self.path, error) from error

    def read_at(self, offset: int, size: int) -> bytes:
        """Return `size` bytes from `offset` on; fewer only at the end of the file."""
        pieces, left = [], size
        while left:
            piece = os.pread(self.descriptor, left, offset)
            if not piece:
                break
            pieces.append(piece)
            offset += len(piece)
            left -= len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    @property
    def map(self) -> _core.FileMap | None:
        """The open file as memory, once it is read at so many places that a map takes less time than reading."""
        if self._map is not None and not self._map.is_whole:
            self._map = None
        elif self._reads and not self._was_mapped:
            self._map_if_worth_it()
        return self._map

    def _map_if_worth_it(self) -> None:
        if self._reads * _MAPPED_AT_ONCE < os.fstat(self.descriptor).st_size:
            return
        with self._lock:
            if not self._was_mapped:
                self._map = _core.map_file(self._descriptor, mapped_at_most())
                self._was_mapped = True

    def was_read(self, places: int) -> None:
        """Take notice that the open file was read at so many places, each by itself."""
        self._reads += places

    def will_be_read(self, places: int) -> None:
        """Take notice that it will be, before it is closed, unless others want to be open."""
        self._reads = max(self._reads, places)

    def close(self) -> None:
        """Let go of the descriptor; reading again opens the file again."""
        self._map, self._was_mapped, self._reads = None, False, 0
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __del__(self, close: Callable[[int], None] = os.close) -> None:
        # Bound here: at the end of a program, this can be called after the modules were emptied.
        if self._descriptor >= 0:
            close(self._descriptor)

    def __reduce__(self) -> tuple[Any, ...]:
        return LocalFile, (self.path,)


class OpenFiles:
    """Keeps files open that are read now and then, yet never more than `most` of them.

    Args:
        most: How many stay open when nobody uses them.
        files: How many files there are at all. Where there is room for all, none is ever closed.
    """

    def __init__(self, most: int, files: int | None = None) -> None:
        self._most = most
        self._all_stay = files is not None and files <= most
        self._files = files
        self._users: OrderedDict[LocalFile, int] = OrderedDict()
        self._lock = threading.Lock()

    def borrow(self, file: LocalFile) -> int:
        """Return the descriptor, which stays open until `give_back`."""
        if self._all_stay:
            return file.descriptor
        with self._lock:
            self._users[file] = self._users.get(file, 0) + 1
            self._users.move_to_end(file)
        return file.descriptor

    def give_back(self, file: LocalFile) -> None:
        """Let the file be closed when others are wanted."""
        if self._all_stay:
            return
        with self._lock:
            self._users[file] -= 1
            if len(self._users) > self._most:
                idle = next((old for old, users in self._users.items() if not users), None)
                if idle is not None:
                    del self._users[idle]
                    idle.close()

    def __reduce__(self) -> tuple[Any, ...]:
        return OpenFiles, (self._most, self._files)


class LentFile:
    """A file of this machine that stays open between reads only as long as there is room for it."""

    def __init__(self, file: LocalFile, open_files: OpenFiles) -> None:
        self._file = file
        self._open_files = open_files

    @property
    def name(self) -> str:
        """The path."""
        return self._file.name

    @property
    def size(self) -> int:
        """The size now."""
        return LocalFile(self._file.path).size

    def read_at(self, offset: int, size: int) -> bytes:
        """Return `size` bytes from `offset` on; fewer only at the end of the file."""
        try:
            self._open_files.borrow(self._file)
            return self._file.read_at(offset, size)
        finally:
            self._open_files.give_back(self._file)


class ObjectFile:
    """A seekable file object that someone else opened and will close."""

    def __init__(self, file: IO[bytes], name: str | None = None) -> None:
        self._file = file
        own = getattr(file, "name", None)
        self.name = name or (own if isinstance(own, str) else f"<{type(file).__name__}>")
        self._lock = threading.Lock()
        with self._lock:
            self.size = file.seek(0, os.SEEK_END)

    def read_at(self, offset: int, size: int) -> bytes:
        """Return `size` bytes from `offset` on; fewer only at the end of the file."""
        with self._lock:
            self._file.seek(offset)
            return _read_all(self._file, size)


class PipeFile:
    """What can only be read from front to back, such as the standard input.

    The beginning is kept, so that it can be looked at before it is read.
    """

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
        """How many bytes there are; of a pipe that has not ended, more than there can be."""
        return self._at if self._ended else 1 << 62

    def read_at(self, offset: int, size: int) -> bytes:
        """Return `size` bytes from `offset` on; fewer only at the end.

        Raises:
            StorageError: They have been read already, or are not the next ones.
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


def _read_all(file: IO[bytes], size: int) -> bytes:
    """Return `size` bytes; fewer only at the end."""
    pieces, left = [], size
    while left and len(piece := read_piece(file, left)):
        pieces.append(piece)
        left -= len(piece)
    return bytes(pieces[0]) if len(pieces) == 1 else b"".join(pieces)


def given_file(where: Any) -> ByteFile | None:
    """Return the file that the caller opened, or the standard input for `"-"`; None if `where` is no open file.

    Raises:
        TypeError: It is nothing that could be read.
    """
    if where == "-":
        where = sys.stdin.buffer
    if isinstance(where, str | os.PathLike | Sequence) and not isinstance(where, bytes):
        return None
    if not hasattr(where, "read"):
        message = f"expected a path, a list of paths or an open file, found {type(where).__name__}"
        raise TypeError(message)
    seekable = getattr(where, "seekable", None)
    return ObjectFile(where) if seekable is not None and seekable() else PipeFile(where)
