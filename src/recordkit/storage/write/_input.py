"""Input: turns what users pass to a writer into rows and columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sized
from typing import TYPE_CHECKING, Any

import numpy as np

from recordkit.columns import Batch
from recordkit.errors import SchemaError
from recordkit.schema import Schema

if TYPE_CHECKING:
    from numpy.typing import NDArray

ARRAY = "array"  # the field of records that are one array each


def at_row(error: SchemaError, first: int) -> SchemaError:
    """Return the error with the row's number in the source, where the batch starts at row `first`."""
    if error.record is None or not first:
        return error
    number = error.record + first
    return error.but(record=number, where=error.where.replace(f"row {error.record}.", f"row {number:,}."))


def with_row(error: SchemaError, number: int) -> SchemaError:
    """Return the error about one row with that row's number."""
    return error.but(record=number, where=f"In row {number:,}.")


def batch_rows(columns: Mapping[str, Any] | Batch, valid: Mapping[str, NDArray[np.bool_]]) -> Iterator[dict[str, Any]]:
    """Yield columns row by row, without missing values."""
    if isinstance(columns, Batch):
        for number in range(len(columns)):
            yield columns.row(number)
        return
    flat = dict(_flattened(columns))
    masks = dict(_flattened(valid))
    lengths = {name: len(column) for name, column in flat.items()}
    if len(set(lengths.values())) > 1:
        message = f"the columns have different lengths: {lengths}"
        raise SchemaError(message)
    for number in range(next(iter(lengths.values()), 0)):
        yield {name: column[number] for name, column in flat.items() if name not in masks or masks[name][number]}


def size_of(value: Any) -> int:
    """Return about how many bytes a row, or a value in it, takes.

    >>> size_of({"id": 7, "name": "seven", "tokens": [1, 2], "picture": b"..."})
    32
    """
    if isinstance(value, Mapping):
        return sum(map(size_of, value.values()))
    if isinstance(value, list | tuple):
        return sum(map(size_of, value))
    if isinstance(value, str | bytes | bytearray):
        return len(value)
    return int(getattr(value, "nbytes", 8))


def _flattened(columns: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, column in columns.items():
        if isinstance(column, Mapping):
            yield from _flattened(column, f"{prefix}{name}/")
        elif column is not None:
            yield f"{prefix}{name}", column


def is_array(data: Any) -> bool:
    """Tell whether data is one array, whose first dimension counts the records."""
    if isinstance(data, np.ndarray) and data.ndim == 0:
        message = "one array gives a record for each element of its first dimension, found an array without any"
        raise SchemaError(message)
    return isinstance(data, np.ndarray)


def schema_of_columns(columns: Mapping[str, Any] | Batch) -> Schema:
    """Return the schema that the columns define."""
    if isinstance(columns, Batch):
        return Schema.of_columns({name: columns[name] for name in columns.names})
    return Schema.of_columns(columns)


def row_count(columns: Mapping[str, Any] | Batch) -> int | None:
    """Return how many rows columns have, None if that is unknown."""
    if isinstance(columns, Batch):
        return len(columns)
    return next((len(column) for _, column in _flattened(columns)), None)


def columns_behind(
    columns: Mapping[str, Any] | Batch, count: int
) -> tuple[dict[str, Any], dict[str, NDArray[np.bool_]] | None]:
    """Return columns without their first `count` rows, and the masks of a batch."""
    if isinstance(columns, Batch):
        names = columns.names
        return {n: columns[n][count:] for n in names}, {n: columns.valid(n)[count:] for n in names}
    return {name: column[count:] for name, column in _flattened(columns)}, None


def is_columns(data: Any) -> bool:
    """Tell whether data is given as columns."""
    return isinstance(data, Mapping | Batch)


def rows_of(data: Any) -> tuple[Iterable[Any], int | None]:
    """Return data that is not columns as rows, and how many there are if that is known.

    A list of arrays gives a row for each.
    """
    if isinstance(data, bytes | str) or not isinstance(data, Iterable):
        message = f"expected rows, columns, an array or a list of arrays, found {type(data).__name__}"
        raise SchemaError(message)
    count = len(data) if isinstance(data, Sized) else None
    return ({ARRAY: part} if isinstance(part, np.ndarray | np.generic) else part for part in data), count
