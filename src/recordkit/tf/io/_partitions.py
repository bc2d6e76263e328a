"""Partitions: the values of a RaggedFeature, split into rows by other features of the same record.

Unless asked to validate, TensorFlow lets rows that do not match the values continue into the next record. Here that is
always an error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from recordkit.tf.tensors import RaggedTensor, Tensor, splits_of

from ._features import RowLengths, RowLimits, RowSplits, RowStarts, UniformRowLength, ValueRowIds

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from recordkit.examples import Decoded, Values

    from ._features import Partition, RaggedFeature

    Ints = NDArray[np.int64]


class Misaligned(Exception):  # noqa: N818  (a finding, on its way to becoming a SchemaError)
    """The rows of an item do not match its values; which record it belongs to is not known yet."""

    def __init__(self, item: int, key: str) -> None:
        super().__init__(item, key)
        self.item, self.key = item, key


def partitioned(feature: RaggedFeature, own: Values, decoded: Decoded) -> tuple[Tensor | RaggedTensor, Ints]:
    """Return the values in rows, and where the rows of each item (a record, or a step) end.

    Args:
        feature: The description.
        own: The values of all items.
        decoded: The features that hold partitions.
    """
    assert own.offsets is not None
    assert not isinstance(own.values, list)
    rows: Tensor | RaggedTensor = Tensor(own.values)
    ends = own.offsets
    splits_dtype = feature.row_splits_dtype.numpy
    for partition in reversed(feature.partitions):
        if isinstance(partition, UniformRowLength):
            rows, ends = _uniform(rows, ends, partition, splits_dtype)
            continue
        stored = decoded[partition.key]
        assert isinstance(stored.values, np.ndarray)
        assert stored.offsets is not None
        if own.steps is not None:
            _check_steps(own.steps, stored.steps, partition.key)
        lengths, counts = _LENGTHS[type(partition)](stored.values, stored.offsets, ends, partition.key)
        splits, new_ends = splits_of(lengths, np.int64), splits_of(counts, np.int64)
        wrong = splits[new_ends] != ends
        if wrong.any():
            raise Misaligned(max(0, int(np.flatnonzero(wrong)[0]) - 1), partition.key)
        rows, ends = RaggedTensor(rows, splits.astype(splits_dtype)), new_ends
    return rows, ends


def _check_steps(own: Ints, others: Ints | None, key: str) -> None:
    assert others is not None
    wrong = own != others
    if wrong.any():
        raise Misaligned(int(own[max(0, int(np.flatnonzero(wrong)[0]) - 1)]), key)


def _uniform(
    rows: Tensor | RaggedTensor, ends: Ints, partition: Partition, splits_dtype: np.dtype[Any]
) -> tuple[Tensor | RaggedTensor, Ints]:
    assert isinstance(partition, UniformRowLength)
    length = partition.length
    odd = np.diff(ends) % length != 0
    if odd.any():
        raise Misaligned(int(np.flatnonzero(odd)[0]), f"rows of {length}")
    ends = ends // length
    if isinstance(rows, Tensor):
        array = np.asarray(rows)
        return Tensor(array.reshape((-1, length, *array.shape[1:]))), ends
    splits = np.arange(ends[-1] + 1, dtype=splits_dtype) * splits_dtype.type(length)
    return RaggedTensor(rows, splits, length), ends


def _of_lengths(numbers: Ints, offsets: Ints, ends: Ints, key: str) -> tuple[Ints, Ints]:
    _refuse(numbers < 0, offsets, key)
    return numbers, np.diff(offsets)


def _of_splits(numbers: Ints, offsets: Ints, ends: Ints, key: str) -> tuple[Ints, Ints]:
    counts = np.diff(offsets)
    first = offsets[:-1][counts > 0]
    _refuse_items(numbers[first] != 0, np.flatnonzero(counts > 0), key)
    lengths = np.diff(numbers, prepend=0)
    keep = np.ones(len(numbers), np.bool_)
    keep[first] = False
    _refuse(keep & (lengths < 0), offsets, key)
    return lengths[keep], np.maximum(counts - 1, 0)


def _of_limits(numbers: Ints, offsets: Ints, ends: Ints, key: str) -> tuple[Ints, Ints]:
    counts = np.diff(offsets)
    lengths = np.diff(numbers, prepend=0)
    first = offsets[:-1][counts > 0]
    lengths[first] = numbers[first]
    _refuse(lengths < 0, offsets, key)
    return lengths, counts


def _of_starts(numbers: Ints, offsets: Ints, ends: Ints, key: str) -> tuple[Ints, Ints]:
    counts = np.diff(offsets)
    there = counts > 0
    _refuse_items(numbers[offsets[:-1][there]] != 0, np.flatnonzero(there), key)
    limits = np.append(numbers[1:], 0)
    limits[offsets[1:][there] - 1] = np.diff(ends)[there]
    lengths = limits - numbers
    _refuse(lengths < 0, offsets, key)
    return lengths, counts


def _of_row_ids(numbers: Ints, offsets: Ints, ends: Ints, key: str) -> tuple[Ints, Ints]:
    counts = np.diff(offsets)
    _refuse_items(counts != np.diff(ends), np.arange(len(counts)), key)
    there = counts > 0
    first = offsets[:-1][there]
    steps = np.diff(numbers, prepend=0)
    steps[first] = numbers[first]
    _refuse(steps < 0, offsets, key)
    rows = np.zeros(len(counts), np.int64)
    rows[there] = numbers[offsets[1:][there] - 1] + 1
    # A row number far beyond the number of values would use memory for empty rows.
    _refuse_items(rows > 2 * counts + 1024 * 1024, np.arange(len(counts)), key)
    placed = numbers + np.repeat(splits_of(rows, np.int64)[:-1], counts)
    return np.bincount(placed, minlength=int(rows.sum())).astype(np.int64), rows


_LENGTHS: dict[type, Callable[..., tuple[Any, Any]]] = {
    RowLengths: _of_lengths,
    RowSplits: _of_splits,
    RowLimits: _of_limits,
    RowStarts: _of_starts,
    ValueRowIds: _of_row_ids,
}


def _refuse(wrong: NDArray[np.bool_], offsets: Ints, key: str) -> None:
    if wrong.any():
        raise Misaligned(int(np.searchsorted(offsets, np.flatnonzero(wrong)[0], "right")) - 1, key)


def _refuse_items(wrong: NDArray[np.bool_], items: Ints, key: str) -> None:
    if wrong.any():
        raise Misaligned(int(items[np.flatnonzero(wrong)[0]]), key)
