"""Steps that have to see the elements one after the other.

`run(upstream, mark, epoch)` yields the blocks after a mark, and gets its own from `upstream`, from any mark on. What a
step has to know to resume is in its marks, wrapped around those of the steps before it.
"""

from __future__ import annotations

import threading
from collections import deque
from contextlib import closing
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from recordkit.columns import Batch
from recordkit.engines import AUTO
from recordkit.errors import SchemaError

from ._elements import ElementBlock, LazyMarks, cut, cut_block, each, elements, joined, number_of, parts_of, wrapped
from ._order_steps import REST, SLOTS, permuted
from ._shuffle_buffer import ShuffleBuffer
from ._step import Step

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator

    from ._elements import Mark, Upstream, Values

    Blocks = Generator[ElementBlock, None, None]

_DRAWN = 1 << 62
_MOST_AHEAD = 16


@dataclass(frozen=True)
class Unbatch(Step):
    """The rows of each element: of a batch, a list, or an array."""

    def run(self, upstream: Upstream, mark: Mark, epoch: int) -> Blocks:
        """Yield a block for each element."""
        before, given = parts_of(mark, None, 0)
        with closing(upstream(before, epoch)) as blocks:
            for element, after in each(blocks):
                rows = rows_of(element)
                count = len(rows)
                marks = LazyMarks(range(1, count + 1), _mark_within(before, after, count))
                if given < count:
                    yield cut_block(ElementBlock(rows, marks), given, count)
                before, given = after, 0


def _mark_within(before: Mark, after: Mark, count: int) -> Any:
    return lambda row: [after, 0] if row == count else [before, row]


def rows_of(element: Any) -> Values:
    """Return the rows that a batch was made of."""
    if isinstance(element, Batch):
        return element
    if isinstance(element, dict):
        return [dict(zip(element, row, strict=True)) for row in _rows_across(element.values())]
    if isinstance(element, tuple):
        rows = _rows_across(element)
        return [type(element)(*row) for row in rows] if hasattr(element, "_fields") else rows
    try:
        return list(element)
    except TypeError:
        message = f"unbatch: expected a batch, a list or an array, found {type(element).__name__}"
        raise SchemaError(message) from None


def _rows_across(columns: Iterable[Any]) -> list[tuple[Any, ...]]:
    each_rows = [rows_of(column) for column in columns]
    lengths = {len(rows) for rows in each_rows}
    if len(lengths) != 1:
        message = f"unbatch: expected columns of one length, found {sorted(lengths)}"
        raise SchemaError(message)
    return list(zip(*map(elements, each_rows), strict=True))


@dataclass(frozen=True)
class Enumerate(Step):
    """Each element with its number."""

    def count(self, before: int) -> int:
        """Return as many."""
        return before

    def run(self, upstream: Upstream, mark: Mark, epoch: int) -> Blocks:
        """Yield pairs of number and element."""
        before, number = parts_of(mark, None, 0)
        with closing(upstream(before, epoch)) as blocks:
            for block in blocks:
                first, number = number, number + len(block.values)
                pairs = list(enumerate(elements(block.values), first))
                yield ElementBlock(pairs, wrapped(block.marks, lambda i, mark, first=first: [mark, first + i + 1]))


@dataclass(frozen=True)
class EveryOne(Step):
    """Element `first` and every `step`-th after it."""

    first: int
    step: int

    def count(self, before: int) -> int:
        """Return how many of them there are."""
        return len(range(self.first, before, self.step))

    def run(self, upstream: Upstream, mark: Mark, epoch: int) -> Blocks:
        """Yield those elements."""
        before, number = parts_of(mark, None, 0)
        with closing(upstream(before, epoch)) as blocks:
            for block in blocks:
                start = (self.first - number) % self.step
                for i in range(start, len(block.values), self.step):
                    only = cut_block(block, i, i + 1)
                    yield ElementBlock(only.values, [[only.marks[0], number + i + 1]])
                number += len(block.values)


