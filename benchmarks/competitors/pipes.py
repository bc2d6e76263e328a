"""Pipelines with recordkit: shuffled batches, the first of many records, and what memory they take over epochs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from cases import MIB_A_READ
from competitors.reading import alone, plain
from worker import Done, Request, Work

import recordkit as rk

if TYPE_CHECKING:
    from columns import Digest

SEED = 7
PICTURES: dict[str, Any] = {"size": (224, 224), "dtype": "float32", "scale": 1 / 255}


def piped(request: Request) -> rk.Pipeline:
    """Return the pipeline that a request is about."""
    pipe: Any = rk.open(request["file"])
    if "interleave" in request:
        pipe = pipe.interleave(request["interleave"])
    if "shuffle" in request:
        pipe = pipe.shuffle(SEED, **request["shuffle"])
    if request.get("images"):
        pipe = pipe.decode_images("image", scaled=request.get("scaled", False), **PICTURES)
    batches: rk.Pipeline = pipe.batch(request["batch"], pad=request.get("pad")).prefetch()
    return batches


def made(batch: rk.Batch) -> dict[str, Any]:
    """Every column of a batch."""
    return {name: batch[name] for name in batch.names}


def pipeline(request: Request) -> Work:
    """Open a dataset and go through an epoch, with every column made."""

    def work(digest: Digest | None) -> int | Done:
        done, before = 0, reads_so_far()
        for batch in piped(request):
            columns = made(batch)
            done += len(batch)
            if digest:
                digest.add_in_any_order({name: plain(column) for name, column in columns.items()})
        if "window" not in request.get("shuffle", {}):
            return done
        calls, size = (after - first for after, first in zip(reads_so_far(), before, strict=True))
        return Done(done, figures={MIB_A_READ: size / calls / (1 << 20)})

    return work


def reads_so_far() -> tuple[int, int]:
    """How often this process has asked the system to read, and how many bytes it got; Linux only."""
    facts = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(facts["syscr"]), int(facts["rchar"])


JOBS = {"pipeline": pipeline, "first": alone, "epochs": alone, "view": alone}
