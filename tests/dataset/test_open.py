from __future__ import annotations

import gzip
import io
import json
import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recordkit as rk
from recordkit import records
from tests import wire
from tests.dataset.files import SCHEMA, WAYS, payloads, rows, save, save_many, stored

EVENT = b"\x09\x00\x00\x80\x38\x99\xd6\xd7\x41\x1a\x0dbrain.Event:2"


class Pipe(io.RawIOBase):
    """What can only be read from front to back, and gives little at a time."""

    def __init__(self, data: bytes, most: int = 1000) -> None:
        self._data, self._most = io.BytesIO(data), most

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        return self._data.read(min(size, self._most) if size >= 0 else self._most)


class TestWhere:
    def test_a_file_a_glob_a_list_and_a_folder_are_the_same_records(self, tmp_path: Path) -> None:
        paths = save_many(tmp_path / "train", [3, 2])

        for where in (tmp_path / "train", str(tmp_path / "train"), str(tmp_path / "train" / "*.tfrecord"), paths):
            assert list(rk.open(where)) == rows(0, 5)
        assert list(rk.open(paths[1])) == rows(3, 5)

    @pytest.mark.parametrize("way", WAYS)
    def test_compression_is_told_from_the_bytes_whatever_the_name(self, tmp_path: Path, way: str) -> None:
        path = save(tmp_path / "a.tfrecord.gz", payloads(0, 9), way)

        assert list(rk.open(path)) == rows(0, 9)

    def test_a_set_by_its_number(self, tmp_path: Path) -> None:
        for number in range(3):
            save(tmp_path / f"train-{number:05d}-of-00003.tfrecord", payloads(number, number + 1))

        assert list(rk.open(tmp_path / "train@3")) == rows(0, 3)

    def test_a_set_that_is_not_whole_is_an_error(self, tmp_path: Path) -> None:
        save(tmp_path / "train-00000-of-00002.tfrecord", payloads(0, 1))

        with pytest.raises(rk.StorageError, match="00001 is missing; found 1 of 2 shards"):
            rk.open(tmp_path)

    def test_what_a_folder_has_beside_records_is_left_out_and_said(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        save_many(tmp_path, [2])
        for name in ("_SUCCESS", ".DS_Store", "data-000.tfrecord.crc", "notes.txt", "a.idx", "b.idx"):
            (tmp_path / name).write_bytes(b"x")

        with caplog.at_level(logging.INFO, "recordkit"):
            ds = rk.open(tmp_path)

        assert [path.name for path, _ in ds.left_out] == sorted(
            ["_SUCCESS", ".DS_Store", "data-000.tfrecord.crc", "notes.txt", "a.idx", "b.idx"]
        )
        assert len(ds) == 2
        assert "_SUCCESS (a marker" in caplog.text
        assert caplog.text.rstrip().endswith("and 1 more")

    def test_nothing_left_out_is_nothing_said(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        with caplog.at_level(logging.INFO, "recordkit"):
            ds = rk.open(save_many(tmp_path, [2]))

        assert (ds.left_out, caplog.text) == ((), "")

    @pytest.mark.parametrize("where", [3, None, 2.5, {"a"}])
    def test_what_is_no_path_is_a_type_error(self, where: Any) -> None:
        with pytest.raises(TypeError, match="expected a path, a list of paths or an open file, found "):
            rk.open(where)

    def test_nothing_there_is_said(self, tmp_path: Path) -> None:
        with pytest.raises(rk.StorageError, match="no such file or folder"):
            rk.open(tmp_path / "nothing.tfrecord")

    @pytest.mark.parametrize(
        "data", [b"<!DOCTYPE html>\n<html></html>\n" * 9, b"version https://git-lfs.github.com/spec/v1\n"]
    )
    def test_what_is_no_record_file_is_refused_at_once(self, tmp_path: Path, data: bytes) -> None:
        path = tmp_path / "a.tfrecord"
        path.write_bytes(data)

        with pytest.raises(rk.WrongFileError, match=r"a\.tfrecord: "):
            rk.open(path)

    def test_an_empty_file_has_no_records(self, tmp_path: Path) -> None:
        ds = rk.open(save(tmp_path / "a.tfrecord", []))

        assert (len(ds), list(ds), list(ds.batch(3)), len(ds.head())) == (0, [], [], 0)
        assert ds.schema == rk.Schema({})


class TestTfds:
    def folder(self, path: Path) -> Path:
        """Named and described as TFDS does."""
        folder = path / "toy" / "1.0.0"
        for split, count in (("train", 2), ("test", 1)):
            for number in range(count):
                save(folder / f"toy-{split}.tfrecord-{number:05d}-of-{count:05d}", payloads(number, number + 1))
        info = {"name": "toy", "version": "1.0.0", "splits": [{"name": "train", "shardLengths": ["1", "1"]}]}
        (folder / "dataset_info.json").write_text(json.dumps(info))
        (folder / "features.json").write_text("{}")
        return folder

    def test_splits_are_those_of_the_names(self, tmp_path: Path) -> None:
        ds = rk.open(self.folder(tmp_path))

        assert {name: len(files) for name, files in ds.splits.items()} == {"test": 1, "train": 2}
        assert len(ds) == 3
        assert {path.name for path, _ in ds.left_out} == {"dataset_info.json", "features.json"}

    def test_one_split_alone(self, tmp_path: Path) -> None:
        ds = rk.open(self.folder(tmp_path), split="train")

        assert (list(ds.splits), list(ds)) == (["train"], rows(0, 2))
        with pytest.raises(rk.StorageError, match=r"there is no split 'trian'\n.*train"):
            rk.open(self.folder(tmp_path), split="trian")

    def test_the_splits_cannot_be_changed(self, tmp_path: Path) -> None:
        with pytest.raises(TypeError):
            rk.open(self.folder(tmp_path)).splits["new"] = ()  # type: ignore[index]


class TestManifest:
    def test_its_schema_and_counts_are_known_without_reading(self, tmp_path: Path) -> None:
        schema = rk.Schema({"x": "uint8", "tag": "string?"})
        with rk.create(tmp_path / "d", schema, records_per_shard=2) as writer:
            for number in range(5):
                writer.write({"x": number})

        ds = rk.open(tmp_path / "d")

        assert (ds.schema, len(ds), len(ds.shards)) == (schema, 5, 3)
        assert ds[4] == {"x": 4, "tag": None}
        assert all(file.shard is not None for file in ds.shards)

    def test_of_a_file_that_has_changed_nothing_is_believed(self, tmp_path: Path) -> None:
        rk.write(tmp_path / "d", [{"id": 1}])
        (path,) = (tmp_path / "d").glob("*.tfrecord*")
        path.write_bytes(path.read_bytes() * 3)

        ds = rk.open(tmp_path / "d")

        assert ds.shards[0].shard is None
        assert len(ds) == 3
        assert [ds[i]["id"] for i in range(3)] == [1, 1, 1]


class TestDeclared:
    def refused(self, path: Path, fields: dict[str, Any]) -> rk.SchemaError:
        with pytest.raises(rk.SchemaError) as caught:
            rk.open(path, schema=fields)
        return caught.value

    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        schema = rk.Schema({"id": "int64", "name": "string", "box": "float32[4]"})
        some = [{"id": number + 300, "name": "n", "box": [1, 2, 3, 4]} for number in range(5)]
        return save(tmp_path / "a.tfrecord", schema.encode_rows(some))

    def test_what_fits_is_used(self, path: Path) -> None:
        ds = rk.open(path, schema=rk.Schema({"name": "bytes", "id": "int32"}))

        assert ds[0] == {"name": b"n", "id": 300}
        assert ds.schema == rk.Schema({"name": "bytes", "id": "int32"})

    def test_a_dict_that_leaves_out_fields_is_refused_with_the_line_to_write(self, path: Path) -> None:
        error = self.refused(path, {"id": "int32"})

        assert str(error) == (
            "schema: leaves out box, name, which the records have\n"
            "  To keep the rest as it is: schema={'id': 'int32', ...: ...}\n"
            "  To read only these, add .select('id')."
        )
        assert rk.open(path, schema={"id": "int32", ...: ...}).schema == rk.Schema(
            {"box": "float32[4]", "id": "int32", "name": "string"}
        )

    def test_the_rest_of_a_dataset_is_what_it_was_written_with(self, tmp_path: Path) -> None:
        schema = {"id": "int64", "x": "float64[?,?]", "note": "string?"}
        rk.write(tmp_path / "d", [{"id": 7, "x": np.ones((2, 3)), "note": None}], schema=schema)

        ds = rk.open(tmp_path / "d", schema={"id": "uint8", ...: ...})

        assert ds.schema == rk.Schema({**schema, "id": "uint8"})
        assert (ds[0]["id"].dtype, ds[0]["x"].shape, ds[0]["note"]) == (np.uint8, (2, 3), None)
        with pytest.raises(rk.SchemaError, match="leaves out note, x, which"):
            rk.open(tmp_path / "d", schema={"id": "uint8"})

    def test_the_rest_may_be_sequences_and_the_shape_of_what_is_declared(self, tmp_path: Path) -> None:
        schema = rk.Schema({"id": "int64", "x": "float64[?,?]"}, sequences={"words": "int64"})
        path = save(tmp_path / "a.tfrecord", schema.encode_rows([{"id": 1, "x": np.ones((1, 2)), "words": [4, 5]}]))

        ds = rk.open(path, schema={"words": "uint8", "x": "float64[?,2]", ...: ...})

        assert ds.schema == rk.Schema({"id": "int64", "x": "float64[?,2]"}, sequences={"words": "uint8"})
        assert ds[:]["words"].to_list() == [[4, 5]]

    def test_a_wrong_name_is_named_with_the_one_that_may_have_been_meant(self, path: Path) -> None:
        error = self.refused(path, {"id": "int64", "nmae": "string"})

        assert (error.field, error.record, error.path) == ("nmae", 0, str(path))
        assert str(error) == (
            f"nmae: declared as string, and not in the first 5 records of {path}\n"
            "  Did you mean 'name'? Add ? to its type if it may be missing."
        )

    def test_a_name_like_none_lists_those_there_are(self, path: Path) -> None:
        assert "The records have box, id, name." in str(self.refused(path, {"weight": "int64"}))

    def test_one_that_may_be_missing_may_be_missing(self, path: Path) -> None:
        ds = rk.open(path, schema={"weight": "int64?", ...: ...})

        assert ds.select("id", "weight")[1] == {"id": 301, "weight": None}

    @pytest.mark.parametrize(
        ("field", "declared"),
        [("name", "int64"), ("id", "float32"), ("id", "uint8"), ("box", "float32[3]"), ("box", "float32[2, 3]")],
    )
    def test_a_wrong_kind_dtype_or_shape_names_shard_record_and_field(
        self, path: Path, field: str, declared: str
    ) -> None:
        error = self.refused(path, {field: declared})

        assert (error.field, error.record, error.path) == (field, 0, str(path))
        assert str(path) in str(error)
        assert field in str(error)

    def test_records_that_are_no_examples_are_an_error(self, tmp_path: Path) -> None:
        path = save(tmp_path / "a.tfrecord", [EVENT])

        error = self.refused(path, {"id": "int64"})

        assert (error.path, error.record) == (str(path), 0)
        assert "The records have no fields." in str(error)

    def test_nothing_can_be_said_against_a_schema_where_there_are_no_records(self, tmp_path: Path) -> None:
        ds = rk.open(save(tmp_path / "a.tfrecord", []), schema={"id": "int64"})

        assert ds.head()["id"].tolist() == []

    def test_sequences_can_be_declared(self, tmp_path: Path) -> None:
        schema = rk.Schema({"id": "int64"}, sequences={"words": "int64"})
        path = save(tmp_path / "a.tfrecord", schema.encode_rows([{"id": 1, "words": [4, 5]}, {"id": 2, "words": []}]))

        ds = rk.open(path, schema=schema)

        assert ds[:]["words"].to_list() == [[4, 5], []]
        with pytest.raises(rk.SchemaError, match="Did you mean 'words'"):
            rk.open(path, schema=rk.Schema({"id": "int64"}, sequences={"word": "int64"}))


class TestInferred:
    def test_a_schema_is_told_from_files_all_over_the_set(self, tmp_path: Path) -> None:
        counts = [0] * 20
        counts[13] = 4
        ds = rk.open(save_many(tmp_path, counts))

        assert ds.schema is not None
        assert ds.schema.names == ("id", "name")
        assert list(ds) == rows(0, 4)

    def test_a_field_whose_kind_differs_between_files_is_left_out(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        one = save(tmp_path / "a", [wire.example(wire.entry("x", wire.ints(1)))])
        two = save(tmp_path / "b", [wire.example(wire.entry("x", wire.floats(1.0)))])

        assert rk.open([one, two]).schema is None  # there is no other
        assert "x: left out of the fields" in caplog.messages[0]


class TestPayloads:
    def test_raw_gives_bytes_whatever_they_are(self, tmp_path: Path) -> None:
        path = save(tmp_path / "a", [*payloads(0, 2), b"", b"\xff\xff"])
        ds = rk.open(path, raw=True)

        assert ds.schema is None
        assert list(ds) == [*payloads(0, 2), b"", b"\xff\xff"] == [ds[i] for i in range(4)]
        assert list(ds.batch(3)) == [[*payloads(0, 2), b""], [b"\xff\xff"]]
        assert ds.head(1) == payloads(0, 1)
        assert ds.take(0).head() == []

    def test_those_of_tensorboard_are_given_as_they_are(self, tmp_path: Path) -> None:
        path = save(tmp_path / "events.out.tfevents.1700000000.host", [EVENT, EVENT])
        ds = rk.open(tmp_path)

        assert (ds.schema, list(ds), ds[1]) == (None, [EVENT, EVENT], EVENT)
        assert [Path(file.name) for file in ds.shards] == [path]
        with pytest.raises(rk.SchemaError, match="these records have no fields: they are read as payloads"):
            ds.select("step")
        with pytest.raises(rk.SchemaError, match="no fields"):
            ds.__arrow_c_stream__()

    def test_parse_gives_what_it_makes(self, tmp_path: Path) -> None:
        ds = rk.open(save(tmp_path / "a", [b"1", b"22", b"333"]), parse=int)

        assert (list(ds), ds[-1], ds[[2, 0]], list(ds.batch(2))) == ([1, 22, 333], 333, [333, 1], [[1, 22], [333]])
        assert list(ds.records()) == [b"1", b"22", b"333"]
        with pytest.raises(rk.SchemaError, match="no fields"):
            ds.drop("a")


class TestOpenFiles:
    @pytest.mark.parametrize("way", WAYS)
    def test_a_seekable_one_is_read_any_number_of_times(self, way: str) -> None:
        ds = rk.open(io.BytesIO(stored([records.pack(p) for p in payloads(0, 50)], way)))

        assert list(ds) == list(ds) == rows(0, 50)
        assert list(ds.skip(45).batch(3))[1]["id"].tolist() == [48, 49]
        assert len(ds) == 50

    @pytest.mark.parametrize("way", WAYS)
    @pytest.mark.parametrize("count", [0, 5, 30_000])
    def test_a_pipe_is_read_once(self, way: str, count: int) -> None:
        data = stored([records.pack(payload) for payload in payloads(0, count)], way, members_of=500)
        ds = rk.open(Pipe(data, 1 << 16))  # type: ignore[arg-type]

        assert [row["id"] for row in ds] == list(range(count))

    def test_a_pipe_has_no_length(self) -> None:
        ds = rk.open(Pipe(records.pack(b"one")), raw=True)  # type: ignore[arg-type]

        with pytest.raises(TypeError, match="a pipe is read once, and has no length before its end"):
            len(ds)

    def test_a_pipe_is_no_place_to_read_twice(self) -> None:
        big = b"".join(records.pack(b"x" * (1 << 20)) for _ in range(12))
        ds = rk.open(Pipe(big, 1 << 20), raw=True)  # type: ignore[arg-type]
        assert sum(1 for _ in ds) == 12

        with pytest.raises(rk.StorageError, match="a pipe is read once, from front to back\n  Save it to a file"):
            list(ds.records())

    @pytest.mark.parametrize("zipped", [False, True])
    def test_the_standard_input(self, zipped: bool) -> None:
        data = b"".join(records.pack(payload) for payload in payloads(0, 2000))
        program = "import recordkit as rk; print(sum(row['id'] for row in rk.open('-')))"

        done = subprocess.run(
            [sys.executable, "-c", program],
            input=gzip.compress(data) if zipped else data,
            capture_output=True,
            check=False,
            timeout=100,
        )

        assert (done.stdout, done.stderr) == (b"1999000\n", b"")


class TestOptions:
    def test_an_on_error_that_cannot_be_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(ValueError, match="on_error is 'raise', 'skip' or a function, found 'ignore'"):
            rk.open(save_many(tmp_path, [1]), on_error="ignore")  # type: ignore[arg-type]

    def test_a_schema_and_raw_contradict_each_other(self, tmp_path: Path) -> None:
        path = save(tmp_path / "a", payloads(0, 1))

        assert SCHEMA.names == ("id", "name")
        for options in ({"raw": True}, {"parse": len}):
            with pytest.raises(ValueError, match=r"schema= decodes Examples, but (raw|parse)= reads payloads"):
                rk.open(path, schema=SCHEMA, **options)
