"""Feature descriptions: how `parse_example` reads each feature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from recordkit.tf.tensors import DType, as_dtype, int32

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recordkit.tf.tensors import DTypeLike


class _Described:
    """The base of descriptions. Names become dtypes, and lists tuples, so that descriptions compare quickly."""

    __slots__ = ()

    def __post_init__(self) -> None:
        for name, make in (("dtype", as_dtype), ("row_splits_dtype", as_dtype), *_TUPLES):
            value = getattr(self, name, None)
            if value is not None:
                object.__setattr__(self, name, make(value))


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


_TUPLES = (("shape", _tuple), ("index_key", _tuple), ("size", _tuple), ("partitions", tuple))


@dataclass(frozen=True, slots=True)
class FixedLenFeature(_Described):
    """The number of values in `shape`, in every record; `default_value` where a record has none.

    >>> from recordkit import tf
    >>> tf.io.FixedLenFeature([2], tf.int64)
    FixedLenFeature(shape=(2,), dtype=tf.int64, default_value=None)
    """

    shape: Any
    dtype: DTypeLike
    default_value: Any = None


@dataclass(frozen=True, slots=True)
class VarLenFeature(_Described):
    """Any number of values; parsed to a SparseTensor."""

    dtype: DTypeLike


@dataclass(frozen=True, slots=True)
class SparseFeature(_Described):
    """Values in one feature and their indices in others; parsed to a SparseTensor of the given size."""

    index_key: str | Sequence[str]
    value_key: str
    dtype: DTypeLike
    size: int | Sequence[int]
    already_sorted: bool = False


@dataclass(frozen=True, slots=True)
class FixedLenSequenceFeature(_Described):
    """Any number of items of one shape; in a batch, shorter sequences are padded with `default_value`."""

    shape: Any
    dtype: DTypeLike
    allow_missing: bool = False
    default_value: Any = None


@dataclass(frozen=True, slots=True)
class _Partition:
    key: str


class RowSplits(_Partition):
    """The feature that holds where rows start, and where the last ends."""


class RowLengths(_Partition):
    """The feature that holds the lengths of rows."""


class RowStarts(_Partition):
    """The feature that holds where rows start."""


class RowLimits(_Partition):
    """The feature that holds where rows end."""


class ValueRowIds(_Partition):
    """The feature that holds the row of each value."""


@dataclass(frozen=True, slots=True)
class UniformRowLength:
    """Every row has this length."""

    length: int


Partition: TypeAlias = RowSplits | RowLengths | RowStarts | RowLimits | ValueRowIds | UniformRowLength


@dataclass(frozen=True)
class RaggedFeature(_Described):
    """Any number of values, in rows that other features describe; parsed to a RaggedTensor.

    Attributes:
        dtype: The dtype of the values.
        value_key: The feature that holds the values; by default the name in the description.
        partitions: How the values are split into rows, outermost first.
        row_splits_dtype: The dtype of the splits: int32 or int64.
        validate: Not used: rows that do not match the values are always an error.
    """

    dtype: DTypeLike
    value_key: str | None = None
    partitions: Sequence[Partition] = ()
    row_splits_dtype: DType = int32
    validate: bool = False

    # Nested as in TensorFlow.
    RowSplits: ClassVar = RowSplits
    RowLengths: ClassVar = RowLengths
    RowStarts: ClassVar = RowStarts
    RowLimits: ClassVar = RowLimits
    ValueRowIds: ClassVar = ValueRowIds
    UniformRowLength: ClassVar = UniformRowLength


AnyFeature: TypeAlias = FixedLenFeature | VarLenFeature | SparseFeature | FixedLenSequenceFeature | RaggedFeature
