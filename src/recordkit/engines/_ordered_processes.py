"""Jobs done by other processes, for functions that hold the interpreter's lock."""

from __future__ import annotations

import pickle
import signal
import threading
import time
import weakref
from collections import deque
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from recordkit.errors import RecordKitError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable
    from concurrent.futures import Future, ProcessPoolExecutor

_pools: weakref.WeakSet[ProcessPoolExecutor] = weakref.WeakSet()
# How long to wait for the pool to see that a process has ended. With SIGCHLD ignored it never does, and none is left.
_REAP_SECONDS = 1.0
_pickled_function = b""
_function: Callable[[Any], Any] | None = None


def _begin(pickled: bytes) -> None:
    global _pickled_function  # of a process that was started for this
    _pickled_function = pickled
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent


def _done(job: Any) -> Any:
    global _function
    if _function is None:  # unpickled here rather than in `_begin`, so that the parent sees the error
        _function = pickle.loads(_pickled_function)
    return _function(job)


@dataclass(frozen=True)
class ProcessEngine:
    """An engine of processes, which last as long as one `map`.

    Attributes:
        workers: How many processes.
    """

    workers: int

    def map(self, function: Callable[[Any], Any], jobs: Iterable[Any]) -> Generator[Any, None, None]:
        """Yield the function's result for each job, in the order of the jobs.

        Raises:
            RecordKitError: The function cannot be pickled, or a process died.
        """
        # Imported here, because it takes as long as all of this package.
        from concurrent.futures import ProcessPoolExecutor
        from concurrent.futures.process import BrokenProcessPool
        from multiprocessing import get_context

        try:
            pickled = pickle.dumps(function)
        except Exception as error:
            message = (
                f"the steps cannot be sent to other processes: {error}\n"
                "  Functions are sent by name: define them in a module, not in a function or as a lambda; or use "
                "threads."
            )
            raise RecordKitError(message) from error
        # Spawned: the threads and locks of this process would not survive a fork.
        pool = ProcessPoolExecutor(self.workers, get_context("spawn"), _begin, (pickled,))
        _pools.add(pool)
        _end_with_the_program()
        waiting: deque[Future[Any]] = deque()
        failure: Exception | None = None
        source = iter(jobs)
        try:
            while failure is None:
                try:
                    job = next(source)
                except StopIteration:
                    break
                except Exception as error:  # raised after the results before it
                    failure = error
                else:
                    waiting.append(pool.submit(_done, job))
                    if len(waiting) >= 2 * self.workers:
                        yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
            if failure is not None:
                raise failure
        except BrokenProcessPool as error:
            message = "a worker process ended unexpectedly\n  It was killed, or ran out of memory: use fewer processes."
            raise RecordKitError(message) from error
        finally:
            _end(pool)


def _end(pool: ProcessPoolExecutor) -> None:
    """End the processes at once: nobody will ask for their results."""
    processes = list((pool._processes or {}).values())
    pool.shutdown(wait=False, cancel_futures=True)
    for process in processes:
        process.terminate()
    for process in processes:
        process.join()
    # The pool's own thread may have reaped the process first, and not have recorded it yet.
    until = time.monotonic() + _REAP_SECONDS
    while any(process.is_alive() for process in processes) and time.monotonic() < until:
        time.sleep(0.001)


def _end_all() -> None:
    for pool in list(_pools):
        _end(pool)


@cache
def _end_with_the_program() -> None:
    """End all pools when the program ends, before it waits for their pending work."""
    threading._register_atexit(_end_all)  # type: ignore[attr-defined]
