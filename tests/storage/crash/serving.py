"""Serving: a process under the shim that forks a child for each trial, so that a trial costs no import.

It reads one request a line from its standard input and answers each with one line: see `Request` and `Outcome`.
Started by `harness.Server`.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import os
import select
import signal
import sys
import time
import traceback
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

TIMEOUT = 60.0  # seconds; a trial takes hundredths of one


@dataclass(frozen=True)
class Request:
    """A function to call with a folder, and the environment for the shim meanwhile."""

    module: str
    function: str
    folder: str
    options: dict[str, Any]
    environment: dict[str, str]


@dataclass(frozen=True)
class Outcome:
    """How a child ended.

    Attributes:
        value: What the function returned.
        error: The type of the exception that ended it, with its parents; empty if there was none.
        text: The exception in words.
        errno: Its number, if it is an OSError.
        trace: Where it was raised, the innermost call last.
        signal: What killed it; SIGALRM means that it hung.
        stderr: What it printed there.
    """

    value: Any = None
    error: tuple[str, ...] = ()
    text: str = ""
    errno: int | None = None
    trace: str = ""
    signal: int = 0
    stderr: str = ""


def run(request: Request) -> Outcome:
    """Call the function, in this process."""
    os.environ.update(request.environment)
    ctypes.CDLL(None).rk_shim_reload()
    try:
        value = getattr(importlib.import_module(request.module), request.function)(request.folder, **request.options)
    except BaseException as error:
        names = tuple(kind.__name__ for kind in type(error).__mro__)
        frames = traceback.extract_tb(error.__traceback__)[2:]
        trace = " > ".join(f"{Path(frame.filename).name}:{frame.lineno} {frame.name}" for frame in frames)
        return Outcome(None, names, str(error), getattr(error, "errno", None), trace)
    return Outcome(value)


@cache
def warm_up(module: str) -> None:
    """Import a module, and do once what would take time in each child."""
    ready = getattr(importlib.import_module(module), "warm_up", None)
    if ready is not None:
        ready()
    gc.freeze()


def serve_one(request: Request) -> Outcome:
    """Fork a child for the request and wait for its end."""
    warm_up(request.module)
    stderr = os.memfd_create("stderr")
    try:
        outcome = _in_child(request, stderr)
        printed = os.pread(stderr, 1 << 20, 0).decode(errors="replace")
    finally:
        os.close(stderr)
    return replace(outcome, stderr=printed)


def _in_child(request: Request, stderr: int) -> Outcome:
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(out)
        os.dup2(stderr, 2)
        # What is left of a writer when the function is over gets no second chance: the process ends here.
        try:
            with os.fdopen(into, "w") as file:
                json.dump(asdict(run(request)), file)
        finally:
            os._exit(0)
    os.close(into)
    answer, deadline = b"", time.monotonic() + TIMEOUT
    while select.select([out], [], [], max(0.0, deadline - time.monotonic()))[0]:
        piece = os.read(out, 1 << 20)
        if not piece:
            break
        answer += piece
    else:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(out)
        return Outcome(signal=signal.SIGALRM, text=f"still running after {TIMEOUT} s")
    os.close(out)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status < 0:
        return Outcome(signal=-status)
    return Outcome(**json.loads(answer))


def main() -> None:
    """Answer requests until there are no more."""
    for line in sys.stdin:
        sys.stdout.write(json.dumps(asdict(serve_one(Request(**json.loads(line))))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
