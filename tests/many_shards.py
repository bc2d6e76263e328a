"""Everything that is done to a dataset of many small shards, in a process that may open few files.

python -m tests.many_shards DESCRIPTORS SHARDS     run all of it, and print what went wrong
python -m tests.many_shards 0 SHARDS               print how many files and folders each opens, as JSON
python -m tests.many_shards -DESCRIPTORS SHARDS    run each with hardly a descriptor left, and once more with all
"""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
from collections import Counter
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import recordkit as rk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

EACH = 3  # records of a shard
COUNTED = ("open", "os.listdir", "os.scandir", "os.mkdir", "os.rename", "os.remove")


class Work:
    """The operations, in an order in which each finds what it needs."""

    def __init__(self, folder: Path, shards: int) -> None:
        self.path, self.folder, self.shards = folder / "train", folder, shards
        self.records = EACH * shards

    def all(self) -> dict[str, Callable[[], Any]]:
        """Return them by name."""
        done = (
            self.create,
            self.open,
            self.items,
            self.many_items,
            self.in_order,
            self.shuffled,
            self.windows,
            self.verify,
            self.stats,
            self.index,
            self.filter,
            self.rename,
            self.added_out,
            self.add_fields,
            self.computed,
            self.shuffled,
            self.delete,
            self.drop,
            self.bake,
            self.append,
            self.parts,
        )
        return {f"{number}-{one.__name__}": one for number, one in enumerate(done)}

    def out(self, name: str) -> Path:
        return self.folder / name

    def create(self) -> None:
        with rk.create(self.path, {"id": "int64", "x": "float32"}, records_per_shard=EACH, sync=False) as writer:
            writer.write_batch({"id": np.arange(self.records), "x": np.arange(self.records, dtype=np.float32)})

    def open(self) -> None:
        assert len(rk.open(self.path)) == self.records

    def items(self) -> None:
        ds = rk.open(self.path)
        assert [ds[number]["id"] for number in range(0, self.records, EACH)] == [*range(0, self.records, EACH)]

    def many_items(self) -> None:
        numbers = [*range(self.records - 1, 0, -EACH), *range(0, self.records, EACH)]
        assert rk.open(self.path)[numbers]["id"].tolist() == numbers

    def in_order(self) -> None:
        found = [number for batch in rk.open(self.path).batch(50) for number in batch["id"].tolist()]
        assert found == [*range(self.records)]

    def shuffled(self, **options: Any) -> None:
        ds = rk.open(self.path).shuffle(7, **options).batch(50)
        assert sorted(number for batch in ds for number in batch["id"].tolist()) == [*range(self.records)]

    def windows(self) -> None:
        self.shuffled(window=1000)

    def verify(self) -> None:
        assert rk.verify(self.path).ok

    def stats(self) -> None:
        assert rk.stats(self.path).rows == self.records

    def index(self) -> None:
        rk.index(self.path)

    def filter(self) -> None:
        assert rk.filter(self.path, "id >= 5", out=self.out("kept"), sync=False).records == self.records - 5

    def rename(self) -> None:
        rk.rename_fields(self.path, {"x": "y"}, out=self.out("renamed"), sync=False)

    def added_out(self) -> None:
        rk.add_fields(self.path, {"z": 1}, out=self.out("added"), sync=False)

    def add_fields(self) -> None:
        rk.add_fields(self.path, {"z": np.arange(self.records)}, sync=False)

    def computed(self) -> None:
        rk.add_fields(self.path, {"w": rk.Computed("int64", lambda row: row["id"] + 1, reads=["id"])}, sync=False)

    def delete(self) -> None:
        assert rk.delete(self.path, where="id == 4", sync=False).records == 1

    def drop(self) -> None:
        rk.drop_fields(self.path, ["x"], sync=False)

    def bake(self) -> None:
        rk.bake(self.path, self.out("baked"), sync=False)
        last = rk.open(self.out("baked"))[self.records - 2]
        assert last == {"id": self.records - 1, "z": self.records - 1, "w": self.records}

    def append(self) -> None:
        with rk.append(self.out("kept"), records_per_shard=EACH, sync=False) as writer:
            writer.write_batch({"id": np.arange(self.records), "x": np.arange(self.records, dtype=np.float32)})
        assert len(rk.open(self.out("kept"))) == 2 * self.records - 5

    def parts(self) -> None:
        for part in range(self.shards):
            rk.write(self.out("parts"), [{"id": part}], {"id": "int64"}, part=part, parts=self.shards, sync=False)
        assert rk.commit(self.out("parts"), sync=False).records == self.shards


# --- With few descriptors


def run(work: Work) -> None:
    """Run all, and print what fails."""
    for name, one in work.all().items():
        try:
            one()
        except BaseException as error:
            print(f"{name}: {type(error).__name__}: {error}")


# --- With hardly any left


@contextmanager
def left(descriptors: int) -> Iterator[None]:
    """Leave so many descriptors, whatever the limit is."""
    held: list[int] = []
    try:
        with suppress(OSError):
            while True:
                held.append(os.open(os.devnull, os.O_RDONLY))
        for _ in range(descriptors):
            os.close(held.pop())
        yield
    finally:
        for descriptor in held:
            os.close(descriptor)


def run_out(work: Work) -> None:
    """Run each with few descriptors left, print what is no error of recordkit's that says so, and run it again."""
    for name in ("open", "create", "verify"):
        getattr(rk, name)  # modules are files too
    for name, one in work.all().items():
        for descriptors in range(4):
            try:
                with left(descriptors):
                    one()
                break
            except rk.RecordKitError as error:
                if "ulimit -n" not in str(error):
                    print(f"{name}, {descriptors} left: {type(error).__name__}: {error}")
            except BaseException as error:
                print(f"{name}, {descriptors} left: {type(error).__name__}: {error}")
            for staging in work.folder.glob(".*.recordkit"):
                rk.discard(work.out(staging.name[1 : -len(".recordkit")]))
        else:
            try:
                one()
            except BaseException as error:
                print(f"{name}, again: {type(error).__name__}: {error}")


# --- How much is opened


def count(work: Work) -> dict[str, int]:
    """Return how many files and folders each operation opens, lists, makes, renames and removes."""
    seen: Counter[str] = Counter()
    folder = str(work.folder)
    sys.addaudithook(lambda event, args: seen.update([event]) if event in COUNTED and folder in str(args[0]) else None)
    counts = {}
    for name, one in work.all().items():
        seen.clear()
        one()
        counts[name] = seen.total()
    return counts


def main(descriptors: int, shards: int) -> None:
    """Do as the module says."""
    if descriptors:
        resource.setrlimit(resource.RLIMIT_NOFILE, (abs(descriptors), abs(descriptors)))
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = folder + "/cache"
        work = Work(Path(folder), shards)
        if descriptors > 0:
            run(work)
        elif descriptors < 0:
            run_out(work)
        else:
            print(json.dumps(count(work)))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
