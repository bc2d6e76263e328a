"""Tensor: an array under TensorFlow's name, with the methods that scripts call.

Strings are `bytes`. A tensor of strings may hold a column or a chunk of records; Python objects are only created when
someone asks for them.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from recordkit import records
from recordkit.columns import BytesColumn
from recordkit.errors import InvalidArgumentError

from . import _dtypes
from ._dtypes import DType, as_dtype, of_numpy
from ._shape import TensorShape, as_unknown_dims, unknown_elementwise, unknown_in_items

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from recordkit.records import Chunk

    from ._dtypes import DTypeLike
    from ._shape import ShapeLike, StaticShape, UnknownDims

_SMALL_INTS: Final = ("int8", "uint8", "int16", "uint16")


class Tensor(NDArrayOperatorsMixin):
    """An array. Attributes that are not defined here are those of the NumPy array inside.

    Attributes:
        unknown_dims: Which dimensions TensorFlow would not know before it runs: see `_shape`.

    >>> from recordkit import tf
    >>> tf.constant([1, 2]) + 1
    <tf.Tensor: shape=(2,), dtype=int32, numpy=array([2, 3], dtype=int32)>
    >>> tf.constant("text").numpy()
    b'text'
    >>> float(tf.constant([1.0, 2.0]).mean())
    1.5
    """

    __slots__ = ("_data", "unknown_dims")

    def __init__(self, data: NDArray[Any] | BytesColumn | Chunk, unknown: UnknownDims = ()) -> None:
        self._data = data
        self.unknown_dims = unknown

    @property
    def _array(self) -> NDArray[Any]:
        data = self._data
        if not isinstance(data, np.ndarray):
            data = self._data = data.to_numpy() if isinstance(data, BytesColumn) else object_array(list(data))
        return data

    def numpy(self) -> Any:
        """Return a copy as a NumPy array; a scalar as a NumPy scalar, or `bytes`."""
        array = self._array
        return array.copy() if array.ndim else array[()]

    def chunk(self) -> Chunk:
        """Return strings as the payloads of a chunk, for the decoder; the same chunk if they came from one."""
        data = self._data
        if isinstance(data, np.ndarray):
            return records.pack_many(data.reshape(-1).tolist())
        if isinstance(data, BytesColumn):
            view = data.data.data
            return records.pack_many([view[start:stop] for start, stop in pairwise(data.offsets.tolist())])
        return data

    @property
    def shape(self) -> TensorShape:
        """The shape."""
        data = self._data
        return TensorShape(data.shape if isinstance(data, np.ndarray | BytesColumn) else (len(data),))

    def get_shape(self) -> TensorShape:
        """Return the shape."""
        return self.shape

    def set_shape(self, shape: ShapeLike) -> None:
        """Check that the shape matches; `ragged_batch` then takes the sizes that are given as known."""
        wanted = TensorShape(shape)
        if not wanted.is_compatible_with(self.shape):
            message = f"Tensor's shape {self.shape} is not compatible with supplied shape {list(wanted)}."
            raise ValueError(message)
        if self.unknown_dims and wanted.known:
            self.unknown_dims = as_unknown_dims(
                is_unknown and size is None for is_unknown, size in zip(self.unknown_dims, wanted, strict=True)
            )

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        data = self._data
        return len(data.shape) if isinstance(data, np.ndarray | BytesColumn) else 1

    @property
    def dtype(self) -> DType:
        """The dtype."""
        found = of_numpy(self._data.dtype) if isinstance(self._data, np.ndarray) else _dtypes.string
        assert found is not None
        return found

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        array = self._array if dtype is None else self._array.astype(dtype, copy=False)
        return array.copy() if copy else array

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if any(isinstance(value, Tensor) for value in kwargs.get("out", ())):
            message = f"{ufunc.__name__}: cannot write into a tensor\n  Use the value that the function returns."
            raise TypeError(message)
        arrays = [_operand(value, self) for value in inputs]
        if method != "__call__" or "out" in kwargs:
            return getattr(ufunc, method)(*arrays, **kwargs)
        if ufunc is np.true_divide and all(array.dtype.kind in "iu" for array in map(np.asarray, arrays)):
            kwargs.setdefault("dtype", np.float32 if self.dtype.name in _SMALL_INTS else np.float64)
        _refuse_zero(ufunc, arrays)
        try:
            result = ufunc(*arrays, **kwargs)
        except ValueError as error:
            raise InvalidArgumentError(str(error)) from None
        any_unknown = any(isinstance(value, Tensor) and value.unknown_dims for value in inputs)
        unknown = unknown_elementwise([static_shape(value) for value in inputs]) if any_unknown else ()
        return tuple(_wrapped(each) for each in result) if isinstance(result, tuple) else _wrapped(result, unknown)

    # A tensor never changes, so `t += 1` is `t = t + 1`: others may hold it.
    __iadd__ = NDArrayOperatorsMixin.__add__
    __isub__ = NDArrayOperatorsMixin.__sub__
    __imul__ = NDArrayOperatorsMixin.__mul__
    __imatmul__ = NDArrayOperatorsMixin.__matmul__
    __itruediv__ = NDArrayOperatorsMixin.__truediv__
    __ifloordiv__ = NDArrayOperatorsMixin.__floordiv__
    __imod__ = NDArrayOperatorsMixin.__mod__
    __ipow__ = NDArrayOperatorsMixin.__pow__
    __ilshift__ = NDArrayOperatorsMixin.__lshift__
    __irshift__ = NDArrayOperatorsMixin.__rshift__
    __iand__ = NDArrayOperatorsMixin.__and__
    __ixor__ = NDArrayOperatorsMixin.__xor__
    __ior__ = NDArrayOperatorsMixin.__or__

    def __eq__(self, other: object) -> Any:
        if other is None:
            return False
        try:
            return np.equal(self, other)  # type: ignore[call-overload]
        except ValueError:  # incompatible shapes
            return Tensor(np.array(False))

    def __ne__(self, other: object) -> Any:
        equal = self == other
        return not equal if isinstance(equal, bool) else ~equal

    __hash__ = None  # type: ignore[assignment]

    def __getitem__(self, index: Any) -> Tensor:
        keys = tuple(index) if isinstance(index, list | tuple) else (index,)
        try:
            found = self._array[tuple(map(_index, keys))]
        except (IndexError, ValueError) as error:
            raise _no_item(keys, str(error)) from None
        return _wrapped(found, unknown_in_items(keys, self.unknown_dims, self.ndim))

    def __len__(self) -> int:
        if not self.ndim:
            message = "Scalar tensor has no `len()`"
            raise TypeError(message)
        return int(self.shape[0] or 0)

    def __iter__(self) -> Iterator[Tensor]:
        if not self.ndim:
            message = "Cannot iterate over a scalar tensor."
            raise TypeError(message)
        return (_wrapped(value) for value in self._array)

    def __bool__(self) -> bool:
        return bool(self._array)

    def __int__(self) -> int:
        return int(self._array[()])

    def __float__(self) -> float:
        return float(self._array[()])

    def __complex__(self) -> complex:
        return complex(self._array[()])

    def __index__(self) -> int:
        return self._array.__index__()

    def __format__(self, spec: str) -> str:
        return format(self.numpy(), spec) if not self.ndim else format(str(self), spec)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._array, name)

    def __reduce__(self) -> tuple[Any, ...]:
        return Tensor, (self._array, self.unknown_dims)

    def __repr__(self) -> str:
        text = repr(self.numpy()) if self.ndim or self.dtype is _dtypes.string else str(self.numpy())
        value = f"\n{text}" if "\n" in text else text
        return f"<tf.Tensor: shape={self.shape}, dtype={self.dtype.name}, numpy={value}>"

    def __str__(self) -> str:
        text = str(self.numpy())
        value = f"\n{text}" if "\n" in text else text
        return f"tf.Tensor({value}, shape={self.shape}, dtype={self.dtype.name})"


def arrays_of(tensors: Iterable[Tensor]) -> list[NDArray[Any]]:
    """Return the arrays of tensors, which share their memory."""
    return [tensor._array for tensor in tensors]


def static_shape(value: Any) -> StaticShape:
    """Return the shape of a value as far as TensorFlow would know it before it runs."""
    unknown: UnknownDims = getattr(value, "unknown_dims", ())
    shape = value.shape if isinstance(value, Tensor) else np.shape(value)
    return tuple(
        None if is_unknown else size for size, is_unknown in zip(shape, unknown or [False] * len(shape), strict=True)
    )


def _wrapped(value: Any, unknown: UnknownDims = ()) -> Tensor:
    if isinstance(value, np.ndarray | np.generic):
        return Tensor(np.asarray(value), unknown)
    # A single item of an object array comes without an array.
    return Tensor(object_array(value) if isinstance(value, bytes) else np.asarray(value))


def _index(index: Any) -> Any:
    return index._array if isinstance(index, Tensor) else index


def _refuse_zero(ufunc: np.ufunc, arrays: list[Any]) -> None:
    """Refuse to divide integers by 0: NumPy returns 0 and only warns."""
    if ufunc not in (np.floor_divide, np.remainder) or np.all(arrays[1]):
        return
    if all(np.asarray(array).dtype.kind in "iu" for array in arrays):
        message = "Integer division by zero"
        raise InvalidArgumentError(message)


def _no_item(keys: tuple[Any, ...], problem: str) -> Exception:
    """Return the error for invalid keys, of the class that TensorFlow raises."""
    for key in keys:
        if not (key is None or key is Ellipsis or isinstance(key, slice | int) or hasattr(key, "__array__")):
            return TypeError(f"indices are integers, slices, ... and tf.newaxis, found {type(key).__name__}")
    return InvalidArgumentError(problem)


def _operand(value: Any, tensor: Tensor) -> Any:
    """Return the other operand of an operation on a tensor, with the tensor's dtype if both are of one kind."""
    if isinstance(value, Tensor):
        return value._array
    if isinstance(value, bool | int | float | complex):
        return value  # NumPy gives it the other operand's dtype
    array = array_of(value, None)
    wanted = tensor._array.dtype
    return array.astype(wanted) if np.can_cast(array.dtype, wanted, "same_kind") else array


