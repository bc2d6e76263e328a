"""Workloads: what is read and written, drawn from fixed seeds and kept in benchmarks/data.

Each has a folder with its columns as they were drawn, the same as `data.tfrecord`, and `made.json`, which says with
which parameters: files that are there already are used again.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import columns
import numpy as np
import venvs
from columns import Columns, Lists

from recordkit import examples, records
from recordkit.columns import BytesColumn
from recordkit.examples import Values

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

VERSION = 1  # of what is drawn; raise it when a workload changes
SLICE = 8192  # records encoded at a time


@dataclass(frozen=True)
class Workload:
    """What a workload is.

    Attributes:
        name: As in task names.
        title: What it is like, for people.
        records: How many, at scale 1.
        fields: Names and types, in recordkit's schema language.
        batch: How many records readers put into a batch.
        draw: Makes the columns of so many records, in the folder where large ones may be left.
        shuffled: Whether to make `shuffled.tfrecord` too, with the keys of each record in an order of its own.
    """

    name: str
    title: str
    records: int
    fields: dict[str, str]
    batch: int
    draw: Callable[[int, Path], Columns]
    shuffled: bool = False


@dataclass(frozen=True)
class Made:
    """A workload on disk."""

    workload: Workload
    records: int
    folder: Path

    @property
    def file(self) -> Path:
        """The records."""
        return self.folder / "data.tfrecord"

    def request(self) -> dict[str, object]:
        """What competitors are told of it."""
        return {
            "file": str(self.file),
            "folder": str(self.folder),
            "fields": self.workload.fields,
            "records": self.records,
            "batch": self.workload.batch,
        }


# --- What is drawn


def skewed(rng: np.random.Generator, below: int, count: int) -> np.ndarray:
    """Return ints with a few common values and a long tail, as identifiers have."""
    return (below * rng.random(count) ** 3).astype(np.int64)


DENSE = [f"dense_{i:02d}" for i in range(13)]
CATEGORICAL = [f"cat_{i:02d}" for i in range(26)]
CARDINALITIES = np.logspace(1, 7, len(CATEGORICAL)).astype(np.int64)


def draw_w1(count: int, _: Path) -> Columns:
    drawn: Columns = {"label": (np.random.default_rng([1, 0]).random(count) < 0.25).astype(np.int64)}
    for i, name in enumerate(DENSE):
        rng = np.random.default_rng([1, 1, i])
        # Half are already normalised, half are counts on a logarithmic scale.
        values = rng.standard_normal(count, dtype=np.float32)
        drawn[name] = values if i % 2 else np.log1p(np.floor(np.exp(2 * values))).astype(np.float32)
    # Columns of many and of few values mixed, as in real tables.
    order = np.random.default_rng([1, 2]).permutation(CARDINALITIES)
    for i, name in enumerate(CATEGORICAL):
        drawn[name] = skewed(np.random.default_rng([1, 3, i]), int(order[i]), count)
    return drawn


def draw_w2(count: int, folder: Path) -> Columns:
    here = Path(__file__).resolve().parent
    command = [venvs.python_of("pictures"), "-m", "pictures", str(count), "2", str(folder)]
    subprocess.run([str(part) for part in command], cwd=here, check=True)
    drawn = columns.load(folder, ["image"])
    drawn["label"] = np.random.default_rng([2, 1]).integers(0, 1000, count)
    drawn["height"] = np.full(count, 375, np.int64)
    drawn["width"] = np.full(count, 500, np.int64)
    return drawn


def draw_w3(count: int, _: Path) -> Columns:
    vectors = np.random.default_rng([3, 0]).standard_normal((count, 768), dtype=np.float32)
    return {"id": np.arange(count, dtype=np.int64), "embedding": vectors}


def draw_w4(count: int, _: Path) -> Columns:
    rng = np.random.default_rng([4, 0])
    tokens = np.concatenate([[0], np.cumsum(rng.integers(5, 201, count))]).astype(np.int64)
    letters = np.concatenate([[0], np.cumsum(rng.integers(8, 61, count))]).astype(np.int64)
    text = rng.integers(ord("a"), ord("z") + 1, letters[-1]).astype(np.uint8)
    return {"tokens": Lists(skewed(rng, 50_000, int(tokens[-1])), tokens), "text": Lists(text, letters)}


def draw_ids(count: int, _: Path) -> Columns:
    return {"id": np.arange(count, dtype=np.int64)}


W1_FIELDS = {"label": "int64"} | dict.fromkeys(DENSE, "float32") | dict.fromkeys(CATEGORICAL, "int64")
WORKLOADS = {
    workload.name: workload
    for workload in (
        Workload("w1", "13 floats, 26 int64, a label", 1_000_000, W1_FIELDS, 1024, draw_w1, shuffled=True),
        Workload(
            "w2",
            "JPEG 500x375, label, height, width",
            2_000,
            {"image": "bytes", "label": "int64", "height": "int64", "width": "int64"},
            32,
            draw_w2,
        ),
        Workload("w3", "float32[768], id", 100_000, {"id": "int64", "embedding": "float32[768]"}, 1024, draw_w3),
        Workload("w4", "5 to 200 int64, a string", 300_000, {"tokens": "int64[?]", "text": "string"}, 1024, draw_w4),
        Workload("ids", "an int64", 10_000_000, {"id": "int64"}, 256, draw_ids),
    )
}


# --- Making files of it


def make(name: str, data: Path, scale: float) -> Made:
    """Return a workload on disk, made if it is not there yet."""
    workload = WORKLOADS[name]
    count = max(64, round(workload.records * scale))
    made = Made(workload, count, data / f"{name}-{count}")
    stamp = made.folder / "made.json"
    parameters = json.dumps({"version": VERSION, "workload": name, "records": count, "fields": workload.fields})
    if stamp.exists() and stamp.read_text() == parameters:
        return made
    start = time.perf_counter()
    print(f"making {name}: {count:,} records of {workload.title}", flush=True)
    shutil.rmtree(made.folder, ignore_errors=True)
    made.folder.mkdir(parents=True)
    drawn = workload.draw(count, made.folder)
    columns.save(made.folder, drawn)
    with made.file.open("wb") as file:
        for part, rows in slices(drawn, count):
            file.write(examples.encode(part, rows))
    if workload.shuffled:
        with (made.folder / "shuffled.tfrecord").open("wb") as file:
            for chunk in shuffled(drawn, count):
                file.write(chunk)
    stamp.write_text(parameters)
    size = made.file.stat().st_size
    seconds = time.perf_counter() - start
    print(f"  {size / 1e6:,.0f} MB, {size / count:,.0f} bytes a record, {seconds:.0f} s", flush=True)
    return made


def slices(drawn: Columns, count: int, size: int = SLICE) -> Iterator[tuple[dict[str, Values], int]]:
    """Yield columns as recordkit's encoder takes them, some records at a time."""
    for start in range(0, count, size):
        stop = min(count, start + size)
        part = columns.rows(drawn, start, stop)
        yield {name: as_values(column) for name, column in part.items()}, stop - start


