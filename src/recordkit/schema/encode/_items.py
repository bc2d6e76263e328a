"""Items: values and columns checked against the layout of their field; what does not fit is a Misfit.

Arrays, Ragged and BytesColumn are checked whole; a list, unless of plain numbers or strings, value by value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from recordkit import dtypes
from recordkit.columns import BytesColumn, Ragged, first_invalid_text, to_offsets
from recordkit.examples import TENSOR_DTYPES, serialize_tensor
from recordkit.images import SIGNATURES
from recordkit.schema._errors import Misfit
from recordkit.schema.values import check_shape, check_stack, fit, to_array, to_byte_strings, to_bytes, to_int
from recordkit.wording import counted

from ._wire import Flat, byte_strings, join_items, states_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from recordkit.schema.declare import Layout


Converter: TypeAlias = Callable[[Any], Any]


def item_converter(layout: Layout) -> Converter:
    """Return the function that checks one value and converts it to an item, or raises `Misfit`.

    An item is a number or an array of exactly the field's dtype, the bytes of a byte string or a serialized tensor, or,
    for an array of byte strings, its shape and a list of them.
    """
    dtype, shape, lossy = layout.dtype, layout.shape, layout.field.lossy
    if layout.storage == "tensor":
        return lambda value: _tensor(layout, value)
    if layout.is_bytes:
        quality = layout.field.quality
        if shape == () or shape is None:
            return lambda value: to_bytes(value, dtype, quality=quality)
        return lambda value: to_byte_strings(value, dtype, shape, quality=quality)
    if shape == ():
        return _scalar_converter(dtype, lossy=lossy)
    return lambda value: to_array(value, dtype, shape, rounding=lossy)


def _scalar_converter(dtype: str, *, lossy: bool) -> Converter:
    if dtype in dtypes.INTEGERS:
        return lambda value: to_int(value, dtype)
    if dtype == "float64":
        # Most scalars are Python floats, which are float64 already.
        return lambda value: value if type(value) is float else to_array(value, dtype, (), rounding=lossy)[()]
    return lambda value: to_array(value, dtype, (), rounding=lossy)[()]


def _tensor(layout: Layout, value: Any) -> bytes:
    """Return a value as a serialized tensor of the declared dtype and shape, or else its own."""
    dtype, shape = layout.dtype or _own_dtype(value), layout.shape
    if dtypes.is_bytes(dtype):
        return serialize_tensor(_byte_strings(value, dtype, shape))
    return serialize_tensor(to_array(value, dtype, shape, rounding=layout.field.lossy))


def _own_dtype(value: Any) -> str:
    try:
        array = np.asarray(value)
    except ValueError:
        raise Misfit(found="lists of differing lengths", advice="A tensor has rows of equal length.") from None
    if array.dtype.kind in "USTO":
        leaves = np.asarray(value, np.object_).reshape(-1)
        return "string" if any(isinstance(leaf, str) for leaf in leaves) else "bytes"
    if array.dtype.name not in TENSOR_DTYPES:
        raise Misfit(found=array.dtype.name, advice="TensorFlow does not serialize tensors of this dtype.")
    return array.dtype.name


def _byte_strings(value: Any, dtype: str, shape: tuple[int | None, ...] | None) -> Any:
    array = np.asarray(value, np.object_)
    if shape is not None:
        check_shape(array.shape, shape)
    encoded = np.empty(array.size, np.object_)
    encoded[:] = [to_bytes(leaf, dtype) for leaf in array.reshape(-1).tolist()]
    return encoded.reshape(array.shape)


def missing(layout: Layout) -> Misfit:
    """Return the misfit for None in a field that is never missing."""
    return Misfit(found="None", advice=layout.if_missing)


def gather_items(layout: Layout, column: Any, valid: NDArray[np.bool_] | None, *, optional: bool) -> Flat:
    """Return a column checked against the declared dtype and shape, or raise `Misfit`.

    Args:
        layout: The field.
        column: An array, a list, a `Ragged`, a `BytesColumn`, or anything NumPy can convert.
        valid: False where the value is missing, whatever the column holds there.
        optional: Whether None is allowed, and means missing.
    """
    if type(column) is not np.ndarray or column.dtype == np.object_ or not column.ndim:
        column = as_column(column, "A sequence is a list of steps." if layout.steps else _ONE_A_ROW)
    if isinstance(column, BytesColumn):
        return _from_bytes_column(layout, column, valid)
    if isinstance(column, Ragged):
        return _from_ragged(layout, column, valid)
    if isinstance(column, np.ndarray) and layout.storage != "tensor" and not layout.is_bytes:
        return _from_array(layout, column, valid)
    if isinstance(column, np.ndarray) and layout.dtype in SIGNATURES and column.dtype.kind not in "UST":
        check_stack(column, 1 + len(layout.shape or ()))
    return _from_list(layout, list(column), valid, optional=optional)


_ONE_A_ROW = "A column is an array or a list with one value a row."


def as_column(column: Any, advice: str = _ONE_A_ROW) -> Any:
    """Return a column as a `BytesColumn`, a `Ragged`, an array of a plain dtype, or a sequence of values."""
    if isinstance(column, BytesColumn | Ragged | list | tuple):
        return column
    if isinstance(column, str | bytes | bytearray | Mapping) or not (
        hasattr(column, "__array__") or isinstance(column, Iterable)
    ):
        raise Misfit(found=type(column).__name__, advice=advice)
    if isinstance(column, np.ma.MaskedArray):
        raise Misfit(
            found="a masked array",
            advice="The hidden values would be stored. Pass the mask as valid=, and .filled(...) as the column.",
        )
    if not hasattr(column, "__array__"):
        return list(column)
    array = np.asarray(column)
    if array.ndim == 0:
        raise Misfit(found="a single value", advice=advice)
    return list(array) if array.dtype == np.object_ else array


def _from_array(layout: Layout, array: NDArray[Any], valid: NDArray[np.bool_] | None) -> Flat:
    shape, found = layout.shape, array.shape[1:]
    if shape is not None and shape != found:
        check_shape(found, shape)
    items, size = len(array), math.prod(found)
    values = _fitted(layout, array, lambda index: index // max(size, 1)).reshape(-1)
    if layout.size is not None:
        return Flat(items, values, states=states_of(valid))
    dims, ranks = None, None
    if layout.shape_name is not None:
        dims = np.tile(np.array(found, np.int64), items)
        ranks = np.arange(items + 1, dtype=np.int64) * (array.ndim - 1) if shape is None else None
    return Flat(items, values, np.arange(items + 1, dtype=np.int64) * size, dims, ranks, states_of(valid))


def _fitted(layout: Layout, values: NDArray[Any], item_of: Any, *, rounding: bool = False) -> NDArray[Any]:
    """Return `values` as the field's dtype; a misfit then has the index of the item, not of the element."""
    try:
        return fit(values, layout.dtype, rounding=rounding or layout.field.lossy)
    except Misfit as misfit:
        misfit.index = None if misfit.index is None else int(item_of(misfit.index))
        raise


