"""Steps that are arithmetic on the numbers of elements: which element comes at which place of an epoch.

Before steps that drop elements, a place after the step is translated to the place before it, so that any element is
found at once. After them, take, skip, repeat and shard count the elements as they come. The permutation is documented
in docs/format/order.md.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from recordkit import _core
from recordkit.errors import SchemaError

from ._elements import ElementBlock, cut_block, each, parts_of, wrapped
from ._step import ENDLESS, Step

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from numpy.typing import NDArray

    from ._elements import Mark, Upstream
    from ._source import RecordSource

    Blocks = Generator[ElementBlock, None, None]
    Numbers: TypeAlias = NDArray[np.int64]

Uneven: TypeAlias = Literal["pad", "drop", "error"]

_PIECE_BYTES = 4 << 20  # read at once where records are shuffled within windows
# Each permutation and each draw has a salt of its own, so that one tells nothing about another: docs/format/order.md.
_ALL, _PIECES, SLOTS, REST, TURNS = 0, 1, 2, 3, 4
_WITHIN = 1 << 32  # plus the number of the window


class OrderStep(Step):
    """A step that only decides which element comes when."""

    def count(self, before: int) -> int:
        """Return how many places there are after the step."""
        return before

    def source_places(self, places: Numbers, before: int, epoch: int, source: RecordSource) -> Numbers:
        """Translate places after the step to places before it; there are `before` places before it."""
        raise NotImplementedError


@dataclass(frozen=True)
class SkipStep(OrderStep):
    """All but the first elements."""

    elements: int

    def count(self, before: int) -> int:
        """Return how many are left."""
        return max(0, before - self.elements)

    def source_places(self, places: Numbers, before: int, epoch: int, source: RecordSource) -> Numbers:
        """Return the places, shifted."""
        return places + self.elements

    def run(self, upstream: Upstream, mark: Mark, epoch: int) -> Blocks:
        """Yield the blocks after them. Any mark is after them."""
        left = self.elements if mark is None else 0
        with closing(upstream(mark, epoch)) as blocks:
            for block in blocks:
                count = len(block.values)
                if count > left:
                    yield cut_block(block, left, count)
                left = max(0, left - count)


@dataclass(frozen=True)
class TakeStep(OrderStep):
    """The first elements."""

    elements: int

    def count(self, before: int) -> int:
        """Return how many are kept."""
        return min(before, self.elements)

    def source_places(self, places: Numbers, before: int, epoch: int, source: RecordSource) -> Numbers:
        """Return the same places."""
        return places

    def run(self, upstream: Upstream, mark: Mark, epoch: int) -> Blocks:
        """Yield blocks until there are enough."""
        before, given = parts_of(mark, None, 0)
        if given >= self.elements:
            return
        with closing(upstream(before, epoch)) as blocks:
            for block in blocks:
                first, given = given, given + len(block.values)
                taken = cut_block(block, 0, self.elements - first)
                yield ElementBlock(
                    taken.values, wrapped(taken.marks, lambda i, mark, first=first: [mark, first + i + 1])
                )
                if given >= self.elements:
                    return


@dataclass(frozen=True)
class RepeatStep(OrderStep):
    """Everything `times` times, or without end if that is None. Each pass is an epoch of its own."""

    times: int | None = None

    def count(self, before: int) -> int:
        """Return how many there are in all passes."""
        return before and (ENDLESS if self.times is None else before * self.times)

    def epoch(self, epoch: int, number: int) -> int:
        """Return the epoch of a pass."""
        return epoch * (self.times or 1) + number

    def run(self, upstream: Upstream, mark: Mark, epoch: int) -> Blocks:
        """Yield all passes."""
        number, before = parts_of(mark, 0, None)
        while self.times is None or number < self.times:
            any_given = before is not None
            with closing(upstream(before, self.epoch(epoch, number))) as blocks:
                for block in blocks:
                    any_given = any_given or bool(len(block.values))
                    yield ElementBlock(
                        block.values, wrapped(block.marks, lambda i, mark, number=number: [number, mark])
                    )
            if not any_given and self.times is None:
                return  # empty forever; counted passes continue, since a generator may yield more the next time
            number, before = number + 1, None


@dataclass(frozen=True)
class ShardStep(OrderStep):
    """Every `world`-th element, starting with number `rank`: all ranks together get every element.

    Attributes:
        uneven: If the ranks would get different numbers of elements: repeat some of the first, drop the last, or raise.
        start: How many elements all ranks together were given before.
    """

    rank: int
    world: int
    uneven: Uneven = "pad"
    start: int = 0

    def count(self, before: int) -> int:
        """Return how many this rank gets."""
        left = max(0, before - self.start)
        return left // self.world if self.uneven == "drop" else -(-left // self.world)

    def source_places(self, places: Numbers, before: int, epoch: int, source: RecordSource) -> Numbers:
        """Return every `world`-th place; after the last, the first places follow again."""
        return (self.start + places * self.world + self.rank) % before

    def run(self, upstream: Upstream, mark: Mark, epoch: int) -> Blocks:
        """Yield one element of each round, once the round is complete."""
        held: list[Any] = []
        last = mark
        with closing(upstream(mark, epoch)) as blocks:
            for element, last in each(blocks):
                held.append(element)
                if len(held) == self.world:
                    yield ElementBlock([held[self.rank]], [last])
                    held = []
        if not held or self.uneven == "drop":
            return
        if self.uneven == "error":
            raise _uneven(len(held), self.world)
        with closing(_endless(upstream, epoch)) as firsts:  # the first elements are repeated
            again = list(islice(firsts, self.world))
        yield ElementBlock([(held + again)[self.rank]], [last])


def _endless(upstream: Upstream, epoch: int) -> Generator[Any, None, None]:
    while True:
        with closing(upstream(None, epoch)) as blocks:
            for element, _ in each(blocks):
                yield element


def _uneven(left: int, world: int) -> SchemaError:
    message = (
        f"shard: the elements cannot be divided evenly among {world} ranks: {left} are left\n"
        '  uneven="pad" repeats some of the first, uneven="drop" drops the last ones.'
    )
    return SchemaError(message)


def check_even(count: int, shard: ShardStep) -> None:
    """Raise if the elements cannot be divided evenly and the step asks for an error."""
    if shard.uneven == "error" and count % shard.world:
        raise _uneven(count % shard.world, shard.world)


@dataclass(frozen=True)
class Shuffle(OrderStep):
    """All elements, permuted by seed and epoch.

    Attributes:
        window: Permute pieces of consecutive records, then the records within windows of this many bytes.
    """

    seed: int
    window: int | None = None

    def count(self, before: int) -> int:
        """Return as many."""
        return before

    def source_places(self, places: Numbers, before: int, epoch: int, source: RecordSource) -> Numbers:
        """Return the places before the step."""
        if self.window is None:
            return permuted(places, before, self.seed, epoch, _ALL)
        return self.windows(before, source).source_places(places, self.seed, epoch)

    def windows(self, before: int, source: RecordSource) -> Windows:
        """Return how the records are divided into windows."""
        assert self.window is not None
        room = self.window // 2  # the next one is read while this one is used
        mean = source.exact_mean_bytes
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

    def source_places(self, places: Numbers, seed: int, epoch: int) -> Numbers:
        """Return the places before the step: pieces are permuted, then places within each window."""
        starts = self.starts(seed, epoch)
        found = np.empty(len(places), np.int64)
        windows = np.searchsorted(starts, places, side="right") - 1
        for window, mine in groups_of(windows):
            start, stop = int(starts[window]), int(starts[window + 1])
            within = permuted(places[mine] - start, stop - start, seed, epoch, _WITHIN + window)
            found[mine] = self._behind(within, window, seed, epoch)
        return found

    @lru_cache(maxsize=16)  # noqa: B019 - it is a few numbers
    def starts(self, seed: int, epoch: int) -> Numbers:
        """Return the first place of every window, and the end."""
        count = -(-self.places // self.piece)
        starts = np.arange(0, -(-count // self.pieces) + 1, dtype=np.int64) * self.size
        # The shorter piece shifts all places after it.
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
class Interleave(OrderStep):
    """Some records of one file, some of the next, in turns over `cycle` files at a time."""

    cycle: int
    block: int

    def count(self, before: int) -> int:
        """Return as many."""
        return before

    def source_places(self, places: Numbers, before: int, epoch: int, source: RecordSource) -> Numbers:
        """Return the places before the step."""
        return self.turns(source.ends.tobytes()).source_places(places)

    @lru_cache(maxsize=4)  # noqa: B019 - it is a few numbers a file
    def turns(self, file_ends: bytes) -> Turns:
        """Return which files take turns, for each place where that changes."""
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
            if left > 1:  # rounds in which every file gives a whole block
                firsts_now = [firsts[file] + given[file] for file in open_files]
                rounds.append(_Round(place, (left - 1) * self.block, self.block, firsts_now))
                place += (left - 1) * self.block * len(open_files)
                for file in open_files:
                    given[file] += (left - 1) * self.block
            for slot, file in enumerate(list(open_files)):  # the round in which at least one of them ends
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
    """Places from `place` on: files take turns with `block` records each, and give `each` records in all."""

    place: int
    each: int
    block: int
    firsts: Sequence[int]


class Turns:
    """Translates interleaved places to records."""

    def __init__(self, rounds: Sequence[_Round]) -> None:
        self._rounds = rounds
        self._places = np.array([turn.place for turn in rounds], np.int64)

    def source_places(self, places: Numbers) -> Numbers:
        """Return the records at these places."""
        found = np.empty(len(places), np.int64)
        turns = np.searchsorted(self._places, places, side="right") - 1
        for number, mine in groups_of(turns):
            turn = self._rounds[number]
            block, within = np.divmod(places[mine] - turn.place, turn.block)
            around, file = np.divmod(block, len(turn.firsts))
            found[mine] = np.array(turn.firsts, np.int64)[file] + around * turn.block + within
        return found


def groups_of(groups: Numbers) -> Iterator[tuple[int, slice | NDArray[np.bool_]]]:
    """Yield each distinct number and where it occurs; nearly always, there is one."""
    if len(groups) and (groups == groups[0]).all():
        yield int(groups[0]), slice(None)
        return
    for number in np.unique(groups).tolist():
        yield number, groups == number


def permuted(places: Numbers, count: int, seed: int, epoch: int, salt: int) -> Numbers:
    """Apply the permutation of [0, count) for seed, epoch and salt to places."""
    found: Numbers = _core.permute(places, count, seed % (1 << 64), epoch, salt)
    return found
