"""Indexing of ragged tensors by integers, slices, `...` and `tf.newaxis`."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from recordkit.errors import InvalidArgumentError

from ._shape import first_unknown
from ._tensor import Tensor

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ._ragged import RaggedTensor


def item(ragged: RaggedTensor, keys: list[Any]) -> Any:
    """Return `ragged[keys]`."""
    if not keys:
        return ragged
    key, *inner = keys
    if key is Ellipsis:
        return item(ragged, _without_dots(keys, len(ragged.shape)))
    if key is None:
        whole = item(ragged, inner)
        return type(ragged)(whole, np.array([0, len(whole)], ragged.splits.dtype), len(whole))
    if isinstance(key, slice):
        return _within(rows(ragged, np.arange(len(ragged))[_whole(key)]), inner)
    number = _number(key)
    if number >= len(ragged):
        message = f"row {number} of {len(ragged)}"
        raise IndexError(message)
    at = _inside(number, len(ragged))
    values = ragged.values[int(ragged.splits[at]) : int(ragged.splits[at + 1])]
    if isinstance(values, Tensor) and ragged.uniform_row_length is None:
        values.unknown_dims = first_unknown(values.ndim)
    return values[tuple(inner)] if inner else values


def _within(kept: Any, keys: list[Any]) -> Any:
    """Apply keys to every row of a ragged tensor or of a tensor."""
    if not keys:
        return kept
    if isinstance(kept, Tensor):
        return kept[(slice(None), *keys)]
    key, *inner = keys
    if key is Ellipsis:
        return _within(kept, _without_dots(keys, len(kept.values.shape)))
    if key is None:
        whole = _within(kept, inner)
        return type(kept)(whole, np.arange(len(whole) + 1, dtype=kept.splits.dtype), 1)
    if isinstance(key, slice):
        part = _cut(kept, _whole(key))
        return part.with_values(_within(part.values, inner))
    length = kept.uniform_row_length
    if length is None:
        message = "Cannot index into an inner ragged dimension: not every row has this value\n  Use a slice."
        raise ValueError(message)
    picked = np.arange(len(kept)) * length + _inside(_number(key), length)
    return _within(_taken(kept.values, picked), inner)


def rows(ragged: RaggedTensor, picked: NDArray[Any]) -> RaggedTensor:
    """Return these rows of a ragged tensor."""
    starts, lengths = ragged.splits[:-1][picked], np.diff(ragged.splits)[picked]
    return _gathered(ragged, starts, lengths, 1, ragged.uniform_row_length)


def splits_of(lengths: Any, dtype: Any) -> NDArray[Any]:
    """Return where rows of these lengths start, and where the last ends."""
    splits = np.zeros(len(lengths) + 1, dtype)
    np.cumsum(lengths, out=splits[1:])
    return splits


def _cut(ragged: RaggedTensor, key: slice) -> RaggedTensor:
    """Apply a slice to every row."""
    lengths, step = np.diff(ragged.splits), 1 if key.step is None else key.step
    least, most = (np.zeros_like(lengths), lengths) if step > 0 else (np.full_like(lengths, -1), lengths - 1)
    start = _bound(key.start, least if step > 0 else most, lengths, (least, most))
    stop = _bound(key.stop, most if step > 0 else least, lengths, (least, most))
    counts = np.maximum(0, -((start - stop) // step))
    uniform = ragged.uniform_row_length
    length = None if uniform is None else len(range(uniform)[key])
    return _gathered(ragged, ragged.splits[:-1] + start, counts, step, length)


def _bound(
    bound: int | None, default: NDArray[Any], lengths: NDArray[Any], limits: tuple[NDArray[Any], NDArray[Any]]
) -> NDArray[Any]:
    """Return where a slice begins, or ends, in rows of these lengths, by Python's rules for a list."""
    if bound is None:
        return default
    places: NDArray[Any] = np.clip(bound + lengths if bound < 0 else np.full_like(lengths, bound), *limits)
    return places


def _gathered(
    ragged: RaggedTensor, starts: NDArray[Any], counts: NDArray[Any], step: int, uniform: int | None
) -> RaggedTensor:
    """Return rows with these numbers of values, from these starts."""
    splits = splits_of(counts, ragged.splits.dtype)
    picked = np.repeat(starts - step * splits[:-1], counts) + step * np.arange(splits[-1])
    return type(ragged)(_taken(ragged.values, picked), splits, uniform)


def _taken(values: Any, picked: NDArray[Any]) -> Any:
    return values[picked] if isinstance(values, Tensor) else rows(values, picked)


def _without_dots(keys: list[Any], dimensions: int) -> list[Any]:
    """Return keys without a leading `...`, or with one of the dimensions it stands for made explicit."""
    count = sum(key is not None for key in keys)
    if count > dimensions + 1:
        message = f"{count - 1} indices for {dimensions} dimensions of a RaggedTensor"
        raise IndexError(message)
    return keys[1:] if count == dimensions + 1 else [slice(None), *keys]


def _number(key: Any) -> int:
    try:
        return operator.index(key)
    except TypeError:
        message = f"indices are integers, slices, ... and tf.newaxis, found {type(key).__name__}"
        raise TypeError(message) from None


def _whole(key: slice) -> slice:
    """Return a slice with Python's integers."""
    start, stop, step = (None if bound is None else _number(bound) for bound in (key.start, key.stop, key.step))
    if step == 0:
        message = "a slice step cannot be zero"
        raise InvalidArgumentError(message)
    return slice(start, stop, step)


def _inside(number: int, count: int) -> int:
    if not -count <= number < count:
        message = f"index {number} is out of bounds: there are {count}"
        raise InvalidArgumentError(message)
    return number % count
