"""Record file: one file of records, compressed or not, read from front to back or in any order."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import OrderedDict
from contextlib import suppress
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from recordkit import _core, filesystems
from recordkit.codecs import codec_of, most_payload
from recordkit.errors import CorruptRecordError, RecordKitError, StorageError
from recordkit.filesystems import LentFile, OpenFiles
from recordkit.records import CHUNK_BYTES, NO_LIMIT, Reader, corrupt
from recordkit.storage.format import Fingerprint, IndexBuilder, new_digest

from ._explain import explain
from ._file_kind import compression_of, starts_record
from ._record_index import build_index, find_adjacent_index, find_index, identities, index_path, warn_of_index
from ._streams import MemberStream, Sequential, SkippingStream

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path
    from typing import IO

    from numpy.typing import NDArray

    from recordkit.codecs import Compression, Member
    from recordkit.filesystems import ByteFile, LocalFile
    from recordkit.records import Chunk
    from recordkit.storage.format import Shard

    from ._damage import Damage
    from ._record_index import RecordIndex
    from ._streams import Stream

_Look: TypeAlias = "Callable[[RecordIndex], tuple[NDArray[np.uint64], NDArray[np.uint64]]]"

_MEMBERS_KEPT = 4
_HEADER, _FRAME = 12, 16
_IDENTITY_BYTES = 12
_BAD_LENGTH, _TOO_LARGE = 2, 5  # faults, numbered as in the core


class RecordFile:
    """One file of records. Many threads may use it; pickling keeps its arguments.

    Args:
        file: The bytes.
        shard: Its entry in the manifest, if the file still has that size.
        open_files: Keeps files open between reads; shared by the files of one dataset.
        max_record_bytes: Longer payloads are refused. The default for a compressed file is 256 MiB or 64 times the
            size of the file, whichever is more, but at most 2 GiB, the limit of an Example.
    """

    def __init__(
        self,
        file: ByteFile,
        shard: Shard | None = None,
        open_files: OpenFiles | None = None,
        *,
        max_record_bytes: int | None = None,
    ) -> None:
        self.file = file
        self.shard = shard
        self._open_files = open_files or OpenFiles(64)
        self._max_record_bytes = max_record_bytes
        self._lock = threading.Lock()
        self._recent: OrderedDict[int, Chunk] = OrderedDict()  # the members decompressed last
        self._places_are_sure = False  # computed here, rather than read from an index
        self.local = file.local
        if shard is not None and self.local is not None:
            self.local.had = max(self.local.had, shard.bytes)

    @property
    def name(self) -> str:
        """Its name in errors."""
        return self.file.name

    @cached_property
    def compression(self) -> Compression:
        """How it is compressed, from the manifest or from its first bytes."""
        return cast("Compression", self.shard.compression) if self.shard is not None else compression_of(self._own())

    @cached_property
    def _limit(self) -> int:
        """The longest payload to read. A plain file needs no limit: a false length fails before it takes memory."""
        if self._max_record_bytes is not None:
            return self._max_record_bytes
        if self.compression is None:
            return NO_LIMIT
        return most_payload(self.file.size)

    def _own(self) -> ByteFile:
        """Return the file for one job, closed after it, so that few of many files stay open."""
        return self.file.reopened()

    @cached_property
    def _members(self) -> tuple[Member, ...] | None:
        own = self._own()
        members = codec_of(self.compression).members(own)
        if members is None:
            return None
        own.check_not_truncated()
        self.check_count(sum(member.records for member in members))
        return members

    def check_count(self, found: int) -> None:
        """Check the number of records against the manifest.

        Raises:
            StorageError: They differ.
        """
        if self.shard is not None and found != self.shard.records:
            message = (
                f"{self.name}: the file has {found:,} records, but the manifest says {self.shard.records:,}\n"
                "  One of the two was changed. Restore it, or remove the manifest to read the file without."
            )
            raise StorageError(message, path=self.name)

    @cached_property
    def _firsts(self) -> NDArray[np.int64]:
        """The first record of every member."""
        return np.array([member.first_record for member in self._members or ()], np.int64)

    @cached_property
    def _raw(self) -> ByteFile:
        """The uncompressed bytes, to be read at any offset."""
        if self.compression is None:
            return self.file
        lent = self.file if self.local is None else LentFile(self.local, self._open_files)
        return codec_of(self.compression).seekable(lent)

    @cached_property
    def count(self) -> int:
        """How many records there are.

        Raises:
            CorruptRecordError: The start of a record cannot be found.
        """
        if self.shard is not None:
            return self.shard.records
        if self._members is not None:
            return sum(member.records for member in self._members)
        if "_places" in self.__dict__:
            return len(self._places)
        if self.compression is None and self.local is not None and find_index(self._own(), None) is None:
            return self._hopped[0]
        return len(self._places)

    @cached_property
    def _hopped(self) -> tuple[int, str]:
        """The number of records in a plain file, and their digest, from headers and footers alone."""
        assert self.local is not None
        digest, count = new_digest(), 0
        try:
            for identity in identities(self.local.reopened()):
                digest.update(identity)
                count += len(identity) // _IDENTITY_BYTES
        except CorruptRecordError as error:
            raise self.explained(error, checked=False) from None
        return count, digest.hexdigest()

    @cached_property
    def _places(self) -> RecordIndex:
        with self._lock:
            found = find_index(self._own(), self.compression, None if self.shard is None else self.shard.records)
            return found or self._made_places()

    def _made_places(self) -> RecordIndex:
        plain = self.compression is None and self.local is not None
        try:
            places = build_index(self._own(), None if plain else self._reader(0, 0, self._raw))
        except CorruptRecordError as error:
            raise self.explained(error, checked=not plain) from None
        self.check_count(len(places))
        self._places_are_sure = True
        return places

    @cached_property
    def digest(self) -> str:
        """The digest of the records, from the manifest or computed; for a plain file from headers and footers alone."""
        if self.shard is not None:
            return self.shard.digest
        if self.compression is None and self.local is not None:
            return self._hopped[1]
        digest, stream = new_digest(), self.stream()
        while (chunk := stream.read()) is not None:
            digest.update(chunk.identity())
        return digest.hexdigest()

    @property
    def raw_bytes(self) -> int:
        """The size of all records with their frames, uncompressed."""
        if self.shard is not None:
            return self.shard.raw_bytes
        if self.compression is None:
            return self.file.size
        if not self.count:
            return 0
        (start,), (length,) = self._look_up(lambda places: places.one(len(places) - 1))
        return int(start + length)

    def explained(self, error: CorruptRecordError, *, checked: bool) -> CorruptRecordError:
        """Return the error about a record with what a second reading shows, and with advice.

        Args:
            error: What the reader raised.
            checked: Whether the payloads of all records before that one were checked.
        """
        if not self.file.seekable:
            return error
        return explain(self._own(), error, self.compression, checked=checked)

    def places(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Return the uncompressed offset and the length of every record's frame."""
        return self._look_up(lambda places: places.many(np.arange(len(places))))

    def numbers_at(self, offsets: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return the numbers of the records that start at these uncompressed offsets, which are in rising order.

        Raises:
            CorruptRecordError: The index knows no record that starts there.
        """
        if not len(offsets):
            return np.empty(0, np.int64)
        # Look up only those between the first and the last: a file may have millions of others.
        count = len(self._places)
        first, last = (bisect_left(range(count), offset, key=self._start_of) for offset in offsets[[0, -1]].tolist())
        starts = self._look_up(lambda places: places.many(np.arange(first, min(last + 1, count))))[0]
        numbers = np.searchsorted(starts, offsets)
        if last == count or not np.array_equal(starts[numbers], offsets):
            message = (
                f"{self.name}: the numbers of records after damage are unknown, so overlays cannot be applied\n"
                "  Open with overlays=False to read the records alone."
            )
            raise CorruptRecordError(message, path=self.name, kind="unaligned")
        return first + numbers.astype(np.int64)

    def _start_of(self, record: int) -> int:
        return int(self._look_up(lambda places: places.one(record))[0][0])

    def write_index(self) -> Path:
        """Save the index next to the file, and return its path."""
        assert self.local is not None
        target = index_path(self.local.path)
        if find_adjacent_index(self.local, self.compression) is None:
            builder = IndexBuilder()
            builder.add(self.places()[1] - np.uint64(_FRAME))
            for member in self._members or ():
                builder.add_member(member.offset, member.raw_offset, member.first_record)
            filesystems.refuse_links(target.parent)
            target.parent.mkdir(exist_ok=True)
            filesystems.replace_file(target, builder.to_bytes(Fingerprint.of(self.local.path)))
        return target

    # --- From front to back

    def stream(
        self, first: int = 0, *, tell: Callable[[Damage], None] | None = None, chunk_bytes: int = CHUNK_BYTES
    ) -> Stream:
        """Return the records from number `first` on, in order.

        Args:
            first: Where to start.
            tell: Skip damage instead of raising, and call this with each.
            chunk_bytes: About how many bytes of records a chunk holds by default.
        """
        stream = self._stream(first, chunk_bytes)
        if tell is None:
            return _Explaining(stream, self, checked=first == 0)
        return SkippingStream(stream, self._own(), self.compression, tell, self._limit, first)

    def _stream(self, first: int, chunk_bytes: int) -> Stream:
        if self._members is not None:
            at = sum(member.first_record + member.records <= first for member in self._members)
            return _from_record(MemberStream(self._own(), self._members[at:], self._limit), first)
        if self.compression is None:
            try:
                return self._reader(self._offset_of(first), first, self.file, chunk_bytes)
            except CorruptRecordError:  # raised again if reading gets there
                return _from_record(self._reader(0, 0, self.file, chunk_bytes), first)
        return _from_record(self._reader(0, 0, None, chunk_bytes), first)

    def _offset_of(self, record: int) -> int:
        """Return where a record of a plain file starts."""
        if not record:
            return 0
        if record >= self.count:
            return self.file.size
        starts, _ = self._look_up(lambda places: places.one(record))
        if not self._places_are_sure and not starts_record(self._own().read_at(int(starts[0]), _HEADER)):
            self._renew()
            starts, _ = self._look_up(lambda places: places.one(record))
        return int(starts[0])

    def _reader(self, offset: int, first: int, file: ByteFile | None, chunk_bytes: int = CHUNK_BYTES) -> Reader:
        options: dict[str, Any] = {
            "path": self.name,
            "chunk_bytes": chunk_bytes,
            "max_record_bytes": self._limit,
            "offset": offset,
            "first_record": first,
        }
        # A file of its own, closed when the reader goes.
        source: Any
        if file is None:
            source = codec_of(self.compression).reader(self._own())
        elif file.local is not None:
            return _LocalReader(file.local.reopened(), **options)
        else:
            source = Sequential(file, offset)
        return Reader(cast("IO[bytes]", source), **options)

    # --- In any order

    def fetch_one(self, number: int) -> Chunk:
        """Return one record.

        Raises:
            CorruptRecordError: It is damaged.
        """
        if self._members is not None:
            of = int(np.searchsorted(self._firsts, number, side="right")) - 1
            inside = number - self._members[of].first_record
            return self._member(self._members, of).slice(inside, inside + 1)
        # The short way: for intact records that are where the index says.
        raw = self._raw.local
        if raw is not None and self._limit == NO_LIMIT:
            table = self._places.table  # may raise, so do it before borrowing
            try:
                chunk = table.fetch(self._open_files.borrow(raw), number)
            except IndexError:
                raise self._fewer([number]) from None
            finally:
                self._open_files.give_back(raw)
            if chunk is not None:
                return chunk
        return self._fetched(lambda places: places.one(number), [number])

    def fetch(self, numbers: NDArray[np.int64]) -> Chunk:
        """Return records by number, in this order; they are read in the order of the file.

        Raises:
            CorruptRecordError: One of them is damaged.
        """
        if self._members is None:
            return self._fetched(lambda places: places.many(numbers), numbers)
        if (numbers[1:] >= numbers[:-1]).all():
            return self._fetch_members(self._members, numbers)
        order = np.argsort(numbers, kind="stable")
        back = np.empty(len(order), np.uint64)
        back[order] = np.arange(len(order), dtype=np.uint64)
        return self._fetch_members(self._members, numbers[order]).pick(back)

    def borrowed(self) -> int:
        """Return the descriptor of a plain local file, which stays open until `give_back`."""
        assert self.local is not None
        return self._open_files.borrow(self.local)

    def several(self, files: int) -> AbstractContextManager[None]:
        """Keep room to borrow this many files of the dataset at once."""
        return self._open_files.several(files)

    @property
    def map(self) -> _core.FileMap | None:
        """The borrowed file as a map, once it was read at many offsets."""
        assert self.local is not None
        return self.local.map

    def note_reads(self, places: int) -> None:
        """Count random reads of the borrowed file."""
        assert self.local is not None
        self.local.note_reads(places)

    def expect_reads(self, places: int) -> None:
        """Hint that about `places` random reads follow."""
        if self.local is not None:
            self.local.expect_reads(places)
            # Errors show up again when it is read. Until then, one thread loads the index, rather than several that
            # get in each other's way.
            with suppress(RecordKitError, ValueError, OSError):
                if (own := self.at_places()) is not None:
                    own.expect(places)

    def give_back(self) -> None:
        """Let the file be closed when others need its descriptor."""
        assert self.local is not None
        self._open_files.give_back(self.local)

    def at_places(self) -> RecordIndex | None:
        """Return the index for random reads by the core; None if the file is compressed, not local or has a limit."""
        plain = self.compression is None and self.local is not None and self._limit == NO_LIMIT
        return self._places if plain else None

    def span(self, first: int, count: int) -> Chunk:
        """Return consecutive records.

        Raises:
            CorruptRecordError: One of them is damaged.
        """
        numbers = np.arange(first, first + count)
        raw = self._raw.local if self._members is None and count else None
        if raw is None or self._limit < NO_LIMIT:
            return self.fetch(numbers)
        try:
            start = int(self._places.one(first)[0][0])
            last, size = self._places.one(first + count - 1)
            data = LentFile(raw, self._open_files).read_at(start, int(last[0] + size[0]) - start)
        except (ValueError, OSError):
            return self.fetch(numbers)
        chunk, fault, _ = _core.scan(data, NO_LIMIT, start, first)
        # `fetch` names a damaged record.
        return chunk if not fault and len(chunk) == count else self.fetch(numbers)

    def _fetched(self, look: _Look, numbers: Sequence[int] | NDArray[np.int64]) -> Chunk:
        """Return records through the index; if they are not where it says, through a new one."""
        try:
            starts, sizes = self._look_up(look)
            chunk, fault = self._read(starts, sizes, numbers)
            if fault and not self._places_are_sure and self._renew():
                del chunk  # it may be large, and the next one too
                starts, sizes = self._look_up(look)
                chunk, fault = self._read(starts, sizes, numbers)
        except IndexError:
            raise self._fewer(numbers) from None
        if fault:
            at = len(chunk)
            record, offset = int(numbers[at]), int(starts[at])
            self.file.check_not_truncated(record, offset)
            raise self.explained(corrupt(fault, path=self.name, record=record, offset=offset), checked=False)
        return chunk

    def _look_up(self, look: _Look) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        try:
            return look(self._places)
        except RecordKitError:
            raise
        except (ValueError, OSError) as error:  # the index is damaged or gone; build another one
            warn_of_index(self.name, str(error))
            self._places = self._made_places()
            return look(self._places)

    def _fewer(self, numbers: Sequence[int] | NDArray[np.int64]) -> Exception:
        """Return the error for records that the index does not have."""
        if "count" not in self.__dict__ or max(numbers) >= self.count:
            return IndexError(f"{self.name}: there is no record {max(numbers)}")
        message = (
            f"{self.name}: the file has {len(self._places)} records now, and had {self.count} when it was opened\n"
            "  Open it again."
        )
        return CorruptRecordError(message, path=self.name, kind="cut_short")

    def _renew(self) -> bool:
        """Build the index again, since the one in use may be false, or of an earlier file with the same ends.

        Not for a file that was written to since it was opened: that would mix old and new records.
        """
        if self.local is not None and not self.local.is_as_opened():
            return False
        before = self._places.index
        try:
            self._places = self._made_places()
        except CorruptRecordError:
            self._places_are_sure = True  # as sure as they get
            return False
        if not before.equals(self._places.index):
            words = "records are not where it says; records read by number before may have been the wrong ones"
            warn_of_index(self.name, f"{before.path}: {words}")
        return True

    def _read(
        self, starts: NDArray[np.uint64], sizes: NDArray[np.uint64], numbers: Sequence[int] | NDArray[np.int64]
    ) -> tuple[Chunk, int]:
        """Return the records at these offsets up to the first damaged one, and its fault."""
        raw, first = self._raw, int(numbers[0]) if len(numbers) else 0
        if self._limit < NO_LIMIT and len(large := np.flatnonzero(sizes > self._limit + _FRAME)):
            at = int(large[0])
            chunk, fault = self._read(starts[:at], sizes[:at], numbers[:at]) if at else (_core.join([]), 0)
            return chunk, fault or _TOO_LARGE
        if (local := raw.local) is not None:
            try:
                return _core.fetch(self._open_files.borrow(local), starts, sizes, first)
            finally:
                self._open_files.give_back(local)
        pieces = [b""] * len(starts)
        for at in np.argsort(starts, kind="stable").tolist():
            pieces[at] = raw.read_at(int(starts[at]), int(sizes[at]))
        chunk, fault, _ = _core.scan(b"".join(pieces), NO_LIMIT, int(starts[0]) if len(starts) else 0, first)
        wrong = np.flatnonzero(chunk.lengths + np.uint64(_FRAME) != sizes[: len(chunk)])
        return (chunk.slice(0, int(wrong[0])), _BAD_LENGTH) if len(wrong) else (chunk, fault)

    def _fetch_members(self, members: tuple[Member, ...], numbers: NDArray[np.int64]) -> Chunk:
        firsts = self._firsts
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
            stream = MemberStream(self._own(), members[number : number + 1], self._limit)
            chunk = stream.read()
            assert chunk is not None
            if stream.failure is not None:
                raise stream.failure
            with self._lock:
                self._recent[number] = chunk
                if len(self._recent) > _MEMBERS_KEPT:
                    self._recent.popitem(last=False)
        return chunk

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.file, self.shard, self._open_files, self._max_record_bytes)


def _restored(file: ByteFile, shard: Shard | None, open_files: OpenFiles, limit: int | None) -> RecordFile:
    return RecordFile(file, shard, open_files, max_record_bytes=limit)


class _LocalReader(Reader):
    """A reader that closes its file when it goes."""

    def __init__(self, file: LocalFile, **options: Any) -> None:
        super().__init__(file.descriptor, had=file.had, **options)
        self._held = file


class _Around:
    """A stream that wraps another."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    @property
    def next_record(self) -> int:
        return self._stream.next_record

    @property
    def failure(self) -> CorruptRecordError | None:
        failure: CorruptRecordError | None = getattr(self._stream, "failure", None)
        return failure


class _Explaining(_Around):
    """A stream that explains errors before it raises them."""

    def __init__(self, stream: Stream, file: RecordFile, *, checked: bool) -> None:
        super().__init__(stream)
        self._file = file
        self._checked = checked  # whether all records before a damaged one were checked

    @property
    def failure(self) -> CorruptRecordError | None:
        failure = super().failure
        return None if failure is None else self._file.explained(failure, checked=self._checked)

    def read(self, records: int | None = None) -> Chunk | None:
        try:
            chunk = self._stream.read(records)
        except CorruptRecordError as error:
            raise self._file.explained(error, checked=self._checked) from None
        if chunk is None:
            self._file.check_count(self.next_record)
        return chunk


class _Later(_Around):
    """A stream without the records before number `first`."""

    def __init__(self, stream: Stream, first: int) -> None:
        super().__init__(stream)
        self._first = first

    def read(self, records: int | None = None) -> Chunk | None:
        while (chunk := self._stream.read(records)) is not None:
            if chunk.first_record >= self._first:
                return chunk
            if chunk.first_record + len(chunk) > self._first:
                return chunk.slice(self._first - chunk.first_record, len(chunk))
        return None


def _from_record(stream: Stream, first: int) -> Stream:
    return _Later(stream, first) if first else stream
