"""Containers: the headers and checksums that gzip (RFC 1952) and zlib (RFC 1950) put around a deflate stream."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal, Protocol, cast

from . import _gzip

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import Buffer

Zipped = Literal["gzip", "zlib"]


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
