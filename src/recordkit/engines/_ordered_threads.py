"""Crew: threads that make something of one thing after the other, and hand it over in order."""

from __future__ import annotations

import threading
import time
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

_MOST_THREADS = 32
_LOOK_SECONDS = 0.05  # between looks at whether more threads would help
_LEAVE_SECONDS = 1.0  # a function that does not return cannot be stopped, and is not waited for
_WAITING = 0.7  # of one processor: where all threads together use less, they wait for something else


class OrderedThreadPool:
    """Threads that make something of what they take, and hand it over in order.

    Each holds at most one result that was not yet asked for, and there is room for as many more. Whoever asks for
    results is one of the workers: where the next one is not there, it does not wait but makes one itself.

    Args:
        workers: How many, with whoever asks.
        take: Returns the next thing as (its place in the order, how many places it takes, the thing), or None at the
            end. Called by many threads at once.
        make: Takes the thing.
        failure: What went wrong in taking, raised behind everything that was taken before.
        grow: Whether more threads are started where those there are wait for something other than processors.
    """

    def __init__(
        self,
        workers: int,
        take: Callable[[], tuple[int, int, Any] | None],
        make: Callable[[Any], Any],
        failure: Callable[[], BaseException | None],
        *,
        grow: bool = False,
    ) -> None:
        self._take = take
        self._make = make
        self._failure = failure
        self._room = threading.Semaphore(2 * workers)
        self._most_done = 2 * workers + 1  # that wait for one before them: whoever asks makes no more then
        self._change = threading.Condition()
        # By place: how many places, what was made or went wrong, and whether it takes room.
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
            # Others may be waiting for room to find that there is nothing left.
            self._room.release()

    def _work(self, *, room: int) -> bool:
        """Make something of the next thing; False if there is none, or taking has failed.

        Args:
            room: How much of the room the result takes.
        """
        try:
            taken = self._take()
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt) and not room:
                raise
            return False  # it is told by `failure`, and raised behind all that was taken before
        if taken is None:
            if not room and isinstance(failure := self._failure(), KeyboardInterrupt):
                raise failure
            return False
        place, width, thing = taken
        result: Any
        try:
            result = self._make(thing)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt) and not room:
                raise  # whoever presses Ctrl-C does not wait for what comes before
            result = error
        with self._change:
            self._done[place] = (width, result, room)
            self._change.notify()
        return True

    @property
    def waiting(self) -> int:
        """How many results are there that nobody has asked for."""
        return len(self._done)

    def results(self) -> Iterator[Any]:
        """Yield what was made, in order; raise what went wrong where it did."""
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
                if (failure := self._failure()) is not None:
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
        """Start one more thread if results are waited for while the processors have nothing to do."""
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

    def stop(self) -> None:
        """Let the threads go; what they still hold is dropped."""
        self._stopped = True
        for _ in self._threads:
            self._room.release()
        until = time.monotonic() + _LEAVE_SECONDS
        for thread in self._threads:
            if thread is not threading.current_thread():  # which may be the one that collects what was forgotten
                thread.join(max(0.0, until - time.monotonic()))
        self._done.clear()


class TaskQueue:
    """Hands out what an iterator gives, one thing at a time, to whichever thread asks.

    Attributes:
        failure: What the iterator raised.
    """

    def __init__(self, things: Generator[Any, None, None]) -> None:
        self._things = things
        self._lock = threading.Lock()
        self._given = 0
        self._ended = False
        self.failure: BaseException | None = None

    def take(self) -> tuple[int, int, Any] | None:
        """Return the next thing with its number; None at the end, and behind a failure."""
        with self._lock:
            if self._ended:
                return None
            try:
                thing = next(self._things)
            except StopIteration:
                self._ended = True
                return None
            except BaseException as error:
                self._ended, self.failure = True, error
                return None
            self._given += 1
            return self._given - 1, 1, thing

    def close(self) -> None:
        """Let the iterator go; if a thread is still waiting for it, when that one forgets it."""
        self._ended = True
        if self._lock.acquire(blocking=False):
            self._things.close()
            self._lock.release()


def map_in_threads(
    things: Generator[Any, None, None], make: Callable[[Any], Any], workers: int, *, grow: bool = False
) -> Generator[Any, None, None]:
    """Yield what is made of each thing, in order, made by so many threads at once."""
    inbox = TaskQueue(things)
    crew = OrderedThreadPool(workers, inbox.take, make, lambda: inbox.failure, grow=grow)
    try:
        yield from crew.results()
    finally:
        crew.stop()
        inbox.close()
