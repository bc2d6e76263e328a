"""Heads: where elements come from. Records by their numbers in any order, or one after the other."""

from __future__ import annotations

import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from recordkit.engines import AUTO, OrderedThreadPool, ProcessEngine, Processes, TaskQueue, Workers
from recordkit.engines import count as worker_count

from ._elements import ElementBlock, LazyMarks, TracedElements, joined, number_of, parts_of
from ._order import EpochOrder, Facts, StridedOrder
from ._sequential_steps import check_even
from ._windows import Window, has_small_rows, read

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    import numpy as np
    from numpy.typing import NDArray

    from ._element_steps import Section
    from ._elements import Mark
    from ._profile import Profile

    Blocks = Generator[ElementBlock, None, None]

_BLOCK_SECONDS = 0.03  # so long takes a block: longer and the first one is late, shorter and there is more to hand over
_FIRST_BLOCK = 64
_BLOCK_BYTES = 6 << 20
_PADDED_BLOCK_BYTES = 2 << 20  # lists that are filled up become several times as large


class LoadedRecords(Protocol):
    """Records that were read, to be made something of."""

    def piece(self, start: int, stop: int) -> TracedElements:
        """Return records [start, stop) of them as elements; those that are damaged may be lacking."""
        ...


class PlaceRange(NamedTuple):
    """Places [first, stop) of an order, and what was read of them, or is still to be."""

    first: int
    stop: int
    loaded: tuple[tuple[LoadedRecords, int, int], ...] = ()


class Source(Facts, Protocol):
    """What has records with numbers. Can be pickled."""

    @property
    def name(self) -> str:
        """What people call it."""
        ...

    @property
    def indexed(self) -> bool:
        """Whether a record can be had by its number."""
        ...

    @property
    def exact(self) -> bool:
        """Whether every record gives an element: none is passed over."""
        ...

    @property
    def ahead_bytes(self) -> int | None:
        """How much should be read at once, where records are costly to get one by one; None where they are not."""
        ...

    @property
    def first_bytes(self) -> int | None:
        """How much of that at first, so that the first records come soon; then twice as much each time."""
        ...

    def count(self) -> int:
        """Return how many records there are."""
        ...

    def expect(self, count: int) -> None:
        """Take notice that so many records will be loaded, from anywhere."""
        ...

    def load(self, numbers: NDArray[np.int64]) -> LoadedRecords:
        """Read records."""
        ...

    def stream(
        self, first: int, count: int | None, size: int, section: Section, workers: int
    ) -> Iterator[tuple[TracedElements, list[float], float]]:
        """Yield what becomes of records from number `first` on, `size` at a time.

        With it come the seconds that each step took, and those of decoding.
        """
        ...

    def place(self, number: int) -> str:
        """Name the file and record of a number."""
        ...

    def digest(self) -> str:
        """Return what tells these records from all others."""
        ...


