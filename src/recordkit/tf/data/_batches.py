"""Batches: elements stacked, padded or ragged; and the rows of a batch."""

from __future__ import annotations

import math
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from recordkit.errors import InvalidArgumentError
from recordkit.tf.tensors import (
    RaggedRow,
    RaggedTensor,
    SparseTensor,
    Tensor,
    arrays_of,
    as_dtype,
    as_unknown_dims,
    last_unknown,
    object_array,
    splits_of,
    static_shape,
    string,
)

from ._elements import Failed, columns_of, first_failure, leaves, map_leaves
from ._specs import asked_shape, filling, unfit

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

# For each leaf the last dimension that was found to differ between elements.
_Loose = dict[int, int]


def batch_of(elements: list[Any]) -> Any:
    """Return elements as a batch; if one of them failed, that failure."""
    failed = first_failure(elements)
    return failed if failed is not None else map_leaves(stacked, columns_of(elements, "batch"))


def stacked(column: list[Any]) -> Any:
    """Stack leaves along a new dimension: tensors of one shape, or sparse or ragged ones."""
    first = column[0]
    if type(first) is bytes:
        return Tensor(object_array(column))
    if isinstance(first, SparseTensor):
        return _stacked_sparse(column)
    if isinstance(first, RaggedTensor):
        return _stacked_ragged(column)
    if first is None:
        return None
    if isinstance(first, RaggedRow):
        return _ragged([np.asarray(row) for row in column], 0, first.splits_dtype)
    arrays = _arrays(column)
    for at, array in enumerate(arrays):
        if array.shape != arrays[0].shape:
            message = (
                f"batch: expected tensors of one shape, found {list(arrays[0].shape)}, and {list(array.shape)} in "
                f"element {at}\n  Use padded_batch or ragged_batch, or give them one shape in map."
            )
            raise InvalidArgumentError(message)
    return Tensor(np.stack(arrays))


def _arrays(column: list[Any]) -> list[NDArray[Any]]:
    """Return tensors as arrays; all must have one dtype and rank."""
    arrays = arrays_of(column)
    for at, array in enumerate(arrays):
        if array.dtype != arrays[0].dtype or array.ndim != arrays[0].ndim:
            message = (
                f"batch: expected {_described(column[0])} as in the first element, found {_described(column[at])} in "
                f"element {at}"
            )
            raise InvalidArgumentError(message)
    return arrays


def _described(tensor: Any) -> str:
    return f"{tensor.dtype.name} in {len(tensor.shape)} dimensions"


def _stacked_sparse(column: list[SparseTensor]) -> SparseTensor:
    counts = [len(sparse.values) for sparse in column]
    rows = np.repeat(np.arange(len(column)), counts)[:, None]
    places = np.concatenate([np.asarray(sparse.indices) for sparse in column])
    shape = np.max([np.asarray(sparse.dense_shape) for sparse in column], axis=0)
    values = np.concatenate([np.asarray(sparse.values) for sparse in column])
    return SparseTensor(np.hstack([rows, places]), Tensor(values), np.array([len(column), *shape], np.int64))


def _stacked_ragged(column: Sequence[RaggedTensor]) -> RaggedTensor:
    return RaggedTensor(_joined(column), splits_of([len(ragged) for ragged in column], column[0].splits.dtype))


def _joined(parts: Sequence[Any]) -> Any:
    """Concatenate the rows of all parts."""
    if not isinstance(parts[0], RaggedTensor):
        return Tensor(np.concatenate([np.asarray(part) for part in parts]))
    lengths = np.concatenate([np.diff(part.splits) for part in parts])
    values = _joined([part.values for part in parts])
    return RaggedTensor(values, splits_of(lengths, parts[0].splits.dtype), parts[0].uniform_row_length)


# --- Padded


def padded(elements: list[Any], shapes: Any, fills: Any) -> Any:
    """Return elements as a batch, padded to the given shapes, or to the largest."""
    columns = columns_of(elements, "padded_batch")
    if shapes is None:
        shapes = map_leaves(lambda _: None, columns)
    if not isinstance(fills, tuple | dict):
        fills = map_leaves(lambda _, fill=fills: fill, columns)
    return map_leaves(_padded, columns, shapes, fills)


def _padded(column: list[Any], shape: Any, fill: Any) -> Any:
    if type(column[0]) is bytes:
        return stacked(column)
    if not isinstance(column[0], Tensor):
        message = (
            f"padded_batch: expected tensors, found {type(column[0]).__name__}\n  Use batch, or tf.sparse.to_dense."
        )
        raise TypeError(message)
    arrays = _arrays(column)
    sizes = _sizes(arrays, shape, column[0])
    dtype = as_dtype(column[0].dtype)
    blank: Any = b"" if dtype is string else 0
    whole = np.empty((len(arrays), *sizes), arrays[0].dtype)
    whole[...] = blank if fill is None else filling(fill, dtype)
    for at, array in enumerate(arrays):
        inside: Any = (at, *map(slice, array.shape))
        whole[inside] = array[()]  # [()] takes the string from a scalar array, which would be stored as an array
    known = static_shape(column[0]) if shape is None else asked_shape(shape)
    return Tensor(whole, as_unknown_dims(size is None for size in (None, *known)))


