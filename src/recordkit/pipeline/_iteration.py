"""Iteration: one epoch of a pipeline, element by element."""

from __future__ import annotations

import atexit
import os
import weakref
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ._elements import elements

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Self

    from ._combine import BlockProducer
    from ._elements import ElementBlock, Mark
    from ._profile import Profile


class PipelineIterator(Iterator[Any]):
    """The elements of one epoch, and where it stands.

    Close it, or use it in a `with` block, to stop before its end: workers are let go at once. Else that happens when it
    is forgotten.

    Attributes:
        epoch: Which epoch it is.
    """

    def __init__(
        self,
        flowing: BlockProducer,
        epoch: int,
        mark: Mark,
        profile: Profile,
        state: Callable[[int, Mark], dict[str, Any]],
    ) -> None:
        self.epoch = epoch
        self._mark = mark
        self._state = state
        self._profile = profile
        self._blocks = flowing.blocks(mark, epoch)
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
            self._elements = iter(elements(self._block.values))

    def _leave(self) -> None:
        if self._block is not None and self._given:
            self._mark = self._block.marks[self._given - 1]
        self._block, self._given = None, 0

    def state_dict(self) -> dict[str, Any]:
        """Return where this stands: behind the elements that were given, however many are on their way.

        A few numbers, and the digest of the records. `pipe.resume(state)` goes on from there.
        """
        mark = self._mark
        if self._block is not None and self._given:
            mark = self._block.marks[self._given - 1]
        return self._state(self.epoch, mark)

    def close(self) -> None:
        """Stop, and let the workers go."""
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
        with suppress(Exception):  # another thread may be in the middle of it
            iterator.close()


# Not left to the collector: at the end of a program it comes after the modules that closing needs are emptied.
atexit.register(_close_all)
os.register_at_fork(after_in_child=_open.clear)  # their threads are the parent's
