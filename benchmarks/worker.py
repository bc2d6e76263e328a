"""Worker: a competitor's process, which answers requests as lines of JSON until its input ends.

A job takes the request and returns a function that does the work once; making it (opening environments, loading
columns) is not timed, and it is kept for the next repeat. That function takes a `Digest` to fill, in a pass that is
not timed, or None, and returns how many records it handled, or those and the seconds where it has its own clock.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from typing import Any

from columns import Digest

Request = dict[str, Any]
Work = Callable[[Digest | None], int | tuple[int, float]]


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
    return {"records": done[0] if isinstance(done, tuple) else done, "digest": digest.result()}


def timed(work: Work) -> dict[str, Any]:
    gc.collect()
    start = time.perf_counter()
    done = work(None)
    seconds = time.perf_counter() - start
    if isinstance(done, tuple):
        done, seconds = done
    return {"records": done, "seconds": seconds}
