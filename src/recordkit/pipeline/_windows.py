"""Windows: records that many threads read and decode in file order, and that are shuffled as columns.

This is for rows of a few numbers, which are decoded as fast as they are read and need no more memory than their
records. Other records are read by one thread, and decoded when they are used.
"""

from __future__ import annotations

import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from recordkit.columns import Batch, Column, join

from ._elements import TracedElements, traced

if TYPE_CHECKING:
    from collections.abc import Sequence
    from concurrent.futures import Executor, Future

    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]

_READ_BYTES = 4 << 20  # by one thread
_ROW_BYTES = 1024  # to copy larger rows again takes longer than reading


def has_small_rows(source: Any, number: int) -> bool:
    """Return whether the rows of a source are a few numbers each, judging by one of them."""
    if not source.exact or not source.gives_columns:
        return False
    row = source.load(np.array([number], np.int64)).elements(0, 1).values
    columns = list(row.lazy_columns.values()) if isinstance(row, Batch) else [None]
    # Lazy columns may fail, and the error is for the consumer that asks for the row.
    numbers = [column for column in columns if isinstance(column, np.ndarray)]
    size = sum(column.nbytes for column in numbers)
    return len(numbers) == len(columns) and size <= min(_ROW_BYTES, source.mean_bytes)


def read(source: Any, numbers: Numbers, pool: Executor) -> Future[Window]:
    """Read records with small rows; each thread reads neighbouring ones."""
    order = np.argsort(numbers)
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    parts = np.split(numbers[order], _cuts(numbers[order], max(1, _READ_BYTES // source.mean_bytes)))
    coming = [pool.submit(_decoded, source, part) for part in parts]
    # The parts are submitted before it, so it never waits for a part that waits for its thread.
    return pool.submit(_window, coming, ranks)


def _cuts(numbers: Numbers, size: int) -> list[int]:
    """Return where to cut ascending numbers into parts of about `size`: where they are farthest apart."""
    gaps = np.diff(numbers)
    near = range(size - size // 2, len(gaps) - size // 2, size)
    return [first + 1 + int(np.argmax(gaps[first : first + size])) for first in near]


def _decoded(source: Any, numbers: Numbers) -> tuple[Batch, float]:
    begun = time.perf_counter()
    return source.load(numbers).elements(0, len(numbers)).values, time.perf_counter() - begun


def _window(coming: Sequence[Future[tuple[Batch, float]]], ranks: Numbers) -> Window:
    done = [part.result() for part in coming]
    return Window([batch for batch, _ in done], ranks, sum(seconds for _, seconds in done))


class Window:
    """Rows in a given order. The threads that ask for rows first shuffle the columns together.

    Args:
        parts: The rows in the order of their records.
        ranks: For each place, which row it is.
        seconds: How long reading and decoding took, all threads together.

    Attributes:
        seconds: How long that took per row.
    """

    def __init__(self, parts: Sequence[Batch], ranks: Numbers, seconds: float) -> None:
        valid = Batch.joined(parts).masks
        columns = {name: partial(_column, parts, name, ranks) for name in parts[0]}
        self._rows = Batch(columns, len(ranks), {name: mask[ranks] for name, mask in valid.items()})
        self._left = list(columns)
        self._unmade = len(columns)
        self._change = threading.Condition()
        self.seconds = seconds / len(ranks)

    def elements(self, start: int, stop: int) -> TracedElements:
        """Copy rows [start, stop), so that keeping them does not keep the whole window alive."""
        self._make()
        part = self._rows.take(slice(start, stop))
        return traced(Batch({name: part[name].copy() for name in part}, len(part), part.masks))

    def _make(self) -> None:
        """Shuffle columns while there are any left, and wait for those that other threads shuffle."""
        while (name := self._next()) is not None:
            try:
                self._rows[name]
            finally:
                with self._change:
                    self._unmade -= 1
                    self._change.notify_all()
        with self._change:
            self._change.wait_for(lambda: not self._unmade)

    def _next(self) -> str | None:
        with self._change:
            return self._left.pop() if self._left else None


def _column(parts: Sequence[Batch], name: str, ranks: Numbers) -> Column:
    column: Column = join([part[name] for part in parts])[ranks]
    return column
