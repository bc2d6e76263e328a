"""Compression of shards: gzip in members that can be found and read one by one, zlib as a single stream.

Nothing here knows files or records; members are made of bytes that the caller has cut between records.
The format of members is in docs/format/gzip.md, the choice of library in docs/decisions/0004-gzip-library.md.
"""

from __future__ import annotations

import re
import struct
import zlib
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias, cast

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from typing_extensions import Buffer

__all__ = [
    "Compression",
    "MemberHeader",
    "ZlibStream",
    "compress_member",
    "iter_member_headers",
    "library_name",
    "looks_compressed",
    "read_member_header",
]

Compression: TypeAlias = Literal["gzip", "zlib"] | None

# Magic, method, flags, mtime, extra flags, system; length of all subfields; id and length of ours; its three numbers.
_HEADER: Final = struct.Struct("<2sBBIBB H 2sH QQQ")
_START: Final = struct.Struct("<2sBBIBB H")
_SUBFIELD: Final = struct.Struct("<2sH")
_SIZES: Final = struct.Struct("<QQQ")
_TRAILER: Final = struct.Struct("<II")

_MAGIC: Final = b"\x1f\x8b"
_DEFLATE: Final = 8
_FEXTRA: Final = 4
_UNKNOWN_SYSTEM: Final = 255  # naming the real one would make equal shards differ between systems
_OURS: Final = b"RK"

_MOST_PER_BYTE: Final = 1032  # deflate cannot make more than this of one byte


class _Deflate(Protocol):
    """What this module uses of the package `deflate`."""

    __version__: str

    def crc32(self, data: Buffer, /) -> int: ...

    def deflate_compress(self, data: Buffer, compresslevel: int, /) -> bytearray: ...


@cache
def _libdeflate() -> _Deflate | None:
    try:
        return cast("_Deflate", import_module("deflate"))
    except ImportError:
        return None


def library_name(compression: Literal["gzip", "zlib"] = "gzip") -> str:
    """Return the name and version of the library that compresses.

    The same records at the same level give the same bytes only under the same name.

    >>> library_name("zlib").split()[0]
    'zlib'
    """
    library = _libdeflate() if compression == "gzip" else None
    return f"deflate {library.__version__}" if library else f"zlib {zlib.ZLIB_RUNTIME_VERSION}"


@dataclass(frozen=True)
class MemberHeader:
    """The header of a member.

    Attributes:
        header_bytes: The size of its header; the deflate stream follows it.
        member_bytes: The size of the whole member, from its first byte to the next member's.
        raw_bytes: Its size when decompressed.
        records: How many records it holds.
    """

    header_bytes: int
    member_bytes: int
    raw_bytes: int
    records: int


def compress_member(raw: Buffer | Sequence[Buffer], records: int, level: int) -> bytes:
    """Return one gzip member that holds `raw` and gives its size in its header.

    Equal arguments give equal bytes, from any thread, as long as `library_name()` is the same. Where the package
    `deflate` is missing, Python's own zlib is used: the members are as good, but differ in bytes and take longer.

    Args:
        raw: Complete framed records: one buffer, or a list or tuple of several that belong together.
        records: How many records.
        level: 0 (stored) to 9.

    >>> member = compress_member([b"one", b"two"], records=2, level=6)
    >>> import gzip
    >>> gzip.decompress(member)
    b'onetwo'
    >>> header = read_member_header(member)
    >>> header.raw_bytes, header.records, header.member_bytes == len(member)
    (6, 2, True)
    """
    if not 0 <= level <= 9:
        message = f"a compression level is 0 to 9, found {level!r}"
        raise ValueError(message)
    pieces: Sequence[Buffer] = raw if isinstance(raw, list | tuple) else [cast("Buffer", raw)]
    raw_bytes = sum(memoryview(piece).nbytes for piece in pieces)
    library = _libdeflate()
    body, crc = _with_libdeflate(library, pieces, level) if library else _with_zlib(pieces, level)
    member_bytes = _HEADER.size + sum(map(len, body)) + _TRAILER.size
    sizes = member_bytes, raw_bytes, records
    extra_bytes = _SUBFIELD.size + _SIZES.size
    header = _HEADER.pack(*(_MAGIC, _DEFLATE, _FEXTRA, 0, 0, _UNKNOWN_SYSTEM), extra_bytes, _OURS, _SIZES.size, *sizes)
    return b"".join([header, *body, _TRAILER.pack(crc, raw_bytes & 0xFFFFFFFF)])


def _with_libdeflate(library: _Deflate, pieces: Sequence[Buffer], level: int) -> tuple[list[bytearray], int]:
    data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
    crc = library.crc32(data)
    if level == 6 and crc % 4 == 0:
        # One member in four at 7: with none, tables of numbers came out 3.2 % larger than at zlib's level 6; with all,
        # more than a third of the speed was gone. The checksum decides, so that equal members give equal bytes.
        level = 7
    return [library.deflate_compress(data, level)], crc