def _sizes(arrays: list[NDArray[Any]], shape: Any, first: Tensor) -> tuple[int, ...]:
    """Return the shape to pad to: the one asked for, or the largest where it is open."""
    largest = tuple(np.max([array.shape for array in arrays], axis=0).astype(int).tolist())
    asked = (None,) * len(largest) if shape is None else asked_shape(shape)
    if len(asked) != len(largest):
        raise unfit(asked, first, largest)
    sizes = tuple(there if size is None else size for size, there in zip(asked, largest, strict=True))
    if any(size < there for size, there in zip(sizes, largest, strict=True)):
        raise unfit(asked, first, largest)
    return sizes


# --- Ragged


def ragged_batches(groups: Iterator[list[Any]], dtype: Any) -> Iterator[Any]:
    """Yield a batch for each group: ragged up to the last unknown dimension, or stacked if all are known.

    If shapes differ though TensorFlow would have known them, or would have known nothing and refused, batches are
    ragged from then on.
    """
    loose: _Loose = {}
    for group in groups:
        failed = group if isinstance(group, Failed) else first_failure(group)
        yield failed if failed is not None else _ragged_batch(group, loose, dtype)


def _ragged_batch(group: list[Any], loose: _Loose, dtype: Any) -> Any:
    numbers = iter(range(sum(1 for _ in leaves(group[0]))))
    return map_leaves(
        lambda column: _maybe_ragged(column, next(numbers), loose, dtype), columns_of(group, "ragged_batch")
    )


def _maybe_ragged(column: list[Any], number: int, loose: _Loose, dtype: Any) -> Any:
    if not isinstance(column[0], Tensor) or isinstance(column[0], RaggedRow):
        return stacked(column)
    arrays = _arrays(column)
    differing = [axis for axis, sizes in enumerate(zip(*(array.shape for array in arrays))) if len(set(sizes)) > 1]  # noqa: B905
    ways = {tensor.unknown_dims for tensor in column}
    last = max([loose.get(number, -1), *differing, *map(last_unknown, ways)])
    if last < 0:
        return stacked(column)
    loose[number] = last
    # Dimensions that are known between unknown ones are uniform in the batch.
    uniform = [axis for axis in range(last) if axis not in differing and all(way and not way[axis] for way in ways)]
    return _ragged(arrays, last, dtype, uniform)


def _ragged(arrays: list[NDArray[Any]], last: int, dtype: Any, uniform: Sequence[int] = ()) -> RaggedTensor:
    """Return arrays as a tensor that is ragged up to dimension `last`, except for those in `uniform`."""
    inner = arrays[0].shape[last + 1 :]
    flat = [array.reshape((math.prod(array.shape[: last + 1]), *inner)) for array in arrays]
    made: Any = Tensor(np.concatenate(flat))
    for level in reversed(range(last + 1)):
        lengths = [np.full(math.prod(array.shape[:level]), array.shape[level], np.int64) for array in arrays]
        made = RaggedTensor(
            made, splits_of(np.concatenate(lengths), dtype), arrays[0].shape[level] if level in uniform else None
        )
    assert isinstance(made, RaggedTensor)
    return made


# --- Rows


def rows_of(element: Any) -> Rows:
    """Return the rows of an element, as elements."""
    columns = map_leaves(_column, element)
    lengths = {len(column) for column in leaves(columns)}
    if len(lengths) != 1:
        message = f"expected components of one length, found {', '.join(map(str, sorted(lengths)))}"
        raise ValueError(message)
    return Rows(columns, lengths.pop())


class Rows:
    """The rows of an element, created on demand."""

    def __init__(self, columns: Any, count: int) -> None:
        self._columns = columns
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Any]:
        pick = lambda row, column: column[row]  # noqa: E731 - `partial` binds the row
        return (map_leaves(partial(pick, row), self._columns) for row in range(self._count))


def _column(leaf: Any) -> Any:
    """Return the rows of a leaf as a sequence."""
    if isinstance(leaf, SparseTensor):
        return list(_sparse_rows(leaf))
    if isinstance(leaf, RaggedTensor):
        return [RaggedRow(row, leaf.splits.dtype) if isinstance(row, Tensor) else row for row in leaf]
    if not isinstance(leaf, Tensor) or not leaf.ndim:
        message = "expected tensors with rows, found a scalar\n  Elements are split along their first dimension."
        raise ValueError(message)
    return leaf


def _sparse_rows(sparse: SparseTensor) -> Iterator[SparseTensor]:
    places, values = np.asarray(sparse.indices), np.asarray(sparse.values)
    shape = np.asarray(sparse.dense_shape)
    bounds = np.searchsorted(places[:, 0], np.arange(int(shape[0]) + 1))
    for start, stop in pairwise(bounds.tolist()):
        yield SparseTensor(places[start:stop, 1:], Tensor(values[start:stop]), shape[1:])
