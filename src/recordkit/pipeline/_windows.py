"""Windows: records that are read and decoded as they lie, by many threads, and given in another order."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from recordkit.columns import Batch, Column, join
from recordkit.errors import CorruptRecordError, SchemaError

from ._blocks import Piece, cut, joined, picked, whole

if TYPE_CHECKING:
    from collections.abc import Sequence
    from concurrent.futures import Executor, Future

    from numpy.typing import NDArray

    from ._blocks import Values

    Numbers = NDArray[np.int64]

_READ_BYTES = 4 << 20  # by one thread


def read(source: Any, numbers: Numbers, pool: Executor) -> Future[Window]:
    """Read records, those that lie together by one thread, and return them in the order of the numbers."""
    order = np.argsort(numbers)
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    parts = _parts(numbers[order], max(1, _READ_BYTES // source.mean_bytes))
    coming = [pool.submit(_piece, source, part) for part in parts]
    # They are all in work when its turn comes: it does not wait for what waits for its thread.
    return pool.submit(_window, coming, ranks)


def _parts(numbers: Numbers, size: int) -> list[Numbers]:
    """Return rising numbers in parts of about so many, cut where they are farthest apart."""
    gaps = np.diff(numbers)
    near = range(size - size // 2, len(gaps) - size // 2, size)
    cuts = [first + 1 + int(np.argmax(gaps[first : first + size])) for first in near]
    return np.split(numbers, cuts)


def _piece(source: Any, numbers: Numbers) -> tuple[Piece, float]:
    begun = time.perf_counter()
    piece = source.load(numbers).piece(0, len(numbers))
    if isinstance(piece.values, Batch):
        for name in piece.values:
            _make(piece.values, name)
    return piece, time.perf_counter() - begun


def _make(batch: Batch, name: str) -> None:
    with suppress(SchemaError, CorruptRecordError):  # of a column that perhaps nobody asks for
        batch[name]


def _window(coming: Sequence[Future[tuple[Piece, float]]], ranks: Numbers) -> Window:
    done = [each.result() for each in coming]
    return Window([piece for piece, _ in done], ranks, sum(seconds for _, seconds in done))


class Window:
    """Elements in the order asked for.

    Their columns are put together and shuffled by all threads that ask for some of them first.

    Args:
        pieces: What was made of the records, in the order of their numbers.
        ranks: For each place asked for, which of the records it is.
        seconds: How long that took, all threads together.
    """

    def __init__(self, pieces: Sequence[Piece], ranks: Numbers, seconds: float) -> None:
        self._each_seconds = seconds / len(ranks)
        self._starts: Numbers | None = None  # for each place, how many elements are before it, if some are lacking
        if any(len(piece.values) < piece.taken for piece in pieces):
            ranks = _rows(pieces)[ranks]
            self._starts = np.concatenate(([0], np.cumsum(ranks >= 0)))
            ranks = ranks[ranks >= 0]
        self._values = _shuffled([piece.values for piece in pieces if len(piece.values)], ranks)
        self._left = list(self._values) if isinstance(self._values, Batch) else []
        self._in_work = len(self._left)
        self._change = threading.Condition()

    def piece(self, start: int, stop: int) -> Piece:
        """Return what is at places [start, stop)."""
        self._make_all()
        if self._starts is None:
            return whole(cut(self._values, start, stop))
        there = self._starts[start : stop + 1]
        ends = (np.flatnonzero(np.diff(there)) + 1).tolist()
        return Piece(cut(self._values, int(there[0]), int(there[-1])), ends, stop - start)

    def seconds(self, count: int) -> float:
        """Return how long it took to read and decode so many records."""
        return count * self._each_seconds

    def _make_all(self) -> None:
        if not self._in_work:
            return
        assert isinstance(self._values, Batch)
        while (name := self._next_name()) is not None:
            try:
                _make(self._values, name)
            finally:
                with self._change:
                    self._in_work -= 1
                    self._change.notify_all()
        with self._change:
            self._change.wait_for(lambda: not self._in_work)

    def _next_name(self) -> str | None:
        with self._change:
            return self._left.pop() if self._left else None


def _rows(pieces: Sequence[Piece]) -> Numbers:
    """Return for each record which element was made of it; -1 where it was passed over."""
    rows = np.full(sum(piece.taken for piece in pieces), -1)
    taken = given = 0
    for piece in pieces:
        rows[taken + np.asarray(piece.ends, np.int64) - 1] = np.arange(given, given + len(piece.values))
        taken += piece.taken
        given += len(piece.values)
    return rows


def _shuffled(parts: list[Values], rows: Numbers) -> Values:
    """Return elements of parts that follow each other; their columns are made when they are asked for."""
    both = joined(parts) if parts else []
    if not isinstance(both, Batch):
        return picked(both, rows)
    batches = [part for part in parts if isinstance(part, Batch)]
    columns = {name: partial(_column, batches, name, rows) for name in both}
    return Batch(columns, len(rows), {name: mask[rows] for name, mask in both._valid.items()})


def _column(parts: Sequence[Batch], name: str, rows: Numbers) -> Column:
    column: Column = join([part[name] for part in parts])[rows]
    return column
