"""Values: the values of a record as JSON, and back.

Numbers are numbers; a float32 has the fewest digits that restore it. NaN and infinities, which JSON lacks, are "NaN",
"Infinity" and "-Infinity", and bytes and pictures are base64, as in protobuf's JSON. Times and complex numbers are
text, timedeltas are integers in their unit, arrays are nested lists, and missing values are null. `row_of` parses all
of it.

>>> import numpy as np
>>> plain(np.array([0.1, np.nan], np.float32)), plain(b"abc"), plain(np.datetime64("2024-05-01"))
([0.1, 'NaN'], 'YWJj', '2024-05-01')
"""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from recordkit.columns import BytesColumn, Ragged, check_empty_lists
from recordkit.errors import SchemaError

if TYPE_CHECKING:
    from recordkit.schema import Schema

__all__ = ["line_of", "plain", "row_of"]

_NOT_FINITE: Final = {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}
_BINARY: Final = ("bytes", "jpeg", "png")


def plain(value: Any) -> Any:
    """Return a value, a report, or a container of these, for JSON."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, np.integer | np.bool_) and not isinstance(value, np.timedelta64):
        return value.item()
    if isinstance(value, np.floating):
        return _number(str(value), "f")
    if isinstance(value, np.ndarray | np.generic):
        return _array(np.asarray(value))
    if isinstance(value, float):
        return value if math.isfinite(value) else _NOT_FINITE[str(value)]
    if isinstance(value, BytesColumn):
        return plain(value.to_list())
    if isinstance(value, Ragged):
        return [plain(each) for each in value]
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: plain(getattr(value, each.name)) for each in fields(value)}
    return [plain(each) for each in value] if isinstance(value, list | tuple) else str(value)


def _array(array: np.ndarray[Any, Any]) -> Any:
    kind = array.dtype.kind
    check_empty_lists(array.shape)
    if kind in "biu":
        return array.tolist()
    if kind in "OS":
        return plain(array.tolist())
    if kind == "f" and array.dtype.itemsize == 8 and np.isfinite(array).all():
        return array.tolist()
    # Through text: the digits of the float32, not of the nearest float64.
    if kind == "m":
        array = np.where(np.isnat(array), np.array("NaT", np.object_), array.astype(np.int64).astype(np.object_))
        return array.tolist()
    flat = np.empty(array.size, np.object_)
    flat[:] = [_number(str(value), kind) for value in array.reshape(-1)]
    return flat.reshape(array.shape).tolist()


def _number(text: str, kind: str) -> Any:
    return text if kind in "Mc" else _NOT_FINITE.get(text) or float(text)


def line_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row for a JSON line."""
    return {name: plain(value) for name, value in row.items()}


# --- From JSON


def row_of(line: Mapping[str, Any], schema: Schema) -> dict[str, Any]:
    """Return the row of a JSON line from `line_of`. Unknown names are kept, for the writer to refuse.

    Raises:
        SchemaError: A text does not fit its field.
    """
    declared = {**schema.fields, **schema.sequences}
    return {name: _from_json(name, value, declared.get(name)) for name, value in line.items()}


def _from_json(name: str, value: Any, declared: Any) -> Any:
    dtype = str(getattr(declared, "dtype", ""))
    if declared is None or value is None or dtype == "string":
        return value
    return _parsed(name, value, dtype)


def _parsed(name: str, value: Any, dtype: str) -> Any:
    if isinstance(value, list):
        return [_parsed(name, each, dtype) for each in value]
    if dtype.startswith("timedelta64") and not isinstance(value, bool | float):
        return np.array(value, f"m8[{dtype.partition(':')[2]}]")[()]
    if not isinstance(value, str):
        return value
    try:
        return _from_text(value, dtype)
    except (ValueError, binascii.Error):
        expected = "base64" if dtype in _BINARY else dtype
        message = f"{name}: expected {expected}, found other text\n  `recordkit cat` shows how values are written."
        raise SchemaError(message, field=name, expected=expected) from None


def _from_text(text: str, dtype: str) -> Any:
    if dtype in _BINARY:
        return base64.b64decode(text, validate=True)
    if dtype.startswith("datetime64"):
        return np.array(text, f"M8[{dtype.partition(':')[2]}]")[()]
    return complex(text) if dtype.startswith("complex") else float(text)
