"""Load: how much of the processors went to others while we measured; on a busy machine no figure is worth keeping."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

TICKS = os.sysconf("SC_CLK_TCK")


def busy() -> float:
    """Return the seconds that all processors together have worked, or were taken away by the host; Linux only."""
    user, nice, system, _, _, irq, softirq, steal = map(int, Path("/proc/stat").read_text().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / TICKS


def used_by(process: int) -> float:
    """Return the seconds a process and its ended children have worked; 0 for one that is gone."""
    try:
        # Behind the name, which is in brackets and may hold anything, the eleventh to the fourteenth number.
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / TICKS


class Watch:
    """Tells afterwards which share of the processors others had.

    Args:
        ours: Gives the ids of our processes; they may become more while we watch.
    """

    def __init__(self, ours: Callable[[], Iterable[int]]) -> None:
        self._ours = ours
        self._start = self._now()

    def _now(self) -> tuple[float, float, float] | None:
        if not Path("/proc/stat").exists():
            return None
        return time.monotonic(), busy(), sum(map(used_by, self._ours()))

    def others(self) -> float | None:
        """Return their share, from 0 to 1; None where the system does not say."""
        now = self._now()
        if self._start is None or now is None:
            return None
        elapsed, all_of_it, ours = (after - before for after, before in zip(now, self._start, strict=True))
        return max(0.0, (all_of_it - ours) / (elapsed * (os.cpu_count() or 1)))
