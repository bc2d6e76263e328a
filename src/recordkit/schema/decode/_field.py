"""Part: one field of one decoded batch, and how to say where in it something is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from recordkit.examples import EMPTY, PRESENT, Decoded, Values
from recordkit.schema._errors import unreadable

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from recordkit.errors import SchemaError
    from recordkit.schema.declare import Layout


class Part(NamedTuple):
    """The features of one field, as they came from the wire, and where that was.

    Attributes:
        own: The field's own feature.
        shapes: The feature that holds its shape, if it has one.
        dtypes: The feature that holds its dtype's name, if it has one.
        rows: How many records the batch has.
        first: The number of its first record in the file.
        path: The file, to name in errors.
    """

    layout: Layout
    own: Values
    shapes: Values | None
    dtypes: Values | None
    rows: int
    first: int
    path: str | None

    @property
    def items(self) -> int:
        """How many items there are: records, or all their steps."""
        return self.rows if self.own.steps is None else int(self.own.steps[-1])

    def item_of(self, value: int) -> int:
        """Return the item that a value of the field's own feature belongs to."""
        if self.own.offsets is not None:
            return int(np.searchsorted(self.own.offsets, value, "right")) - 1
        return value // (self.own.count or 1)

    def row_of(self, item: int) -> int:
        """Return the record of the batch that an item belongs to."""
        return item if self.own.steps is None else int(np.searchsorted(self.own.steps, item, "right")) - 1

    def fault(self, item: int, found: str, *, expected: str | None = None, advice: str = "") -> SchemaError:
        """Return the error for what stands in an item."""
        row = self.row_of(item)
        if self.own.steps is not None:
            advice = f"In step {item - int(self.own.steps[row])}. {advice}".rstrip()
        expected = expected or self.layout.expected
        return unreadable(self.layout.name, expected, found, record=self.first + row, path=self.path, advice=advice)

    def missing(self) -> NDArray[np.bool_] | None:
        """Return which records lack the field; None when none does."""
        return missing_rows(self.layout, self.own)

    def missing_items(self) -> NDArray[np.bool_] | None:
        """Return which items are only there to keep the place of a missing one; a record without steps has none."""
        return self.missing() if self.own.steps is None else None


def part_of(layout: Layout, decoded: Decoded, first: int, path: str | None) -> Part:
    """Return a field's features out of a decoded batch."""
    shapes = decoded[layout.shape_name] if layout.shape_name is not None else None
    dtypes = decoded[layout.dtype_name] if layout.dtype_name is not None else None
    return Part(layout, decoded[layout.name], shapes, dtypes, len(decoded), first, path)


def missing_rows(layout: Layout, own: Values) -> NDArray[np.bool_] | None:
    """Return which records lack a field; None when none does."""
    if own.states is None:
        return None
    # An empty list is a value where any number will do; where the number is fixed it holds none, so there is nothing.
    fixed = bool(layout.count) and not layout.steps
    absent: NDArray[np.bool_] = own.states < (PRESENT if fixed else EMPTY)
    return absent if absent.any() else None
