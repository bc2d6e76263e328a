from __future__ import annotations

import gzip
import json
import zlib
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recordkit as rk
from recordkit import _core, records
from recordkit.storage.format import Fingerprint, Index
from recordkit.storage.format._facts import new_digest
from recordkit.storage.write import _commit
from tests.storage import reading, ways

IDS = {"id": "int64"}
SCHEMA = rk.Schema(IDS)


def framed(*ids: int) -> bytes:
    return bytes(SCHEMA.encode({"id": list(ids)}))


def append(path: Path, *ids: Any, **options: Any) -> None:
    with rk.append(path, **options) as writer:
        for number in ids:
            writer.write({"id": number})


def interrupt(*_: Any, **__: Any) -> None:
    raise KeyboardInterrupt


def check_facts(path: Path) -> None:
    """That manifest and index say of a lone file what a look at all of it says."""
    (shard,) = reading.manifest(path)["shards"]
    data = path.read_bytes()
    raw = reading.raw(path, shard["compression"])
    digest = new_digest()
    digest.update(records.chunk(raw).identity())
    assert shard["name"] == path.name
    assert (shard["bytes"], shard["raw_bytes"], shard["records"]) == (len(data), len(raw), len(records.scan(raw)))
    assert (shard["crc32c"], shard["digest"]) == (f"{_core.crc32c(data):08x}", digest.hexdigest())
    index = Index(path.parent / "_recordkit" / f"{path.name}.rki", Fingerprint.of(path))
    starts = [index.block(number)[0] for number in range(-(-len(index) // 1024))]
    assert np.concatenate([np.empty(0, np.uint64), *starts]).tolist() == records.scan(raw).tolist()
    for member in index.members():
        rest = gzip.decompress(data[member["file"] :])
        assert rest == raw[member["raw"] :]
        assert [*records.scan(raw).tolist(), len(raw)][member["record"]] == member["raw"]


class TestFolder:
    def test_each_time_a_set_of_shards_is_added(self, tmp_path: Path) -> None:
        rk.write(tmp_path / "train", {"id": range(3)}, IDS, records_per_shard=2)

        append(tmp_path / "train", 3, 4, 5, records_per_shard=2)
        append(tmp_path / "train", 6, compression="gzip")

        assert [path.name for path in reading.files(tmp_path / "train")] == [
            "train-00000-of-00002.tfrecord",
            "train-00001-of-00002.tfrecord",
            "train-append1-00000-of-00002.tfrecord",
            "train-append1-00001-of-00002.tfrecord",
            "train-append2-00000-of-00001.tfrecord.gz",
        ]
        assert reading.ids(tmp_path / "train") == [[0, 1], [2], [3, 4], [5], [6]]
        assert {shard["split"] for shard in reading.manifest(tmp_path / "train")["shards"]} == {"train"}

    def test_the_manifest_tells_of_all_operations(self, tmp_path: Path) -> None:
        rk.write(tmp_path / "a", [{"id": 0}], metadata={"from": "me"})
        append(tmp_path / "a", 1)

        found = reading.manifest(tmp_path / "a")

        assert [operation["operation"] for operation in found["lineage"]] == ["create", "append"]
        assert found["metadata"] == {"from": "me"}

    def test_old_shards_are_not_touched(self, tmp_path: Path) -> None:
        rk.write(tmp_path / "a", [{"id": 0}])
        before = reading.tree(tmp_path / "a")

        append(tmp_path / "a", 1)

        after = reading.tree(tmp_path / "a")
        assert {name for name in before if after[name] != before[name]} == {"_recordkit/manifest.json"}
        assert [path.name for path in tmp_path.iterdir()] == ["a"]

    def test_nothing_is_added_before_the_end(self, tmp_path: Path) -> None:
        rk.write(tmp_path / "a", [{"id": 0}])
        before = reading.tree(tmp_path / "a")

        with suppress(ways.StopError), rk.append(tmp_path / "a", records_per_shard=1) as writer:
            writer.write({"id": 1})
            writer.write({"id": 2})
            writer.flush()
            during = reading.tree(tmp_path / "a")
            ways.break_off(writer)

        assert during == before
        assert reading.tree(tmp_path / "a") == before

    def test_a_run_that_broke_off_goes_on(self, tmp_path: Path) -> None:
        for name in ("broken", "whole"):
            rk.write(tmp_path / name / "a", [{"id": 0}])
        with suppress(ways.StopError), rk.append(tmp_path / "broken/a", records_per_shard=2) as writer:
            ways.break_off(writer, 1, 2, 3)

        with rk.append(tmp_path / "broken/a", records_per_shard=2, resume=True) as writer:
            writer.write_batch({"id": [1, 2, 3, 4][writer.committed :]})
        append(tmp_path / "whole/a", 1, 2, 3, 4, records_per_shard=2)

        assert writer.committed == 2
        assert reading.tree(tmp_path / "broken") == reading.tree(tmp_path / "whole")

    def test_another_schema_is_refused_and_told_apart(self, tmp_path: Path) -> None:
        rk.write(tmp_path / "a", [{"id": 0}])

        with pytest.raises(
            rk.SchemaError, match=r"a: the existing records have another schema\n.*string.*\n  Leave schema= out"
        ):
            rk.append(tmp_path / "a", {"id": "string"})

        append(tmp_path / "a", 1, schema=IDS)

    def test_rows_must_fit_the_schema_that_is_there(self, tmp_path: Path) -> None:
        rk.write(tmp_path / "a", [{"id": 0}])

        with pytest.raises(rk.SchemaError, match="id: expected int64, found str"):
            append(tmp_path / "a", "one")

    def test_skipped_rows_are_told_with_all_others(self, tmp_path: Path) -> None:
        rk.write(tmp_path / "a", [{"id": "x"}, {"id": 1}], IDS, on_error="skip")
        append(tmp_path / "a", 2, "y", on_error="skip")

        assert [(bad.number, bad.row) for bad in rk.quarantined(tmp_path / "a")] == [(0, {"id": "x"}), (1, {"id": "y"})]

    def test_of_several_splits_one_is_to_be_said(self, tmp_path: Path) -> None:
        rk.write(tmp_path / "a", [{"id": 0}], name="train")
        append(tmp_path / "a", 1, split="val")

        with pytest.raises(ValueError, match="there are several splits: train, val; choose one"):
            rk.append(tmp_path / "a")
        append(tmp_path / "a", 2, split="train")

        assert [(shard["split"], shard["name"]) for shard in reading.manifest(tmp_path / "a")["shards"]] == [
            ("train", "train-00000-of-00001.tfrecord"),
            ("val", "val-append1-00000-of-00001.tfrecord"),
            ("train", "train-append1-00000-of-00001.tfrecord"),
        ]
        assert [path.name for path in tmp_path.iterdir()] == ["a"]

    @pytest.mark.parametrize("split", ["../b", "", "_x"])
    def test_a_split_that_cannot_name_shards_is_refused(self, tmp_path: Path, split: str) -> None:
        rk.write(tmp_path / "a", [{"id": 0}])

        with pytest.raises(ValueError, match="cannot name shards"):
            rk.append(tmp_path / "a", split=split)

        assert [path.name for path in tmp_path.iterdir()] == ["a"]

    def test_a_folder_without_a_manifest_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "a").mkdir()

        with pytest.raises(rk.StorageError, match=r"a: not a dataset of recordkit\n"):
            rk.append(tmp_path / "a")

        assert [path.name for path in tmp_path.iterdir()] == ["a"]

    def test_a_dataset_that_was_replaced_meanwhile_gets_nothing(self, tmp_path: Path) -> None:
        rk.write(tmp_path / "a", [{"id": 0}])

        other = rk.storage.Manifest(rk.Schema({"x": "string"}), ())

        writer = rk.append(tmp_path / "a")
        writer.write({"id": 1})
        (tmp_path / "a/_recordkit/manifest.json").write_bytes(other.to_json())
        with pytest.raises(rk.StorageError, match=r"the dataset has changed while rows were being appended"):
            writer.close()

        assert (tmp_path / "a/_recordkit/manifest.json").read_bytes() == other.to_json()


class TestLoneFile:
    @settings(max_examples=30)
    @given(st.lists(st.lists(st.integers(0, 9), max_size=20), min_size=1, max_size=4), st.sampled_from([None, "gzip"]))
    def test_appending_is_writing_on(self, parts: list[list[int]], compression: Any) -> None:
        with ways.folder() as folder:
            path = folder / "a.tfrecord"
            rk.write(path, {"id": parts[0]}, IDS, compression=compression)
            for ids in parts[1:]:
                append(path, *ids)

            assert reading.raws(path) == [framed(*chain.from_iterable(parts))]
            check_facts(path)

    def test_facts_hold_over_many_blocks_and_members(self, tmp_path: Path) -> None:
        path = tmp_path / "a.tfrecord.gz"
        rk.write(path, {"x": [bytes(n % 700) for n in range(4000)]}, compression="gzip")

        with rk.append(path) as writer:
            writer.write_batch({"x": [bytes(n % 900) for n in range(5000)]})

        check_facts(path)
        index = Index(tmp_path / "_recordkit" / f"{path.name}.rki", Fingerprint.of(path))
        assert len(index.members()) > 4
        assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []

    def test_a_plain_file_of_others_is_extended(self, tmp_path: Path) -> None:
        (tmp_path / "a.tfrecord").write_bytes(framed(1, 2))

        append(tmp_path / "a.tfrecord", 3)

        assert (tmp_path / "a.tfrecord").read_bytes() == framed(1, 2, 3)

    def test_an_empty_file_is_extended(self, tmp_path: Path) -> None:
        (tmp_path / "a.tfrecord").touch()

        append(tmp_path / "a.tfrecord", 3)

        assert (tmp_path / "a.tfrecord").read_bytes() == framed(3)

    def test_a_gzip_file_of_others_gets_another_member(self, tmp_path: Path) -> None:
        theirs = gzip.compress(framed(1, 2))
        (tmp_path / "a.tfrecord.gz").write_bytes(theirs)

        append(tmp_path / "a.tfrecord.gz", 3)

        data = (tmp_path / "a.tfrecord.gz").read_bytes()
        assert data.startswith(theirs)
        assert gzip.decompress(data) == framed(1, 2, 3)

    @pytest.mark.tensorflow
    @pytest.mark.parametrize("compression", ["", "GZIP"])
    def test_tensorflow_reads_what_was_appended_to_its_own_file(
        self, tmp_path: Path, tf: Any, compression: str
    ) -> None:
        path = str(tmp_path / "a.tfrecord")
        with tf.io.TFRecordWriter(path, compression) as writer:
            for payload in records.chunk(framed(1, 2)):
                writer.write(payload)

        append(Path(path), 3, 4)

        found = [payload.numpy() for payload in tf.data.TFRecordDataset(path, compression)]
        assert found == list(records.chunk(framed(1, 2, 3, 4)))

    def test_the_schema_is_told_from_records_of_others(self, tmp_path: Path) -> None:
        (tmp_path / "a.tfrecord").write_bytes(framed(1, 2))

        with rk.append(tmp_path / "a.tfrecord") as writer:
            assert writer.schema == SCHEMA
            with pytest.raises(rk.SchemaError):
                writer.write({"id": "three"})

    def test_payloads_of_the_users_own_follow_their_like(self, tmp_path: Path) -> None:
        (tmp_path / "a.tfrecord").write_bytes(records.pack(b"mine"))

        with rk.append(tmp_path / "a.tfrecord") as writer:
            writer.write_raw(b"as well")

        assert list(records.chunk((tmp_path / "a.tfrecord").read_bytes())) == [b"mine", b"as well"]

    def test_an_exception_leaves_the_file_as_it_was(self, tmp_path: Path) -> None:
        rk.write(tmp_path / "a.tfrecord", [{"id": 0}])
        before = reading.tree(tmp_path)

        with suppress(ways.StopError), rk.append(tmp_path / "a.tfrecord") as writer:
            ways.break_off(writer, 1)

        assert reading.tree(tmp_path) == before

    def test_skipped_rows_are_told_with_those_before(self, tmp_path: Path) -> None:
        rk.write(tmp_path / "a.tfrecord", [{"id": "x"}], IDS, on_error="skip")
        append(tmp_path / "a.tfrecord", "y", 1, on_error="skip")
        append(tmp_path / "a.tfrecord", 2)

        assert [bad.row for bad in rk.quarantined(tmp_path / "a.tfrecord")] == [{"id": "x"}, {"id": "y"}]
        assert reading.ids(tmp_path / "a.tfrecord") == [[1, 2]]

    def test_a_file_that_changed_meanwhile_gets_nothing(self, tmp_path: Path) -> None:
        rk.write(tmp_path / "a.tfrecord", [{"id": 0}])

        writer = rk.append(tmp_path / "a.tfrecord")
        writer.write({"id": 1})
        (tmp_path / "a.tfrecord").write_bytes(framed(7, 8))
        with pytest.raises(rk.StorageError, match=r"the file has changed while rows were being appended"):
            writer.close()

        assert (tmp_path / "a.tfrecord").read_bytes() == framed(7, 8)

    @pytest.mark.parametrize("cut", range(1, len(framed(3))))
    def test_a_torn_tail_is_cut_off_only_when_told_to(self, tmp_path: Path, cut: int) -> None:
        torn = framed(1, 2, 3)[:-cut]
        (tmp_path / "a.tfrecord").write_bytes(torn)

        with pytest.raises(rk.StorageError, match=r"record 2 at byte .*\n  Pass cut_torn_tail=True to cut it off"):
            rk.append(tmp_path / "a.tfrecord")
        assert (tmp_path / "a.tfrecord").read_bytes() == torn
        append(tmp_path / "a.tfrecord", 4, cut_torn_tail=True)

        assert (tmp_path / "a.tfrecord").read_bytes() == framed(1, 2, 4)

    def test_what_is_known_of_a_file_outlives_its_torn_tail(self, tmp_path: Path) -> None:
        rk.write(tmp_path / "a.tfrecord", {"id": [1, 2]}, IDS, metadata={"from": "me"})
        with (tmp_path / "a.tfrecord").open("ab") as file:
            file.write(framed(3)[:-1])

        append(tmp_path / "a.tfrecord", 4, cut_torn_tail=True)

        assert reading.ids(tmp_path / "a.tfrecord") == [[1, 2, 4]]
        assert reading.manifest(tmp_path / "a.tfrecord")["metadata"] == {"from": "me"}
        check_facts(tmp_path / "a.tfrecord")

    @pytest.mark.parametrize("cut", [1, 8, 20, 30])
    def test_a_torn_member_is_cut_off_only_when_told_to(self, tmp_path: Path, cut: int) -> None:
        torn = gzip.compress(framed(1, 2)) + gzip.compress(framed(3))[:-cut]
        (tmp_path / "a.tfrecord.gz").write_bytes(torn)

        with pytest.raises(rk.StorageError, match=r"the last gzip member is torn; \d+ bytes before it are intact\n"):
            rk.append(tmp_path / "a.tfrecord.gz")
        append(tmp_path / "a.tfrecord.gz", 4, cut_torn_tail=True)

        assert gzip.decompress((tmp_path / "a.tfrecord.gz").read_bytes()) == framed(1, 2, 4)

    def test_a_file_that_is_one_torn_member_is_not_cut_to_nothing(self, tmp_path: Path) -> None:
        torn = gzip.compress(framed(*range(1000)))[:-1]
        (tmp_path / "a.tfrecord.gz").write_bytes(torn)

        with pytest.raises(
            rk.StorageError, match=r"the only gzip member is torn\n  Cutting it off would leave nothing"
        ):
            rk.append(tmp_path / "a.tfrecord.gz", cut_torn_tail=True)

        assert (tmp_path / "a.tfrecord.gz").read_bytes() == torn

    @pytest.mark.parametrize("place", range(len(framed(1, 2)) - 16))
    def test_damage_before_the_end_is_refused_in_any_case(self, tmp_path: Path, place: int) -> None:
        damaged = bytearray(framed(1, 2, 3))
        damaged[place] ^= 4
        (tmp_path / "a.tfrecord").write_bytes(damaged)

        for cut in (False, True):
            with pytest.raises(rk.StorageError):
                rk.append(tmp_path / "a.tfrecord", cut_torn_tail=cut)

        assert (tmp_path / "a.tfrecord").read_bytes() == damaged

    @pytest.mark.parametrize("place", [0, 3, 20, 28])
    def test_a_damaged_member_before_others_is_refused_in_any_case(self, tmp_path: Path, place: int) -> None:
        first = gzip.compress(framed(1))
        damaged = bytearray(first + gzip.compress(framed(2)) + gzip.compress(framed(3)))
        damaged[len(first) + place] ^= 0xFF
        (tmp_path / "a.tfrecord.gz").write_bytes(damaged)

        for cut in (False, True):
            with pytest.raises(rk.StorageError, match=rf"the gzip member at byte {len(first)} is damaged\n"):
                rk.append(tmp_path / "a.tfrecord.gz", cut_torn_tail=cut)

        assert (tmp_path / "a.tfrecord.gz").read_bytes() == damaged

    def test_a_zlib_file_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "a.tfrecord").write_bytes(zlib.compress(framed(1)))

        with pytest.raises(
            rk.StorageError, match="a ZLIB file is one stream, and TensorFlow would not see a second one"
        ):
            rk.append(tmp_path / "a.tfrecord")

    def test_what_is_not_there_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(rk.StorageError, match=r"there is no such file\n  recordkit\.create writes a new"):
            rk.append(tmp_path / "a.tfrecord")

        assert list(tmp_path.iterdir()) == []

    def test_the_manifest_of_another_file_of_that_name_is_not_believed(self, tmp_path: Path) -> None:
        rk.write(tmp_path / "a.tfrecord", {"it": [1]}, {"it": "int64"})
        assert (tmp_path / "a.tfrecord").stat().st_size == len(framed(1))
        (tmp_path / "a.tfrecord").write_bytes(framed(1))

        append(tmp_path / "a.tfrecord", 2)

        assert (tmp_path / "a.tfrecord").read_bytes() == framed(1, 2)

    def test_two_writers_cannot_both_append(self, tmp_path: Path) -> None:
        rk.write(tmp_path / "a.tfrecord", [{"id": 0}])

        with rk.append(tmp_path / "a.tfrecord") as writer:
            with pytest.raises(rk.TargetBusyError):
                rk.append(tmp_path / "a.tfrecord")
            writer.write({"id": 1})

        assert reading.ids(tmp_path / "a.tfrecord") == [[0, 1]]

    def test_the_manifest_is_one_shard_still(self, tmp_path: Path) -> None:
        rk.write(tmp_path / "a.tfrecord", [{"id": 0}])
        append(tmp_path / "a.tfrecord", 1)

        found = json.loads((tmp_path / "_recordkit/a.tfrecord.manifest.json").read_bytes())

        assert [(shard["records"], shard["rows"]) for shard in found["shards"]] == [(2, 2)]
        assert [operation["operation"] for operation in found["lineage"]] == ["create", "append"]


def test_rows_to_skip_need_a_manifest_to_be_kept_by(tmp_path: Path) -> None:
    path = tmp_path / "theirs.tfrecord"
    path.write_bytes(bytes(rk.Schema({"id": "int64"}).encode({"id": [1]})))

    with pytest.raises(ValueError, match="skipped rows are stored with the manifest"):
        rk.append(path, on_error="skip")


def test_a_bad_row_of_a_batch_is_named_by_its_number_in_the_source(tmp_path: Path) -> None:
    with rk.create(tmp_path / "a", {"id": "int8"}) as writer:
        writer.write_batch({"id": [1, 2, 3]})

        with pytest.raises(rk.SchemaError, match=r"In row 4\.") as caught:
            writer.write_batch({"id": [4, 500]})

    assert caught.value.record == 4


def test_skipped_rows_that_were_dealt_come_back_in_order(tmp_path: Path) -> None:
    rows = [{"id": "bad" if number % 3 == 0 else number} for number in range(20)]

    rk.write(tmp_path / "a", iter(rows), {"id": "int64"}, shards=4, on_error="skip")

    assert [bad.number for bad in rk.quarantined(tmp_path / "a")] == list(range(0, 20, 3))


def test_a_file_that_is_not_sound_is_named_once(tmp_path: Path) -> None:
    path = tmp_path / "cut.tfrecord"
    path.write_bytes(bytes(rk.Schema({"id": "int64"}).encode({"id": [1]}))[:-3])

    with pytest.raises(rk.StorageError) as caught:
        rk.append(path)

    assert str(caught.value) == (
        f"{path}: record 0 at byte 0: the file ends inside the payload\n"
        "  Pass cut_torn_tail=True to cut it off and append after the records before it."
    )


@pytest.mark.parametrize("name", ["a.tfrecord", "a.tfrecord.gz"])
def test_more_rows_than_a_run_that_had_come_to_its_end(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / name
    rk.write(path, {"id": [0, 1]})
    with monkeypatch.context() as broken:
        broken.setattr(_commit, "publish", interrupt)
        with suppress(KeyboardInterrupt):
            append(path, 2, 3)

    with pytest.raises(rk.StorageError, match="the interrupted run was complete, and now there are more rows"):
        append(path, 4, resume=True)

    assert [row["id"] for row in rk.open(path)] == [0, 1]
    rk.discard(path)
    append(path, 2, 3, 4)
    assert [row["id"] for row in rk.open(path)] == [0, 1, 2, 3, 4]
