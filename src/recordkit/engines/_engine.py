"""The engine protocol, and how users say how many workers they want.

>>> count(3), count(Threads(2)), count(AUTO) >= 1
(3, 2, True)
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias

from recordkit.wording import is_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable

__all__ = ["AUTO", "Engine", "Processes", "Threads", "Workers", "count"]

AUTO: Final = "auto"


class Engine(Protocol):
    """Does jobs, several at a time."""

    def map(self, function: Callable[[Any], Any], jobs: Iterable[Any]) -> Generator[Any, None, None]:
        """Yield the function's result for each job, in the order of the jobs.

        Jobs are taken as workers become free. A failure, of a job or of the iterable, is raised after the results
        before it. Closing the generator stops the workers.
        """
        ...


@dataclass(frozen=True)
class Threads:
    """Use this many threads."""

    count: int


@dataclass(frozen=True)
class Processes:
    """Use this many processes: for Python functions that hold the interpreter's lock."""

    count: int


Workers: TypeAlias = int | Literal["auto"] | Threads | Processes


def _processors() -> int:
    # Only Linux can tell how many this process may use.
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def count(workers: Workers) -> int:
    """Return the number of workers; `AUTO` means one for each processor this process may use."""
    number = _processors() if workers == AUTO else getattr(workers, "count", workers)
    if not is_whole(number) or number < 1:
        message = f"workers is a number from 1 up, rk.AUTO, rk.Threads(n) or rk.Processes(n), found {workers!r}"
        raise ValueError(message)
    return int(number)
