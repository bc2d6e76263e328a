"""The buffer of a shuffle: elements in slots, as columns for as long as they come as columns."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from recordkit import _core
from recordkit.columns import Batch

from ._elements import elements

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from ._elements import Values

    _Kind = tuple[np.dtype[Any], tuple[int, ...]]


class ShuffleBuffer:
    """Elements in slots.

    Args:
        values: One for each slot.
    """

    def __init__(self, values: Values) -> None:
        self._size = len(values)
        self._held = _SlotColumns(values) if isinstance(values, Batch) else list(values)

    def __len__(self) -> int:
        return self._size

    def swapped(self, parts: Sequence[Values], slots: NDArray[np.int64]) -> Values:
        """Put the elements of all parts into slots, one after the other, and return what was in them."""
        held = self._held
        if isinstance(held, _SlotColumns):
            batches = [part for part in parts if isinstance(part, Batch) and part.names == held.names]
            if len(batches) == len(parts):
                return self._swapped_columns(held, batches, slots)
            held = self._held = list(held.batch().rows())
        given = []
        values = (element for part in parts for element in elements(part))
        for slot, value in zip(slots.tolist(), values, strict=True):
            given.append(held[slot])
            held[slot] = value
        return given

    def _swapped_columns(self, held: _SlotColumns, batches: list[Batch], slots: NDArray[np.int64]) -> Batch:
        if all(map(held.fits, batches)):
            return held.swapped(batches, slots)
        given, kept = _exchanged([held.batch(), *batches], slots)
        self._held = _SlotColumns(kept)
        return given

    def in_order(self, places: NDArray[np.int64]) -> Values:
        """Return what is in these slots."""
        if isinstance(self._held, _SlotColumns):
            return _picked(self._held.batch(), places)
        return [self._held[place] for place in places.tolist()]


class _SlotColumns:
    """Rows in slots.

    Values of one size are swapped in place, because there may be many slots and few incoming rows. All columns of one
    kind are the lines of one array. Other columns are joined with the incoming rows, and picked from the result.
    """

    def __init__(self, batch: Batch) -> None:
        self.names = batch.names
        self._size = len(batch)
        self._others: list[str] = []
        self._named: dict[_Kind, list[str]] = {}
        for name in batch:
            kind = _kind(batch, name)
            (self._others if kind is None else self._named.setdefault(kind, [])).append(name)
        self._lines = {kind: _lines([batch], names) for kind, names in self._named.items()}
        self._rest = _made(batch.select(*self._others))

    def fits(self, batch: Batch) -> bool:
        """Return whether the columns are of the same kinds."""
        if not batch.masks.keys() <= set(self._others):
            return False
        return all(_are(kind, [batch[name] for name in names]) for kind, names in self._named.items())

    def swapped(self, batches: list[Batch], slots: NDArray[np.int64]) -> Batch:
        """Put the rows of batches that fit into slots, and return what was in them."""
        given: dict[str, Any] = {}
        for kind, names in self._named.items():
            rows = _lines(batches, names)
            _swap(self._lines[kind], rows, slots)
            given.update(zip(names, rows, strict=True))
        if not self._others:
            return self._as_batch(given, Batch({}, len(slots)))
        out, self._rest = _exchanged([self._rest, *(batch.select(*self._others) for batch in batches)], slots)
        return self._as_batch(given, out)

    def batch(self) -> Batch:
        """Return all rows."""
        given: dict[str, Any] = {}
        for kind, names in self._named.items():
            given.update(zip(names, self._lines[kind], strict=True))
        return self._as_batch(given, self._rest)

    def _as_batch(self, lines: dict[str, Any], rest: Batch) -> Batch:
        columns = {name: lines[name] if name in lines else rest[name] for name in self.names}
        return Batch(columns, len(rest), rest.masks)


def _kind(batch: Batch, name: str) -> _Kind | None:
    """Return what the values of a column are; None where they cannot be swapped byte by byte."""
    column = batch[name]
    if type(column) is not np.ndarray or column.dtype.hasobject or name in batch.masks:
        return None
    inner = column.shape[1:]
    return (column.dtype, inner) if column.dtype.itemsize * math.prod(inner) else None


def _are(kind: _Kind, columns: Sequence[Any]) -> bool:
    dtype, inner = kind
    return all(type(c) is np.ndarray and c.dtype == dtype and c.shape[1:] == inner for c in columns)


def _lines(batches: Sequence[Batch], names: Sequence[str]) -> NDArray[Any]:
    """Return columns of one kind as the lines of an array."""
    all_rows = np.concatenate([batch[name] for name in names for batch in batches])
    return np.ascontiguousarray(all_rows.reshape(len(names), -1, *all_rows.shape[1:]))


def _swap(lines: NDArray[Any], rows: NDArray[Any], slots: NDArray[np.int64]) -> None:
    width = lines.itemsize * math.prod(lines.shape[2:])
    _core.swap_rows(_as_bytes(lines), _as_bytes(rows), width, slots)


def _as_bytes(lines: NDArray[Any]) -> NDArray[np.uint8]:
    return lines.reshape(len(lines), -1).view(np.uint8)


def _exchanged(batches: Sequence[Batch], slots: NDArray[np.int64]) -> tuple[Batch, Batch]:
    """Put the rows of the other batches into the first, and return the rows replaced and the new first batch."""
    size = len(batches[0])
    kept, out = np.arange(size), np.arange(size, size + len(slots))
    _swap(kept[None], out[None], slots)  # numbers, in place of the rows
    both = Batch.joined(batches)
    return _picked(both, out), _picked(both, kept)


def _picked(batch: Batch, places: NDArray[np.int64]) -> Batch:
    return _made(batch.take(places))


def _made(batch: Batch) -> Batch:
    """Return a batch without lazy columns, which would keep all batches before it alive."""
    for name in batch:
        batch[name]
    return batch
