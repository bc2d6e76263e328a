"""Epochs: how the worker processes of a DataLoader agree which epoch it is.

PyTorch starts new workers for each epoch, or keeps them, and does not tell a dataset which. But all workers of an epoch
share a random number, so they can agree on an entry in shared memory.
"""

from __future__ import annotations

import multiprocessing
from multiprocessing.context import get_spawning_popen
from typing import Any

_PAGES = 16  # how many iterators of one DataLoader may be alive at a time
_KEY, _EPOCH, _WORKERS = range(3)
_MASK = (1 << 62) - 1


class Epochs:
    """Counts epochs for all processes that received this object from the one that created it.

    >>> epochs = Epochs()
    >>> epochs.begin(key=5, workers=2), epochs.begin(key=5, workers=2)
    (0, 0)
    >>> epochs.begin(key=8, workers=1)
    1
    >>> epochs.coming = 7
    >>> epochs.begin(key=9, workers=1)
    7
    """

    def __init__(self, first: int = 0) -> None:
        # Forked processes can use an array of the "spawn" context, but not the other way round.
        self._pages: Any = multiprocessing.get_context("spawn").Array("q", 1 + 3 * _PAGES)
        self.coming = first

    @property
    def coming(self) -> int:
        """The epoch of the workers that begin next."""
        return int(self._pages[0])

    @coming.setter
    def coming(self, epoch: int) -> None:
        with self._pages.get_lock():
            self._pages[0] = epoch

    def begin(self, key: int, workers: int) -> int:
        """Return the epoch of a worker that begins.

        Args:
            key: A number that all workers of an epoch share, and hardly any others.
            workers: How many workers there are. One more with the same key belongs to another epoch.
        """
        key &= _MASK
        with self._pages.get_lock():
            page = self._page(key, workers)
            self._pages[page + _WORKERS] += 1
            return int(self._pages[page + _EPOCH])

    def _page(self, key: int, workers: int) -> int:
        pages = range(1, 1 + 3 * _PAGES, 3)
        for page in pages:
            if self._pages[page + _KEY] == key and 0 < self._pages[page + _WORKERS] < workers:
                return page
        epoch = self._pages[0]
        self._pages[0] += 1
        page = min(pages, key=lambda page: (self._pages[page + _WORKERS] > 0, self._pages[page + _EPOCH]))
        self._pages[page : page + 3] = [key, epoch, 0]
        return page

    def __getstate__(self) -> Any:
        # A lock can only be sent to a process that is being started. Any other copy counts from the beginning.
        return self._pages if get_spawning_popen() is not None else self.coming

    def __setstate__(self, state: Any) -> None:
        if isinstance(state, int):
            self.__init__(state)  # type: ignore[misc]
        else:
            self._pages = state
