"""Joined fields: the values come from a table, looked up by a key field."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from itertools import pairwise, repeat
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from recordkit.columns import BytesColumn
from recordkit.dtypes import INTEGERS
from recordkit.errors import SchemaError
from recordkit.schema import Field, Schema
from recordkit.wording import counted, did_you_mean, listed, quoted, shortened

from ._bound import one_field
from ._pieces import blank_row, one_row, optional_field, or_optional, rows_at, taken
from ._tables import table_columns

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from recordkit.columns import Batch, Column
    from recordkit.schema import Array, TensorProto

    from ._bound import AnyField, RowSpan
    from ._tables import Filled


class _Default(Enum):
    """What `Joined` has for a default where none was given; an Enum, since there is only one of it in any process."""

    NOT_GIVEN = "not given"


_NOT_GIVEN = _Default.NOT_GIVEN
_MOST_KEYS = 5  # how many keys an error names


@dataclass(frozen=True, eq=False)
class Joined:
    """Values for a new field, looked up in a table by a key.

    Args:
        table: The path of a Parquet, CSV or Arrow file, a pandas or polars data frame, an Arrow table, a `Dataset`, or
            a dict of columns. Files and Arrow tables need pyarrow. Each key may occur only once.
        on: A field of the records that is also a column of the table, or a pair of both names. Integers or strings.
        column: The column with the values; by default the one with the new field's name.
        default: The value for records whose key is not in the table. Without a default, such a record is an error,
            unless the type ends in `?`.
        dtype: The type of the new field; by default that of the column. If it ends in `?`, nulls (and NaN in pandas)
            are missing values.

    >>> heights = {"person": ["ada", "grace"], "height": [165, 168]}
    >>> Joined(heights, on=("name", "person"), default=0)
    Joined(table=dict, on=('name', 'person'), default=0)
    """

    table: Any
    on: str | tuple[str, str] = "id"
    column: str | None = None
    default: Any = _NOT_GIVEN
    dtype: str | Field | Array | TensorProto | None = field(default=None)

    def __repr__(self) -> str:
        table = repr(self.table) if isinstance(self.table, str) else type(self.table).__name__
        words = [f"table={table}", f"on={self.on!r}"]
        words += [f"column={self.column!r}"] if self.column is not None else []
        words += [f"default={self.default!r}"] if self.default is not _NOT_GIVEN else []
        words += [f"dtype={self.dtype!r}"] if self.dtype is not None else []
        return f"Joined({', '.join(words)})"


def bind_joined(name: str, source: Joined, schema: Schema | None) -> BoundJoined:
    """Check a `Joined` for one dataset: read its table, and check and sort its keys."""
    key, key_column = _pair(name, source.on)
    key_field = _key_field(name, key, schema)
    declared = None if source.dtype is None else one_field(name, source.dtype)
    value_column = source.column or name
    hints: dict[str, AnyField] = {value_column: declared} if declared is not None else {}
    text = key_field.dtype not in INTEGERS
    texts = {key_column} if text else set()
    keys, values = table_columns(source.table, (key_column, value_column), hints, texts=texts, field=name)
    index = _index(name, key_column, keys)
    if isinstance(index, _IntegerKeys) == text and len(keys.column):
        message = (
            f"{name}: {key!r} is {key_field.dtype} in the dataset, and {key_column!r} {_dtype_of(keys)} in the table\n"
            f"  Convert the table's column."
        )
        raise SchemaError(message, field=name, expected=key_field.dtype)
    inferred = declared or Schema.of_columns({name: values.column}).fields[name]
    typed = optional_field(inferred) if declared is None and source.default is None else inferred
    _check_nulls(name, value_column, keys, values, typed)
    return BoundJoined(
        name, typed, (key,), index, values.column, values.valid, *_otherwise(name, typed, source, values)
    )


def _pair(name: str, on: Any) -> tuple[str, str]:
    if isinstance(on, str):
        return on, on
    if isinstance(on, tuple | list) and len(on) == 2 and all(isinstance(each, str) for each in on):
        return on[0], on[1]
    message = f"{name}: on= is the name of a field and column, or a pair (field, column), found {quoted(on)}"
    raise SchemaError(message, field=name)


def _key_field(name: str, key: str, schema: Schema | None) -> Field:
    fields = {} if schema is None else schema.fields
    if key not in fields:
        hint = did_you_mean(key, fields) or (f"It has {listed(fields)}." if fields else "Its records have no fields.")
        message = f"{name}: there is no field {key!r} in the dataset to join on\n  {hint}"
        raise SchemaError(message, field=name)
    found = fields[key]
    keyed = isinstance(found, Field) and not found.shape and found.dtype in _KEY_DTYPES
    if not keyed or not isinstance(found, Field):
        message = f"{name}: cannot join on {key!r}, which is {found}\n  A key is one integer, string or bytes value."
        raise SchemaError(message, field=name, found=str(found))
    return found


_KEY_DTYPES = frozenset({*INTEGERS, "string", "bytes"})


def _dtype_of(keys: Filled) -> str:
    column = keys.column
    return str(Schema.of_columns({"key": column}).fields["key"])


def _check_nulls(name: str, column: str, keys: Filled, values: Filled, typed: AnyField) -> None:
    if values.valid is None or typed.optional:
        return
    where = np.flatnonzero(~values.valid)
    shown = ", ".join(_shown(keys.column[int(row)]) for row in where[:_MOST_KEYS])
    message = (
        f"{name}: no value in {counted(len(where), 'row')} of the table's column {column!r}, with key {shown}\n"
        f"  Fill them, or say dtype={or_optional(typed)} to leave the field missing there."
    )
    raise SchemaError(message, field=name, expected=str(typed), found="null")


def _otherwise(name: str, typed: AnyField, source: Joined, values: Filled) -> tuple[Column | None, bool]:
    """Return the row for records without a match, None if each needs a match, and whether the row is a value."""
    if source.default is _NOT_GIVEN or source.default is None:
        if source.default is None and not typed.optional:
            message = f"{name}: default=None needs a type that ends in ?\n  Declare {or_optional(typed)}."
            raise SchemaError(message, field=name, expected=str(typed), found="None")
        return (blank_row(values.column), False) if typed.optional else (None, False)
    try:
        return one_row(name, typed, source.default), True
    except SchemaError as error:
        raise error.but(summary=f"{error.summary} as the default", field=name) from None


@dataclass(frozen=True, eq=False, repr=False)
class BoundJoined:
    """A join that was checked for one dataset."""

    name: str
    field: AnyField
    reads: tuple[str, ...]
    _index: _IntegerKeys | _ByteKeys
    _column: Column
    _valid: NDArray[np.bool_] | None
    _otherwise: Column | None
    _is_value: bool

    def values(self, rows: RowSpan) -> tuple[Any, NDArray[np.bool_] | None]:
        """Return the values for the records of a batch, and where there is one."""
        batch = rows.batch
        assert batch is not None
        (key,) = self.reads
        places = self._index.places(batch[key])
        places[~batch.valid(key)] = -1
        found = places >= 0
        if self._otherwise is None:
            if not found.all():
                raise self._not_there(rows.first, batch, found)
            return rows_at(self._column, places), None
        column = taken(self._column, places, self._otherwise)
        valid = np.ones(rows.count, np.bool_) if self._is_value else found.copy()
        if self._valid is not None:
            valid[found] &= self._valid[places[found]]
        return column, None if valid.all() else valid

    def _not_there(self, first: int, batch: Batch, found: NDArray[np.bool_]) -> SchemaError:
        (key,) = self.reads
        absent = np.flatnonzero(~found)
        row = int(absent[0])
        if batch.valid(key)[row]:
            what = f"has {key} {_shown(batch[key][row])}, which is not in the table"
        else:
            what = f"has no {key} to look up"
        more = f"So do {len(absent) - 1:,} more of these {len(batch):,} records. " if len(absent) > 1 else ""
        message = (
            f"{self.name}: record {first + row} {what}\n"
            f"  {more}Give default=, or say dtype={or_optional(self.field)} to leave the field missing there."
        )
        return SchemaError(message, field=self.name, record=first + row)


# --- Keys


def _index(name: str, column: str, keys: Filled) -> _IntegerKeys | _ByteKeys:
    if keys.valid is not None:
        where = np.flatnonzero(~keys.valid)
        message = (
            f"{name}: no key in {counted(len(where), 'row')} of the table's column {column!r}\n"
            f"  The first is row {where[0]}. Leave such rows out."
        )
        raise SchemaError(message, field=name)
    values = keys.column
    repeats: list[Any]
    index: _IntegerKeys | _ByteKeys
    if isinstance(values, BytesColumn) and len(values.shape) == 1:
        index, repeats = _ByteKeys.of(values)
    elif isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype.kind in "iu":
        index, repeats = _IntegerKeys.of(values)
    else:
        message = f"{name}: the table's column {column!r} is {_dtype_of(keys)}\n  A key is an integer or a string."
        raise SchemaError(message, field=name)
    if repeats:
        shown = listed(map(_shown, repeats), most=_MOST_KEYS)
        message = (
            f"{name}: more than one row of the table has {column} {shown}\n"
            f"  It is unclear which one to use. Keep one row per key."
        )
        raise SchemaError(message, field=name)
    return index


def _named_keys(keys: Iterable[Any]) -> str:
    return ", ".join(map(_shown, keys))


def _shown(key: Any) -> str:
    return shortened(repr(key.item() if isinstance(key, np.generic) else key))


class _IntegerKeys(NamedTuple):
    """Sorted integer keys, and the row of each."""

    ordered: NDArray[Any]
    rows: NDArray[np.int64]

    @classmethod
    def of(cls, keys: NDArray[Any]) -> tuple[_IntegerKeys, list[int]]:
        """Return the index of the keys, and the repeated keys."""
        # int64 if possible, so that comparing with the keys of most datasets needs no check of signs.
        fits = keys.dtype != np.uint64 or not len(keys) or int(keys.max()) < 2**63
        keys = keys.astype(np.int64 if fits else np.uint64, copy=False)
        rows = np.argsort(keys, kind="stable")
        ordered = keys[rows]
        repeats = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
        return cls(ordered, rows), repeats.tolist()

    def places(self, keys: NDArray[Any]) -> NDArray[np.int64]:
        """Return the row of each key; -1 if there is none."""
        if not len(self.ordered):
            return np.full(len(keys), -1, np.int64)
        # NumPy compares int64 with uint64 as floats, which finds keys that do not exist.
        wanted = keys.astype(self.ordered.dtype, copy=False)
        at = np.minimum(np.searchsorted(self.ordered, wanted), len(self.ordered) - 1)
        found = self.ordered[at] == wanted
        if keys.dtype == np.uint64 or self.ordered.dtype == np.uint64:
            found &= (keys >= 0) == (wanted >= 0)
        return np.where(found, self.rows[at], -1)


class _ByteKeys(NamedTuple):
    """The row of each key of bytes or text."""

    rows: dict[bytes, int]

    @classmethod
    def of(cls, keys: BytesColumn) -> tuple[_ByteKeys, list[Any]]:
        """Return the index of the keys, and the repeated keys."""
        values = _byte_strings(keys)
        rows = dict(zip(values, range(len(values)), strict=True))
        if len(rows) == len(values):
            return cls(rows), []
        repeats = {key: None for row, key in enumerate(values) if rows[key] != row}
        return cls(rows), [key.decode() if keys.text else key for key in repeats]

    def places(self, keys: BytesColumn) -> NDArray[np.int64]:
        """Return the row of each key; -1 if there is none."""
        return np.fromiter(map(self.rows.get, _byte_strings(keys), repeat(-1)), np.int64, len(keys))


def _byte_strings(column: BytesColumn) -> list[bytes]:
    # One copy, then slices of it: several times faster than taking values from the array one by one.
    offsets = column.offsets
    data = column.data[offsets[0] : offsets[-1]].tobytes()
    ends = (offsets - offsets[0]).tolist()
    return [data[start:stop] for start, stop in pairwise(ends)]
