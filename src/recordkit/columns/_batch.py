"""Batches: columns of equal length, by name."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _arrow
from ._ragged import join

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set

    from numpy.typing import NDArray

    from ._ragged import Column


class Batch:
    """Columns of equal length, by name.

    A column may be given as a function, which is called on first use.

    Attributes:
        lazy_columns: The columns, with functions for those not used yet.
        masks: For some fields, which rows have a value; in all other fields every row has one.

    >>> from recordkit.columns import BytesColumn
    >>> batch = Batch({"label": np.array([1, 2]), "name": BytesColumn.of(["a", "b"])}, 2)
    >>> batch["label"], batch.names, len(batch)
    (array([1, 2]), ('label', 'name'), 2)
    >>> batch.row(1)
    {'label': np.int64(2), 'name': 'b'}
    >>> batch.valid("name")
    array([ True,  True])
    """

    __slots__ = ("_rows", "lazy_columns", "masks")

    def __init__(
        self,
        columns: Mapping[str, Column | Callable[[], Column]],
        rows: int,
        valid: Mapping[str, NDArray[np.bool_]] | None = None,
    ) -> None:
        self.lazy_columns = dict(columns)
        self._rows = rows
        self.masks = dict(valid) if valid else {}

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self.lazy_columns)

    def __len__(self) -> int:
        return self._rows

    def __iter__(self) -> Iterator[str]:
        return iter(self.lazy_columns)

    def keys(self) -> tuple[str, ...]:
        """The names of the columns, so that `dict(batch)` and `**batch` work."""
        return self.names

    def __contains__(self, name: object) -> bool:
        return name in self.lazy_columns

    def __getitem__(self, name: str) -> Any:
        column = self.lazy_columns[name]
        if callable(column):
            column = self.lazy_columns[name] = column()
        return column

    def valid(self, name: str) -> NDArray[np.bool_]:
        """Return a mask: False where the row has no value for this field."""
        mask = self.masks.get(name)
        if mask is None:
            if name not in self.lazy_columns:
                raise KeyError(name)
            mask = np.ones(self._rows, np.bool_)
        return mask

    def __reduce__(self) -> tuple[Any, ...]:
        return Batch, ({name: self[name] for name in self.lazy_columns}, self._rows, self.masks)

    def beside(self, *others: Batch) -> Batch:
        """Return a batch with the columns of this one and the others, without making any lazy column."""
        batch = Batch(self.lazy_columns, self._rows, self.masks)
        for other in others:
            # A subclass may know more about the origin of its columns than the columns do.
            made = other.lazy_columns
            if type(other) is not Batch:
                made = {name: partial(other.__getitem__, name) for name in other}
            batch.lazy_columns.update(made)
            batch.masks.update(other.masks)
        if type(self) is not Batch:
            batch.lazy_columns.update({name: partial(self.__getitem__, name) for name in self})
        return batch

    def select(self, *names: str) -> Batch:
        """Return a batch of these columns only, in this order, without making any lazy column."""
        columns = {name: self.lazy_columns[name] for name in names}
        return Batch(columns, self._rows, {name: mask for name, mask in self.masks.items() if name in columns})

    def row(self, index: int) -> dict[str, Any]:
        """Return one row as a dict, with None for missing values."""
        index = range(self._rows)[index]
        row = {}
        for name in self.lazy_columns:
            mask = self.masks.get(name)
            row[name] = self[name][index] if mask is None or mask[index] else None
        return row

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield every row as a dict."""
        names = tuple(self.lazy_columns)
        if not names:
            return ({} for _ in range(self._rows))
        columns = [_present(self[name], self.masks.get(name)) for name in names]
        return (dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True))

    def take(self, index: slice | NDArray[Any]) -> Batch:
        """Return some rows, by a slice or an array of row numbers. Columns other than arrays are taken on first use.

        >>> Batch({"label": np.array([1, 2, 3])}, 3).take(slice(1, None))["label"]
        array([2, 3])
        """
        columns = self.lazy_columns
        valid = {name: mask[index] for name, mask in self.masks.items()} if self.masks else None
        if not isinstance(index, slice):
            return Batch({name: partial(_taken, self, name, index) for name in columns}, len(index), valid)
        array = np.ndarray
        # A view costs less than a function that makes it.
        cut = {
            name: column[index] if type(column) is array else partial(_taken, self, name, index)
            for name, column in columns.items()
        }
        return Batch(cut, len(range(*index.indices(self._rows))), valid)

    @staticmethod
    def joined(batches: Sequence[Batch]) -> Batch:
        """Return the rows of all batches, which must have the same column names.

        >>> Batch.joined([Batch({"n": np.array([1])}, 1), Batch({"n": np.array([2, 3])}, 2)])["n"]
        array([1, 2, 3])
        """
        names = batches[0].names
        masked = {name for batch in batches for name in batch.masks}
        valid = {name: np.concatenate([batch.valid(name) for batch in batches]) for name in masked}
        columns = {name: partial(_joined_columns, batches, name) for name in names}
        return Batch(columns, sum(map(len, batches)), valid)

    def __repr__(self) -> str:
        return f"Batch({self._rows} rows: {', '.join(self.names)})"

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        """Offer the batch to Arrow as a struct of its columns: a record batch."""
        return _arrow.export(self._arrow_node())

    def _arrow_node(self) -> _arrow.Node:
        children = [_arrow.node(self[name], name, self.masks.get(name)) for name in self.lazy_columns]
        return _arrow.struct(children, self._rows)


def _present(column: Column, mask: NDArray[np.bool_] | None) -> Iterable[Any]:
    """The values of a column, with None for missing ones."""
    if mask is None:
        return column
    return (value if there else None for value, there in zip(column, mask.tolist(), strict=True))


def _taken(batch: Batch, name: str, index: Any) -> Column:
    taken: Column = batch[name][index]
    return taken


def _joined_columns(batches: Sequence[Batch], name: str) -> Column:
    return join([batch[name] for batch in batches])


def arrow_stream(empty: Batch, batches: Iterable[Batch], optional: Set[str] = frozenset()) -> object:
    """Return batches as an Arrow C stream.

    Args:
        empty: A batch without rows but with the same columns, for their types.
        batches: The batches to stream, taken one at a time.
        optional: The columns that may have missing values.
    """
    children = [_arrow.node(empty[name], name) for name in empty.names]
    children = [_arrow.nullable(child) if child[1] in optional else child for child in children]
    return _arrow.export_stream(_arrow.struct(children, 0), (batch._arrow_node() for batch in batches))
