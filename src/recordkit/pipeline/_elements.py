"""Blocks: many elements on their way through a pipeline, each with a mark to resume after it.

Rows stay columns as long as possible: the elements of a block are the rows of a `Batch`, or the items of a list.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from recordkit.columns import Batch
from recordkit.errors import StateError

Values: TypeAlias = "Batch | list[Any]"

# A position in a pipeline: numbers and nested lists of them, so that JSON can hold it. None is the beginning.
Mark: TypeAlias = Any

_GATHER_SECONDS = 0.03

# Names where an element came from, for errors, by its number.
Place: TypeAlias = Callable[[int], str]


_MOST = (1 << 62) - 1


def number_of(mark: Mark) -> int:
    """Return a mark as a number, 0 for the beginning.

    Raises:
        StateError: It is not a number, so it comes from another pipeline.
    """
    if mark is None:
        return 0
    if not _is_number(mark):
        raise StateError(_NOT_OURS)
    return int(mark)


def parts_of(mark: Mark, *beginning: Any) -> Sequence[Any]:
    """Return the parts of a mark. They must match those given: a number, a list of that length, or for None any mark.

    Raises:
        StateError: They do not match, so the mark comes from another pipeline.
    """
    if mark is None:
        return beginning
    if not isinstance(mark, list | tuple) or len(mark) != len(beginning) or not all(map(_is_like, mark, beginning)):
        raise StateError(_NOT_OURS)
    return mark


_NOT_OURS = (
    "the state does not come from these steps: its key at does not fit them\n  Start again, or use another state."
)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and 0 <= int(value) <= _MOST


def _is_like(part: Any, beginning: Any) -> bool:
    if isinstance(beginning, list):
        return isinstance(part, list | tuple) and len(part) == len(beginning)
    return beginning is None or _is_number(part)


class ElementBlock(NamedTuple):
    """Elements, each with the mark to resume after it."""

    values: Values
    marks: Sequence[Mark]


# Gives the blocks after a mark, in an epoch.
Upstream: TypeAlias = "Callable[[Mark, int], Generator[ElementBlock, None, None]]"


class TracedElements(NamedTuple):
    """What element steps have made of some elements, traced back to those.

    Attributes:
        ends: For each value, how many of the elements were used once it was made.
        taken: How many elements there were in all.
    """

    values: Values
    ends: Sequence[int]
    taken: int

    def block(self, marks: Sequence[Mark]) -> ElementBlock:
        """Return the values with the marks of the elements they were made of."""
        if isinstance(self.ends, range) and len(self.ends) == len(marks) == self.taken:
            return ElementBlock(self.values, marks)
        ends = self.ends
        return ElementBlock(self.values, LazyMarks(range(len(ends)), lambda i: marks[int(ends[i]) - 1]))


def traced(values: Values) -> TracedElements:
    """Return elements that no step has changed yet."""
    return TracedElements(values, range(1, len(values) + 1), len(values))


@dataclass(frozen=True)
class LazyMarks(Sequence[Mark]):
    """Marks that are computed from numbers when they are needed."""

    numbers: range
    mark: Callable[[int], Mark]

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, index: Any) -> Any:
        numbers = self.numbers[index]
        return LazyMarks(numbers, self.mark) if isinstance(numbers, range) else self.mark(numbers)


def wrapped(marks: Sequence[Mark], wrap: Any) -> LazyMarks:
    """Return marks with what a step adds to each: `wrap(i, mark)`."""
    return LazyMarks(range(len(marks)), lambda i: wrap(i, marks[i]))


def elements(values: Values) -> Iterable[Any]:
    """Return the elements one by one: rows as dicts, or what is in a list."""
    return values.rows() if isinstance(values, Batch) else values


def cut(values: Values, start: int, stop: int) -> Values:
    """Return the elements [start, stop)."""
    if start <= 0 and stop >= len(values):
        return values
    return values.take(slice(start, stop)) if isinstance(values, Batch) else values[start:stop]


def cut_block(block: ElementBlock, start: int, stop: int) -> ElementBlock:
    """Return the elements [start, stop) of a block."""
    if start <= 0 and stop >= len(block.values):
        return block
    return ElementBlock(cut(block.values, start, stop), block.marks[start:stop])


def picked(values: Values, places: Any) -> Values:
    """Return the elements at these places."""
    return values.take(places) if isinstance(values, Batch) else [values[i] for i in places.tolist()]


def joined(parts: Sequence[Values]) -> Values:
    """Return the elements of all parts: as columns, if all have columns of the same names."""
    if len(parts) == 1:
        return parts[0]
    batches = [part for part in parts if isinstance(part, Batch)]
    if len(batches) == len(parts) and len({batch.names for batch in batches}) == 1:
        return Batch.joined(batches)
    return [element for part in parts for element in elements(part)]


def each(blocks: Iterable[ElementBlock]) -> Iterator[tuple[Any, Mark]]:
    """Yield every element with its mark."""
    for block in blocks:
        yield from zip(elements(block.values), block.marks, strict=True)


def gathered(elements: Iterable[Any], most: int) -> Generator[list[Any], None, None]:
    """Yield lists of elements: first one element, then as many as come in about 30 ms, `most` at most.

    An error is raised after the elements before it.
    """
    source = iter(elements)
    size, failure = 1, None
    try:
        while failure is None:
            values: list[Any] = []
            begun = time.perf_counter()
            try:
                values.extend(islice(source, size))
            except Exception as error:
                failure = error
            if not values:
                break
            took = time.perf_counter() - begun
            size = min(2 * size, most) if took < _GATHER_SECONDS else max(1, size // 2)
            yield values
    finally:
        close = getattr(source, "close", None)
        if close is not None:
            close()
    if failure is not None:
        raise failure
