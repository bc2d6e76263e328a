"""Shapes of tensors, and specs: descriptions of tensors that do not exist yet."""

from __future__ import annotations

import math
from itertools import islice
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeAlias, cast, overload

import numpy as np

from ._dtypes import DType, as_dtype, float32, int64

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ._dtypes import DTypeLike

    ShapeLike: TypeAlias = "TensorShape | Iterable[Any] | SupportsIndex | None"


class TensorShape(tuple[int | None, ...]):
    """A shape: a tuple that also equals lists, with None for an unknown dimension.

    >>> shape = TensorShape([2, None])
    >>> shape, shape == [2, None], shape.as_list(), shape.rank
    (TensorShape([2, None]), True, [2, None], 2)
    """

    known: bool

    def __new__(cls, dims: ShapeLike) -> TensorShape:
        """Return the shape with these dimensions; None stands for an unknown rank."""
        if hasattr(dims, "__index__"):  # isinstance(dims, SupportsIndex) takes 10 us
            dims = (cast("SupportsIndex", dims),)
        shape = super().__new__(cls, (None if size is None else int(size) for size in dims or ()))
        shape.known = dims is not None and getattr(dims, "known", True)
        return shape

    @property
    def rank(self) -> int | None:
        """The number of dimensions."""
        return len(self) if self.known else None

    ndims = rank

    def as_list(self) -> list[int | None]:
        """Return the dimensions."""
        if not self.known:
            message = "as_list() is not defined on an unknown TensorShape."
            raise ValueError(message)
        return list(self)

    def num_elements(self) -> int | None:
        """Return the number of elements; None if it is unknown."""
        return math.prod(size or 0 for size in self) if self.is_fully_defined() else None

    def is_fully_defined(self) -> bool:
        """Tell whether every dimension is known."""
        return self.known and None not in tuple(self)

    def is_compatible_with(self, other: ShapeLike) -> bool:
        """Tell whether one shape can match both this and `other`."""
        shape = TensorShape(other)
        if not (self.known and shape.known):
            return True
        return len(self) == len(shape) and all(
            a is None or b is None or a == b for a, b in zip(self, shape, strict=True)
        )

    @overload
    def __getitem__(self, index: SupportsIndex) -> int | None: ...
    @overload
    def __getitem__(self, index: slice) -> TensorShape: ...
    def __getitem__(self, index: SupportsIndex | slice) -> int | TensorShape | None:
        found = super().__getitem__(index)
        return TensorShape(found) if isinstance(found, tuple) else found

    def __eq__(self, other: object) -> bool:
        if isinstance(other, TensorShape) and self.known != other.known:
            return False
        return tuple(self) == tuple(other) if isinstance(other, list | tuple) else NotImplemented

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return super().__hash__()

    def __repr__(self) -> str:
        return f"TensorShape({list(self) if self.known else None})"

    def __str__(self) -> str:
        return str(tuple(self)) if self.known else "<unknown>"

    def __reduce__(self) -> tuple[Any, ...]:
        return TensorShape, (tuple(self) if self.known else None,)


class _Spec:
    """The shape and dtype of values."""

    __slots__ = ("dtype", "shape")

    def __init__(self, shape: ShapeLike, dtype: DTypeLike) -> None:
        self.shape = TensorShape(shape)
        self.dtype: DType = as_dtype(dtype)

    def is_compatible_with(self, other: Any) -> bool:
        """Tell whether a tensor, or what another spec describes, can match this spec."""
        return self.dtype == other.dtype and self.shape.is_compatible_with(other.shape)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype))


class TensorSpec(_Spec):
    """The shape and dtype of a tensor, and perhaps its name.

    >>> TensorSpec([None, 2], "int64")
    TensorSpec(shape=(None, 2), dtype=tf.int64, name=None)
    """

    __slots__ = ("name",)

    def __init__(self, shape: ShapeLike, dtype: DTypeLike = float32, name: str | None = None) -> None:
        super().__init__(shape, dtype)
        self.name = name

    @classmethod
    def from_tensor(cls, tensor: Any, name: str | None = None) -> TensorSpec:
        """Return the spec of a tensor."""
        return cls(tensor.shape, tensor.dtype, name)

    def __repr__(self) -> str:
        return f"TensorSpec(shape={self.shape}, dtype={self.dtype!r}, name={self.name!r})"


class SparseTensorSpec(_Spec):
    """The shape and dtype of a SparseTensor.

    >>> SparseTensorSpec([None, 2], "int64")
    SparseTensorSpec(TensorShape([None, 2]), tf.int64)
    """

    __slots__ = ()

    def __init__(self, shape: ShapeLike = None, dtype: DTypeLike = float32) -> None:
        super().__init__(shape, dtype)

    def __repr__(self) -> str:
        return f"SparseTensorSpec({self.shape!r}, {self.dtype!r})"


