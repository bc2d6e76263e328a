"""Collating: many elements become one batch with the structure of each element."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from recordkit.columns import Batch, BytesColumn, Ragged, join
from recordkit.errors import SchemaError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ._elements import Values

# What to pad ragged rows with: one value for all fields, or a dict by field.
Fill = Any


def collate(values: Values, pad: Fill = None) -> Any:
    """Return one batch of many elements.

    Rows that are still columns become a `Batch`. Others keep their structure of dicts and tuples. Arrays of one shape
    are stacked, those of different shapes become `Ragged`, bytes and text a `BytesColumn`.

    Args:
        values: The elements.
        pad: Pad rows to the longest with this, instead of leaving them ragged; or a dict with a value for each name.

    >>> collate([(1, np.zeros(2)), (2, np.zeros(2))])
    (array([1, 2]), array([[0., 0.],
           [0., 0.]]))
    >>> collate([{"tokens": [7, 8]}, {"tokens": [9]}], pad=0)["tokens"]
    array([[7, 8],
           [9, 0]])
    """
    if isinstance(values, Batch):
        return values if pad is None else padded_batches(values, max(1, len(values)), pad)[0]
    return _collated(values, pad, "")


def _collated(values: Sequence[Any], pad: Fill, where: str) -> Any:
    first = values[0]
    if isinstance(first, Mapping | Batch):
        return {
            name: _collated(_by_name(values, name, where), _fill(pad, name), _inside(where, name)) for name in first
        }
    if isinstance(first, tuple):
        return _collated_tuple(values, pad, where)
    if isinstance(first, bytes | str | bytearray | memoryview):
        return _texts(values, where)
    return _arrays(values, _fill(pad, where), where)


def _by_name(values: Sequence[Any], name: Any, where: str) -> list[Any]:
    names = list(values[0])
    for i, value in enumerate(values):
        if not isinstance(value, Mapping | Batch) or (list(value) != names and set(value) != set(names)):
            found = sorted(map(str, value)) if isinstance(value, Mapping | Batch) else type(value).__name__
            raise _unlike(where, i, f"the names {sorted(map(str, names))}", str(found))
    return [value[name] for value in values]


def _collated_tuple(values: Sequence[Any], pad: Fill, where: str) -> Any:
    first = values[0]
    for i, value in enumerate(values):
        if not isinstance(value, tuple) or len(value) != len(first):
            raise _unlike(where, i, f"a tuple of {len(first)}", _kind(value))
    items = [_collated(column, pad, _inside(where, at)) for at, column in enumerate(zip(*values, strict=True))]
    return type(first)(*items) if hasattr(first, "_fields") else tuple(items)


def _texts(values: Sequence[Any], where: str) -> BytesColumn:
    text = isinstance(values[0], str)
    for i, value in enumerate(values):
        if isinstance(value, str) is not text or not isinstance(value, str | bytes | bytearray | memoryview):
            raise _unlike(where, i, "text" if text else "bytes", _kind(value))
    return BytesColumn.of(values, text=text)


def _arrays(values: Sequence[Any], pad: Fill, where: str) -> Any:
    if isinstance(values[0], int | float | np.number) and all(type(value) is type(values[0]) for value in values):
        numbers = np.array(values)
        if numbers.dtype.kind != "f" or not isinstance(values[0], int):
            return numbers if numbers.dtype != object else list(values)
    for i, value in enumerate(values):
        if value is None:
            message = f"{_named(where)}element {i} of {len(values)} is None\n  Give it a value, or filter it out."
            raise SchemaError(message)
    if isinstance(values[0], BytesColumn | Ragged):
        return _nested(values, pad)
    arrays = _as_arrays(values)
    if len(set(map(_family, arrays))) > 1:
        raise _unlike(where, *_other(arrays, _family))
    if arrays[0].dtype == object:
        return list(values)  # what NumPy has no type for
    if any(isinstance(value, list) for value in values) and arrays[0].dtype.kind in "SU":
        return _listed_texts(values, pad, where)
    whole = all(array.dtype.kind in "biu" for array in arrays)
    if whole and np.result_type(*{array.dtype for array in arrays}).kind == "f":  # which would not hold all of them
        raise _unlike(where, *_other(arrays, lambda array: str(array.dtype)))
    if len({array.shape for array in arrays}) == 1:
        return np.stack(arrays)
    if len({array.ndim for array in arrays}) > 1:
        raise _unlike(where, *_other(arrays, lambda array: f"{array.ndim} dimensions"))
    ragged = _ragged(arrays)
    return ragged if pad is None else ragged.to_padded(pad)


def _as_arrays(values: Sequence[Any]) -> list[np.ndarray[Any, Any]]:
    arrays = [np.asarray(value) for value in values]
    if not any(isinstance(value, list) and not value for value in values):
        return arrays
    # An empty list has no type of its own.
    kind = next((array.dtype for array in arrays if array.size), arrays[0].dtype)
    pairs = zip(values, arrays, strict=True)
    return [array.astype(kind) if isinstance(value, list) and not value else array for value, array in pairs]


def _family(array: np.ndarray[Any, Any]) -> str:
    kind = array.dtype.kind
    return "a number" if kind in "biufc" else {"O": "an object", "S": "bytes", "U": "text"}.get(kind, str(array.dtype))


def _listed_texts(values: Sequence[Any], pad: Fill, where: str) -> Any:
    """Collate lists of texts or bytes, from which NumPy would strip trailing zeros."""
    first = next(item for value in values for item in value)
    if not isinstance(first, bytes | str):
        return list(values)  # lists of lists
    text = isinstance(first, str)
    return _nested([BytesColumn.of(value, text=text) for value in values], pad)


def _ragged(arrays: Sequence[np.ndarray[Any, Any]]) -> Ragged:
    flat = np.concatenate([array.ravel() for array in arrays])
    if arrays[0].ndim == 1:
        return Ragged(flat, (_running(map(len, arrays)),))
    return Ragged.rectangular(flat, np.array([array.shape for array in arrays], np.int64))


def _nested(values: Sequence[Any], pad: Fill) -> Any:
    """Collate rows that each hold a column: different numbers of texts, or lists of lists."""
    if not all(isinstance(value, BytesColumn) and len(value.shape) == 1 for value in values):
        return list(values)
    if len({value.shape for value in values}) == 1:
        return join([value.reshape((1, *value.shape)) for value in values])
    texts = join(values)
    assert isinstance(texts, BytesColumn)
    ragged = Ragged(texts, (_running(map(len, values)),))
    return ragged if pad is None else ragged.to_padded(pad)


def padded_batches(batch: Batch, size: int, pad: Fill) -> list[Batch]:
    """Return the rows of a batch in padded batches of `size` each, the last one shorter."""
    if isinstance(pad, Mapping) and (unknown := [name for name in pad if name not in batch]):
        message = f"pad: there is no field {unknown[0]!r}\n  The fields are {', '.join(batch.names)}."
        raise SchemaError(message, field=str(unknown[0]))
    starts = range(0, max(1, len(batch)), size)
    columns = {name: _padded(name, batch[name], starts, _fill(pad, name)) for name in batch.names}
    masks = {name: [mask[start : start + size] for start in starts] for name, mask in batch.masks.items()}
    return [
        Batch(
            {name: made[i] for name, made in columns.items()},
            min(size, len(batch) - start),
            {name: made[i] for name, made in masks.items()},
        )
        for i, start in enumerate(starts)
    ]


def _padded(name: str, column: Any, starts: range, fill: Any) -> list[Any]:
    if not isinstance(column, Ragged) or fill is None:
        return [column] if len(starts) == 1 else [column[start : start + starts.step] for start in starts]
    try:
        return [column.to_padded(fill)] if len(starts) == 1 else column.padded_batches(starts.step, fill)
    except (OverflowError, TypeError, ValueError) as error:
        message = f"{name}: cannot be padded with {fill!r}: {error}\n  Pass a pad= value that fits, or a dict by field."
        raise SchemaError(message, field=name, found=repr(fill)) from None


def _fill(pad: Fill, name: Any) -> Any:
    return pad.get(name) if isinstance(pad, Mapping) else pad


def _running(lengths: Iterable[int]) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.concatenate([[0], np.cumsum(np.fromiter(lengths, np.int64))]).astype(np.int64)


def _other(values: Sequence[Any], kind: Callable[[Any], str]) -> tuple[int, str, str]:
    at = next(i for i, value in enumerate(values) if kind(value) != kind(values[0]))
    return at, kind(values[0]), kind(values[at])


def _kind(value: Any) -> str:
    return f"a tuple of {len(value)}" if isinstance(value, tuple) else type(value).__name__


def _inside(where: str, name: Any) -> str:
    return f"{where}/{name}" if where else str(name)


def _named(where: str) -> str:
    return f"{where}: " if where else ""


def _unlike(where: str, at: int, expected: str, found: str) -> SchemaError:
    message = (
        f"{_named(where)}elements of a batch must have the same structure: expected {expected} as in the first, "
        f"found {found} in element {at}\n  Return the same structure from map for each element."
    )
    return SchemaError(message, expected=expected, found=found)
