"""Columns: many values of one field, and batches of them, without a Python object a value.

A column is a NumPy array (every row of one shape), a `BytesColumn` (bytes or text), or a `Ragged` (rows of differing
shape). Nothing here knows where the values came from. All speak the Arrow C data interface, without pyarrow.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from recordkit import _arrow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set

    from numpy.typing import NDArray

__all__ = ["Batch", "BytesColumn", "Column", "Ragged", "arrow_stream"]


class BytesColumn:
    """Values of bytes or text: one buffer, and where each value ends in it.

    Indexing with a number gives `bytes`, or `str` where `text` is set; with a slice or an array, a column.

    Attributes:
        data: The bytes of all values, back to back.
        offsets: One more than there are values; value i is `data[offsets[i]:offsets[i + 1]]`.
        text: Whether the values are UTF-8 text.
        shape: Rows first; more dimensions where every row holds an array of values.

    >>> names = BytesColumn.of(["ada", "grace"])
    >>> names[1], len(names), names.lengths.tolist()
    ('grace', 2, [3, 5])
    >>> names.to_list()
    ['ada', 'grace']
    """

    __slots__ = ("data", "offsets", "shape", "text")

    def __init__(
        self,
        data: NDArray[np.uint8],
        offsets: NDArray[np.int64],
        *,
        text: bool = False,
        shape: tuple[int, ...] | None = None,
    ) -> None:
        self.data = data
        self.offsets = offsets
        self.text = text
        self.shape = (len(offsets) - 1,) if shape is None else shape
        if shape is not None and math.prod(shape) != len(offsets) - 1:
            message = f"{len(offsets) - 1} values do not fill the shape {self.shape}"
            raise ValueError(message)

    @classmethod
    def of(cls, values: Iterable[bytes | str], *, text: bool | None = None) -> BytesColumn:
        """Return a column of the values: all bytes, or all text."""
        items = list(values)
        if text is None:
            text = bool(items) and isinstance(items[0], str)
        encoded = [item.encode() if isinstance(item, str) else bytes(item) for item in items]
        offsets = np.zeros(len(encoded) + 1, np.int64)
        np.cumsum([len(item) for item in encoded], out=offsets[1:])
        return cls(np.frombuffer(b"".join(encoded), np.uint8), offsets, text=text)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """The number of bytes of every value."""
        return np.diff(self.offsets)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, int | np.integer) and len(self.shape) == 1:
            return self._value(range(len(self))[int(index)])
        inner = self.shape[1:]
        size = int(np.prod(inner, dtype=np.int64))
        rows = np.arange(len(self))[index]
        values = (rows.reshape(-1, 1) * size + np.arange(size)).ravel()
        return self._take(values, inner if rows.ndim == 0 else (len(rows), *inner))

    def _value(self, i: int) -> bytes | str:
        value = self.data[self.offsets[i] : self.offsets[i + 1]].tobytes()
        return value.decode() if self.text else value

    def _take(self, values: NDArray[np.int64], shape: tuple[int, ...]) -> BytesColumn:
        starts, lengths = self.offsets[values], self.lengths[values]
        offsets = np.zeros(len(values) + 1, np.int64)
        np.cumsum(lengths, out=offsets[1:])
        contiguous = len(values) > 0 and bool((values[1:] == values[:-1] + 1).all())
        if contiguous:
            data = self.data[starts[0] : starts[0] + offsets[-1]]
        else:
            data = self.data[np.repeat(starts - offsets[:-1], lengths) + np.arange(offsets[-1])]
        return BytesColumn(data, offsets, text=self.text, shape=shape)

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def reshape(self, shape: tuple[int, ...]) -> BytesColumn:
        """Return the same values in another shape."""
        return BytesColumn(self.data, self.offsets, text=self.text, shape=shape)

    def to_numpy(self) -> NDArray[np.object_]:
        """Return an array of `bytes` or `str` objects."""
        values = np.empty(len(self.offsets) - 1, object)
        for i in range(len(values)):
            values[i] = self._value(i)
        return values.reshape(self.shape)

    def to_list(self) -> list[Any]:
        """Return lists of `bytes` or `str` objects."""
        result: list[Any] = self.to_numpy().tolist()
        return result

    def __repr__(self) -> str:
        return f"BytesColumn(shape={self.shape}, {'text' if self.text else 'bytes'}, {self.data.nbytes} bytes)"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, BytesColumn):
            return NotImplemented
        return (self.text, self.shape) == (other.text, other.shape) and self.to_list() == other.to_list()

    __hash__ = None  # type: ignore[assignment]

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        """Offer the column to Arrow: large_binary or large_utf8, in fixed-size lists where it has a shape."""
        return _arrow.export(_arrow.node(self))


class Ragged:
    """Rows of differing shape: flat values, and where each row ends in them.

    Attributes:
        values: The values of all rows, back to back; an array with the trailing dimensions that do not vary, or a
            `BytesColumn`.
        offsets: A level for each dimension that varies, outermost first. The entries of a level count those of the
            next, and the last level's count values.
        shapes: The exact shape of every row, where each row is a rectangular array; None where rows hold lists of
            differing lengths.

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

    __slots__ = ("_offsets", "shapes", "values")

    def __init__(
        self,
        values: NDArray[Any] | BytesColumn,
        offsets: Sequence[NDArray[np.int64]],
        shapes: NDArray[np.int64] | None = None,
    ) -> None:
        self.values = values
        self._offsets: tuple[NDArray[np.int64], ...] | None = tuple(offsets)
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

    def _levels(self) -> tuple[NDArray[np.int64], ...]:
        assert self.shapes is not None
        count = self.shapes.shape[1] - (len(self.values.shape) - 1)
        parents, levels = np.arange(len(self.shapes)), []
        for dim in range(count):
            lengths = self.shapes[parents, dim]
            levels.append(_running(lengths))
            parents = np.repeat(parents, lengths)
        return tuple(levels)

    def __len__(self) -> int:
        return len(self.shapes) if self.shapes is not None else len(self.offsets[0]) - 1

    def __getitem__(self, index: Any) -> Any:
        if not isinstance(index, int | np.integer):
            return self._take(np.arange(len(self))[index])
        row = range(len(self))[int(index)]
        if len(self.offsets) > 1 and self.shapes is None:
            start, stop = self.offsets[0][row], self.offsets[0][row + 1]
            return Ragged(*_cut(self.values, self.offsets[1:], int(start), int(stop)))
        start, stop = row, row + 1
        for level in self.offsets:
            start, stop = level[start], level[stop]
        values = self.values[int(start) : int(stop)]
        return values if self.shapes is None else values.reshape(tuple(self.shapes[row].tolist()))

    def _take(self, rows: NDArray[np.int64]) -> Ragged:
        shapes = None if self.shapes is None else self.shapes[rows]
        picked, levels = rows, []
        for level in self.offsets:
            lengths = (level[1:] - level[:-1])[picked]
            ends = _running(lengths)
            levels.append(ends)
            picked = np.repeat(level[:-1][picked] - ends[:-1], lengths) + np.arange(ends[-1])
        return Ragged(self.values[picked], levels, shapes)

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def to_padded(self, fill: Any = 0) -> NDArray[Any]:
        """Return one array, every dimension as long as its longest, with `fill` where there is no value."""
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
        return [row.to_list() if isinstance(row, Ragged | BytesColumn) else row.tolist() for row in self]

    def __repr__(self) -> str:
        kind = "bytes" if isinstance(self.values, BytesColumn) else self.values.dtype.name
        return f"Ragged({len(self)} rows, {len(self.values)} values of {kind})"

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        """Offer the column to Arrow: a large_list for each level."""
        return _arrow.export(_arrow.node(self))