@dataclass(frozen=True)
class BufferShuffle(Step):
    """A random one of `buffer` elements, which the next element replaces."""

    seed: int
    buffer: int

    def count(self, before: int) -> int:
        """Return as many."""
        return before

    def run(self, upstream: Upstream, mark: Mark, epoch: int) -> Blocks:
        """Yield shuffled blocks. The buffer at a mark can only be found by starting from the beginning."""
        given = number_of(mark)
        at = 0
        for values in self._shuffled(upstream, epoch):
            count = len(values)
            if at + count > given:
                numbers = range(at + 1, at + count + 1)
                yield cut_block(ElementBlock(values, LazyMarks(numbers, int)), given - at, count)
            at += count

    def _shuffled(self, upstream: Upstream, epoch: int) -> Generator[Values, None, None]:
        drawn = 0
        with closing(upstream(None, epoch)) as blocks:
            values = (block.values for block in blocks)
            buffer, left = self._filled(values)
            for parts in _gathered(chain([left], values), self.buffer // 4):
                count = sum(map(len, parts))
                slots = permuted(np.arange(drawn, drawn + count), _DRAWN, self.seed, epoch, SLOTS) % len(buffer)
                drawn += count
                yield buffer.swapped(parts, slots)
        if len(buffer):
            yield buffer.in_order(permuted(np.arange(len(buffer)), len(buffer), self.seed, epoch, REST))

    def _filled(self, values: Iterator[Values]) -> tuple[ShuffleBuffer, Values]:
        """Return the first elements as a buffer, and the rest of the block that filled it."""
        held, room = [], self.buffer
        for some in values:
            held.append(cut(some, 0, room))
            if len(some) >= room:
                return ShuffleBuffer(joined(held)), cut(some, room, len(some))
            room -= len(some)
        return ShuffleBuffer(joined(held) if held else []), []


def _gathered(values: Iterable[Values], most: int) -> Generator[list[Values], None, None]:
    """Yield the values of several blocks together, up to `most` rows: each call costs work for every column.

    An error is raised after the values before it.
    """
    parts: list[Values] = []
    count, enough = 0, 1
    try:
        for some in values:
            if len(some):
                parts.append(some)
                count += len(some)
            if parts and (count >= enough or isinstance(some, list)):
                yield parts
                enough = min(2 * count, most)
                parts, count = [], 0
    except Exception:
        if parts:
            yield parts
        raise
    if parts:
        yield parts


@dataclass(frozen=True)
class Prefetch(Step):
    """The same elements, prepared ahead of time by a thread."""

    elements: int | str = AUTO

    def count(self, before: int) -> int:
        """Return as many."""
        return before

    def run(self, upstream: Upstream, mark: Mark, epoch: int) -> Blocks:
        """Yield the same blocks."""
        ahead = _PrefetchThread(upstream(mark, epoch), self.elements)
        try:
            yield from ahead.blocks()
        finally:
            ahead.stop()


class _PrefetchThread:
    """A thread that reads blocks, at most `limit` elements ahead of the consumer."""

    def __init__(self, blocks: Blocks, limit: int | str) -> None:
        self._source = blocks
        self._auto = limit == AUTO
        self._limit = 2 if self._auto else int(limit)
        self._ready: deque[ElementBlock] = deque()
        self._size = 0
        self._change = threading.Condition()
        self._ended = self._stopped = False
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="recordkit-prefetch", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            for block in self._source:
                with self._change:
                    self._ready.append(block)
                    self._size += len(block.values)
                    self._change.notify_all()
                    while self._size >= self._limit and not self._stopped:
                        self._change.wait()
                    if self._stopped:
                        return
        except BaseException as error:
            self._failure = error
        finally:
            self._source.close()
            with self._change:
                self._ended = True
                self._change.notify_all()

    def blocks(self) -> Blocks:
        """Yield the blocks as they become ready."""
        while True:
            with self._change:
                if not self._ready and self._auto and not self._ended:
                    self._limit = min(2 * self._limit, _MOST_AHEAD)
                while not self._ready and not self._ended:
                    self._change.wait()
                if not self._ready:
                    break
                block = self._ready.popleft()
                self._size -= len(block.values)
                self._change.notify_all()
            yield block
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        """Stop the thread."""
        with self._change:
            self._stopped = True
            self._change.notify_all()
        self._thread.join(1.0)
