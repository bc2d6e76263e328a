"""Columns: the features of a batch of records, turned into the column that a field declares.

The opposite of `recordkit.schema.encode`. Stored values that the field does not allow are a `SchemaError` that names
record and field.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from recordkit.columns import BytesColumn, Ragged, first_invalid_text

from ._raw import read_raw, read_tensors
from ._shapes import read_shapes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from recordkit.schema.values import Shape

    from ._field import DecodedField

Column: TypeAlias = "NDArray[Any] | BytesColumn | Ragged"


def read(field: DecodedField) -> Column:
    """Return a field's column.

    A fixed shape gives an array (for byte strings a `BytesColumn`) of shape `[rows, *shape]`; a single `?` a `Ragged`
    of one level; several dimensions with a `?` among them a rectangular `Ragged`. For sequences that is the column of
    all steps, inside a `Ragged` whose first level is the steps of each record.
    """
    layout = field.layout
    if layout.storage == "tensor":
        tensors = read_tensors(field)
        return _assembled(field, tensors.values, tensors.offsets, tensors.dims, tensors.shape)
    values: NDArray[Any] | BytesColumn
    if layout.storage == "raw":
        values, offsets = read_raw(field)
    else:
        values, offsets = _list_values(field), field.own.offsets
    if layout.size is not None:
        return _fixed(field, values, layout.shape or ())
    if layout.shape is not None and len(layout.shape) == 1:
        return _assembled(field, values, offsets, None, layout.shape)
    assert offsets is not None
    dims = read_shapes(field, np.diff(offsets))
    return _assembled(field, values, offsets, dims, layout.shape or (None,) * dims.shape[1])


def _list_values(field: DecodedField) -> NDArray[Any] | BytesColumn:
    """Return the values of a list as the field's dtype, every one checked."""
    values, dtype = field.own.values, field.layout.dtype
    if isinstance(values, BytesColumn):
        return _text(field, values) if dtype == "string" else values
    assert not isinstance(values, list)  # a list is for encoding
    if dtype in ("int64", "float32"):
        return values
    cast = values.astype(field.layout.numpy_dtype())
    # As an unsigned number, a negative one is far above 1.
    bad = values.view(np.uint64) > 1 if dtype == "bool" else cast != values
    if bad.any():
        index = int(np.flatnonzero(bad)[0])
        advice = (
            "Declare int64 to read the stored values." if dtype == "bool" else "Declare a wider type, such as int64."
        )
        raise field.error(field.item_of(index), str(values[index]), advice=advice)
    return cast


def _text(field: DecodedField, values: BytesColumn) -> BytesColumn:
    bad = first_invalid_text(values)
    if bad is not None:
        raise field.error(
            field.item_of(bad), "bytes that are not UTF-8", advice="Declare bytes to read them as they are."
        )
    return BytesColumn(values.data, values.offsets, text=True)


def _assembled(
    field: DecodedField,
    values: NDArray[Any] | BytesColumn,
    offsets: NDArray[np.int64] | None,
    dims: NDArray[np.int64] | None,
    shape: Shape,
) -> Column:
    """Return items of these shapes as a column."""
    if None not in shape:
        return _fixed(field, values, shape)
    assert offsets is not None
    if dims is None or len(shape) == 1:
        column = Ragged(values, (offsets,))
    else:
        column = Ragged.rectangular(_with_trailing(values, dims, shape), dims)
    if field.own.steps is None:
        return column
    return Ragged(column.values, (field.own.steps, *column.offsets))


def _with_trailing(
    values: NDArray[Any] | BytesColumn, dims: NDArray[np.int64], shape: Shape
) -> NDArray[Any] | BytesColumn:
    """Return the values reshaped so that trailing fixed dimensions are dimensions of the array."""
    leading = len(shape)
    while shape[leading - 1] is not None:
        leading -= 1
    rows = int(np.prod(dims[:, :leading], axis=1).sum())
    return values.reshape((rows, *(size or 0 for size in shape[leading:])))


def _fixed(field: DecodedField, values: NDArray[Any] | BytesColumn, shape: Shape) -> Column:
    """Return items of one fixed shape as a column, with the default where one is missing."""
    absent = field.missing() if field.layout.field.default is not None else None
    if absent is not None:
        values = _with_default(field, values, absent)
    column: NDArray[Any] | BytesColumn = values
    if shape:
        sizes = tuple(size or 0 for size in shape)
        column = values.reshape((field.items, *sizes))
    return column if field.own.steps is None else Ragged(column, (field.own.steps,))


def _with_default(
    field: DecodedField, values: NDArray[Any] | BytesColumn, absent: NDArray[np.bool_]
) -> NDArray[Any] | BytesColumn:
    default, size = field.layout.field.default, field.layout.size or 0
    if isinstance(values, BytesColumn):
        fill = np.broadcast_to(np.array(default, np.object_), field.layout.sizes).reshape(-1).tolist()
        strings = values.to_list()
        for row in np.flatnonzero(absent).tolist():
            strings[row * size : (row + 1) * size] = fill
        encoded = [value.encode() if isinstance(value, str) else value for value in strings]
        return BytesColumn.of(encoded, text=values.text)
    filled = values.reshape(field.items, size).copy()
    filled[absent] = np.broadcast_to(np.asarray(default, filled.dtype), field.layout.sizes).reshape(-1)
    return filled.reshape(-1)
