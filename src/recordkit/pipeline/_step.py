"""Step: one thing that a pipeline does, as plain data that can be printed, compared and pickled."""

from __future__ import annotations

from dataclasses import fields
from functools import partial
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ._elements import Place, TracedElements

ENDLESS: Final = 1 << 62


class Step:
    """What all steps have in common. Subclasses are frozen dataclasses.

    Attributes:
        keeps: Whether it makes one element of each, in the same order.
    """

    keeps = False

    def count(self, before: int) -> int | None:
        """Return how many elements the step makes of `before`; None if that is not known."""
        return before if self.keeps else None

    def __str__(self) -> str:
        """Return the call that made the step, without arguments that have their default."""
        shown = []
        for each in fields(self):  # type: ignore[arg-type]
            value = getattr(self, each.name)
            if value != each.default:
                shown.append(f"{each.name}={value!r}")
        return f"{type(self).__name__.removesuffix('Step')}({', '.join(shown)})"


class ElementStep(Step):
    """A step that looks at each element alone, so that any number of elements can be processed at once."""

    def apply(self, inputs: TracedElements, place: Place) -> TracedElements:
        """Return the result for each element, or for those kept.

        Args:
            inputs: What the steps before it made.
            place: Names where an element came from, by its number among the inputs of the first step.
        """
        raise NotImplementedError


def count_after(steps: Iterable[Step], count: int | None) -> int | None:
    """Return how many elements steps make of `count`; None if that is not known, or there is no end."""
    for step in steps:
        count = None if count is None else step.count(count)
        if count is not None and count >= ENDLESS:
            return None
    return count


def name_of(function: Any) -> str:
    """Return a function's name: the same in every process, since states and caches remember it."""
    while isinstance(function, partial):
        function = function.func
    named = getattr(function, "__qualname__", None) or getattr(function, "__name__", None)
    return str(named or type(function).__qualname__)


def failed(error: Exception, note: str) -> Exception:
    """Return the error to raise when a user's function failed: its own, with a note on which function and where.

    StopIteration would look like the end of the elements; it becomes a RuntimeError, as in Python's generators.
    """
    if isinstance(error, StopIteration):
        stopped = RuntimeError(f"{note}: it raised StopIteration\n  Give next() a default, as in next(items, None).")
        stopped.__cause__ = error
        return stopped
    error.add_note(note)
    return error
