"""Limits: what may not be passed while untrusted files are read."""

from __future__ import annotations

import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def in_time(seconds: float) -> Iterator[None]:
    """Raise if what is done takes longer."""

    def stop(*_: object) -> None:
        message = f"it took more than {seconds} seconds"
        raise TimeoutError(message)

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
