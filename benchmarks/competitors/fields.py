"""New fields with recordkit: baked into new files, or kept beside the records."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import columns
import numpy as np
from cases import READ_SHARE
from columns import Digest
from worker import Done, Request, Work

import recordkit as rk


def bake(request: Request) -> Work:
    """Write the records anew with the fields in them. A file without a manifest is counted first, each time."""
    out = Path(request["output"])
    target = out if Path(request["file"]).is_file() else out.with_suffix("")
    options = {"out": target, "sync": request.get("sync", False)}
    new = arrays(request)

    def work(digest: Digest | None) -> int:
        with tempfile.TemporaryDirectory() as empty:
            os.environ["XDG_CACHE_HOME"] = empty
            return rk.add_fields(request["file"], new, **options).records

    return work


def overlay(request: Request) -> Work:
    """Write the fields alone, and count what is read meanwhile."""
    options = {"overlay": overlay_of(request), "sync": request.get("sync", False)}
    new, size = arrays(request), size_of(Path(request["file"]))

    def work(digest: Digest | None) -> Done:
        before = read_so_far()
        made = rk.add_fields(request["file"], new, **options)
        read = read_so_far() - before
        return Done(made.records, figures={READ_SHARE: 100 * read / size})

    return work


def overlay_of(request: Request) -> Path:
    return Path(request["output"]).with_suffix(".overlay")


def arrays(request: Request) -> dict[str, Any]:
    """The new columns, again and again where the records are."""
    cycles = request.get("cycles", 1)
    drawn = columns.load(request["folder"], request["adds"])
    return {name: np.tile(column[: request["records"] // cycles], cycles) for name, column in drawn.items()}


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob("*.tfrecord"))


def read_so_far() -> int:
    """Bytes that this process has asked the system to read, from the page cache or not.

    Files are mapped only when they were read at many places one by one, which nothing does here.
    """
    facts = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(facts["rchar"])


JOBS = {"bake": bake, "overlay": overlay}
