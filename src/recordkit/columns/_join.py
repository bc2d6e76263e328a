"""Columns that follow each other, as one."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ._bytes import BytesColumn
from ._ragged import Ragged
from ._runs import to_offsets

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

Column: TypeAlias = "NDArray[Any] | BytesColumn | Ragged"


def join(columns: Sequence[Column]) -> Column:
    """Return the rows of all columns as one.

    >>> join([np.zeros((1, 2)), Ragged(np.array([7.0]), (np.array([0, 1]),))]).to_list()
    [[0.0, 0.0], [7.0]]
    """
    arrays = [column for column in columns if isinstance(column, np.ndarray)]
    if len(arrays) == len(columns) and len({array.shape[1:] for array in arrays}) == 1:
        return np.concatenate(arrays)
    texts = [column for column in columns if isinstance(column, BytesColumn)]
    if len(texts) == len(columns) and len({text.shape[1:] for text in texts}) == 1:
        return _joined_bytes(texts)
    return _joined_ragged([column if isinstance(column, Ragged) else _as_ragged(column) for column in columns])


def _joined_bytes(columns: Sequence[BytesColumn]) -> BytesColumn:
    offsets, at = [np.zeros(1, np.int64)], 0
    for column in columns:
        first, last = int(column.offsets[0]), int(column.offsets[-1])
        offsets.append(column.offsets[1:] - first + at)
        at += last - first
    data = np.concatenate([column.data[column.offsets[0] : column.offsets[-1]] for column in columns])
    shape = (sum(map(len, columns)), *columns[0].shape[1:])
    return BytesColumn(data, np.concatenate(offsets), text=columns[0].text, shape=shape)


def _joined_ragged(columns: Sequence[Ragged]) -> Ragged:
    columns = [column for column in columns if len(column)] or columns[:1]
    flat = [column.values for column in columns]
    if len({part.shape[1:] for part in flat}) > 1:  # what did not vary within one of them varies between them
        flat = [part.reshape((math.prod(part.shape),)) for part in flat]
    values = join(flat)
    assert not isinstance(values, Ragged)
    if all(column.shapes is not None for column in columns):
        return Ragged.rectangular(values, np.concatenate([column.shapes for column in columns]))
    levels = [_joined_level(level) for level in zip(*(column.offsets for column in columns), strict=True)]
    return Ragged(values, levels)


def _joined_level(levels: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    return to_offsets(np.concatenate([np.diff(level) for level in levels]))


def _as_ragged(column: NDArray[Any] | BytesColumn) -> Ragged:
    """Rows of one shape as rows that might differ."""
    shape = column.shape
    values = column.reshape((math.prod(shape),))
    return Ragged.rectangular(values, np.tile(np.array(shape[1:], np.int64), (shape[0], 1)))
