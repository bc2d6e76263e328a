"""Several pipelines as one: zipped, one after the other, or mixed."""

from __future__ import annotations

from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ._elements import ElementBlock, LazyMarks, cut_block, elements, joined, parts_of, picked, wrapped
from ._order_steps import TURNS, permuted

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from ._elements import Mark
    from ._pipeline import Pipeline

    Blocks = Generator[ElementBlock, None, None]

_DRAWN = 1 << 62
_MIXED = 256  # elements that are mixed at a time


@dataclass(frozen=True)
class Zip:
    """Tuples of one element of each, until any of them ends."""

    pipes: tuple[Pipeline, ...]

    def blocks(self, mark: Mark, epoch: int) -> Blocks:
        """Yield tuples."""
        marks = mark or [None] * len(self.pipes)
        with ExitStack() as stack:
            pulls = [_Pull(stack, pipe, at, epoch) for pipe, at in zip(self.pipes, marks, strict=True)]
            while count := min(pull.ready(1) for pull in pulls):
                parts = [pull.take(count) for pull in pulls]
                rows = list(zip(*(elements(part.values) for part in parts), strict=True))
                yield ElementBlock(rows, LazyMarks(range(count), partial(_marks_at, parts)))

    def count(self) -> int | None:
        """Return how many the shortest has."""
        counts = [pipe.count() for pipe in self.pipes]
        return None if None in counts else min(count for count in counts if count is not None)


def _marks_at(parts: Sequence[ElementBlock], place: int) -> Mark:
    return [part.marks[place] for part in parts]


@dataclass(frozen=True)
class Concat:
    """All elements of the first, then all of the next."""

    pipes: tuple[Pipeline, ...]

    def blocks(self, mark: Mark, epoch: int) -> Blocks:
        """Yield the blocks of each."""
        first, before = parts_of(mark, 0, None)
        for number in range(first, len(self.pipes)):
            with closing(self.pipes[number].blocks(before, epoch)) as blocks:
                for block in blocks:
                    yield ElementBlock(
                        block.values, wrapped(block.marks, lambda i, mark, number=number: [number, mark])
                    )
            before = None

    def count(self) -> int | None:
        """Return how many there are in all."""
        counts = [pipe.count() for pipe in self.pipes]
        return None if None in counts else sum(count for count in counts if count is not None)


@dataclass(frozen=True)
class Mix:
    """Elements of pipelines chosen at random by weights, until all of them have ended, or the first one."""

    pipes: tuple[Pipeline, ...]
    weights: tuple[float, ...]
    seed: int
    stop: str

    def blocks(self, mark: Mark, epoch: int) -> Blocks:
        """Yield mixed blocks."""
        drawn, marks, alive = parts_of(mark, 0, [None] * len(self.pipes), [True] * len(self.pipes))
        with ExitStack() as stack:
            pulls = [_Pull(stack, pipe, at, epoch) for pipe, at in zip(self.pipes, marks, strict=True)]
            alive, marks = list(alive), list(marks)
            while any(alive):
                turns, alive_then, ended = self._turns(pulls, drawn, alive, epoch)
                if turns:
                    yield _mixed(pulls, turns, drawn, marks, alive_then)
                    drawn += len(turns)
                    for number, pull in enumerate(pulls):
                        marks[number] = pull.mark if pull.mark is not None else marks[number]
                if ended:
                    return

    def _turns(
        self, pulls: list[_Pull], drawn: int, alive: list[bool], epoch: int
    ) -> tuple[list[int], list[bool], bool]:
        """Return the next choices, as far as known; which pipelines had not ended before; and whether all have now."""
        draws = permuted(np.arange(drawn, drawn + _MIXED), _DRAWN, self.seed, epoch, TURNS) / _DRAWN
        before, used = list(alive), [0] * len(pulls)
        turns: list[int] = []
        for draw in draws.tolist():
            while True:
                number = self._chosen(draw, alive)
                if pulls[number].ready(used[number] + 1) > used[number]:
                    break
                # It has ended: give what was chosen before that first.
                alive[number] = False
                if self.stop == "first":
                    alive[:] = [False] * len(alive)
                    return turns, before, not turns
                if turns:
                    return turns, before, False
                before = list(alive)
                if not any(alive):
                    return turns, before, True
            used[number] += 1
            turns.append(number)
        return turns, before, False

    def _chosen(self, draw: float, alive: Sequence[bool]) -> int:
        weights = np.where(alive, self.weights, 0.0)
        ends = np.cumsum(weights)
        return min(int(np.searchsorted(ends, draw * ends[-1], side="right")), int(np.flatnonzero(weights)[-1]))

    def count(self) -> int | None:
        """Return how many there are in all, if all are given."""
        return Concat(self.pipes).count() if self.stop == "all" else None


def _mixed(pulls: list[_Pull], turns: list[int], drawn: int, marks: list[Mark], alive: list[bool]) -> ElementBlock:
    whose = np.array(turns)
    parts = [pull.take(int((whose == number).sum())) for number, pull in enumerate(pulls)]
    starts = np.cumsum([0, *(len(part.values) for part in parts)])
    # The k-th turn of one takes its k-th element.
    places = np.empty(len(whose), np.int64)
    for number in range(len(parts)):
        mine = whose == number
        places[mine] = starts[number] + np.arange(mine.sum())
    both = joined([part.values for part in parts if len(part.values)])
    values = picked(both, places)
    before = list(marks)

    def mark(i: int) -> Mark:
        counts = np.bincount(whose[: i + 1], minlength=len(parts)).tolist()
        now = [parts[n].marks[count - 1] if count else before[n] for n, count in enumerate(counts)]
        return [drawn + i + 1, now, alive]

    return ElementBlock(values, LazyMarks(range(len(turns)), mark))


class _Pull:
    """The blocks of one pipeline, to take any number of elements from.

    Attributes:
        mark: The mark of the last element taken.
    """

    def __init__(self, stack: ExitStack, pipe: Pipeline, mark: Mark, epoch: int) -> None:
        self._blocks = stack.enter_context(closing(pipe.blocks(mark, epoch)))
        self._held: list[ElementBlock] = []
        self._size = 0
        self.mark: Mark = None

    def ready(self, count: int) -> int:
        """Return how many elements are available: at least `count`, if that many are left."""
        while self._size < count and (block := next(self._blocks, None)) is not None:
            if len(block.values):
                self._held.append(block)
                self._size += len(block.values)
        return self._size

    def take(self, count: int) -> ElementBlock:
        """Return the next elements, which must be available."""
        parts: list[ElementBlock] = []
        self._size -= count
        while count:
            block = self._held.pop(0)
            size = len(block.values)
            if size > count:
                self._held.insert(0, cut_block(block, count, size))
                block = cut_block(block, 0, count)
            parts.append(block)
            count -= len(block.values)
        if not parts:
            return ElementBlock([], [])
        self.mark = parts[-1].marks[len(parts[-1].values) - 1]
        if len(parts) == 1:
            return parts[0]
        return ElementBlock(joined([part.values for part in parts]), [mark for part in parts for mark in part.marks])
