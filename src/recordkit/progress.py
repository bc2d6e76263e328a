"""Progress: a hook that long work reports to. Nothing here draws.

>>> with reporting(lambda report: print(report)):
...     step("writing", 500, 1000, "rows")
Report(what='writing', done=500, total=1000, unit='rows')
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator

from collections.abc import Callable

__all__ = ["Hook", "Report", "reporting", "silent", "step"]


@dataclass(frozen=True)
class Report:
    """How far a piece of work has come.

    Attributes:
        what: The work, such as `"writing train"`.
        done: How much is done.
        total: How much there is; None if that is not known.
        unit: What is counted, such as `"rows"`.
    """

    what: str
    done: int
    total: int | None
    unit: str


Hook: TypeAlias = Callable[[Report], None]

_hook: ContextVar[Hook | None] = ContextVar("recordkit_progress", default=None)


@contextmanager
def reporting(hook: Hook) -> Iterator[None]:
    """Let all work inside the block report to `hook`."""
    token = _hook.set(hook)
    try:
        yield
    finally:
        _hook.reset(token)


@contextmanager
def silent() -> Iterator[None]:
    """Let no work inside the block report: whoever has it done does, in better words."""
    token = _hook.set(None)
    try:
        yield
    finally:
        _hook.reset(token)


def step(what: str, done: int, total: int | None, unit: str) -> None:
    """Tell the hook, if there is one, how far the work has come."""
    if (hook := _hook.get()) is not None:
        hook(Report(what, done, total, unit))
