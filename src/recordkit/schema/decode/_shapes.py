"""Shapes: the sizes of every array of a batch, read from the feature beside it and checked against the values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from recordkit.examples import EMPTY, PRESENT, Values
from recordkit.schema.values import shape_text
from recordkit.wording import counted

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ._field import Part

# NumPy multiplies all sizes of a shape, empty arrays' too, and must stay within 63 bits of bytes.
_MOST_ELEMENTS = 2.0**58


def read_shapes(part: Part, lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the shape of every item, one row each.

    Args:
        part: The field and the features beside it.
        lengths: How many elements each item has.
    """
    dims, without = _stored_shapes(part)
    absent = part.missing_items()
    if absent is not None:
        dims[absent] = 0
        without &= ~absent
    if without.any():
        _complete(part, dims, without, lengths)
    _check(part, dims, lengths, absent)
    return dims


def _stored_shapes(part: Part) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the sizes as they are stored, and which items have none."""
    declared = part.layout.shape
    if part.shapes is None:
        return np.zeros((part.items, len(declared or ())), np.int64), np.ones(part.items, np.bool_)
    present, counts, numbers = _by_item(part, part.shapes)
    rank = len(declared) if declared is not None else int(counts[present][0]) if present.any() else 1
    wrong = present & (counts != rank)
    if wrong.any():
        item = int(np.flatnonzero(wrong)[0])
        advice = (
            "Arrays read together must agree in that; declare bytes to read them one by one."
            if declared is None
            else ""
        )
        raise part.fault(
            item,
            f"{counted(int(counts[item]), 'number')} in {part.layout.shape_name!r}",
            expected=f"{rank} dimensions",
            advice=advice,
        )
    dims = np.zeros((part.items, rank), np.int64)
    dims[present] = numbers.reshape(-1, rank) if rank else 0
    return dims, ~present


def _by_item(part: Part, shapes: Values) -> tuple[NDArray[np.bool_], NDArray[np.int64], NDArray[np.int64]]:
    """Return which items have a shape, how many numbers each has, and the numbers of those that have one."""
    numbers = np.asarray(shapes.values, np.int64)
    # An empty list is a shape where the number of dimensions is open, and none where it is declared.
    least = EMPTY if shapes.count is None or part.own.steps is not None else PRESENT
    present = np.ones(part.rows, np.bool_) if shapes.states is None else shapes.states >= least
    if part.own.steps is not None:
        present = _steps_with_shape(part, shapes, present)
    items = len(present) if part.own.steps is None else int(present.sum())
    offsets = shapes.offsets
    counts = np.diff(offsets) if offsets is not None else np.full(items, shapes.count or 0, np.int64)
    if part.own.steps is None:
        # Records that lack it keep their place among fixed counts; leave out the zeros that stand there.
        return present, counts, numbers[np.repeat(present, counts)]
    all_counts = np.zeros(len(present), np.int64)
    all_counts[present] = counts
    return present, all_counts, numbers


def _steps_with_shape(part: Part, shapes: Values, present: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which steps have a shape: all or none of each record's."""
    assert part.own.steps is not None
    assert shapes.steps is not None
    lengths, found = np.diff(part.own.steps), np.diff(shapes.steps)
    wrong = present & (lengths != found)
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        item = int(part.own.steps[row])
        raise part.fault(item, f"{found[row]} in {part.layout.shape_name!r}", expected=f"{lengths[row]} steps")
    with_shape: NDArray[np.bool_] = np.repeat(present, lengths)
    return with_shape


def _complete(part: Part, dims: NDArray[np.int64], without: NDArray[np.bool_], lengths: NDArray[np.int64]) -> None:
    """Fill in the shapes that are not stored, where the number of elements alone tells them."""
    declared = part.layout.shape or ()
    known = int(np.prod([size for size in declared if size is not None], dtype=np.int64))
    if declared.count(None) != 1 or known == 0:
        item = int(np.flatnonzero(without)[0])
        raise part.fault(item, f"no {part.layout.shape_name!r} beside it", advice="Its shape cannot be told without.")
    uneven = without & (lengths % known != 0)
    if uneven.any():
        item = int(np.flatnonzero(uneven)[0])
        raise part.fault(item, counted(int(lengths[item]), "value"))
    dims[without] = [size or 0 for size in declared]
    dims[without, declared.index(None)] = lengths[without] // known


def unlike(dims: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which shapes cannot be those of arrays with so many elements.

    Reading and inferring both ask this, so that what is inferred can be read.
    """
    # As floats: a product of numbers from a file may pass 64 bits. Where it could equal a length, it is exact.
    bad: NDArray[np.bool_] = np.prod(dims, axis=1, dtype=np.float64) != lengths
    bad |= np.prod(np.where(dims == 0, 1, dims), axis=1, dtype=np.float64) > _MOST_ELEMENTS
    bad |= (dims < 0).any(axis=1)
    return bad


def _check(part: Part, dims: NDArray[np.int64], lengths: NDArray[np.int64], absent: NDArray[np.bool_] | None) -> None:
    """Raise unless every shape is allowed and has as many elements as are there."""
    bad = unlike(dims, lengths)
    for axis, size in enumerate(part.layout.shape or ()):
        if size is not None:
            bad |= dims[:, axis] != size
    if absent is not None:
        bad &= ~absent
    if bad.any():
        item = int(np.flatnonzero(bad)[0])
        found = f"{counted(int(lengths[item]), 'value')} of shape {shape_text(tuple(dims[item].tolist()))}"
        raise part.fault(item, found, advice=f"The shape is from {part.layout.shape_name!r}.")
