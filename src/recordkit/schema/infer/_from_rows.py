"""Inferring a schema from rows or columns, for users who declare none."""

from __future__ import annotations

import datetime
import functools
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from recordkit import dtypes, log
from recordkit.columns import BytesColumn, Ragged
from recordkit.errors import SchemaError
from recordkit.images import SIGNATURES
from recordkit.schema.declare import Field, field_from_parts
from recordkit.wording import is_whole, quoted

if TYPE_CHECKING:
    from recordkit.schema.values import Shape

# Dtypes for Python's own types. A Python float implies no width, and Example's list of floats holds float32.
_PYTHON_TYPES = {bool: "bool", int: "int64", float: "float32", complex: "complex64", str: "string", bytes: "bytes"}


def fields_of_rows(rows: Iterable[Mapping[str, Any]]) -> dict[str, Field]:
    """Return a field for every name in the rows."""
    seen: dict[str, _Seen] = {}
    count = 0
    for count, row in enumerate(rows, 1):
        if not isinstance(row, Mapping):
            message = f"a row is a dict of field names and values, found {type(row).__name__}"
            raise SchemaError(message, where=f"In row {count - 1}.", record=count - 1)
        for name, value in _named_values(row, ""):
            seen.setdefault(name, _Seen(name)).add(value, count - 1)
    if not count:
        message = "there are no rows to infer a schema from\n  Declare one."
        raise SchemaError(message)
    return {name: of.field(count) for name, of in seen.items()}


def fields_of_columns(columns: Mapping[str, Any]) -> dict[str, Field]:
    """Return a field for every column."""
    return {name: _field_of_column(name, column) for name, column in _named_values(columns, "")}


def _named_values(row: Mapping[str, Any], prefix: str) -> Iterable[tuple[str, Any]]:
    for key, value in row.items():
        if isinstance(value, Mapping):
            yield from _named_values(value, f"{prefix}{key}/")
        else:
            yield f"{prefix}{key}", value


def _field_of_column(name: str, column: Any) -> Field:
    seen = _Seen(name)
    if isinstance(column, BytesColumn):
        seen.add_type("string" if column.text else "bytes", tuple(column.shape[1:]), 0)
        return seen.field(1)
    if isinstance(column, Ragged):
        values = column.values
        dtype = ("string" if values.text else "bytes") if isinstance(values, BytesColumn) else _name(name, values.dtype)
        rank = column.shapes.shape[1] if column.shapes is not None else len(column.offsets) + len(values.shape) - 1
        return field_from_parts(dtype, (None,) * rank)
    if hasattr(column, "__array__") and np.asarray(column).dtype != np.object_:
        array = np.asarray(column)
        if array.ndim == 0:
            message = f"{name}: a column has one value a row, found a single value"
            raise SchemaError(message, field=name)
        return field_from_parts(_name(name, array.dtype), array.shape[1:])
    row = -1
    for row, value in enumerate(column):
        seen.add(value, row)
    return seen.field(row + 1)


def _name(field: str, dtype: np.dtype[Any]) -> str:
    try:
        return dtypes.name_of(dtype)
    except SchemaError as error:
        message = f"{field}: {error}"
        raise SchemaError(message, field=field) from None


