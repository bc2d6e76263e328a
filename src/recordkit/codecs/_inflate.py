"""Inflating: the uncompressed bytes of gzip and zlib files, from front to back, in bounded memory.

This module reads headers and checksums itself and leaves only the deflate streams to a library, so that every kind of
damage has its own name; no library names them. Nothing here knows records. Members that give their size, and so can be
read one by one, are in `_gzip_members.py`, reading at any offset is in `_seek.py`, and damaged files are in
`_gzip_salvage.py`.
"""

from __future__ import annotations

import copy
import struct
import zlib
from dataclasses import dataclass
from enum import Enum
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias, cast

from recordkit.errors import CorruptRecordError

from . import _gzip

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from typing_extensions import Buffer

    from recordkit.filesystems import ByteFile


Zipped: TypeAlias = Literal["gzip", "zlib"]

_PIECE: Final = 1 << 18  # read from the file at once: larger ones were no faster
_LEAST: Final = 1 << 16  # inflated at once, even for a small buffer: each step copies the input it does not use
_MOST: Final = 1 << 22  # inflated at once for a large buffer, since a bomb would fill it
_FIRST_FEED: Final = 1 << 12
_SURE_PAYLOAD: Final = 256 << 20
_PAYLOAD_TIMES: Final = 64
_MOST_PAYLOAD: Final = 2 << 30  # an Example cannot have more
_MOST_HEADER: Final = 1 << 18  # of gzip: the extra field has at most 64 KiB, and names are short


class Fault(Enum):
    """What can be wrong: its kind and its description; {} is gzip or zlib."""

    HEADER = "{}_damaged", "the {} header is damaged"
    STREAM = "{}_damaged", "the {} data is damaged and cannot be decompressed further"
    CHECKSUM = "{}_damaged", "the {} data decompresses, but not to what its checksum says"
    TORN = "{}_torn", "the file ends inside the {} data"
    NO_TRAILER = "{}_no_trailer", "the file ends before the checksum of the {} data"
    TRAILING = "{}_trailing", "bytes that are not {} follow the {} data"
    ZEROS = "zeros", "zeros follow the {} data"


class InflateError(Exception):
    """What is wrong with compressed bytes.

    Attributes:
        fault: The fault.
        kind: One word, such as `"gzip_torn"`.
        words: What is wrong, for people.
        start: Where the damaged member or stream starts, or the bytes that are not compressed data.
        at: The first byte that cannot be used.
    """

    def __init__(self, compression: Zipped, fault: Fault, start: int, at: int) -> None:
        kind, words = fault.value
        self.fault = fault
        self.kind = kind.replace("{}", compression)
        self.words = words.replace("{}", compression)
        self.start = start
        self.at = at
        super().__init__(compression, fault, start, at)

    def error(self, path: str) -> CorruptRecordError:
        """Return the error for users."""
        place = f"byte {self.start}" if self.at == self.start else f"byte {self.start}, found at byte {self.at}"
        message = f"{path}: {place}: {self.words}\n  recordkit.repair writes the intact records to a new file."
        return CorruptRecordError(message, path=path, offset=self.start, kind=self.kind)


class _Readable(Protocol):
    """A file whose bytes can be read."""

    def read_at(self, offset: int, size: int, /) -> bytes: ...


class _Decompressor(Protocol):
    """What this module uses of a decompressobj."""

    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    @property
    def unconsumed_tail(self) -> bytes: ...

    def decompress(self, data: Buffer, max_length: int, /) -> bytes: ...


class _Library(Protocol):
    """What this module uses of zlib and similar libraries."""

    error: type[Exception]

    def decompressobj(self, wbits: int, /) -> _Decompressor: ...


_ZLIB: Final = cast("_Library", zlib)


@cache
def fastest() -> _Library:
    """Return isal if it is installed (`Inflated` was about 1.7 times as fast with it), else zlib."""
    try:
        return cast("_Library", import_module("isal.isal_zlib"))
    except ImportError:
        return _ZLIB


