"""Match two sequences of digests: find equal, moved and replaced elements."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def joined(digests: bytearray) -> NDArray[Any]:
    """Return digests of 16 bytes, back to back, as an array."""
    # NumPy orders byte strings of one width by all their bytes.
    return np.frombuffer(digests, "S16")


class Match(NamedTuple):
    """The records in both: number a[i] of one is number b[i] of the other, in the order of a."""

    a: NDArray[np.int64]
    b: NDArray[np.int64]
    moved: NDArray[np.bool_]
    only_a: NDArray[np.int64]
    only_b: NDArray[np.int64]


def matched(one: NDArray[Any], other: NDArray[Any]) -> Match:
    """Match equal digests: of several equal ones, the first with the first, and so on.

    >>> one, other = (joined(bytearray().join(bytes([n]) * 16 for n in numbers)) for numbers in ([1, 2, 3], [3, 1, 4]))
    >>> match = matched(one, other)
    >>> match.a.tolist(), match.b.tolist(), match.moved.tolist(), match.only_a.tolist(), match.only_b.tolist()
    ([0, 2], [1, 0], [True, False], [1], [2])
    """
    both = np.concatenate([one, other])
    order = np.argsort(both, kind="stable")
    starts = np.ones(len(both), np.bool_)
    starts[1:] = both[order][1:] != both[order][:-1]
    groups = np.cumsum(starts) - 1
    in_b = order >= len(one)
    # The place among its equals on its own side; a's come first, since the sort is stable.
    firsts = np.flatnonzero(starts)
    of_a = np.bincount(groups[~in_b], minlength=len(firsts))
    of_b = np.bincount(groups[in_b], minlength=len(firsts))
    nth = np.arange(len(both)) - firsts[groups] - np.where(in_b, of_a[groups], 0)
    common = nth < np.minimum(of_a, of_b)[groups]
    place_a, place_b = order[common & ~in_b], order[common & in_b] - len(one)
    by_place = np.argsort(place_a)
    place_a, place_b = place_a[by_place], place_b[by_place]
    only_a, only_b = np.sort(order[~common & ~in_b]), np.sort(order[~common & in_b] - len(one))
    return Match(place_a, place_b, ~_in_order(place_b), only_a, only_b)


def _in_order(places: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return a mask of a longest increasing subsequence: the elements that need not move."""
    if (places[1:] > places[:-1]).all():
        return np.ones(len(places), np.bool_)
    ends: list[int] = []  # the least last place of a rising part of each length
    lengths = np.empty(len(places), np.int64)
    for number, place in enumerate(places.tolist()):
        length = bisect_left(ends, place)
        ends[length : length + 1] = [place]
        lengths[number] = length
    # Backwards: the last of each length that still stands below the one chosen after it.
    rising = np.zeros(len(places), np.bool_)
    wanted, above = len(ends) - 1, len(places) and int(places.max()) + 1
    for number in range(len(places) - 1, -1, -1):
        if lengths[number] == wanted and places[number] < above:
            rising[number], above, wanted = True, places[number], wanted - 1
    return rising


def replaced(match: Match) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pair elements only in a with elements only in b that are in the same gap between unmoved ones."""
    kept = ~match.moved
    gap_a = np.searchsorted(match.a[kept], match.only_a)
    gap_b = np.searchsorted(match.b[kept], match.only_b)
    # The nth of a gap on one side takes the place of the nth on the other.
    key_a, key_b = _numbered(gap_a), _numbered(gap_b)
    _, chosen_a, chosen_b = np.intersect1d(key_a, key_b, assume_unique=True, return_indices=True)
    return match.only_a[chosen_a], match.only_b[chosen_b]


def _numbered(gaps: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return a number for each element that encodes its gap and its place there. Gaps are in order."""
    nth = np.arange(len(gaps)) - np.searchsorted(gaps, gaps)
    return gaps << 32 | nth
