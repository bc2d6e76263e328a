"""Intake: values and columns as they are handed in, checked, with errors that name field and row.

A row of a sequence is a column of its steps, so that both go the same way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from recordkit.columns import Ragged
from recordkit.errors import SchemaError
from recordkit.schema._errors import Misfit, unfit

from ._flat import Flat, join, states_of
from ._gather import as_column, gather_items
from ._items import Converter, item_converter, missing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from recordkit.schema.declare import Layout


def gather(layout: Layout, column: Any, *, valid: NDArray[np.bool_] | None = None) -> Flat:
    """Return a column checked against its field.

    Args:
        layout: The field it is of.
        column: One value a record: an array, a list, a `Ragged`, a `BytesColumn`, or what NumPy can make an array of.
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
    """Return the function that makes one row's value an item for `join`, raising `SchemaError` if it does not fit."""
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
    """Return the items of every row as one column, and where each row's begin; or no places if they are in a list."""
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
    """Return the function that makes a row's sequence a `Flat` of its steps: a row of steps is a column of items."""

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
