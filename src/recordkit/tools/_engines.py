"""Engines of tools: who works on the files of a dataset."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from recordkit.engines import ProcessEngine, Processes, ThreadEngine, count

if TYPE_CHECKING:
    from recordkit.engines import Engine, Workers

_AHEAD: Final = 1 << 16  # results are small, and files of very different sizes: nobody waits for a large one


def engine_for(workers: Workers | Engine, jobs: int) -> Engine:
    """Return the engine for a number of workers; an engine as it is.

    >>> engine_for(Processes(2), 8)
    ProcessEngine(workers=2)
    """
    if hasattr(workers, "map"):
        return cast("Engine", workers)
    if isinstance(workers, Processes):
        return ProcessEngine(count(workers))
    return ThreadEngine(max(1, min(workers_of(workers), jobs)), ahead=_AHEAD, wait=True)


def workers_of(workers: Workers | Engine) -> int:
    """Return how many jobs run at once on this machine, as far as that is known."""
    return 1 if hasattr(workers, "map") else count(workers)
