"""Changed: what a command that changes fields or records has made, told in the same way by all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import recordkit as rk
from recordkit.wording import clean, counted

if TYPE_CHECKING:
    import argparse

    from recordkit.tools import Changed

    from ..terminal.screen import Screen

__all__ = ["rows_of", "tell"]

_SHOWN = 5


def rows_of(path: str, screen: Screen) -> int | None:
    """Return how many records a dataset has, if someone watches how far they are done."""
    return len(rk.open(path)) if screen.draws else None


def tell(changed: Changed, words: str, args: argparse.Namespace, screen: Screen, **facts: Any) -> int:
    """Print what was made, and return the status: 1 if some values could not be."""
    if args.json:
        failures = [{"record": each.record, "words": each.words} for each in changed.failures]
        made = {"path": changed.path, "records": changed.records, "fields": list(changed.fields)}
        screen.json({**made, "failures": failures, **facts})
    else:
        screen.print(screen.style(clean(words), "bold", "green"))
        screen.print(f"  {clean(changed.path)}")
        _print_failures(changed, screen)
    return 1 if changed.failures else 0


def _print_failures(changed: Changed, screen: Screen) -> None:
    if not changed.failures:
        return
    words = f"  {counted(len(changed.failures), 'value')} could not be made, and stayed missing:"
    screen.print(screen.style(words, "yellow"))
    for failure in changed.failures[:_SHOWN]:
        screen.print(f"    record {failure.record:,}: {clean(failure.words)}")
    if len(changed.failures) > _SHOWN:
        screen.print(f"    and {len(changed.failures) - _SHOWN:,} more")
