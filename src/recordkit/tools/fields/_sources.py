"""Sources: where the values of new fields come from.

A source is what a user passes to `add_fields` for a name. `bind` checks everything that can be known before a record is
read, and returns a `Bound`, which returns the values of any span of records, in any order and any process. Whether
values fit the declared type is checked by the schema when they are written.
"""

from __future__ import annotations

import datetime
import mmap
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from recordkit.columns import Batch, BytesColumn, Ragged
from recordkit.dataset import Dataset
from recordkit.errors import SchemaError
from recordkit.schema import Array, Field, Schema, TensorProto
from recordkit.wording import listed

from ._bound import AnyField, Bound, RowSpan, one_field, value_mask
from ._computed import Computed, bind_computed
from ._joined import Joined, bind_joined
from ._pieces import cut, one_row, optional_field, repeated
from ._tables import Filled, is_arrow, series_column

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from recordkit.columns import Column

__all__ = ["Aligned", "Bound", "Computed", "Joined", "RowSpan", "bind"]


@dataclass(frozen=True, eq=False)
class Aligned:
    """Values for a new field from another dataset whose records are in the same order.

    Args:
        dataset: A dataset, or a `Batch`, with as many records.
        column: Its field; by default the one with the new field's name.

    >>> Aligned(Batch({"height": np.array([165, 168])}, 2), "height").column
    'height'
    """

    dataset: Dataset | Batch
    column: str | None = None


def bind(name: str, source: Any, schema: Schema | None, records: int) -> Bound:
    """Check a source for one dataset.

    Args:
        name: The new field's name.
        source: A `Computed`, a `Joined`, an `Aligned`, a dataset, an array or list with a value for each record, one
            value for all records, or a pair of a type and one of the last three.
        schema: The schema of the dataset; None if its records have no fields.
        records: The number of records.

    Raises:
        SchemaError: The source does not fit this dataset.

    >>> bound = bind("height", ("float32", [1.5, 2.5, 3.5]), None, 3)
    >>> bound.field, bound.reads, bound.values(RowSpan(1, 2))
    (Field('float32'), (), ([2.5, 3.5], None))
    """
    if isinstance(source, Computed):
        return bind_computed(name, source, schema)
    if isinstance(source, Joined):
        return bind_joined(name, source, schema)
    declared, source = _declared(name, source)
    if isinstance(source, Dataset | Batch):
        source = Aligned(source)
    if isinstance(source, Aligned):
        return _bind_aligned(name, source, declared, records)
    if _is_single(source):
        return _bind_single(name, source, declared)
    return _bind_column(name, source, declared, records)


def _declared(name: str, source: Any) -> tuple[AnyField | None, Any]:
    """Split a pair of type and source; the type is None if there is only a source."""
    if not isinstance(source, tuple):
        return None, source
    if len(source) != 2 or not isinstance(source[0], str | Field | Array | TensorProto):
        message = f"{name}: a tuple is a pair (type, values)\n  Give the values of all records as a list or an array."
        raise SchemaError(message, field=name)
    dtype, values = source
    if isinstance(values, Computed | Joined):
        kind = type(values).__name__
        message = f"{name}: {kind} has a type of its own\n  Write {kind}(..., dtype=...)."
        raise SchemaError(message, field=name)
    return one_field(name, dtype), values


# --- Arrays and lists


@dataclass(frozen=True, eq=False, repr=False)
class _OfColumn:
    """The values of an array, a list or a column, which is sliced and never copied as a whole."""

    name: str
    field: AnyField
    _column: Any
    _valid: NDArray[np.bool_] | None
    reads: tuple[str, ...] = ()

    def values(self, rows: RowSpan) -> tuple[Any, NDArray[np.bool_] | None]:
        column = cut(self._column, rows.first, rows.count)
        if self._valid is None:
            return column, value_mask(column, self.field)
        valid = self._valid[rows.first : rows.first + rows.count]
        return column, None if valid.all() else valid

    def __getstate__(self) -> dict[str, Any]:
        # Another process maps the file itself, so its bytes need not be sent.
        column = self._column
        whole = isinstance(column, np.memmap) and isinstance(column.base, mmap.mmap)
        mapped = whole and column.filename is not None and column.mode != "c" and column.flags.c_contiguous
        return {**self.__dict__, "_column": _Mapped.of(column) if mapped else column}

    def __setstate__(self, state: dict[str, Any]) -> None:
        column = state["_column"]
        self.__dict__.update({**state, "_column": column.open() if isinstance(column, _Mapped) else column})


class _Mapped(NamedTuple):
    """The file, and the place in it, of a memory-mapped array."""

    path: str
    dtype: np.dtype[Any]
    offset: int
    shape: tuple[int, ...]

    @classmethod
    def of(cls, array: np.memmap[Any, Any]) -> _Mapped:
        return cls(os.fspath(array.filename or ""), array.dtype, array.offset, array.shape)

    def open(self) -> np.memmap[Any, Any]:
        return np.memmap(self.path, self.dtype, "r", self.offset, self.shape)


def _bind_column(name: str, source: Any, declared: AnyField | None, records: int) -> Bound:
    column, valid = _as_column(name, source)
    _check_length(name, len(column), declared, column, records)
    field = declared or _field_of(name, column)
    if declared is None and valid is not None:
        field = optional_field(field)
    return _OfColumn(name, field, column, valid)


