"""Evaluate: which rows of a batch match a tree that was checked against the columns before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from recordkit.columns import BytesColumn, Ragged

from ._nodes import And, Compare, Flag, Length, Literal, Missing, Name, Not, Operand, Or, ValueList
from ._numbers import FLIPPED, UFUNCS, compare_numbers
from ._strings import characters, compare_strings, contains, marked
from ._times import compare_times

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from recordkit.columns import Batch

    from ._nodes import Condition, Value

# One value a row, or a literal.
Side: TypeAlias = "NDArray[Any] | BytesColumn | Value"


class Truth(NamedTuple):
    """Where a condition is true and where it is false; elsewhere it is unknown, because a value is missing."""

    yes: NDArray[np.bool_]
    no: NDArray[np.bool_]


def truth(tree: Condition, batch: Batch) -> Truth:
    """Return where a condition is true, in the three-valued logic of SQL."""
    if isinstance(tree, Not):
        yes, no = truth(tree.part, batch)
        return Truth(no, yes)
    if isinstance(tree, And | Or):
        parts = [truth(part, batch) for part in tree.parts]
        every, some = np.logical_and.reduce, np.logical_or.reduce
        first, second = (every, some) if isinstance(tree, And) else (some, every)
        return Truth(first([part.yes for part in parts]), second([part.no for part in parts]))
    if isinstance(tree, Missing):
        valid = batch.valid(tree.name)
        return Truth(~valid, valid.copy())
    operands = (tree.operand,) if isinstance(tree, Flag) else (tree.left, tree.right)
    hit = _flag(tree, batch) if isinstance(tree, Flag) else _compare(tree, batch)
    known = np.ones(len(batch), np.bool_)
    for operand in operands:
        if isinstance(operand, Name | Length):
            known &= batch.valid(operand.name)
    return Truth(hit & known, ~hit & known)


def _flag(tree: Flag, batch: Batch) -> NDArray[np.bool_]:
    if isinstance(tree.operand, Literal):
        return np.full(len(batch), tree.operand.value, np.bool_)
    column: NDArray[np.bool_] = batch[tree.operand.name]
    return column


def _compare(tree: Compare, batch: Batch) -> NDArray[np.bool_]:
    left = _side(tree.left, batch)
    if isinstance(tree.right, ValueList):
        hit = np.zeros(len(batch), np.bool_)
        for item in tree.right.items:
            hit |= _compare_sides("==", left, item.value)
        return hit
    if tree.op == "in":
        assert isinstance(tree.right, Name)
        return _inside(left, batch[tree.right.name])
    return np.broadcast_to(_compare_sides(tree.op, left, _side(tree.right, batch)), len(batch))


def _side(operand: Operand, batch: Batch) -> Side:
    if isinstance(operand, Literal):
        return operand.value
    assert isinstance(operand, Name | Length)
    column: NDArray[Any] | BytesColumn = batch[operand.name]
    return column if isinstance(operand, Name) else _lengths(column)


def _lengths(column: NDArray[Any] | BytesColumn | Ragged) -> NDArray[np.int64]:
    if isinstance(column, Ragged):
        return column.shapes[:, 0] if column.shapes is not None else np.diff(column.offsets[0])
    if len(column.shape) > 1:
        return np.full(len(column), column.shape[1])
    assert isinstance(column, BytesColumn)
    return characters(column) if column.text else column.lengths


def _compare_sides(op: str, left: Any, right: Any) -> NDArray[np.bool_]:
    """Compare two sides of one kind; either may be a literal."""
    if not isinstance(left, np.ndarray | BytesColumn):
        if not isinstance(right, np.ndarray | BytesColumn):
            return np.asarray(UFUNCS[op](np.array(left, object), np.array(right, object)), np.bool_)
        left, op, right = right, FLIPPED[op], left
    if isinstance(left, BytesColumn):
        return compare_strings(op, left, _encoded(right))
    if left.dtype.kind in "mM":
        return compare_times(op, left, right)
    return compare_numbers(op, left, right)


def _encoded(side: Any) -> Any:
    return side.encode() if isinstance(side, str) else side


def _inside(left: Any, column: NDArray[Any] | BytesColumn | Ragged) -> NDArray[np.bool_]:
    """Return where a value is inside a text, or among the many values of a row."""
    if isinstance(column, BytesColumn) and len(column.shape) == 1:
        return contains(column, _encoded(left))
    values, bounds = _flat(column)
    if isinstance(left, np.ndarray | BytesColumn):
        left = left[np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))]
    hits = np.flatnonzero(_compare_sides("==", values, left))
    return marked(np.searchsorted(bounds, hits, "right") - 1, len(bounds) - 1)


def _flat(column: NDArray[Any] | BytesColumn | Ragged) -> tuple[NDArray[Any] | BytesColumn, NDArray[np.int64]]:
    """Return all values of a column of many a row in one dimension, and where each row ends in them."""
    if isinstance(column, Ragged):
        values, bounds = column.values, column.offsets[0]
        for level in column.offsets[1:]:
            bounds = level[bounds]
    else:
        rows, width, *inner = column.shape
        values, bounds = column.reshape((rows * width, *inner)), np.arange(rows + 1) * width
    if bounds[0] != 0 or bounds[-1] != len(values):
        values, bounds = values[int(bounds[0]) : int(bounds[-1])], bounds - bounds[0]
    size = int(np.prod(values.shape[1:], dtype=np.int64))
    return values.reshape((len(values) * size,)), bounds * size
