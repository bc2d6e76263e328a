"""Segments: what can still be decompressed of a damaged gzip or zlib file, and where the gaps are.

What a damaged member gives before the place where it fails is given too, so nothing here is to be believed
without the checksums of the records in it.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ._compression import read_member_header
from ._envelopes import Short, gzip_header_bytes
from ._inflate import Fault, Inflater, Trouble, all_zeros, fastest

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from ._bytes import ByteFile
    from ._compression import MemberHeader
    from ._envelopes import Zipped

_PIECE: Final = 1 << 20
_MAGIC: Final = b"\x1f\x8b\x08"
_OUR_HEADER: Final = 40
_BACK: Final = 1 << 20
_COST: Final = 64  # of trying a place, in bytes decompressed
_MANY: Final = 10_000
_TRIED: Final = 1 << 14  # bytes of a file that are looked at to see whether a member starts there
_ENOUGH: Final = 1 << 12  # bytes decompressed without fault that chance does not make


@dataclass(frozen=True)
class Gap:
    """Bytes of a compressed file that could not be used; possibly none, where only the content has a gap.

    Attributes:
        offset: Where they start in the file.
        length: How many they are.
        kind: One word, such as `"gzip_damaged"`.
        words: What is wrong, for people.
    """

    offset: int
    length: int
    kind: str
    words: str


def segments(file: ByteFile, compression: Zipped) -> Iterator[bytes | Gap]:
    """Yield what a file decompresses to, in pieces of up to 1 MiB, with a `Gap` wherever they do not join.

    After damage it goes on with the next gzip member that can be found; zlib has none. In a file of ours the bytes on
    either side of a gap are cut between records, but for those that a damaged member gave. The work is bounded by a
    multiple of the file's size, whatever is in it.

    >>> import gzip, io
    >>> from recordkit.storage._bytes import ObjectFile
    >>> one, two = gzip.compress(b"one"), gzip.compress(b"two")
    >>> list(segments(ObjectFile(io.BytesIO(one + b"???" + two[:-3])), "gzip"))
    [b'one', Gap(offset=23, length=3, kind='gzip_trailing', words='bytes that are no gzip follow the gzip data'),
     b'two', Gap(offset=41, length=5, kind='gzip_no_trailer',
                 words='the file ends before the checksum of the gzip data')]
    """
    search = _Search(file)
    at: int | None = 0
    while at is not None:
        trouble = yield from _run(Inflater(file, compression, at, library=fastest()))
        if trouble is None:
            return
        at = search.behind(trouble) if compression == "gzip" else None
        yield _gap(file, trouble, compression, file.size if at is None else at)


def _run(inflater: Inflater) -> Generator[bytes, None, Trouble | None]:
    """Yield all that it gives, and return what stopped it."""
    pieces, size, trouble = [], 0, None
    try:
        while piece := inflater.step(_PIECE - size):
            pieces.append(piece)
            size += len(piece)
            if size >= _PIECE:
                yield b"".join(pieces)
                pieces, size = [], 0
    except Trouble as found:
        trouble = found
    if pieces:
        yield b"".join(pieces)
    return trouble


def _gap(file: ByteFile, trouble: Trouble, compression: Zipped, end: int) -> Gap:
    start = min(trouble.at, end)
    if trouble.fault is Fault.TRAILING and all_zeros(file, start, end):
        trouble = Trouble(compression, Fault.ZEROS, start, start)
    return Gap(start, end - start, trouble.kind, trouble.words)


class _Search:
    """Looks for members behind damage.

    A hostile file may be all starts of members that come to nothing. So going back, trying places and finding trouble
    are free only up to a bound, behind which places are passed over.
    """

    def __init__(self, file: ByteFile) -> None:
        self._file = file
        self._size = file.size
        self._ours: bool | None = None
        self._back_left = self._size + _PIECE
        self._tries_left = 4 * self._size + _PIECE
        self._troubles_left = _MANY

    def behind(self, trouble: Trouble) -> int | None:
        """Return where the next member starts; None if there is no more."""
        if self._ours is None:
            # With members of ours in it, a file has no others, and a gzip file in a payload is not taken for one.
            self._ours = self._header(0) is not None or self._found(0, ours=True) is not None
        self._troubles_left -= 1
        least = trouble.start + (1 if self._troubles_left > 0 else _TRIED)
        told = self._end(trouble.start) if self._ours else None
        if told is None or told < least:
            return self._found(max(least, self._from(trouble)), ours=self._ours, sure=trouble.at)
        return told if told < self._size else None

    def _end(self, start: int) -> int | None:
        """Where a member of ours ends, if that is the end of the file or the start of another one."""
        header = self._header(start)
        if header is None:
            return None
        end = start + header.member_bytes
        return end if end == self._size or self._header(end) else None

    def _header(self, start: int) -> MemberHeader | None:
        return read_member_header(self._file.read_at(start, _OUR_HEADER)) if start < self._size else None

    def _from(self, trouble: Trouble) -> int:
        """Where to look: from before the place of trouble on, for what led there may be the next member already.

        Most codes of deflate mean something wherever one starts to read, so damage may show tens of KiB behind it.
        """
        back = trouble.at - trouble.start if self._ours else min(_BACK, trouble.at - trouble.start)
        if back > self._back_left:
            return trouble.at
        self._back_left -= back
        return trouble.at - back

    def _found(self, at: int, *, ours: bool, sure: int = 0) -> int | None:
        """Return where the first member from `at` on starts; before `sure` it must be whole, or ours."""
        piece = _TRIED
        while at < self._size:
            data = self._file.read_at(at, piece + _TRIED)
            place = data.find(_MAGIC)
            while 0 <= place < piece:
                start = at + place
                if (self._is_ours if ours else self._is_member)(start, data[place : place + _TRIED]) and (
                    ours or start >= sure or self._is_whole(start)
                ):
                    return start
                place = data.find(_MAGIC, place + (1 if self._tries_left > 0 else _TRIED))
            at, piece = at + piece, min(4 * piece, _PIECE)
        return None

    def _is_whole(self, start: int) -> bool:
        """Whether a member is sound and another or the end of the file follows, unlike a gzip file in a payload."""
        inflater = Inflater(self._file, "gzip", start, library=fastest())
        try:
            while inflater.start == start and inflater.at - start <= self._back_left:
                if not inflater.step(_PIECE):
                    break
        except Trouble as trouble:
            return trouble.start > start and trouble.fault is not Fault.TRAILING
        finally:
            self._back_left -= inflater.at - start
        return inflater.start > start

    def _is_ours(self, start: int, data: bytes) -> bool:
        self._tries_left -= _COST
        if read_member_header(data) is None:
            return False
        return self._end(start) is not None or self._is_member(start, data)

    def _is_member(self, start: int, data: bytes) -> bool:
        """Whether a member that starts here is sound, or at least its first bytes are."""
        self._tries_left -= _COST
        try:
            stream = zlib.decompressobj(-zlib.MAX_WBITS)
            raw = stream.decompress(data[gzip_header_bytes(data) :], _TRIED)
        except (ValueError, Short, zlib.error):
            return False
        self._tries_left -= len(raw)
        last = start + len(data) >= self._size
        if not stream.eof:
            return len(raw) >= _ENOUGH or (last and len(raw) > 0)
        trailer = struct.pack("<II", zlib.crc32(raw), len(raw))
        return stream.unused_data[:8] == trailer or (last and len(raw) > 0 and trailer.startswith(stream.unused_data))
