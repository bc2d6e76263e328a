"""Derived: files that some tasks need besides a workload's own, made of its first records when they are first wanted.

Names end in how many records there are, so that a plan that wants more or fewer does not get the old ones.
"""

from __future__ import annotations

import functools
import gzip
import shutil
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import columns
import numpy as np
import venvs

import recordkit as rk
from recordkit.records import Reader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from workloads import Made

RECORDS_A_SHARD = 2
CHUNK = 8192  # records copied at a time
ADDED = "added"  # the field that overlays and baked files have besides the workload's own


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


def dataset(made: Made, records: int, target: Path, shards: int | None = None) -> None:
    """With manifest and indexes; the workload's records again and again where more are wanted than it has."""
    partial = fresh(target)
    options = {"records_per_shard": shards and -(-records // shards), "sync": False}
    with made.file.open("rb") as file, rk.create(partial, made.workload.fields, **options) as writer:
        for start in range(0, records, made.records):
            file.seek(0)
            left = min(made.records, records - start)
            reader = Reader(file)
            while left and (chunk := reader.read(min(left, CHUNK))) is not None:
                writer.write_chunk(chunk)
                left -= len(chunk)
    partial.replace(target)


def exact(made: Made, records: int, target: Path) -> None:
    """The first pictures, as they should come out of a pipeline."""
    here = Path(__file__).resolve().parent
    command = [venvs.python_of("pictures"), "-m", "exact", str(records), str(made.folder), str(target)]
    subprocess.run([str(part) for part in command], cwd=here, check=True)


def baked(made: Made, records: int, target: Path) -> None:
    """With one more field in the records."""
    partial = fresh(target)
    new = columns.rows(columns.load(made.folder, [ADDED]), 0, records)
    rk.add_fields(ensure("dataset", made, records), new, out=partial, sync=False)
    partial.replace(target)


def layered(made: Made, records: int, target: Path) -> None:
    """With one more field beside the records."""
    partial = fresh(target)
    shutil.copytree(ensure("dataset", made, records), partial)
    new = columns.rows(columns.load(made.folder, [ADDED]), 0, records)
    rk.add_fields(partial, new, sync=False)
    partial.replace(target)


def fresh(target: Path) -> Path:
    """Return where to make a folder that is moved to `target` when it is whole; its files are called after it."""
    making = target.parent / "partial"
    shutil.rmtree(making, ignore_errors=True)
    making.mkdir()
    return making / target.name


def new_columns(made: Made, names: Iterable[str]) -> None:
    """Draw the columns that are added to a workload, where they are not there yet."""
    for i, name in enumerate(names):
        if not (made.folder / f"{name}.npy").exists():
            columns.save(made.folder, {name: np.random.default_rng([6, i]).integers(0, 1 << 40, made.records)})


def drawn(made: Made, records: int) -> columns.Columns:
    return columns.rows(columns.load(made.folder, made.workload.fields, mapped=True), 0, records)


MAKERS: dict[str, Callable[[Made, int, Path], None]] = {
    "ours.tfrecord.gz": ours,
    "foreign.tfrecord.gz": foreign,
    "shards": shards,
    "dataset": dataset,
    "eight": functools.partial(dataset, shards=8),
    "exact.npy": exact,
    "baked": baked,
    "layered": layered,
}
