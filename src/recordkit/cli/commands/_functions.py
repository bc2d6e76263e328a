"""Functions: the user's functions, named on the command line as FILE.py:FUNCTION or MODULE:FUNCTION."""

from __future__ import annotations

import signal
import sys
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recordkit.wording import listed

from .._parser import UsageError
from ..terminal.bar import heed, stop

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

__all__ = ["function"]


def function(text: str) -> Callable[[Any], Any]:
    """Return the function with a name such as `module.py:height_of`.

    Raises:
        UsageError: There is no such function.

    >>> function("math:sqrt")(9)
    3.0
    """
    place, _, name = text.rpartition(":")
    if not place or not name:
        message = f"{text}: this is not the name of a function\n  Write FILE.py:FUNCTION, or MODULE:FUNCTION."
        raise UsageError(message)
    module = _file(Path(place)) if place.endswith(".py") else _module(place)
    found: Any = module
    for part in name.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        offered = [each for each, value in vars(module).items() if callable(value) and not each.startswith("_")]
        advice = f"It has: {listed(offered)}." if offered else "It has no functions."
        message = f"{place}: there is no function {name!r}\n  {advice}"
        raise UsageError(message)
    return Heeding(found)


@dataclass(frozen=True)
class Heeding:
    """A function that Ctrl-C stops in any thread."""

    fn: Callable[[Any], Any]

    def __call__(self, row: Any) -> Any:
        heed()
        return self.fn(row)

    def __reduce__(self) -> tuple[Any, ...]:
        return _in_another_process, (self.fn,)


def _in_another_process(fn: Callable[[Any], Any]) -> Heeding:
    # A worker process that was interrupted still gets the remaining jobs.
    signal.signal(signal.SIGINT, stop)
    return Heeding(fn)


def _file(path: Path) -> ModuleType:
    """Import a file as a module under its own name, so that worker processes find its functions."""
    if not path.is_file():
        message = f"{path}: there is no such file\n  Write FILE.py:FUNCTION, or MODULE:FUNCTION."
        raise UsageError(message)
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    module = _module(path.stem)
    if Path(module.__file__ or "").resolve() != path.resolve():
        message = f"{path}: there is another module called {path.stem}\n  Give the file another name."
        raise UsageError(message)
    return module


def _module(name: str) -> ModuleType:
    try:
        return import_module(name)
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        message = f"{name}: this module cannot be imported: {what}\n  Try: python -c 'import {name}'"
        raise UsageError(message) from error
