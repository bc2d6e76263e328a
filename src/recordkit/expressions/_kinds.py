"""Kinds: what a field or a literal is, as far as comparing goes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from recordkit.columns import BytesColumn, Ragged

if TYPE_CHECKING:
    from collections.abc import Mapping

    from recordkit.columns import Column

    from ._nodes import Value

_TYPE = re.compile(r"\s*([^\[\]?\s]+)\s*(\[[^\]]*\])?\s*\??\s*")
_GROUPS = {"string": "text", "bytes": "bytes", "jpeg": "bytes", "png": "bytes"}
_GROUPS |= {"complex64": "complex", "complex128": "complex", "datetime64": "time", "timedelta64": "span"}


class Kind(NamedTuple):
    """What can be compared with what.

    Attributes:
        group: "number" (bool is one), "complex", "text", "bytes", "time", "span" or "unknown".
        many: Whether a row holds more than one value; None if that is not known yet.
        words: The type, to name in errors.
        dtype: Its dtype, of a field.
    """

    group: str
    many: bool | None
    words: str
    dtype: str = ""

    @property
    def unit(self) -> str:
        """The unit of a time or a span."""
        return self.dtype.partition(":")[2]


def kind_of_value(value: Value) -> Kind:
    """Return the kind of a literal.

    >>> kind_of_value(b"x").group, kind_of_value(True).group
    ('bytes', 'number')
    """
    if isinstance(value, str | bytes):
        group = "text" if isinstance(value, str) else "bytes"
        return Kind(group, False, group)
    return Kind("number", False, "a number")


def kinds_of_schema(schema: Any) -> dict[str, Kind]:
    """Return the kind of every field of a schema, or of a mapping from names to types or fields."""
    if not hasattr(schema, "fields"):
        return {name: _kind_of_type(declared, 0) for name, declared in schema.items()}
    kinds = {name: _kind_of_type(field, 0) for name, field in schema.fields.items()}
    sequences: Mapping[str, Any] = getattr(schema, "sequences", {})
    return kinds | {name: _kind_of_type(field, 1) for name, field in sequences.items()}


def _kind_of_type(declared: Any, steps: int) -> Kind:
    if isinstance(declared, str):
        match = _TYPE.fullmatch(declared)
        if match is None:
            message = f"{declared!r} is not a type\n  Such as 'int64' or 'float32[?,3]'."
            raise ValueError(message)
        return _kind(match[1], steps > 0 or match[2] is not None, declared)
    # An array that others stored may tell its dtype and its shape only when it is read.
    many = True if steps else None if declared.shape is None else len(declared.shape) > 0
    return _kind(declared.dtype, many, str(declared))


def kind_of_column(column: Column) -> Kind:
    """Return the kind of a column.

    >>> kind_of_column(np.zeros((2, 3), "float32"))
    Kind(group='number', many=True, words='float32[3]', dtype='float32')
    >>> kind_of_column(BytesColumn.of(["a"])).group
    'text'
    """
    values = column.values if isinstance(column, Ragged) else column
    inner = ["?"] if isinstance(column, Ragged) else []
    inner += [str(size) for size in values.shape[1:]]
    dtype = ("string" if values.text else "bytes") if isinstance(values, BytesColumn) else _dtype_name(values.dtype)
    return _kind(dtype, bool(inner), f"{dtype}[{','.join(inner)}]" if inner else dtype)


def _dtype_name(dtype: np.dtype[Any]) -> str:
    if dtype.kind in "mM":
        unit, count = np.datetime_data(dtype)
        return f"{'datetime64' if dtype.kind == 'M' else 'timedelta64'}:{count if count > 1 else ''}{unit}"
    return dtype.name


def _kind(dtype: str | None, many: bool | None, words: str) -> Kind:
    if dtype is None:
        return Kind("unknown", many, words)
    return Kind(_GROUPS.get(dtype.partition(":")[0], "number"), many, words, dtype)
