"""Flow: batches out of many files, made by several threads, in the order of the records.

Threads take chunks of a file in turn and decode them while they are in the processor's cache. Plain files are read in
pieces of whole batches; where that cannot be, the records at the edges are put together by whoever asks for the batch.
"""

from __future__ import annotations

import threading
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

from recordkit.engines import OrderedThreadPool
from recordkit.errors import CorruptRecordError

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence
    from contextlib import AbstractContextManager

    from recordkit.records import Chunk
    from recordkit.storage import RecordFile, Stream

    from ._decoding import BatchDecoder, RecordRange

_Made: TypeAlias = "RecordRange | _WholeBatches | BaseException"

_PIECE_BYTES = 1 << 20  # fits a processor's cache beside what is made of it
_SMALL_BYTES = 4 << 20  # less than this is done before threads have started


class Source(Protocol):
    """Where records come from."""

    @property
    def tolerant(self) -> bool:
        """Whether damaged records are passed over, so that a record's number does not tell how many come before it."""
        ...

    def open_stream(self, file: RecordFile, first: int) -> Stream:
        """Return the records of a file from number `first` on."""
        ...

    def part(self, file: RecordFile, chunk: Chunk) -> RecordRange:
        """Return what is seen of some records of a file."""
        ...

    def living(self, file: RecordFile, number: int) -> int:
        """Return how many of a file's records before this one are seen."""
        ...


class _WholeBatches(NamedTuple):
    """Whole batches, and of how many records they were made."""

    batches: list[Any]
    records: int