def _from_list(layout: Layout, values: list[Any], valid: NDArray[np.bool_] | None, *, optional: bool) -> Flat:
    types = set(map(type, values))
    if type(None) in types:
        present = np.fromiter((value is not None for value in values), np.bool_, len(values))
        valid = present if valid is None else present & valid
        if not optional and not present.all():
            misfit = Misfit(found="None", advice="No step can be missing.") if layout.steps else missing(layout)
            misfit.index = int(np.flatnonzero(~present)[0])
            raise misfit
        types.discard(type(None))
    quick = _from_plain_list(layout, values, types, valid)
    if quick is not None:
        return quick
    convert = item_converter(layout)
    items = []
    for index, value in enumerate(values):
        try:
            items.append(convert(value) if value is not None and (valid is None or valid[index]) else None)
        except Misfit as misfit:
            misfit.index = index
            raise
    return join_items(layout, items)


def _from_plain_list(
    layout: Layout, values: list[Any], types: set[type], valid: NDArray[np.bool_] | None
) -> Flat | None:
    """Return a list of plain Python scalars as a column; None if each value needs a check of its own."""
    if layout.storage == "tensor" or not types:
        return None
    if layout.shape == (None,) and types <= {list, tuple}:
        return _from_plain_lists(layout, values, valid)
    if layout.shape != ():
        return None
    if types == {str} and layout.dtype == "string":
        try:
            texts = [(value or "").encode() for value in values]
        except UnicodeEncodeError:
            return None
        return Flat(len(values), byte_strings(layout, texts), states=states_of(valid))
    if types == {bytes} and layout.dtype == "bytes":
        return Flat(len(values), byte_strings(layout, [value or b"" for value in values]), states=states_of(valid))
    numbers = _plain_numbers(layout.dtype, values, types)
    if numbers is None:
        return None
    return Flat(len(values), _fitted(layout, numbers, int, rounding=True), states=states_of(valid))


