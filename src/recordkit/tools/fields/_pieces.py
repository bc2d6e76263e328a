"""Cut, repeat and pick rows of columns, at a cost that depends on those rows alone."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from recordkit.columns import Batch, BytesColumn, Ragged
from recordkit.schema import Field, Schema

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from recordkit.columns import Column

    from ._bound import AnyField


def cut(column: Any, first: int, count: int) -> Any:
    """Return rows [first, first + count) of a column or a list, without touching the others.

    >>> cut(BytesColumn.of(["ada", "grace", "edsger"]), 1, 2).to_list()
    ['grace', 'edsger']
    """
    stop = first + count
    if isinstance(column, BytesColumn):
        inner = column.shape[1:]
        size = int(np.prod(inner, dtype=np.int64))
        offsets = column.offsets[first * size : stop * size + 1]
        data = column.data[offsets[0] : offsets[-1]]
        return BytesColumn(data, offsets - offsets[0], text=column.text, shape=(count, *inner))
    if isinstance(column, Ragged):
        levels, shapes = [], None if column.shapes is None else column.shapes[first:stop]
        for level in column.offsets:
            part = level[first : stop + 1]
            levels.append(part - part[0])
            first, stop = int(part[0]), int(part[-1])
        return Ragged(cut(column.values, first, stop - first), levels, shapes)
    return column[first:stop]


def cut_batch(batch: Batch, first: int, count: int) -> Batch:
    """Return rows [first, first + count) of a batch. Columns are cut on first access."""
    columns = {name: partial(_cut_column, batch, name, first, count) for name in batch.names}
    return Batch(columns, count, {name: batch.valid(name)[first : first + count] for name in batch.names})


def _cut_column(batch: Batch, name: str, first: int, count: int) -> Any:
    return cut(batch[name], first, count)


def only(batch: Batch, names: tuple[str, ...]) -> Batch:
    """Return a batch of these columns, in this order, made on first access."""
    columns = {name: partial(batch.__getitem__, name) for name in names}
    return Batch(columns, len(batch), {name: batch.valid(name) for name in names})


def repeated(row: Column, count: int) -> Column:
    """Repeat a column of one row `count` times; an array becomes a view."""
    if isinstance(row, np.ndarray):
        return np.broadcast_to(row, (count, *row.shape[1:]))
    return rows_at(row, np.zeros(count, np.int64))


def rows_at(column: Column, rows: NDArray[np.int64]) -> Column:
    """Return the rows with these numbers, without touching the others.

    >>> rows_at(BytesColumn.of(["ada", "grace", "edsger"]), np.array([2, 0, 2])).to_list()
    ['edsger', 'ada', 'edsger']
    """
    if isinstance(column, np.ndarray):
        return column[rows]
    if isinstance(column, BytesColumn):
        inner = column.shape[1:]
        size = int(np.prod(inner, dtype=np.int64))
        values = (rows.reshape(-1, 1) * size + np.arange(size)).ravel()
        starts, offsets = _runs(column.offsets, values)
        return BytesColumn(
            _bytes_at(column.data, starts, offsets), offsets, text=column.text, shape=(len(rows), *inner)
        )
    levels, picked = [], rows
    for level in column.offsets:
        starts, offsets = _runs(level, picked)
        levels.append(offsets)
        picked = _each(starts, offsets)
    values_ = rows_at(column.values, picked)
    assert not isinstance(values_, Ragged)
    return Ragged(values_, levels, None if column.shapes is None else column.shapes[rows])


def _runs(ends: NDArray[np.int64], rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return where the runs of rows start, and where they are once they are joined."""
    starts = ends[rows]
    offsets = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(ends[rows + 1] - starts, out=offsets[1:])
    return starts, offsets


