"""Bar: progress on the terminal, with the rate and the time left. It is drawn on stderr and removed at the end."""

from __future__ import annotations

import shutil
import signal
import sys
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from recordkit import progress
from recordkit.wording import clean, format_size

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

    from recordkit.progress import Report

    from .screen import Screen

_WAIT: Final = 0.4  # seconds before the bar appears
_EVERY: Final = 0.1
_SLOT: Final = 24
_LEAST: Final = 12  # characters of the name

_stopped = threading.Event()


@contextmanager
def working(screen: Screen, *, rows: int | None = None) -> Iterator[None]:
    """Draw the progress of the block, and let Ctrl-C stop all of its threads.

    Args:
        screen: The screen.
        rows: The number of rows to be written, if the work itself does not know it.
    """
    bar = Bar(screen, rows)
    try:
        with _stopping(), progress.reporting(bar):
            yield
    finally:
        bar.clear()


@contextmanager
def _stopping() -> Iterator[None]:
    """Stop all threads at Ctrl-C, because the main thread waits for the others."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        _stopped.clear()


def stop(number: int, frame: FrameType | None) -> None:
    """Handle Ctrl-C: raise in this thread now, and in others at their next `heed`."""
    _stopped.set()
    raise KeyboardInterrupt


def heed() -> None:
    """Raise `KeyboardInterrupt` if the user has pressed Ctrl-C, unless this runs during its cleanup."""
    if _stopped.is_set() and sys.exc_info()[0] is not KeyboardInterrupt:
        raise KeyboardInterrupt


class Bar:
    """A progress bar. Safe to report to from many threads."""

    def __init__(self, screen: Screen, rows: int | None = None) -> None:
        self._screen = screen
        self._draws = screen.draws
        self._rows = rows
        self._lock = threading.Lock()
        self._started: float | None = None  # at the first report, when all modules are loaded
        self._drawn = 0.0
        self._parts: dict[int, int] = {}  # rows of the current part, by thread
        self._coming: dict[int, int] = {}  # values computed for the next rows, by thread
        self._finished = 0
        self._on_screen = False

    def __call__(self, report: Report) -> None:
        """Take a report.

        Raises:
            KeyboardInterrupt: The user pressed Ctrl-C.
        """
        heed()
        if not self._draws:
            return
        with self._lock:
            if self._rows is not None:
                if report.unit not in ("rows", "values"):
                    return
                report = self._summed(report)
            now = time.monotonic()
            if self._started is None:
                self._started = now
            if now - self._started >= _WAIT and now - self._drawn >= _EVERY:
                self._drawn = now
                self._draw(report, now - self._started)

    def _summed(self, report: Report) -> Report:
        """Return the rows of all parts, which threads write in parallel and in sequence."""
        thread = threading.get_ident()
        if report.unit == "values":  # several fields are computed one after the other
            self._coming[thread] = max(report.done, self._coming.get(thread, 0))
        else:
            before = self._parts.get(thread, 0)
            if report.done < before:
                self._finished += before
            self._parts[thread] = report.done
            self._coming.pop(thread, None)
        done = self._finished + sum(self._parts.values()) + sum(self._coming.values())
        return progress.Report(report.what, done, self._rows, "rows")

    def line(self, report: Report, seconds: float, width: int) -> str:
        """Return the line for a report, `seconds` after the start; if it is too long, the name is cut."""
        from .screen import cells, cut

        how_far = _how_far(report, seconds)
        return cut(f"{cut(clean(report.what), max(_LEAST, width - cells(how_far) - 2))}  {how_far}", width)

    def _draw(self, report: Report, seconds: float) -> None:
        width = shutil.get_terminal_size().columns
        self._screen.err.write(f"\r{self.line(report, seconds, width - 1)}\x1b[K")
        self._screen.err.flush()
        self._on_screen = True

    def clear(self) -> None:
        """Remove the bar."""
        with self._lock:
            if self._on_screen:
                self._screen.err.write("\r\x1b[K")
                self._screen.err.flush()
                self._on_screen = False


def _how_far(report: Report, seconds: float) -> str:
    """Return the share, the rate and the time left; without a total, the amount and the rate."""
    done, total, unit = report.done, report.total, report.unit
    rate = done / seconds if seconds > 0 else 0.0
    if not total:
        return f"{amount(done, unit)}  {amount(int(rate), unit)}/s"
    share = min(1.0, done / total)
    full = int(share * _SLOT)
    left = _clock((total - done) / rate) if rate > 0 and done <= total else "?"
    slot = f"{'━' * full}{'╌' * (_SLOT - full)}"
    return f"{slot} {share:4.0%}  {amount(int(rate), unit)}/s  {left} left"


def amount(number: int, unit: str) -> str:
    """Return a number with its unit.

    >>> amount(12_345_678, "bytes"), amount(12_345, "rows")
    ('12.3 MB', '12,345 rows')
    """
    if unit != "bytes":
        return f"{number:,} {unit}"
    return format_size(number)


def _clock(seconds: float) -> str:
    """Return a time for people.

    >>> _clock(7.2), _clock(200), _clock(9000)
    ('8 s', '3:20', '2:30:00')
    """
    whole = int(seconds) + 1 if seconds != int(seconds) else int(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
