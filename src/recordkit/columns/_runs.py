"""Runs of values: where they begin and end, and picking some of them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from recordkit import _core

if TYPE_CHECKING:
    from numpy.typing import NDArray


def to_offsets(lengths: Any) -> NDArray[np.int64]:
    """Return where each of consecutive runs begins, and where the last ends.

    >>> to_offsets([2, 0, 3]).tolist()
    [0, 2, 2, 5]
    """
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def picked(values: NDArray[Any], starts: NDArray[np.int64], offsets: NDArray[np.int64]) -> NDArray[Any]:
    """Return runs of values behind each other, which begin at `starts` and are to come to where `offsets` say.

    >>> picked(np.array([5, 6, 7, 8]), np.array([2, 0]), np.array([0, 2, 3])).tolist()
    [7, 8, 5]
    """
    if values.dtype.hasobject:
        taken: NDArray[Any] = values[np.repeat(starts - offsets[:-1], np.diff(offsets)) + np.arange(offsets[-1])]
        return taken
    out = np.empty((int(offsets[-1]), *values.shape[1:]), values.dtype)
    if out.size:
        item = values.itemsize * math.prod(values.shape[1:])
        flat = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
        _core.pick_runs(flat, starts, offsets, item, out.reshape(-1).view(np.uint8))
    return out
