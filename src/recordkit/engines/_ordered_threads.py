"""Jobs done by several threads, whose results come in the order of the jobs."""

from __future__ import annotations

import threading
import time
from contextvars import copy_context
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator

_MOST_THREADS = 32
_LOOK_SECONDS = 0.05  # between checks whether more threads would help
_LEAVE_SECONDS = 1.0  # a function that does not return cannot be stopped; do not wait for it any longer
_WAITING = 0.7  # of one processor: if all threads together use less, they are waiting for something else


class Tasks(Protocol):
    """Where a pool gets its jobs from."""

    @property
    def failure(self) -> BaseException | None:
        """The error that ended the tasks, raised after the results of all that were taken before it."""
        ...

    def take(self) -> tuple[int, int, Any] | None:
        """Return the next job as (its place in the order, how many places it covers, the job); None at the end.

        Called by many threads at once. May raise, if `failure` holds the error from then on.
        """
        ...


class OrderedThreadPool:
    """Threads that do jobs, and hand over the results in order.

    Each holds at most one finished result, and there is room for as many more. The consumer of the results is a worker,
    too: if the next result is not ready, it does a job instead of waiting.

    Args:
        workers: How many threads, the consumer included.
        tasks: The jobs.
        function: Does a job.
        grow: Whether to start more threads while the existing ones wait for something other than the processors.
        ahead: How many results may wait for an earlier one; by default two for each thread.
    """

    def __init__(
        self,
        workers: int,
        tasks: Tasks,
        function: Callable[[Any], Any],
        *,
        grow: bool = False,
        ahead: int | None = None,
    ) -> None:
        self._tasks = tasks
        self._function = function
        ahead = ahead or 2 * workers
        self._room = threading.Semaphore(ahead)
        self._most_done = ahead + 1  # with as many results waiting for an earlier one, the consumer waits, too
        self._change = threading.Condition()
        # By place: how many places, the result or error, and how much room it takes.
        self._done: dict[int, tuple[int, Any, int]] = {}
        self._running = 0
        self._stopped = False
        self._grow = grow
        self._looked = (time.monotonic(), time.process_time())
        self._threads: list[threading.Thread] = []
        for _ in range(workers - 1):
            self._start()

    def _start(self) -> None:
        with self._change:
            self._running += 1
        run = copy_context().run
        thread = threading.Thread(target=run, args=(self._run,), name="recordkit-work", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _run(self) -> None:
        try:
            while True:
                self._room.acquire()
                if self._stopped or not self._work(room=1):
                    return
        finally:
            with self._change:
                self._running -= 1
                self._change.notify()
            # Other threads may wait for room only to find that there is nothing left.
            self._room.release()

    def _work(self, *, room: int) -> bool:
        """Do the next job; False if there is none, or taking it failed.

        Args:
            room: How much of the room the result takes: 0 for the consumer.
        """
        try:
            taken = self._tasks.take()
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt) and not room:
                raise
            return False  # `results` raises it after all results before it
        if taken is None:
            if not room and isinstance(failure := self._tasks.failure, KeyboardInterrupt):
                raise failure
            return False
        place, width, job = taken
        result: Any
        try:
            result = self._function(job)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt) and not room:
                raise  # at once: Ctrl-C does not wait for earlier results
            result = error
        with self._change:
            self._done[place] = (width, result, room)
            self._change.notify()
        return True

    @property
    def waiting(self) -> int:
        """How many results are ready and not consumed yet."""
        return len(self._done)

    def results(self) -> Iterator[Any]:
        """Yield the results in order, and raise an error in the place of its job."""
        place, helping = 0, True
        while True:
            ready = self._done.pop(place, None)
            if ready is None and helping and len(self._done) < self._most_done:
                self._look()
                helping = self._work(room=0)
                continue
            if ready is None:
                with self._change:
                    while place not in self._done and self._running:
                        self._change.wait()
                    ready = self._done.pop(place, None)
            if ready is None:
                if (failure := self._tasks.failure) is not None:
                    raise failure
                return
            width, result, room = ready
            if room:
                self._room.release()
            if isinstance(result, BaseException):
                raise result
            yield result
            place += width

    def _look(self) -> None:
        """Start one more thread if the consumer waits while the processors are idle."""
        if not self._grow or len(self._threads) >= _MOST_THREADS:
            return
        (since, used), now = self._looked, time.monotonic()
        if now - since < _LOOK_SECONDS:
            return
        busy = time.process_time()
        self._looked = now, busy
        if (busy - used) / (now - since) < _WAITING:
            self._start()
            self._room.release(2)

    def stop(self, *, wait: bool = False) -> None:
        """Stop the threads and drop unread results.

        Args:
            wait: Whether to wait for jobs that are running, however long they take.
        """
        self._stopped = True
        for _ in self._threads:
            self._room.release()
        until = time.monotonic() + _LEAVE_SECONDS
        for thread in self._threads:
            if thread is not threading.current_thread():  # the garbage collector may run this in any thread
                thread.join(None if wait else max(0.0, until - time.monotonic()))
        self._done.clear()


class TaskQueue:
    """Tasks from an iterable: each thread that asks gets the next item.

    Attributes:
        failure: What the iterable raised.
    """

    def __init__(self, jobs: Iterable[Any]) -> None:
        self._jobs = iter(jobs)
        self._lock = threading.Lock()
        self._taken = 0
        self._ended = False
        self.failure: BaseException | None = None

    def take(self) -> tuple[int, int, Any] | None:
        """Return the next item with its number; None at the end and after a failure."""
        with self._lock:
            if self._ended:
                return None
            try:
                job = next(self._jobs)
            except StopIteration:
                self._ended = True
                return None
            except BaseException as error:
                self._ended, self.failure = True, error
                return None
            self._taken += 1
            return self._taken - 1, 1, job

    def close(self) -> None:
        """Close the iterator, if it is a generator; a thread that still waits for it closes it by dropping it."""
        self._ended = True
        if self._lock.acquire(blocking=False):
            if (close := getattr(self._jobs, "close", None)) is not None:
                close()
            self._lock.release()


@dataclass(frozen=True)
class ThreadEngine:
    """An engine of threads, which last as long as one `map`.

    Attributes:
        workers: How many threads, the consumer included.
        grow: Whether to start more while these wait for something other than the processors.
        ahead: How many results may wait for an earlier one; by default two for each thread.
        wait: Whether leaving waits for jobs that are running, however long they take: for jobs that write.
    """

    workers: int
    grow: bool = False
    ahead: int | None = None
    wait: bool = False

    def map(self, function: Callable[[Any], Any], jobs: Iterable[Any]) -> Generator[Any, None, None]:
        """Yield the function's result for each job, in the order of the jobs."""
        tasks = TaskQueue(jobs)
        pool = OrderedThreadPool(self.workers, tasks, function, grow=self.grow, ahead=self.ahead)
        try:
            yield from pool.results()
        finally:
            pool.stop(wait=self.wait)
            tasks.close()
