"""Scenarios of fields: what is added to a dataset that is there, hidden, deleted and baked."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import recordkit as rk

from .harness import Scenario, Step

SCHEMA = {"id": "int64", "text": "string"}
ROWS = [{"id": number, "text": "row " * (number % 3)} for number in range(10)]
HEIGHTS = [number / 2 for number in range(10)]


def settle(folder: str) -> Path:
    """Give the files of the dataset a time that is always the same, for layers write it down; return the dataset."""
    path = Path(folder, "train")
    for file in path.glob("*.tfrecord"):
        os.utime(file, ns=(10**18, 10**18))
    return path


# --- What is there before


def base(folder: str) -> None:
    """Write a dataset of three shards."""
    rk.write(Path(folder, "train"), ROWS, SCHEMA, records_per_shard=4, workers=1)


def foreign(folder: str) -> None:
    """Write files that recordkit knows nothing of."""
    base(folder)
    shutil.rmtree(Path(folder, "train", "_recordkit"))


def with_height(folder: str) -> None:
    """Write a dataset with a field beside it."""
    base(folder)
    rk.add_fields(settle(folder), {"height": HEIGHTS}, workers=1)


def with_leftovers(folder: str) -> None:
    """Write a dataset with a field beside it that was added and removed before, by runs that did not live to tidy."""
    with_height(folder)
    overlays = Path(folder, "train", "_recordkit", "overlays")
    for name in (".0001-height.removed", ".0001-height.recordkit", ".0001-height.recordkit.old"):
        (overlays / name).mkdir()
        (overlays / name / "left").write_bytes(b"over")


def with_all(folder: str) -> None:
    """Write a dataset with fields beside it, one replaced, one hidden, and all records of the second shard deleted."""
    with_height(folder)
    path = settle(folder)
    rk.add_fields(path, {"height": [value + 1 for value in HEIGHTS], "half": 0.5}, replace=True, workers=1)
    rk.drop_fields(path, ["text"])
    rk.delete(path, where="id == 0 or id >= 4 and id < 8")


# --- What is done to it, and what a user does after a crash: the same once more


def add(folder: str, *, replace: bool = False, workers: int = 1) -> None:
    """Add a field beside the records."""
    heights = [value + 100 for value in HEIGHTS] if replace else HEIGHTS
    rk.add_fields(settle(folder), {"height": heights}, replace=replace, workers=workers)


def compute(folder: str) -> int:
    """Add fields that depend on others beside the records, and return how many were not computed."""
    calls = []

    def double(row: dict[str, Any]) -> int:
        calls.append(row)
        return int(row["id"]) * 2

    rk.add_fields(settle(folder), {"double": rk.Computed("int64", double, reads=["id"])}, workers=1)
    return len(ROWS) - len(calls)


def source(folder: str) -> str:
    """Return the dataset by a name that is the same wherever the folder is, for new files say what they are made of."""
    settle(folder)
    os.chdir(folder)
    return "train"


def add_out(folder: str, *, workers: int = 1) -> None:
    """Write a dataset that has another field."""
    rk.add_fields(source(folder), {"height": HEIGHTS}, out=Path(folder, "out"), workers=workers)


def bake(folder: str) -> None:
    """Write a dataset with all that was changed."""
    rk.bake(source(folder), Path(folder, "out"), workers=1)


def delete(folder: str) -> None:
    """Delete some records of two shards."""
    rk.delete(settle(folder), where="id == 1 or id >= 8")


def drop(folder: str, *, names: list[str]) -> None:
    """Drop fields."""
    rk.drop_fields(settle(folder), names)


def again(folder: str, *, step: str, **options: Any) -> Any:
    """Do it once more; it may be done."""
    try:
        return globals()[step](folder, **options)
    except rk.TargetExistsError:
        assert Path(folder, "out").exists()
    except rk.SchemaError:
        # The field is there, or is gone, already.
        (row, *_) = rows(Path(folder, "train"))
        if step == "drop":
            assert not row.keys() & set(options["names"])
        else:
            assert row.keys() & {"height", "double"}
    return None


# --- What a reader sees


def look(folder: str) -> list[Any]:
    """Return all rows of the dataset, and of the one that is made of it."""
    paths = [Path(folder, name) for name in ("train", "out")]
    return [rows(path) if path.exists() else None for path in paths]


def rows(path: Path) -> list[dict[str, Any]]:
    """Return all rows of a dataset, as JSON can hold them."""
    return [{name: getattr(value, "item", lambda v=value: v)() for name, value in row.items()} for row in rk.open(path)]


def warm_up() -> None:
    """Import all that is used."""
    with tempfile.TemporaryDirectory() as folder:
        with_all(folder)
        rk.bake(Path(folder, "train"), Path(folder, "out"), workers=1)
        look(folder)


# --- The scenarios


def changing(
    name: str, prepare: str, step: str, *, repeats: bool = True, rows: int = 0, only_look: bool = False, **options: Any
) -> Scenario:
    """A scenario in which something is done to a dataset that is there."""
    return Scenario(
        name,
        __name__,
        "train",
        prepare=Step(prepare),
        write=Step(step, options),
        resume=Step("again", {"step": step, **options}),
        look=Step("look"),
        only_look=only_look,
        is_safe_to_repeat=repeats,
        finishes=r"/shard-\d+\.json$" if rows else "$^",
        finished_rows=rows,
    )


SCENARIOS = [
    changing("overlay of an array", "base", "add"),
    changing("overlay by two threads", "base", "add", workers=2),
    changing("overlay of files without a manifest", "foreign", "add"),
    changing("overlay of a function", "base", "compute", rows=4),
    changing("overlay that replaces", "with_height", "add", repeats=False, replace=True),
    changing("fields added to new files", "base", "add_out"),
    changing("fields added by two threads", "base", "add_out", workers=2),
    changing("delete", "base", "delete"),
    changing("hide a field", "with_height", "drop", names=["text"]),
    changing("remove an overlay", "with_height", "drop", names=["height"]),
    changing("remove an overlay where others died", "with_leftovers", "drop", names=["height"]),
    changing("drop fields of both sorts", "with_height", "drop", only_look=True, names=["height", "text"]),
    changing("bake", "with_all", "bake"),
]
