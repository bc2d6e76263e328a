"""Scan: the records that match a filter, or come first when sorted by a field. A job in bounded memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from recordkit.columns import BytesColumn, Ragged
from recordkit.dtypes import widen_floats
from recordkit.errors import SchemaError
from recordkit.expressions import Expression

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from recordkit.columns import Batch, Column

    from ._dataset_view import DatasetView
    from ._jobs import Tell

_MOST_FOUND: Final = 1_000_000
_MOST_SORTED: Final = 10_000
_KEY_LETTERS: Final = 80


class Scan:
    """Reads all records, and collects the numbers of those that match.

    Args:
        view: The dataset.
        where: A filter; empty for all records.
        sort: The field to sort by; empty for the order of the dataset.
        descending: Whether the largest come first.

    Raises:
        ValueError: The filter is not a valid expression.
        SchemaError: The fields cannot be filtered or sorted like this.
    """

    def __init__(self, view: DatasetView, where: str = "", sort: str = "", *, descending: bool = False) -> None:
        if view.schema is None:
            message = "these records have no fields to filter or sort by"
            raise SchemaError(message)
        self._view = view
        self._where = Expression(where) if where.strip() else None
        if self._where is not None:
            self._where.check(view.schema)
        if sort:
            view.schema.select(sort)  # raises if there is no such field
        self._names = tuple(dict.fromkeys([*(self._where.names if self._where else ()), *([sort] if sort else ())]))
        self._sort = sort
        self._first = First(_MOST_SORTED, descending=descending) if sort else None
        self._pieces: list[NDArray[np.int64]] = []
        self._kept = 0
        self.found = 0
        self._at = 0

    def run(self, tell: Tell) -> None:
        """Continue through the records."""
        for batch, numbers, at in self._view.batches(self._at, self._names):
            if len(batch):
                self._take(batch, numbers)
            self._at = at
            tell(at, self._view.count, "records")

    def _take(self, batch: Batch, numbers: NDArray[np.int64]) -> None:
        mask = self._where.mask(batch) if self._where is not None else np.ones(len(batch), np.bool_)
        if self._first is not None:
            mask = mask & batch.valid(self._sort)
        if not mask.any():
            return
        wanted = numbers[mask]
        if self._first is not None:
            keys = _keys(batch[self._sort], self._sort)[mask]
            self.found += self._first.add(keys, wanted)
            return
        self.found += len(wanted)
        room = _MOST_FOUND - self._kept
        if room > 0:
            self._pieces.append(wanted[:room])
            self._kept += len(self._pieces[-1])

    def numbers(self, start: int, count: int) -> list[int]:
        """Return some of the records found so far."""
        if self._first is not None:
            first: list[int] = self._first.numbers[start : start + count].tolist()
            return first
        if len(self._pieces) > 1:  # the adding thread sees the old or the new list, and both are valid
            pieces = list(self._pieces)
            self._pieces[: len(pieces)] = [np.concatenate(pieces)]
        found: list[int] = self._pieces[0][start : start + count].tolist() if self._pieces else []
        return found

    def result(self) -> dict[str, Any]:
        """Return how many were found, and how many of them can be shown."""
        shown = len(self._first.numbers) if self._first is not None else self._kept
        return {"found": self.found, "shown": shown, "sort": self._sort}


class First:
    """The records with the smallest or the largest keys; of equal keys, the first ones.

    >>> first = First(2, descending=True)
    >>> first.add(np.array([5, 9, 7]), np.array([0, 1, 2]))
    3
    >>> first.numbers.tolist()
    [1, 2]
    """

    def __init__(self, most: int, *, descending: bool) -> None:
        self._most = most
        self._descending = descending
        self._keys: NDArray[Any] | None = None
        self.numbers: NDArray[np.int64] = np.empty(0, np.int64)

    def add(self, keys: NDArray[Any], numbers: NDArray[np.int64]) -> int:
        """Add records, and return how many have a key: NaN is not a key."""
        if keys.dtype.kind in "fmM":
            there = ~np.isnan(keys)
            keys, numbers = keys[there], numbers[there]
        taken = len(keys)
        if self._keys is not None and len(self._keys) == self._most:
            worst = self._keys[-1]
            better = np.asarray(keys > worst if self._descending else keys < worst, np.bool_)
            keys, numbers = keys[better], numbers[better]
        if self._keys is not None:
            keys, numbers = np.concatenate([self._keys, keys]), np.concatenate([self.numbers, numbers])
        if self._descending:  # reversed twice, so that equal keys keep their order
            order = (len(keys) - 1 - np.argsort(keys[::-1], kind="stable"))[::-1]
        else:
            order = np.argsort(keys, kind="stable")
        self._keys, self.numbers = keys[order[: self._most]], numbers[order[: self._most]]
        return taken


def _keys(column: Column, name: str) -> NDArray[Any]:
    """Return the sort keys: numbers and texts themselves, lists and byte strings by length."""
    if isinstance(column, Ragged):
        return np.diff(column.offsets[0])
    if isinstance(column, BytesColumn):
        if len(column.shape) > 1:
            return _no_order(name)
        if not column.text:
            return column.lengths
        keys = np.empty(len(column), object)
        keys[:] = [str(value)[:_KEY_LETTERS] for value in column]
        return keys
    if column.ndim > 1:
        return _no_order(name)
    if column.dtype.kind == "c":
        return np.abs(column)
    return widen_floats(column)


def _no_order(name: str) -> NDArray[Any]:
    message = f"{name}: cannot sort by arrays of a fixed shape"
    raise SchemaError(message, field=name)
