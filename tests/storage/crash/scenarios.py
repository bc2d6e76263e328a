"""Scenarios: small runs of recordkit, each a function that a child process calls with a folder."""

from __future__ import annotations

import contextlib
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import recordkit as rk
from recordkit import storage

from .harness import Scenario, Step

SCHEMA = {"id": "int64", "text": "string"}
ROWS = [{"id": number, "text": f"row {number} " * (number % 4)} for number in range(10)]
MORE = [{"id": number, "text": "more"} for number in range(10, 15)]
BAD = [row if row["id"] not in (0, 4, 5, 9) else {"id": "no number", "text": "bad"} for row in ROWS]


class BrokenOffError(Exception):
    """What ends a run early."""


def put(writer: storage.Writer, rows: list[dict[str, Any]], *, stop: int | None = None) -> int:
    """Write what is not written yet, break off before row `stop`, and return how many were written already."""
    with writer:
        for row in rows[writer.committed :]:
            if row["id"] == stop:
                raise BrokenOffError
            writer.write(row)
    return writer.committed


def create(
    folder: str,
    *,
    target: str = "train",
    first: int = 0,
    bad: bool = False,
    schema: dict[str, str] | None = SCHEMA,
    stop: int | None = None,
    **options: Any,
) -> int:
    """Write a dataset of the rows from `first`."""
    lone = target.startswith("one.")
    options = {"workers": 1, **({} if lone or "shards" in options else {"records_per_shard": 3}), **options}
    return put(rk.create(Path(folder, target), schema, **options), (BAD if bad else ROWS)[first:], stop=stop)


def go_on(folder: str, **options: Any) -> int | None:
    """Write the rest of a dataset; all of it may be there."""
    with contextlib.suppress(rk.TargetExistsError):
        return create(folder, resume=True, **options)
    return None


def extended(folder: str, **options: Any) -> None:
    """Write a dataset with a field beside its records, and one of them deleted."""
    create(folder, **options)
    path = Path(folder, options.get("target", "train"))
    rk.add_fields(path, {"z": ("int64?", 7)}, workers=1)
    rk.delete(path, where="id == 1")


def append(folder: str, *, target: str = "train", resume: bool = False) -> int:
    """Add rows to a dataset, or to a lone file."""
    options: dict[str, Any] = {} if target.startswith("one.") else {"records_per_shard": 2}
    return put(rk.append(Path(folder, target), **options, workers=1, resume=resume), MORE)


def append_on(folder: str, *, target: str = "train") -> int | None:
    """Add the rest of the rows; all of them may be there."""
    with contextlib.suppress(rk.TargetExistsError):
        return append(folder, target=target, resume=True)
    return None


def parts(folder: str, *, resume: bool = False) -> int:
    """Write a dataset in two parts."""
    target = Path(folder, "train")
    committed = 0
    for part, rows in enumerate([ROWS, MORE]):
        committed += put(
            rk.create(target, SCHEMA, records_per_shard=3, workers=1, part=part, parts=2, resume=resume), rows
        )
    rk.commit(target)
    return committed


def parts_on(folder: str) -> int | None:
    """Write the rest of the parts; all of them may be there."""
    with contextlib.suppress(rk.TargetExistsError):
        return parts(folder, resume=True)
    return None


def break_off(folder: str, **options: Any) -> None:
    """Leave a run that ended early."""
    with contextlib.suppress(BrokenOffError):
        create(folder, stop=7, **options)


def recover(folder: str, *, target: str = "train") -> None:
    """Finish what was being published."""
    rk.recover(Path(folder, target))


def look(folder: str, *, target: str = "train") -> list[int] | str:
    """Return what a reader sees: the numbers of all rows, or in a word why there are none."""
    try:
        return [int(row["id"]) for row in rk.open(Path(folder, target))]
    except rk.StorageError as error:
        return "to be recovered" if f"recordkit.recover({str(Path(folder, target))!r})" in str(error) else "nothing"


def discard(folder: str, *, target: str = "train") -> None:
    """Remove what a run that broke off has left."""
    rk.discard(Path(folder, target))


def warm_up() -> None:
    """Import all that writing and reading import."""
    with tempfile.TemporaryDirectory() as folder:
        create(folder)
        look(folder)


# --- The scenarios


def creating(name: str, *, old_renames: bool = False, overwrite: bool = False, **options: Any) -> Scenario:
    """A scenario in which one dataset is created, over an old one or not."""
    target = {"target": options.get("target", "train")}
    both = {**options, "overwrite": overwrite}
    return Scenario(
        name,
        __name__,
        target["target"],
        write=Step("create", both),
        resume=Step("go_on", both),
        prepare=Step("create", {**options, "first": 3}) if overwrite else None,
        recover=Step("recover", target),
        read=Step("look", target),
        discard=Step("discard", target),
        # Between two renames there is nothing under the name.
        needs_recover=old_renames and overwrite,
        old_renames=old_renames,
        finishes=r"/shard-\d+\.json$",
        # What was dealt like cards is of no use in part.
        finished_rows=3 if "shards" not in options or "rows" in options else 0,
    )


def appending(name: str, **options: Any) -> Scenario:
    """A scenario in which rows are added to what is there."""
    target = {"target": options.get("target", "train")}
    return replace(
        creating(name, **options),
        prepare=Step("create", options),
        write=Step("append", target),
        resume=Step("append_on", target),
        needs_recover=True,
        finished_rows=2,
    )


PLAIN = creating("plain")
# What was beside the old file is removed when the new one is there: what fails of that is no error.
LONE_WITH_OVERLAYS = replace(
    creating("overwrite of a lone file with overlays", overwrite=True, target="one.tfrecord"),
    prepare=Step("extended", {"target": "one.tfrecord", "first": 3}),
    look=Step("look", {"target": "one.tfrecord"}),
    only_look=True,
    recover=None,
    discard=None,
)
SCENARIOS = [
    PLAIN,
    creating("threads", workers=2, compression="gzip"),
    creating("gzip", compression="gzip"),
    creating("zlib", compression="zlib"),
    creating("no schema", schema=None),
    creating("fixed shards", shards=3, rows=10),
    creating("dealt shards", shards=3),
    creating("quarantine", bad=True, on_error="skip"),
    creating("lone file", target="one.tfrecord"),
    creating("lone gzip file", target="one.tfrecord.gz", compression="gzip"),
    creating("overwrite", overwrite=True),
    creating("overwrite without exchange", overwrite=True, old_renames=True),
    creating("overwrite of a lone file", overwrite=True, target="one.tfrecord"),
    replace(
        PLAIN,
        name="resume",
        prepare=Step("break_off"),
        write=Step("go_on"),
    ),
    appending("append"),
    appending("append to a lone file", target="one.tfrecord"),
    appending("append to a lone gzip file", target="one.tfrecord.gz", compression="gzip"),
    replace(appending("append to what has overlays"), prepare=Step("extended")),
    replace(
        appending("append to a lone file with overlays", target="one.tfrecord"),
        prepare=Step("extended", {"target": "one.tfrecord"}),
    ),
    replace(PLAIN, name="parts", write=Step("parts"), resume=Step("parts_on"), finished_rows=2),
]
