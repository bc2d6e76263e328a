"""Iteration: one epoch of a pipeline, element by element, and where its time goes."""

from __future__ import annotations

import atexit
import os
import time
import weakref
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from recordkit.columns import Batch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType
    from typing import Self

    from recordkit.engines import OrderedThreadPool

    from ._element_steps import Section
    from ._elements import ElementBlock, Mark, TracedElements
    from ._source import BlockProducer

READING = -1


@dataclass
class _Line:
    seconds: float = 0.0
    elements: int = 0


@dataclass
class Profile:
    """Where the time of a pipeline goes, step by step. Seconds are those of all workers together.

    Attributes:
        lines: By number of the step; reading and decoding is -1.
        waited: How long the consumer waited for elements.
        used: How long the consumer was busy with something else.
        given: How many elements it got.
    """

    lines: dict[int, _Line] = field(default_factory=dict)
    waited: float = 0.0
    used: float = 0.0
    given: int = 0
    _pools: list[weakref.ref[OrderedThreadPool]] = field(default_factory=list)
    _left: float | None = None

    def __getstate__(self) -> tuple[()]:
        return ()

    def __setstate__(self, state: tuple[()]) -> None:
        self.__init__()  # type: ignore[misc]

    def watch(self, pool: OrderedThreadPool) -> None:
        """Include the results that a pool holds ready."""
        self._pools = [known for known in self._pools if known() is not None]
        self._pools.append(weakref.ref(pool))

    def note(self, section: Section, made: TracedElements, seconds: Sequence[float], reading: float) -> None:
        """Add the seconds that some elements took in reading and in each step."""
        self.add(READING, made.taken, reading)
        for number, each in zip(section.numbers, seconds, strict=False):
            self.add(number, len(made.values), each)

    def add(self, number: int, elements: int, seconds: float) -> None:
        """Add the seconds of one step."""
        line = self.lines.setdefault(number, _Line())
        line.elements += elements
        line.seconds += seconds

    def asked(self) -> float:
        """Note that the consumer asks for an element, and return the time."""
        now = time.perf_counter()
        if self._left is not None:
            self.used += now - self._left
        return now

    def gave(self, since: float) -> None:
        """Note that it got the element it asked for then."""
        self._left = time.perf_counter()
        self.waited += self._left - since
        self.given += 1

    @property
    def ready(self) -> int:
        """How many results are ready now."""
        return sum(pool.waiting for known in self._pools if (pool := known()) is not None)


class PipelineIterator(Iterator[Any]):
    """The elements of one epoch, with a state to resume from.

    To stop before its end, close it or use it in a `with` block: that stops the workers at once. Otherwise they stop
    when the iterator is garbage collected.

    Attributes:
        epoch: Which epoch it is.
    """

    def __init__(
        self,
        producer: BlockProducer,
        epoch: int,
        mark: Mark,
        profile: Profile,
        state: Callable[[int, Mark], dict[str, Any]],
    ) -> None:
        self.epoch = epoch
        self._mark = mark
        self._state = state
        self._profile = profile
        self._blocks = producer.blocks(mark, epoch)
        self._block: ElementBlock | None = None
        self._given = 0
        self._elements: Iterator[Any] = iter(())
        _open.add(self)

    def __next__(self) -> Any:
        since = self._profile.asked()
        while True:
            for element in self._elements:
                self._given += 1
                self._profile.gave(since)
                return element
            self._leave()
            self._block = next(self._blocks)
            values = self._block.values
            self._elements = values.rows() if isinstance(values, Batch) else iter(values)

    def _leave(self) -> None:
        if self._block is not None and self._given:
            self._mark = self._block.marks[self._given - 1]
        self._block, self._given = None, 0

    def state_dict(self) -> dict[str, Any]:
        """Return a small state: `pipe.resume(state)` continues after the last element that was given.

        Elements that workers have made ahead of time do not count as given.
        """
        mark = self._mark
        if self._block is not None and self._given:
            mark = self._block.marks[self._given - 1]
        return self._state(self.epoch, mark)

    def close(self) -> None:
        """Stop, and stop the workers."""
        self._blocks.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


_open: weakref.WeakSet[PipelineIterator] = weakref.WeakSet()


def _close_all() -> None:
    for iterator in list(_open):
        with suppress(Exception):  # another thread may be using it
            iterator.close()


# Not left to the garbage collector: when a program ends, it runs after the modules that closing needs are cleared.
atexit.register(_close_all)
os.register_at_fork(after_in_child=_open.clear)  # their threads are the parent's
