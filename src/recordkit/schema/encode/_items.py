"""Items: what is made of one value, by the layout of its field.

Whatever a converter returns, `_flat.join` can put end to end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from recordkit import dtypes
from recordkit.examples import TENSOR_DTYPES, serialize_tensor
from recordkit.schema._errors import Misfit
from recordkit.schema.values import check_shape, to_array, to_byte_strings, to_bytes, to_int

if TYPE_CHECKING:
    from recordkit.schema.declare import Layout

Converter: TypeAlias = Callable[[Any], Any]


def item_converter(layout: Layout) -> Converter:
    """Return the function that checks one value and makes it an item; what does not fit is a `Misfit`.

    The item is a number or an array of exactly the field's dtype; the bytes of a byte string or a serialized tensor;
    or, for an array of byte strings, its shape and a list of them.
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
    """Return a value as a serialized tensor of the dtype and shape declared, or of its own."""
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
        raise Misfit(found=array.dtype.name, advice="TensorFlow has no such dtype.")
    return array.dtype.name


def _byte_strings(value: Any, dtype: str, shape: tuple[int | None, ...] | None) -> Any:
    array = np.asarray(value, np.object_)
    if shape is not None:
        check_shape(array.shape, shape)
    encoded = np.empty(array.size, np.object_)
    encoded[:] = [to_bytes(leaf, dtype) for leaf in array.reshape(-1).tolist()]
    return encoded.reshape(array.shape)


def missing(layout: Layout) -> Misfit:
    """Return what to say of a value that is None although its field is never missing."""
    return Misfit(found="None", advice=layout.if_missing)
