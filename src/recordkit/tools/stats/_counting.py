"""Counting values in little memory: the most common ones, and how many different ones there are.

Each sketch merges with another of its kind, and is exact for few values. For more, it knows its error bound.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from numpy.typing import NDArray

# The number of values to count; each that is more than a 1,024th of all is always among them.
COUNTED: Final = 1 << 10
# The number of hashes to keep, for a standard error of 1.6%.
HASHES: Final = 1 << 12


class TopValues:
    """The most common values (Misra and Gries), in memory for a few thousand of them.

    Counts are exact for up to a thousand different values. Beyond that, rare values are dropped, and each count is a
    lower bound that is at most `error` too low, which is at most a 1,024th of all values. So no value with a larger
    share is missed.

    >>> top = TopValues()
    >>> top.add(["cat", "dog", "cat"])
    >>> top.most_common(1), top.exact
    ([('cat', 2)], True)
    """

    def __init__(self, keep: int = COUNTED) -> None:
        self.total = 0
        self.error = 0
        self._keep = keep
        self._counts: dict[Any, int] = {}

    def add(self, values: Iterable[Hashable]) -> None:
        """Add values."""
        for value in values:
            self._counts[value] = self._counts.get(value, 0) + 1
            self.total += 1
            if len(self._counts) > 4 * self._keep:
                self._forget()

    def add_array(self, values: NDArray[Any]) -> None:
        """Add numbers, the fast way."""
        self.add_counts(*np.unique(values, return_counts=True))

    def add_counts(self, values: NDArray[Any], counts: NDArray[np.int64]) -> None:
        """Add distinct values, each with its count."""
        if len(values) > 4 * self._keep:
            # Forget in NumPy what would only pass through the dict.
            least = int(np.partition(counts, -self._keep - 1)[-self._keep - 1])
            self.error += least
            self.total += int(np.minimum(counts, least).sum())
            values, counts = values[counts > least], counts[counts > least] - least
        self.add_all(zip(values.tolist(), counts.tolist(), strict=True))

    def add_all(self, counted: Iterable[tuple[Any, int]]) -> None:
        """Add values, each with its count."""
        counts = self._counts
        for value, count in counted:
            counts[value] = counts.get(value, 0) + count
            self.total += count
        if len(counts) > 4 * self._keep:
            self._forget()

    def _forget(self) -> None:
        """Subtract from every count that of the first value to drop, so that at most `keep` values are left."""
        least = sorted(self._counts.values())[-self._keep - 1]
        self.error += least
        self._counts = {value: count - least for value, count in self._counts.items() if count > least}

    def merge(self, other: TopValues) -> None:
        """Add the values of another."""
        total = self.total + other.total
        self.error += other.error
        self.add_all(other._counts.items())
        self.total = total

    @property
    def exact(self) -> bool:
        """Whether the counts are exact, rather than lower bounds."""
        return self.error == 0

    def __len__(self) -> int:
        return len(self._counts)

    def most_common(self, count: int) -> list[tuple[Any, int]]:
        """Return the most common values with their counts; those with equal counts in the order of their text."""
        return sorted(self._counts.items(), key=lambda item: (-item[1], str(item[0])))[:count]


class Distinct:
    """The number of different values, estimated from the smallest 4,096 of their hashes.

    It is exact for fewer values. The result does not depend on what was merged, or in which order.

    >>> distinct = Distinct()
    >>> distinct.add(np.array([1, 2, 2, 3]))
    >>> distinct.estimate(), distinct.exact
    (3, True)
    """

    def __init__(self, keep: int = HASHES) -> None:
        self._keep = keep
        self._hashes = np.empty(0, np.uint64)

    def add(self, values: NDArray[Any]) -> None:
        """Add numbers, none of them NaN."""
        self.add_keys(_bits(values.ravel()))

    def add_keys(self, keys: NDArray[np.uint64]) -> None:
        """Add values by keys that are equal for equal values, such as their bits or a checksum."""
        self._take(_mixed(keys))

    def _take(self, hashes: NDArray[np.uint64]) -> None:
        if not self.exact:
            hashes = hashes[hashes < self._hashes[-1]]
        if hashes.size:
            self._hashes = np.unique(np.concatenate([self._hashes, hashes]))[: self._keep]

    def merge(self, other: Distinct) -> None:
        """Add the values of another."""
        self._take(other._hashes)

    @property
    def exact(self) -> bool:
        """Whether the number is exact; otherwise its standard error is 1.6%."""
        return len(self._hashes) < self._keep

    def estimate(self, count: int | None = None) -> int:
        """Return the number of different values, which is at most `count`, if that is given."""
        if self.exact:
            return len(self._hashes)
        estimate = round((self._keep - 1) * 2.0**64 / float(self._hashes[-1]))
        return estimate if count is None else min(estimate, count)


def _bits(values: NDArray[Any]) -> NDArray[np.uint64]:
    if values.dtype.kind == "f":
        # Adding zero makes 0.0 of -0.0, which equals it.
        return (values.astype(np.float64) + 0.0).view(np.uint64)
    if values.dtype.kind == "c":
        real, imaginary = _bits(np.ascontiguousarray(values.real)), _bits(np.ascontiguousarray(values.imag))
        return real ^ _mixed(imaginary)
    return values.astype(np.uint64 if values.dtype.kind == "u" else np.int64).view(np.uint64)


def _mixed(keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return a hash of each key (splitmix64), in which any difference changes half of the bits on average."""
    mixed = keys + np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed ^= mixed >> np.uint64(shift)
        mixed *= np.uint64(factor)
    return mixed ^ (mixed >> np.uint64(31))