class RaggedTensorSpec(_Spec):
    """The shape and dtype of a RaggedTensor, and how many of its dimensions are ragged.

    Args:
        shape: None for ragged dimensions.
        dtype: The dtype of the values.
        ragged_rank: How many dimensions are ragged; all but the first by default.
        row_splits_dtype: The dtype of the splits.

    >>> RaggedTensorSpec([None, None], "int32")
    RaggedTensorSpec(TensorShape([None, None]), tf.int32, 1, tf.int64)
    """

    __slots__ = ("ragged_rank", "row_splits_dtype")

    def __init__(
        self,
        shape: ShapeLike = None,
        dtype: DTypeLike = float32,
        ragged_rank: int | None = None,
        row_splits_dtype: DTypeLike = int64,
    ) -> None:
        super().__init__(shape, dtype)
        if ragged_rank is None and not self.shape.known:
            message = "Must specify ragged_rank or a shape with known rank."
            raise ValueError(message)
        self.ragged_rank = len(self.shape) - 1 if ragged_rank is None else int(ragged_rank)
        self.row_splits_dtype: DType = as_dtype(row_splits_dtype)

    def is_compatible_with(self, other: Any) -> bool:
        """Tell whether a RaggedTensor, or what another spec describes, can match this spec."""
        splits = other.row_splits_dtype if isinstance(other, RaggedTensorSpec) else other.row_splits.dtype
        same_rows = (self.ragged_rank, self.row_splits_dtype) == (other.ragged_rank, splits)
        return same_rows and super().is_compatible_with(other)

    def __repr__(self) -> str:
        return f"RaggedTensorSpec({self.shape!r}, {self.dtype!r}, {self.ragged_rank}, {self.row_splits_dtype!r})"


# --- What TensorFlow would know of a shape before it runs, which is what its `ragged_batch` depends on
#
# Functions run on values here, so every size is known. A tensor therefore carries which of its dimensions TensorFlow,
# which works out a pipeline before it runs it, could not have known.

# For each dimension whether it is unknown; () where none is.
UnknownDims: TypeAlias = tuple[bool, ...]
# The sizes of a shape, None for those that are unknown.
StaticShape: TypeAlias = tuple[int | None, ...]


def as_unknown_dims(flags: Iterable[bool]) -> UnknownDims:
    """Return which dimensions are unknown, in the form that a tensor keeps.

    >>> as_unknown_dims([False, True]), as_unknown_dims([False, False])
    ((False, True), ())
    """
    made = tuple(flags)
    return made if True in made else ()


def first_unknown(ndim: int) -> UnknownDims:
    """Return that of `ndim` dimensions only the first is unknown."""
    return (True,) + (False,) * (ndim - 1)


def last_unknown(unknown: UnknownDims) -> int:
    """Return the last unknown dimension; -1 if there is none.

    >>> last_unknown((True, True, False)), last_unknown(())
    (1, -1)
    """
    return max((axis for axis, is_unknown in enumerate(unknown) if is_unknown), default=-1)


def unknown_in_items(keys: Sequence[Any], unknown: UnknownDims, ndim: int) -> UnknownDims:
    """Return which dimensions are unknown after indexing: those that were, and those that a tensor selects from."""
    if not unknown and not any(map(_cuts, keys)):
        return ()
    dims = iter(unknown or (False,) * ndim)
    taken = sum(_mask_rank(key) or 1 for key in keys if key is not None and key is not Ellipsis)
    left: list[bool] = []
    for key in keys:
        if key is None:
            left.append(False)
        elif key is Ellipsis:
            left.extend(islice(dims, ndim - taken))
        elif isinstance(key, slice):
            left.append(next(dims) or _cuts(key))
        elif _mask_rank(key):
            list(islice(dims, _mask_rank(key)))  # a mask makes them one dimension
            left.append(True)
        else:
            next(dims)
            left.extend([True] * np.ndim(key))
    return as_unknown_dims([*left, *dims])


def _cuts(key: Any) -> bool:
    """Whether the size that a key leaves depends on a value."""
    if isinstance(key, slice):
        return any(_is_value(bound) for bound in (key.start, key.stop, key.step))
    return _is_value(key) and np.ndim(key) > 0


def _is_value(key: Any) -> bool:
    return hasattr(key, "__array__") and not isinstance(key, np.generic)


def _mask_rank(key: Any) -> int:
    """Return how many dimensions a mask covers; 0 if the key is not a mask."""
    return np.ndim(key) if _is_value(key) and np.asarray(key).dtype == np.bool_ else 0


def unknown_elementwise(shapes: Sequence[StaticShape]) -> UnknownDims:
    """Return which dimensions are unknown in the result of an elementwise operation.

    >>> unknown_elementwise([(None, None, 3), (3,)]), unknown_elementwise([(None,), (5,)])
    ((True, True, False), ())
    """
    rank = max(map(len, shapes))
    columns = zip(*((1,) * (rank - len(shape)) + shape for shape in shapes), strict=True)
    return as_unknown_dims(None in sizes and all(size in (None, 1) for size in sizes) for sizes in columns)


def unknown_in_joined(shapes: Sequence[StaticShape], axis: int | None = None) -> UnknownDims:
    """Return which dimensions are unknown after joining: those unknown in all shapes, or in any along `axis`.

    >>> unknown_in_joined([(None, 3), (2, 3)]), unknown_in_joined([(None, 3), (2, 3)], axis=0)
    ((), (True, False))
    """
    along = None if axis is None else axis % len(shapes[0])
    columns = enumerate(zip(*shapes, strict=True))
    return as_unknown_dims(None in sizes and (at == along or set(sizes) == {None}) for at, sizes in columns)