class OrderedBatches:
    """Batches of `size` records, the last one shorter.

    Args:
        files: In order.
        first: Where to start in the first file.
        count: How many records to give; None for all.
        size: How many records a batch has.
        making: What is made of them.
        source: Opens files, and knows which records are seen.
        workers: How many threads.
        several: Whether what was made of the records of several batches is as good as what was made of each.
    """

    def __init__(
        self,
        files: Sequence[RecordFile],
        first: int,
        count: int | None,
        size: int,
        making: BatchDecoder,
        source: Source,
        workers: int,
        *,
        several: bool = False,
    ) -> None:
        self._files = files
        self._first = first
        self._count = count
        self._size = size
        self._making = making
        self._workers = workers
        self._several = several
        self._feed = _ChunkFeed(files, first, size, source)

    def __iter__(self) -> Iterator[Any]:
        if self._count == 0:
            return iter(())
        threads = self._workers > 1 and _larger_than(self._files, _SMALL_BYTES)
        return self._assembled(self._by_threads() if threads else self._alone())

    def _alone(self) -> Generator[list[_Made], None, None]:
        while (taken := self._feed.take()) is not None:
            yield self._made(taken[2])

    def _made(self, taken: tuple[RecordRange, int]) -> list[_Made]:
        """Return what a chunk gives: whole batches, and at its two ends records for batches across chunks."""
        part, position = taken
        size, chunk = self._size, part.chunk
        self._feed.batches = max(1, _PIECE_BYTES * len(chunk) // max(1, chunk.nbytes) // size)
        count = len(chunk) if self._count is None else min(len(chunk), max(0, self._count - position))
        start = min(count, -position % size)
        stop = start + (count - start) // size * size
        made: list[_Made] = []
        if start:
            made.append(part.cut(0, start))
        made += self._whole(part, start, stop)
        if isinstance(made[-1], BaseException):
            return made
        if stop < count:
            made.append(part.cut(stop, count))
        return made

    def _whole(self, part: RecordRange, start: int, stop: int) -> list[_Made]:
        """Return the batches of records [start, stop), and behind them what went wrong, if anything did."""
        size = self._size
        if self._several and stop - start > size:
            with suppress(Exception):  # which is told below, behind the batches before it
                return [_WholeBatches([self._making.batch(part, start, stop)], stop - start)]
        batches: list[Any] = []
        for at in range(start, stop, size):
            try:
                batches.append(self._making.batch(part, at, at + size))
            except BaseException as error:
                return [_WholeBatches(batches, at - start), error]
        return [_WholeBatches(batches, stop - start)]

    def _assembled(self, made: Generator[list[_Made], None, None]) -> Iterator[Any]:
        """Yield whole batches, with those across chunks put together."""
        parts: list[RecordRange] = []
        given = held = 0
        failure: BaseException | None = None
        try:
            for items in made:
                for item in items:
                    if isinstance(item, _WholeBatches):
                        yield from item.batches
                        given += item.records
                        continue
                    if isinstance(item, BaseException):
                        raise item
                    parts.append(item)
                    held += len(item.chunk)
                    if held == self._size:
                        whole, parts, held = parts, [], 0
                        yield self._making.joined(whole)
                        given += self._size
                if given + held == self._count:
                    break
        except CorruptRecordError as error:
            failure = error  # the sound records before it come first
        finally:
            made.close()  # now, and by this thread: an error's traceback may keep it for long
        if parts:
            yield self._making.joined(parts)
        if failure is not None:
            raise failure

    def _by_threads(self) -> Generator[list[_Made], None, None]:
        pool = OrderedThreadPool(self._workers, self._feed, self._made)
        try:
            yield from pool.results()
        finally:
            pool.stop()


def _larger_than(files: Sequence[RecordFile], size: int) -> bool:
    total = 0
    for file in files:
        total += file.file.size
        if total > size:
            return True
    return False


class _ChunkFeed:
    """Gives out the chunks of all files, one after the other, with where each stands in the order.

    The next file is opened when the last chunk of the one before has been given out: only then it is known which of its
    records begins a batch. That one may still be in work then, and turn out to be damaged: nothing is given out when a
    failure is known, for what stands before it has been.

    Attributes:
        failure: The first in the order of those that are known.
        batches: How many batches the next chunk is to have.
    """

    def __init__(self, files: Sequence[RecordFile], first: int, size: int, source: Source) -> None:
        self._files = files
        self._size = size
        self._source = source
        self._lock = threading.Lock()
        self._turn = threading.Lock()  # to open the next file
        # Where records are passed over, and others deleted, only counting tells how many were given.
        self._counted = 0
        self._counting: AbstractContextManager[Any] | None = threading.Lock() if source.tolerant else None
        self.failure: BaseException | None = None
        self.batches = 1
        self._failed_at = (0, 0)
        self._starts: list[int] = []  # of each file opened so far: the position of its record 0 in the order
        self._first = first
        self._open: tuple[int, Stream | None] = (-1, None)  # one object: it is looked at without the lock

    def take(self) -> tuple[int, int, tuple[RecordRange, int]] | None:
        """Return the next records with their position in the order, and how many they are; None at the end."""
        taken = self._take()
        return None if taken is None else (taken[1], len(taken[0].chunk), taken)

    def _take(self) -> tuple[RecordRange, int] | None:
        while True:
            if self.failure is not None:
                raise self.failure
            file, stream = self._open
            try:
                taken = None if stream is None else self._read(file, stream, self.batches * self._size)
                if stream is not None and (failure := getattr(stream, "failure", None)) is not None:
                    self._fail(file, failure)  # the next reading of this stream would raise it, and there may be none
                if taken is not None:
                    if len(taken[0].chunk):
                        return taken
                    continue
                if file >= len(self._files):
                    return None
                taken = self._open_next(file)
            except BaseException as error:
                self._fail(file, error)
                continue
            if taken is not None and len(taken[0].chunk):
                return taken

    def _fail(self, file: int, error: BaseException) -> None:
        at = file, getattr(error, "record", None) or 0
        with self._lock:
            if self.failure is None or at < self._failed_at:
                self.failure, self._failed_at = error, at

    def _read(self, file: int, stream: Stream, records: int) -> tuple[RecordRange, int] | None:
        """Return what is seen of a file's next records, which may be nothing, and its position; None at the end."""
        with self._counting or nullcontext():
            chunk = stream.read(records)
            if chunk is None:
                return None
            part = self._source.part(self._files[file], chunk)
            position = self._position(file, chunk.first_record)
            self._counted += len(part.chunk)
            return part, position

    def _position(self, file: int, record: int) -> int:
        """Return how many records were given before this one."""
        if self._counting is not None:
            return self._counted
        return self._starts[file] + self._source.living(self._files[file], record)

    def _open_next(self, ended: int) -> tuple[RecordRange, int] | None:
        """Open the file behind `ended`, unless another thread was faster."""
        with self._turn:
            file, stream = self._open
            if file != ended:
                return None
            position = self._position(file, stream.next_record) if stream is not None else 0
            number = file + 1
            if number == len(self._files):
                self._open = number, None
                return None
            first = self._first if number == 0 else 0
            stream = self._source.open_stream(self._files[number], first)
            self._starts.append(position - self._source.living(self._files[number], first))
            lead = -position % self._size
            try:
                # What is lacking to a whole batch comes first, so that the pieces behind it are whole batches.
                return self._read(number, stream, lead) if lead else None
            finally:
                self._open = number, stream
