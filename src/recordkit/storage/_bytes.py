"""Bytes: where those of a file come from, at any place, whatever kind of file it is."""

from __future__ import annotations

import os
import threading
from typing import IO, TYPE_CHECKING, Protocol

from recordkit.errors import StorageError

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any


class ByteFile(Protocol):
    """What can be read at any place, from many threads.

    Attributes:
        name: What errors call it.
        size: How many bytes there are.
    """

    @property
    def name(self) -> str: ...

    @property
    def size(self) -> int: ...

    def read_at(self, offset: int, size: int) -> bytes:
        """Return `size` bytes from `offset` on; fewer only at the end of the file."""
        ...


class LocalFile:
    """A file of this machine, opened when it is first read.

    Pickling keeps the path only; the copy opens the file again.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = -1
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        """The path."""
        return str(self.path)

    @property
    def size(self) -> int:
        """The size now, asked of the system each time."""
        return os.fstat(self.descriptor).st_size

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
            return os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            message = f"{self.path}: cannot be read: {os.strerror(error.errno or 0)}"
            raise StorageError(message, path=str(self.path), errno=error.errno) from error

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

    def close(self) -> None:
        """Let go of the descriptor; reading again opens the file again."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __del__(self) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        return LocalFile, (self.path,)


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
            pieces, left = [], size
            while left and (piece := self._file.read(left)):
                pieces.append(piece)
                left -= len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)
