"""Layered: reading through layers, against a list of rows that is changed in plain Python."""

from __future__ import annotations

import logging
import os
import pickle
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recordkit as rk
from recordkit.dataset import _in_order
from recordkit.errors import CorruptRecordError, SchemaError
from tests.dataset.bases import SHAPES, build, compressions, counts, plain_rows, raw, read, shapes
from tests.dataset.files import flip, offset_of, save_many

if TYPE_CHECKING:
    from collections.abc import Sequence

Rows = list[dict[str, Any]]


class Changing:
    """A dataset that is changed beside its records, and the rows it should have."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows = read(path)

    def add(self, name: str, seed: int) -> None:
        values = [seed * 1000 + number for number in range(len(self.rows))]
        rk.add_fields(self.path, {name: np.array(values, np.int64)}, replace=True, sync=False)
        self._set(name, values)

    def add_rarely(self, name: str, seed: int) -> None:
        values = [None if (number + seed) % 3 == 0 else f"{name}{number}" for number in range(len(self.rows))]
        rk.add_fields(self.path, {name: ("string?", values)}, replace=True, sync=False)
        self._set(name, values)

    def compute(self, name: str, seed: int) -> None:
        source = rk.Computed("int64[?]", lambda row: [seed] * (int(row["id"]) % 4), reads=["id"])
        rk.add_fields(self.path, {name: source}, replace=True, sync=False)
        self._set(name, [[seed] * (row["id"] % 4) for row in self.rows])

    def hide(self, name: str, seed: int) -> None:
        if name in self.names:
            rk.drop_fields(self.path, name, sync=False)
            for row in self.rows:
                del row[name]

    def delete(self, name: str, seed: int) -> None:
        def gone(row: Any) -> bool:
            return bool(row["id"] % 5 == seed % 5)

        rk.delete(self.path, where=gone, reads=["id"], sync=False)
        self.rows = [row for row in self.rows if not gone(row)]

    def _set(self, name: str, values: Sequence[Any]) -> None:
        for row, value in zip(self.rows, values, strict=True):
            row.pop(name, None)
            row[name] = value

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.rows[0]) if self.rows else ()


changes = st.lists(
    st.tuples(
        st.sampled_from(["add", "add", "add_rarely", "compute", "hide", "delete"]),
        st.sampled_from(["a", "b", "name"]),
        st.integers(0, 9),
    ),
    min_size=1,
    max_size=5,
)


def changed(folder: str, shape: str, sizes: Sequence[int], compression: Any, steps: Any) -> Changing:
    model = Changing(build(Path(folder), shape, sizes, compression))
    for step, name, seed in steps:
        getattr(model, step)(name, seed)
    return model


class TestReading:
    @settings(max_examples=15)
    @given(shapes, counts, compressions, changes, st.integers(1, 12), st.data())
    def test_is_as_if_the_rows_had_been_written_so(
        self, shape: str, sizes: list[int], compression: Any, steps: Any, size: int, data: st.DataObject
    ) -> None:
        with TemporaryDirectory() as folder:
            model = changed(folder, shape, sizes, compression, steps)
            ds, rows = rk.open(model.path), model.rows

            assert plain_rows(ds) == rows
            assert len(ds) == len(rows)
            batches = list(ds.batch(size))
            assert [len(batch) for batch in batches] == [len(rows[i : i + size]) for i in range(0, len(rows), size)]
            assert plain_rows(row for batch in batches for row in batch.rows()) == rows
            if not rows:
                return
            assert ds.schema is not None
            assert ds.schema.names == model.names
            numbers = data.draw(st.lists(st.integers(-len(rows), len(rows) - 1), max_size=8))
            assert plain_rows(ds[numbers].rows()) == [rows[number] for number in numbers]
            assert plain_rows(ds[number] for number in numbers) == [rows[number] for number in numbers]
            start, stop = data.draw(st.tuples(st.integers(0, len(rows)), st.integers(0, len(rows))))
            assert plain_rows(ds[start:stop:2].rows()) == rows[start:stop:2]
            assert plain_rows(ds.skip(start).take(stop)) == rows[start:][:stop]
            assert plain_rows(pickle.loads(pickle.dumps(ds)).skip(start)) == rows[start:]
            some = data.draw(st.permutations(model.names))[:2]
            assert plain_rows(ds.select(*some)) == [{name: row[name] for name in some} for row in rows]

    @settings(max_examples=15)
    @given(
        st.sampled_from(["folder", "foreign"]), compressions, changes, st.integers(1, 9), st.integers(1, 3), st.data()
    )
    def test_threads_give_the_same(
        self, shape: str, compression: Any, steps: Any, size: int, workers: int, data: st.DataObject
    ) -> None:
        with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
            model = changed(folder, shape, [23, 0, 14], compression, steps)
            patch.setattr(_in_order, "_SMALL_BYTES", 0)
            patch.setattr(_in_order, "_PIECE_BYTES", data.draw(st.sampled_from([1, 150, 1 << 20])))
            skipped, taken = data.draw(st.tuples(st.integers(0, 40), st.integers(0, 40)))
            ds = rk.open(model.path).skip(skipped).take(taken)

            found = [row for batch in ds.batch(size, workers=workers) for row in batch.rows()]

            assert plain_rows(found) == model.rows[skipped:][:taken]

    @settings(max_examples=12)
    @given(shapes, counts, compressions, changes)
    def test_baking_writes_the_same_rows_and_leaves_the_base_alone(
        self, shape: str, sizes: list[int], compression: Any, steps: Any
    ) -> None:
        with TemporaryDirectory() as folder:
            model = changed(folder, shape, sizes, compression, steps)
            before = raw(model.path)

            rk.bake(model.path, Path(folder) / "baked", sync=False)

            assert raw(model.path) == before
            assert read(Path(folder) / "baked", overlays=False) == model.rows
            assert not (Path(folder) / "baked" / "_recordkit" / "overlays").exists()

    def test_payloads_are_those_of_the_base_without_deleted_ones(self, tmp_path: Path) -> None:
        path = build(tmp_path, "folder", [3, 2])
        base = raw(path)
        rk.add_fields(path, {"x": np.arange(5)})
        rk.delete(path, where="id == 1 or id == 3")

        assert list(rk.open(path, raw=True)) == [base[0], base[2], base[4]]
        assert list(rk.open(path).records()) == [base[0], base[2], base[4]]
        assert list(rk.open(path, parse=len)) == [len(base[0]), len(base[2]), len(base[4])]

    def test_all_records_of_a_file_and_of_all_files_may_be_deleted(self, tmp_path: Path) -> None:
        path = build(tmp_path, "folder", [3, 2, 2])
        rk.add_fields(path, {"x": np.arange(7)})

        rk.delete(path, where="id >= 3 and id < 5")
        assert [row["x"] for row in read(path)] == [0, 1, 2, 5, 6]
        assert plain_rows(rk.open(path)[2:4].rows())[1]["x"] == 5

        rk.delete(path, where="id >= 0")
        assert (read(path), len(rk.open(path))) == ([], 0)
        assert rk.bake(path, tmp_path / "none").records == 0
        assert len(rk.open(tmp_path / "none")) == 0

    def test_arrow_has_the_fields_of_layers(self, tmp_path: Path) -> None:
        path = build(tmp_path, "folder", [3, 2])
        rk.add_fields(path, {"x": ("int64?", [0, None, 2, 3, 4])})
        rk.delete(path, where="id == 0")

        assert rk.open(path).to_arrow()["x"].to_pylist() == [None, 2, 3, 4]

    def test_one_split_is_read_through_layers_over_all(self, tmp_path: Path) -> None:
        path = build(tmp_path, "splits", [3, 2, 1])
        ids = [row["id"] for row in read(path)]
        rk.add_fields(path, {"ten": np.array(ids) * 10})
        rk.delete(path, where="id == 1")

        found = read(path, split="train") + read(path, split="val")

        assert all(row["ten"] == 10 * row["id"] for row in found)
        assert sorted(row["id"] for row in found) == [0, 2, 3, 4, 5]


class TestASchemaOfTheCallers:
    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        path = build(tmp_path, "folder", [3, 2])
        rk.add_fields(path, {"x": np.arange(5)})
        rk.drop_fields(path, "name")
        return path

    def test_may_name_fields_of_both(self, path: Path) -> None:
        ds = rk.open(path, schema={"x": "int64", "id": "int64"})

        assert plain_rows(ds)[3] == {"x": 3, "id": 3}
        assert plain_rows([ds[3]]) == [{"x": 3, "id": 3}]

    def test_is_refused_where_a_layer_has_another_type(self, path: Path) -> None:
        with pytest.raises(
            SchemaError, match=r"x: declared differently than in .*0001-x\n  .*\n  .*cast_fields"
        ) as caught:
            rk.open(path, schema={"x": "float32", "id": "int64"})

        assert caught.value.field == "x"

    def test_is_refused_where_a_field_is_hidden(self, path: Path) -> None:
        with pytest.raises(SchemaError, match=r"name: hidden by .*0002-hidden\n  To read it: overlays=False"):
            rk.open(path, schema={"name": "string"})

        assert read(path, schema=rk.Schema({"name": "string"}), overlays=False)[1] == {"name": "n1"}


class TestDamage:
    @settings(max_examples=15)
    @given(
        st.sets(st.integers(0, 39), min_size=1, max_size=4),
        st.sets(st.integers(0, 69), max_size=20),
        st.integers(1, 9),
        st.integers(1, 3),
        st.none() | st.integers(1, 60),
    )
    def test_a_damaged_record_costs_only_itself(
        self, damaged: set[int], deleted: set[int], size: int, workers: int, taken: int | None
    ) -> None:
        with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
            first, *_ = save_many(Path(folder), [40, 0, 30])
            rk.add_fields(folder, {"ten": np.arange(70) * 10}, sync=False)
            rk.delete(folder, where=lambda row: int(row["id"]) in deleted, sync=False)
            for offset in [offset_of(first, record) for record in damaged]:
                flip(first, offset + 14)
            patch.setattr(_in_order, "_SMALL_BYTES", 0)
            patch.setattr(_in_order, "_PIECE_BYTES", 150)
            logging.disable(logging.WARNING)
            ds = rk.open(folder, on_error="skip")
            ds = ds if taken is None else ds.take(taken)

            found = [row for batch in ds.batch(size, workers=workers) for row in plain_rows(batch.rows())]
            logging.disable(logging.NOTSET)

            wanted = [number for number in range(70) if number not in damaged | deleted][:taken]
            assert [row["id"] for row in found] == wanted
            assert [row["ten"] for row in found] == [10 * number for number in wanted]

    @pytest.mark.parametrize("seconds", [-3600, 3600], ids=["long-ago", "within-a-tick-of-the-clock"])
    def test_a_damaged_member_of_a_file_of_ours_costs_only_itself(self, tmp_path: Path, seconds: int) -> None:
        path = tmp_path / "base"
        names = [f"{number}" * 2000 for number in range(600)]
        rk.write(path, {"id": np.arange(600), "name": names}, compression="gzip", level=0)
        (file,) = path.glob("*.gz")
        os.utime(file, (time.time() + seconds,) * 2)
        rk.add_fields(path, {"ten": np.arange(600) * 10})
        facts = file.stat()
        flip(file, facts.st_size // 2)
        os.utime(file, ns=(facts.st_atime_ns, facts.st_mtime_ns))  # bits that rot do not tell the time

        found = plain_rows(rk.open(path, on_error=lambda damage: None).select("id", "ten"))

        assert 0 < len(found) < 600
        assert found[0]["id"] == 0
        assert found[-1]["id"] == 599
        assert all(row["ten"] == 10 * row["id"] for row in found)

    def test_by_default_it_is_an_error_with_file_and_record(self, tmp_path: Path) -> None:
        first, _ = save_many(tmp_path, [4, 3])
        rk.add_fields(tmp_path, {"x": np.arange(7)})
        flip(first, offset_of(first, 2) + 14)

        with pytest.raises(CorruptRecordError, match=r"data-000.tfrecord: record 2 at byte") as caught:
            read(tmp_path)

        assert (caught.value.path, caught.value.record) == (str(first), 2)

    def test_a_damaged_record_of_a_layer_is_an_error_that_names_its_file(self, tmp_path: Path) -> None:
        save_many(tmp_path, [4, 3])
        rk.add_fields(tmp_path, {"x": ("string", [f"a long value {number}" for number in range(7)])})
        layer = sorted((tmp_path / "_recordkit" / "overlays" / "0001-x").glob("*.tfrecord"))[1]
        flip(layer, offset_of(layer, 1) + 30)

        with pytest.raises(CorruptRecordError, match=r"x-00001-of-00002.tfrecord: record 1 ") as caught:
            read(tmp_path)

        assert caught.value.path == str(layer)
        assert len(read(tmp_path, overlays=False)) == 7


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_is_read_again_from_another_folder(tmp_path: Path, shape: str) -> None:
    path = build(tmp_path / "here", shape, [3, 0, 2])
    rk.add_fields(path, {"x": np.arange(5)})
    rk.delete(path, where="id == 2")
    rows = read(path)

    (tmp_path / "here").rename(tmp_path / "there")

    assert read(tmp_path / "there" / path.relative_to(tmp_path / "here")) == rows
