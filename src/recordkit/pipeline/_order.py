"""Order: which record comes at which place of an epoch, by arithmetic alone.

An order is a chain of operations on numbers, each of which tells for the places behind it the places before it. So any
place is found at once, and nothing but the place has to be kept to go on from there. The permutation is written down in
docs/format/order.md.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

import numpy as np

from recordkit import _core

from ._elements import number_of, parts_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from ._elements import Mark

    Numbers: TypeAlias = NDArray[np.int64]

Uneven: TypeAlias = Literal["pad", "drop", "error"]

ENDLESS = 1 << 62
_PIECE_BYTES = 4 << 20  # read at once where records are shuffled within windows
# What is permuted or drawn, told apart, so that one says nothing of the other: docs/format/order.md.
_ALL, _PIECES, SLOTS, REST, TURNS = 0, 1, 2, 3, 4
_WITHIN = 1 << 32  # and the number of the window


class Facts(Protocol):
    """What an order has to know of the records."""

    @property
    def ends(self) -> Numbers:
        """The number of records up to the end of each file."""
        ...

    @property
    def mean_bytes(self) -> int:
        """About how large a record is."""
        ...

    @property
    def exact_mean_bytes(self) -> int:
        """How large a record is on average: the same for the same records, however they are stored."""
        ...


class StepRepr:
    """A step that is printed as it was said: with what is not as usual."""

    def __str__(self) -> str:
        said = []
        for each in fields(self):  # type: ignore[arg-type]
            value = getattr(self, each.name)
            if value != each.default:
                said.append(f"{each.name}={value!r}")
        return f"{type(self).__name__.removesuffix('Step')}({', '.join(said)})"


class OrderStep(Protocol):
    """One operation: `count` places behind it for so many before it, and which those are."""

    def count(self, before: int) -> int:
        """Return how many places there are behind it."""
        ...

    def up(self, places: Numbers, before: int, epoch: int, facts: Facts) -> Numbers:
        """Return for places behind it which they are before it."""
        ...


@dataclass(frozen=True)
class SkipStep(StepRepr):
    """Leave out the first elements."""

    elements: int

    def count(self, before: int) -> int:
        """Return how many are left."""
        return max(0, before - self.elements)

    def up(self, places: Numbers, before: int, epoch: int, facts: Facts) -> Numbers:
        """Return the places, moved."""
        return places + self.elements


@dataclass(frozen=True)
class TakeStep(StepRepr):
    """Keep the first elements only."""

    elements: int

    def count(self, before: int) -> int:
        """Return how many are kept."""
        return min(before, self.elements)

    def up(self, places: Numbers, before: int, epoch: int, facts: Facts) -> Numbers:
        """Return the same places."""
        return places


@dataclass(frozen=True)
class Shuffle(StepRepr):
    """Any record at any place, by a permutation that seed and epoch tell.

    Attributes:
        window: Permute pieces of consecutive records, and then the records within windows of so many bytes.
    """

    seed: int
    window: int | None = None

    def count(self, before: int) -> int:
        """Return as many."""
        return before

    def up(self, places: Numbers, before: int, epoch: int, facts: Facts) -> Numbers:
        """Return where the elements are taken from."""
        if self.window is None:
            return permuted(places, before, self.seed, epoch, _ALL)
        return self.windows(before, facts).up(places, self.seed, epoch)

    def windows(self, before: int, facts: Facts) -> Windows:
        """Return how the records are divided up."""
        assert self.window is not None
        room = self.window // 2  # the next one is read while this one is given
        mean = facts.exact_mean_bytes
        piece = max(1, min(_PIECE_BYTES, room) // mean)
        return Windows(before, piece, max(1, room // (piece * mean)))


@dataclass(frozen=True)
class Windows:
    """Pieces of `piece` consecutive places, the last one shorter, and windows of `pieces` of them."""

    places: int
    piece: int
    pieces: int

    @property
    def size(self) -> int:
        """How many places a window has at most."""
        return self.piece * self.pieces

    def up(self, places: Numbers, seed: int, epoch: int) -> Numbers:
        """Return where the elements are taken from: a piece anywhere, and within the window any place."""
        starts = self.starts(seed, epoch)
        found = np.empty(len(places), np.int64)
        windows = np.searchsorted(starts, places, side="right") - 1
        for window, mine in _each(windows):
            start, stop = int(starts[window]), int(starts[window + 1])
            within = permuted(places[mine] - start, stop - start, seed, epoch, _WITHIN + window)
            found[mine] = self._behind(within, window, seed, epoch)
        return found

    @lru_cache(maxsize=16)  # noqa: B019 - it is a few numbers
    def starts(self, seed: int, epoch: int) -> Numbers:
        """Return the first place of every window, and the end."""
        count = -(-self.places // self.piece)
        starts = np.arange(0, -(-count // self.pieces) + 1, dtype=np.int64) * self.size
        # The piece that is shorter moves all places behind it.
        short = int(np.flatnonzero(permuted(np.arange(count), count, seed, epoch, _PIECES) == count - 1)[0])
        starts[short // self.pieces + 1 :] -= count * self.piece - self.places
        starts[-1] = self.places
        return starts

    def _behind(self, within: Numbers, window: int, seed: int, epoch: int) -> Numbers:
        """Return the records at these places of a window before it was shuffled: pieces one after the other."""
        count = -(-self.places // self.piece)
        slots = np.arange(window * self.pieces, min(count, (window + 1) * self.pieces))
        pieces = permuted(slots, count, seed, epoch, _PIECES)
        lengths = np.minimum(self.piece, self.places - pieces * self.piece)
        ends = np.cumsum(lengths)
        slot = np.searchsorted(ends, within, side="right")
        found: Numbers = pieces[slot] * self.piece + within - (ends - lengths)[slot]
        return found


@dataclass(frozen=True)
class ShardStep(StepRepr):
    """Every `world`-th element, from number `rank` on: all ranks together have all of them.

    Attributes:
        uneven: Where they do not come out even, ranks may get some of the first once more, or all lack the last ones.
        start: So many elements were given before, by all ranks together.
    """

    rank: int
    world: int
    uneven: Uneven = "pad"
    start: int = 0

    def count(self, before: int) -> int:
        """Return how many this rank gets."""
        left = max(0, before - self.start)
        return left // self.world if self.uneven == "drop" else -(-left // self.world)

    def up(self, places: Numbers, before: int, epoch: int, facts: Facts) -> Numbers:
        """Return every `world`-th place; behind the last come the first again."""
        return (self.start + places * self.world + self.rank) % before


@dataclass(frozen=True)
class Interleave(StepRepr):
    """Some records of one file, some of the next, in turns over `cycle` files at a time."""

    cycle: int
    block: int

    def count(self, before: int) -> int:
        """Return as many."""
        return before

    def up(self, places: Numbers, before: int, epoch: int, facts: Facts) -> Numbers:
        """Return where the elements are taken from."""
        return self.turns(facts.ends.tobytes()).up(places)

    @lru_cache(maxsize=4)  # noqa: B019 - it is a few numbers a file
    def turns(self, file_ends: bytes) -> Turns:
        """Return which files take turns, from each place on where that changes."""
        ends = np.frombuffer(file_ends, np.int64)
        sizes = np.diff(ends, prepend=0).tolist()
        firsts = (ends - np.diff(ends, prepend=0)).tolist()
        waiting = [file for file in range(len(sizes)) if sizes[file]][::-1]
        open_files: list[int] = []
        given = dict.fromkeys(range(len(sizes)), 0)
        rounds: list[_Round] = []
        place = 0
        while open_files or waiting:
            while waiting and len(open_files) < self.cycle:
                open_files.append(waiting.pop())
            left = min(-(-(sizes[file] - given[file]) // self.block) for file in open_files)
            if left > 1:  # so many rounds in which every file has a whole block
                firsts_now = [firsts[file] + given[file] for file in open_files]
                rounds.append(_Round(place, (left - 1) * self.block, self.block, firsts_now))
                place += (left - 1) * self.block * len(open_files)
                for file in open_files:
                    given[file] += (left - 1) * self.block
            for slot, file in enumerate(list(open_files)):  # the round in which one of them ends, at least
                size = min(self.block, sizes[file] - given[file])
                rounds.append(_Round(place, size, size, [firsts[file] + given[file]]))
                place += size
                given[file] += size
                if given[file] == sizes[file]:
                    open_files[slot] = waiting.pop() if waiting else -1
            open_files = [file for file in open_files if file >= 0]
        return Turns(rounds)


@dataclass(frozen=True)
class _Round:
    """Places from `place` on, where files take turns that give `block` records each, `each` records a file in all."""

    place: int
    each: int
    block: int
    firsts: Sequence[int]


class Turns:
    """Which record an interleaved place is."""

    def __init__(self, rounds: Sequence[_Round]) -> None:
        self._rounds = rounds
        self._places = np.array([turn.place for turn in rounds], np.int64)

    def up(self, places: Numbers) -> Numbers:
        """Return the records at these places."""
        found = np.empty(len(places), np.int64)
        turns = np.searchsorted(self._places, places, side="right") - 1
        for number, mine in _each(turns):
            turn = self._rounds[number]
            block, within = np.divmod(places[mine] - turn.place, turn.block)
            around, file = np.divmod(block, len(turn.firsts))
            found[mine] = np.array(turn.firsts, np.int64)[file] + around * turn.block + within
        return found


@dataclass(frozen=True)
class RepeatStep(StepRepr):
    """Everything again, `times` times, and for ever if that is None. Each pass is an epoch of its own."""

    times: int | None = None

    def count(self, before: int) -> int:
        """Return how many there are in all."""
        return before and (ENDLESS if self.times is None else before * self.times)

    def epoch(self, epoch: int, number: int) -> int:
        """Return which epoch a pass is."""
        return epoch * (self.times or 1) + number


@dataclass(frozen=True)
class EpochOrder:
    """The places of an epoch, or what is left of it.

    Attributes:
        records: How many records there are.
        ops: The first is nearest to the records.
        epoch: Which epoch it is; each has an order of its own.
        passes: How many passes of a last `Repeat` are over.
        start: How many elements of all ranks were given in this pass, where there are ranks; else, of this one.
    """

    records: int
    ops: tuple[OrderStep | RepeatStep, ...]
    facts: Facts
    epoch: int = 0
    passes: int = 0
    start: int = 0

    @classmethod
    def at(
        cls, records: int, ops: tuple[OrderStep | RepeatStep, ...], facts: Facts, epoch: int, mark: Mark
    ) -> EpochOrder:
        """Return the order from a mark on."""
        passes, start = parts_of(mark, 0, 0) if isinstance(mark, list | tuple) else (0, number_of(mark))
        return cls(records, ops, facts, epoch, passes, start)

    @cached_property
    def last(self) -> RepeatStep | None:
        """What repeats all the rest."""
        last = self.ops[-1] if self.ops else None
        return last if isinstance(last, RepeatStep) else None

    @cached_property
    def _inner(self) -> tuple[OrderStep | RepeatStep, ...]:
        return self.ops[:-1] if self.last is not None else self.ops

    @cached_property
    def _shard(self) -> ShardStep | None:
        """The rank that elements are counted for; None if others come between, or there is none."""
        last = self._inner[-1] if self._inner else None
        return last if isinstance(last, ShardStep) else None

    @property
    def any_ranks(self) -> bool:
        """Whether a mark says the same to any number of ranks."""
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
        """The elements that are left of the pass that is under way."""
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
        """Return the mark that stands behind so many elements."""
        number, within, start = self._pass_of(given - 1)
        at = start + (within + 1) * (self._shard.world if self._shard is not None else 1)
        return at if self.last is None else [self.passes + number, at]

    def _pass_of(self, place: int) -> tuple[int, int, int]:
        """Return the pass of a place counted from here on, the place in it, and where that pass starts."""
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
            parts.append(self._up(np.arange(within, within + size, dtype=np.int64), epoch, start))
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
        starts = shuffle.windows(before, self.facts).starts(shuffle.seed, epoch)
        window = np.searchsorted(starts, self._shuffled_place(first, at), side="right")
        low, high = first, stop
        while high - low > 1:  # places behind the shuffle follow each other as those before it
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
        return int(_up(ops[at + 1 :], counts[at + 1 :], np.array([within + places]), 0, self.facts)[0])

    def _chain(self, start: int) -> tuple[list[OrderStep | RepeatStep], list[int], int]:
        """Return the operations of a pass, how many places are before each, and how many were given before."""
        ops = list(self._inner)
        if self._shard is not None:
            ops[-1], start = replace(self._shard, start=start), 0
        counts = [self.records]
        for op in ops:
            counts.append(op.count(counts[-1]))
        return ops, counts, start

    def _up(self, places: Numbers, epoch: int, start: int) -> Numbers:
        ops, counts, given = self._chain(start)
        return _up(ops, counts, places + given, epoch, self.facts)


@dataclass(frozen=True)
class StridedOrder:
    """Of the groups of `size` elements of an order: number `first`, and from there every `step`-th.

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
        """Whether a mark says the same to any number of ranks."""
        return self.order.any_ranks

    @property
    def _next(self) -> int:
        """Which of the groups that are left is the first one."""
        return (self.first - self.number) % self.step

    @cached_property
    def count(self) -> int:
        """How many elements are left."""
        groups, rest = divmod(self.order.count, self.size)
        mine = len(range(self._next, groups, self.step))
        last = groups >= self._next and (groups - self._next) % self.step == 0
        return mine * self.size + (rest if last else 0)

    def mark(self, given: int) -> Mark:
        """Return the mark that stands behind so many elements: that of all, and how many groups there were."""
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
        """Return the place where another window is read from."""
        return stop


