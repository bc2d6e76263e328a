"""Operations: the few functions on tensors that scripts about records use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from recordkit.errors import InvalidArgumentError

from . import _dtypes
from ._dtypes import as_dtype, int32
from ._ragged import RaggedTensor
from ._shape import as_unknown_dims, unknown_in_joined
from ._sparse import SparseTensor
from ._tensor import Tensor, array_of, convert_to_tensor, reshaped, static_shape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from ._dtypes import DTypeLike


newaxis = np.newaxis


def cast(x: Any, dtype: DTypeLike, name: str | None = None) -> Any:
    """Return a tensor with another dtype; floats are truncated to ints, as in NumPy.

    >>> cast([1.7, -1.7], "int32").numpy()
    array([ 1, -1], dtype=int32)
    """
    wanted = as_dtype(dtype)
    if isinstance(x, SparseTensor):
        return SparseTensor(x.indices, cast(x.values, wanted), x.dense_shape)
    if isinstance(x, RaggedTensor):
        return x.with_flat_values(cast(x.flat_values, wanted))
    tensor = convert_to_tensor(x)
    if tensor.dtype is wanted:
        return tensor
    if _dtypes.string in (tensor.dtype, wanted):
        message = (
            f"cast: cannot cast {tensor.dtype.name} to {wanted.name}\n  Use Python: int(x.numpy()), str(x.numpy())."
        )
        raise InvalidArgumentError(message)
    array = np.asarray(tensor)
    if tensor.dtype.is_complex and not wanted.is_complex:
        array = array.real
    with np.errstate(invalid="ignore", over="ignore"):
        return Tensor(array.astype(wanted.numpy), tensor.unknown_dims)


def reshape(tensor: Any, shape: Any, name: str | None = None) -> Tensor:
    """Return a tensor with another shape; one dimension may be -1, which is computed.

    >>> reshape([1, 2, 3, 4], [2, -1]).shape
    TensorShape([2, 2])
    """
    sizes = np.atleast_1d(np.asarray(shape if isinstance(shape, Tensor) else np.array(shape, np.int64))).tolist()
    given = convert_to_tensor(tensor)
    any_unknown = bool(given.unknown_dims)
    unknown = [isinstance(size, Tensor) or (size == -1 and any_unknown) for size in _each(shape, len(sizes))]
    return Tensor(reshaped(np.asarray(given), tuple(sizes)), as_unknown_dims(unknown))


def _each(shape: Any, rank: int) -> Sequence[Any]:
    """Return the sizes of a shape, each as it was passed."""
    if isinstance(shape, Tensor):
        return [shape] * rank
    return list(shape) if isinstance(shape, list | tuple) else np.atleast_1d(np.asarray(shape)).tolist()


def stack(values: Any, axis: int = 0, name: str = "stack") -> Tensor:
    """Stack tensors of one shape along a new dimension.

    >>> stack([[1, 2], [3, 4]], axis=1).numpy()
    array([[1, 3],
           [2, 4]], dtype=int32)
    """
    given = list(values)
    arrays = _alike("stack", given)
    if len({array.shape for array in arrays}) > 1:
        message = f"stack: expected tensors of one shape, found {_shapes(arrays)}"
        raise InvalidArgumentError(message)
    inner = unknown_in_joined([static_shape(value) for value in given])
    at = axis % (arrays[0].ndim + 1)
    return Tensor(np.stack(arrays, axis), (*inner[:at], False, *inner[at:]) if inner else ())


def concat(values: Any, axis: int, name: str = "concat") -> Tensor:
    """Join tensors along an existing dimension.

    >>> concat([[1], [2, 3]], 0).numpy()
    array([1, 2, 3], dtype=int32)
    """
    given = list(values)
    arrays = _alike("concat", given)
    try:
        whole = np.concatenate(arrays, int(axis))
    except ValueError:
        advice = "\n  Use stack for scalars." if any(not array.ndim for array in arrays) else ""
        message = f"concat: expected shapes that differ only in dimension {int(axis)}, found {_shapes(arrays)}{advice}"
        raise InvalidArgumentError(message) from None
    return Tensor(whole, unknown_in_joined([static_shape(value) for value in given], int(axis)))


def _alike(what: str, given: list[Any]) -> list[NDArray[Any]]:
    """Return values as arrays of one dtype: that of the first tensor among them."""
    hint = next((value.dtype for value in given if isinstance(value, Tensor)), None)
    arrays = [np.asarray(convert_to_tensor(value, dtype_hint=hint)) for value in given]
    if not arrays:
        message = f"{what}: expected at least one tensor"
        raise InvalidArgumentError(message)
    dtypes = {array.dtype for array in arrays}
    if len(dtypes) > 1:
        message = f"{what}: expected one dtype, found {', '.join(sorted(map(str, dtypes)))}\n  Use tf.cast."
        raise InvalidArgumentError(message)
    return arrays


def _shapes(arrays: Sequence[NDArray[Any]]) -> str:
    return ", ".join(sorted({str(list(array.shape)) for array in arrays}))


def shape(input: Any, out_type: DTypeLike = int32, name: str | None = None) -> Tensor:  # noqa: A002 - their name
    """Return the shape of a tensor as a tensor.

    >>> shape([[1, 2]]).numpy()
    array([1, 2], dtype=int32)
    """
    if isinstance(input, SparseTensor):
        return Tensor(np.asarray(cast(input.dense_shape, out_type)))
    return Tensor(array_of(list(convert_to_tensor(input).shape), out_type))
