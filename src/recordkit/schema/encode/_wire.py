"""The wire: columns in flat form, and the features that store them.

Every input becomes a `Flat` first. An *item* is a value of the declared shape: that of a record, or of one step of a
sequence. `recordkit.schema.decode` is the way back, from features to columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from recordkit.columns import BytesColumn, to_offsets
from recordkit.dtypes import little_endian
from recordkit.errors import SchemaError
from recordkit.examples import EMPTY, MISSING, PRESENT, Values

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from recordkit.schema.declare import Layout


@dataclass(frozen=True, slots=True)
class Flat:
    """A column, with the values of all rows end to end.

    Attributes:
        items: The number of items.
        values: All elements, row-major: numbers of exactly the field's dtype, or byte strings. With one byte string a
            record these stay a list, so that large ones are copied only once.
        offsets: Where each item begins in `values`, and the end; None if each has the declared number of elements.
        dims: The shapes of all items, end to end, if the layout stores shapes.
        ranks: Where each item begins in `dims`, and the end; None if each has the declared number of dimensions.
        states: One for each record (see `recordkit.examples`); None if nothing is missing.
        steps: For sequences, where each record begins among the items, and the end.
    """

    items: int
    values: NDArray[Any] | BytesColumn | list[bytes]
    offsets: NDArray[np.int64] | None = None
    dims: NDArray[np.int64] | None = None
    ranks: NDArray[np.int64] | None = None
    states: NDArray[np.uint8] | None = None
    steps: NDArray[np.int64] | None = None

    @property
    def rows(self) -> int:
        """The number of records."""
        return self.items if self.steps is None else len(self.steps) - 1


def states_of(valid: NDArray[np.bool_] | None) -> NDArray[np.uint8] | None:
    """Return the states for a mask; None if nothing is missing."""
    if valid is None or bool(valid.all()):
        return None
    return np.where(valid, np.uint8(PRESENT), np.uint8(MISSING))


def byte_strings(layout: Layout, values: list[bytes]) -> BytesColumn | list[bytes]:
    """Return byte strings, one for each item, in the form that `Flat` needs."""
    return BytesColumn.of(values) if layout.steps else values


def join(layout: Layout, values: Sequence[Any]) -> Flat:
    """Return converted values, one for each record, as one column.

    Args:
        layout: The field.
        values: The results of `_columns.converter`, with None for missing ones.
    """
    return _join_steps(layout, values) if layout.steps else join_items(layout, values)


def join_items(layout: Layout, items: Sequence[Any]) -> Flat:
    """Return the results of `_items.item_converter`, with None for missing ones, as one column."""
    states = _states(items)
    if layout.storage == "tensor" or (layout.is_bytes and layout.shape == ()):
        return Flat(len(items), byte_strings(layout, [item or b"" for item in items]), states=states)
    if layout.is_bytes:
        return _join_byte_strings(layout, items, states)
    return _join_numbers(layout, items, states)


def _join_numbers(layout: Layout, items: Sequence[Any], states: NDArray[np.uint8] | None) -> Flat:
    dtype, shape = layout.numpy_dtype(), layout.shape
    if shape == ():
        nothing = np.zeros((), dtype)[()]
        return Flat(len(items), np.array([nothing if x is None else x for x in items], dtype), states=states)
    # A missing array of open shape is empty; one of fixed shape is zeros, so that the others keep their place.
    missing = (0,) if shape is None else layout.sizes
    arrays = [np.zeros(missing, dtype) if item is None else item for item in items]
    values = _concatenated([array.reshape(-1) for array in arrays], dtype)
    if layout.size is not None:
        return Flat(len(items), values, states=states)
    dims, ranks = _dims_of(layout, [array.shape for array in arrays])
    return Flat(len(items), values, to_offsets([array.size for array in arrays]), dims, ranks, states)


def _join_byte_strings(layout: Layout, items: Sequence[Any], states: NDArray[np.uint8] | None) -> Flat:
    missing = layout.sizes, [b""] * (layout.size or 0)
    pairs = [missing if item is None else item for item in items]
    values = BytesColumn.of([value for _, strings in pairs for value in strings])
    if layout.size is not None:
        return Flat(len(items), values, states=states)
    dims, ranks = _dims_of(layout, [shape for shape, _ in pairs])
    return Flat(len(items), values, to_offsets([len(strings) for _, strings in pairs]), dims, ranks, states)


def _join_steps(layout: Layout, records: Sequence[Flat | None]) -> Flat:
    """Return the steps of all records, each already a `Flat`, as one column."""
    parts = [record for record in records if record is not None]
    values: NDArray[Any] | BytesColumn
    if layout.kind == "bytes" and layout.storage != "raw":
        values = _joined_bytes([part.values for part in parts if isinstance(part.values, BytesColumn)])
    else:
        arrays = [part.values for part in parts if isinstance(part.values, np.ndarray)]
        values = _concatenated(arrays, layout.numpy_dtype())
    dims = [part.dims for part in parts if part.dims is not None]
    ragged = layout.size is None and layout.storage != "tensor"
    return Flat(
        sum(part.items for part in parts),
        values,
        _joined_offsets([part.offsets for part in parts]) if ragged else None,
        _concatenated(dims, np.int64) if layout.shape_name else None,
        _joined_offsets([part.ranks for part in parts]) if ragged and layout.shape is None else None,
        _states(records),
        to_offsets([0 if record is None else record.items for record in records]),
    )


def _states(values: Sequence[Any]) -> NDArray[np.uint8] | None:
    return states_of(np.fromiter((value is not None for value in values), np.bool_, len(values)))


def _joined_bytes(columns: Sequence[BytesColumn]) -> BytesColumn:
    data = _concatenated([column.data[column.offsets[0] : column.offsets[-1]] for column in columns], np.uint8)
    return BytesColumn(data, _joined_offsets([column.offsets for column in columns]))


def _joined_offsets(parts: Sequence[NDArray[np.int64] | None]) -> NDArray[np.int64]:
    lengths = [np.diff(part) for part in parts if part is not None]
    return to_offsets(_concatenated(lengths, np.int64))


def _dims_of(
    layout: Layout, shapes: Sequence[tuple[int, ...]]
) -> tuple[NDArray[np.int64] | None, NDArray[np.int64] | None]:
    if layout.shape_name is None:
        return None, None
    dims = np.array([size for shape in shapes for size in shape], np.int64)
    return dims, to_offsets([len(shape) for shape in shapes]) if layout.shape is None else None


def _concatenated(parts: Sequence[NDArray[Any]], dtype: Any) -> NDArray[Any]:
    return np.concatenate(parts) if parts else np.zeros(0, dtype)


def to_wire(layout: Layout, flat: Flat) -> dict[str, Values]:
    """Return the features that store a column, by their names."""
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

    Only a shape that several arrays share (`Array(shape_from=)`) can already exist; it must be the same for all.
    """
    for name, values in wire.items():
        other = columns.setdefault(name, values)
        if other is not values and not _same(other, values):
            message = f"{field}: its shape is not the one in {name!r}\n  Arrays that share a shape must agree in it."
            raise SchemaError(message, field=field)


def _same(one: Values, other: Values) -> bool:
    return one.kind == other.kind and _numbers_by_row(one) == _numbers_by_row(other)


def _numbers_by_row(values: Values) -> list[Any]:
    """Return an int64 feature as a list of lists, with None for missing ones."""
    assert isinstance(values.values, np.ndarray)
    flat, count = values.values, values.count or 0
    places = values.offsets if values.offsets is not None else range(0, len(flat) + 1, count or 1)
    lists = [flat[start:stop].tolist() for start, stop in pairwise(places)]
    if values.states is None:
        return lists
    return [None if state < EMPTY else numbers for state, numbers in zip(values.states, lists, strict=True)]
