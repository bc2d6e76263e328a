"""Readers: elements from a source of records, by number in any order, or one file after the other."""

from __future__ import annotations

import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from recordkit.engines import AUTO, OrderedThreadPool, ProcessEngine, Processes, TaskQueue, Workers
from recordkit.engines import count as worker_count

from ._elements import ElementBlock, LazyMarks, TracedElements, joined, number_of, parts_of
from ._iteration import READING
from ._order import EpochOrder, StridedOrder
from ._order_steps import Shuffle, check_even
from ._step import ENDLESS, count_after
from ._windows import Window, has_small_rows, read

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from ._element_steps import BatchStep, Section
    from ._elements import Mark
    from ._iteration import Profile
    from ._order_steps import OrderStep
    from ._source import LoadedRecords, RecordSource

    Blocks = Generator[ElementBlock, None, None]

_BLOCK_SECONDS = 0.03  # to make a block: longer, and the first one is late; shorter, and handing over costs more
_FIRST_BLOCK = 64
_BLOCK_BYTES = 6 << 20
_PADDED_BLOCK_BYTES = 2 << 20  # padding makes ragged lists several times as large
_NO_END = ENDLESS >> 31  # a rank's share of what is endless is no less than this


class PlaceRange(NamedTuple):
    """Places [first, stop) of an order, and their records if they were read ahead of time."""

    first: int
    stop: int
    loaded: tuple[tuple[LoadedRecords, int, int], ...] = ()


