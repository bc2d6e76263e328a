"""Shapes: the shape of every array of a batch, read from its companion feature and checked against the values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from recordkit.examples import EMPTY, PRESENT, Values
from recordkit.schema.values import shape_text
from recordkit.wording import counted

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ._field import DecodedField

# NumPy multiplies all sizes of a shape, even of empty arrays, and the bytes must fit 63 bits.
_MOST_ELEMENTS = 2.0**58


def read_shapes(field: DecodedField, lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the shape of every item, one row each.

    Args:
        field: The field and its companions.
        lengths: The number of elements of each item.
    """
    dims, without = _stored_shapes(field)
    absent = field.missing_items()
    if absent is not None:
        dims[absent] = 0
        without &= ~absent
    if without.any():
        _complete(field, dims, without, lengths)
    _check(field, dims, lengths, absent)
    return dims


def _stored_shapes(field: DecodedField) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the stored shapes, and which items have none."""
    declared = field.layout.shape
    if field.shapes is None:
        return np.zeros((field.items, len(declared or ())), np.int64), np.ones(field.items, np.bool_)
    present, counts, numbers = _by_item(field, field.shapes)
    rank = len(declared) if declared is not None else int(counts[present][0]) if present.any() else 1
    wrong = present & (counts != rank)
    if wrong.any():
        item = int(np.flatnonzero(wrong)[0])
        advice = (
            "Arrays read together must agree in that; declare bytes to read them one by one."
            if declared is None
            else ""
        )
        raise field.error(
            item,
            f"{counted(int(counts[item]), 'number')} in {field.layout.shape_name!r}",
            expected=f"{rank} dimensions",
            advice=advice,
        )
    dims = np.zeros((field.items, rank), np.int64)
    dims[present] = numbers.reshape(-1, rank) if rank else 0
    return dims, ~present


def _by_item(field: DecodedField, shapes: Values) -> tuple[NDArray[np.bool_], NDArray[np.int64], NDArray[np.int64]]:
    """Return which items have a shape, the length of each, and the numbers of all shapes."""
    numbers = np.asarray(shapes.values, np.int64)
    # An empty list is a shape if the number of dimensions is open, and no shape if it is declared.
    least = EMPTY if shapes.count is None or field.own.steps is not None else PRESENT
    present = np.ones(field.rows, np.bool_) if shapes.states is None else shapes.states >= least
    if field.own.steps is not None:
        present = _steps_with_shape(field, shapes, present)
    items = len(present) if field.own.steps is None else int(present.sum())
    offsets = shapes.offsets
    counts = np.diff(offsets) if offsets is not None else np.full(items, shapes.count or 0, np.int64)
    if field.own.steps is None:
        # With a fixed count, records that lack a shape have zeros as placeholders; leave them out.
        return present, counts, numbers[np.repeat(present, counts)]
    all_counts = np.zeros(len(present), np.int64)
    all_counts[present] = counts
    return present, all_counts, numbers


def _steps_with_shape(field: DecodedField, shapes: Values, present: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which steps have a shape: in each record all of them or none."""
    assert field.own.steps is not None
    assert shapes.steps is not None
    lengths, found = np.diff(field.own.steps), np.diff(shapes.steps)
    wrong = present & (lengths != found)
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        item = int(field.own.steps[row])
        raise field.error(item, f"{found[row]} in {field.layout.shape_name!r}", expected=f"{lengths[row]} steps")
    with_shape: NDArray[np.bool_] = np.repeat(present, lengths)
    return with_shape


def _complete(
    field: DecodedField, dims: NDArray[np.int64], without: NDArray[np.bool_], lengths: NDArray[np.int64]
) -> None:
    """Fill in missing shapes that follow from the number of elements."""
    declared = field.layout.shape or ()
    known = int(np.prod([size for size in declared if size is not None], dtype=np.int64))
    if declared.count(None) != 1 or known == 0:
        item = int(np.flatnonzero(without)[0])
        raise field.error(item, f"no {field.layout.shape_name!r} beside it", advice="Without it the shape is unknown.")
    uneven = without & (lengths % known != 0)
    if uneven.any():
        item = int(np.flatnonzero(uneven)[0])
        raise field.error(item, counted(int(lengths[item]), "value"))
    dims[without] = [size or 0 for size in declared]
    dims[without, declared.index(None)] = lengths[without] // known


def unlike(dims: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which shapes contradict the number of elements.

    Both reading and inferring use this, so that every inferred schema can read its records.
    """
    # In floats, since a product of numbers from a file may exceed 64 bits; up to any real length it is exact.
    bad: NDArray[np.bool_] = np.prod(dims, axis=1, dtype=np.float64) != lengths
    bad |= np.prod(np.where(dims == 0, 1, dims), axis=1, dtype=np.float64) > _MOST_ELEMENTS
    bad |= (dims < 0).any(axis=1)
    return bad


def _check(
    field: DecodedField, dims: NDArray[np.int64], lengths: NDArray[np.int64], absent: NDArray[np.bool_] | None
) -> None:
    """Raise unless every shape is allowed and matches the number of elements."""
    bad = unlike(dims, lengths)
    for axis, size in enumerate(field.layout.shape or ()):
        if size is not None:
            bad |= dims[:, axis] != size
    if absent is not None:
        bad &= ~absent
    if bad.any():
        item = int(np.flatnonzero(bad)[0])
        found = f"{counted(int(lengths[item]), 'value')} of shape {shape_text(tuple(dims[item].tolist()))}"
        raise field.error(item, found, advice=f"The shape is from {field.layout.shape_name!r}.")