def object_array(values: Any) -> NDArray[Any]:
    """Return bytes, or lists of them, as an array of objects; text becomes UTF-8."""
    array = np.array(values, object)
    if array.ndim == 0:
        only = array[()]
        return np.array(only.encode() if isinstance(only, str) else only, object)
    flat = array.reshape(-1)
    if any(type(value) is not bytes for value in flat):
        array = np.empty(array.shape, object)
        array.reshape(-1)[:] = [_as_bytes(value) for value in flat]
    return array


def _as_bytes(value: Any) -> bytes:
    if isinstance(value, Tensor):
        value = value.numpy()
    if not isinstance(value, str | bytes | bytearray | memoryview):
        message = f"Cannot convert {type(value).__name__} to EagerTensor of dtype string"
        raise TypeError(message)
    return value.encode() if isinstance(value, str) else bytes(value)


def array_of(value: Any, dtype: DTypeLike | None) -> NDArray[Any]:
    """Return a value as an array. As in TensorFlow, Python ints become int32 if they fit, and floats float32."""
    wanted = None if dtype is None else as_dtype(dtype)
    if isinstance(value, Tensor):
        return _checked(value._array, wanted)
    if not isinstance(value, np.ndarray | np.generic):
        leaf = _first_leaf(value)
        if isinstance(leaf, str | bytes | bytearray):
            if wanted not in (None, _dtypes.string):
                message = f"Cannot convert a string to EagerTensor of dtype {wanted}"
                raise TypeError(message)
            return object_array(value)
        return _of_python(value, leaf, wanted)
    array = np.asarray(value)
    if array.dtype.kind in "OSU":
        # NumPy's own strings lose zeros at their end, and tolist() gives them as they are.
        return _checked(object_array(array.tolist()).reshape(array.shape), wanted)
    return array if wanted is None else array.astype(wanted.numpy, copy=False)


