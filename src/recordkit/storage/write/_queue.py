"""Write queue: runs jobs in order, in a thread of its own.

A failure stops the queue. The next call raises it, `wait` at the latest.
"""

from __future__ import annotations

import queue
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


class WriteQueue:
    """One thread for what must happen in order, and `workers` for what need not.

    With one worker there is no thread: each call does its own job. At most `waiting` jobs wait for their turn, so that
    memory stays bounded; a call that adds another one blocks.
    """

    def __init__(self, workers: int, waiting: int = 4) -> None:
        self._failure: BaseException | None = None
        self._thread: threading.Thread | None = None
        self._pool: ThreadPoolExecutor | None = None
        self._jobs: queue.Queue[Callable[[], Any] | None] = queue.Queue(maxsize=waiting)
        if workers > 1:
            self._pool = ThreadPoolExecutor(workers, "recordkit-work")
            self._thread = threading.Thread(target=self._run, name="recordkit-disk", daemon=True)
            self._thread.start()

    def start(self, work: Callable[..., Any], *args: Any) -> Future[Any]:
        """Do this as soon as a worker is free; the future is for a later job of the queue."""
        if self._pool is not None:
            return self._pool.submit(work, *args)
        done: Future[Any] = Future()
        done.set_result(work(*args))
        return done

    def do(self, job: Callable[[], Any]) -> None:
        """Do this after every earlier job."""
        self._raise()
        if self._thread is None:
            job()
        else:
            self._jobs.put(job)

    def wait(self) -> None:
        """Return when every job is done."""
        if self._thread is not None:
            self._jobs.join()
        self._raise()

    def stop(self) -> None:
        """Stop the threads; jobs that still wait are dropped."""
        if self._thread is not None:
            self._failure = self._failure or RuntimeError("the queue was stopped")
            self._jobs.put(None)
            self._thread.join()
            self._thread = None
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None

    def _raise(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            try:
                if self._failure is None:
                    job()
            except BaseException as error:
                self._failure = error
            finally:
                self._jobs.task_done()
