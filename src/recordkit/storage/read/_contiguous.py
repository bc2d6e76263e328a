"""Contiguous bytes: bytes without a gap, to be read a second time where the first reading finds damage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol, cast

from recordkit.codecs import Gap

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import IO

    from typing_extensions import Buffer

    from recordkit.filesystems import ByteFile

_PIECE: Final = 1 << 20
_UNKNOWN: Final = 1 << 62


class ByteSource(Protocol):
    """Bytes without a gap."""

    @property
    def whole(self) -> bool:
        """Whether it ends where the file ends."""
        ...

    @property
    def had(self) -> int:
        """How many bytes it had when it was opened, as far as is known."""
        ...

    def read_at(self, offset: int, size: int) -> bytes: ...

    def left(self, offset: int, size: int = 0) -> int:
        """Return how many bytes there are from `offset` on, or a very large number if that is not known yet.

        It is always known if there are fewer than `size`.
        """
        ...

    def taken(self, offset: int, size: int) -> Buffer:
        """Return bytes, and forget them and all before them."""
        ...

    def opened(self, offset: int) -> int | IO[bytes]:
        """Return what a `records.Reader` reads from `offset` on."""
        ...

    def forget(self, offset: int) -> None:
        """Forget the bytes before `offset`."""


class Plain:
    """A whole file."""

    whole = True

    def __init__(self, file: ByteFile) -> None:
        self._file = file
        self._local = file.local
        self.had = 0 if self._local is None else self._local.had or file.size
        self.read_at = self.taken = file.read_at

    def left(self, offset: int, size: int = 0) -> int:
        return max(0, self._file.size - offset)

    def opened(self, offset: int) -> int | IO[bytes]:
        return _Opened(self, offset).file if self._local is None else self._local.descriptor

    def forget(self, offset: int) -> None:
        pass


class ContiguousBytes:
    """The uncompressed bytes of a file, up to the next gap.

    Attributes:
        gap: What ended them; None until then, and at the end of the file.
        end: Where they end, as far as is known.
    """

    def __init__(self, pieces: Iterator[bytes | Gap], start: int) -> None:
        self._pieces = pieces
        self._bytes = bytearray()
        self._start = self.end = start
        self._needed = start
        self._ended = False
        self.gap: Gap | None = None

    had = 0

    @property
    def whole(self) -> bool:
        return self.gap is None

    def read_at(self, offset: int, size: int) -> bytes:
        self.left(offset, size)
        begin = offset - self._start
        return bytes(memoryview(self._bytes)[begin : begin + size])

    def _pull(self) -> None:
        piece = next(self._pieces, None)
        if piece is None or isinstance(piece, Gap):
            self.gap, self._ended = piece, True
            return
        del self._bytes[: self._needed - self._start]
        self._bytes += piece
        self.end += len(piece)
        self._start = self.end - len(self._bytes)

    def left(self, offset: int, size: int = 0) -> int:
        while self.end < offset + size and not self._ended:
            self._pull()
        return max(0, self.end - offset) if self._ended else _UNKNOWN

    def taken(self, offset: int, size: int) -> Buffer:
        self.left(offset, size)
        del self._bytes[: offset - self._start]
        data, self._bytes = self._bytes, self._bytes[size:]
        self._start = self._needed = offset + len(data) - len(self._bytes)
        return memoryview(data)[:size]

    def opened(self, offset: int) -> int | IO[bytes]:
        return _Opened(self, offset).file

    def forget(self, offset: int) -> None:
        self._needed = offset


class _Opened:
    """A source as a file object, with what a reader needs."""

    def __init__(self, source: ByteSource, offset: int) -> None:
        self._source = source
        self._at = offset

    @property
    def file(self) -> IO[bytes]:
        return cast("IO[bytes]", self)

    def readinto(self, buffer: Buffer) -> int:
        view = memoryview(buffer).cast("B")
        # Small pieces: after damage, what was not used of a piece is read again.
        piece = self._source.read_at(self._at, min(len(view), _PIECE))
        view[: len(piece)] = piece
        self._at += len(piece)
        return len(piece)