def _from_plain_lists(layout: Layout, values: list[Any], valid: NDArray[np.bool_] | None) -> Flat | None:
    """Return lists of plain Python numbers as a column; None if each value needs a check of its own."""
    elements = list(chain.from_iterable(value or () for value in values))
    numbers = _plain_numbers(layout.dtype, elements, set(map(type, elements)))
    if numbers is None:
        return None
    offsets = to_offsets([len(value or ()) for value in values])
    fitted = _fitted(layout, numbers, lambda index: np.searchsorted(offsets, index, "right") - 1, rounding=True)
    return Flat(len(values), fitted, offsets, states=states_of(valid))


def _plain_numbers(dtype: str, values: list[Any], types: set[type]) -> NDArray[Any] | None:
    if dtype == "bool" and types == {bool}:
        return np.array([value or False for value in values], np.bool_)
    if dtype in dtypes.INTEGERS and types <= {int, bool}:
        array = np.array([value or 0 for value in values])
        # Integers that no NumPy integer dtype holds together became floats or objects.
        return array if array.dtype.kind in "iub" else None
    if dtype in dtypes.FLOATS and types <= {float, int}:
        with suppress(OverflowError):  # an integer beyond all floats: let it be named
            return np.array([0.0 if value is None else value for value in values], np.float64)
    return None