def _each(starts: NDArray[np.int64], offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the place of every element of runs that start at `starts`."""
    return np.repeat(starts - offsets[:-1], np.diff(offsets)) + np.arange(offsets[-1])


def _bytes_at(data: NDArray[np.uint8], starts: NDArray[np.int64], offsets: NDArray[np.int64]) -> NDArray[np.uint8]:
    if offsets[-1] <= 64 * len(starts):
        return data[_each(starts, offsets)]
    # For long values, copying each one costs less than an index for each byte.
    lengths = np.diff(offsets).tolist()
    return np.concatenate([data[at : at + length] for at, length in zip(starts.tolist(), lengths, strict=True)])


def one_row(name: str, field: AnyField, value: Any) -> Column:
    """Return a value of a field as a column of one row, just as a reader returns it.

    Raises:
        SchemaError: It does not fit the field.

    >>> one_row("height", Field("float32"), 0.5)
    array([0.5], dtype=float32)
    """
    schema = Schema({name: field})
    schema.check({name: value})
    column: Column = schema.decode(schema.encode_rows([{name: value}]))[name]
    return column


def blank_row(column: Column) -> Column:
    """Return one row with an arbitrary value that fits a column."""
    if isinstance(column, Ragged):
        deeper = len(column.offsets) - 1
        levels = [np.zeros(2, np.int64), *[np.zeros(1, np.int64)] * deeper]
        shapes = None if column.shapes is None else np.zeros((1, column.shapes.shape[1]), np.int64)
        return Ragged(cut(column.values, 0, 0), levels, shapes)
    if isinstance(column, BytesColumn):
        inner = column.shape[1:]
        offsets = np.zeros(int(np.prod(inner, dtype=np.int64)) + 1, np.int64)
        return BytesColumn(np.zeros(0, np.uint8), offsets, text=column.text, shape=(1, *inner))
    return np.zeros((1, *column.shape[1:]), column.dtype)


def taken(column: Column, places: NDArray[np.int64], otherwise: Column) -> Any:
    """Return the rows at `places`, with the one row of `otherwise` for negative places.

    >>> taken(np.array([7, 8]), np.array([1, -1, 0]), np.array([5]))
    array([8, 5, 7])
    """
    found = places >= 0
    if found.all():
        return rows_at(column, places)
    both = _stacked(rows_at(column, places[found]), otherwise)
    if both is None:
        other = otherwise[0]
        return [column[place] if place >= 0 else other for place in places.tolist()]
    rows = np.cumsum(found) - 1
    rows[~found] = len(both) - 1
    return rows_at(both, rows)


def _stacked(column: Column, row: Column) -> Column | None:
    """Return a column with one more row; None if only a list could hold both."""
    if isinstance(column, np.ndarray) and isinstance(row, np.ndarray):
        return _stacked_arrays(column, row) if column.shape[1:] == row.shape[1:] else None
    if isinstance(column, BytesColumn) and isinstance(row, BytesColumn):
        if column.text != row.text or column.shape[1:] != row.shape[1:]:
            return None
        data = np.concatenate([column.data[: column.offsets[-1]], row.data[: row.offsets[-1]]])
        shape = (len(column) + 1, *column.shape[1:])
        return BytesColumn(data, _end_to_end(column.offsets, row.offsets), text=column.text, shape=shape)
    if isinstance(column, Ragged) and isinstance(row, Ragged):
        return _stacked_ragged(column, row)
    return None


def _stacked_arrays(column: NDArray[Any], row: NDArray[Any]) -> NDArray[Any]:
    with np.errstate(all="ignore"):
        same = row.astype(column.dtype)
    # Use the column's type if it holds the row exactly: the common type of int64 and uint64 is float64.
    exact = same.dtype == row.dtype or np.array_equal(same.astype(row.dtype), row)
    return np.concatenate([column, same if exact else row])


def _stacked_ragged(column: Ragged, row: Ragged) -> Ragged | None:
    alike = len(column.offsets) == len(row.offsets) and (column.shapes is None) == (row.shapes is None)
    if not alike:
        return None
    values: Any = column.values
    for index in range(len(row.values)):
        values = _stacked(values, cut(row.values, index, 1)) if values is not None else None
    if values is None:
        return None
    levels = [_end_to_end(one, other) for one, other in zip(column.offsets, row.offsets, strict=True)]
    shapes = None
    if column.shapes is not None and row.shapes is not None:
        if column.shapes.shape[1] != row.shapes.shape[1]:
            return None
        shapes = np.concatenate([column.shapes, row.shapes])
    return Ragged(values, levels, shapes)


def _end_to_end(one: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([one, other[1:] + one[-1]])


def optional_field(field: AnyField) -> AnyField:
    """Return the field as an optional one.

    >>> optional_field(Field("float32[3]", lossy=True))
    Field('float32[3]?', lossy=True)
    """
    if field.optional:
        return field
    if isinstance(field, Field):
        return Field(f"{field}?", lossy=field.lossy, quality=field.quality)
    return replace(field, optional=True)


def or_optional(field: AnyField) -> str:
    """Return the type of an optional field, as users write it.

    >>> or_optional(Field("int64"))
    "'int64?'"
    """
    return repr(f"{field}?") if isinstance(field, Field) else f"rk.{replace(field, optional=True)!r}"
