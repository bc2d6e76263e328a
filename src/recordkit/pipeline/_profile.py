"""Profile: where the time of a pipeline goes, step by step."""

from __future__ import annotations

import time
import weakref
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recordkit.engines import OrderedThreadPool

    from ._element_steps import Section
    from ._elements import TracedElements

READING = -1


@dataclass
class _Line:
    seconds: float = 0.0
    elements: int = 0


@dataclass
class Profile:
    """What was noted while a pipeline ran. Seconds are those of all workers together.

    Attributes:
        lines: By number of the step; reading and decoding is -1.
        waited: For how long whoever asked for elements had to wait.
        used: For how long whoever asked did something else.
    """

    lines: dict[int, _Line] = field(default_factory=dict)
    waited: float = 0.0
    used: float = 0.0
    given: int = 0
    _crews: list[weakref.ref[OrderedThreadPool]] = field(default_factory=list)
    _left: float | None = None

    def __getstate__(self) -> tuple[()]:
        return ()

    def __setstate__(self, state: tuple[()]) -> None:
        self.__init__()  # type: ignore[misc]

    def watch(self, crew: OrderedThreadPool) -> None:
        """Look at how many results of a crew lie ready."""
        self._crews = [known for known in self._crews if known() is not None]
        self._crews.append(weakref.ref(crew))

    def note(self, section: Section, piece: TracedElements, seconds: Sequence[float], reading: float) -> None:
        """Take note of what some elements took."""
        self.add(READING, piece.taken, reading)
        for number, each in zip(section.numbers, seconds, strict=False):
            self.add(number, len(piece.values), each)

    def add(self, number: int, elements: int, seconds: float) -> None:
        """Take note of one step."""
        line = self.lines.setdefault(number, _Line())
        line.elements += elements
        line.seconds += seconds

    def asked(self) -> float:
        """Take note that an element is asked for."""
        now = time.perf_counter()
        if self._left is not None:
            self.used += now - self._left
        return now

    def gave(self, since: float) -> None:
        """Take note that it is there."""
        self._left = time.perf_counter()
        self.waited += self._left - since
        self.given += 1

    @property
    def ready(self) -> int:
        """How many results lie ready now."""
        return sum(crew.waiting for known in self._crews if (crew := known()) is not None)
