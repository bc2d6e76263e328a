"""Members: the parts of a gzip shard that recordkit wrote. Each can be found and read without the others.

Their headers are written down in docs/format/gzip.md.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol, cast

from . import _gzip
from ._gzip import read_member_header

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from recordkit.filesystems import ByteFile

    from ._gzip import MemberHeader

_HEADER_BYTES: Final = 40  # of a member that recordkit wrote
_TRAILER: Final = struct.Struct("<II")
_ROOM: Final = 1 << 26  # allocated because a header says so; more only as bytes arrive


class _Libdeflate(Protocol):
    """What this module uses of the package `deflate`. It releases the GIL."""

    DeflateError: type[Exception]

    def crc32(self, data: Buffer, /) -> int: ...

    def deflate_decompress(self, data: Buffer, originalsize: int, /) -> bytearray: ...


@dataclass(frozen=True)
class Member:
    """Where a member is, and what it holds.

    Attributes:
        offset: Where it starts in the file.
        file_bytes: Its size there.
        raw_offset: Where its content starts, uncompressed.
        raw_bytes: The size of its content.
        first_record: How many records are before it.
        records: How many it holds.
    """

    offset: int
    file_bytes: int
    raw_offset: int
    raw_bytes: int
    first_record: int
    records: int


def members_of(file: ByteFile) -> tuple[Member, ...] | None:
    """List the gzip members recordkit wrote, from their headers alone; None if there are others.

    Sizes are confirmed by the members' trailers. Whether the content is intact shows only when it is read.

    >>> import io
    >>> from recordkit.filesystems import ObjectFile
    >>> shard = _gzip.compress_member(b"one", 1, 0) + _gzip.compress_member(b"four", 2, 0)
    >>> members = members_of(ObjectFile(io.BytesIO(shard)))
    >>> [(member.offset, member.raw_offset, member.first_record) for member in members]
    [(0, 0, 0), (56, 3, 1)]
    """
    members: list[Member] = []
    at, raw, record, size = 0, 0, 0, file.size
    head = file.read_at(0, _HEADER_BYTES)
    while header := read_member_header(head):
        members.append(Member(at, header.member_bytes, raw, header.raw_bytes, record, header.records))
        at, raw, record = at + header.member_bytes, raw + header.raw_bytes, record + header.records
        if at > size:
            return None
        window = file.read_at(at - 4, 4 + _HEADER_BYTES)  # the size of the content once more, and the next header
        if int.from_bytes(window[:4], "little") != header.raw_bytes & 0xFFFFFFFF:
            return None
        head = window[4:]
    return tuple(members) if members and at == size else None


def inflate_member(data: Buffer, header: MemberHeader | None = None) -> bytearray | bytes:
    """Return the content of one member that recordkit wrote.

    Memory is allocated as the header says up to 64 MiB; beyond that it grows with what is decompressed.

    Args:
        data: The member, from its first byte to its last.
        header: Its header, if it was read already.

    Raises:
        ValueError: It is damaged; the text says how, and not where.

    >>> inflate_member(_gzip.compress_member([b"one", b"two"], records=2, level=6))
    bytearray(b'onetwo')
    """
    view = memoryview(data).cast("B")
    header = header or read_member_header(view)
    if header is None or header.member_bytes != len(view):
        message = "the header of the gzip member is damaged"
        raise ValueError(message)
    body = view[header.header_bytes : -_TRAILER.size]
    library = cast("_Libdeflate | None", _gzip._libdeflate())
    raw: bytearray | bytes
    # Asked for no bytes, libdeflate checks nothing.
    if library is not None and 0 < header.raw_bytes <= _ROOM:
        raw, crc = _with_libdeflate(library, body, header.raw_bytes)
    else:
        raw, crc = _with_zlib(body, header.raw_bytes)
    if len(raw) != header.raw_bytes or _TRAILER.unpack(view[-_TRAILER.size :]) != (crc, len(raw) & 0xFFFFFFFF):
        message = "the gzip data decompresses, but not to what its checksum says"
        raise ValueError(message)
    return raw


def _with_libdeflate(library: _Libdeflate, body: memoryview, raw_bytes: int) -> tuple[bytearray, int]:
    try:
        raw = library.deflate_decompress(body, raw_bytes)
    except library.DeflateError:
        raise _damaged() from None
    return raw, library.crc32(raw)


def _with_zlib(body: memoryview, raw_bytes: int) -> tuple[bytes, int]:
    stream = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        raw = stream.decompress(body, raw_bytes + 1)  # one more would show that there is more
    except zlib.error:
        raise _damaged() from None
    if len(raw) <= raw_bytes and (not stream.eof or stream.unused_data):
        raise _damaged()
    return raw, zlib.crc32(raw)


def _damaged() -> ValueError:
    return ValueError("the gzip data is damaged and cannot be decompressed")
