"""Streams: read the records of a file from front to back, a chunk at a time, from many threads at once.

`records.Reader` is one, for plain bytes and for the output of a decompressor. The others are here. All of them return
chunks, whose `first_record` gives their order, and None at the end.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from recordkit import _core
from recordkit.codecs import inflate_member
from recordkit.errors import CorruptRecordError
from recordkit.filesystems import written_over
from recordkit.records import CHANGED, NO_LIMIT, corrupt

from ._damage import Damage
from ._salvage import walk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from recordkit.codecs import Member
    from recordkit.filesystems import ByteFile
    from recordkit.records import Chunk

_TOO_LARGE = 5  # a fault, as the core numbers them
_PIECE = 1 << 20  # read at once: it is in memory twice
_GROUP_BYTES = 4 << 20  # uncompressed; several members, so that few batches cross a chunk


class Stream(Protocol):
    """The records of a file, in order."""

    @property
    def next_record(self) -> int:
        """The number of the first record that was not given out; at the end, how many there are."""
        ...

    def read(self, records: int | None = None) -> Chunk | None:
        """Return the next chunk, of about `records` records, or None at the end."""
        ...


class Sequential:
    """The bytes of a file from an offset on, as a file object."""

    def __init__(self, file: ByteFile, offset: int = 0) -> None:
        self._file = file
        self._at = offset

    def readinto(self, buffer: Any) -> int:
        """Put the next bytes into the buffer, and return how many; 0 only at the end."""
        view = memoryview(buffer).cast("B")
        piece = self._file.read_at(self._at, min(len(view), _PIECE))
        view[: len(piece)] = piece
        self._at += len(piece)
        if not piece and len(view):
            self._file.check_not_truncated()
        return len(piece)


class MemberStream:
    """The records of a gzip file that recordkit wrote; each thread decompresses its own members.

    Args:
        file: The gzip file.
        members: Its members, from the first one to read.
        max_record_bytes: Payloads longer than this are refused.
    """

    def __init__(self, file: ByteFile, members: Sequence[Member], max_record_bytes: int = NO_LIMIT) -> None:
        self._file = file
        self._members = members
        self._limit = max_record_bytes
        self._at = 0
        self.failure: CorruptRecordError | None = None  # what the next call raises
        self._lock = threading.Lock()

    @property
    def next_record(self) -> int:
        """The number of the first record that was not given out; at the end, how many there are."""
        if self._at < len(self._members):
            return self._members[self._at].first_record
        return self._members[-1].first_record + self._members[-1].records if self._members else 0

    def read(self, records: int | None = None) -> Chunk | None:
        """Return the records of the next members, or None at the end.

        Raises:
            CorruptRecordError: A member or a record in it is damaged. Earlier records were returned first.
        """
        if self.failure is not None:
            raise self.failure
        group = self._take(records or 1)
        if not group:
            self._file.check_not_truncated()
            return None
        pieces: list[bytes | bytearray] = []
        for member in group:
            if member.raw_bytes > self._limit + _GROUP_BYTES:  # more than a member with one allowed record has
                error = corrupt(_TOO_LARGE, path=self._file.name, record=member.first_record, offset=member.raw_offset)
                self._fail(error, given=bool(pieces))
                break
            try:
                pieces.append(inflate_member(self._file.read_at(member.offset, member.file_bytes)))
            except ValueError as error:
                self._fail(self._wrong(member, str(error)), given=bool(pieces))
                break
        return self._scanned(pieces, group[: len(pieces)])

    def _take(self, records: int) -> Sequence[Member]:
        with self._lock:
            start, size, count = self._at, 0, 0
            while self._at < len(self._members) and (self._at == start or (size < _GROUP_BYTES and count < records)):
                size += self._members[self._at].raw_bytes
                count += self._members[self._at].records
                self._at += 1
            return self._members[start : self._at]

    def _scanned(self, pieces: Sequence[bytes | bytearray], group: Sequence[Member]) -> Chunk:
        raw, first = pieces[0] if len(pieces) == 1 else b"".join(pieces), group[0]
        chunk, fault, offset = _core.scan(raw, self._limit, first.raw_offset, first.first_record)
        if fault:
            record = first.first_record + len(chunk)
            self._fail(
                corrupt(
                    fault,
                    path=self._file.name,
                    record=record,
                    offset=first.raw_offset + offset,
                    checked=self._members[0].first_record == 0,
                ),
                given=len(chunk) > 0,
            )
        elif len(chunk) != sum(member.records for member in group):
            chunk = self._miscounted(chunk, group)
        return chunk

    def _miscounted(self, chunk: Chunk, group: Sequence[Member]) -> Chunk:
        """Fail at the first member whose record count differs from its header; return the records before it."""
        start = 0
        for member in group:
            end = int(np.searchsorted(chunk.offsets, np.uint64(member.raw_offset + member.raw_bytes)))
            if end - start != member.records:
                self._fail(_miscounted(self._file.name, member, end - start), given=start > 0)
                break
            start = end
        return chunk.slice(0, start)

    def _wrong(self, member: Member, words: str) -> CorruptRecordError:
        try:
            self._file.check_not_truncated(member.first_record, member.offset)
        except CorruptRecordError as cut:
            return cut
        return _damaged(self._file.name, member, words)

    def _fail(self, error: CorruptRecordError, *, given: bool) -> None:
        """Raise the error, or keep it for the next call if there are records to return first."""
        with self._lock:
            if self.failure is None or (error.record or 0) < (self.failure.record or 0):
                self.failure = error
        if not given:
            raise error


def _miscounted(path: str, member: Member, found: int) -> CorruptRecordError:
    message = (
        f"{path}: the gzip member at byte {member.offset} has {found} records, and its header says {member.records}\n"
        "  recordkit.verify shows what is wrong with the file."
    )
    return CorruptRecordError(message, path=path, record=member.first_record, offset=member.offset, kind="gzip_damaged")


def _damaged(path: str, member: Member, words: str) -> CorruptRecordError:
    held = f"records {member.first_record} to {member.first_record + member.records - 1}"
    message = (
        f"{path}: the gzip member at byte {member.offset}, which holds {held}: {words}\n"
        "  recordkit.repair(src, dst) recovers every intact record before, in and after it."
    )
    return CorruptRecordError(message, path=path, record=member.first_record, offset=member.offset, kind="gzip_damaged")


class SkippingStream:
    """The intact records of a file that may be damaged; damage is reported and skipped.

    One thread reads at a time: the start of a record is known only after the record before it was read.

    Args:
        stream: Read until it fails.
        file: Where to find the records after the damage.
        tell: Called with each damage; may raise to stop reading.
    """

    def __init__(
        self,
        stream: Stream,
        file: ByteFile,
        compression: Any,
        tell: Callable[[Damage], None],
        max_record_bytes: int,
        first: int = 0,
    ) -> None:
        self._stream: Stream | None = stream
        self._file = file
        self._compression = compression
        self._tell = tell
        self._limit = max_record_bytes
        self._walk: Iterator[Chunk | Damage] = iter(())
        self._next = first
        self._lock = threading.Lock()

    @property
    def next_record(self) -> int:
        """The number of the next record; at the end, how many there are, damaged ones included."""
        return self._next

    def read(self, records: int | None = None) -> Chunk | None:
        """Return the next intact records, or None at the end."""
        with self._lock:
            chunk = self._read(records)
            if chunk is not None:
                self._next = chunk.first_record + len(chunk)
            return chunk

    def _read(self, records: int | None) -> Chunk | None:
        if self._stream is not None:
            try:
                return self._stream.read(records)
            except CorruptRecordError as error:
                if error.kind in CHANGED:
                    raise
                self._stream = None  # it may hold most of a large record
                self._walk = self._from(error.with_traceback(None))
        for found in self._walk:
            if isinstance(found, Damage):
                self._next = max(self._next, found.next_record)
                self._tell(found)
            else:
                return found
        return None

    def _from(self, error: CorruptRecordError) -> Iterator[Chunk | Damage]:
        """Continue at the damaged record."""
        local = self._file.local
        if self._compression is not None and local is not None and not local.is_as_opened():
            raise written_over(self._file.name)  # the rest is found by reading from the start again
        if self._compression is None:
            offset, record = error.offset or 0, error.record or 0
            found = walk(self._file, None, offset=offset, record=record, max_record_bytes=self._limit, fault=error)
        else:
            found = walk(self._file, self._compression, max_record_bytes=self._limit)
        return self._without(self._next, found)

    def _without(self, records: int, found: Iterator[Chunk | Damage]) -> Iterator[Chunk | Damage]:
        """Drop the records that were returned already, or not requested."""
        for item in found:
            if not isinstance(item, Damage) and item.first_record < records:
                item = item.slice(records - item.first_record, len(item))
                if not len(item):
                    continue
            yield item