def _own(value: Any, dtype: DTypeLike | None) -> NDArray[Any]:
    """Return a value as an array of its own: the caller may reuse the one it passed."""
    array = array_of(value, dtype)
    return array.copy() if array is value or array.base is not None else array


def _of_python(value: Any, leaf: Any, wanted: DType | None) -> NDArray[Any]:
    if wanted is _dtypes.string:
        if not np.size(value):
            return np.empty(np.shape(value), object)
        message = f"Cannot convert {type(leaf).__name__} to EagerTensor of dtype string"
        raise TypeError(message)
    array = np.asarray(value)
    if array.dtype.kind == "O":
        message = f"Attempt to convert a value ({type(value).__name__}) with an unsupported type to a Tensor."
        raise ValueError(message)
    if wanted is not None:
        if array.size and array.dtype.kind in "fc" and wanted.is_integer:
            message = f"Cannot convert a {type(leaf).__name__} to EagerTensor of dtype {wanted.name}"
            raise TypeError(message)
        return array.astype(wanted.numpy)
    if isinstance(leaf, Tensor):
        return array
    if array.dtype.kind == "i" and (array == array.astype(np.int32)).all():
        return array.astype(np.int32)
    if array.dtype == np.float64:
        # The dtype of the first value; float32 for Python floats, as in TensorFlow.
        return array.astype(leaf.dtype if isinstance(leaf, np.ndarray | np.floating) else np.float32)
    return array


