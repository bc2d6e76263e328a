"""Derived: files that some tasks need besides a workload's own, made of its first records when they are first wanted.

Names end in how many records there are, so that a plan that wants more or fewer does not get the old ones.
"""

from __future__ import annotations

import gzip
import shutil
import time
from typing import TYPE_CHECKING

import columns

import recordkit as rk
from recordkit.records import Reader

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from workloads import Made

RECORDS_A_SHARD = 2


def ensure(name: str, made: Made, records: int) -> Path:
    """Return the path of a workload's file; one that is listed in MAKERS is made if need be."""
    if name not in MAKERS:
        return made.folder / name
    stem, _, ending = name.partition(".")
    target = made.folder / "derived" / f"{stem}-{records}{'.' if ending else ''}{ending}"
    if not target.exists():
        start = time.perf_counter()
        print(f"  making {target.name}", flush=True)
        target.parent.mkdir(exist_ok=True)
        MAKERS[name](made, records, target)
        print(f"  made in {time.perf_counter() - start:.0f} s", flush=True)
    return target


def ours(made: Made, records: int, target: Path) -> None:
    """With gzip, as recordkit writes it."""
    rk.write(target, drawn(made, records), made.workload.fields, compression="gzip", sync=False)


def foreign(made: Made, records: int, target: Path) -> None:
    """With gzip, as most others write it: one member, level 6."""
    partial = target.with_suffix(".partial")
    with made.file.open("rb") as file:
        chunk = Reader(file).read(records)
    assert chunk is not None
    with gzip.open(partial, "wb", compresslevel=6) as file:
        file.write(memoryview(chunk))
    partial.replace(target)


def shards(made: Made, records: int, target: Path) -> None:
    """As many files as there may be, each with next to nothing in it."""
    shutil.rmtree(target, ignore_errors=True)
    options = {"records_per_shard": RECORDS_A_SHARD, "sync": False}
    rk.write(target, drawn(made, records), made.workload.fields, **options)


def drawn(made: Made, records: int) -> columns.Columns:
    return columns.rows(columns.load(made.folder, made.workload.fields, mapped=True), 0, records)


MAKERS: dict[str, Callable[[Made, int, Path], None]] = {
    "ours.tfrecord.gz": ours,
    "foreign.tfrecord.gz": foreign,
    "shards": shards,
}
