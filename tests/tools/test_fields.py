"""Fields: added beside records and baked into new files, from every source, and always the same either way."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import traceback
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recordkit as rk
from recordkit.errors import CorruptRecordError, SchemaError, StorageError, TargetExistsError
from recordkit.progress import Report, reporting
from tests import wire
from tests.dataset.bases import SHAPES, build, compressions, counts, listing, raw, read, shapes
from tests.dataset.files import flip, offset_of, save, save_many

if TYPE_CHECKING:
    from recordkit.columns import Batch


def double(row: dict[str, Any]) -> int:
    return int(row["id"]) * 2


def double_unless_six(row: dict[str, Any]) -> int:
    if row["id"] == 6:
        message = "six is not for us"
        raise ValueError(message)
    return int(row["id"]) * 2


def doubles(batch: Batch) -> Any:
    return batch["id"] * 2


SOURCES: dict[str, Any] = {
    "array": lambda count: np.arange(count, dtype=np.int32) * 3,
    "list": lambda count: ("string?", [None if number % 2 else f"s{number}" for number in range(count)]),
    "constant": lambda count: 7,
    "row": lambda count: rk.Computed("int64", double, reads=["id"]),
    "batched": lambda count: rk.Computed("float32", doubles, reads=["id"], batched=True),
    "arrays": lambda count: np.arange(count * 6, dtype=np.float32).reshape(count, 2, 3),
    "ragged": lambda count: ("int64[?]", [list(range(number % 3)) for number in range(count)]),
}
sources = st.dictionaries(st.sampled_from(["new", "new/er"]), st.sampled_from(sorted(SOURCES)), min_size=1)


class TestAdding:
    @settings(max_examples=15)
    @given(shapes, counts, compressions, sources)
    def test_leaves_the_old_payload_as_it_is_and_puts_the_new_fields_behind_it(
        self, shape: str, sizes: list[int], compression: Any, chosen: dict[str, str]
    ) -> None:
        with TemporaryDirectory() as folder:
            path, out = build(Path(folder), shape, sizes, compression), Path(folder) / "out"
            before, rows = raw(path), read(path)

            rk.add_fields(path, {name: SOURCES[kind](len(rows)) for name, kind in chosen.items()}, out=out, sync=False)

            baked = raw(out)
            assert raw(path) == before
            assert len(baked) == len(before)
            assert all(new.startswith(old) for new, old in zip(baked, before, strict=True))
            assert [{name: row[name] for name in ("id", "name")} for row in read(out)] == rows
            assert rk.verify(out).ok

    @settings(max_examples=15)
    @given(shapes, counts, compressions, sources)
    def test_beside_then_baked_is_the_same_as_baked_at_once(
        self, shape: str, sizes: list[int], compression: Any, chosen: dict[str, str]
    ) -> None:
        with TemporaryDirectory() as folder:
            root = Path(folder)
            path = build(root, shape, sizes, compression)
            fields = {name: SOURCES[kind](sum(sizes)) for name, kind in chosen.items()}
            rk.add_fields(path, fields, out=root / "at once", sync=False)

            rk.add_fields(path, fields, sync=False)
            rk.bake(path, root / "later", sync=False)

            assert raw(root / "later") == raw(root / "at once")
            assert read(path) == read(root / "at once") == read(root / "later")
            assert rk.open(path).schema == rk.open(root / "at once").schema == rk.open(root / "later").schema

    @pytest.mark.parametrize("shape", SHAPES)
    @pytest.mark.parametrize("compression", [None, "gzip", "zlib"])
    def test_keeps_splits_shards_and_compression(self, tmp_path: Path, shape: str, compression: Any) -> None:
        path = build(tmp_path, shape, [3, 0, 2], compression)
        before = rk.open(path)

        rk.add_fields(path, {"x": np.arange(5)}, out=tmp_path / "out")

        after = rk.open(tmp_path / "out")
        assert [file.count for file in after.shards] == [file.count for file in before.shards]
        assert {file.compression for file in after.shards if file.count} == {compression}
        assert [len(paths) for paths in after.splits.values()] == [len(paths) for paths in before.splits.values()]
        if shape == "splits":
            assert list(after.splits) == list(before.splits) == ["train", "val"]

    def test_of_a_lone_file_may_be_a_lone_file(self, tmp_path: Path) -> None:
        path = build(tmp_path, "foreign lone", [4])

        changed = rk.add_fields(path, {"x": np.arange(4)}, out=tmp_path / "new.tfrecord")

        assert (changed.path, changed.records, changed.fields) == (str(tmp_path / "new.tfrecord"), 4, ("x",))
        assert [row["x"] for row in read(tmp_path / "new.tfrecord")] == [0, 1, 2, 3]

    def test_of_no_records_gives_the_field_all_the_same(self, tmp_path: Path) -> None:
        rk.write(tmp_path / "none", [], {"id": "int64"})

        rk.add_fields(tmp_path / "none", {"x": ("int64", [])})

        schema = rk.open(tmp_path / "none").schema
        assert schema is not None
        assert schema.names == ("id", "x")
        assert read(tmp_path / "none") == []

    def test_replaces_a_field_where_it_is_said(self, tmp_path: Path) -> None:
        path = build(tmp_path, "folder", [3, 2])

        rk.add_fields(path, {"name": np.arange(5)}, replace=True, out=tmp_path / "out")
        rk.add_fields(path, {"name": np.arange(5)}, replace=True)
        rk.add_fields(path, {"name": ("string", list("abcde"))}, replace=True)

        assert [row["name"] for row in read(tmp_path / "out")] == [0, 1, 2, 3, 4]
        assert [row["name"] for row in read(path)] == list("abcde")
        assert [list(wire.entries(payload)) for payload in raw(tmp_path / "out")] == [
            [payload_entry(payload, "id"), payload_entry(payload, "name")] for payload in raw(tmp_path / "out")
        ]

    def test_goes_behind_deleted_records_and_before_others(self, tmp_path: Path) -> None:
        path = build(tmp_path, "folder", [4, 4])
        rk.delete(path, where="id == 1 or id == 4")

        rk.add_fields(path, {"x": np.arange(6), "y": rk.Computed("int64", double, reads=["id"])})
        rk.delete(path, where="x == 2")

        assert [(row["id"], row["x"], row["y"]) for row in read(path)] == [
            (0, 0, 0),
            (2, 1, 4),
            (5, 3, 10),
            (6, 4, 12),
            (7, 5, 14),
        ]
        rk.add_fields(path, {"z": ("string", list("abcde"))}, out=tmp_path / "out")
        assert read(tmp_path / "out") == [{**row, "z": letter} for row, letter in zip(read(path), "abcde", strict=True)]

    def test_may_read_fields_that_were_added(self, tmp_path: Path) -> None:
        path = build(tmp_path, "folder", [3, 2])
        rk.add_fields(path, {"x": np.arange(5)})

        rk.add_fields(path, {"y": rk.Computed("int64", lambda row: row["x"] + row["id"], reads=["x", "id"])})
        rk.add_fields(path, {"z": rk.Computed("int64", lambda batch: batch["y"] * 2, ["y"], True)}, out=tmp_path / "o")

        assert [row["y"] for row in read(path)] == [0, 2, 4, 6, 8]
        assert [row["z"] for row in read(tmp_path / "o")] == [0, 4, 8, 12, 16]

    def test_tells_how_far_it_is(self, tmp_path: Path) -> None:
        path, seen = build(tmp_path, "foreign", [3, 2]), list[Report]()

        with reporting(seen.append):
            rk.add_fields(path, {"x": np.arange(5)}, out=tmp_path / "out")

        told = [(report.done, report.total, report.unit) for report in seen if report.unit == "files"]
        assert told == [(1, 2, "files"), (2, 2, "files")]

    def test_of_records_that_are_no_examples_is_refused(self, tmp_path: Path) -> None:
        save(tmp_path / "a.tfrecord", [b"\xff\xff not an Example"])

        with pytest.raises(SchemaError, match="have no fields"):
            rk.add_fields(tmp_path / "a.tfrecord", {"x": 1})


def payload_entry(payload: bytes, name: str) -> bytes:
    """The one entry of a name."""
    (found,) = [entry for entry in wire.entries(payload) if wire.delimited(1, name.encode()) in entry]
    return found


class TestFeaturesThatAreRare:
    """Of files without a manifest only some records are looked at; others may have a feature that is then added."""

    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        common = [
            wire.example(wire.entry("id", wire.ints(number)), wire.entry("d", wire.texts(bytes(300_000))))
            for number in range(12)
        ]
        rare = wire.example(wire.entry("id", wire.ints(12)), wire.entry("x", wire.ints(99)))
        return save(tmp_path / "theirs" / "a.tfrecord", [*common, rare])

    def test_are_not_there_twice(self, path: Path, tmp_path: Path) -> None:
        with pytest.raises(
            SchemaError, match=r"a.tfrecord: record 12: x: the record already has a feature .*\n  .*replace=True"
        ):
            rk.add_fields(path, {"x": np.arange(13)}, out=tmp_path / "refused")

        rk.add_fields(path, {"x": np.arange(13)}, out=tmp_path / "out", replace=True)
        rk.add_fields(path, {"x": np.arange(13)})
        rk.bake(path, tmp_path / "baked")

        for place in (tmp_path / "out", tmp_path / "baked"):
            assert wire.names(raw(place)[12]) == {"", "id", "x"}
            assert len(list(wire.entries(raw(place)[12]))) == 2
            assert rk.open(place).select("x")[12]["x"] == 12
        assert rk.open(path).select("x")[12]["x"] == 12


class TestSequenceExamples:
    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        context = [wire.example(wire.entry("id", wire.ints(number))) for number in range(5)]
        steps = wire.lists(wire.entry("tokens", wire.steps(wire.ints(1), wire.ints(2, 3))))
        return save(tmp_path / "theirs" / "s.tfrecord", [one + steps for one in context])

    def test_get_context_fields(self, path: Path, tmp_path: Path) -> None:
        before = raw(path)

        rk.add_fields(path, {"x": rk.Computed("int64", double, reads=["id"])})
        rk.bake(path, tmp_path / "baked")
        rk.add_fields(path, {"x": np.arange(5) * 2}, replace=True, out=tmp_path / "again")

        for place in (path, tmp_path / "baked", tmp_path / "again"):
            assert [row["x"] for row in read(place)] == [0, 2, 4, 6, 8]
            assert read(place)[1]["tokens"] == [[1], [2, 3]]
        assert all(new.startswith(old) for new, old in zip(raw(tmp_path / "baked"), before, strict=True))

    def test_keep_what_has_a_value_a_step(self, path: Path) -> None:
        with pytest.raises(SchemaError, match=r"tokens: .* already\n  .*one value per step cannot be replaced"):
            rk.add_fields(path, {"tokens": 1}, replace=True)


class TestSources:
    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        return build(tmp_path, "folder", [4, 4])

    def test_a_list_with_none_where_a_value_is_missing(self, path: Path) -> None:
        rk.add_fields(path, {"x": ("int64?", [1, None] * 4)})

        assert [row["x"] for row in read(path)] == [1, None] * 4

    def test_one_value_for_all(self, path: Path) -> None:
        rk.add_fields(path, {"day": "monday", "none": ("float32?", None), "share": ("float32", 0.5)})

        assert [(row["day"], row["none"], row["share"]) for row in read(path)] == [("monday", None, 0.5)] * 8

    @pytest.mark.parametrize("kind", ["parquet", "csv", "pandas", "arrow"])
    def test_a_table_in_another_order(self, path: Path, tmp_path: Path, kind: str) -> None:
        table = pa.table(
            {"id": [7, 6, 5, 4, 3, 2, 1, 0, 99], "height": [f"h{i}" for i in [7, 6, 5, 4, 3, 2, 1, 0, 99]]}
        )
        pq.write_table(table, tmp_path / "t.parquet")
        table.to_pandas().to_csv(tmp_path / "t.csv", index=False)
        given = {
            "parquet": str(tmp_path / "t.parquet"),
            "csv": str(tmp_path / "t.csv"),
            "pandas": pd.DataFrame({"id": range(8), "height": [f"h{i}" for i in range(8)]}),
            "arrow": table,
        }[kind]

        rk.add_fields(path, {"height": rk.Joined(given, on="id")})

        assert [row["height"] for row in read(path)] == [f"h{number}" for number in range(8)]

    def test_a_key_that_no_row_has_is_named_with_file_and_record(self, path: Path) -> None:
        table = pa.table({"id": [0, 1, 2, 3, 4, 5, 7], "h": [0] * 7})

        with pytest.raises(SchemaError, match=r"base-00001-of-00002.tfrecord: record 2: h: .*6") as caught:
            rk.add_fields(path, {"h": rk.Joined(table, on="id")})

        assert (caught.value.field, caught.value.record) == ("h", 2)
        rk.add_fields(path, {"h": rk.Joined(table, on="id", default=-1)}, resume=False)
        assert [row["h"] for row in read(path)] == [0, 0, 0, 0, 0, 0, -1, 0]

    def test_another_dataset_in_the_same_order(self, path: Path, tmp_path: Path) -> None:
        rk.write(tmp_path / "other", {"h": np.arange(8), "w": [None, "w"] * 4}, {"h": "int64", "w": "string?"})
        other = rk.open(tmp_path / "other")

        rk.add_fields(path, {"h": other, "width": rk.Aligned(other, "w")})

        assert [(row["h"], row["width"]) for row in read(path)] == list(zip(range(8), [None, "w"] * 4, strict=True))

    @pytest.mark.parametrize("source", [np.arange(7), [1] * 9, ("int64", []), pa.array([1, 2])])
    def test_of_another_length_are_refused(self, path: Path, source: Any) -> None:
        with pytest.raises(SchemaError, match=r"x: expected 8 rows, as many as the dataset has, found \d"):
            rk.add_fields(path, {"x": source})

        assert read(path, overlays=True) == read(path, overlays=False)

    @pytest.mark.parametrize("way", ["beside", "baked"])
    @pytest.mark.parametrize(
        ("source", "words"),
        [
            (("int8", [1, 2, 3, 4, 5, 6, 1000, 8]), "x: expected int8, found 1000\n  int8 holds -128 to 127."),
            (("int64", [1, 2, 3, 4, 5, 6, None, 8]), "x: expected int64, found None\n  Declare 'int64\\?'"),
            (("string", [*"abcdef", 7, "h"]), "x: expected string, found int"),
            (
                rk.Computed("int8", lambda row: 1000 if row["id"] == 6 else 1, reads=["id"]),
                "x: expected int8, found 1000",
            ),
            (
                rk.Computed("int64[2]", lambda row: [1] * (3 if row["id"] == 6 else 2), ["id"]),
                "x: expected int64\\[2\\]",
            ),
        ],
    )
    def test_values_of_another_type_are_refused_with_file_record_and_field(
        self, path: Path, tmp_path: Path, way: str, source: Any, words: str
    ) -> None:
        out = None if way == "beside" else tmp_path / "out"

        with pytest.raises(SchemaError, match=rf"base-00001-of-00002.tfrecord: record 2: {words}") as caught:
            rk.add_fields(path, {"x": source}, out=out)

        error = caught.value
        assert (error.path, error.record, error.field) == (str(path / "base-00001-of-00002.tfrecord"), 2, "x")
        assert read(path) == read(path, overlays=False)
        assert not (tmp_path / "out").exists()

    def test_numbers_of_records_are_those_in_the_file_where_some_are_deleted(self, path: Path) -> None:
        rk.delete(path, where="id == 0 or id == 4")

        with pytest.raises(SchemaError, match=r"base-00001-of-00002.tfrecord: record 2: x: expected int8, found 1000"):
            rk.add_fields(path, {"x": ("int8", [1, 1, 1, 1, 1000, 1])})
        with pytest.raises(SchemaError, match=r"base-00001-of-00002.tfrecord: record 2: y: the function failed: Val"):
            rk.add_fields(path, {"y": rk.Computed("int64", double_unless_six, reads=["id"])})


class TestFunctionsThatFail:
    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        return build(tmp_path, "folder", [4, 4])

    @pytest.mark.parametrize("workers", [1, rk.Threads(2), rk.Processes(2)])
    def test_are_reported_with_file_record_and_traceback(self, path: Path, workers: Any) -> None:
        source = rk.Computed("int64", double_unless_six, reads=["id"])

        with pytest.raises(
            SchemaError, match=r"base-00001-of-00002.tfrecord: record 2: x: the function failed"
        ) as caught:
            rk.add_fields(path, {"x": source}, workers=workers)

        assert caught.value.field == "x"
        assert caught.value.record == 2
        told = "".join(traceback.format_exception(caught.value))
        assert "ValueError: six is not for us" in told
        assert "in double_unless_six" in told
        assert read(path) == read(path, overlays=False)

    def test_on_a_batch_are_reported_with_its_file(self, path: Path) -> None:
        def fails(batch: Batch) -> Any:
            if 6 in batch["id"]:
                raise KeyError(len(batch))
            return batch["id"]

        with pytest.raises(
            SchemaError, match=r"base-00001-of-00002.tfrecord: x: the function failed on records 0 to 3: KeyError: 4"
        ):
            rk.add_fields(path, {"x": rk.Computed("int64", fails, reads=["id"], batched=True)})

    def test_leave_the_field_missing_where_that_is_asked_for(self, path: Path) -> None:
        source = rk.Computed("int64?", double_unless_six, reads=["id"])

        changed = rk.add_fields(path, {"x": source}, on_error="skip")

        assert [row["x"] for row in read(path)] == [0, 2, 4, 6, 8, 10, None, 14]
        assert changed.failures == ((6, "ValueError: six is not for us"),)
        assert str(changed).endswith("1 values are missing, the first in record 6: ValueError: six is not for us")

    def test_leave_out_values_that_do_not_fit_too(self, path: Path) -> None:
        source = rk.Computed("int8?", lambda row: [5, 1000, None, "x", 1.5, 2, 3, 4][int(row["id"])], reads=["id"])

        changed = rk.add_fields(path, {"x": source}, on_error="skip", workers=1)

        assert [row["x"] for row in read(path)] == [5, None, None, None, None, 2, 3, 4]
        assert [failure.record for failure in changed.failures] == [1, 3, 4]

    def test_need_a_type_that_may_be_missing_for_that(self, path: Path) -> None:
        source = rk.Computed("int64", double_unless_six, reads=["id"])

        with pytest.raises(SchemaError, match=r'on_error="skip" needs a type that ends in \?'):
            rk.add_fields(path, {"x": source}, on_error="skip")

    def test_processes_give_what_threads_give(self, path: Path, tmp_path: Path) -> None:
        source = rk.Computed("int64", double, reads=["id"])

        rk.add_fields(path, {"x": source, "y": np.arange(8)}, out=tmp_path / "a", workers=rk.Processes(2))
        rk.add_fields(path, {"x": source, "y": np.arange(8)}, out=tmp_path / "b", workers=1)

        assert raw(tmp_path / "a") == raw(tmp_path / "b")


class TestErrors:
    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        return build(tmp_path, "folder", [4, 4])

    def test_a_field_that_is_there_already(self, path: Path) -> None:
        rk.add_fields(path, {"x": 1})

        for name in ("name", "x"):
            with pytest.raises(SchemaError, match=rf"{name}: .*base has a field {name} already\n  .*replace=True"):
                rk.add_fields(path, {name: 1})

    def test_a_name_that_is_not_there(self, path: Path) -> None:
        with pytest.raises(SchemaError, match=r"x: reads 'nmae', which is not in the dataset\n  Did you mean 'name'"):
            rk.add_fields(path, {"x": rk.Computed("int64", double, reads=["nmae"])})

    def test_a_target_that_is_there(self, path: Path, tmp_path: Path) -> None:
        rk.write(tmp_path / "out", [{"id": 1}])

        with pytest.raises(TargetExistsError, match="overwrite=True"):
            rk.add_fields(path, {"x": 1}, out=tmp_path / "out")
        rk.add_fields(path, {"x": 1}, out=tmp_path / "out", overwrite=True)

        assert len(read(tmp_path / "out")) == 8

    def test_the_dataset_itself_as_the_target(self, path: Path) -> None:
        with pytest.raises(TargetExistsError):
            rk.add_fields(path, {"x": 1}, out=path)

        assert len(read(path)) == 8

    def test_both_kinds_of_target(self, path: Path, tmp_path: Path) -> None:
        with pytest.raises(ValueError, match=r"out= bakes .* overlay= keeps them apart: pass one of them"):
            rk.add_fields(path, {"x": 1}, out=tmp_path / "a", overlay=tmp_path / "b")

    def test_one_file_for_many(self, path: Path, tmp_path: Path) -> None:
        with pytest.raises(StorageError, match=r"one.tfrecord: 2 files cannot become one\n  Choose a folder"):
            rk.add_fields(path, {"x": 1}, out=tmp_path / "one.tfrecord")

    def test_nothing_to_add(self, path: Path) -> None:
        with pytest.raises(ValueError, match="no fields to add"):
            rk.add_fields(path, {})

        assert not (path / "_recordkit" / "overlays").exists()


class TestKeptElsewhere:
    @pytest.mark.parametrize("shape", SHAPES)
    def test_the_base_gets_nothing_at_all(self, tmp_path: Path, shape: str) -> None:
        path = build(tmp_path / "base", shape, [3, 2])
        before = listing(tmp_path / "base")

        rk.add_fields(path, {"x": np.arange(5)}, overlay=tmp_path / "work" / "x")
        rk.add_fields(path, {"y": rk.Computed("int64", double, reads=["id"])}, overlay=tmp_path / "work" / "y")

        assert listing(tmp_path / "base") == before
        found = read(path, overlays=[tmp_path / "work" / "x", tmp_path / "work" / "y"])
        assert [row["x"] for row in found] == [0, 1, 2, 3, 4]
        assert [row["y"] for row in found] == [2 * row["id"] for row in found]
        assert read(path) == [{"id": row["id"], "name": row["name"]} for row in found]

    def test_it_comes_on_top_of_what_is_beside_the_records(self, tmp_path: Path) -> None:
        path = build(tmp_path, "folder", [3, 2])
        rk.add_fields(path, {"x": np.arange(5)})
        rk.delete(path, where="id == 0")

        rk.add_fields(path, {"x": np.arange(4) * 10}, replace=True, overlay=tmp_path / "work" / "x")

        assert [row["x"] for row in read(path)] == [1, 2, 3, 4]
        assert [row["x"] for row in read(path, overlays=[tmp_path / "work" / "x"])] == [0, 10, 20, 30]

    def test_a_base_that_may_not_be_written_to_says_so(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = build(tmp_path, "foreign", [3, 2])

        def refused(self: Path, *args: Any, **options: Any) -> None:
            raise PermissionError(errno.EACCES, "Permission denied", str(self))

        monkeypatch.setattr(Path, "mkdir", refused)  # a folder's mode does not keep root out

        with pytest.raises(StorageError, match=r"_recordkit: .*\n  .*read-only data, choose a folder with overlay="):
            rk.add_fields(path, {"x": np.arange(5)})

    def test_the_advice_is_one_that_the_function_takes(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = build(tmp_path, "foreign", [3, 2])
        rk.add_fields(path, {"y": np.arange(5)})
        monkeypatch.setattr(os, "access", lambda *_, **__: False)

        with pytest.raises(StorageError, match=r"overlays: cannot write to this folder.*\n  .*with overlay="):
            rk.add_fields(path, {"x": np.arange(5)})
        elsewhere = r"nothing can be changed .*\n  .*: out= of bake, drop_fields and filter"
        with pytest.raises(StorageError, match=elsewhere):
            rk.delete(path, where="y == 1")
        with pytest.raises(StorageError, match=elsewhere):
            rk.drop_fields(path, "y")


class TestDamage:
    @pytest.mark.parametrize("way", ["add", "bake", "filter"])
    def test_of_the_base_is_found_while_baking(self, tmp_path: Path, way: str) -> None:
        _, second = save_many(tmp_path / "base", [4, 4])
        flip(second, offset_of(second, 2) + 14)

        make: dict[str, Any] = {
            "add": lambda base, out: rk.add_fields(base, {"x": np.arange(8)}, out=out),
            "bake": rk.bake,
            "filter": lambda base, out: rk.filter(base, "id >= 0", out=out),
        }

        with pytest.raises(CorruptRecordError, match=r"data-001.tfrecord: record 2 at byte \d+: .*payload") as caught:
            make[way](tmp_path / "base", tmp_path / "out")

        assert (caught.value.path, caught.value.record) == (str(second), 2)
        assert not (tmp_path / "out").exists()


BYTES_READ = """
import sys, numpy as np, recordkit as rk
def read_so_far():
    return int(dict(line.split(": ") for line in open("/proc/self/io").read().splitlines())["rchar"])
warm, path, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
rk.add_fields(warm, {"x": np.arange(2)})
list(rk.open(warm))
before = read_so_far()
rk.add_fields(path, {"x": np.arange(count)})
print(read_so_far() - before)
"""


class TestWhatIsRead:
    def test_an_array_beside_a_dataset_of_ours_reads_next_to_nothing_of_it(self, tmp_path: Path) -> None:
        rows = {"id": np.arange(300), "data": [bytes(100_000)] * 300}
        rk.write(tmp_path / "large", rows, {"id": "int64", "data": "bytes"}, records_per_shard=100, sync=False)
        rk.write(tmp_path / "warm", [{"id": 1}, {"id": 2}])
        size = sum(path.stat().st_size for path in (tmp_path / "large").glob("*.tfrecord"))

        command = [sys.executable, "-c", BYTES_READ, str(tmp_path / "warm"), str(tmp_path / "large"), "300"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=True)

        assert int(done.stdout) < size / 100
        assert [row["x"] for row in rk.open(tmp_path / "large").select("x")] == list(range(300))
