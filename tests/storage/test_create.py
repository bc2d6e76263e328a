from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import recordkit as rk
from recordkit import filesystems
from tests.storage import reading, ways

if TYPE_CHECKING:
    from pathlib import Path

IDS = {"id": "int64"}


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def fail() -> None:
    raise rk.StorageError("the device failed")


class TestTargets:
    def test_a_dataset_is_shards_and_a_folder_of_ours(self, tmp_path: Path) -> None:
        written = rk.write(tmp_path / "train", {"id": range(3)}, IDS, records_per_shard=2)

        assert names(tmp_path) == ["train"]
        shards = ["train-00000-of-00002.tfrecord", "train-00001-of-00002.tfrecord"]
        assert names(tmp_path / "train") == ["_recordkit", *shards]
        assert names(tmp_path / "train/_recordkit") == ["manifest.json", *(f"{shard}.rki" for shard in shards)]
        assert (written.path, written.records, written.shards) == (str(tmp_path / "train"), 3, 2)
        assert written.bytes == sum(path.stat().st_size for path in reading.files(tmp_path / "train"))

    def test_shards_are_called_as_asked_for(self, tmp_path: Path) -> None:
        rk.write(tmp_path / "data", [{"id": 1}], name="val", compression="gzip")

        assert names(tmp_path / "data") == ["_recordkit", "val-00000-of-00001.tfrecord.gz"]

    @pytest.mark.parametrize("name", ["", ".hidden", "_ours", "a/b", "a\0b", "a-00000-of-00001"])
    def test_a_name_that_cannot_name_shards_is_refused(self, tmp_path: Path, name: str) -> None:
        with pytest.raises(ValueError, match=r"cannot name shards: use letters, digits, dots and dashes; pass name="):
            rk.create(tmp_path / "data", IDS, name=name)

        assert names(tmp_path) == []

    @pytest.mark.parametrize("name", ["one.tfrecord", "one.tfrecord.gz", "one.tfrec"])
    def test_a_lone_file_keeps_what_is_ours_beside_it(self, tmp_path: Path, name: str) -> None:
        rk.write(tmp_path / name, [{"id": 1}, {"id": "x"}], IDS, on_error="skip")

        assert names(tmp_path) == ["_recordkit", name]
        assert names(tmp_path / "_recordkit") == [f"{name}.manifest.json", f"{name}.rki", "quarantine"]
        assert names(tmp_path / "_recordkit/quarantine") == [f"{name}.jsonl"]
        assert reading.ids(tmp_path / name) == [[1]]
        assert [bad.number for bad in rk.quarantined(tmp_path / name)] == [1]

    def test_two_lone_files_share_a_folder(self, tmp_path: Path) -> None:
        rk.write(tmp_path / "a.tfrecord", [{"id": 1}])
        rk.write(tmp_path / "b.tfrecord", [{"id": 2}])

        assert [reading.ids(tmp_path / name) for name in ("a.tfrecord", "b.tfrecord")] == [[[1]], [[2]]]

    def test_only_the_hidden_sibling_is_there_while_writing(self, tmp_path: Path) -> None:
        with rk.create(tmp_path / "a", IDS, records_per_shard=1) as writer:
            writer.write({"id": 1})
            writer.write({"id": 2})
            writer.flush()
            during = names(tmp_path)

        assert during == [".a.recordkit"]
        assert names(tmp_path) == ["a"]

    @pytest.mark.parametrize("target", ["a", "a.tfrecord"])
    def test_after_an_exception_nothing_is_under_the_name(self, tmp_path: Path, target: str) -> None:
        with pytest.raises(ways.StopError), rk.create(tmp_path / target, IDS) as writer:
            ways.break_off(writer, 1)

        assert names(tmp_path) == []

    def test_folders_above_are_made(self, tmp_path: Path) -> None:
        rk.write(tmp_path / "x/y/z", [{"id": 1}])

        assert reading.ids(tmp_path / "x/y/z") == [[1]]

    def test_a_relative_path_is_meant_from_where_it_was_said(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "here").mkdir()
        (tmp_path / "there").mkdir()
        monkeypatch.chdir(tmp_path / "here")

        with rk.create("data", IDS) as writer:
            monkeypatch.chdir(tmp_path / "there")
            writer.write({"id": 1})

        assert reading.ids(tmp_path / "here/data") == [[1]]
        assert names(tmp_path / "there") == []

    def test_an_empty_dataset_is_one_empty_shard(self, tmp_path: Path) -> None:
        written = rk.write(tmp_path / "a", [], IDS)

        assert (written.records, written.shards, written.bytes) == (0, 1, 0)
        assert reading.ids(tmp_path / "a") == [[]]

    @pytest.mark.parametrize("compression", ["gzip", "zlib"])
    def test_an_empty_compressed_file_is_a_sound_one(self, tmp_path: Path, compression: Any) -> None:
        rk.write(tmp_path / "a", [], IDS, compression=compression)

        assert reading.raws(tmp_path / "a") == [b""]
        assert reading.files(tmp_path / "a")[0].stat().st_size > 0

    def test_metadata_is_kept(self, tmp_path: Path) -> None:
        rk.write(tmp_path / "a", [{"id": 1}], metadata={"source": "a survey", "year": 2024, "tags": ["ü", None]})

        assert reading.manifest(tmp_path / "a")["metadata"] == {"source": "a survey", "year": 2024, "tags": ["ü", None]}


