"""RaggedTensor: rows of differing lengths. The values of all rows lie end to end; splits say where each row ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from recordkit.columns import BytesColumn, Ragged
from recordkit.errors import InvalidArgumentError

from . import _dtypes
from ._dtypes import DType, as_dtype
from ._indexing import item
from ._shape import TensorShape
from ._sparse import SparseTensor
from ._static import opened
from ._tensor import Tensor, array_of, convert_to_tensor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from ._dtypes import DTypeLike


class RaggedTensor:
    """Rows of differing lengths; the values may be ragged themselves.

    Args:
        values: The values of all rows, end to end.
        splits: Where each row starts in them, and where the last ends.
        uniform: The length of every row, where it is declared to be one.

    >>> ragged = RaggedTensor.from_row_splits([1, 2, 3], [0, 2, 2, 3])
    >>> ragged, ragged.shape, ragged[0].numpy()
    (<tf.RaggedTensor [[1, 2], [], [3]]>, TensorShape([3, None]), array([1, 2], dtype=int32))
    >>> ragged.to_tensor(default_value=-1).numpy().tolist()
    [[1, 2], [-1, -1], [3, -1]]
    """

    __slots__ = ("_splits", "uniform_row_length", "values")

    def __init__(self, values: Tensor | RaggedTensor, splits: NDArray[Any], uniform: int | None = None) -> None:
        self.values = values
        self._splits = splits
        self.uniform_row_length = uniform

    @classmethod
    def from_row_splits(
        cls, values: Any, row_splits: Any, name: str | None = None, validate: bool = True
    ) -> RaggedTensor:
        """Return rows that start and end where `row_splits` says."""
        return cls(_values(values), _checked(_values(values), _partition(row_splits)))

    @classmethod
    def from_row_lengths(
        cls, values: Any, row_lengths: Any, name: str | None = None, validate: bool = True
    ) -> RaggedTensor:
        """Return rows of these lengths."""
        lengths = _partition(row_lengths)
        splits = np.zeros(len(lengths) + 1, lengths.dtype)
        np.cumsum(lengths, out=splits[1:])
        return cls(_values(values), _checked(_values(values), splits))

    # --- What it is made of

    @property
    def row_splits(self) -> Tensor:
        """Where each row starts in the values, and where the last ends."""
        return Tensor(self._splits)

    @property
    def flat_values(self) -> Tensor:
        """The innermost values."""
        return self.values.flat_values if isinstance(self.values, RaggedTensor) else self.values

    @property
    def nested_row_splits(self) -> tuple[Tensor, ...]:
        """The splits of every ragged dimension, outermost first."""
        inner = self.values.nested_row_splits if isinstance(self.values, RaggedTensor) else ()
        return (self.row_splits, *inner)

    @property
    def ragged_rank(self) -> int:
        """How many dimensions are ragged."""
        return len(self.nested_row_splits)

    @property
    def dtype(self) -> DType:
        """The dtype of the values."""
        return self.flat_values.dtype

    @property
    def shape(self) -> TensorShape:
        """The shape, with None for dimensions that are ragged."""
        return TensorShape((len(self), self.uniform_row_length, *self.values.shape[1:]))

    def get_shape(self) -> TensorShape:
        """Return the shape."""
        return self.shape

    def nrows(self, out_type: DTypeLike | None = None) -> Tensor:
        """Return how many rows there are."""
        return Tensor(np.array(len(self), self._splits.dtype if out_type is None else as_dtype(out_type).numpy))

    def row_lengths(self, axis: int = 1, name: str | None = None) -> Tensor:
        """Return the length of every row."""
        return Tensor(np.diff(self._splits))

    def row_starts(self, name: str | None = None) -> Tensor:
        """Return where every row starts in the values."""
        return Tensor(self._splits[:-1])

    def row_limits(self, name: str | None = None) -> Tensor:
        """Return where every row ends in the values."""
        return Tensor(self._splits[1:])

    def value_rowids(self, name: str | None = None) -> Tensor:
        """Return the row of every value."""
        return Tensor(np.repeat(np.arange(len(self), dtype=self._splits.dtype), np.diff(self._splits)))

    def bounding_shape(self, axis: Any = None, name: str | None = None, out_type: DTypeLike | None = None) -> Tensor:
        """Return the shape that `to_tensor` would have."""
        dtype = self._splits.dtype if out_type is None else as_dtype(out_type).numpy
        sizes = np.array(self._column().to_padded(_blank(self.dtype)).shape, dtype)
        return Tensor(sizes if axis is None else sizes[axis])

    def with_values(self, new_values: Any) -> RaggedTensor:
        """Return the same rows of other values."""
        return RaggedTensor(_values(new_values), self._splits, self.uniform_row_length)

    def with_flat_values(self, new_values: Any) -> RaggedTensor:
        """Return the same rows, down to the innermost, of other values."""
        if isinstance(self.values, RaggedTensor):
            return self.with_values(self.values.with_flat_values(new_values))
        return self.with_values(new_values)

    # --- What it becomes

    def _column(self) -> Ragged:
        flat = self.flat_values._data
        values = flat if isinstance(flat, BytesColumn) else np.asarray(self.flat_values)
        return Ragged(values, [np.asarray(splits).astype(np.int64) for splits in self.nested_row_splits])

    def to_list(self) -> list[Any]:
        """Return nested lists."""
        return [row.to_list() if isinstance(row, RaggedTensor) else row.tolist() for row in self]

    def to_tensor(self, default_value: Any = None, name: str | None = None, shape: Any = None) -> Tensor:
        """Return one tensor, every dimension as long as its longest, with `default_value` where there is no value.

        Args:
            default_value: Zero, or an empty string, by default.
            name: Not used.
            shape: What to cut or fill it to; None for a dimension as it is.
        """
        fill = _blank(self.dtype) if default_value is None else array_of(default_value, self.dtype)[()]
        padded = self._column().to_padded(fill)
        if shape is None:
            ragged = self.ragged_rank + 1
            return Tensor(padded, (True,) * ragged + (False,) * (padded.ndim - ragged))
        return Tensor(_resized(padded, tuple(shape), fill), opened(size is None for size in shape))

    def to_sparse(self, name: str | None = None) -> SparseTensor:
        """Return a SparseTensor of the same values."""
        column = self._column()
        there = Ragged(np.ones(column.values.shape, np.bool_), column.offsets).to_padded(False)
        return SparseTensor(np.argwhere(there), self.flat_values.numpy().reshape(-1), np.array(there.shape, np.int64))

    def numpy(self) -> Any:
        """Return an array: of arrays as objects where rows differ in length."""
        rows = [row.numpy() for row in self]
        if len({np.shape(row) for row in rows}) == 1:
            return np.stack(rows)
        array = np.empty(len(rows), object)
        array[:] = rows
        return array

    def __len__(self) -> int:
        return len(self._splits) - 1

    def __iter__(self) -> Iterator[Any]:
        return (self[row] for row in range(len(self)))

    def __getitem__(self, index: Any) -> Any:
        return item(self, list(index) if isinstance(index, list | tuple) else [index])

    def __repr__(self) -> str:
        return f"<tf.RaggedTensor {self.to_list()}>"


def _values(values: Any) -> Tensor | RaggedTensor:
    return values if isinstance(values, RaggedTensor) else convert_to_tensor(values)


def _partition(numbers: Any) -> NDArray[Any]:
    """Return splits or lengths as int64, or as int32 if they are a tensor of that."""
    if isinstance(numbers, Tensor) and numbers.dtype is _dtypes.int32:
        return np.asarray(numbers)
    return np.asarray(numbers).astype(np.int64)


def _checked(values: Tensor | RaggedTensor, splits: NDArray[Any]) -> NDArray[Any]:
    count = len(values)
    if not len(splits) or splits[0] != 0 or splits[-1] != count or (np.diff(splits) < 0).any():
        message = f"the rows do not take up the {count} values\n  Splits go from 0 to {count} and never down."
        raise InvalidArgumentError(message)
    return splits


def _blank(dtype: DType) -> Any:
    return b"" if dtype is _dtypes.string else 0


def _resized(array: NDArray[Any], shape: tuple[int | None, ...], fill: Any) -> NDArray[Any]:
    sizes = tuple(there if size is None else int(size) for size, there in zip(shape, array.shape, strict=True))
    whole = np.full(sizes, fill, array.dtype)
    inside = tuple(slice(0, min(pair)) for pair in zip(sizes, array.shape, strict=True))
    whole[inside] = array[inside]
    return whole