def _from_bytes_column(layout: Layout, column: BytesColumn, valid: NDArray[np.bool_] | None) -> Flat:
    if not layout.is_bytes:
        if layout.storage == "tensor":
            return _from_list(layout, column.to_list(), valid, optional=False)
        raise Misfit(found="a BytesColumn", advice="Only string, bytes, jpeg and png fields take byte strings.")
    shape = layout.shape or ()
    check_shape(tuple(column.shape[1:]), shape)
    items = int(column.shape[0])
    size = math.prod(column.shape[1:])
    _check_byte_strings(layout, column, lambda index: index // max(size, 1), valid)
    flat = BytesColumn(column.data, column.offsets)
    if layout.size is not None:
        return Flat(items, flat, states=states_of(valid))
    dims = np.tile(np.array(column.shape[1:], np.int64), items) if layout.shape_name else None
    return Flat(items, flat, np.arange(items + 1, dtype=np.int64) * size, dims, None, states_of(valid))


def _check_byte_strings(
    layout: Layout, column: BytesColumn, item_of: Any, valid: NDArray[np.bool_] | None = None
) -> None:
    dtype = layout.dtype
    if column.text != (dtype == "string"):
        found, advice = ("text", "Declare string.") if column.text else ("bytes", "Declare bytes.")
        raise Misfit(found=found, advice=advice)
    bad = first_invalid_text(column) if dtype == "string" else None
    if bad is not None:
        raise Misfit(found="bytes that are not UTF-8", advice="Declare bytes.", index=item_of(bad))
    signature = SIGNATURES.get(dtype)
    if signature is not None:
        wrong = ~starts_with(column, signature)
        if valid is not None:
            wrong &= np.repeat(valid, len(wrong) // max(len(valid), 1))
        if wrong.any():
            bad = int(np.flatnonzero(wrong)[0])
            found = f"{counted(int(column.offsets[bad + 1] - column.offsets[bad]), 'byte')}, not a {dtype}"
            raise Misfit(found=found, advice="Declare bytes to store any bytes.", index=item_of(bad))


def starts_with(column: BytesColumn, signature: bytes) -> NDArray[np.bool_]:
    """Tell of each byte string whether it begins with `signature`."""
    starts, lengths = column.offsets[:-1], np.diff(column.offsets)
    long_enough = lengths >= len(signature)
    good: NDArray[np.bool_] = long_enough.copy()
    places = starts[long_enough]
    for place, byte in enumerate(signature):
        good[long_enough] &= column.data[places + place] == byte
    return good


def _from_ragged(layout: Layout, column: Ragged, valid: NDArray[np.bool_] | None) -> Flat:
    """Return a ragged column, whole if its rows lie as they will be stored, else row by row."""
    shape, shapes = layout.shape, _row_shapes(column)
    other_kind = layout.storage == "tensor" or shape == () or isinstance(column.values, BytesColumn) != layout.is_bytes
    gaps = layout.size is not None and valid is not None and not valid.all()
    if shapes is None or other_kind or gaps:
        return _from_list(layout, list(column), valid, optional=False)
    if shape is not None:
        _check_row_shapes(shapes, shape, valid)
    offsets = to_offsets(np.prod(shapes, axis=1, dtype=np.int64))
    values = _elements(column)
    if isinstance(values, BytesColumn):
        _check_byte_strings(layout, values, lambda index: np.searchsorted(offsets, index, "right") - 1)
        values = BytesColumn(values.data, values.offsets)
    else:
        values = _fitted(layout, values, lambda index: np.searchsorted(offsets, index, "right") - 1)
    items = len(column)
    if layout.size is not None:
        return Flat(items, values, states=states_of(valid))
    dims = np.ascontiguousarray(shapes.reshape(-1)) if layout.shape_name else None
    ranks = np.arange(items + 1, dtype=np.int64) * shapes.shape[1] if dims is not None and shape is None else None
    return Flat(items, values, offsets, dims, ranks, states_of(valid))


def _row_shapes(column: Ragged) -> NDArray[np.int64] | None:
    """Return the shape of every row, or None if the levels would have to be compared to know it."""
    if column.shapes is not None:
        return column.shapes
    if len(column.offsets) > 1:
        return None
    lengths = np.diff(column.offsets[0])
    trailing = tuple(column.values.shape[1:])
    return np.column_stack([lengths, *(np.full_like(lengths, size) for size in trailing)])


def _elements(column: Ragged) -> NDArray[Any] | BytesColumn:
    """Return the elements of every row end to end; a slice of a longer column may keep more than its own."""
    start, stop = 0, len(column)
    for level in column.offsets:
        start, stop = int(level[start]), int(level[stop])
    values = column.values if (start, stop) == (0, len(column.values)) else column.values[start:stop]
    if isinstance(values, BytesColumn):
        return values if len(values.shape) == 1 else values.reshape((len(values.offsets) - 1,))
    return values.reshape(-1)


def _check_row_shapes(
    shapes: NDArray[np.int64], declared: tuple[int | None, ...], valid: NDArray[np.bool_] | None
) -> None:
    if shapes.shape[1] != len(declared):
        raise Misfit(found=f"rows of {shapes.shape[1]} dimensions")
    bad = np.zeros(len(shapes), np.bool_)
    for axis, size in enumerate(declared):
        if size is not None:
            bad |= shapes[:, axis] != size
    if valid is not None:
        bad &= valid
    if bad.any():
        index = int(np.flatnonzero(bad)[0])
        raise Misfit(found=f"shape [{','.join(map(str, shapes[index]))}]", index=index)