class TestExisting:
    @pytest.mark.parametrize("target", ["a", "a.tfrecord"])
    def test_is_not_overwritten_unasked(self, tmp_path: Path, target: str) -> None:
        rk.write(tmp_path / target, [{"id": 1}])
        before = reading.tree(tmp_path)

        with pytest.raises(rk.TargetExistsError) as caught:
            rk.create(tmp_path / target, IDS)

        assert str(caught.value) == (f"{tmp_path / target}: already exists\n  Pass overwrite=True to replace it.")
        assert reading.tree(tmp_path) == before

    @pytest.mark.parametrize("target", ["a", "a.tfrecord"])
    def test_is_replaced_when_told_to_and_not_before_the_end(self, tmp_path: Path, target: str) -> None:
        rk.write(tmp_path / target, [{"id": 1}, {"id": 2}], compression="gzip")

        with rk.create(tmp_path / target, IDS, overwrite=True) as writer:
            writer.write({"id": 3})
            writer.flush()
            during = reading.ids(tmp_path / target)

        assert during == [[1, 2]]
        assert reading.ids(tmp_path / target) == [[3]]
        assert [name for name in names(tmp_path) if name.startswith(".")] == []

    def test_is_replaced_where_folders_cannot_be_exchanged(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(filesystems, "exchange", lambda one, other: False)
        rk.write(tmp_path / "a", [{"id": 1}])

        rk.write(tmp_path / "a", [{"id": 2}], overwrite=True)

        assert reading.ids(tmp_path / "a") == [[2]]
        assert names(tmp_path) == ["a"]

    def test_is_replaced_later_if_the_last_rename_fails(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        rename = filesystems.rename
        monkeypatch.setattr(filesystems, "exchange", lambda one, other: False)
        monkeypatch.setattr(
            filesystems, "rename", lambda one, other: fail() if other == tmp_path / "a" else rename(one, other)
        )
        rk.write(tmp_path / "a", [{"id": 1}])

        with pytest.raises(rk.StorageError, match="the device failed"):
            rk.write(tmp_path / "a", [{"id": 2}], overwrite=True)
        monkeypatch.undo()
        rk.storage.recover(tmp_path / "a")

        assert reading.ids(tmp_path / "a") == [[2]]
        assert names(tmp_path) == ["a"]

    @pytest.mark.parametrize("target", ["a", "a.tfrecord"])
    def test_stays_if_overwriting_fails(self, tmp_path: Path, target: str) -> None:
        rk.write(tmp_path / target, [{"id": 1}])
        before = reading.tree(tmp_path)

        with pytest.raises(ways.StopError), rk.create(tmp_path / target, IDS, overwrite=True) as writer:
            ways.break_off(writer, 2)

        assert reading.tree(tmp_path) == before

    def test_an_empty_folder_is_no_hindrance(self, tmp_path: Path) -> None:
        (tmp_path / "a").mkdir()

        rk.write(tmp_path / "a", [{"id": 1}])

        assert reading.ids(tmp_path / "a") == [[1]]

    @pytest.mark.parametrize("overwrite", [False, True])
    def test_a_folder_of_others_is_never_replaced(self, tmp_path: Path, overwrite: bool) -> None:
        (tmp_path / "a").mkdir()
        (tmp_path / "a/thesis.txt").write_text("the only copy")

        with pytest.raises(rk.TargetExistsError):
            rk.create(tmp_path / "a", IDS, overwrite=overwrite)

        assert reading.tree(tmp_path) == {"a/thesis.txt": b"the only copy"}

    def test_a_file_of_others_is_replaced_when_told_to(self, tmp_path: Path) -> None:
        (tmp_path / "a.tfrecord").write_bytes(b"theirs")

        rk.write(tmp_path / "a.tfrecord", [{"id": 1}], overwrite=True)

        assert reading.ids(tmp_path / "a.tfrecord") == [[1]]

    def test_a_file_where_a_folder_should_be_is_not_replaced(self, tmp_path: Path) -> None:
        (tmp_path / "a").write_text("theirs")

        with pytest.raises(rk.TargetExistsError):
            rk.create(f"{tmp_path / 'a'}/", IDS, overwrite=True)

        assert (tmp_path / "a").read_text() == "theirs"

    def test_what_came_while_writing_is_not_lost(self, tmp_path: Path) -> None:
        writer = rk.create(tmp_path / "a", IDS)
        writer.write({"id": 1})
        (tmp_path / "a").mkdir()
        (tmp_path / "a/theirs").write_text("theirs")
        with pytest.raises(rk.TargetExistsError, match="It was created while this was being written"):
            writer.close()

        assert (tmp_path / "a/theirs").read_text() == "theirs"

    def test_what_could_not_be_published_can_be_resumed(self, tmp_path: Path) -> None:
        writer = rk.create(tmp_path / "a", IDS)
        writer.write({"id": 1})
        (tmp_path / "a").write_text("theirs")
        with pytest.raises(rk.TargetExistsError):
            writer.close()
        (tmp_path / "a").unlink()

        with rk.create(tmp_path / "a", IDS, resume=True) as writer:
            pass

        assert writer.committed == 1
        assert reading.ids(tmp_path / "a") == [[1]]

    def test_quarantine_of_an_overwritten_file_is_gone(self, tmp_path: Path) -> None:
        rk.write(tmp_path / "a.tfrecord", [{"id": "old"}], IDS, on_error="skip")
        rk.write(tmp_path / "a.tfrecord", [{"id": 1}], IDS, overwrite=True)
        with rk.append(tmp_path / "a.tfrecord", on_error="skip") as writer:
            writer.write({"id": "new"})

        assert [bad.row for bad in rk.quarantined(tmp_path / "a.tfrecord")] == [{"id": "new"}]


class TestTwoWriters:
    def test_the_second_is_told_of_the_first(self, tmp_path: Path) -> None:
        with rk.create(tmp_path / "a", IDS) as writer:
            with pytest.raises(rk.TargetBusyError) as caught:
                rk.create(tmp_path / "a", IDS, overwrite=True)
            writer.write({"id": 1})

        assert f"process {os.getpid()} on " in str(caught.value)
        assert reading.ids(tmp_path / "a") == [[1]]

    def test_of_many_threads_one_gets_the_target(self, tmp_path: Path) -> None:
        results: list[Any] = []
        ready = threading.Barrier(8)

        def begin() -> None:
            ready.wait()
            try:
                results.append(rk.create(tmp_path / "a", IDS))
            except rk.TargetBusyError as error:
                results.append(error)

        threads = [threading.Thread(target=begin) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        writers = [result for result in results if isinstance(result, rk.storage.Writer)]
        assert len(results) == 8
        assert len(writers) == 1
        writers[0].write({"id": 1})
        writers[0].close()
        assert reading.ids(tmp_path / "a") == [[1]]

    def test_another_process_holds_it_until_it_ends(self, tmp_path: Path) -> None:
        program = f"""
            import recordkit as rk
            writer = rk.create({str(tmp_path / "a")!r}, {{"id": "int64"}})
            print("ready", flush=True)
            input()
            writer.abort()
        """
        child = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        with child:
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"
            with pytest.raises(rk.TargetBusyError) as caught:
                rk.create(tmp_path / "a", IDS)
            child.kill()
            child.wait()

        assert f"process {child.pid} on " in str(caught.value)
        rk.write(tmp_path / "a", [{"id": 1}])
        assert reading.ids(tmp_path / "a") == [[1]]


class TestWrite:
    def test_columns(self, tmp_path: Path) -> None:
        rk.write(tmp_path / "a", {"id": np.arange(3), "deep": {"note": ["a", "b", "c"]}})

        (batch,) = reading.batches(tmp_path / "a")
        assert batch["id"].tolist() == [0, 1, 2]
        assert list(batch["deep/note"]) == ["a", "b", "c"]

    def test_a_batch_with_missing_values(self, tmp_path: Path) -> None:
        schema = rk.Schema({"id": "int64", "note": "string?"})
        batch = schema.decode(schema.encode_rows([{"id": 1}, {"id": 2, "note": "x"}]))

        rk.write(tmp_path / "a", batch, schema)

        assert list(reading.batches(tmp_path / "a")[0].rows()) == list(batch.rows())

    def test_one_array_is_a_record_for_each_of_its_elements(self, tmp_path: Path) -> None:
        array = np.arange(12, dtype=np.float64).reshape(3, 4)

        written = rk.write(tmp_path / "a.tfrecord", array)

        assert written.records == 3
        assert reading.manifest(tmp_path / "a.tfrecord")["schema"] == rk.Schema({"array": "float64[4]"}).to_dict()
        assert reading.batches(tmp_path / "a.tfrecord")[0]["array"].tolist() == array.tolist()

    def test_a_list_of_arrays_is_a_record_for_each(self, tmp_path: Path) -> None:
        rk.write(tmp_path / "a", [np.zeros((2, 3)), np.ones((4, 3))])

        (batch,) = reading.batches(tmp_path / "a")
        assert [row.shape for row in batch["array"]] == [(2, 3), (4, 3)]

    def test_rows_from_a_generator(self, tmp_path: Path) -> None:
        rk.write(tmp_path / "a", ({"id": number} for number in range(5)), records_per_shard=2)

        assert reading.ids(tmp_path / "a") == [[0, 1], [2, 3], [4]]

    def test_rows_are_split_evenly_where_their_number_is_known(self, tmp_path: Path) -> None:
        rk.write(tmp_path / "a", [{"id": number} for number in range(5)], shards=2)

        assert reading.ids(tmp_path / "a") == [[0, 1, 2], [3, 4]]

    @pytest.mark.parametrize("data", [7, None, "text", b"bytes", np.float64(1)])
    def test_what_is_neither_is_refused(self, tmp_path: Path, data: Any) -> None:
        with pytest.raises(rk.SchemaError, match="expected rows, columns, an array or a list of arrays, found"):
            rk.write(tmp_path / "a", data)

        assert names(tmp_path) == []

    def test_an_array_without_dimensions_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(rk.SchemaError, match="found an array without any"):
            rk.write(tmp_path / "a", np.array(7))

    def test_columns_of_different_lengths_are_refused(self, tmp_path: Path) -> None:
        with pytest.raises(rk.SchemaError):
            rk.write(tmp_path / "a", {"x": [1, 2], "y": [1]})
        with pytest.raises(rk.SchemaError):
            rk.write(tmp_path / "a", {"x": [1, 2], "y": [1]}, on_error="skip")

        assert names(tmp_path) == []

    def test_pictures_are_made_of_arrays(self, tmp_path: Path) -> None:
        picture = np.arange(48, dtype=np.uint8).reshape(4, 4, 3)

        rk.write(tmp_path / "a", [{"x": picture}], {"x": "png"})

        assert np.array_equal(rk.images.decode(reading.batches(tmp_path / "a")[0]["x"][0]), picture)


@pytest.mark.parametrize("sync", [False, True])
def test_space_that_was_set_aside_is_given_back(tmp_path: Path, sync: bool) -> None:
    payloads = np.zeros((20, 1 << 20), np.uint8)

    rk.write(tmp_path / "one.tfrecord", {"x": payloads}, {"x": rk.Field("uint8[1048576]")}, sync=sync)

    stat = (tmp_path / "one.tfrecord").stat()
    assert stat.st_size > 20 << 20
    assert stat.st_blocks * 512 < stat.st_size + (8 << 20)
