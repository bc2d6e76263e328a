"""Columns, as records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from recordkit import examples
from recordkit.columns import Batch
from recordkit.errors import SchemaError
from recordkit.examples import cut
from recordkit.wording import listed

from ._flat import Flat, join
from ._intake import gather
from ._rows import flattened
from ._wire import add_to, to_wire

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from recordkit.examples import Values
    from recordkit.records import Chunk
    from recordkit.schema.declare import Layout


def encode_columns(
    layouts: Mapping[str, Layout],
    columns: Mapping[str, Any] | Batch,
    rows: int | None,
    valid: Mapping[str, NDArray[np.bool_]],
    *,
    sequence: bool,
) -> Chunk:
    """Return columns as records."""
    wire, rows = wire_columns(layouts, columns, rows, valid)
    return examples.encode(wire, rows, sequence=sequence)


def encode_pieces(
    layouts: Mapping[str, Layout],
    columns: Mapping[str, Any] | Batch,
    rows: int | None,
    valid: Mapping[str, NDArray[np.bool_]],
    piece_bytes: int,
    *,
    sequence: bool,
) -> Iterator[Chunk]:
    """Yield columns as records, about `piece_bytes` at a time; all of them are checked before the first is given."""
    wire, rows = wire_columns(layouts, columns, rows, valid)
    start, count = 0, 64
    while start < rows:
        stop = min(rows, start + count)
        chunk = examples.encode(
            {name: cut(column, start, stop) for name, column in wire.items()}, stop - start, sequence=sequence
        )
        yield chunk
        # As many as those before say, yet not on the word of a few.
        count = min(max(1, piece_bytes * len(chunk) // max(1, chunk.nbytes)), 16 * count)
        start = stop


def wire_columns(
    layouts: Mapping[str, Layout],
    columns: Mapping[str, Any] | Batch,
    rows: int | None,
    valid: Mapping[str, NDArray[np.bool_]],
) -> tuple[dict[str, Values], int]:
    """Return columns as the features that store them, and how many rows there are."""
    flats, rows = gather_columns(layouts, columns, rows, valid)
    wire: dict[str, Values] = {}
    for name, flat in flats.items():
        add_to(wire, to_wire(layouts[name], flat), name)
    return wire, rows


def gather_columns(
    layouts: Mapping[str, Layout],
    columns: Mapping[str, Any] | Batch,
    rows: int | None,
    valid: Mapping[str, NDArray[np.bool_]],
) -> tuple[dict[str, Flat], int]:
    """Return every column checked against its field, and how many rows there are."""
    if isinstance(columns, Batch):
        batch, rows = columns, len(columns)
        valid = {name: batch.valid(name) for name in batch.names} | dict(valid)
        columns = {name: batch[name] for name in batch.names}
    given = flattened(columns, layouts)
    masks = {name: np.asarray(mask, np.bool_) for name, mask in flattened(valid, layouts).items()}
    flats: dict[str, Flat] = {}
    for name, layout in layouts.items():
        if name in given and given[name] is not None:
            flats[name] = gather(layout, given[name], valid=masks.get(name))
        elif not layout.field.optional:
            raise _no_column(layout, given)
    rows = _row_count(flats, rows)
    return {name: flats.get(name) or join(layout, [None] * rows) for name, layout in layouts.items()}, rows


def _no_column(layout: Layout, given: Mapping[str, Any]) -> SchemaError:
    hint = f"The columns are {listed(given)}." if given else "There are no columns."
    message = f"{layout.name}: missing from the columns\n  {hint} {layout.if_missing}"
    return SchemaError(message, field=layout.name, expected=layout.expected, found="nothing")


def _row_count(flats: Mapping[str, Flat], rows: int | None) -> int:
    """Return how many rows there are, which every column must have."""
    lengths = {name: flat.rows for name, flat in flats.items()}
    if rows is None:
        if not lengths:
            message = "there is no column to count the rows of\n  Say how many there are: rows=."
            raise SchemaError(message)
        rows = next(iter(lengths.values()))
    for name, length in lengths.items():
        if length != rows:
            other = next((f" as {other} has" for other, n in lengths.items() if n == rows), "")
            message = f"{name}: expected {rows} rows{other}, found {length}"
            raise SchemaError(message, field=name, expected=f"{rows} rows", found=f"{length} rows")
    return rows