def _as_column(name: str, source: Any) -> Filled:
    """Return a source as a column that can be sliced."""
    if isinstance(source, np.ma.MaskedArray):
        message = f"{name}: found a masked array\n  Give a list with None where a value is missing, or .filled(...)."
        raise SchemaError(message, field=name)
    numpy_like = isinstance(getattr(source, "dtype", None), np.dtype) and hasattr(source, "shape")
    if isinstance(source, list | BytesColumn | Ragged | np.ndarray):
        return Filled(source, None)  # type: ignore[arg-type]
    if is_arrow(source) and not hasattr(source, "columns"):
        return series_column(source, name, name)
    if numpy_like and hasattr(source, "__getitem__"):
        return Filled(source, None)  # arrays of h5py and zarr, for example, which are read when sliced
    if isinstance(source, Sequence):
        return Filled(source, None)  # type: ignore[arg-type]
    if hasattr(source, "__array__") and not hasattr(source, "columns"):
        return Filled(np.asarray(source), None)
    raise _no_source(name, source)


def _no_source(name: str, source: Any) -> SchemaError:
    advice = "A source is an array or a list, one value, a dataset, rk.Computed(...) or rk.Joined(...)."
    if hasattr(source, "columns") or isinstance(source, Mapping | os.PathLike):
        advice = "A table is joined by a key: rk.Joined(table, on=...)."
    elif callable(source):
        advice = "A function needs a type: rk.Computed(dtype, fn, reads=[...])."
    message = f"{name}: a {type(source).__name__} gives no values\n  {advice}"
    return SchemaError(message, field=name, found=type(source).__name__)


def _check_length(name: str, found: int, declared: AnyField | None, column: Any, records: int) -> None:
    if found == records:
        return
    message = f"{name}: expected {records:,} rows, as many as the dataset has, found {found:,}"
    shape = getattr(column, "shape", (found,))
    if declared is not None and declared.shape and len(shape) == len(declared.shape):
        whole = ", ".join(map(str, (records, *shape)))
        message += f"\n  To give all records this one value: np.broadcast_to(value, ({whole}))."
    raise SchemaError(message, field=name, expected=f"{records} rows", found=f"{found} rows")


def _field_of(name: str, column: Any) -> AnyField:
    dtype = getattr(column, "dtype", None)
    if isinstance(dtype, np.dtype) and dtype != np.object_:
        column = np.empty((0, *column.shape[1:]), dtype)  # only the type matters, and the values may be on disk
    return Schema.of_columns({name: column}).fields[name]


# --- One value for all


_SINGLE = (str, bytes, bytearray, bool, int, float, complex, np.generic, datetime.date, datetime.timedelta)


def _is_single(source: Any) -> bool:
    return source is None or isinstance(source, _SINGLE) or getattr(source, "shape", None) == ()


@dataclass(frozen=True, eq=False, repr=False)
class _OfValue:
    """One value for every record; None if the field is missing everywhere."""

    name: str
    field: AnyField
    _row: Column | None
    reads: tuple[str, ...] = ()

    def values(self, rows: RowSpan) -> tuple[Any, NDArray[np.bool_] | None]:
        if self._row is None:
            return [None] * rows.count, np.zeros(rows.count, np.bool_)
        return repeated(self._row, rows.count), None


def _bind_single(name: str, value: Any, declared: AnyField | None) -> Bound:
    if value is None:
        if declared is None or not declared.optional:
            advice = "a type that ends in ?, such as ('string?', None)"
            message = f"{name}: None for every record needs a type\n  Give {advice}."
            raise SchemaError(message, field=name, found="None")
        return _OfValue(name, declared, None)
    if not isinstance(value, _SINGLE):
        value = np.asarray(value)[()]
    field = declared or Schema.of_rows([{name: value}]).fields[name]
    return _OfValue(name, field, one_row(name, field, value))


# --- Other datasets


@dataclass(frozen=True, eq=False, repr=False)
class _OfDataset:
    """The values of a field of another dataset, read on demand."""

    name: str
    field: AnyField
    _dataset: Dataset
    _column: str
    reads: tuple[str, ...] = ()

    def values(self, rows: RowSpan) -> tuple[Any, NDArray[np.bool_] | None]:
        found = self._dataset[rows.first : rows.first + rows.count]
        if len(found) != rows.count:
            message = f"{self.name}: expected {rows.count:,} records from {rows.first} on, found {len(found):,}"
            raise SchemaError(message, field=self.name, record=rows.first)
        valid = found.valid(self._column)
        return found[self._column], None if valid.all() else valid


def _bind_aligned(name: str, source: Aligned, declared: AnyField | None, records: int) -> Bound:
    column, dataset = source.column or name, source.dataset
    if isinstance(dataset, Batch):
        _check_there(name, column, dataset.names)
        _check_length(name, len(dataset), None, dataset, records)
        valid = dataset.valid(column)
        field = declared or _field_of(name, dataset[column])
        if valid.all():
            return _OfColumn(name, field, dataset[column], None)
        return _OfColumn(name, field if declared else optional_field(field), dataset[column], valid)
    schema = dataset.schema
    _check_there(name, column, () if schema is None else schema.names)
    assert schema is not None
    if column in schema.sequences:
        message = (
            f"{name}: {column!r} is a sequence, with a value for every step\n  New fields have one value per record."
        )
        raise SchemaError(message, field=name)
    _check_length(name, len(dataset), None, dataset, records)
    return _OfDataset(name, declared or schema.fields[column], dataset.select(column), column)


def _check_there(name: str, column: str, there: Sequence[str]) -> None:
    if column not in there:
        known = f"It has {listed(there)}." if there else "Its records have no fields."
        message = f"{name}: there is no field {column!r} in the other dataset\n  {known} Or rk.Aligned(dataset, field)."
        raise SchemaError(message, field=name)
