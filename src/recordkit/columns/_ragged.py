"""Columns of rows of different shapes, and joining columns of any sort."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from recordkit import _core

from . import _arrow
from ._bytes import MOST_EMPTY, BytesColumn, picked, to_offsets, too_many_empty

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray


class Ragged:
    """Rows of different shapes: flat values, and where each row ends in them.

    Attributes:
        values: The values of all rows, back to back; an array with the trailing dimensions that do not vary, or a
            `BytesColumn`.
        offsets: A level for each dimension that varies, outermost first. The entries of a level count those of the
            next, and the last level's count values.
        shapes: The exact shape of every row if each row is a rectangular array; None if rows hold lists of different
            lengths.

    >>> tokens = Ragged(np.array([7, 8, 9]), (np.array([0, 2, 2, 3]),))
    >>> tokens[0], len(tokens)
    (array([7, 8]), 3)
    >>> tokens.to_padded(0)
    array([[7, 8],
           [0, 0],
           [9, 0]])
    >>> tokens.to_list()
    [[7, 8], [], [9]]
    """

    __slots__ = ("_ends", "_offsets", "shapes", "values")

    def __init__(
        self,
        values: NDArray[Any] | BytesColumn,
        offsets: Sequence[NDArray[np.int64]],
        shapes: NDArray[np.int64] | None = None,
    ) -> None:
        self.values = values
        self._offsets: tuple[NDArray[np.int64], ...] | None = tuple(offsets)
        self._ends: NDArray[np.int64] | None = None
        self.shapes = shapes

    @classmethod
    def rectangular(cls, values: NDArray[Any] | BytesColumn, shapes: NDArray[np.int64]) -> Ragged:
        """Return rows that are arrays of the given shapes, one row of `shapes` each.

        >>> Ragged.rectangular(np.arange(6), np.array([[2, 2], [1, 2], [0, 5]]))[0]
        array([[0, 1],
               [2, 3]])
        """
        ragged = cls(values, (), np.asarray(shapes, np.int64))
        ragged._offsets = None
        return ragged

    @property
    def offsets(self) -> tuple[NDArray[np.int64], ...]:
        """The offsets of every level."""
        if self._offsets is None:
            self._offsets = self._levels()
        return self._offsets

    @property
    def _varying(self) -> int:
        """The number of dimensions that vary, if `shapes` are known."""
        assert self.shapes is not None
        return int(self.shapes.shape[1]) - (len(self.values.shape) - 1)

    @property
    def _row_ends(self) -> NDArray[np.int64]:
        """Where each rectangular row ends in the values. Unlike `offsets`, no larger than the number of rows."""
        assert self.shapes is not None
        if self._ends is None:
            self._ends = to_offsets(np.prod(self.shapes[:, : self._varying], axis=1, dtype=np.int64))
        return self._ends

    def _levels(self) -> tuple[NDArray[np.int64], ...]:
        assert self.shapes is not None
        parents, levels = np.arange(len(self.shapes)), []
        for dim in range(self._varying):
            lengths = self.shapes[parents, dim]
            if lengths.sum(dtype=np.float64) > len(self.values) + MOST_EMPTY:
                row = int(parents[np.argmax(lengths)])
                raise too_many_empty(self.shapes[row].tolist(), row)
            levels.append(to_offsets(lengths))
            parents = np.repeat(parents, lengths)
        return tuple(levels)

    def __len__(self) -> int:
        return len(self.shapes) if self.shapes is not None else len(self.offsets[0]) - 1

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step == 1:
                return self._cut(start, max(start, stop))
        if not isinstance(index, int | np.integer):
            return self._take(np.arange(len(self))[index])
        row = range(len(self))[int(index)]
        if self.shapes is not None:
            ends = self._row_ends
            return self.values[int(ends[row]) : int(ends[row + 1])].reshape(tuple(self.shapes[row].tolist()))
        start, stop = int(self.offsets[0][row]), int(self.offsets[0][row + 1])
        if len(self.offsets) > 1:
            return Ragged(*_cut(self.values, self.offsets[1:], start, stop))
        return self.values[start:stop]

    def _cut(self, start: int, stop: int) -> Ragged:
        if self.shapes is None:
            return Ragged(*_cut(self.values, self.offsets, start, stop))
        first, last = self._row_ends[[start, stop]].tolist()
        return Ragged.rectangular(self.values[first:last], self.shapes[start:stop])

    def _take(self, rows: NDArray[np.int64]) -> Ragged:
        if self.shapes is not None:
            values, _ = self._picked(rows, [self._row_ends])
            return Ragged.rectangular(values, self.shapes[rows])
        return Ragged(*self._picked(rows, self.offsets))

    def _picked(
        self, rows: NDArray[np.int64], offsets: Sequence[NDArray[np.int64]]
    ) -> tuple[NDArray[Any] | BytesColumn, list[NDArray[np.int64]]]:
        """Return the values of some rows, and their offsets."""
        entries, levels = rows, []
        for level in offsets:
            starts = level[entries]
            ends = to_offsets(level[entries + 1] - starts)
            levels.append(ends)
            if len(levels) == len(offsets) and isinstance(self.values, np.ndarray):
                return picked(self.values, starts, ends), levels
            entries = np.repeat(starts - ends[:-1], np.diff(ends)) + np.arange(ends[-1])
        return self.values[entries], levels

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def to_padded(self, fill: Any = 0) -> NDArray[Any]:
        """Return one array, each dimension padded to the longest with `fill`."""
        if not len(self):
            return self._cut(0, 0)._padded(fill)
        return self.padded_batches(len(self), fill)[0]

    def padded_batches(self, size: int, fill: Any = 0) -> list[NDArray[Any]]:
        """Return the rows in padded arrays of `size` rows each; the last may be shorter.

        >>> column = Ragged(np.array([1, 2, 3, 4]), (np.array([0, 2, 3, 4]),))
        >>> [array.tolist() for array in column.padded_batches(2)]
        [[[1, 2], [3, 0]], [[4]]]
        """
        values, shape = self.values, self.values.shape[1:]
        deep = len(self.offsets) > 1 or 0 in shape
        if deep or isinstance(values, BytesColumn) or values.dtype.hasobject:
            return [self._cut(at, min(at + size, len(self)))._padded(fill) for at in range(0, len(self), size)]
        filling = np.full(shape, fill, values.dtype).reshape(-1).view(np.uint8)
        flat = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
        starts = np.ascontiguousarray(self.offsets[0], np.int64)
        rows = [min(size, len(self) - at) for at in range(0, len(self), size)]
        return [
            padded.view(values.dtype).reshape(count, padded.nbytes // (count * filling.nbytes), *shape)
            for count, padded in zip(rows, _core.pad(flat, starts, filling, size), strict=True)
        ]

    def _padded(self, fill: Any) -> NDArray[Any]:
        """Pad with NumPy: any values, and lists of any depth."""
        values = self.values.to_numpy() if isinstance(self.values, BytesColumn) else self.values
        place: list[NDArray[np.int64]] = [np.arange(len(self))]
        sizes = [len(self)]
        for level in self.offsets:
            lengths = np.diff(level)
            place = [np.repeat(index, lengths) for index in place]
            place.append(np.arange(level[-1]) - np.repeat(level[:-1], lengths))
            sizes.append(int(lengths.max(initial=0)))
        padded = np.full((*sizes, *values.shape[1:]), fill, values.dtype)
        padded[tuple(place)] = values
        return padded

    def to_list(self) -> list[Any]:
        """Return nested lists."""
        _ = self.offsets  # refuses shapes of more empty lists than memory holds
        return [row.to_list() if isinstance(row, Ragged | BytesColumn) else row.tolist() for row in self]

    def __repr__(self) -> str:
        kind = "bytes" if isinstance(self.values, BytesColumn) else self.values.dtype.name
        return f"Ragged({len(self)} rows, {len(self.values)} values of {kind})"

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        """Export the column to Arrow: a large_list for each level."""
        return _arrow.export(_arrow.node(self))


def _cut(
    values: NDArray[Any] | BytesColumn, offsets: Sequence[NDArray[np.int64]], start: int, stop: int
) -> tuple[NDArray[Any] | BytesColumn, list[NDArray[np.int64]]]:
    """Entries [start, stop) of the first level, with offsets that start at 0 again."""
    levels = []
    for level in offsets:
        part = level[start : stop + 1]
        levels.append(part - part[0])
        start, stop = int(part[0]), int(part[-1])
    return values[start:stop], levels


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
    """Return rows of one shape as a `Ragged`."""
    shape = column.shape
    values = column.reshape((math.prod(shape),))
    return Ragged.rectangular(values, np.tile(np.array(shape[1:], np.int64), (shape[0], 1)))