def _up(
    ops: Sequence[OrderStep | RepeatStep], counts: Sequence[int], places: Numbers, epoch: int, facts: Facts
) -> Numbers:
    for at in range(len(ops) - 1, -1, -1):
        op, before = ops[at], counts[at]
        if not isinstance(op, RepeatStep):
            places = op.up(places, before, epoch, facts)
            continue
        # What stands before it is another epoch in each pass.
        passes, places = np.divmod(places, before)
        found = np.empty(len(places), np.int64)
        for number, mine in _each(passes):
            found[mine] = _up(ops[:at], counts[:at], places[mine], op.epoch(epoch, number), facts)
        return found
    return places


def _each(groups: Numbers) -> Iterator[tuple[int, slice | NDArray[np.bool_]]]:
    """Yield each number that is among these, and where: nearly always, it is one."""
    if len(groups) and (groups == groups[0]).all():
        yield int(groups[0]), slice(None)
        return
    for number in np.unique(groups).tolist():
        yield number, groups == number


def _count(ops: Sequence[OrderStep | RepeatStep], records: int) -> int:
    for op in ops:
        records = op.count(records)
    return records


def permuted(places: Numbers, count: int, seed: int, epoch: int, salt: int) -> Numbers:
    """Return the images of places under the permutation of [0, count) that seed, epoch and salt tell."""
    found: Numbers = _core.permute(places, count, seed % (1 << 64), epoch, salt)
    return found
