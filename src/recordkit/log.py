"""The log: one line for each event, on the logger `recordkit`.

Names in it come from strangers' folders and files, so everything in them that a terminal would obey is escaped.
"""

from __future__ import annotations

from typing import Any

from recordkit.wording import clean

__all__ = ["info", "warning"]


def info(message: str, *values: Any) -> None:
    """Log something that happened as planned. `values` fill the places of `message`, as in `logging`."""
    _log("INFO", message, values)


def warning(message: str, *values: Any) -> None:
    """Log something that the caller may want to change."""
    _log("WARNING", message, values)


def _log(level: str, message: str, values: tuple[Any, ...]) -> None:
    import logging  # here, because importing it takes as long as all of this package

    logger = logging.getLogger("recordkit")
    logger.log(getattr(logging, level), message, *map(_shown, values), stacklevel=3)


def _shown(value: Any) -> Any:
    if isinstance(value, int | float):
        return value
    if isinstance(value, Exception):  # its advice has a line of its own
        return "\n  ".join(map(clean, str(value).split("\n  ")))
    return clean(str(value))
