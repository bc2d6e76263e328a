"""Cases: the words that plans are written in, and the names of what is measured besides the speed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Case:
    """One thing that one competitor does.

    Attributes:
        label: What it is called in tables; unique in its task.
        competitor: Who does it.
        options: What goes into the request besides what the workload says.
        variants: Several ways of doing it, of which the one with the best median counts.
        prefix: Slow ones handle this many records only, at scale 1; speeds are records a second all the same.
        gigabytes: Write the workload's first rows, or read all of it, again and again until it is about as much, at
            scale 1.
    """

    label: str
    competitor: str
    options: Mapping[str, Any] = field(default_factory=dict)
    variants: tuple[Mapping[str, Any], ...] = ({},)
    prefix: int | None = None
    gigabytes: float | None = None


@dataclass(frozen=True)
class Ratio:
    """How many times the speed of `to` is that of `of`, and what was promised.

    Attributes:
        of: The label of a case.
        to: The label of another; None to hold a figure of `of` by itself against the bar.
        bar: Such as ">= 10"; None where nothing was promised.
        percent: Whether to print it as a percentage.
        words: What to call it, where "of / to" would not say it.
        figure: What is compared in place of the speed: a figure that both cases come with.
        unit: Of a figure that is held against the bar by itself.
    """

    of: str
    to: str | None
    bar: str | None = None
    percent: bool = False
    words: str | None = None
    figure: str | None = None
    unit: str = "MB"


@dataclass(frozen=True)
class Task:
    """Cases that are run in turns, so that whatever else the machine does falls on all of them alike."""

    name: str
    title: str
    job: str
    workload: str | None
    cases: tuple[Case, ...]
    ratios: tuple[Ratio, ...]
    least_repeats: int = 1
    most_repeats: int | None = None

    @property
    def writes(self) -> bool:
        """Whether its cases leave files, which are read back."""
        return self.job in ("encode", "write", "memory", "bake", "overlay")

    @property
    def counts(self) -> bool:
        """Whether nothing but the number of records can be compared."""
        return self.job in ("count", "verify", "streaming", "opening", "first", "epochs", "view")

    @property
    def in_any_order(self) -> bool:
        """Whether records come in an order that is each one's own."""
        return self.job in ("pipeline", "images")


# Figures besides the speed. Of what was written, everything counts that lies in the folder, index and manifest too.
SIZE = "bytes a record"
SETTLED, PEAK, GROWTH = "MB of memory after 1 GB", "MB at its peak", "MB more"
READ_SHARE = "% of the base read"
MICROSECONDS, OPENED, FIRST_ROW = "us a record", "seconds to open", "ms to a row"
FIRST_BATCH, FIRST_EPOCH = "seconds to the first batch", "MB at most in the first epoch"
FIRST_PAGE, JUMP = "seconds to the first page", "ms for the slowest of 50 jumps"
MIB_A_READ, QUALITY = "MiB a read", "dB PSNR"
