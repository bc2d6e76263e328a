"""Record file: one file of records, whatever its compression, read from front to back or at any place."""

from __future__ import annotations

import threading
from collections import OrderedDict
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from recordkit import _core
from recordkit.errors import CorruptRecordError
from recordkit.records import NO_LIMIT, Reader, corrupt

from ._bytes import LocalFile, OpenFiles, PipeFile
from ._checkpoints import Checkpoints
from ._explain import explain
from ._inflate import Inflated
from ._members import members_of
from ._places import count_hops, find_places, make_places
from ._sniff import compression_of
from ._streams import MemberStream, Sequential, SkippingStream

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import IO

    from numpy.typing import NDArray

    from recordkit.records import Chunk

    from ._bytes import ByteFile
    from ._damage import Damage
    from ._manifest import Shard
    from ._members import Member
    from ._options import Compression
    from ._places import Places
    from ._streams import Stream

_MEMBERS_KEPT = 4
_WHOLE_FILE = 1 << 63


class RecordFile:
    """One file of records. Safe to use from many threads; pickling keeps what it was made of.

    Args:
        file: Where the bytes are.
        shard: What a manifest says of it, for a file that still has that size.
        open_files: What keeps files open between reads; shared by those of one dataset.
        max_record_bytes: Payloads longer than this are refused.
    """

    def __init__(
        self,
        file: ByteFile,
        shard: Shard | None = None,
        open_files: OpenFiles | None = None,
        *,
        max_record_bytes: int = NO_LIMIT,
    ) -> None:
        self.file = file
        self.shard = shard
        self._open_files = open_files or OpenFiles(64)
        self._limit = max_record_bytes
        self._lock = threading.Lock()
        self._recent: OrderedDict[int, Chunk] = OrderedDict()  # members that were decompressed last

    @property
    def name(self) -> str:
        """What errors call it."""
        return self.file.name

    @cached_property
    def compression(self) -> Compression:
        """How it is compressed, told from its bytes."""
        return cast("Compression", self.shard.compression) if self.shard is not None else compression_of(self.file)

    @cached_property
    def _members(self) -> tuple[Member, ...] | None:
        return members_of(self.file) if self.compression == "gzip" else None

    @cached_property
    def _raw(self) -> ByteFile:
        """The uncompressed bytes, at any place."""
        return self.file if self.compression is None else Checkpoints(self.file, self.compression)

    @cached_property
    def count(self) -> int:
        """How many records there are.

        Raises:
            CorruptRecordError: Where the next record starts cannot be told.
        """
        if self.shard is not None:
            return self.shard.records
        if self._members is not None:
            return sum(member.records for member in self._members)
        if "_places" in self.__dict__:
            return len(self._places)
        if self.compression is None and isinstance(self.file, LocalFile):
            try:
                return count_hops(self.file)
            except CorruptRecordError as error:
                raise self.explained(error) from None
        return len(self._places)

    @cached_property
    def _places(self) -> Places:
        with self._lock:
            found = find_places(self.file)
            if found is not None:
                return found
            plain = self.compression is None and isinstance(self.file, LocalFile)
            try:
                return make_places(self.file, None if plain else self._reader(0, 0, self._raw))
            except CorruptRecordError as error:
                raise self.explained(error) from None

    def explained(self, error: CorruptRecordError) -> CorruptRecordError:
        """Return an error about a record after a second look at it, with the next step."""
        return error if isinstance(self.file, PipeFile) else explain(self.file, error, self.compression)

    def places(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Return where the frame of every record starts, uncompressed, and how long it is."""
        return self._places.many(np.arange(len(self._places)))

    # --- From front to back

    def stream(self, first: int = 0, *, tell: Callable[[Damage], None] | None = None) -> Stream:
        """Return the records from number `first` on, in order.

        Args:
            first: Where to start.
            tell: For a file that may be damaged: is given every damage, which is then passed over.
        """
        stream = self._stream(first)
        if tell is None:
            return _Explaining(stream, self)
        return SkippingStream(stream, self.file, self.compression, tell, self._limit)

    def _stream(self, first: int) -> Stream:
        if self._members is not None:
            at = sum(member.first_record + member.records <= first for member in self._members)
            return _behind(MemberStream(self.file, self._members[at:]), first)
        if self.compression is None:
            return self._reader(self._offset_of(first), first, self.file)
        return _behind(self._reader(0, 0, None), first)

    def _offset_of(self, record: int) -> int:
        """Return where a record of a plain file starts."""
        if not record:
            return 0
        if record >= self.count:
            return self.file.size
        return int(self._places.one(record)[0][0])

    def _reader(self, offset: int, first: int, file: ByteFile | None) -> Reader:
        # A file of its own: it is closed when the reader goes.
        source: Any
        if file is None:
            assert self.compression is not None
            source = Inflated(self.file, self.compression)
        elif isinstance(file, LocalFile):
            source = LocalFile(file.path)
            return _LocalReader(source, path=self.name, max_record_bytes=self._limit, offset=offset, first_record=first)
        else:
            source = Sequential(file, offset)
        return Reader(cast("IO[bytes]", source), path=self.name, max_record_bytes=self._limit, first_record=first)

    # --- At any place

    def fetch_one(self, number: int) -> Chunk:
        """Return one record.

        Raises:
            CorruptRecordError: It is not sound.
        """
        if self._members is not None or not isinstance(self._raw, LocalFile):
            return self.fetch(np.array([number]))
        starts, sizes = self._places.one(number)
        try:
            chunk, fault = _core.fetch(self._open_files.borrow(self._raw), starts, sizes, number)
        finally:
            self._open_files.give_back(self._raw)
        if fault:
            raise self._fault(fault, number, int(starts[0]))
        return chunk

    def fetch(self, numbers: NDArray[np.int64]) -> Chunk:
        """Return records by their numbers, which are in rising order.

        Raises:
            CorruptRecordError: One of them is not sound.
        """
        if self._members is not None:
            return self._fetch_members(self._members, numbers)
        starts, sizes = self._places.many(numbers)
        raw = self._raw
        if isinstance(raw, LocalFile):
            try:
                chunk, fault = _core.fetch(self._open_files.borrow(raw), starts, sizes)
            finally:
                self._open_files.give_back(raw)
        else:
            pieces = [raw.read_at(start, size) for start, size in zip(starts.tolist(), sizes.tolist(), strict=True)]
            chunk, fault, _ = _core.scan(b"".join(pieces), self._limit)
            fault = fault or int(chunk.lengths.tolist() != (sizes - np.uint64(16)).tolist())
        if fault:
            at = min(len(chunk), len(numbers) - 1)
            raise self._fault(fault, int(numbers[at]), int(starts[at]))
        return chunk

    def _fault(self, fault: int, record: int, offset: int) -> CorruptRecordError:
        return self.explained(corrupt(fault, path=self.name, record=record, offset=offset))

    def _fetch_members(self, members: tuple[Member, ...], numbers: NDArray[np.int64]) -> Chunk:
        firsts = np.array([member.first_record for member in members])
        which = np.searchsorted(firsts, numbers, side="right") - 1
        edges = [0, *(np.flatnonzero(np.diff(which)) + 1).tolist(), len(numbers)]
        picked = []
        for start, stop in pairwise(edges):
            if start < stop:
                of = int(which[start])
                inside = (numbers[start:stop] - firsts[of]).astype(np.uint64)
                picked.append(self._member(members, of).pick(inside))
        return picked[0] if len(picked) == 1 else _core.join(picked)

    def _member(self, members: tuple[Member, ...], number: int) -> Chunk:
        with self._lock:
            chunk = self._recent.get(number)
        if chunk is None:
            chunk = MemberStream(self.file, members[number : number + 1]).read()
            assert chunk is not None
            if len(chunk) != members[number].records:
                raise _miscounted(self.name, members[number], len(chunk))
            with self._lock:
                self._recent[number] = chunk
                if len(self._recent) > _MEMBERS_KEPT:
                    self._recent.popitem(last=False)
        return chunk

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.file, self.shard, self._limit)


def _restored(file: ByteFile, shard: Shard | None, limit: int) -> RecordFile:
    return RecordFile(file, shard, max_record_bytes=limit)


class _LocalReader(Reader):
    """A reader of a file that is closed with it."""

    def __init__(self, file: LocalFile, **options: Any) -> None:
        super().__init__(file.descriptor, **options)
        self._held = file


def _miscounted(path: str, member: Member, found: int) -> CorruptRecordError:
    message = (
        f"{path}: the gzip member at byte {member.offset} has {found} sound records, "
        f"and its header says {member.records}\n"
        "  recordkit.verify tells what is wrong with the file."
    )
    return CorruptRecordError(
        message, path=path, record=member.first_record + found, offset=member.offset, kind="gzip_damaged"
    )


class _Explaining:
    """A stream whose errors are looked into before they are raised."""

    def __init__(self, stream: Stream, file: RecordFile) -> None:
        self._stream = stream
        self._file = file

    @property
    def next_record(self) -> int:
        return self._stream.next_record

    def read(self, records: int | None = None) -> Chunk | None:
        try:
            return self._stream.read(records)
        except CorruptRecordError as error:
            raise self._file.explained(error) from None


class _Later:
    """A stream without the records before number `first`."""

    def __init__(self, stream: Stream, first: int) -> None:
        self._stream = stream
        self._first = first

    @property
    def next_record(self) -> int:
        return self._stream.next_record

    def read(self, records: int | None = None) -> Chunk | None:
        while (chunk := self._stream.read(records)) is not None:
            if chunk.first_record >= self._first:
                return chunk
            if chunk.first_record + len(chunk) > self._first:
                return chunk.slice(self._first - chunk.first_record, len(chunk))
        return None


def _behind(stream: Stream, first: int) -> Stream:
    return _Later(stream, first) if first else stream
