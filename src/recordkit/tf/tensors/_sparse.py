"""SparseTensor: values and their positions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from recordkit.errors import InvalidArgumentError

from . import _dtypes
from ._shape import TensorShape
from ._tensor import Tensor, array_of, convert_to_tensor

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ._dtypes import DType
    from ._shape import UnknownDims


class SparseTensor:
    """A tensor that stores only some of its values.

    Attributes:
        indices: The position of each value: a row per value, a column per dimension.
        values: The values.
        dense_shape: The shape of the dense tensor.
        unknown_dims: Which of its dimensions TensorFlow would not know before it runs: see `_shape`.

    >>> sparse = SparseTensor(indices=[[0, 1]], values=[5], dense_shape=[2, 3])
    >>> sparse.shape, sparse.dtype
    (TensorShape([2, 3]), tf.int32)
    """

    __slots__ = ("dense_shape", "indices", "unknown_dims", "values")

    def __init__(self, indices: Any, values: Any, dense_shape: Any) -> None:
        self.unknown_dims: UnknownDims = ()
        self.indices = convert_to_tensor(indices, _dtypes.int64)
        self.values = convert_to_tensor(values)
        self.dense_shape = convert_to_tensor(dense_shape, _dtypes.int64)
        if len(self.indices) != len(self.values):
            message = (
                f"a SparseTensor needs an index for each value, found {len(self.indices)} for {len(self.values)} values"
            )
            raise ValueError(message)

    @property
    def shape(self) -> TensorShape:
        """The shape of the dense tensor."""
        return TensorShape(np.asarray(self.dense_shape).tolist())

    def get_shape(self) -> TensorShape:
        """Return the shape of the dense tensor."""
        return self.shape

    @property
    def dtype(self) -> DType:
        """The dtype of the values."""
        return self.values.dtype

    def __repr__(self) -> str:
        return f"SparseTensor(indices={self.indices}, values={self.values}, dense_shape={self.dense_shape})"


def to_dense(
    sp_input: SparseTensor, default_value: Any = None, validate_indices: bool = True, name: str | None = None
) -> Tensor:
    """Return a sparse tensor as a dense one, with `default_value` (zero or empty strings) where it has no value.

    >>> to_dense(SparseTensor([[0, 1]], [5], [2, 3])).numpy()
    array([[0, 5, 0],
           [0, 0, 0]], dtype=int32)
    """
    places = np.asarray(sp_input.indices)
    shape = tuple(int(size or 0) for size in sp_input.shape)
    _check_inside(places, shape)
    if validate_indices:
        _check_order(places, shape)
    values = np.asarray(sp_input.values)
    if default_value is None:
        default_value = b"" if sp_input.dtype is _dtypes.string else values.dtype.type(0)
    whole = np.empty(shape, values.dtype)
    whole[...] = array_of(default_value, sp_input.dtype)
    whole[tuple(places.T)] = values
    return Tensor(whole, sp_input.unknown_dims)


def _check_inside(places: NDArray[np.int64], shape: tuple[int, ...]) -> None:
    outside = ((places < 0) | (places >= np.array(shape))).any(axis=1)
    if outside.any():
        at = int(np.flatnonzero(outside)[0])
        message = f"indices[{at}] = {places[at].tolist()} is out of bounds: the shape is {list(shape)}"
        raise InvalidArgumentError(message)


def _check_order(places: NDArray[np.int64], shape: tuple[int, ...]) -> None:
    """Refuse positions that are not in order, as TensorFlow does: one of two values at a position would be lost."""
    if not len(places):
        return
    steps = np.diff(np.ravel_multi_index(tuple(places.T), shape))
    if (steps <= 0).any():
        at = int(np.flatnonzero(steps <= 0)[0]) + 1
        what = "repeated" if steps[at - 1] == 0 else "out of order"
        raise InvalidArgumentError(f"indices[{at}] = {places[at].tolist()} is {what}")  # noqa: EM102