def foreign_library_name() -> str:
    """Return the name and version of the library that decompresses files of other programs.

    >>> foreign_library_name().split()[0] in ("isal", "zlib")
    True
    """
    return f"zlib {zlib.ZLIB_RUNTIME_VERSION}" if fastest() is _ZLIB else f"isal {import_module('isal').__version__}"


class _Input:
    """The bytes of a file from `at` on, with one piece in memory at a time."""

    def __init__(self, file: ByteFile, at: int) -> None:
        self._file = file
        self.at = at
        self._start = at
        self._piece = b""
        self._ahead = _FIRST_FEED

    def peek(self, count: int) -> memoryview:
        """Return the next bytes without consuming them; fewer than `count` only at the end of the file."""
        begin = self.at - self._start
        if not 0 <= begin <= len(self._piece):
            self._start, self._piece, begin = self.at, b"", 0
        if begin + count > len(self._piece):
            kept = self._piece[begin:]
            more = self._file.read_at(self.at + len(kept), max(count, self._ahead))
            self._start, self._piece, begin = self.at, kept + more if kept else more, 0
            self._ahead = min(_PIECE, 4 * self._ahead)
        return memoryview(self._piece)[begin : begin + count]


class Inflater:
    """Decompresses a file step by step, up to the first error.

    Attributes:
        raw: How many bytes it has returned.
        start: Where the current member starts.
    """

    def __init__(
        self, file: ByteFile, compression: Zipped, at: int = 0, *, library: _Library = _ZLIB, feed: int = _PIECE
    ) -> None:
        self.raw = 0
        self.start = at
        self._file = file
        self._compression = compression
        self._container = container_of(compression)
        self._library = library
        self._most_feed = feed
        self._input = _Input(file, at)
        self._members = 0
        self._stream: _Decompressor | None = None
        self._careful = False
        self._feed = _FIRST_FEED

    @property
    def at(self) -> int:
        """The offset of the first byte it has not consumed."""
        return self._input.at

    def step(self, most: int) -> bytes:
        """Return the next bytes, `most` or fewer; none at the end.

        Raises:
            InflateError: The file is damaged here; all earlier bytes were returned. Calling again raises again.
        """
        while True:
            try:
                if self._stream is None:
                    if not self._open():
                        return b""
                elif self._stream.eof:
                    self._close()
                elif piece := self._inflate(most):
                    return piece
            except InflateError:
                if self._careful or self._stream is None:
                    raise
                self._open_again()

    def copy(self) -> Self:
        """Return an independent copy that continues from here. Only zlib can copy its streams."""
        other = copy.copy(self)
        other._input = _Input(self._file, self._input.at)  # without the piece in memory
        other._stream = self._stream.copy() if self._stream is not None else None  # type: ignore[attr-defined]
        return other

    def _error(self, fault: Fault) -> InflateError:
        return InflateError(self._compression, fault, self.start, self.at)

    def _open(self) -> bool:
        """Read the header of a member; return False at the clean end of the file."""
        self.start = self._input.at
        head = self._input.peek(10)
        if not head:
            return False
        if self._members and (self._compression == "zlib" or not b"\x1f\x8b".startswith(bytes(head[:2]))):
            zeros = all_zeros(self._file, self.start, self._file.size)
            raise self._error(Fault.ZEROS if zeros else Fault.TRAILING)
        self._body = self._input.at = self.start + self._header_bytes()
        self._members += 1
        self._stream = self._library.decompressobj(-zlib.MAX_WBITS)
        self._given, self._skip = 0, 0
        self._sum = self._container.first_checksum
        self._careful = False
        return True

    def _header_bytes(self) -> int:
        for count in (10, 512, _MOST_HEADER):
            data = self._input.peek(count)
            try:
                return self._container.header_bytes(data)
            except ValueError:
                break
            except NeedMoreBytes:
                if len(data) < count:
                    raise self._error(Fault.TORN) from None
        raise self._error(Fault.HEADER)

    def _open_again(self) -> None:
        """Start the member again, to get every byte up to the damage.

        A library that fails drops what it had decompressed in that call. And only zlib is trusted to find the end of a
        stream: isal can lose some bytes after one that is nearly empty.
        """
        self._input.at = self._body
        self._stream = _ZLIB.decompressobj(-zlib.MAX_WBITS)
        self._skip = self._given
        self._feed = self._most_feed
        self._careful = True

    def _inflate(self, most: int) -> bytes:
        assert self._stream is not None
        data = self._input.peek(self._feed)
        before = self._stream.copy() if self._careful else None  # type: ignore[attr-defined]
        try:
            piece = self._stream.decompress(data, most)
        except (zlib.error, self._library.error):
            if before is None or len(data) <= 1:
                raise self._error(Fault.STREAM) from None
            self._stream, self._feed = before, max(1, len(data) // 16)
            return b""
        left = self._stream.unused_data if self._stream.eof else self._stream.unconsumed_tail
        used = len(data) - len(left)  # below 0 if isal held more than it needed
        self._input.at += used
        if not (piece or used or self._stream.eof):
            raise self._error(Fault.STREAM if data else Fault.TORN)
        if not self._careful:
            self._feed = min(self._most_feed, 2 * self._feed)
        return self._taken(piece)

    def _taken(self, piece: bytes) -> bytes:
        """Drop bytes that were returned before, and count the rest."""
        if self._skip:
            skipped = min(self._skip, len(piece))
            self._skip -= skipped
            piece = piece[skipped:]
        self._given += len(piece)
        self.raw += len(piece)
        self._sum = self._container.checksum(piece, self._sum)
        return piece

    def _close(self) -> None:
        """Check the trailer of a member."""
        trailer = self._input.peek(self._container.trailer_bytes)
        if len(trailer) < self._container.trailer_bytes:
            # TensorFlow ignores both; with gzip the content is so often complete that this has a kind of its own.
            raise self._error(Fault.NO_TRAILER if self._compression == "gzip" else Fault.TORN)
        if trailer != self._container.trailer(self._sum, self._given) or self._skip:
            raise self._error(Fault.CHECKSUM)
        self._input.at += len(trailer)
        self._stream = None
        # A library copies what it does not use, and members may be tiny: start with the size of the last one.
        self._feed = max(_FIRST_FEED, min(self._most_feed, self._input.at - self.start))


def most_payload(file_bytes: int) -> int:
    """Return the longest payload that a compressed file of this size is expected to hold.

    A few MB can decompress to many GB, and only malicious programs write such records.

    >>> most_payload(6 << 20) >> 20
    384
    """
    return min(_MOST_PAYLOAD, max(_SURE_PAYLOAD, _PAYLOAD_TIMES * file_bytes))


def all_zeros(file: _Readable, start: int, end: int) -> bool:
    """Return whether there are only zeros from `start` to `end`."""
    while start < end:
        piece = file.read_at(start, min(_PIECE, end - start))
        if piece.count(0) < len(piece):
            return False
        if not piece:
            break
        start += len(piece)
    return True


class Inflated:
    """The uncompressed bytes of a gzip or zlib file, to be read from front to back.

    gzip may have any number of members, zlib is one stream. Memory stays within a few MiB, whatever the file claims.

    >>> import gzip, io
    >>> from recordkit.filesystems import ObjectFile
    >>> zipped = gzip.compress(b"one") + gzip.compress(b"two")
    >>> file, buffer = Inflated(ObjectFile(io.BytesIO(zipped)), "gzip"), bytearray(10)
    >>> [bytes(buffer[:count]) for count in iter(lambda: file.readinto(buffer), 0)]
    [b'one', b'two']
    """

    def __init__(self, file: ByteFile, compression: Zipped) -> None:
        self._file = file
        self._inflater = Inflater(file, compression, library=fastest())
        self._left = memoryview(b"")

    def readinto(self, buffer: Buffer) -> int:
        """Put the next bytes into `buffer` and return how many; 0 only at the clean end, or if the buffer is empty.

        Raises:
            CorruptRecordError: The file is damaged here. All earlier bytes were returned.
        """
        view = memoryview(buffer).cast("B")
        if not self._left:
            try:
                self._left = memoryview(self._inflater.step(min(max(len(view), _LEAST), _MOST)))
            except InflateError as error:
                self._file.check_not_truncated()
                raise error.error(self._file.name) from None
            if not self._left:
                self._file.check_not_truncated()
        count = min(len(view), len(self._left))
        view[:count] = self._left[:count]
        self._left = self._left[count:]
        return count


# --- What gzip (RFC 1952) and zlib (RFC 1950) put around a deflate stream


class NeedMoreBytes(Exception):  # noqa: N818 - it never leaves the package
    """The header is longer than the bytes that were passed."""


def gzip_header_bytes(data: Buffer) -> int:
    """Return the size of the gzip header that `data` starts with.

    Raises:
        ValueError: There is no header, or it is damaged.
        NeedMoreBytes: It is longer than `data`.

    >>> import gzip
    >>> gzip_header_bytes(gzip.compress(b""))
    10
    """
    head = bytes(memoryview(data)[:10])
    if not b"\x1f\x8b\x08".startswith(head[:3]) or (len(head) > 3 and head[3] & 0xE0):
        message = "no gzip header"
        raise ValueError(message)
    if len(head) < 10:
        raise NeedMoreBytes
    return _after_options(bytes(data), head[3]) if head[3] & ~1 else 10


def _after_options(data: bytes, flags: int) -> int:
    """Where the header ends: an extra field (4), a name (8), a comment (16), a checksum of all these (2)."""
    at = 10
    if flags & 4:
        at += 2 + int.from_bytes(data[at : at + 2], "little")
    for flag in (8, 16):
        if flags & flag:
            at = data.find(b"\0", at) + 1 or len(data) + 1
    if flags & 2:
        if data[at : at + 2] != (zlib.crc32(data[:at]) & 0xFFFF).to_bytes(2, "little") and at + 2 <= len(data):
            message = "the checksum of the gzip header does not match"
            raise ValueError(message)
        at += 2
    if at > len(data):
        raise NeedMoreBytes
    return at


def zlib_header_bytes(data: Buffer) -> int:
    """Return the size of the zlib header that `data` starts with; raises as `gzip_header_bytes` does."""
    head = bytes(memoryview(data)[:2])
    # Method 8, a window of at most 32 KiB, no preset dictionary, and the check that both bytes make.
    if head and (head[0] & 0x0F != 8 or head[0] >> 4 > 7):
        message = "no zlib header"
        raise ValueError(message)
    if len(head) < 2:
        raise NeedMoreBytes
    if int.from_bytes(head, "big") % 31 or head[1] & 0x20:
        message = "no zlib header"
        raise ValueError(message)
    return 2


class _Checksums(Protocol):
    """What this module uses of zlib, or of the package `deflate`."""

    def crc32(self, data: Buffer, value: int, /) -> int: ...

    def adler32(self, data: Buffer, value: int, /) -> int: ...


@dataclass(frozen=True)
class Container:
    """What differs between gzip and zlib: the header before the stream and the trailer after it."""

    header_bytes: Callable[[Buffer], int]
    checksum: Callable[[Buffer, int], int]
    first_checksum: int
    trailer_bytes: int
    trailer: Callable[[int, int], bytes]


@cache
def container_of(compression: Zipped) -> Container:
    """Return the container of gzip or zlib, with the fastest checksum there is.

    >>> container_of("zlib").trailer(container_of("zlib").checksum(b"abc", 1), 3).hex()
    '024d0127'
    """
    # zlib's own did 4 GB/s and libdeflate's 20 and more, where isal decompresses at 0.65.
    library = cast("_Checksums", _gzip._libdeflate() or zlib)
    if compression == "gzip":
        return Container(gzip_header_bytes, library.crc32, 0, 8, _gzip_trailer)
    return Container(zlib_header_bytes, library.adler32, 1, 4, lambda adler, _: adler.to_bytes(4, "big"))


def _gzip_trailer(crc: int, size: int) -> bytes:
    return struct.pack("<II", crc, size & 0xFFFFFFFF)
