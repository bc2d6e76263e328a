"""Damage log: what was passed over while reading, counted, listed, and said at the end."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Literal, TypeAlias

from recordkit import log
from recordkit.errors import CorruptRecordError
from recordkit.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable

    from recordkit.storage import Damage

OnError: TypeAlias = "Literal['raise', 'skip'] | Callable[[Damage], None]"


class DamageLog:
    """Takes every damage that reading meets.

    Args:
        on_error: What to do about one: `"skip"`, or a function that is given it.
        max_bad: More than so many end the reading.
    """

    def __init__(self, on_error: OnError, max_bad: int | None) -> None:
        if not callable(on_error) and on_error not in ("raise", "skip"):
            message = f"on_error is 'raise', 'skip' or a function, found {on_error!r}"
            raise ValueError(message)
        self.on_error = on_error
        self.max_bad = max_bad
        self._found: dict[tuple[str, str, int], Damage] = {}
        self._lock = threading.Lock()

    @property
    def tolerant(self) -> bool:
        """Whether reading goes on behind damage."""
        return self.on_error != "raise"

    @property
    def damage(self) -> tuple[Damage, ...]:
        """All that was found so far, each once, however often the records were read."""
        return tuple(self._found.values())

    def tell(self, damage: Damage) -> None:
        """Take one.

        Raises:
            CorruptRecordError: There are more than allowed.
        """
        with self._lock:
            new = self._found.setdefault((damage.path, damage.kind, damage.offset), damage) is damage
            bad = len(self._found)
        if callable(self.on_error) and new:
            self.on_error(damage)
        if self.max_bad is not None and bad > self.max_bad:
            message = (
                f"{damage}\n  With it, {bad} places are damaged, and max_bad={self.max_bad}. "
                "recordkit.verify lists all damage of a file."
            )
            raise CorruptRecordError(
                message, path=damage.path, record=damage.record, offset=damage.offset, kind=damage.kind
            )

    def say(self, before: int) -> None:
        """Say in the log what was passed over since there were `before` damages."""
        found = self.damage[before:]
        if not found:
            return
        files = len({damage.path for damage in found})
        log.warning(
            "%s in %s passed over; the first: %s",
            counted(len(found), "damaged place"),
            counted(files, "file"),
            found[0],
        )
