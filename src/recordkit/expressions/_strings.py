"""Strings: comparing columns of bytes or text, mostly without a Python object for each value.

Text is compared as UTF-8: its order is that of the characters, and no character starts inside another.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

import numpy as np

from recordkit.columns import BytesColumn

from ._numbers import UFUNCS

if TYPE_CHECKING:
    from numpy.typing import NDArray


def compare_strings(op: str, left: BytesColumn, right: BytesColumn | bytes) -> NDArray[np.bool_]:
    """Compare a column of byte strings with another, or with one byte string.

    >>> compare_strings("==", BytesColumn.of(["cat", "cow"]), b"cat").tolist()
    [True, False]
    """
    if op in ("==", "!="):
        equal = _equal_value(left, right) if isinstance(right, bytes) else _equal_columns(left, right)
        return equal if op == "==" else ~equal
    other = right if isinstance(right, bytes) else _objects(right)
    result: NDArray[np.bool_] = UFUNCS[op](_objects(left), other).astype(np.bool_)
    return result


def _objects(column: BytesColumn) -> NDArray[np.object_]:
    return BytesColumn(column.data, column.offsets).to_numpy()


def _equal_value(column: BytesColumn, value: bytes) -> NDArray[np.bool_]:
    rows = np.flatnonzero(column.lengths == len(value))
    # One byte at a time: few rows are left after the first, and memory stays small.
    for place, byte in enumerate(value):
        rows = rows[column.data[column.offsets[rows] + place] == byte]
        if not len(rows):
            break
    return marked(rows, len(column))


def _equal_columns(left: BytesColumn, right: BytesColumn) -> NDArray[np.bool_]:
    rows = np.flatnonzero(left.lengths == right.lengths)
    one, other = left[rows], right[rows]
    wrong = np.zeros(len(one.data) + 1, np.int64)
    np.cumsum(one.data != other.data, out=wrong[1:])
    return marked(rows[np.diff(wrong[one.offsets]) == 0], len(left))


def marked(rows: NDArray[np.int64] | list[int], count: int) -> NDArray[np.bool_]:
    """Return a mask that is True in these rows."""
    mask = np.zeros(count, np.bool_)
    mask[rows] = True
    return mask


def contains(column: BytesColumn, part: BytesColumn | bytes) -> NDArray[np.bool_]:
    """Return which values contain another byte string, or that of the same row of another column.

    >>> contains(BytesColumn.of(["a cat", "a", "cattle"]), b"cat").tolist()
    [True, False, True]
    """
    if isinstance(part, BytesColumn):
        pairs = zip(_objects(part), _objects(column), strict=True)
        return np.array([small in great for small, great in pairs], np.bool_)
    if not part:
        return np.ones(len(column), np.bool_)
    first = int(column.offsets[0])
    data, offsets = column.data[first : int(column.offsets[-1])].tobytes(), (column.offsets - first).tolist()
    rows: list[int] = []
    place, row = data.find(part), 0
    while place >= 0:
        row = bisect_right(offsets, place, row) - 1
        # A match that starts in one value and ends in the next is in neither.
        whole = place + len(part) <= offsets[row + 1]
        if whole:
            rows.append(row)
        place = data.find(part, offsets[row + 1] if whole else place + 1)
    return marked(rows, len(column))


def characters(column: BytesColumn) -> NDArray[np.int64]:
    """Return the number of characters of each text: the bytes that do not continue one.

    >>> characters(BytesColumn.of(["né", ""])).tolist()
    [2, 0]
    """
    starts = np.zeros(len(column.data) + 1, np.int64)
    np.cumsum((column.data & 0xC0) != 0x80, out=starts[1:])
    return np.diff(starts[column.offsets])
