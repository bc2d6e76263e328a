"""Shapes: what a tensor's `shape` is, and the shapes and dtypes that are only described."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, SupportsIndex, cast, overload

from ._dtypes import DType, as_dtype, float32, int64

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TypeAlias

    from ._dtypes import DTypeLike

    ShapeLike: TypeAlias = "TensorShape | Iterable[Any] | SupportsIndex | None"


class TensorShape(tuple[int | None, ...]):
    """A shape: a tuple that also equals lists, with None for a dimension that is not known.

    >>> shape = TensorShape([2, None])
    >>> shape, shape == [2, None], shape.as_list(), shape.rank
    (TensorShape([2, None]), True, [2, None], 2)
    """

    known: bool

    def __new__(cls, dims: ShapeLike) -> TensorShape:
        """Make a shape of its dimensions; None where not even their number is known."""
        if hasattr(dims, "__index__"):  # which isinstance(dims, SupportsIndex) takes 10 us to tell
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
        """Return how many elements there are; None if that is not known."""
        return math.prod(size or 0 for size in self) if self.is_fully_defined() else None

    def is_fully_defined(self) -> bool:
        """Tell whether every dimension is known."""
        return self.known and None not in tuple(self)

    def is_compatible_with(self, other: ShapeLike) -> bool:
        """Tell whether a shape can be both this and `other`."""
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


class TensorSpec:
    """What a tensor is like: its shape, its dtype and perhaps a name.

    >>> TensorSpec([None, 2], "int64")
    TensorSpec(shape=(None, 2), dtype=tf.int64, name=None)
    """

    __slots__ = ("dtype", "name", "shape")

    def __init__(self, shape: ShapeLike, dtype: DTypeLike = float32, name: str | None = None) -> None:
        self.shape = TensorShape(shape)
        self.dtype: DType = as_dtype(dtype)
        self.name = name

    @classmethod
    def from_tensor(cls, tensor: Any, name: str | None = None) -> TensorSpec:
        """Return what a tensor is like."""
        return cls(tensor.shape, tensor.dtype, name)

    def is_compatible_with(self, other: Any) -> bool:
        """Tell whether a tensor, or what another spec describes, can be this."""
        return self.dtype == other.dtype and self.shape.is_compatible_with(other.shape)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TensorSpec):
            return NotImplemented
        return (self.shape, self.dtype, self.name) == (other.shape, other.dtype, other.name)

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype))

    def __repr__(self) -> str:
        return f"TensorSpec(shape={self.shape}, dtype={self.dtype!r}, name={self.name!r})"


class SparseTensorSpec:
    """What a SparseTensor is like: its shape and its dtype.

    >>> SparseTensorSpec([None, 2], "int64")
    SparseTensorSpec(TensorShape([None, 2]), tf.int64)
    """

    __slots__ = ("dtype", "shape")

    def __init__(self, shape: ShapeLike = None, dtype: DTypeLike = float32) -> None:
        self.shape = TensorShape(shape)
        self.dtype: DType = as_dtype(dtype)

    def is_compatible_with(self, other: Any) -> bool:
        """Tell whether a SparseTensor, or what another spec describes, can be this."""
        return self.dtype == other.dtype and self.shape.is_compatible_with(other.shape)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SparseTensorSpec) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype))

    def __repr__(self) -> str:
        return f"SparseTensorSpec({self.shape!r}, {self.dtype!r})"


class RaggedTensorSpec:
    """What a RaggedTensor is like: its shape, its dtype, and how many dimensions are ragged.

    Args:
        shape: None for dimensions that are ragged.
        dtype: Of its values.
        ragged_rank: How many dimensions are ragged; all but the first by default.
        row_splits_dtype: Of its splits.

    >>> RaggedTensorSpec([None, None], "int32")
    RaggedTensorSpec(TensorShape([None, None]), tf.int32, 1, tf.int64)
    """

    __slots__ = ("dtype", "ragged_rank", "row_splits_dtype", "shape")

    def __init__(
        self,
        shape: ShapeLike = None,
        dtype: DTypeLike = float32,
        ragged_rank: int | None = None,
        row_splits_dtype: DTypeLike = int64,
    ) -> None:
        self.shape = TensorShape(shape)
        if ragged_rank is None and not self.shape.known:
            message = "Must specify ragged_rank or a shape with known rank."
            raise ValueError(message)
        self.dtype: DType = as_dtype(dtype)
        self.ragged_rank = len(self.shape) - 1 if ragged_rank is None else int(ragged_rank)
        self.row_splits_dtype: DType = as_dtype(row_splits_dtype)

    def is_compatible_with(self, other: Any) -> bool:
        """Tell whether a RaggedTensor, or what another spec describes, can be this."""
        splits = other.row_splits_dtype if isinstance(other, RaggedTensorSpec) else other.row_splits.dtype
        return (self.dtype, self.ragged_rank, self.row_splits_dtype) == (
            other.dtype,
            other.ragged_rank,
            splits,
        ) and self.shape.is_compatible_with(other.shape)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RaggedTensorSpec) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype))

    def __repr__(self) -> str:
        return f"RaggedTensorSpec({self.shape!r}, {self.dtype!r}, {self.ragged_rank}, {self.row_splits_dtype!r})"
