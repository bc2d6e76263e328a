"""Choose the engine that does the files of a dataset."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from recordkit.engines import ProcessEngine, Processes, ThreadEngine, count

if TYPE_CHECKING:
    from recordkit.engines import Engine, Workers

_AHEAD: Final = 1 << 16  # results are small, and file sizes differ a lot: no worker should wait for a large file


def engine_for(workers: Workers | Engine, jobs: int) -> Engine:
    """Return an engine for this number of workers, or the given engine itself.

    >>> engine_for(Processes(2), 8)
    ProcessEngine(workers=2)
    """
    if hasattr(workers, "map"):
        return cast("Engine", workers)
    if isinstance(workers, Processes):
        return ProcessEngine(count(workers))
    return ThreadEngine(max(1, min(workers_of(workers), jobs)), ahead=_AHEAD, wait=True)


def workers_of(workers: Workers | Engine) -> int:
    """Return the number of jobs that run at once on this machine; 1 for an engine that may run them elsewhere."""
    return 1 if hasattr(workers, "map") else count(workers)