def _first_leaf(value: Any) -> Any:
    while isinstance(value, list | tuple):
        if not value:
            return None
        value = value[0]
    return value.numpy() if isinstance(value, Tensor) and value.dtype is _dtypes.string else value


def _checked(array: NDArray[Any], wanted: DType | None) -> NDArray[Any]:
    if wanted is not None and of_numpy(array.dtype) is not wanted:
        message = f"Tensor conversion requested dtype {wanted.name} for a tensor of {array.dtype}: use tf.cast"
        raise ValueError(message)
    return array


def constant(value: Any, dtype: DTypeLike | None = None, shape: ShapeLike = None, name: str | None = None) -> Tensor:
    """Return a tensor of a value: a number, text, bytes, an array, or lists of them.

    Args:
        value: The value.
        dtype: The dtype; inferred from the value by default, as int32 or float32 for Python numbers.
        shape: The shape, if it differs from that of the value; a single value fills it.
        name: Not used.

    >>> constant([1.5, 2]), constant(0, shape=[2]).numpy()
    (<tf.Tensor: shape=(2,), dtype=float32, numpy=array([1.5, 2. ], dtype=float32)>, array([0, 0], dtype=int32))
    """
    array = _own(value, dtype)
    if shape is not None:
        sizes = tuple(int(size or 0) for size in TensorShape(shape))
        if array.size not in (1, math.prod(sizes)):
            message = f"{array.size} values do not fill the shape {list(sizes)}"
            raise TypeError(message)
        array = np.broadcast_to(array, sizes).copy() if array.size == 1 else array.reshape(sizes)
    return Tensor(array)


def convert_to_tensor(
    value: Any, dtype: DTypeLike | None = None, dtype_hint: DTypeLike | None = None, name: str | None = None
) -> Tensor:
    """Return a value as a tensor; a tensor is returned unchanged.

    >>> convert_to_tensor(np.arange(2)).dtype
    tf.int64
    """
    if isinstance(value, Tensor) and (dtype is None or value.dtype == dtype):
        return value
    if dtype is None and dtype_hint is not None:
        try:
            return Tensor(_own(value, dtype_hint))
        except (TypeError, ValueError):
            pass
    return Tensor(_own(value, dtype))


def one_string(what: str, value: Any) -> bytes:
    """Return the bytes of a scalar string; raise for any other tensor."""
    tensor = convert_to_tensor(value, _dtypes.string)
    if tensor.ndim:
        message = f"{what}: expected one string, found a tensor of shape {tensor.shape}"
        raise InvalidArgumentError(message)
    string: bytes = tensor.numpy()
    return string


def string_tensor(value: bytes) -> Tensor:
    """Return bytes as a tensor."""
    return Tensor(object_array(value))


def reshaped(array: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """Return an array with another shape, in which one dimension may be -1."""
    try:
        return array.reshape(shape)
    except ValueError:
        message = f"cannot reshape a tensor of shape {list(array.shape)} to {list(shape)}"
        raise InvalidArgumentError(message) from None
