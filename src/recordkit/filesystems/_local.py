"""Local files: reads a file on this machine through a descriptor or a map."""

from __future__ import annotations

import os
import stat
import threading
from typing import TYPE_CHECKING

from recordkit import _core
from recordkit.errors import StorageError

from ._local_writes import TOO_MANY, TOO_MANY_CODES
from ._map_limit import mapped_at_most
from ._pieces import cut_short
from ._protocol import ByteFile

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Any

_MAPPED_AT_ONCE = 64 << 10  # how much of a file the system maps at one page fault

_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def open_regular(path: Path) -> int:
    """Open a file for reading, and return its descriptor. Never blocks, as opening a pipe would.

    Raises:
        StorageError: It is a folder, a pipe, a socket or a device.
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
    """Return the error for a file or folder that cannot be read."""
    message = f"{path}: cannot be read: {os.strerror(error.errno or 0)}"
    if error.errno in TOO_MANY_CODES:
        message += f"\n  {TOO_MANY}"
    return StorageError(message, path=str(path), errno=error.errno)


class LocalFile(ByteFile):
    """A file of this machine, opened when it is first read.

    Pickling keeps the path, the first size and the first modification time; the copy opens the file again.

    Args:
        path: Where it is.
        had: Its size when it was first opened, if known.
        written: Its modification time then, in nanoseconds.
    """

    def __init__(self, path: Path, had: int = 0, written: int = 0) -> None:
        self.path = path
        self.had = had
        self._written = written
        self.name = str(path)
        self._descriptor = -1
        self._lock = threading.Lock()
        self._map: _core.FileMap | None = None
        self._was_mapped = False
        self._reads = 0

    @property
    def size(self) -> int:
        """The current size. Does not open the file."""
        return self._facts().st_size

    def _facts(self) -> os.stat_result:
        return os.fstat(self._descriptor) if self._descriptor >= 0 else self.stat()

    def stat(self) -> os.stat_result:
        """Return the status of what is under this name now.

        Raises:
            StorageError: Nothing is, or the status cannot be read.
        """
        try:
            return self.path.stat()
        except OSError as error:
            raise unreadable(self.path, error) from error

    @property
    def local(self) -> LocalFile:
        """This file."""
        return self

    @property
    def version(self) -> str:  # type: ignore[override]
        """The file's inode number, size and modification time."""
        return version_of(self._facts())

    def reopened(self) -> LocalFile:
        """Return the same file with a descriptor of its own. Both know its first size."""
        if not self._written:
            self._note(self._facts())
        return LocalFile(self.path, self.had, self._written)

    def _note(self, facts: os.stat_result) -> None:
        self.had = max(self.had, facts.st_size)
        self._written = self._written or facts.st_mtime_ns

    @property
    def descriptor(self) -> int:
        """The descriptor of the open file."""
        if self._descriptor < 0:
            with self._lock:
                if self._descriptor < 0:
                    self._descriptor = self._opened()
        return self._descriptor

    def _opened(self) -> int:
        try:
            descriptor = open_regular(self.path)
            self._note(os.fstat(descriptor))
            return descriptor
        except StorageError:
            raise
        except OSError as error:
            raise unreadable(self.path, error) from error

    def check_not_truncated(self, record: int | None = None, offset: int | None = None) -> None:
        """Raise if the file became shorter."""
        size = self.size
        if size < self.had:
            raise cut_short(self.name, self.had, size, record=record, offset=offset)

    def is_as_opened(self) -> bool:
        """Whether its modification time is still that of the first opening."""
        return self._facts().st_mtime_ns == self._written

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
        """The open file as a map, once enough random reads were made to make mapping faster."""
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

    def note_reads(self, places: int) -> None:
        """Count random reads of the open file."""
        self._reads += places

    def expect_reads(self, places: int) -> None:
        """Hint that about `places` random reads follow before it is closed."""
        self._reads = max(self._reads, places)

    def close(self) -> None:
        """Close the descriptor; the next read opens the file again."""
        self._map, self._was_mapped, self._reads = None, False, 0
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __del__(self, close: Callable[[int], None] = os.close) -> None:
        # `close` is bound here: when a program ends, modules may be emptied before this is called.
        if self._descriptor >= 0:
            close(self._descriptor)

    def __reduce__(self) -> tuple[Any, ...]:
        return LocalFile, (self.path, self.had, self._written)


def kind_of(mode: int) -> str | None:
    """Describe what is neither a file nor a folder, from its mode; return None for a file or a folder."""
    return None if stat.S_ISREG(mode) or stat.S_ISDIR(mode) else _KINDS.get(stat.S_IFMT(mode), "something else")


def version_of(facts: os.stat_result) -> str:
    """Return a text that changes whenever the content of a file does."""
    return f"{facts.st_ino:x}-{facts.st_size:x}-{facts.st_mtime_ns:x}"