@dataclass
class BlockSizer:
    """How many records are taken at a time: fewer where they take long, and whole batches."""

    unit: int
    most: int
    size: int = field(init=False)

    def __post_init__(self) -> None:
        self.most = max(self.unit, (self.most + self.unit // 2) // self.unit * self.unit)
        self.size = min(self.most, -(-_FIRST_BLOCK // self.unit) * self.unit)

    def learn(self, records: int, seconds: float) -> None:
        """Take note of how long some took."""
        fitting = int(records * _BLOCK_SECONDS / max(seconds, 1e-6))
        wanted = min(max(fitting, self.size // 4), self.size * 4)
        self.size = min(self.most, max(self.unit, wanted // self.unit * self.unit))


@dataclass(frozen=True)
class RangeReader:
    """Records in an order, and what steps make of them. Can be pickled, to be done by processes."""

    source: Source
    order: EpochOrder | StridedOrder
    section: Section

    def make(self, span: PlaceRange) -> tuple[TracedElements, list[float], float]:
        """Return what the places of a span become, how many seconds each step took, and reading and decoding."""
        begun = time.perf_counter()
        parts = span.loaded or ((self.source.load(self.order.numbers(*span[:2])), 0, span.stop - span.first),)
        piece = _one([loaded.piece(start, stop) for loaded, start, stop in parts])
        reading = time.perf_counter() - begun
        reading += sum(loaded.seconds * (stop - start) for loaded, start, stop in parts if isinstance(loaded, Window))
        return (*self.section.run(piece, _PlaceNames(self, span.first).place), reading)


def _one(pieces: list[TracedElements]) -> TracedElements:
    if len(pieces) == 1:
        return pieces[0]
    taken, ends = 0, []
    for piece in pieces:
        ends += [end + taken for end in piece.ends]
        taken += piece.taken
    return TracedElements(joined([piece.values for piece in pieces]), ends, taken)


class _PlaceNames:
    """Names the places of a span, if anybody asks."""

    def __init__(self, fetch: RangeReader, first: int) -> None:
        self._fetch = fetch
        self._first = first

    def place(self, at: int) -> str:
        number = int(self._fetch.order.numbers(self._first + at, self._first + at + 1)[0])
        return self._fetch.source.place(number)


def place_ranges(reader: RangeReader, sizes: BlockSizer, ahead: ReadAhead | None) -> Generator[PlaceRange, None, None]:
    """Yield the places of an order, as many at a time as `sizes` says by then.

    Args:
        reader: Has the order.
        sizes: How many places a range has; it may change after each.
        ahead: Reads the records; None to leave reading to whoever takes a range.
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
    """Records in the order that a chain of operations tells."""

    source: Source
    ops: tuple[Any, ...]
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
        order = EpochOrder.at(self.source.count(), self.ops, self.source, epoch, mark)
        for count, shard in order.shards():
            check_even(count, shard)
        return order if self.every is None else StridedOrder(order, self.unit, *self.every, number)

    def count(self) -> int | None:
        """Return how many records are given."""
        return self.order(None, 0).count

    def blocks(self, mark: Mark, epoch: int) -> Blocks:
        """Yield what steps make of the records behind a mark."""
        order, source = self.order(mark, epoch), self.source
        reader = RangeReader(source, order, self.section)
        size = _PADDED_BLOCK_BYTES if self.section.pads else _BLOCK_BYTES
        sizes = BlockSizer(self.unit, max(1, size // source.mean_bytes))
        if isinstance(self.workers, Processes):
            made = ProcessEngine(self.workers.count).map(reader.make, place_ranges(reader, sizes, None))
            yield from self._marked(made, order, sizes)
            return
        count, (records, at_first) = worker_count(self.workers), self._ahead()
        if records is None:
            source.expect(order.count)
        ahead = ReadAhead(reader, records, at_first, count) if records is not None else None
        grow = self.workers == AUTO and bool(self.section.steps)
        pool = OrderedThreadPool(count, TaskQueue(place_ranges(reader, sizes, ahead)), reader.make, grow=grow)
        self.profile.watch(pool)
        try:
            yield from self._marked(pool.results(), order, sizes)
        finally:
            pool.stop()
            if ahead is not None:
                ahead.close()

    def _ahead(self) -> tuple[int | None, int | None]:
        """How many records to read at once, and how many the first time."""
        window = next((op.window for op in self.ops if getattr(op, "window", None)), None)
        sizes = (window, None) if window else (self.source.ahead_bytes, self.source.first_bytes)
        mean = self.source.mean_bytes
        ahead, first = (None if size is None else max(1, size // mean) for size in sizes)
        return ahead, first

    def _marked(
        self,
        made: Iterator[tuple[TracedElements, list[float], float]],
        order: EpochOrder | StridedOrder,
        sizes: BlockSizer,
    ) -> Blocks:
        at = 0
        for piece, seconds, reading in made:
            self.profile.note(self.section, piece, seconds, reading)
            sizes.learn(piece.taken, sum(seconds) + reading)
            marks = LazyMarks(range(at + 1, at + piece.taken + 1), order.mark)
            at += piece.taken
            if len(piece.values):
                yield piece.block(marks)


@dataclass(frozen=True)
class SequentialReader:
    """Records as they lie, one file after the other."""

    source: Source
    first: int
    stop: int | None
    section: Section
    size: int
    workers: Workers
    profile: Profile

    def count(self) -> int | None:
        """Return how many records are given."""
        if not self.source.indexed:
            return None
        count = self.source.count()
        stop = count if self.stop is None else min(count, self.stop)
        return max(0, stop - self.first)

    def blocks(self, mark: Mark, epoch: int) -> Blocks:
        """Yield what steps make of the records behind a mark."""
        at = number_of(mark)
        first = self.first + at
        count = None if self.stop is None else max(0, self.stop - first)
        pieces = self.source.stream(first, count, self.size, self.section, worker_count(self.workers))
        for piece, seconds, decoding in pieces:
            self.profile.note(self.section, piece, seconds, decoding)
            marks = range(at + 1, at + piece.taken + 1)
            at += piece.taken
            if len(piece.values):
                yield piece.block(marks)
