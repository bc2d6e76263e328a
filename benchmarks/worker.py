"""Worker: a competitor's process, which answers requests as lines of JSON until its input ends.

A job takes the request and returns a function that does the work once; making it (opening environments, loading
columns) is not timed, and it is kept for the next repeat. That function takes a `Digest` to fill, in a pass that is
not timed, or None, and returns how many records it handled, or `Done` where there is more to say.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from columns import Digest

if TYPE_CHECKING:
    from pathlib import Path

Request = dict[str, Any]


class Done(NamedTuple):
    """What came out of doing the work once.

    Attributes:
        records: How many were handled.
        seconds: How long it took, from work that has its own clock.
        figures: What else was measured, by names of the plan.
    """

    records: int
    seconds: float | None = None
    figures: Mapping[str, float] = {}


Work = Callable[[Digest | None], int | Done]


def serve(versions: Mapping[str, str], jobs: Mapping[str, Callable[[Request], Work]]) -> None:
    """Say which versions these are, then answer requests."""
    # Libraries print to descriptor 1 as they like; answers go where they cannot.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    prepared: dict[str, Work] = {}

    def answer(request: Request) -> dict[str, Any]:
        if request["job"] == "forget":
            prepared.clear()
            gc.collect()
            return {}
        check = request.pop("check", False)
        key = json.dumps(request, sort_keys=True)
        if key not in prepared:
            prepared[key] = jobs[request["job"]](request)
        return checked(prepared[key]) if check else timed(prepared[key])

    print(json.dumps({"versions": dict(versions), "jobs": list(jobs)}), file=answers, flush=True)
    for line in sys.stdin:
        try:
            said = answer(json.loads(line))
        except Exception as error:
            traceback.print_exc()
            said = {"error": f"{type(error).__name__}: {error}".splitlines()[0]}
        print(json.dumps(said), file=answers, flush=True)


def checked(work: Work) -> dict[str, Any]:
    digest = Digest()
    done = work(digest)
    return {"records": done.records if isinstance(done, Done) else done, "digest": digest.result()}


def timed(work: Work) -> dict[str, Any]:
    gc.collect()
    busy, start = worked(), time.perf_counter()
    done = work(None)
    seconds, busy = time.perf_counter() - start, worked() - busy
    if not isinstance(done, Done):
        done = Done(done)
    own = seconds if done.seconds is None else done.seconds
    return {"records": done.records, "seconds": own, "cpu": busy, "figures": dict(done.figures)}


def worked() -> float:
    """Return the seconds that all threads of this process, and its children that have ended, kept processors busy."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


def sync(file: str | Path) -> None:
    """Return when a file is on the disk."""
    descriptor = os.open(file, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
