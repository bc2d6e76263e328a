"""Audit: a hook of the interpreter that sees what is unpickled, and by whom, whatever a test does."""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING, Any

import recordkit

if TYPE_CHECKING:
    from types import FrameType

OURS = str(Path(recordkit.__file__).parent)
LIBRARIES = tuple(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))
# What our own process has pickled for the processes it started.
ALLOWED = str(Path(OURS, "pipeline", "_processes.py"))

found: list[str] = []


class UnpickledError(Exception):
    """Something of recordkit's has unpickled what may come from a file."""


def caller(frame: FrameType | None) -> str:
    """Return the file of the innermost frame that is of no library."""
    while frame is not None:
        path = frame.f_code.co_filename
        if path.startswith(OURS) or not path.startswith((*LIBRARIES, "<")):
            return path
        frame = frame.f_back
    return ""


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if event != "pickle.find_class":
        return
    path = caller(sys._getframe(1))
    if path.startswith(OURS) and path != ALLOWED:
        found.append(f"{path}: {arguments}")
        raise UnpickledError(found[-1])


def watch() -> None:
    """Look at everything from now on; a hook cannot be taken away again."""
    sys.addaudithook(_hook)
