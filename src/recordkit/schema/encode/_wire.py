"""The wire: a flat column as the features that store it.

The way back, from features to columns, is `_read`. What is stored how is written in docs/format/schema.md.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from recordkit.columns import BytesColumn
from recordkit.dtypes import little_endian
from recordkit.errors import SchemaError
from recordkit.examples import EMPTY, Values

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from recordkit.schema.declare import Layout

    from ._flat import Flat


def to_wire(layout: Layout, flat: Flat) -> dict[str, Values]:
    """Return the features that store a column, by name."""
    wire = {layout.name: _own_feature(layout, flat)}
    if layout.shape_name is not None:
        assert flat.dims is not None
        rank = len(layout.shape) if layout.shape is not None else None
        wire[layout.shape_name] = Values("int64", flat.dims, flat.ranks, rank, flat.steps, flat.states)
    if layout.dtype_name is not None:
        names = BytesColumn.of([layout.dtype.encode()] * flat.items)
        wire[layout.dtype_name] = Values("bytes", names, None, 1, flat.steps, flat.states)
    return wire


def _own_feature(layout: Layout, flat: Flat) -> Values:
    values = flat.values
    if layout.storage == "list":
        if layout.kind != "bytes":
            assert isinstance(values, np.ndarray)
            values = np.ascontiguousarray(values, np.int64 if layout.kind == "int64" else np.float32)
        count = layout.count if flat.offsets is None else None
        return Values(layout.kind, values, flat.offsets, count, flat.steps, flat.states)
    if layout.storage == "raw":
        assert isinstance(values, np.ndarray)
        values = _raw(values, flat.offsets, flat.items)
    return Values("bytes", values, None, 1, flat.steps, flat.states)


def _raw(values: NDArray[Any], offsets: NDArray[np.int64] | None, items: int) -> BytesColumn:
    """Return arrays as one byte string each: little-endian, row-major."""
    data = np.ascontiguousarray(little_endian(values)).view(np.uint8)
    if offsets is None:
        size = len(values) // max(items, 1)
        offsets = np.arange(items + 1, dtype=np.int64) * size
    return BytesColumn(data, offsets * values.itemsize)


def add_to(columns: dict[str, Values], wire: dict[str, Values], field: str) -> None:
    """Add a field's features to those of the other fields.

    Only a shape that several arrays share (`Array(shape_from=)`) can be there already; it must be the same for all.
    """
    for name, values in wire.items():
        other = columns.setdefault(name, values)
        if other is not values and not _same(other, values):
            message = f"{field}: its shape is not the one in {name!r}\n  Arrays that share a shape must agree in it."
            raise SchemaError(message, field=field)


def _same(one: Values, other: Values) -> bool:
    return one.kind == other.kind and _numbers_by_row(one) == _numbers_by_row(other)


def _numbers_by_row(values: Values) -> list[Any]:
    """Return an int64 feature as a list of lists, None where it is missing."""
    assert isinstance(values.values, np.ndarray)
    flat, count = values.values, values.count or 0
    places = values.offsets if values.offsets is not None else range(0, len(flat) + 1, count or 1)
    lists = [flat[start:stop].tolist() for start, stop in pairwise(places)]
    if values.states is None:
        return lists
    return [None if state < EMPTY else numbers for state, numbers in zip(values.states, lists, strict=True)]
