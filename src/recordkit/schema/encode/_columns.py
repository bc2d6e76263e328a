"""Columns: checked against their fields, with errors that name field and row, and encoded as records.

The sequence of one row is treated as a column of its steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from recordkit import examples
from recordkit.columns import Batch, Ragged
from recordkit.errors import SchemaError
from recordkit.examples import cut
from recordkit.schema._errors import Misfit, unfit, unknown_name
from recordkit.wording import listed, quoted

from ._items import Converter, as_column, gather_items, item_converter, missing
from ._wire import Flat, add_to, join, states_of, to_wire

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from recordkit.examples import Values
    from recordkit.records import Chunk
    from recordkit.schema.declare import Layout


def gather(layout: Layout, column: Any, *, valid: NDArray[np.bool_] | None = None) -> Flat:
    """Return a column checked against its field.

    Args:
        layout: The field.
        column: One value for each record: an array, a list, a `Ragged`, a `BytesColumn`, or anything NumPy can convert.
        valid: False where the value is missing, whatever the column holds there.

    Raises:
        SchemaError: At the first value that does not fit, naming field and row.
    """
    _check_valid(layout, column, valid)
    if layout.steps:
        return _gather_steps(layout, column, valid)
    try:
        return gather_items(layout, column, valid, optional=layout.field.optional)
    except Misfit as misfit:
        raise unfit(layout.name, layout.expected, misfit, row=misfit.index) from None


def converter(layout: Layout) -> Converter:
    """Return the function that converts the value of one row for `join`, or raises `SchemaError` if it does not fit."""
    convert = _steps_converter(layout) if layout.steps else item_converter(layout)

    def checked(value: Any) -> Any:
        try:
            if value is None:
                raise missing(layout)
            return convert(value)
        except Misfit as misfit:
            raise unfit(layout.name, layout.expected, misfit) from None

    return checked


def _check_valid(layout: Layout, column: Any, valid: NDArray[np.bool_] | None) -> None:
    if valid is None:
        return
    if hasattr(column, "__len__") and valid.shape != (len(column),):
        message = f"{layout.name}: expected a mask of {len(column)} rows, found one of shape {list(valid.shape)}"
        raise SchemaError(message, field=layout.name)
    if layout.field.optional or bool(valid.all()):
        return
    raise unfit(layout.name, layout.expected, missing(layout), row=int(np.flatnonzero(~valid)[0]))


def _gather_steps(layout: Layout, column: Any, valid: NDArray[np.bool_] | None) -> Flat:
    try:
        column = as_column(column)
        inner, steps = _without_first_level(layout, column)
    except Misfit as misfit:
        raise unfit(layout.name, _expected_steps(layout), misfit) from None
    if steps is None:
        return _join_rows(layout, [column[row] for row in range(len(column))], valid)
    try:
        flat = gather_items(layout, inner, None, optional=False)
    except Misfit as misfit:
        raise _unfit_step(layout, misfit, steps) from None
    return Flat(flat.items, flat.values, flat.offsets, flat.dims, flat.ranks, states_of(valid), steps)


def _without_first_level(layout: Layout, column: Any) -> tuple[Any, NDArray[np.int64] | None]:
    """Return the items of all rows as one column, and where each row begins; None in its place for a list of rows."""
    if isinstance(column, np.ndarray) and column.dtype.kind not in "OUST" and layout.storage != "tensor":
        if column.ndim < 2:
            raise Misfit(found="one value a row", advice="A row of a sequence is a list of steps.")
        rows, length = column.shape[:2]
        return column.reshape(rows * length, *column.shape[2:]), np.arange(rows + 1, dtype=np.int64) * length
    if not isinstance(column, Ragged) or layout.storage == "tensor":
        return column, None
    steps = column.offsets[0]
    start, stop = int(steps[0]), int(steps[-1])
    if len(column.offsets) == 1:
        return column.values[start:stop], steps - start
    shapes = None if column.shapes is None else np.repeat(column.shapes[:, 1:], np.diff(steps), axis=0)
    level = column.offsets[1][start : stop + 1]
    return Ragged(column.values, (level, *column.offsets[2:]), shapes), steps - start


def _join_rows(layout: Layout, rows: Sequence[Any], valid: NDArray[np.bool_] | None) -> Flat:
    convert, items = converter(layout), []
    for row, value in enumerate(rows):
        absent = (valid is not None and not valid[row]) or (value is None and layout.field.optional)
        try:
            items.append(None if absent else convert(value))
        except SchemaError as error:
            raise error.but(record=row, where=f"In row {row}.") from None
    return join(layout, items)


def _steps_converter(layout: Layout) -> Converter:
    """Return the function that converts the sequence of one row to a `Flat` of its steps."""

    def convert(value: Any) -> Flat:
        try:
            return gather_items(layout, value, None, optional=False)
        except Misfit as misfit:
            if misfit.index is not None:
                misfit.advice = f"In step {misfit.index}. {misfit.advice}".rstrip()
            raise

    return convert


def _unfit_step(layout: Layout, misfit: Misfit, steps: NDArray[np.int64]) -> SchemaError:
    if misfit.index is None:
        return unfit(layout.name, layout.expected, misfit)
    row = int(np.searchsorted(steps, misfit.index, "right")) - 1
    misfit.advice = f"In step {misfit.index - int(steps[row])}. {misfit.advice}".rstrip()
    return unfit(layout.name, layout.expected, misfit, row=row)


def _expected_steps(layout: Layout) -> str:
    return f"a sequence of {layout.expected}"


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
    """Yield columns as records, about `piece_bytes` at a time; all values are checked before the first chunk."""
    wire, rows = wire_columns(layouts, columns, rows, valid)
    start, count = 0, 64
    while start < rows:
        stop = min(rows, start + count)
        chunk = examples.encode(
            {name: cut(column, start, stop) for name, column in wire.items()}, stop - start, sequence=sequence
        )
        yield chunk
        # Sized by the rows so far, but at most 16 times the last piece.
        count = min(max(1, piece_bytes * len(chunk) // max(1, chunk.nbytes)), 16 * count)
        start = stop


def wire_columns(
    layouts: Mapping[str, Layout],
    columns: Mapping[str, Any] | Batch,
    rows: int | None,
    valid: Mapping[str, NDArray[np.bool_]],
) -> tuple[dict[str, Values], int]:
    """Return the features that store the columns, and the number of rows."""
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
    """Return every column checked against its field, and the number of rows."""
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
    """Return the number of rows; raise unless all columns have that many."""
    lengths = {name: flat.rows for name, flat in flats.items()}
    if rows is None:
        if not lengths:
            message = "the number of rows is unknown without a column\n  Pass rows=."
            raise SchemaError(message)
        rows = next(iter(lengths.values()))
    for name, length in lengths.items():
        if length != rows:
            other = next((f" as {other} has" for other, n in lengths.items() if n == rows), "")
            message = f"{name}: expected {rows} rows{other}, found {length}"
            raise SchemaError(message, field=name, expected=f"{rows} rows", found=f"{length} rows")
    return rows


def flattened(values: Mapping[Any, Any], names: Mapping[str, Any]) -> dict[str, Any]:
    """Return nested dicts as one flat dict with names such as `a/b`; raise for unknown names."""
    flat: dict[str, Any] = {}
    _flatten_into(flat, values, names, "")
    return flat


def _flatten_into(flat: dict[str, Any], values: Mapping[Any, Any], names: Mapping[str, Any], prefix: str) -> None:
    for key, value in values.items():
        if not isinstance(key, str):
            message = f"field names are strings, found {quoted(key)} as one"
            raise SchemaError(message)
        name = prefix + key
        if name in flat:
            message = f"{name}: given twice\n  Once under its full name, once in a nested dict."
            raise SchemaError(message, field=name)
        if name in names:
            flat[name] = value
        elif isinstance(value, Mapping):
            _flatten_into(flat, value, names, f"{name}/")
        elif value is not None or not any(other.startswith(f"{name}/") for other in names):
            # None for a nested dict means that all its fields are missing.
            raise unknown_name(name, names)