def as_values(column: np.ndarray | Lists) -> Values:
    """Return a column as recordkit's encoder takes it."""
    if isinstance(column, Lists):
        if column.values.dtype == np.uint8:
            return Values("bytes", BytesColumn(column.values, column.offsets), count=1)
        return Values("int64", column.values, column.offsets)
    kind = "float" if column.dtype == np.float32 else "int64"
    if column.ndim == 1:
        return Values(kind, column, count=1)
    return Values(kind, column.reshape(-1), count=column.shape[1])


def shuffled(drawn: Columns, count: int) -> Iterator[records.Chunk]:
    """Yield the records with the keys of each in a random order.

    The encoder has one order for all rows, so each feature is encoded alone, and its bytes are put together anew: an
    Example is the tag and length of its map, and then the entries, in any order.
    """
    rng = np.random.default_rng([1, 4])
    for part, rows in slices(drawn, count):
        entries = [entries_of(name, values, rows) for name, values in part.items()]
        orders = rng.permuted(np.tile(np.arange(len(entries)), (rows, 1)), axis=1).tolist()
        in_order = zip(zip(*entries, strict=True), orders, strict=True)
        bodies = (b"".join(map(row.__getitem__, order)) for row, order in in_order)
        yield records.pack_many([b"\x0a" + varint(len(body)) + body for body in bodies])


def entries_of(name: str, values: Values, rows: int) -> list[bytes]:
    """Return one feature of each record, as the map of an Example holds it."""
    payloads = list(examples.encode({name: values}, rows))
    assert all(payload[1] == len(payload) - 2 < 128 for payload in payloads), "the map's length takes one byte"
    return [payload[2:] for payload in payloads]


def varint(number: int) -> bytes:
    """Return a number as protobuf writes it."""
    groups = []
    while number > 127:
        groups.append(number & 127 | 128)
        number >>= 7
    return bytes([*groups, number])