@dataclass
class BlockSizer:
    """Decides how many records to read at a time: whole batches, and fewer where records take long."""

    unit: int
    most: int
    size: int = field(init=False)

    def __post_init__(self) -> None:
        self.most = max(self.unit, (self.most + self.unit // 2) // self.unit * self.unit)
        self.size = min(self.most, -(-_FIRST_BLOCK // self.unit) * self.unit)

    def learn(self, records: int, seconds: float) -> None:
        """Adapt the size to how long some records took."""
        fitting = int(records * _BLOCK_SECONDS / max(seconds, 1e-6))
        wanted = min(max(fitting, self.size // 4), self.size * 4)
        self.size = min(self.most, max(self.unit, wanted // self.unit * self.unit))


@dataclass(frozen=True)
class RangeReader:
    """Reads ranges of an order and applies steps to them. Can be pickled, to run in other processes."""

    source: RecordSource
    order: EpochOrder | StridedOrder
    section: Section

    def read(self, places: PlaceRange) -> tuple[TracedElements, list[float], float]:
        """Return the elements of a range, and the seconds spent on each step and on reading and decoding."""
        begun = time.perf_counter()
        numbers = None if places.loaded else self.order.numbers(places.first, places.stop)
        parts = places.loaded if numbers is None else ((self.source.load(numbers), 0, len(numbers)),)
        elements = _one([loaded.elements(start, stop) for loaded, start, stop in parts])
        reading = time.perf_counter() - begun
        reading += sum(loaded.seconds * (stop - start) for loaded, start, stop in parts if isinstance(loaded, Window))
        return (*self.section.run(elements, _PlaceNames(self, places.first).place), reading)


def _one(parts: list[TracedElements]) -> TracedElements:
    if len(parts) == 1:
        return parts[0]
    taken, ends = 0, []
    for part in parts:
        ends += [end + taken for end in part.ends]
        taken += part.taken
    return TracedElements(joined([part.values for part in parts]), ends, taken)


class _PlaceNames:
    """Names the records of a range, for errors."""

    def __init__(self, reader: RangeReader, first: int) -> None:
        self._reader = reader
        self._first = first

    def place(self, at: int) -> str:
        number = int(self._reader.order.numbers(self._first + at, self._first + at + 1)[0])
        return self._reader.source.place(number)


def place_ranges(reader: RangeReader, sizes: BlockSizer, ahead: ReadAhead | None) -> Generator[PlaceRange, None, None]:
    """Yield the places of an order, as many at a time as `sizes` says by then.

    Args:
        reader: Has the order.
        sizes: How many places a range has; it may change after each.
        ahead: Reads the records; None if the worker that takes a range reads them.
    """
    first = 0
    while first < reader.order.count:
        stop = min(reader.order.count, first + sizes.size)
        yield PlaceRange(first, stop, () if ahead is None else ahead.read(first, stop))
        first = stop


class ReadAhead:
    """Reads records in large pieces: the next one is on its way while this one is used.

    Args:
        reader: Has the source and the order.
        records: How many records a piece has.
        at_first: How many the first piece has; each one after it has twice as many. None for `records`.
        threads: How many threads read.
    """

    def __init__(self, reader: RangeReader, records: int, at_first: int | None, threads: int) -> None:
        self._reader = reader
        self._records = records
        self._asked = records if at_first is None else at_first
        self._loaded: list[tuple[int, int, LoadedRecords]] = []
        self._next: tuple[int, int, Future[Any]] | None = None
        self._pool = ThreadPoolExecutor(threads, "recordkit-ahead")

    def read(self, first: int, stop: int) -> tuple[tuple[LoadedRecords, int, int], ...]:
        """Return the records at places [first, stop): parts of what was loaded. Places only rise."""
        while not self._loaded or self._loaded[-1][1] < stop:
            start, end, coming = self._next or self._ask(self._loaded[-1][1] if self._loaded else 0)
            self._next = None
            loaded = coming.result()
            self._loaded.append((start, end, loaded.result() if isinstance(loaded, Future) else loaded))
            if end < self._reader.order.count:
                self._next = self._ask(end)
        self._loaded = [each for each in self._loaded if each[1] > first]
        parts = [(each, max(first, start) - start, min(stop, end) - start) for start, end, each in self._loaded]
        return tuple(part for part in parts if part[1] < part[2])

    def _ask(self, first: int) -> tuple[int, int, Future[Any]]:
        order = self._reader.order
        stop = order.window_end(first, min(order.count, first + self._asked))
        self._asked = min(self._records, 2 * self._asked)
        return first, stop, self._pool.submit(self._load, first, stop)

    def _load(self, first: int, stop: int) -> LoadedRecords | Future[Window]:
        source, numbers = self._reader.source, self._reader.order.numbers(first, stop)
        return read(source, numbers, self._pool) if self._small_rows else source.load(numbers)

    @cached_property
    def _small_rows(self) -> bool:
        return has_small_rows(self._reader.source, int(self._reader.order.numbers(0, 1)[0]))

    def close(self) -> None:
        """Stop the threads."""
        self._pool.shutdown(wait=True, cancel_futures=True)


@dataclass(frozen=True)
class OrderedReader:
    """Reads records by number, in the order that a chain of steps gives.

    Attributes:
        steps: The steps of the order, the first nearest to the records.
        section: The steps to apply to what is read.
        unit: How many records belong together: those of a batch.
        every: Give only batch `every[0]` and every `every[1]`-th after it.
    """

    source: RecordSource
    steps: tuple[OrderStep, ...]
    section: Section
    unit: int
    workers: Workers
    profile: Profile
    every: tuple[int, int] | None = None

    def order(self, mark: Mark, epoch: int) -> EpochOrder | StridedOrder:
        """Return the order from a mark on."""
        number = 0
        if self.every is not None:
            mark, number = parts_of(mark, None, 0)
        order = EpochOrder.at(self.source.count(), self.steps, self.source, epoch, mark)
        for count, shard in order.shards():
            check_even(count, shard)
        return order if self.every is None else StridedOrder(order, self.unit, *self.every, number)

    def count(self) -> int | None:
        """Return how many elements there are; None if that is not known, or there is no end."""
        records = self.order(None, 0).count if self.source.exact else _NO_END  # some may be skipped
        return None if records >= _NO_END else count_after(self.section.steps, records)

    def blocks(self, mark: Mark, epoch: int) -> Blocks:
        """Yield the blocks after a mark."""
        order, source = self.order(mark, epoch), self.source
        reader = RangeReader(source, order, self.section)
        size = _PADDED_BLOCK_BYTES if self.section.pads else _BLOCK_BYTES
        sizes = BlockSizer(self.unit, max(1, size // source.mean_bytes))
        if isinstance(self.workers, Processes):
            made = ProcessEngine(self.workers.count).map(reader.read, place_ranges(reader, sizes, None))
            yield from self._marked(made, order, sizes)
            return
        count, (records, at_first) = worker_count(self.workers), self._ahead()
        if records is None:
            source.expect(order.count)
        ahead = ReadAhead(reader, records, at_first, count) if records is not None else None
        grow = self.workers == AUTO and bool(self.section.steps)
        pool = OrderedThreadPool(count, TaskQueue(place_ranges(reader, sizes, ahead)), reader.read, grow=grow)
        self.profile.watch(pool)
        try:
            yield from self._marked(pool.results(), order, sizes)
        finally:
            pool.stop()
            if ahead is not None:
                ahead.close()

    def _ahead(self) -> tuple[int | None, int | None]:
        """Return how many records to read at once, and how many the first time."""
        window = next((step.window for step in self.steps if isinstance(step, Shuffle) and step.window), None)
        sizes = (window, None) if window else (self.source.ahead_bytes, self.source.first_bytes)
        mean = self.source.mean_bytes
        ahead, first = (None if size is None else max(1, size // mean) for size in sizes)
        return ahead, first

    def _marked(
        self, results: Iterator[tuple[TracedElements, list[float], float]], order: Any, sizes: BlockSizer
    ) -> Blocks:
        at = 0
        for made, seconds, reading in results:
            self.profile.note(self.section, made, seconds, reading)
            sizes.learn(made.taken, sum(seconds) + reading)
            marks = LazyMarks(range(at + 1, at + made.taken + 1), order.mark)
            at += made.taken
            if len(made.values):
                yield made.block(marks)


@dataclass(frozen=True)
class SequentialReader:
    """Reads records one file after the other.

    Attributes:
        first: The number of the first record.
        stop: The number after the last; None for all.
        section: The steps to apply to what is read.
        size: How many records to decode at a time.
        workers: How many threads.
        batch: The step that makes the batches, and its number, if the source can make them by itself.
    """

    source: RecordSource
    first: int
    stop: int | None
    section: Section
    size: int
    workers: int
    profile: Profile
    batch: tuple[BatchStep, int] | None = None

    def count(self) -> int | None:
        """Return how many elements there are; None if that is not known."""
        if not (self.source.indexed and self.source.exact):
            return None
        count = self.source.count()
        stop = count if self.stop is None else min(count, self.stop)
        steps = self.section.steps if self.batch is None else self.batch[:1]
        return count_after(steps, max(0, stop - self.first))

    def blocks(self, mark: Mark, epoch: int) -> Blocks:
        """Yield the blocks after a mark."""
        at = 0 if mark is None else number_of(mark)
        first = self.first + at
        count = None if self.stop is None else max(0, self.stop - first)
        if self.batch is not None:
            yield from self._batches(*self.batch, at, count)
            return
        for made, seconds, decoding in self.source.stream(first, count, self.size, self.section, self.workers):
            self.profile.note(self.section, made, seconds, decoding)
            marks = range(at + 1, at + made.taken + 1)
            at += made.taken
            if len(made.values):
                yield made.block(marks)

    def _batches(self, step: BatchStep, number: int, at: int, count: int | None) -> Blocks:
        for batch, decoding in self.source.batches(self.first + at, count, self.size, self.workers):
            size = len(batch)
            self.profile.add(READING, size, decoding)
            self.profile.add(number, 1, 0.0)
            at += size
            if size == self.size or not step.drop_last:
                yield ElementBlock([batch], (at,))
