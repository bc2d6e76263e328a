"""Reading in order: batches of many files, decoded by several threads, in the order of the records.

Threads take chunks of a file in turn and decode them while they are in the processor's cache. Plain files are read in
chunks of whole batches; where that cannot be, the consumer joins the records at the edges.
"""

from __future__ import annotations

import threading
import time
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from recordkit.engines import OrderedThreadPool
from recordkit.errors import CorruptRecordError
from recordkit.pipeline import traced

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence
    from contextlib import AbstractContextManager

    from recordkit.pipeline import Section
    from recordkit.storage.read import RecordFile, Stream

    from ._decoding import BatchDecoder, RecordRange
    from ._sequence import RecordSequence
    from ._tolerant import TolerantDecoder

_Made: TypeAlias = "RecordRange | _WholeBatches | BaseException"

_PIECE_BYTES = 1 << 20  # fits into a processor's cache together with the decoded values
_SMALL_BYTES = 4 << 20  # less than this is read before threads would have started


class _WholeBatches(NamedTuple):
    """Whole batches, and how many records they hold."""

    batches: list[Any]
    records: int


class OrderedBatches:
    """Batches of `size` records, the last one shorter, each with the seconds spent on decoding it.

    With a section, its steps are applied by the thread that has decoded the records, and what comes is
    (elements, seconds of each step, seconds of decoding).

    Args:
        files: In order.
        first: The first record to read of the first file.
        count: How many records to read; None for all.
        size: How many records a batch has.
        decoder: Decodes them.
        records: Opens files, and knows which records are deleted.
        workers: How many threads.
        section: The steps to apply; None for none.
    """

    def __init__(
        self,
        files: Sequence[RecordFile],
        first: int,
        count: int | None,
        size: int,
        decoder: BatchDecoder | TolerantDecoder,
        records: RecordSequence,
        workers: int,
        section: Section | None = None,
    ) -> None:
        self._files = files
        self._count = count
        self._size = size
        self._decoder = decoder
        self._workers = workers
        self._section = section
        self._feed = _ChunkFeed(files, first, size, records)

    def __iter__(self) -> Iterator[Any]:
        if self._count == 0:
            return iter(())
        threads = self._workers > 1 and _larger_than(self._files, _SMALL_BYTES)
        return self._assembled(self._by_threads() if threads else self._alone())

    def _alone(self) -> Generator[list[_Made], None, None]:
        while (taken := self._feed.take()) is not None:
            yield self._made(taken[2])

    def _made(self, taken: tuple[RecordRange, int]) -> list[_Made]:
        """Return the whole batches of a chunk, and the records at its two ends that belong to batches across chunks."""
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
        """Return the batches of records [start, stop), followed by the error if there was one."""
        size = self._size
        if self._section is not None and self._section.pads and stop - start > size:  # many batches at once
            with suppress(Exception):  # raised below, after the batches before it
                return [_WholeBatches([self._decoded(part, start, stop)], stop - start)]
        batches: list[Any] = []
        for at in range(start, stop, size):
            try:
                batches.append(self._decoded(part, at, at + size))
            except BaseException as error:
                return [_WholeBatches(batches, at - start), error]
        return [_WholeBatches(batches, stop - start)]

    def _decoded(self, part: RecordRange, start: int, stop: int) -> Any:
        begun = time.perf_counter()
        values = self._decoder.decode(part, start, stop)
        seconds = time.perf_counter() - begun
        return (values, seconds) if self._section is None else self._through(values, [part], start, seconds)

    def _joined(self, parts: list[RecordRange]) -> Any:
        begun = time.perf_counter()
        values = self._decoder.joined(parts)
        seconds = time.perf_counter() - begun
        return (values, seconds) if self._section is None else self._through(values, parts, 0, seconds)

    def _through(self, values: Any, parts: Sequence[RecordRange], first: int, seconds: float) -> Any:
        """Apply the section to the records of parts from the `first` on."""
        assert self._section is not None
        return (*self._section.run(traced(values), lambda i: _place(parts, first + i)), seconds)

    def _assembled(self, made: Generator[list[_Made], None, None]) -> Iterator[Any]:
        """Yield whole batches, and join those across chunks."""
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
                        yield self._joined(whole)
                        given += self._size
                if given + held == self._count:
                    break
        except CorruptRecordError as error:
            failure = error  # raised after the intact records before it
        finally:
            made.close()  # now and in this thread: an error's traceback may keep it alive for long
        if parts:
            yield self._joined(parts)
        if failure is not None:
            raise failure

    def _by_threads(self) -> Generator[list[_Made], None, None]:
        pool = OrderedThreadPool(self._workers, self._feed, self._made)
        try:
            yield from pool.results()
        finally:
            pool.stop()


def _place(parts: Sequence[RecordRange], at: int) -> str:
    """Name record `at` of all parts, for errors."""
    for part in parts:
        if at < len(part.chunk):
            return f"{part.path}: record {int(part.record_numbers(at, at + 1)[0])}"
        at -= len(part.chunk)
    return f"row {at}"


def _larger_than(files: Sequence[RecordFile], size: int) -> bool:
    total = 0
    for file in files:
        total += file.file.size
        if total > size:
            return True
    return False


class _ChunkFeed:
    """Hands out the chunks of all files, one after the other, with the position of each in the order.

    The next file is opened when the last chunk of the file before has been taken: only then is it known which of its
    records begins a batch. That chunk may still turn out to be damaged. Once a failure is known, no more chunks are
    handed out, because all chunks before it have been.

    Attributes:
        failure: The first error in the order of the records, of those known.
        batches: How many batches the next chunk is to have.
    """

    def __init__(self, files: Sequence[RecordFile], first: int, size: int, records: RecordSequence) -> None:
        self._files = files
        self._size = size
        self._records = records
        self._lock = threading.Lock()
        self._turn = threading.Lock()  # to open the next file
        # With damaged records skipped, and others deleted, only counting tells how many were handed out.
        self._counted = 0
        self._counting: AbstractContextManager[Any] | None = threading.Lock() if records.tolerant else None
        self.failure: BaseException | None = None
        self.batches = 1
        self._failed_at = (0, 0)
        self._starts: list[int] = []  # of each file opened so far: the position of its record 0 in the order
        self._first = first
        self._open: tuple[int, Stream | None] = (-1, None)  # one object, because it is read without the lock

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
                    self._fail(file, failure)  # the next read of this stream would raise it, but there may be none
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
        """Return the visible ones of a file's next records, perhaps none, and their position; None at the end."""
        with self._counting or nullcontext():
            chunk = stream.read(records)
            if chunk is None:
                return None
            part = self._records.part(self._files[file], chunk)
            position = self._position(file, chunk.first_record)
            self._counted += len(part.chunk)
            return part, position

    def _position(self, file: int, record: int) -> int:
        """Return how many records come before this one."""
        if self._counting is not None:
            return self._counted
        return self._starts[file] + self._records.living(self._files[file], record)

    def _open_next(self, ended: int) -> tuple[RecordRange, int] | None:
        """Open the file after `ended`, unless another thread was faster."""
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
            stream = self._records.open_stream(self._files[number], first)
            self._starts.append(position - self._records.living(self._files[number], first))
            lead = -position % self._size
            try:
                # First the records that complete a batch, so that the chunks after them are whole batches.
                return self._read(number, stream, lead) if lead else None
            finally:
                self._open = number, stream
