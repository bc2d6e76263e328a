"""Jobs: long work in the background, with a time budget and progress, that can be stopped and continued."""

from __future__ import annotations

import itertools
import threading
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias

from recordkit.errors import RecordKitError

if TYPE_CHECKING:
    from collections.abc import Callable

State: TypeAlias = Literal["running", "done", "stopped", "paused", "failed"]
Tell: TypeAlias = "Callable[[int, int | None, str], None]"

_KEPT: Final = 16


class Work(Protocol):
    """The work of a job."""

    def run(self, tell: Tell) -> None:
        """Continue where the last run ended. `tell` may raise, so save all state before each call."""

    def result(self) -> dict[str, Any]:
        """Return the result so far."""


class _JobEnded(Exception):  # noqa: N818 - not an error
    """The budget is used up, or the user stopped the job."""

    def __init__(self, state: State) -> None:
        super().__init__(state)
        self.state = state


class Job:
    """Work in a thread of its own.

    Args:
        what: Its name on the page, one word.
        work: The work.
        budget: Seconds after which it pauses; None for no limit.
    """

    def __init__(self, what: str, work: Work, budget: float | None) -> None:
        self.what = what
        self.work = work
        self.state: State = "running"
        self.words = ""
        self._budget = budget
        self._progress: tuple[int, int | None, str] = (0, None, "")
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"recordkit-{what}", daemon=True)
        self._lock = threading.Lock()

    def start(self) -> None:
        """Start it."""
        self._thread.start()

    def _run(self) -> None:
        end = None if self._budget is None else time.monotonic() + self._budget
        try:
            self.work.run(lambda done, total, unit: self._tell(end, done, total, unit))
            self.state = "done"
        except _JobEnded as enough:
            self.state = enough.state
        except Exception as error:  # shown on the page; the server goes on
            self.words = str(error) if isinstance(error, RecordKitError | ValueError) else repr(error)
            self.state = "failed"

    def _tell(self, end: float | None, done: int, total: int | None, unit: str) -> None:
        self._progress = done, total, unit
        if self._stop.is_set():
            state: State = "stopped"
            raise _JobEnded(state)
        if end is not None and time.monotonic() > end:
            state = "paused"
            raise _JobEnded(state)

    def stop(self) -> None:
        """Make it end at its next step."""
        self._stop.set()

    def wait(self, seconds: float) -> None:
        """Wait until it ends, or the time is over."""
        self._thread.join(seconds)

    def more(self) -> None:
        """Continue it, with a new budget."""
        with self._lock:
            if self.state not in ("stopped", "paused"):
                return
            self._stop.clear()
            self.state = "running"
            self._thread = threading.Thread(target=self._run, name=self._thread.name, daemon=True)
        self._thread.start()

    def report(self) -> dict[str, Any]:
        """Return its progress and its result so far, for the page."""
        state = self.state  # read first, so that the result covers at least this state
        done, total, unit = self._progress
        report = {"what": self.what, "state": state, "done": done, "total": total, "unit": unit, "words": self.words}
        return report | self.work.result()


class Jobs:
    """The jobs of one server. A new job stops the running ones of its kind."""

    def __init__(self) -> None:
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()

    def start(self, what: str, work: Work, budget: float | None = None) -> str:
        """Start a job, and return its name."""
        job = Job(what, work, budget)
        with self._lock:
            for other in self._jobs.values():
                if other.what == what:
                    other.stop()
            name = str(next(self._numbers))
            self._jobs[name] = job
            while len(self._jobs) > _KEPT:
                self._jobs.popitem(last=False)[1].stop()
        job.start()
        return name

    def __getitem__(self, name: str) -> Job:
        return self._jobs[name]

    def close(self) -> None:
        """Stop all jobs, and wait a moment for them."""
        for job in list(self._jobs.values()):
            job.stop()
        for job in list(self._jobs.values()):
            job.wait(2)
