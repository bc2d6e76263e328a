"""Segments: what can still be decompressed of a damaged gzip or zlib file, and where the gaps are.

What a damaged member gives before the place where it fails is given too, so nothing here is to be believed
without the checksums of the records in it.

A gzip file that is the payload of a record often stands in the file as it is, since it does not get smaller. In a sound
member it is never looked at. In a damaged one it cannot always be told from a member that damage has moved there: what
is done then is said at `segments`, and in docs/format/gzip.md.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from ._containers import NeedMoreBytes, gzip_header_bytes
from ._gzip import read_member_header
from ._inflate import Fault, InflateError, Inflater, all_zeros, fastest

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from recordkit.filesystems import ByteFile

    from ._containers import Zipped
    from ._gzip import MemberHeader

_PIECE: Final = 1 << 20
_MAGIC: Final = b"\x1f\x8b\x08"
_OUR_HEADER: Final = 40
_COST: Final = 256  # of trying a place, where 16 bytes decompressed cost 1
_MANY: Final = 10_000  # troubles, and members tried to their ends
_TRIED: Final = 1 << 14  # bytes of a file that are looked at to see whether a member starts there
_ENOUGH: Final = 1 << 12  # bytes decompressed without fault that chance does not make
_FEXTRA: Final = 4
_MAYBE: Final = "; what follows stands inside the damaged gzip data and may be part of its content"


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


def segments(file: ByteFile, compression: Zipped, *, nested: bool = True) -> Iterator[bytes | Gap]:
    """Yield what a file decompresses to, in pieces of up to 1 MiB, with a `Gap` wherever they do not join.

    After damage it goes on with the next gzip member that can be found; zlib has none. In a file of ours the bytes on
    either side of a gap are cut between records, but for those that a damaged member gave. The work is bounded by a
    multiple of the file's size, whatever is in it.

    Args:
        file: Where the bytes come from.
        compression: How they are compressed.
        nested: Whether to give members that stand inside a damaged one and look like its content: neither a member nor
            the end of the file follows, or all but the checksum of the damaged one is right. With them every member
            that is whole is given; without, no gzip file of a payload that is. The gap before them says so.

    >>> import gzip, io
    >>> from recordkit.filesystems import ObjectFile
    >>> one, two = gzip.compress(b"one"), gzip.compress(b"two")
    >>> list(segments(ObjectFile(io.BytesIO(one + b"???" + two[:-3])), "gzip"))
    [b'one', Gap(offset=23, length=3, kind='gzip_trailing', words='bytes that are no gzip follow the gzip data'),
     b'two', Gap(offset=41, length=5, kind='gzip_no_trailer',
                 words='the file ends before the checksum of the gzip data')]
    """
    search = _Search(file, nested=nested)
    at: int | None = 0
    while at is not None:
        inflater = Inflater(file, compression, at, library=fastest())
        trouble = yield from _run(inflater)
        if trouble is None:
            return
        at = search.behind(trouble, inflater) if compression == "gzip" else None
        gap = _gap(file, trouble, compression, file.size if at is None else at)
        yield replace(gap, words=gap.words + _MAYBE) if search.inside else gap


def _run(inflater: Inflater) -> Generator[bytes, None, InflateError | None]:
    """Yield all that it gives, and return what stopped it."""
    pieces, size, trouble = [], 0, None
    try:
        while piece := inflater.step(_PIECE - size):
            pieces.append(piece)
            size += len(piece)
            if size >= _PIECE:
                yield b"".join(pieces)
                pieces, size = [], 0
    except InflateError as found:
        trouble = found
    if pieces:
        yield b"".join(pieces)
    return trouble


def _gap(file: ByteFile, trouble: InflateError, compression: Zipped, end: int) -> Gap:
    start = min(trouble.at, end)
    if trouble.fault is Fault.TRAILING and all_zeros(file, start, end):
        trouble = InflateError(compression, Fault.ZEROS, start, start)
    return Gap(start, end - start, trouble.kind, trouble.words)


class _Search:
    """Looks for members behind damage, and inside what is damaged.

    A hostile file may be all starts of members that come to nothing. So going back, trying places and finding trouble
    are free only up to a bound, behind which places are passed over.

    Attributes:
        inside: Whether what was found last may be part of the content of the damaged member.
    """

    def __init__(self, file: ByteFile, *, nested: bool) -> None:
        self.inside = False
        self._file = file
        self._size = file.size
        self._nested = nested
        self._back_left = 2 * self._size + _PIECE
        self._tries_left = 4 * self._size + _PIECE
        self._troubles_left = _MANY

    def behind(self, trouble: InflateError, inflater: Inflater) -> int | None:
        """Return where the next member starts; None if there is no more."""
        self.inside = False
        self._troubles_left -= 1
        least = trouble.start + (1 if self._troubles_left > 0 else _TRIED)
        ours = self._only_ours(trouble)
        if not self._nested and self._is_all_there(trouble, inflater):
            return self._found(max(least, trouble.at), trouble.at, ours=ours)
        # The end that a member tells is not gone to at once: damage may have brought another one's start there. But up
        # to there members may be content, and none is looked for behind it.
        told = self._end(trouble.start)
        if told is None or told < least:
            return self._found(max(least, self._from(trouble)), trouble.at, ours=ours, torn=ours)
        found = self._found(max(least, self._from(trouble)), told, ours=ours, end=told)
        return told if found is None and told < self._size else found

    def _only_ours(self, trouble: InflateError) -> bool:
        """Whether to look for members of ours only, so that a gzip file in a payload of theirs is not taken for one."""
        head = self._file.read_at(trouble.start, 4)
        if head.startswith(_MAGIC) and not head[-1] & _FEXTRA:
            return False
        return self._header(trouble.start) is not None or self._header(0) is not None

    def _is_all_there(self, trouble: InflateError, inflater: Inflater) -> bool:
        """Whether a member with a wrong checksum has the right size and end: hardly was another one moved into it."""
        if trouble.fault is not Fault.CHECKSUM:
            return False
        behind = self._file.read_at(trouble.at + 4, 4 + len(_MAGIC))
        return behind[:4] == struct.pack("<I", inflater._given & 0xFFFFFFFF) and behind[4:] in (b"", _MAGIC)

    def _end(self, start: int) -> int | None:
        """Where a member of ours ends, if that is the end of the file or the start of another one."""
        header = self._header(start)
        if header is None:
            return None
        end = start + header.member_bytes
        return end if end == self._size or self._header(end) else None

    def _header(self, start: int) -> MemberHeader | None:
        return read_member_header(self._file.read_at(start, _OUR_HEADER)) if start < self._size else None

    def _from(self, trouble: InflateError) -> int:
        """Where to look: from before the place of trouble on, for what led there may be the next member already.

        Most codes of deflate mean something wherever one starts to read, so damage may show tens of KiB behind it; in
        stored blocks, which may be anything, it shows only at the end of the member.
        """
        back = trouble.at - trouble.start
        if back > self._back_left:
            return trouble.at
        self._back_left -= back
        return trouble.start

    def _found(self, at: int, sure: int, *, ours: bool, torn: bool = False, end: int | None = None) -> int | None:
        """Return where the first member from `at` on, and before `end`, starts.

        Before `sure` it must be whole, since it may be content; with `torn`, the start of one of ours is enough.
        """
        piece, end = _TRIED, self._size if end is None else end
        while at < end:
            data = self._file.read_at(at, piece + _TRIED)
            place = data.find(_MAGIC)
            while 0 <= place < min(piece, end - at):
                start, head = at + place, data[place : place + _TRIED]
                if self._is_one(start, head, sure, ours=ours, torn=torn):
                    return start
                place = data.find(_MAGIC, place + (1 if self._tries_left > 0 else _TRIED))
            at, piece = at + piece, min(4 * piece, _PIECE)
        return None

    def _is_one(self, start: int, head: bytes, sure: int, *, ours: bool, torn: bool) -> bool:
        self._tries_left -= _COST
        is_ours = read_member_header(head) is not None
        if start >= sure or (torn and is_ours):
            return (self._is_ours if ours else self._is_member)(start, head)
        return (is_ours or not ours) and self._is_member(start, head) and self._is_whole(start, sure)

    def _is_whole(self, start: int, sure: int) -> bool:
        """Whether a member before `sure` is sound, and no content of the damaged one or wanted all the same.

        If those that follow each other from here on go beyond that place, or on to the end of the file or to a damaged
        one, they are no gzip file in a payload. Others may be.
        """
        self._troubles_left -= 1
        inflater = Inflater(self._file, "gzip", start, library=fastest())
        try:
            while inflater.start <= sure and inflater.at - start <= self._back_left and self._troubles_left > 0:
                if not inflater.step(_PIECE):
                    return True
        except InflateError as trouble:
            inside = trouble.fault is Fault.TRAILING and trouble.start <= sure
            self.inside = inside and self._nested and trouble.start > start
            return trouble.start > start and (self._nested or not inside)
        finally:
            self._back_left -= inflater.at - start
        return inflater.start > start

    def _is_ours(self, start: int, data: bytes) -> bool:
        return read_member_header(data) is not None and (self._end(start) is not None or self._is_member(start, data))

    def _is_member(self, start: int, data: bytes) -> bool:
        """Whether a member that starts here is sound, or at least its first bytes are."""
        try:
            stream = zlib.decompressobj(-zlib.MAX_WBITS)
            raw = stream.decompress(data[gzip_header_bytes(data) :], _TRIED)
        except (ValueError, NeedMoreBytes, zlib.error):
            return False
        self._tries_left -= len(raw) // 16
        last = start + len(data) >= self._size
        if not stream.eof:
            return len(raw) >= _ENOUGH or (last and len(raw) > 0)
        trailer = struct.pack("<II", zlib.crc32(raw), len(raw))
        return stream.unused_data[:8] == trailer or (last and len(raw) > 0 and trailer.startswith(stream.unused_data))
