"""Decoded fields: the features of one field of one batch, and errors that name the record."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from recordkit.examples import EMPTY, PRESENT, Decoded, Values
from recordkit.schema._errors import unreadable

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from recordkit.errors import SchemaError
    from recordkit.schema.declare import Layout


class DecodedField(NamedTuple):
    """The features of one field as decoded, and the records they are from.

    Attributes:
        own: The field's own feature.
        shapes: The feature that holds its shape, if it has one.
        dtypes: The feature that holds its dtype's name, if it has one.
        rows: The number of records in the batch.
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
        """The number of items: records, or all their steps."""
        return self.rows if self.own.steps is None else int(self.own.steps[-1])

    def item_of(self, value: int) -> int:
        """Return the item that holds a value of the field's own feature."""
        if self.own.offsets is not None:
            return int(np.searchsorted(self.own.offsets, value, "right")) - 1
        return value // (self.own.count or 1)

    def row_of(self, item: int) -> int:
        """Return the record that holds an item."""
        return item if self.own.steps is None else int(np.searchsorted(self.own.steps, item, "right")) - 1

    def error(self, item: int, found: str, *, expected: str | None = None, advice: str = "") -> SchemaError:
        """Return the error for a bad value in an item."""
        row = self.row_of(item)
        if self.own.steps is not None:
            advice = f"In step {item - int(self.own.steps[row])}. {advice}".rstrip()
        expected = expected or self.layout.expected
        return unreadable(self.layout.name, expected, found, record=self.first + row, path=self.path, advice=advice)

    def missing(self) -> NDArray[np.bool_] | None:
        """Return which records lack the field; None when none does."""
        return missing_rows(self.layout, self.own)

    def missing_items(self) -> NDArray[np.bool_] | None:
        """Return which items are placeholders for missing ones; None for sequences, which need no placeholders."""
        return self.missing() if self.own.steps is None else None


def decoded_field(layout: Layout, decoded: Decoded, first: int, path: str | None) -> DecodedField:
    """Return a field's features from a decoded batch."""
    shapes = decoded[layout.shape_name] if layout.shape_name is not None else None
    dtypes = decoded[layout.dtype_name] if layout.dtype_name is not None else None
    return DecodedField(layout, decoded[layout.name], shapes, dtypes, len(decoded), first, path)


def missing_rows(layout: Layout, own: Values) -> NDArray[np.bool_] | None:
    """Return which records lack a field; None when none does."""
    if own.states is None:
        return None
    # If any number of values is allowed, an empty list is a value; if the number is fixed, it means missing.
    fixed = bool(layout.count) and not layout.steps
    absent: NDArray[np.bool_] = own.states < (PRESENT if fixed else EMPTY)
    return absent if absent.any() else None
