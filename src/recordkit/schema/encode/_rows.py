"""Rows: dicts, checked one by one and collected into chunks of records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from recordkit import dtypes, examples
from recordkit._core import RowBuilder
from recordkit.columns import BytesColumn
from recordkit.errors import SchemaError
from recordkit.images import SIGNATURES
from recordkit.wording import listed

from ._columns import converter, flattened
from ._wire import Flat, add_to, join, to_wire

if TYPE_CHECKING:
    from recordkit.examples import Values
    from recordkit.images import Kind
    from recordkit.records import Chunk
    from recordkit.schema.declare import Layout

    from ._items import Converter


class RowEncoder:
    """Collects rows and returns chunks of framed records.

    Made by `Schema.encoder`, for use by one thread.

    >>> from recordkit.schema import Schema
    >>> encoder = Schema({"id": "int64", "note": "string?"}).encoder()
    >>> encoder.append({"id": 7})
    >>> encoder.append({"id": 8, "note": "seen"})
    >>> len(encoder), len(encoder.take()), len(encoder)
    (2, 2, 0)
    """

    def __init__(self, layouts: Iterable[Layout], *, sequence: bool) -> None:
        self._layouts = tuple(layouts)
        self._sequence = sequence
        names = {layout.name: layout for layout in self._layouts}
        self._builder = RowBuilder([_spec(layout) for layout in self._layouts], lambda row: flat_row(row, names))

    def __len__(self) -> int:
        return len(self._builder)

    def append(self, row: Mapping[str, Any]) -> None:
        """Add a row.

        Raises:
            SchemaError: The row does not fit the schema. Nothing of it is kept.
        """
        self._builder.append(row)

    def take(self) -> Chunk:
        """Return the rows so far as records, and start again."""
        rows = len(self._builder)
        columns: dict[str, Values] = {}
        for layout, taken in zip(self._layouts, self._builder.take(), strict=True):
            add_to(columns, to_wire(layout, _flat_of(layout, taken, rows)), layout.name)
        return examples.encode(columns, rows, sequence=self._sequence)


def _operation(layout: Layout) -> str:
    """Return how the row builder takes values without Python's help: only if every value of that Python type fits."""
    if layout.steps or layout.storage != "list" or layout.shape != ():
        return "object"
    if layout.dtype in dtypes.INTEGERS:
        return "int"
    return {"float32": "float", "string": "text", "bytes": "bytes"}.get(layout.dtype, "object")


def _spec(layout: Layout) -> tuple[str, str, int, int, bool, Any]:
    operation = _operation(layout)
    low, high = dtypes.bounds(layout.dtype) if operation == "int" else (0, 0)
    return layout.name, operation, low, high, layout.field.optional, _plain(layout, operation)


def _plain(layout: Layout, operation: str) -> Converter:
    """Return a converter whose results the row builder accepts: exactly int, float, bytes or str."""
    convert = converter(layout)
    if operation == "float":
        return lambda value: float(convert(value))
    if operation == "text":
        return lambda value: convert(value).decode()
    if operation != "object":
        return convert
    signature = SIGNATURES.get(cast("Kind", layout.dtype))
    if signature is not None and layout.shape == () and not layout.steps:
        # Most pictures are given as the bytes of a file.
        return lambda value: value if type(value) is bytes and value.startswith(signature) else convert(value)
    return lambda value: _owned(convert(value), value)


def _owned(converted: Any, value: Any) -> Any:
    """Return a converted value in its own memory: the caller may use an array again for the next row."""
    if isinstance(converted, np.ndarray):
        return converted.copy() if converted is value or not converted.flags.owndata else converted
    # Any step of a sequence may be the caller's array.
    return deepcopy(converted) if isinstance(converted, Flat) else converted


def _flat_of(layout: Layout, taken: Any, rows: int) -> Flat:
    """Return what the row builder collected for one field."""
    operation = _operation(layout)
    if operation == "object":
        return join(layout, taken[0])
    if operation in ("int", "float", "bytes"):
        values, states = taken
        return Flat(rows, values, states=states)
    data, offsets, states = taken
    return Flat(rows, BytesColumn(data, offsets), states=states)


def flat_row(row: Any, names: Mapping[str, Layout]) -> dict[str, Any]:
    """Return a row with nested dicts flattened to `a/b`, after a check that no required field is missing.

    Raises:
        SchemaError: It is not a dict, lacks a field, or has one that is not in the schema.
    """
    if not isinstance(row, Mapping):
        message = f"a row is a dict of field names and values, found {type(row).__name__}"
        raise SchemaError(message)
    flat = flattened(row, names)
    for name, layout in names.items():
        if name not in flat and not layout.field.optional:
            hint = f"The row has {listed(map(str, row))}." if row else "The row is empty."
            message = f"{name}: missing from the row\n  {hint} {layout.if_missing}"
            raise SchemaError(message, field=name, expected=layout.expected, found="nothing")
    return flat
