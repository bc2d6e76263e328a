"""Order: which record comes at which place of an epoch, by arithmetic alone.

An order is a chain of steps that translate places. So any place is found at once, and the place is all that has to be
remembered to continue from there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ._elements import number_of, parts_of
from ._order_steps import RepeatStep, ShardStep, Shuffle, groups_of
from ._step import ENDLESS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ._elements import Mark
    from ._order_steps import Numbers, OrderStep
    from ._source import RecordSource


@dataclass(frozen=True)
class EpochOrder:
    """The places of an epoch, or of the rest of it.

    Attributes:
        records: How many records there are.
        ops: The first is nearest to the records.
        epoch: Which epoch it is; each has an order of its own.
        passes: How many passes of a last `Repeat` are over.
        start: How many elements of all ranks were given in this pass, where there are ranks; else, of this one.
    """

    records: int
    ops: tuple[OrderStep, ...]
    source: RecordSource
    epoch: int = 0
    passes: int = 0
    start: int = 0

    @classmethod
    def at(cls, records: int, ops: tuple[OrderStep, ...], source: RecordSource, epoch: int, mark: Mark) -> EpochOrder:
        """Return the order from a mark on."""
        passes, start = parts_of(mark, 0, 0) if isinstance(mark, list | tuple) else (0, number_of(mark))
        return cls(records, ops, source, epoch, passes, start)

    @cached_property
    def last(self) -> RepeatStep | None:
        """The last step, if it repeats all others."""
        last = self.ops[-1] if self.ops else None
        return last if isinstance(last, RepeatStep) else None

    @cached_property
    def _inner(self) -> tuple[OrderStep, ...]:
        return self.ops[:-1] if self.last is not None else self.ops

    @cached_property
    def _shard(self) -> ShardStep | None:
        """The shard step, if it is the last before any repeat: then marks count the elements of all ranks."""
        last = self._inner[-1] if self._inner else None
        return last if isinstance(last, ShardStep) else None

    @property
    def any_ranks(self) -> bool:
        """Whether a mark means the same for any number of ranks."""
        return self._shard is not None or not any(isinstance(op, ShardStep) for op in self.ops)

    def shards(self) -> Iterator[tuple[int, ShardStep]]:
        """Yield each division among ranks, with how many elements it divides."""
        for at, op in enumerate(self.ops):
            if isinstance(op, ShardStep):
                yield _count(self.ops[:at], self.records), op

    @cached_property
    def _full(self) -> int:
        """The elements of a whole pass."""
        return _count(self._inner, self.records)

    @cached_property
    def _first(self) -> int:
        """The elements left of the current pass."""
        if self._shard is None:
            return max(0, self._full - self.start)
        return _count((*self._inner[:-1], replace(self._shard, start=self.start)), self.records)

    @cached_property
    def count(self) -> int:
        """How many elements are left."""
        if self.last is None:
            return self._first
        if self.last.times is None:
            return self._full and ENDLESS
        return max(0, self._first + (self.last.times - self.passes - 1) * self._full)

    def mark(self, given: int) -> Mark:
        """Return the mark after `given` elements."""
        number, within, start = self._pass_of(given - 1)
        at = start + (within + 1) * (self._shard.world if self._shard is not None else 1)
        return at if self.last is None else [self.passes + number, at]

    def _pass_of(self, place: int) -> tuple[int, int, int]:
        """Return the pass of a place, counted from the start of this order; the place in it; where that pass starts."""
        if place < self._first or self.last is None:
            return 0, place, self.start
        number, within = divmod(place - self._first, self._full)
        return number + 1, within, 0

    def numbers(self, first: int, stop: int) -> Numbers:
        """Return the records at places [first, stop), counted from here on."""
        parts = []
        while first < stop:
            number, within, start = self._pass_of(first)
            length = self._first if number == 0 else self._full
            size = min(stop - first, length - within) if self.last is not None else stop - first
            epoch = self.epoch if self.last is None else self.last.epoch(self.epoch, self.passes + number)
            parts.append(self._translated(np.arange(within, within + size, dtype=np.int64), epoch, start))
            first += size
        return parts[0] if len(parts) == 1 else np.concatenate([np.zeros(0, np.int64), *parts])

    def window_end(self, first: int, stop: int) -> int:
        """Return the first place in (first, stop] whose record is in another window than that of `first`."""
        at = next((at for at, op in enumerate(self._inner) if isinstance(op, Shuffle) and op.window), None)
        if at is None:
            return stop
        number = self._pass_of(first)[0]
        epoch = self.epoch if self.last is None else self.last.epoch(self.epoch, self.passes + number)
        shuffle, before = self._inner[at], _count(self._inner[:at], self.records)
        assert isinstance(shuffle, Shuffle)
        starts = shuffle.windows(before, self.source).starts(shuffle.seed, epoch)
        window = np.searchsorted(starts, self._shuffled_place(first, at), side="right")
        low, high = first, stop
        while high - low > 1:  # places after the shuffle are in the same order as those before it
            middle = (low + high) // 2
            inside = self._pass_of(middle)[0] == number
            if inside and np.searchsorted(starts, self._shuffled_place(middle, at), side="right") == window:
                low = middle
            else:
                high = middle
        return high

    def _shuffled_place(self, place: int, at: int) -> int:
        _, within, start = self._pass_of(place)
        ops, counts, places = self._chain(start)
        return int(_translated(ops[at + 1 :], counts[at + 1 :], np.array([within + places]), 0, self.source)[0])

    def _chain(self, start: int) -> tuple[list[OrderStep], list[int], int]:
        """Return the steps of a pass, how many places come before each, and how many elements were given before."""
        ops = list(self._inner)
        if self._shard is not None:
            ops[-1], start = replace(self._shard, start=start), 0
        counts = [self.records]
        for op in ops:
            counts.append(op.count(counts[-1]))
        return ops, counts, start

    def _translated(self, places: Numbers, epoch: int, start: int) -> Numbers:
        ops, counts, given = self._chain(start)
        return _translated(ops, counts, places + given, epoch, self.source)


@dataclass(frozen=True)
class StridedOrder:
    """Of the groups of `size` elements of an order: group `first` and every `step`-th after it.

    Attributes:
        number: How many groups were given before, by this one and all others.
    """

    order: EpochOrder
    size: int
    first: int
    step: int
    number: int = 0

    @property
    def any_ranks(self) -> bool:
        """Whether a mark means the same for any number of ranks."""
        return self.order.any_ranks

    @property
    def _next(self) -> int:
        """The number of the first group, counted among those left."""
        return (self.first - self.number) % self.step

    @cached_property
    def count(self) -> int:
        """How many elements are left."""
        groups, rest = divmod(self.order.count, self.size)
        mine = len(range(self._next, groups, self.step))
        last = groups >= self._next and (groups - self._next) % self.step == 0
        return mine * self.size + (rest if last else 0)

    def mark(self, given: int) -> Mark:
        """Return the mark after `given` elements: that of the whole order, and the number of groups passed."""
        passed = (-(-given // self.size) - 1) * self.step + self._next + 1
        return [self.order.mark(min(self.order.count, passed * self.size)), self.number + passed]

    def numbers(self, first: int, stop: int) -> Numbers:
        """Return the records at places [first, stop), counted from here on."""
        parts = [np.zeros(0, np.int64)]
        while first < stop:
            group, within = divmod(first, self.size)
            size = min(stop - first, self.size - within)
            place = (group * self.step + self._next) * self.size + within
            parts.append(self.order.numbers(place, place + size))
            first += size
        return np.concatenate(parts)

    def window_end(self, first: int, stop: int) -> int:
        """Return `stop`: there are no windows here."""
        return stop


def _translated(
    ops: Sequence[OrderStep], counts: Sequence[int], places: Numbers, epoch: int, source: RecordSource
) -> Numbers:
    for at in range(len(ops) - 1, -1, -1):
        op, before = ops[at], counts[at]
        if not isinstance(op, RepeatStep):
            places = op.source_places(places, before, epoch, source)
            continue
        # For the steps before it, each pass is another epoch.
        passes, places = np.divmod(places, before)
        found = np.empty(len(places), np.int64)
        for number, mine in groups_of(passes):
            found[mine] = _translated(ops[:at], counts[:at], places[mine], op.epoch(epoch, number), source)
        return found
    return places


def _count(ops: Sequence[OrderStep], records: int) -> int:
    for op in ops:
        records = op.count(records)
    return records