def _running(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


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


class Batch:
    """Columns of equal length, by name.

    A column may be given as a function; it is made when it is first asked for, and remembered.

    >>> batch = Batch({"label": np.array([1, 2]), "name": BytesColumn.of(["a", "b"])}, 2)
    >>> batch["label"], batch.names, len(batch)
    (array([1, 2]), ('label', 'name'), 2)
    >>> batch.row(1)
    {'label': np.int64(2), 'name': 'b'}
    >>> batch.valid("name")
    array([ True,  True])
    """

    __slots__ = ("_columns", "_rows", "_valid")

    def __init__(
        self,
        columns: Mapping[str, Column | Callable[[], Column]],
        rows: int,
        valid: Mapping[str, NDArray[np.bool_]] | None = None,
    ) -> None:
        self._columns = dict(columns)
        self._rows = rows
        self._valid = dict(valid) if valid else {}

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self._columns)

    def __len__(self) -> int:
        return self._rows

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def keys(self) -> tuple[str, ...]:
        """The names of the columns, so that `dict(batch)` and `**batch` work."""
        return self.names

    def __contains__(self, name: object) -> bool:
        return name in self._columns

    def __getitem__(self, name: str) -> Any:
        column = self._columns[name]
        if callable(column):
            column = self._columns[name] = column()
        return column

    def valid(self, name: str) -> NDArray[np.bool_]:
        """Return a mask: False where the row has no value for this field."""
        mask = self._valid.get(name)
        if mask is None:
            if name not in self._columns:
                raise KeyError(name)
            mask = np.ones(self._rows, np.bool_)
        return mask

    def beside(self, *others: Batch) -> Batch:
        """Return a batch with the columns of others behind this one's; none is made for it."""
        batch = Batch(self._columns, self._rows, self._valid)
        for other in others:
            # A batch may know more of where its columns came from than they do themselves.
            made = (
                other._columns if type(other) is Batch else {name: partial(other.__getitem__, name) for name in other}
            )
            batch._columns.update(made)
            batch._valid.update(other._valid)
        if type(self) is not Batch:
            batch._columns.update({name: partial(self.__getitem__, name) for name in self})
        return batch

    def select(self, *names: str) -> Batch:
        """Return a batch of these columns only, in this order; none is made for it."""
        columns = {name: self._columns[name] for name in names}
        return Batch(columns, self._rows, {name: mask for name, mask in self._valid.items() if name in columns})

    def row(self, index: int) -> dict[str, Any]:
        """Return one row: a value a field, None where it is missing."""
        index = range(self._rows)[index]
        row = {}
        for name in self._columns:
            mask = self._valid.get(name)
            row[name] = self[name][index] if mask is None or mask[index] else None
        return row

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield every row as a dict."""
        return (self.row(i) for i in range(self._rows))

    def __repr__(self) -> str:
        return f"Batch({self._rows} rows: {', '.join(self.names)})"

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        """Offer the batch to Arrow as a struct of its columns: a record batch."""
        return _arrow.export(self._arrow_node())

    def _arrow_node(self) -> _arrow.Node:
        children = [_arrow.node(self[name], name, self._valid.get(name)) for name in self._columns]
        return _arrow.struct(children, self._rows)


def arrow_stream(empty: Batch, batches: Iterable[Batch], optional: Set[str] = frozenset()) -> object:
    """Return batches as an Arrow C stream.

    Args:
        empty: A batch of no rows with the same columns, to tell their types.
        batches: What to stream, made as it is asked for.
        optional: The columns that may lack values.
    """
    children = [_arrow.node(empty[name], name) for name in empty.names]
    children = [_arrow.nullable(child) if child[1] in optional else child for child in children]
    return _arrow.export_stream(_arrow.struct(children, 0), (batch._arrow_node() for batch in batches))
