"""Neighbours: how different consecutive records are, which shows how well a dataset is shuffled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Neighbours:
    """Compares each value with the next.

    If the order is random, the mean square of the differences is twice the variance, whatever the distribution (von
    Neumann's ratio, halved here so that it is 1 then). If values are sorted or come in runs, it is near 0.

    >>> neighbours = Neighbours()
    >>> neighbours.add(np.repeat([1, 2, 3], 100))
    >>> round(neighbours.result(), 3)
    0.005
    """

    def __init__(self) -> None:
        self._first: float | None = None
        self._last: float | None = None
        self._pairs = 0
        self._squares = 0.0
        self._count = 0
        self._mean = 0.0
        self._spread = 0.0

    def add(self, values: NDArray[Any]) -> None:
        """Add the values of the next records."""
        numbers = np.asarray(values, np.float64)
        numbers = numbers[np.isfinite(numbers)]
        if not len(numbers):
            return
        row = numbers if self._last is None else np.concatenate([[self._last], numbers])
        self._squares += float(np.square(np.diff(row)).sum())
        self._pairs += len(row) - 1
        self._first = float(numbers[0]) if self._first is None else self._first
        self._last = float(numbers[-1])
        self._spread_with(len(numbers), float(numbers.mean()), float(np.square(numbers - numbers.mean()).sum()))

    def _spread_with(self, count: int, mean: float, spread: float) -> None:
        total = self._count + count
        self._spread += spread + (mean - self._mean) ** 2 * self._count * count / total
        self._mean += (mean - self._mean) * count / total
        self._count = total

    def merge(self, other: Neighbours) -> None:
        """Add the statistics of the records after these."""
        if other._first is None or other._last is None:
            return
        if self._last is not None:
            self._squares += (other._first - self._last) ** 2
            self._pairs += 1
        self._squares += other._squares
        self._pairs += other._pairs
        self._first = other._first if self._first is None else self._first
        self._last = other._last
        self._spread_with(other._count, other._mean, other._spread)

    def result(self) -> float | None:
        """Return how different neighbours are: 1 if shuffled, 0 if sorted; None if there is nothing to compare."""
        if self._pairs < 2 or not self._spread > 0:
            return None
        return self._squares / self._pairs / (2 * self._spread / self._count)
