"""Codecs: plain files, gzip and ZLIB, one object each, in one table. TensorFlow reads no others."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Final, Literal

from ._gzip import ZlibStream, compress_member
from ._gzip_members import members_of
from ._inflate import Inflated
from ._seek import Checkpoints

if TYPE_CHECKING:
    from collections.abc import Sequence

    from typing_extensions import Buffer

    from recordkit.filesystems import ByteFile

    from ._gzip import Compression
    from ._gzip_members import Member

_PIECE: Final = 1 << 12
_MAGIC: Final = b"\x1f\x8b\x08"


class Codec:
    """Plain files. The subclasses override what compressed files do differently.

    Attributes:
        name: What the user passes as `compression=`, and a manifest keeps.
        suffix: What follows `.tfrecord` in the names of shards.
        appendable: Whether bytes can follow the end of such a file.
        in_members: Whether blocks of records are compressed separately, so that each can be found and read alone.
        has_magic: Whether the first bytes are enough proof.
    """

    name: Compression = None
    suffix = ""
    appendable = True
    in_members = False
    has_magic = False
    _wbits = 0

    def recognises(self, head: bytes) -> bool:
        """Tell whether a file may be of this kind, from its first bytes. Any file may be a plain one."""
        return True

    def reader(self, file: ByteFile) -> Inflated:
        """Return the uncompressed bytes of a compressed file, from front to back, in bounded memory."""
        assert self.name is not None
        return Inflated(file, self.name)

    def seekable(self, file: ByteFile) -> ByteFile:
        """Return the uncompressed bytes, to be read at any offset."""
        return file if self.name is None else Checkpoints(file, self.name)

    def members(self, file: ByteFile) -> tuple[Member, ...] | None:
        """List the members that recordkit wrote, from their headers alone; None if there are others."""
        return None

    def compress(self, pieces: Sequence[Buffer], records: int, level: int) -> bytes:
        """Return a block of records in compressed form. Only if `in_members`."""
        raise NotImplementedError

    def stream(self, level: int) -> ZlibStream | None:
        """Return a compressor for a whole file as one stream; None if blocks are written separately."""
        return None

    def peek(self, file: ByteFile, most: int) -> tuple[bytes, Literal["end", "more", "error"]]:
        """Return up to `most` uncompressed bytes, and whether the file ends there, goes on, or is damaged."""
        raw, stream, at = bytearray(), zlib.decompressobj(self._wbits), 0
        while data := file.read_at(at, _PIECE):
            at += len(data)
            while data:
                if stream.eof:
                    # The first members may be empty.
                    if not self.in_members or not data.strip(b"\0"):
                        return bytes(raw), "end"
                    stream = zlib.decompressobj(self._wbits)
                try:
                    # In small steps: an error loses whatever the same call had inflated before.
                    raw += stream.decompress(data[:64], most - len(raw))
                except zlib.error:
                    return bytes(raw), "error"
                if len(raw) >= most:
                    return bytes(raw), "more"
                data = (stream.unused_data if stream.eof else stream.unconsumed_tail) + data[64:]
        return bytes(raw), "end" if stream.eof else "more"


class Gzip(Codec):
    """gzip, written as members that give their sizes, so that they can be found without decompressing."""

    name: Compression = "gzip"
    suffix = ".gz"
    in_members = True
    has_magic = True
    _wbits = 16 + zlib.MAX_WBITS

    def recognises(self, head: bytes) -> bool:
        """Tell whether the bytes start a gzip header."""
        return head.startswith(_MAGIC) or head == _MAGIC[:2]

    def members(self, file: ByteFile) -> tuple[Member, ...] | None:
        """List the members that recordkit wrote, from their headers alone; None if there are others."""
        return members_of(file) if file.seekable else None

    def compress(self, pieces: Sequence[Buffer], records: int, level: int) -> bytes:
        """Return a member."""
        return compress_member(pieces, records, level)


class Zlib(Codec):
    """ZLIB: one stream per file, since TensorFlow reads no second one."""

    name: Compression = "zlib"
    appendable = False
    _wbits = zlib.MAX_WBITS

    def recognises(self, head: bytes) -> bool:
        """Tell whether the first two bytes are a zlib header without a dictionary."""
        if len(head) < 2:
            return False
        method, flags = head[0], head[1]
        return method & 0x0F == 8 and method >> 4 <= 7 and (method << 8 | flags) % 31 == 0 and not flags & 0x20

    def stream(self, level: int) -> ZlibStream:
        """Return a compressor for a whole file."""
        return ZlibStream(level)


CODECS: Final[dict[str | None, Codec]] = {codec.name: codec for codec in (Codec(), Gzip(), Zlib())}
COMPRESSED: Final = tuple(codec for codec in CODECS.values() if codec.name is not None)


def codec_of(compression: str | None) -> Codec:
    """Return the codec of a name that was checked before.

    >>> codec_of("gzip").suffix, codec_of(None).suffix
    ('.gz', '')
    """
    return CODECS[compression]
