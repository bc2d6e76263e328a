"""Arrow: columns as formats, buffers and children for the C data interface.

A node is what `_core.arrow_array` takes: (format, name, nullable, length, null_count, buffers, children). Offsets have
64 bits, so lists, bytes and text are Arrow's large kinds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from recordkit import _core
from recordkit.dtypes import DTYPES, ML_DTYPES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

Node = tuple[str, str, bool, int, int, list[Any], list[Any]]

_FORMATS = {dtype.name: dtype.arrow for dtype in DTYPES.values() if dtype.arrow}
_UNITS = {"s": "s", "ms": "m", "us": "u", "ns": "n"}


def export(root: Node) -> tuple[object, object]:
    """Return the capsules of a node."""
    schema, array = _core.arrow_array(root)
    return schema, array


def export_stream(schema: Node, nodes: Iterator[Node]) -> object:
    """Return the capsule of a stream of nodes of one format."""
    return _core.arrow_stream(schema, nodes)


def nullable(child: Node) -> Node:
    """Return the node marked as nullable, whether or not a value is missing in these rows."""
    kind, name, _, *rest = child
    return (kind, name, True, *rest)  # type: ignore[return-value]


def struct(children: list[Node], rows: int) -> Node:
    """Return the node of a record batch."""
    return ("+s", "", False, rows, 0, [None], children)


def node(column: Any, name: str = "", valid: NDArray[np.bool_] | None = None) -> Node:
    """Return the node of a column: an array, a `BytesColumn` or a `Ragged`."""
    validity, nulls = None, 0
    if valid is not None:
        validity, nulls = np.packbits(valid, bitorder="little"), int(np.count_nonzero(~valid))
    if hasattr(column, "shapes"):
        return _ragged(column, name, validity, nulls)
    if len(column.shape) > 1:
        return _fixed_lists(column, name, validity, nulls)
    if hasattr(column, "text"):
        kind = "U" if column.text else "Z"
        buffers = [validity, np.ascontiguousarray(column.offsets), np.ascontiguousarray(column.data)]
        return (kind, name, nulls > 0, len(column), nulls, buffers, [])
    return _numbers(column, name, validity, nulls)


def _ragged(column: Any, name: str, validity: Any, nulls: int) -> Node:
    inner = node(column.values, "item")
    for level in reversed(column.offsets[1:]):
        inner = ("+L", "item", False, len(level) - 1, 0, [None, np.ascontiguousarray(level)], [inner])
    first = np.ascontiguousarray(column.offsets[0])
    return ("+L", name, nulls > 0, len(first) - 1, nulls, [validity, first], [inner])


def _fixed_lists(column: Any, name: str, validity: Any, nulls: int) -> Node:
    rows, width, *rest = column.shape
    inner = node(column.reshape((rows * width, *rest)), "item")
    return (f"+w:{width}", name, nulls > 0, rows, nulls, [validity], [inner])


def _numbers(column: NDArray[Any], name: str, validity: Any, nulls: int) -> Node:
    column = np.ascontiguousarray(column, column.dtype.newbyteorder("="))
    dtype = column.dtype
    if dtype.kind == "b":
        return ("b", name, nulls > 0, len(column), nulls, [validity, np.packbits(column, bitorder="little")], [])
    if dtype.kind == "c":
        # Arrow has no complex numbers, so these are pairs of real and imaginary part.
        parts = column.view(np.float32 if dtype.itemsize == 8 else np.float64).reshape(-1, 2)
        return _fixed_lists(parts, name, validity, nulls)
    if dtype.name in ML_DTYPES:
        column = column.astype(np.float32)
        dtype = column.dtype
    kind = _FORMATS.get(dtype.name) or _time_format(dtype)
    return (kind, name, nulls > 0, len(column), nulls, [validity, column.view(np.uint8)], [])


def _time_format(dtype: np.dtype[Any]) -> str:
    if dtype.kind not in "mM":
        message = f"Arrow has no type for {dtype}"
        raise TypeError(message)
    unit, step = np.datetime_data(dtype)
    if unit not in _UNITS or step != 1:
        message = f"Arrow has no type for {dtype}; its units of time are s, ms, us and ns"
        raise TypeError(message)
    return f"ts{_UNITS[unit]}:" if dtype.kind == "M" else f"tD{_UNITS[unit]}"
