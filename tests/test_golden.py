"""Datasets written by each version of the formats open, say what was put in, verify and grow with this one."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recordkit as rk
from tests.golden.make_datasets import DATASETS, plain

GOLDEN = Path(__file__).parent / "golden"
FORMATS = sorted(path.name for path in GOLDEN.glob("format-*"))
ALL = sorted(path.relative_to(GOLDEN).with_suffix("").as_posix() for path in GOLDEN.glob("format-*/*.json"))
# Without those whose records hold no fields.
OF_FIELDS = [name for name in ALL if not name.endswith("/payloads")]
# Without those that have layers.
UNCHANGED = [name for name in ALL if "added" not in name and "deleted" not in name and "changed" not in name]
YEARS_AGO = 1  # the second to which Nix and some archives set all times


def expected(name: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads((GOLDEN / f"{name}.json").read_text())
    return rows


def opened(dataset: Path) -> Path:
    """What to open: the folder, or the lone file in it."""
    return next((path for path in dataset.glob("one.tfrecord*") if path.suffix != ".idx"), dataset)


@pytest.fixture
def dataset(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy, whose times are those of copying."""
    return opened(shutil.copytree(GOLDEN / request.param, tmp_path / "there", copy_function=shutil.copyfile))


def of(names: list[str]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        ("name", "dataset"), [(name, name) for name in names], ids=names, indirect=["dataset"]
    )


def as_row(element: Any) -> dict[str, Any]:
    row = element if isinstance(element, dict) else {"payload": element}
    return {name: plain(value) for name, value in row.items()}


def read(path: Path) -> list[dict[str, Any]]:
    """All rows, by their numbers; read in order they must be the same."""
    found = rk.open(path)
    rows = [as_row(found[number]) for number in range(len(found))]
    assert [as_row(element) for element in found] == rows
    return rows


def files(dataset: Path) -> dict[str, tuple[bytes, int]]:
    place = dataset if dataset.is_dir() else dataset.parent
    return {str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in place.rglob("*") if path.is_file()}


def test_every_kind_of_dataset_was_kept_in_every_format() -> None:
    assert FORMATS[0] == "format-1"
    assert {name.partition("/")[2] for name in ALL if name.startswith(FORMATS[-1])} == DATASETS.keys()


@of(ALL)
def test_holds_what_was_put_in_and_verifies(name: str, dataset: Path) -> None:
    before = files(dataset)

    assert read(dataset) == expected(name)
    assert rk.verify(dataset).ok
    assert files(dataset) == before


@of(ALL)
def test_is_the_same_whatever_the_times_of_its_files(name: str, dataset: Path) -> None:
    for path in files(dataset):
        os.utime(path, (YEARS_AGO, YEARS_AGO))

    assert read(dataset) == expected(name)


@of(UNCHANGED)
def test_can_be_appended_to(name: str, dataset: Path) -> None:
    there = rk.open(dataset)
    Path(f"{dataset}.idx").unlink(missing_ok=True)  # made once by others; verify says that it is too old

    with rk.append(dataset, split="val" if name.endswith("/splits") else None) as writer:
        for element in (there[3], there[0]):
            (writer.write if isinstance(element, dict) else writer.write_raw)(element)

    rows = expected(name)
    assert read(dataset) == [*rows, rows[3], rows[0]]
    assert rk.verify(dataset).ok


@of(OF_FIELDS)
def test_takes_a_new_field(name: str, dataset: Path) -> None:
    rows = expected(name)

    rk.add_fields(dataset, {"new": np.arange(len(rows))})

    assert read(dataset) == [row | {"new": plain(np.int64(number))} for number, row in enumerate(rows)]
    assert rk.verify(dataset).ok


@of(OF_FIELDS)
def test_records_can_be_deleted(name: str, dataset: Path) -> None:
    rows = expected(name)
    gone = rk.open(dataset)[2]["id"]

    rk.delete(dataset, where=f"id == {gone}")

    assert read(dataset) == rows[:2] + rows[3:]
    assert rk.verify(dataset).ok


@of(OF_FIELDS)
def test_bakes_into_the_same_rows(name: str, dataset: Path, tmp_path: Path) -> None:
    baked = tmp_path / ("baked" if dataset.is_dir() else f"baked-{dataset.name}")

    rk.bake(dataset, out=baked)

    assert read(baked) == expected(name)


@pytest.mark.parametrize("version", FORMATS)
class TestBesides:
    """What the rows do not show."""

    @pytest.fixture(autouse=True)
    def cache(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        return tmp_path / "cache"

    def test_splits_are_kept(self, version: str) -> None:
        assert [as_row(row) for row in rk.open(GOLDEN / version / "splits", split="val")] == (
            expected(f"{version}/splits")[9:]
        )

    def test_quarantined_rows_are_kept(self, version: str) -> None:
        bad = list(rk.quarantined(GOLDEN / version / "quarantine"))

        assert [(each.number, each.field, each.row) for each in bad] == [
            (number, "label", {"id": 250 + number, "label": 250 + number}) for number in range(6, 12)
        ]

    @pytest.mark.parametrize("kind", ["foreign", "lone", "lone_gzip", "members", "folder"])
    def test_the_index_is_good_enough(self, version: str, kind: str, cache: Path) -> None:
        assert rk.open(opened(GOLDEN / version / kind))[7]["id"] == rk.open(opened(GOLDEN / version / kind))[[7]]["id"]

        assert list(cache.rglob("*.rki")) == []

    def test_the_text_index_is_understood(self, version: str) -> None:
        file = GOLDEN / version / "foreign" / "one.tfrecord"

        starts, _ = rk.storage.read_text_index(file, f"{file}.idx")

        assert len(starts) == 12
