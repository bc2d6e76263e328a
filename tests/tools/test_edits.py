"""Edits: fields dropped, renamed and cast, records filtered and deleted; and what TensorFlow makes of all of it."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recordkit as rk
from recordkit.errors import SchemaError, StorageError, TargetExistsError
from recordkit.progress import Report, reporting
from recordkit.storage.overlays import overlays_of
from tests import wire
from tests.dataset.bases import SHAPES, build, compressions, counts, listing, raw, read, shapes
from tests.dataset.files import save


def is_even(row: dict[str, Any]) -> bool:
    return bool(row["id"] % 2 == 0)


def fails_at_six(row: dict[str, Any]) -> bool:
    if row["id"] == 6:
        message = "six is not for us"
        raise ValueError(message)
    return True


class TestRename:
    @settings(max_examples=15)
    @given(shapes, counts, compressions)
    def test_there_and_back_is_identity(self, shape: str, sizes: list[int], compression: Any) -> None:
        with TemporaryDirectory() as folder:
            root = Path(folder)
            path = build(root, shape, sizes, compression)

            rk.rename_fields(path, {"id": "a/longer name", "name": "n"}, out=root / "there", sync=False)
            rk.rename_fields(root / "there", {"a/longer name": "id", "n": "name"}, out=root / "back", sync=False)

            assert raw(root / "back") == raw(path)
            assert read(root / "there") == [{"a/longer name": row["id"], "n": row["name"]} for row in read(path)]

    def test_two_fields_may_change_names(self, tmp_path: Path) -> None:
        path = build(tmp_path, "folder", [3, 2])

        rk.rename_fields(path, {"id": "name", "name": "id"}, out=tmp_path / "out")

        assert read(tmp_path / "out")[3] == {"name": 3, "id": "nnn3"}

    def test_fields_of_layers_are_renamed_too(self, tmp_path: Path) -> None:
        path = build(tmp_path, "folder", [3, 2])
        rk.add_fields(path, {"x": np.arange(5)})
        rk.drop_fields(path, "name")

        rk.rename_fields(path, {"x": "name", "id": "x"}, out=tmp_path / "out")

        assert read(tmp_path / "out")[3] == {"x": 3, "name": 3}

    @pytest.mark.parametrize("names", [{"id": "name"}, {"id": "q", "name": "q"}])
    def test_two_fields_of_one_name_are_refused(self, tmp_path: Path, names: dict[str, str]) -> None:
        path = build(tmp_path, "folder", [3, 2])

        with pytest.raises(SchemaError, match=r"(name|q): two fields would have this name\n  Drop the other one first"):
            rk.rename_fields(path, names, out=tmp_path / "out")

    def test_an_unknown_name_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(SchemaError, match="Did you mean 'name'"):
            rk.rename_fields(build(tmp_path, "folder", [1]), {"nmae": "x"}, out=tmp_path / "out")

    def test_a_feature_list_is_renamed(self, tmp_path: Path) -> None:
        steps = wire.lists(wire.entry("tokens", wire.steps(wire.ints(1), wire.ints(2, 3))))
        path = save(tmp_path / "s.tfrecord", [wire.example(wire.entry("id", wire.ints(1))) + steps] * 2)

        rk.rename_fields(path, {"tokens": "t", "id": "key"}, out=tmp_path / "out")

        assert read(tmp_path / "out") == [{"key": 1, "t": [[1], [2, 3]]}] * 2


class TestDrop:
    @settings(max_examples=12)
    @given(shapes, counts, compressions)
    def test_takes_the_field_out_and_leaves_the_others_as_they_are(
        self, shape: str, sizes: list[int], compression: Any
    ) -> None:
        with TemporaryDirectory() as folder:
            path, out = build(Path(folder), shape, sizes, compression), Path(folder) / "out"
            before = [[entry for entry in wire.entries(payload) if b"name" not in entry] for payload in raw(path)]
            rows = [{"id": row["id"]} for row in read(path)]

            rk.drop_fields(path, "name", out=out, sync=False)
            rk.drop_fields(path, ["name"], sync=False)

            assert [list(wire.entries(payload)) for payload in raw(out)] == before
            assert rk.open(out).schema == rk.open(path).schema == rk.Schema({"id": "int64"})
            assert read(out) == read(path) == rows

    def test_of_a_field_that_was_added_removes_the_overlay(self, tmp_path: Path) -> None:
        path = build(tmp_path, "folder", [3, 2])
        before = listing(path)
        rk.add_fields(path, {"x": np.arange(5)})

        rk.drop_fields(path, "x")

        assert listing(path) == before
        assert overlays_of(path) == ()

    def test_of_one_of_two_fields_added_together_hides_it(self, tmp_path: Path) -> None:
        path = build(tmp_path, "folder", [3, 2])
        rk.add_fields(path, {"x": np.arange(5), "y": np.arange(5)})

        rk.drop_fields(path, "x")
        assert list(read(path)[0]) == ["id", "name", "y"]

        rk.add_fields(path, {"x": np.arange(5) * 2})
        assert [row["x"] for row in read(path)] == [0, 2, 4, 6, 8]
        rk.bake(path, tmp_path / "out")
        assert read(tmp_path / "out") == read(path)
        assert all(len(list(wire.entries(payload))) == 4 for payload in raw(tmp_path / "out"))

    def test_of_a_field_that_was_replaced_brings_nothing_back(self, tmp_path: Path) -> None:
        path = build(tmp_path, "folder", [3, 2])
        rk.add_fields(path, {"x": np.arange(5)})
        rk.add_fields(path, {"x": np.arange(5), "name": np.arange(5)}, replace=True)

        rk.drop_fields(path, ["x", "name"])

        assert list(read(path)[0]) == ["id"]

    def test_of_what_is_there_and_what_was_added_is_one_step(self, tmp_path: Path) -> None:
        path = build(tmp_path, "folder", [3, 2])
        rk.add_fields(path, {"x": np.arange(5)})
        rk.add_fields(path, {"y": np.arange(5)})

        rk.drop_fields(path, ["x", "name", "y"])

        assert list(read(path)[0]) == ["id"]
        assert rk.open(path, overlays=False).schema == rk.Schema({"id": "int64", "name": "string"})

    def test_of_an_unknown_field_is_refused(self, tmp_path: Path) -> None:
        path = build(tmp_path, "folder", [3, 2])
        rk.drop_fields(path, "name")

        with pytest.raises(SchemaError, match="name: not in the schema"):
            rk.drop_fields(path, "name")
        with pytest.raises(SchemaError, match="Did you mean 'id'"):
            rk.drop_fields(path, "idd", out=tmp_path / "out")

    def test_of_a_feature_list(self, tmp_path: Path) -> None:
        steps = wire.lists(wire.entry("tokens", wire.steps(wire.ints(1), wire.ints(2, 3))))
        path = save(tmp_path / "s.tfrecord", [wire.example(wire.entry("id", wire.ints(1))) + steps] * 2)

        rk.drop_fields(path, "tokens", out=tmp_path / "out")
        rk.drop_fields(path, "tokens")

        assert read(tmp_path / "out") == read(path) == [{"id": 1}] * 2


class TestCast:
    @settings(max_examples=12)
    @given(shapes, counts, compressions, st.booleans())
    def test_to_another_type_and_back_is_the_same_values(
        self, shape: str, sizes: list[int], compression: Any, beside: bool
    ) -> None:
        with TemporaryDirectory() as folder:
            path, out = build(Path(folder), shape, sizes, compression), Path(folder) / "out"
            rows = read(path)

            if beside:
                rk.cast_fields(path, {"id": "uint8", "name": "string?"}, sync=False)
                rk.cast_fields(path, {"id": "int64", "name": "string"}, out=out, sync=False)
            else:
                rk.cast_fields(path, {"id": "uint8", "name": "string?"}, out=Path(folder) / "wide", sync=False)
                rk.cast_fields(Path(folder) / "wide", {"id": "int64", "name": "string"}, out=out, sync=False)

            assert read(out) == rows
            assert rk.open(out).schema == rk.Schema({"id": "int64", "name": "string"})

    def test_to_a_type_that_cannot_hold_a_value_is_refused_with_file_record_and_field(self, tmp_path: Path) -> None:
        rk.write(tmp_path / "a", [{"x": 1}, {"x": 2}, {"x": 3}, {"x": 300}], records_per_shard=2)

        with pytest.raises(SchemaError, match=r"a-00001-of-00002.tfrecord: record 1: x: expected uint8, found 300"):
            rk.cast_fields(tmp_path / "a", {"x": "uint8"})

    def test_keeps_what_is_missing(self, tmp_path: Path) -> None:
        rk.write(tmp_path / "a", [{"x": 1}, {"x": None}, {"x": 3}], {"x": "int64?"})

        rk.cast_fields(tmp_path / "a", {"x": "uint8?"})

        assert [row["x"] for row in read(tmp_path / "a")] == [1, None, 3]
        with pytest.raises(SchemaError, match=r"record 1: x: expected uint8, found None"):
            rk.cast_fields(tmp_path / "a", {"x": "uint8"}, out=tmp_path / "b")

    def test_of_an_unknown_field_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(SchemaError, match="Did you mean 'name'"):
            rk.cast_fields(build(tmp_path, "folder", [1]), {"nmae": "bytes"})


class TestFilterAndDelete:
    @settings(max_examples=15)
    @given(shapes, counts, compressions, st.integers(0, 30), st.booleans())
    def test_deleted_then_baked_is_filtered_by_the_opposite(
        self, shape: str, sizes: list[int], compression: Any, most: int, layered: bool
    ) -> None:
        with TemporaryDirectory() as folder:
            root = Path(folder)
            path = build(root, shape, sizes, compression)
            if layered:
                rk.add_fields(path, {"x": np.arange(sum(sizes))}, sync=False)
            rows = read(path)

            kept = rk.filter(path, f"id <= {most}", out=root / "filtered", sync=False)
            gone = rk.delete(path, where=f"not (id <= {most})", sync=False)
            rk.bake(path, root / "baked", sync=False)

            assert raw(root / "baked") == raw(root / "filtered")
            assert read(root / "filtered") == read(path) == [row for row in rows if row["id"] <= most]
            assert kept.records + gone.records == len(rows)

    def test_a_function_does_as_well(self, tmp_path: Path) -> None:
        path = build(tmp_path, "folder", [4, 4])

        rk.filter(path, is_even, out=tmp_path / "a", workers=2)
        rk.filter(path, lambda row: row["id"] % 2 == 0, out=tmp_path / "b", reads=["id"])
        rk.delete(path, where=is_even)

        assert raw(tmp_path / "a") == raw(tmp_path / "b") == raw(path)[::2]
        assert [row["id"] for row in read(path)] == [1, 3, 5, 7]

    def test_a_condition_may_ask_for_fields_of_layers(self, tmp_path: Path) -> None:
        path = build(tmp_path, "folder", [4, 4])
        rk.add_fields(path, {"x": np.arange(8)[::-1].copy()})

        rk.delete(path, where="x < 2")
        rk.filter(path, "x >= 4 and id > 0", out=tmp_path / "out")

        assert [row["id"] for row in read(path)] == [0, 1, 2, 3, 4, 5]
        assert [row["id"] for row in read(tmp_path / "out")] == [1, 2, 3]

    @pytest.mark.parametrize("verb", ["filter", "delete"])
    def test_a_function_that_fails_is_reported_with_file_and_record(self, tmp_path: Path, verb: str) -> None:
        path = build(tmp_path, "folder", [4, 4])
        rk.delete(path, where="id == 4")

        make: dict[str, Any] = {
            "filter": lambda: rk.filter(path, fails_at_six, out=tmp_path / "out"),
            "delete": lambda: rk.delete(path, where=fails_at_six),
        }

        with pytest.raises(
            SchemaError, match=r"base-00001-of-00002.tfrecord: record 2: the function failed: V"
        ) as caught:
            make[verb]()

        assert isinstance(caught.value.__cause__, ValueError)
        assert len(rk.open(path)) == 7

    def test_deleting_says_how_far_it_has_come(self, tmp_path: Path) -> None:
        path = build(tmp_path, "folder", [4, 5])
        rk.delete(path, where="id == 0")
        reports: list[Report] = []

        with reporting(reports.append):
            rk.delete(path, where="id == 6")

        assert reports == [Report("looking at records", done, 8, "records") for done in (3, 8)]

    def test_nothing_deleted_is_no_layer(self, tmp_path: Path) -> None:
        path = build(tmp_path, "foreign", [4, 4])

        assert rk.delete(path, where="id > 100").records == 0
        assert sorted(entry.name for entry in path.iterdir()) == ["data-000.tfrecord", "data-001.tfrecord"]

    def test_unknown_names_are_refused(self, tmp_path: Path) -> None:
        path = build(tmp_path, "folder", [4, 4])

        with pytest.raises(rk.RecordKitError, match="name"):
            rk.delete(path, where="nmae == 'x'")
        with pytest.raises(SchemaError, match="Did you mean 'name'"):
            rk.filter(path, is_even, reads=["nmae"], out=tmp_path / "out")


class TestBake:
    @pytest.mark.parametrize("shape", SHAPES)
    def test_without_layers_is_a_copy(self, tmp_path: Path, shape: str) -> None:
        path = build(tmp_path, shape, [3, 0, 2])

        rk.bake(path, tmp_path / "out")

        assert raw(tmp_path / "out") == raw(path)

    def test_over_something_is_refused(self, tmp_path: Path) -> None:
        path = build(tmp_path, "folder", [3])
        (tmp_path / "mine").mkdir()
        (tmp_path / "mine" / "thesis.txt").touch()

        with pytest.raises(TargetExistsError, match="already exists"):
            rk.bake(path, tmp_path / "mine")
        with pytest.raises(TargetExistsError, match="not a dataset of recordkit"):
            rk.bake(path, tmp_path / "mine", overwrite=True)

    def test_of_files_in_several_folders_has_no_place_for_layers(self, tmp_path: Path) -> None:
        build(tmp_path / "a", "foreign", [3])
        build(tmp_path / "b", "foreign", [2])
        both = str(tmp_path / "*" / "base" / "*.tfrecord")

        with pytest.raises(StorageError, match=r"in 2 folders.*\n  Choose a folder with overlay=, or .*out="):
            rk.drop_fields(both, "name")


MADE = ("added", "baked", "replaced", "dropped", "renamed", "cast", "filtered")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str | None], Path]:
    """Everything that bakes, of plain and of compressed files; and an overlay."""
    found: dict[tuple[str, str | None], Path] = {}
    for compression in (None, "gzip", "zlib"):
        root = tmp_path_factory.mktemp(str(compression))
        path = build(root, "folder", [4, 0, 3], compression)
        x: dict[str, Any] = {"x": np.arange(7) * 1000, "s": ("string", [f"s{number}" for number in range(7)])}
        rk.add_fields(path, x, out=root / "added")
        rk.add_fields(path, x)
        rk.bake(path, root / "baked")
        rk.add_fields(path, {"x": np.arange(7) * 1000}, replace=True, out=root / "replaced")
        rk.add_fields(path, {"y": np.arange(7)}, out=root / "more")
        rk.drop_fields(root / "more", "y", out=root / "dropped")
        rk.rename_fields(root / "more", {"y": "x", "x": "y"}, out=root / "swapped")
        rk.rename_fields(root / "swapped", {"y": "x", "x": "z"}, out=root / "renamed")
        rk.cast_fields(path, {"x": "uint16"}, out=root / "cast")
        rk.filter(path, "id >= 0", out=root / "filtered")
        found |= {(name, compression): root / name for name in MADE}
        found["base", compression] = path
    return found


@pytest.mark.tensorflow
class TestTensorFlow:
    @pytest.mark.parametrize("compression", [None, "gzip", "zlib"])
    @pytest.mark.parametrize("name", MADE)
    def test_reads_what_is_baked_and_warns_of_nothing(
        self, tf: Any, made: dict[Any, Path], name: str, compression: Any, capfd: pytest.CaptureFixture[str]
    ) -> None:
        files = [file.name for file in rk.open(made[name, compression]).shards]
        payloads = list(tf.data.TFRecordDataset(files, (compression or "").upper()).as_numpy_iterator())
        features = {
            "id": tf.io.FixedLenFeature([], tf.int64),
            "x": tf.io.FixedLenFeature([], tf.int64),
            "s": tf.io.FixedLenFeature([], tf.string),
        }

        many = tf.io.parse_example(payloads, features)
        each = [tf.io.parse_single_example(payload, features) for payload in payloads]
        whole = [tf.train.Example.FromString(payload).features.feature for payload in payloads]

        ids, texts = list(range(7)), [f"s{number}".encode() for number in range(7)]
        assert many["id"].numpy().tolist() == ids
        assert many["x"].numpy().tolist() == [1000 * number for number in ids]
        assert many["s"].numpy().tolist() == texts
        assert [(int(one["id"]), int(one["x"]), one["s"].numpy()) for one in each] == [
            (number, 1000 * number, texts[number]) for number in ids
        ]
        assert [list(one["x"].int64_list.value) for one in whole] == [[1000 * number] for number in ids]
        assert "Data loss" not in capfd.readouterr().err

    def test_would_warn_of_a_name_that_is_there_twice(self, tf: Any, capfd: pytest.CaptureFixture[str]) -> None:
        """So that the silence above says something."""
        twice = wire.example(wire.entry("x", wire.ints(1)), wire.entry("x", wire.ints(2)))

        tf.io.parse_example([twice], {"x": tf.io.FixedLenFeature([], tf.int64)})

        assert "Data loss" in capfd.readouterr().err

    @pytest.mark.parametrize("compression", [None, "gzip", "zlib"])
    def test_reads_an_overlay_beside_its_base(self, tf: Any, made: dict[Any, Path], compression: Any) -> None:
        base = made["base", compression]
        (layer,) = overlays_of(base)
        files = [file.name for file in rk.open(base).shards]
        beside = [file.name for file in layer.files.values()]
        both = tf.data.Dataset.zip(
            (tf.data.TFRecordDataset(files, (compression or "").upper()), tf.data.TFRecordDataset(beside))
        )

        found = [
            (
                tf.io.parse_single_example(one, {"id": tf.io.FixedLenFeature([], tf.int64)})["id"].numpy(),
                tf.io.parse_single_example(other, {"x": tf.io.FixedLenFeature([], tf.int64)})["x"].numpy(),
            )
            for one, other in both
        ]

        assert found == [(number, 1000 * number) for number in range(7)]

    def test_files_it_wrote_get_fields(self, tf: Any, tmp_path: Path) -> None:
        (tmp_path / "theirs").mkdir()
        for number in range(2):
            with tf.io.TFRecordWriter(str(tmp_path / "theirs" / f"{number}.tfrecord")) as writer:
                for row in range(3):
                    label = tf.train.Feature(int64_list=tf.train.Int64List(value=[10 * number + row]))
                    example = tf.train.Example(features=tf.train.Features(feature={"label": label}))
                    writer.write(example.SerializeToString())
        before = listing(tmp_path / "theirs")

        rk.add_fields(tmp_path / "theirs", {"x": rk.Computed("float32", lambda row: row["label"] / 2, ["label"])})
        rk.bake(tmp_path / "theirs", tmp_path / "baked")

        after = listing(tmp_path / "theirs")
        assert {name: data for name, data in after.items() if not name.startswith("_recordkit/")} == before
        examples = [tf.train.Example.FromString(payload) for payload in raw(tmp_path / "baked")]
        found = [
            (list(one.features.feature["label"].int64_list.value), list(one.features.feature["x"].float_list.value))
            for one in examples
        ]
        assert found == [([label], [label / 2]) for label in (0, 1, 2, 10, 11, 12)]
