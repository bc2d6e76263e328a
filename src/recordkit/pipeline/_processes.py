"""Processes: spans of an order made by other processes, for functions that hold the interpreter's lock."""

from __future__ import annotations

import pickle
import signal
import threading
from collections import deque
from typing import TYPE_CHECKING, Any

from recordkit.errors import RecordKitError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator
    from concurrent.futures import Future, ProcessPoolExecutor

_LOOK_SECONDS = 0.1

_work: Callable[[Any], Any] | None = None


def _begin(pickled: bytes) -> None:
    global _work  # of a process that was started for this
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all; the process that started this one ends it
    _work = pickle.loads(pickled)


def _done(thing: Any) -> Any:
    assert _work is not None
    return _work(thing)


def in_processes(things: Iterator[Any], make: Callable[[Any], Any], count: int) -> Generator[Any, None, None]:
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
    waiting: deque[Future[Any]] = deque()
    try:
        for thing in things:
            waiting.append(pool.submit(_done, thing))
            if len(waiting) >= 2 * count:
                yield _result(waiting.popleft())
        while waiting:
            yield _result(waiting.popleft())
    except BrokenProcessPool as error:
        message = (
            "a worker process has ended before its time\n  It was killed, or ran out of memory: use fewer of them."
        )
        raise RecordKitError(message) from error
    finally:
        _end(pool)


def _result(coming: Future[Any]) -> Any:
    """Wait for a result, unless the program ends: it would wait for all that the processes have still to do."""
    while threading.main_thread().is_alive():
        try:
            return coming.result(_LOOK_SECONDS)
        except TimeoutError:
            if coming.done():  # what was made of it has raised that
                return coming.result()
    raise KeyboardInterrupt


def _end(pool: ProcessPoolExecutor) -> None:
    """End the processes at once: what they are about nobody will ask for."""
    processes = list((pool._processes or {}).values())
    pool.shutdown(wait=False, cancel_futures=True)
    for process in processes:
        process.terminate()
    for process in processes:
        process.join()
