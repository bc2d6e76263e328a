"""Reading with recordkit: whole datasets, single records, counts and checks, through what users call."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from cases import MICROSECONDS
from columns import Digest, Lists, picked
from worker import Done, Request, Work

import recordkit as rk
from recordkit.columns import BytesColumn, Ragged


def plain(column: Any) -> Any:
    """A column as digests take it."""
    if isinstance(column, list):
        column = BytesColumn.of(column)
    if isinstance(column, BytesColumn):
        return Lists(column.data, column.offsets)
    if isinstance(column, Ragged):
        return Lists(column.values, column.offsets[0])
    return column


def batches(request: Request) -> Work:
    """Open a dataset and go through it in batches, with every column made; as many threads as there are processors.

    With `objects`, each value of a column of bytes is Python's `bytes` for a moment, too.
    """
    options = {"schema": request["fields"] if request.get("declared") else None}
    if "overlays" in request:
        options["overlays"] = request["overlays"]

    def work(digest: Digest | None) -> int:
        done = 0
        for batch in rk.open(request["file"], **options).batch(request["batch"], workers=request.get("workers")):
            columns = {name: batch[name] for name in batch.names}
            if request.get("objects"):
                columns |= {name: objects(column, digest) for name, column in columns.items()}
            done += len(batch)
            if digest:
                digest.add_columns({name: plain(column) for name, column in columns.items()})
        return done

    return work


def objects(column: Any, digest: Digest | None) -> Any:
    """Go through the values of a column of bytes, and keep them where they are compared."""
    if not isinstance(column, BytesColumn) or digest:
        return list(column) if isinstance(column, BytesColumn) else column
    for _ in column:
        pass
    return column


def random(request: Request) -> Work:
    """Look records up, one by one or all at once; the dataset is open and has its index."""
    numbers = picked(request["records"], request["picks"]).tolist()
    os.environ["XDG_CACHE_HOME"] = str(Path(request["folder"]) / "cache")
    ds = rk.open(request["file"])
    return at_once(ds, numbers) if request.get("at_once") else one_by_one(ds, numbers)


def at_once(ds: rk.Dataset, numbers: list[int]) -> Work:
    def work(digest: Digest | None) -> int:
        batch = ds[numbers]
        columns = {name: batch[name] for name in batch.names}
        if digest:
            digest.add_columns({name: plain(column) for name, column in columns.items()})
        return len(batch)

    return work


def one_by_one(ds: rk.Dataset, numbers: list[int]) -> Work:
    def work(digest: Digest | None) -> int:
        if digest:
            rows = [ds[number] for number in numbers]
            digest.add_columns({name: np.array([row[name] for row in rows]) for name in rows[0]})
            return len(rows)
        for number in numbers:
            ds[number]
        return len(numbers)

    return work


def count(request: Request) -> Work:
    """Open a file and count its records, with no index anywhere."""

    def work(digest: Digest | None) -> Done:
        with tempfile.TemporaryDirectory() as empty:
            os.environ["XDG_CACHE_HOME"] = empty
            start = time.perf_counter()
            found = len(rk.open(request["file"]))
            seconds = time.perf_counter() - start
        return Done(found, seconds, {MICROSECONDS: seconds * 1e6 / found})

    return work


def verify(request: Request) -> Work:
    """Check framing and CRCs of a file, and tell its records."""

    def work(digest: Digest | None) -> int:
        report = rk.verify(request["file"], check="records", workers=request["threads"])
        if not report.ok:
            raise ValueError(str(report))
        return sum(file.records for file in report.files)

    return work


def alone(request: Request) -> Work:
    """Do it in a process of its own, and say how much memory that took."""
    command = [sys.executable, "-m", "competitors.memory", json.dumps(request)]

    def work(digest: Digest | None) -> Done:
        ended = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True)
        if ended.returncode:
            message = f"the process that was watched ended with status {ended.returncode}"
            raise RuntimeError(message)
        return Done(**json.loads(ended.stdout))

    return work


JOBS = {"random": random, "count": count, "verify": verify, "streaming": alone, "opening": alone}