class _Seen:
    """The common type of the values of one field so far."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.dtype: str | None = None
        self.shape: Shape | None = None
        self.present = 0
        self.python_float = False
        self.low, self.high = 0, 0
        self.pictures: set[str] | None = None

    def add(self, value: Any, row: int) -> None:
        """Add one value."""
        if value is None:
            return
        dtype, shape = self._type_of(value, row)
        self.add_type(dtype, shape, row)

    def add_type(self, dtype: str | None, shape: tuple[int, ...], row: int) -> None:
        """Add the dtype (None for an empty list) and shape of one value."""
        self.present += 1
        if dtype is not None:
            self.dtype = dtype if self.dtype is None else self._common(dtype, row)
        if self.shape is None:
            self.shape = shape
        elif len(self.shape) != len(shape):
            words = f"arrays of {len(self.shape)} and of {len(shape)} dimensions"
            advice = "A field has one number of dimensions; declare a schema to say which."
            raise self._unfit(words, advice, row, "The latter in")
        else:
            self.shape = tuple(one if one == other else None for one, other in zip(self.shape, shape, strict=True))

    def _common(self, dtype: str, row: int) -> str:
        assert self.dtype is not None
        if dtype == self.dtype:
            return dtype
        # Integers among Python floats are floats without a fraction.
        if {dtype, self.dtype} == {"int64", "float32"} and self.python_float:
            return "float32"
        words = f"{self.dtype} and {dtype} in one field"
        raise self._unfit(words, "Convert the values, or declare a schema to say which.", row, "The latter in")

    def _type_of(self, value: Any, row: int) -> tuple[str | None, tuple[int, ...]]:
        if isinstance(value, BytesColumn):
            return ("string" if value.text else "bytes"), tuple(value.shape)
        if isinstance(value, list | tuple | range) or (isinstance(value, np.ndarray) and value.dtype == np.object_):
            return self._type_of_list(value, row)
        if isinstance(value, np.ndarray | np.generic) and not isinstance(value, str | bytes):
            return _name(self.name, value.dtype), value.shape
        if isinstance(value, bytes | bytearray | memoryview):
            self._note_picture(bytes(value))
            return "bytes", ()
        if is_whole(value):
            self.low, self.high = min(self.low, value), max(self.high, value)
        dtype = next((name for kind, name in _PYTHON_TYPES.items() if isinstance(value, kind)), None) or _time(value)
        if dtype is None and hasattr(value, "__array__"):
            array = np.asarray(value)
            return _name(self.name, array.dtype), array.shape
        if dtype is None:
            message = f"{self.name}: a {type(value).__name__} is not a value a record can hold"
            raise SchemaError(message, where=f"In row {row}.", field=self.name, record=row, found=quoted(value))
        self.python_float |= isinstance(value, float)
        return dtype, ()

    def _type_of_list(self, value: Any, row: int) -> tuple[str | None, tuple[int, ...]]:
        """Return the dtype and shape of nested lists."""
        inner = [self._type_of(item, row) for item in value if item is not None]
        if len(inner) != len(value):
            words = "None inside a list"
            raise self._unfit(words, "Only a whole field can be missing.", row)
        if len({shape for _, shape in inner}) > 1:
            words = "lists of differing lengths inside one another"
            raise self._unfit(words, "Pad or flatten them.", row)
        dtypes = {dtype for dtype, _ in inner if dtype is not None}
        if dtypes == {"int64", "float32"} and self.python_float:
            dtypes = {"float32"}
        if len(dtypes) > 1:
            words = f"{' and '.join(sorted(dtypes))} in one list"
            raise self._unfit(words, "Convert the values.", row)
        return (dtypes.pop() if dtypes else None), (len(value), *(inner[0][1] if inner else ()))

    def _note_picture(self, value: bytes) -> None:
        kinds = {kind for kind, signature in SIGNATURES.items() if value.startswith(signature)}
        self.pictures = kinds if self.pictures is None else self.pictures & kinds

    def field(self, rows: int) -> Field:
        """Return the field that holds all values so far."""
        if self.dtype is None or self.shape is None:
            what = "None" if not self.present else "an empty list"
            message = f"{self.name}: {what} in every row, so its type is unknown\n  Declare a schema, or leave it out."
            raise SchemaError(message, field=self.name)
        dtype = self.dtype
        if dtype == "int64" and self.high > 2**63 - 1 and self.low >= 0:
            dtype = "uint64"
        elif dtype == "bytes" and self.pictures:
            dtype = self.pictures.pop()
        if dtype == "float32" and self.python_float:
            _say_floats_are_float32()
        return field_from_parts(dtype, self.shape, optional=self.present < rows)

    def _unfit(self, words: str, advice: str, row: int, where: str = "In") -> SchemaError:
        where = f"{where} row {row}."
        return SchemaError(words, place=self.name, where=where, advice=advice, field=self.name, record=row)


def _time(value: Any) -> str | None:
    if isinstance(value, datetime.timedelta):
        return "timedelta64:us"
    if isinstance(value, datetime.datetime):
        return "datetime64:us"
    return "datetime64:D" if isinstance(value, datetime.date) else None


@functools.cache  # once a process
def _say_floats_are_float32() -> None:
    log.info("Python floats are stored as float32; declare float64 in a schema, or use NumPy's, to keep every digit")
