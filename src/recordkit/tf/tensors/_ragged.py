"""RaggedTensor: rows of different lengths, whose values lie end to end; splits say where each row ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from recordkit.columns import BytesColumn, Ragged
from recordkit.errors import InvalidArgumentError

from . import _dtypes
from ._dtypes import DType, as_dtype, of_numpy
from ._indexing import item, splits_of
from ._shape import TensorShape, as_unknown_dims, first_unknown
from ._sparse import SparseTensor
from ._tensor import Tensor, array_of, convert_to_tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Self

    from numpy.typing import NDArray

    from ._dtypes import DTypeLike


class RaggedTensor:
    """Rows of different lengths; the values may be ragged themselves.

    Args:
        values: The values of all rows, end to end.
        splits: Where each row starts in them, and where the last ends, as a NumPy array.
        uniform: The length of every row, if it is declared to be uniform.

    >>> ragged = RaggedTensor.from_row_splits([1, 2, 3], [0, 2, 2, 3])
    >>> ragged, ragged.shape, ragged[0].numpy()
    (<tf.RaggedTensor [[1, 2], [], [3]]>, TensorShape([3, None]), array([1, 2], dtype=int32))
    >>> ragged.to_tensor(default_value=-1).numpy().tolist()
    [[1, 2], [-1, -1], [3, -1]]
    """

    __slots__ = ("splits", "uniform_row_length", "values")

    def __init__(self, values: Tensor | RaggedTensor, splits: NDArray[Any], uniform: int | None = None) -> None:
        self.values = values
        self.splits = splits
        self.uniform_row_length = uniform

    @classmethod
    def from_row_splits(
        cls, values: Any, row_splits: Any, name: str | None = None, validate: bool = True
    ) -> RaggedTensor:
        """Return rows that start and end at `row_splits`."""
        return cls(_values(values), _checked(_values(values), _partition(row_splits)))

    @classmethod
    def from_row_lengths(
        cls, values: Any, row_lengths: Any, name: str | None = None, validate: bool = True
    ) -> RaggedTensor:
        """Return rows of these lengths."""
        lengths = _partition(row_lengths)
        return cls(_values(values), _checked(_values(values), splits_of(lengths, lengths.dtype)))

    @classmethod
    def from_row_starts(cls, values: Any, row_starts: Any, name: str | None = None, validate: bool = True) -> Self:
        """Return rows that start at `row_starts`; the last one ends where the values end."""
        given, starts = _values(values), _partition(row_starts)
        return cls(given, _checked(given, np.append(starts, starts.dtype.type(len(given)))))

    @classmethod
    def from_row_limits(cls, values: Any, row_limits: Any, name: str | None = None, validate: bool = True) -> Self:
        """Return rows that end at `row_limits`."""
        given, limits = _values(values), _partition(row_limits)
        return cls(given, _checked(given, np.append(limits.dtype.type(0), limits)))

    @classmethod
    def from_value_rowids(
        cls, values: Any, value_rowids: Any, nrows: Any = None, name: str | None = None, validate: bool = True
    ) -> Self:
        """Return rows from the row number of each value; row numbers never decrease."""
        given, rows = _values(values), _partition(value_rowids)
        count = int(rows[-1] + 1 if len(rows) else 0) if nrows is None else int(nrows)
        if (np.diff(rows) < 0).any() or (rows < 0).any() or (rows >= count).any():
            message = f"expected row numbers from 0 to {count - 1} that never decrease"
            raise InvalidArgumentError(message)
        return cls(given, _checked(given, splits_of(np.bincount(rows, minlength=count), rows.dtype)))

    @classmethod
    def from_uniform_row_length(
        cls, values: Any, uniform_row_length: Any, nrows: Any = None, validate: bool = True, name: str | None = None
    ) -> Self:
        """Return rows of one length; `nrows` is only needed for empty rows."""
        given, length = _values(values), int(uniform_row_length)
        count = int(nrows) if nrows is not None else len(given) // length if length else 0
        return cls(given, _checked(given, np.arange(count + 1, dtype=np.int64) * length), length)

    @classmethod
    def from_nested_row_splits(
        cls, flat_values: Any, nested_row_splits: Any, name: str | None = None, validate: bool = True
    ) -> Any:
        """Return nested rows, from the splits of the outermost ones inwards."""
        return _nested(cls.from_row_splits, flat_values, nested_row_splits)

    @classmethod
    def from_nested_row_lengths(
        cls, flat_values: Any, nested_row_lengths: Any, name: str | None = None, validate: bool = True
    ) -> Any:
        """Return nested rows, from the lengths of the outermost ones inwards."""
        return _nested(cls.from_row_lengths, flat_values, nested_row_lengths)

    @classmethod
    def from_tensor(
        cls,
        tensor: Any,
        lengths: Any = None,
        padding: Any = None,
        ragged_rank: int = 1,
        name: str | None = None,
        row_splits_dtype: DTypeLike = _dtypes.int64,
    ) -> RaggedTensor:
        """Return the rows of a tensor, cut to `lengths`, or without the `padding` at their ends.

        >>> RaggedTensor.from_tensor([[1, 0], [2, 3]], padding=0)
        <tf.RaggedTensor [[1], [2, 3]]>
        """
        array, dtype = np.asarray(convert_to_tensor(tensor)), as_dtype(row_splits_dtype).numpy
        if not 0 < ragged_rank < array.ndim:
            message = (
                f"ragged_rank: expected 1 to {array.ndim - 1}, found {ragged_rank} for the shape {list(array.shape)}"
            )
            raise ValueError(message)
        if ragged_rank > 1:
            if lengths is not None or padding is not None:
                message = "from_tensor: lengths and padding are for a ragged_rank of 1"
                raise NotImplementedError(message)
            rows = array.reshape((-1, *array.shape[2:]))
            inner = cls.from_tensor(rows, ragged_rank=ragged_rank - 1, row_splits_dtype=row_splits_dtype)
            return cls(inner, splits_of(np.full(len(array), array.shape[1]), dtype), array.shape[1])
        if lengths is None and padding is None:
            whole = splits_of(np.full(len(array), array.shape[1]), dtype)
            return cls(Tensor(array.reshape((-1, *array.shape[2:]))), whole, array.shape[1])
        counts = _lengths_without(array, padding) if lengths is None else np.asarray(lengths)
        kept = np.arange(array.shape[1]) < counts[:, None]
        return cls(Tensor(array[kept]), splits_of(kept.sum(axis=1), dtype))

    @classmethod
    def from_sparse(
        cls, st_input: SparseTensor, name: str | None = None, row_splits_dtype: DTypeLike = _dtypes.int64
    ) -> RaggedTensor:
        """Return the rows of a sparse tensor of two dimensions; in each, the values come first."""
        places = np.asarray(st_input.indices)
        if places.shape[1] != 2:
            message = f"from_sparse: expected two dimensions, found {places.shape[1]}"
            raise ValueError(message)
        counts = np.bincount(places[:, 0], minlength=int(st_input.dense_shape[0]))
        splits = splits_of(counts, as_dtype(row_splits_dtype).numpy)
        if (np.arange(len(places)) - splits[places[:, 0]] != places[:, 1]).any():
            message = "from_sparse: a row has a gap before a value\n  Use tf.sparse.to_dense."
            raise InvalidArgumentError(message)
        return cls(st_input.values, splits)

    # --- Parts

    @property
    def row_splits(self) -> Tensor:
        """Where each row starts in the values, and where the last ends."""
        return Tensor(self.splits)

    @property
    def flat_values(self) -> Tensor:
        """The innermost values."""
        return self.values.flat_values if isinstance(self.values, RaggedTensor) else self.values

    @property
    def nested_row_splits(self) -> tuple[Tensor, ...]:
        """The splits of every ragged dimension, outermost first."""
        inner = self.values.nested_row_splits if isinstance(self.values, RaggedTensor) else ()
        return (self.row_splits, *inner)

    def nested_row_lengths(self, name: str | None = None) -> tuple[Tensor, ...]:
        """Return the lengths of the rows of every ragged dimension, outermost first."""
        return tuple(Tensor(np.diff(np.asarray(splits))) for splits in self.nested_row_splits)

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
        """The shape, with None for ragged dimensions."""
        return TensorShape((len(self), self.uniform_row_length, *self.values.shape[1:]))

    def get_shape(self) -> TensorShape:
        """Return the shape."""
        return self.shape

    def nrows(self, out_type: DTypeLike | None = None, name: str | None = None) -> Tensor:
        """Return the number of rows."""
        return Tensor(np.array(len(self), self.splits.dtype if out_type is None else as_dtype(out_type).numpy))

    def row_lengths(self, axis: int = 1, name: str | None = None) -> Tensor:
        """Return the length of every row."""
        return Tensor(np.diff(self.splits))

    def row_starts(self, name: str | None = None) -> Tensor:
        """Return where each row starts in the values."""
        return Tensor(self.splits[:-1])

    def row_limits(self, name: str | None = None) -> Tensor:
        """Return where each row ends in the values."""
        return Tensor(self.splits[1:])

    def value_rowids(self, name: str | None = None) -> Tensor:
        """Return the row of each value."""
        return Tensor(np.repeat(np.arange(len(self), dtype=self.splits.dtype), np.diff(self.splits)))

    def bounding_shape(self, axis: Any = None, name: str | None = None, out_type: DTypeLike | None = None) -> Tensor:
        """Return the shape that `to_tensor` would have."""
        dtype = self.splits.dtype if out_type is None else as_dtype(out_type).numpy
        sizes = np.array(self._column().to_padded(_blank(self.dtype)).shape, dtype)
        return Tensor(sizes if axis is None else sizes[axis])

    def with_values(self, new_values: Any) -> RaggedTensor:
        """Return the same rows with other values."""
        return RaggedTensor(_values(new_values), self.splits, self.uniform_row_length)

    def with_row_splits_dtype(self, dtype: DTypeLike) -> RaggedTensor:
        """Return the same rows with splits of another dtype."""
        inner = self.values.with_row_splits_dtype(dtype) if isinstance(self.values, RaggedTensor) else self.values
        return RaggedTensor(inner, self.splits.astype(as_dtype(dtype).numpy), self.uniform_row_length)

    def with_flat_values(self, new_values: Any) -> RaggedTensor:
        """Return the same rows with other innermost values."""
        if isinstance(self.values, RaggedTensor):
            return self.with_values(self.values.with_flat_values(new_values))
        return self.with_values(new_values)

    # --- Conversions

    def _column(self) -> Ragged:
        flat = self.flat_values._data
        values = flat if isinstance(flat, BytesColumn) else np.asarray(self.flat_values)
        return Ragged(values, [np.asarray(splits).astype(np.int64) for splits in self.nested_row_splits])

    def to_list(self) -> list[Any]:
        """Return nested lists."""
        return [row.to_list() if isinstance(row, RaggedTensor) else row.tolist() for row in self]

    def to_tensor(self, default_value: Any = None, name: str | None = None, shape: Any = None) -> Tensor:
        """Return one tensor, padded with `default_value` to the longest row in each dimension.

        Args:
            default_value: Zero, or an empty string, by default.
            name: Not used.
            shape: The shape to cut or pad it to; None leaves a dimension as it is.
        """
        fill = _blank(self.dtype) if default_value is None else array_of(default_value, self.dtype)[()]
        padded = self._column().to_padded(fill)
        if shape is None:
            ragged = self.ragged_rank + 1
            return Tensor(padded, (True,) * ragged + (False,) * (padded.ndim - ragged))
        return Tensor(_resized(padded, tuple(shape), fill), as_unknown_dims(size is None for size in shape))

    def to_sparse(self, name: str | None = None) -> SparseTensor:
        """Return a SparseTensor of the same values."""
        column = self._column()
        there = Ragged(np.ones(column.values.shape, np.bool_), column.offsets).to_padded(False)
        return SparseTensor(np.argwhere(there), self.flat_values.numpy().reshape(-1), np.array(there.shape, np.int64))

    def numpy(self) -> Any:
        """Return an array; one of row arrays, as objects, if rows differ in length."""
        rows = [row.numpy() for row in self]
        if len({np.shape(row) for row in rows}) == 1:
            return np.stack(rows)
        array = np.empty(len(rows), object)
        array[:] = rows
        return array

    def __len__(self) -> int:
        return len(self.splits) - 1

    def __iter__(self) -> Iterator[Any]:
        return (self[row] for row in range(len(self)))

    def __getitem__(self, index: Any) -> Any:
        return item(self, list(index) if isinstance(index, list | tuple) else [index])

    def __repr__(self) -> str:
        return f"<tf.RaggedTensor {self.to_list()}>"


class RaggedRow(Tensor):
    """A row of a ragged tensor. A batch of such rows is ragged again, whether or not their lengths differ.

    Attributes:
        splits_dtype: The NumPy dtype of that tensor's splits.
    """

    __slots__ = ("splits_dtype",)

    def __init__(self, row: Tensor, splits_dtype: np.dtype[Any]) -> None:
        super().__init__(row._data)
        self.splits_dtype = splits_dtype

    def to_tensor(self) -> Tensor:
        """Return the row as an ordinary tensor of unknown length."""
        return Tensor(self._data, first_unknown(self.ndim))

    def __reduce__(self) -> tuple[Any, ...]:
        return RaggedRow, (Tensor(self._array), self.splits_dtype)


def _nested(make: Callable[[Any, Any], Any], values: Any, partitions: Any) -> Any:
    """Return nested rows, built from the innermost outwards."""
    for partition in reversed(list(partitions)):
        values = make(values, partition)
    return values


def _values(values: Any) -> Tensor | RaggedTensor:
    return values if isinstance(values, RaggedTensor) else convert_to_tensor(values)


def _partition(numbers: Any) -> NDArray[Any]:
    """Return splits or lengths as int64, or as int32 if they are an int32 tensor."""
    if isinstance(numbers, Tensor) and numbers.dtype is _dtypes.int32:
        return np.asarray(numbers)
    return np.asarray(numbers).astype(np.int64)


def _checked(values: Tensor | RaggedTensor, splits: NDArray[Any]) -> NDArray[Any]:
    count = len(values)
    if not len(splits) or splits[0] != 0 or splits[-1] != count or (np.diff(splits) < 0).any():
        message = f"the rows do not match the {count} values\n  Splits go from 0 to {count} and never decrease."
        raise InvalidArgumentError(message)
    return splits


def _lengths_without(array: NDArray[Any], padding: Any) -> NDArray[np.int64]:
    """Return the length of each row without the padding at its end."""
    fill = array_of(padding, of_numpy(array.dtype))
    other = (array != fill).reshape((*array.shape[:2], -1)).any(axis=2)
    return np.where(other.any(axis=1), array.shape[1] - other[:, ::-1].argmax(axis=1), 0)


def _blank(dtype: DType) -> Any:
    return b"" if dtype is _dtypes.string else 0


def _resized(array: NDArray[Any], shape: tuple[int | None, ...], fill: Any) -> NDArray[Any]:
    sizes = tuple(there if size is None else int(size) for size, there in zip(shape, array.shape, strict=True))
    whole = np.full(sizes, fill, array.dtype)
    inside = tuple(slice(0, min(pair)) for pair in zip(sizes, array.shape, strict=True))
    whole[inside] = array[inside]
    return whole
