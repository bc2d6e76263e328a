"""Workers: how many hands a job gets, in the words that are the same everywhere.

>>> count(3), count(Threads(2)), count(AUTO) >= 1
(3, 2, True)
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from recordkit.wording import is_whole

__all__ = ["AUTO", "Processes", "Threads", "Workers", "count"]

AUTO: Final = "auto"


@dataclass(frozen=True)
class Threads:
    """So many threads of this process."""

    count: int


@dataclass(frozen=True)
class Processes:
    """So many processes, for Python code that holds the interpreter's lock."""

    count: int


Workers: TypeAlias = int | Literal["auto"] | Threads | Processes


def _processors() -> int:
    # Only Linux tells how many of them are ours.
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def count(workers: Workers) -> int:
    """Return how many workers are meant: with `AUTO` one for each processor this process may use."""
    number = _processors() if workers == AUTO else getattr(workers, "count", workers)
    if not is_whole(number) or number < 1:
        message = f"workers is a number from 1 up, rk.AUTO, rk.Threads(n) or rk.Processes(n), found {workers!r}"
        raise ValueError(message)
    return int(number)
