"""Segments: decompresses what is left of a damaged gzip or zlib file, and says where the gaps are.

A damaged member still gives the bytes before the damage, so trust these bytes only if the checksums of their records
are right.

A gzip file that is the payload of a record is often stored as it is, since it gets no smaller. Inside an intact member
nobody looks for it. Inside a damaged one, it can look like a member that the damage has moved there; `segments` and
docs/format/gzip.md say what happens then.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from ._gzip import read_member_header
from ._inflate import Fault, InflateError, Inflater, NeedMoreBytes, all_zeros, fastest, gzip_header_bytes

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from recordkit.filesystems import ByteFile

    from ._gzip import MemberHeader
    from ._inflate import Zipped

_PIECE: Final = 1 << 20
_MAGIC: Final = b"\x1f\x8b\x08"
_OUR_HEADER: Final = 40
_COST: Final = 256  # of trying an offset; 16 decompressed bytes cost 1
_MANY: Final = 10_000  # errors, and members that are decompressed to their ends
_TRIED: Final = 1 << 14  # bytes that decide whether a member starts at an offset
_ENOUGH: Final = 1 << 12  # more decompressed bytes without an error than chance can explain
_FEXTRA: Final = 4
_MAYBE: Final = "; what follows is inside the damaged gzip data and may be part of its content"


@dataclass(frozen=True)
class Gap:
    """Bytes of a compressed file that could not be used; possibly none, if only the content has a gap.

    Attributes:
        offset: Where they start in the file.
        length: How many there are.
        kind: One word, such as `"gzip_damaged"`.
        words: What is wrong, for people.
    """

    offset: int
    length: int
    kind: str
    words: str


def segments(file: ByteFile, compression: Zipped, *, nested: bool = True) -> Iterator[bytes | Gap]:
    """Yield the decompressed bytes of a file, in pieces of up to 1 MiB, with a `Gap` wherever they do not join.

    After damage it continues with the next gzip member that it can find; zlib has none. In a file that recordkit
    wrote, gaps start and end between records, except where a damaged member gave some bytes. The work is at most a
    multiple of the file's size, whatever the file holds.

    Args:
        file: The file.
        compression: How it is compressed.
        nested: Whether to yield members that are inside a damaged one and look like its content: neither a member nor
            the end of the file follows, or only the checksum of the damaged one is wrong. If True, every intact member
            is found; if False, no gzip file that is a payload is taken for one. The gap before them says so.

    >>> import gzip, io
    >>> from recordkit.filesystems import ObjectFile
    >>> one, two = gzip.compress(b"one"), gzip.compress(b"two")
    >>> list(segments(ObjectFile(io.BytesIO(one + b"???" + two[:-3])), "gzip"))
    [b'one', Gap(offset=23, length=3, kind='gzip_trailing', words='bytes that are not gzip follow the gzip data'),
     b'two', Gap(offset=41, length=5, kind='gzip_no_trailer',
                 words='the file ends before the checksum of the gzip data')]
    """
    search = _Search(file, nested=nested)
    at: int | None = 0
    while at is not None:
        inflater = Inflater(file, compression, at, library=fastest())
        error = yield from _run(inflater)
        if error is None:
            return
        at = search.next_member(error, inflater) if compression == "gzip" else None
        gap = _gap(file, error, compression, file.size if at is None else at)
        yield replace(gap, words=gap.words + _MAYBE) if search.inside else gap


def _run(inflater: Inflater) -> Generator[bytes, None, InflateError | None]:
    """Yield all bytes up to an error, and return that error."""
    pieces, size, error = [], 0, None
    try:
        while piece := inflater.step(_PIECE - size):
            pieces.append(piece)
            size += len(piece)
            if size >= _PIECE:
                yield b"".join(pieces)
                pieces, size = [], 0
    except InflateError as found:
        error = found
    if pieces:
        yield b"".join(pieces)
    return error


def _gap(file: ByteFile, error: InflateError, compression: Zipped, end: int) -> Gap:
    start = min(error.at, end)
    if error.fault is Fault.TRAILING and all_zeros(file, start, end):
        error = InflateError(compression, Fault.ZEROS, start, start)
    return Gap(start, end - start, error.kind, error.words)


class _Search:
    """Looks for members after damage, and inside what is damaged.

    A hostile file may consist of starts of members that lead nowhere. So there is a limit on going back, on trying
    offsets and on errors; beyond it, offsets are skipped.

    Attributes:
        inside: Whether the last member found may be part of the content of the damaged one.
    """

    def __init__(self, file: ByteFile, *, nested: bool) -> None:
        self.inside = False
        self._file = file
        self._size = file.size
        self._nested = nested
        self._back_left = 2 * self._size + _PIECE
        self._tries_left = 4 * self._size + _PIECE
        self._errors_left = _MANY

    def next_member(self, error: InflateError, inflater: Inflater) -> int | None:
        """Return where the next member starts; None if there is no more."""
        self.inside = False
        self._errors_left -= 1
        least = error.start + (1 if self._errors_left > 0 else _TRIED)
        ours = self._only_ours(error)
        if not self._nested and self._is_all_there(error, inflater):
            return self._found(max(least, error.at), error.at, ours=ours)
        # Do not jump to the end that the header gives: damage may have moved another member's start there. But members
        # up to that end may be content, and the search stops there.
        claimed = self._end(error.start)
        if claimed is None or claimed < least:
            return self._found(max(least, self._from(error)), error.at, ours=ours, torn=ours)
        found = self._found(max(least, self._from(error)), claimed, ours=ours, end=claimed)
        return claimed if found is None and claimed < self._size else found

    def _only_ours(self, error: InflateError) -> bool:
        """Whether to accept only members that recordkit wrote, so that a gzip payload is not taken for one."""
        head = self._file.read_at(error.start, 4)
        if head.startswith(_MAGIC) and not head[-1] & _FEXTRA:
            return False
        return self._header(error.start) is not None or self._header(0) is not None

    def _is_all_there(self, error: InflateError, inflater: Inflater) -> bool:
        """Whether a member with a wrong checksum has the right size and end, so that no other one was moved into it."""
        if error.fault is not Fault.CHECKSUM:
            return False
        after = self._file.read_at(error.at + 4, 4 + len(_MAGIC))
        return after[:4] == struct.pack("<I", inflater._given & 0xFFFFFFFF) and after[4:] in (b"", _MAGIC)

    def _end(self, start: int) -> int | None:
        """Where a member that recordkit wrote ends, if the file ends or another one starts there."""
        header = self._header(start)
        if header is None:
            return None
        end = start + header.member_bytes
        return end if end == self._size or self._header(end) else None

    def _header(self, start: int) -> MemberHeader | None:
        return read_member_header(self._file.read_at(start, _OUR_HEADER)) if start < self._size else None

    def _from(self, error: InflateError) -> int:
        """Where to start looking: before the error, since the bytes that led to it may belong to the next member.

        Nearly any bits are valid deflate codes, so damage may show only tens of KiB later; in stored blocks it shows
        only at the end of the member.
        """
        back = error.at - error.start
        if back > self._back_left:
            return error.at
        self._back_left -= back
        return error.start

    def _found(self, at: int, sure: int, *, ours: bool, torn: bool = False, end: int | None = None) -> int | None:
        """Return where the first member from `at` on, and before `end`, starts.

        Before `sure` it must be intact, since it may be content; with `torn`, the start of one of ours is enough.
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
        """Whether a member before `sure` is intact and not content of the damaged one, or wanted even so.

        A chain of members from here that reaches beyond `sure`, to the end of the file or to a damaged member is not a
        gzip file in a payload. Any other chain may be.
        """
        self._errors_left -= 1
        inflater = Inflater(self._file, "gzip", start, library=fastest())
        try:
            while inflater.start <= sure and inflater.at - start <= self._back_left and self._errors_left > 0:
                if not inflater.step(_PIECE):
                    return True
        except InflateError as error:
            inside = error.fault is Fault.TRAILING and error.start <= sure
            self.inside = inside and self._nested and error.start > start
            return error.start > start and (self._nested or not inside)
        finally:
            self._back_left -= inflater.at - start
        return inflater.start > start

    def _is_ours(self, start: int, data: bytes) -> bool:
        return read_member_header(data) is not None and (self._end(start) is not None or self._is_member(start, data))

    def _is_member(self, start: int, data: bytes) -> bool:
        """Whether a member that starts here is intact, or at least its first bytes are."""
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
