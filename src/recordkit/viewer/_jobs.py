"""Jobs: long work in the background, within a budget, that says how far it is and can be stopped and gone on with."""

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
    """What a job does."""

    def run(self, tell: Tell) -> None:
        """Go on from where the last run was ended; `tell` may raise, and its state has to be right before that."""

    def result(self) -> dict[str, Any]:
        """Return what is known so far."""


class _JobEnded(Exception):  # noqa: N818 - it is no error
    """The budget is used up, or the user has seen enough."""

    def __init__(self, state: State) -> None:
        super().__init__(state)
        self.state = state


class Job:
    """A piece of work in a thread of its own.

    Args:
        what: One word for it, for the page.
        work: What to do.
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
        """Begin."""
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
        """Ask it to end; it does so at its next step."""
        self._stop.set()

    def wait(self, seconds: float) -> None:
        """Wait until it has ended, but no longer than this."""
        self._thread.join(seconds)

    def more(self) -> None:
        """Go on with it, for one more budget."""
        with self._lock:
            if self.state not in ("stopped", "paused"):
                return
            self._stop.clear()
            self.state = "running"
            self._thread = threading.Thread(target=self._run, name=self._thread.name, daemon=True)
        self._thread.start()

    def report(self) -> dict[str, Any]:
        """Return how far it is and what is known, for the page."""
        state = self.state  # before the result: what was done by then is in it
        done, total, unit = self._progress
        report = {"what": self.what, "state": state, "done": done, "total": total, "unit": unit, "words": self.words}
        return report | self.work.result()


class Jobs:
    """The jobs of one server. A new one takes the place of those of its kind that still run."""

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
        """Stop all, and wait for them a little."""
        for job in list(self._jobs.values()):
            job.stop()
        for job in list(self._jobs.values()):
            job.wait(2)