def _with_zlib(pieces: Sequence[Buffer], level: int) -> tuple[list[bytes], int]:
    stream = zlib.compressobj(level, wbits=-zlib.MAX_WBITS)
    body, crc = [], 0
    for piece in pieces:
        body.append(stream.compress(piece))
        crc = zlib.crc32(piece, crc)
    return [*body, stream.flush()], crc


def read_member_header(data: Buffer) -> MemberHeader | None:
    """Return the header of the member at the start of `data`, or None if recordkit did not write it.

    Other gzip members, bytes that are not gzip and truncated headers give None. The numbers are hints for finding the
    next member and for allocating memory; only checksums show whether a member is intact.

    Args:
        data: The start of a member; its header is enough.

    >>> read_member_header(compress_member(b"", records=0, level=0))
    MemberHeader(header_bytes=40, member_bytes=53, raw_bytes=0, records=0)
    >>> import gzip
    >>> print(read_member_header(gzip.compress(b"made elsewhere")))
    None
    """
    view = memoryview(data).cast("B")
    if len(view) < _START.size:
        return None
    magic, method, flags, _, _, _, extra_bytes = _START.unpack_from(view)
    header_bytes = _START.size + extra_bytes
    if (magic, method, flags) != (_MAGIC, _DEFLATE, _FEXTRA) or len(view) < header_bytes:
        return None
    at = _START.size
    while at + _SUBFIELD.size <= header_bytes:
        name, length = _SUBFIELD.unpack_from(view, at)
        at += _SUBFIELD.size
        if (name, length) == (_OURS, _SIZES.size) and at + length <= header_bytes:
            return _checked(MemberHeader(header_bytes, *_SIZES.unpack_from(view, at)))
        at += length
    return None


def _checked(header: MemberHeader) -> MemberHeader | None:
    """Return the header if its numbers are possible: steps go forward, and few bytes cannot claim much memory."""
    body_bytes = header.member_bytes - header.header_bytes - _TRAILER.size
    return header if body_bytes > 0 and header.raw_bytes <= body_bytes * _MOST_PER_BYTE else None


def iter_member_headers(data: Buffer) -> Iterator[tuple[int, MemberHeader]]:
    """Yield the offset and header of each complete member of `data`, up to the first foreign or truncated one.

    >>> shard = compress_member(b"one", 1, 0) + compress_member(b"two", 1, 0)
    >>> [offset for offset, _ in iter_member_headers(shard)], len(shard)
    ([0, 56], 112)
    """
    view, at = memoryview(data).cast("B"), 0
    while (header := read_member_header(view[at:])) and at + header.member_bytes <= len(view):
        yield at, header
        at += header.member_bytes


class ZlibStream:
    """Compresses one file as one zlib stream, since TensorFlow reads only the first.

    Python's own zlib does it, since libdeflate takes only whole buffers. Equal input gives equal output, however it is
    split, as long as `library_name("zlib")` is the same.

    >>> stream = ZlibStream(6)
    >>> data = stream.compress(b"one") + stream.compress(b"two") + stream.finish()
    >>> zlib.decompress(data)
    b'onetwo'
    """

    def __init__(self, level: int) -> None:
        if not 0 <= level <= 9:
            message = f"a compression level is 0 to 9, found {level!r}"
            raise ValueError(message)
        self._stream = zlib.compressobj(level)

    def compress(self, raw: Buffer) -> bytes:
        """Return the bytes that are ready to be written; often there are none."""
        return self._stream.compress(raw)

    def finish(self) -> bytes:
        """Return the rest of the stream and its checksum. Nothing can be compressed afterwards."""
        return self._stream.flush()


# JPEG, PNG, WebP, gzip, zstd and mp4, each with as many bytes as make a chance match in numbers or text unlikely.
_SIGNATURES: Final = re.compile(
    rb"\xff\xd8\xff[\xc0-\xfe]|\x89PNG\r\n\x1a\n|RIFF....WEBP|\x1f\x8b\x08[\x00-\x1f]"
    rb"|\x28\xb5\x2f\xfd|\x00\x00\x00.ftyp",
    re.DOTALL,
)
_SAMPLE: Final = 1 << 16
_TOO_SHORT: Final = 1 << 12  # how well a short payload compresses alone says little: it may resemble its neighbours
_HARDLY_SMALLER: Final = 0.97


def looks_compressed(payload_sample: bytes) -> bool:
    r"""Return whether compressing payloads like this one is likely to gain nothing.

    It is, if most of it follows the signature of a compressed format, or if its middle hardly shrinks. This is a guess
    from one payload, used for a hint.

    >>> looks_compressed(b"\n\x05image" + b"\x89PNG\r\n\x1a\n" + b"pixels" * 100)
    True
    >>> looks_compressed(b"the same words " * 1000)
    False
    """
    size = len(payload_sample)
    found = _SIGNATURES.search(payload_sample, 0, _SAMPLE)
    if found and size - found.start() > size // 2:
        return True
    if size < _TOO_SHORT:
        return False
    middle = max(0, (size - _SAMPLE) // 2)
    sample = payload_sample[middle : middle + _SAMPLE]
    return len(zlib.compress(sample, 1)) > _HARDLY_SMALLER * len(sample)
