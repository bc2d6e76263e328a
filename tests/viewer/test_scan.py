"""Filters and orders over a whole dataset."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import recordkit as rk
from recordkit.errors import SchemaError
from recordkit.viewer._dataset_view import DatasetView
from recordkit.viewer._scan import First, Scan

if TYPE_CHECKING:
    from pathlib import Path

ROWS: list[dict[str, Any]] = [
    {
        "id": i,
        "label": i % 5,
        "name": f"n{i % 13:02}",
        "tokens": list(range(i % 7)),
        "score": float("nan") if i == 3 else i / 7,
    }
    for i in range(500)
]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> DatasetView:
    folder: Path = tmp_path_factory.mktemp("scan") / "rows"
    with rk.create(folder, rk.Schema.of_rows(ROWS), shard_size=9000) as writer:  # several shards, and so several steps
        for row in ROWS:
            writer.write(row)
    source = DatasetView(folder)
    source.prepare(lambda done, total, unit: None)
    return source


def run(scan: Scan) -> list[int]:
    scan.run(lambda done, total, unit: None)
    return scan.numbers(0, 10_000)


class TestFilter:
    def test_finds_what_python_finds(self, source: DatasetView) -> None:
        found = run(Scan(source, 'label == 3 and name != "n03"'))

        assert found == [row["id"] for row in ROWS if row["label"] == 3 and row["name"] != "n03"]

    def test_goes_on_where_it_was_ended(self, source: DatasetView) -> None:
        scan = Scan(source, "label == 3")

        def enough(done: int, total: int | None, unit: str) -> None:
            raise TimeoutError

        for _ in range(3):
            with pytest.raises(TimeoutError):
                scan.run(enough)

        assert run(scan) == [row["id"] for row in ROWS if row["label"] == 3]

    @pytest.mark.parametrize("where", ["lable == 3", 'label == "x"'])
    def test_filter_that_makes_no_sense_is_refused_at_once(self, source: DatasetView, where: str) -> None:
        with pytest.raises(SchemaError):
            Scan(source, where)

    def test_text_that_is_no_filter_is_refused_at_once(self, source: DatasetView) -> None:
        with pytest.raises(ValueError, match="= does not compare"):
            Scan(source, "label = 3")


class TestSort:
    @pytest.mark.parametrize("descending", [False, True])
    @pytest.mark.parametrize(("field", "key"), [("label", None), ("name", None), ("tokens", len)])
    def test_order_is_that_of_python_and_equals_stay_in_place(
        self, source: DatasetView, field: str, key: Any, descending: bool
    ) -> None:
        found = run(Scan(source, "", field, descending=descending))

        expected = sorted(ROWS, key=lambda row: key(row[field]) if key else row[field], reverse=descending)
        assert found == [row["id"] for row in expected]

    def test_nan_is_left_out(self, source: DatasetView) -> None:
        scan = Scan(source, "", "score", descending=True)

        assert run(scan)[:2] == [499, 498]
        assert scan.result() == {"found": 499, "shown": 499, "sort": "score"}

    def test_only_records_that_fit_are_sorted(self, source: DatasetView) -> None:
        assert run(Scan(source, "label == 2", "id", descending=True))[:3] == [497, 492, 487]

    def test_arrays_of_a_fixed_shape_have_no_order(self, tmp_path: Path) -> None:
        rk.write(tmp_path / "a.tfrecord", [{"x": np.ones(3, np.float32)}])
        source = DatasetView(tmp_path / "a.tfrecord")
        source.prepare(lambda done, total, unit: None)

        with pytest.raises(SchemaError, match="x: cannot sort by arrays of a fixed shape"):
            run(Scan(source, "", "x"))

    @given(
        st.lists(st.lists(st.integers(-5, 5) | st.integers(-(2**63), 2**63 - 1), max_size=20), max_size=8),
        st.integers(1, 12),
        st.booleans(),
    )
    def test_first_keeps_what_a_stable_sort_puts_first(
        self, pieces: list[list[int]], most: int, descending: bool
    ) -> None:
        first, keys = First(most, descending=descending), [key for piece in pieces for key in piece]
        at = 0
        for piece in pieces:
            first.add(np.array(piece, np.int64), np.arange(at, at + len(piece)))
            at += len(piece)

        expected = sorted(range(len(keys)), key=keys.__getitem__, reverse=descending)
        assert first.numbers.tolist() == expected[:most]


def test_records_without_fields_cannot_be_filtered(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    path.write_bytes(rk.records.pack(b"\xff\xff no Example"))

    with pytest.raises(SchemaError, match="these records have no fields"):
        Scan(DatasetView(path), "x == 1")
