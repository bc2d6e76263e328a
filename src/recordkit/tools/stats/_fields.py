"""Statistics of one field: its presence, its lengths and its values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from recordkit.columns import Ragged
from recordkit.errors import SchemaError

from ._contents import NumberStats, ValueSummary, kind_of, most
from ._counting import TopValues
from ._neighbours import Neighbours

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from recordkit.columns import Column

    from ._contents import Content, Top


@dataclass(frozen=True)
class FieldStats(ValueSummary):
    """The statistics of a field.

    `min` to `histogram` are about its numbers, without NaN and infinities. They are None for byte strings and complex
    numbers.

    Attributes:
        name: The field's name.
        type: Its type, in the schema language.
        records: The number of records read.
        missing: The number of those without the field.
        values: The number of values in the others.
        nan: The number of NaN, or of times that are NaT.
        inf: The number of infinite values.
        zeros: The number of values that are zero or False.
        lengths: The number of values in a record, if it varies.
        sizes: The number of bytes of a value, for byte strings.
        shapes: The most common shapes: of arrays, if they vary, and of pictures, as [height, width, channels] from
            their headers.
        shapes_exact: Whether the counts of shapes are exact, rather than lower bounds.
        bad_pictures: The number of values of a jpeg or png field without such a header.
        top: The most common integers, texts or short byte strings. Long texts are cut.
        top_exact: Whether their counts are exact, rather than lower bounds.
        distinct: The number of different values.
        distinct_exact: Whether that number is exact; otherwise its standard error is 1.6%.
        samples: The first texts, cut.
        neighbours: How different the numbers of consecutive records are: about 1 if the order is random, as after a
            shuffle, and near 0 if they are sorted or come in runs. None if records do not have one number each.
    """

    name: str = ""
    type: str = ""
    records: int = 0
    missing: int = 0
    values: int = 0
    nan: int = 0
    inf: int = 0
    zeros: int = 0
    lengths: ValueSummary | None = None
    sizes: ValueSummary | None = None
    shapes: tuple[Top, ...] = ()
    shapes_exact: bool = True
    bad_pictures: int = 0
    top: tuple[Top, ...] = ()
    top_exact: bool = True
    distinct: int | None = None
    distinct_exact: bool = True
    samples: tuple[str, ...] = ()
    neighbours: float | None = None


class Gatherer:
    """Computes the statistics of one field, batch by batch.

    >>> gatherer = Gatherer("tokens", "int64[?]")
    >>> gatherer.add(Ragged(np.array([7, 8, 9]), (np.array([0, 2, 2, 3]),)), np.array([True, False, True]))
    >>> stats = gatherer.result()
    >>> stats.records, stats.missing, stats.values, stats.max, stats.lengths.mean
    (3, 1, 3, 9, 1.5)
    """

    def __init__(self, name: str, type: str) -> None:  # noqa: A002 - the word of FieldStats
        self._name = name
        self._type = type
        self._records = 0
        self._missing = 0
        self._lengths = NumberStats()
        self._shapes = TopValues()
        self._content: Content | None = None
        self._neighbours = Neighbours()

    def add(self, column: Column, valid: NDArray[np.bool_]) -> None:
        """Add a column, with a mask that is False where a value is missing."""
        self._records += len(valid)
        missing = len(valid) - int(valid.sum())
        self._missing += missing
        present = column[valid] if missing else column
        if isinstance(present, np.ndarray) and present.ndim == 1 and present.dtype.kind in "biuf":
            self._neighbours.add(present)
        self._add_present(present)

    def _add_present(self, column: Column) -> None:
        if isinstance(column, Ragged):
            self._lengths.add(_lengths(column))
            if column.shapes is not None and column.shapes.shape[1] > 1:
                found, counts = np.unique(column.shapes, axis=0, return_counts=True)
                self._shapes.add_all(zip(map(tuple, found.tolist()), counts.tolist(), strict=True))
            column = column.values
        kind = kind_of(column)
        if self._content is None:
            self._content = kind(self._type)
        elif type(self._content) is not kind:
            raise self._mixed(type(self._content).what, kind.what)
        self._content.add(column)

    def _mixed(self, one: str, other: str) -> SchemaError:
        message = (
            f"{self._name}: it holds {one} in some records, {other} in others\n  Leave it out, or open it as bytes."
        )
        return SchemaError(message, field=self._name, expected=one, found=other)

    def merge(self, other: Gatherer) -> None:
        """Add the statistics of another part of the same field."""
        self._records += other._records
        self._missing += other._missing
        self._lengths.merge(other._lengths)
        self._shapes.merge(other._shapes)
        self._neighbours.merge(other._neighbours)
        if self._content is None:
            self._content = other._content
        elif other._content is not None:
            if type(self._content) is not type(other._content):
                raise self._mixed(type(self._content).what, type(other._content).what)
            self._content.merge(other._content)

    def result(self) -> FieldStats:
        """Return the statistics so far."""
        facts: dict[str, Any] = {"shapes": most(self._shapes), "shapes_exact": self._shapes.exact}
        if self._lengths.moments.count:
            facts["lengths"] = ValueSummary(**self._lengths.summary())
        if self._content is not None:
            facts |= self._content.facts()
        facts["neighbours"] = self._neighbours.result()
        return FieldStats(name=self._name, type=self._type, records=self._records, missing=self._missing, **facts)


def _lengths(column: Ragged) -> NDArray[np.int64]:
    """Return the number of values in each row, over all dimensions."""
    if column.shapes is not None:
        return np.asarray(column.shapes.prod(axis=1, dtype=np.int64))
    ends = np.arange(len(column) + 1)
    for level in column.offsets:
        ends = level[ends]
    return np.diff(ends) * int(np.prod(column.values.shape[1:], dtype=np.int64))
