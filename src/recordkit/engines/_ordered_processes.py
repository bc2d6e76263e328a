"""Processes: spans of an order made by other processes, for functions that hold the interpreter's lock."""

from __future__ import annotations

import pickle
import signal
import threading
import time
import weakref
from collections import deque
from functools import cache
from typing import TYPE_CHECKING, Any

from recordkit.errors import RecordKitError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator
    from concurrent.futures import Future, ProcessPoolExecutor

_pools: weakref.WeakSet[ProcessPoolExecutor] = weakref.WeakSet()
# How long the pool may take to note what it was told. Where nobody is told (SIGCHLD is ignored), all have ended anyhow.
_NOTED_SECONDS = 1.0
_sent = b""
_work: Callable[[Any], Any] | None = None


def _begin(pickled: bytes) -> None:
    global _sent  # of a process that was started for this
    _sent = pickled
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the program that has started this one


def _done(thing: Any) -> Any:
    global _work
    if _work is None:  # here, so that what goes wrong is told
        _work = pickle.loads(_sent)
    return _work(thing)


def map_in_processes(things: Iterator[Any], make: Callable[[Any], Any], count: int) -> Generator[Any, None, None]:
    """Yield what is made of each thing, in order, made by so many processes at once.

    Raises:
        RecordKitError: What makes it cannot be sent to another process, or a process died.
    """
    # Here, because importing them takes as long as all of this package.
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool
    from multiprocessing import get_context

    try:
        pickled = pickle.dumps(make)
    except Exception as error:
        message = (
            f"the steps cannot be sent to other processes: {error}\n"
            "  Functions are sent by name: define them in a module, not in a function or as a lambda; or use threads."
        )
        raise RecordKitError(message) from error
    # Started afresh: what this process holds of threads and locks would not survive a fork.
    pool = ProcessPoolExecutor(count, get_context("spawn"), _begin, (pickled,))
    _pools.add(pool)
    _end_with_the_program()
    waiting: deque[Future[Any]] = deque()
    try:
        for thing in things:
            waiting.append(pool.submit(_done, thing))
            if len(waiting) >= 2 * count:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except BrokenProcessPool as error:
        message = (
            "a worker process has ended before its time\n  It was killed, or ran out of memory: use fewer of them."
        )
        raise RecordKitError(message) from error
    finally:
        _end(pool)


def _end(pool: ProcessPoolExecutor) -> None:
    """End the processes at once: what they are about nobody will ask for."""
    processes = list((pool._processes or {}).values())
    pool.shutdown(wait=False, cancel_futures=True)
    for process in processes:
        process.terminate()
    for process in processes:
        process.join()
    # The pool's own thread may have been told of the end, and not us: it is about to note it.
    noted = time.monotonic() + _NOTED_SECONDS
    while any(process.is_alive() for process in processes) and time.monotonic() < noted:
        time.sleep(0.001)


def _end_all() -> None:
    for pool in list(_pools):
        _end(pool)


@cache
def _end_with_the_program() -> None:
    """Have all pools ended when the program ends, before it waits for what they have still to do."""
    threading._register_atexit(_end_all)  # type: ignore[attr-defined]
