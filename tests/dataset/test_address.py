"""Datasets at addresses: written manifest last, and read as any other dataset."""

from __future__ import annotations

import itertools
import pickle
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import recordkit as rk
from recordkit.errors import NotFoundError, StorageError
from recordkit.filesystems import MemoryFileSystem, register
from recordkit.storage.format import Manifest, Shard
from recordkit.storage.publish import DatasetChange, ManifestLast, PartNumber

if TYPE_CHECKING:
    from pathlib import Path

    from recordkit.storage.publish._publisher import Kind

SCHEMA = rk.Schema({"id": "int64", "name": "string"})
NAMES = ["ada", "grace", "emmy", "mary", "rosalind"]
numbers = itertools.count()


@pytest.fixture
def files() -> MemoryFileSystem:
    made = MemoryFileSystem()
    register("test-memory", lambda: made)
    return made


def publish(files: MemoryFileSystem, folder: Path, kind: Kind = "create", split: str = "train", **options: Any) -> None:
    """Write a dataset on this machine, and publish its shards in memory."""
    local = folder / f"{next(numbers)}" / "train"
    rk.write(local, [{"id": i, "name": name} for i, name in enumerate(NAMES)], SCHEMA, records_per_shard=2, **options)
    written = Manifest.load(local / "_recordkit" / "manifest.json")
    assert written is not None
    publisher = ManifestLast(files)
    old = files.files.get("bucket/train/_recordkit/manifest.json") if kind == "append" else None
    staged = publisher.claim("bucket/train", kind, PartNumber(), run={})
    for shard in written.shards:
        staged.add(Shard(**{**shard.to_dict(), "split": split}), (local / shard.name).read_bytes())
    staged.finish()
    before = Manifest.parse(old, "old") if old is not None else Manifest(SCHEMA, ())
    after = before.with_shards(staged.shards, written.lineage[-1])
    publisher.publish(DatasetChange("bucket/train", publisher.staged("bucket/train"), after))


@pytest.mark.parametrize("compression", [None, "gzip"])
class TestOpen:
    def test_everything_is_read(self, files: MemoryFileSystem, tmp_path: Path, compression: str | None) -> None:
        publish(files, tmp_path, compression=compression)

        dataset = rk.open("test-memory://bucket/train")

        assert dataset.schema == SCHEMA
        assert len(dataset) == 5
        assert [row["name"] for row in dataset] == NAMES
        assert dataset[3]["id"] == 3
        assert dataset[[4, 0]]["id"].tolist() == [4, 0]
        assert np.concatenate([batch["id"] for batch in dataset.batch(2)]).tolist() == [0, 1, 2, 3, 4]
        assert sorted(row["id"] for row in dataset.shuffle(seed=1)) == [0, 1, 2, 3, 4]

    def test_it_can_be_sent_to_another_process(
        self, files: MemoryFileSystem, tmp_path: Path, compression: str | None
    ) -> None:
        publish(files, tmp_path, compression=compression)

        copy = pickle.loads(pickle.dumps(rk.open("test-memory://bucket/train")))

        assert copy[4]["id"] == 4


class TestWhatIsThere:
    def test_splits(self, files: MemoryFileSystem, tmp_path: Path) -> None:
        publish(files, tmp_path)
        publish(files, tmp_path, "append", split="test")

        dataset = rk.open("test-memory://bucket/train", split="test")

        assert (len(dataset), list(dataset.splits)) == (5, ["train", "test"])
        assert len(rk.open("test-memory://bucket/train/")) == 10
        with pytest.raises(StorageError, match="Did you mean 'test'"):
            rk.open("test-memory://bucket/train", split="tset")

    def test_nothing(self, files: MemoryFileSystem) -> None:
        with pytest.raises(NotFoundError, match="test-memory://bucket/train: there is no dataset here"):
            rk.open("test-memory://bucket/train")

    def test_a_shard_is_missing(self, files: MemoryFileSystem, tmp_path: Path) -> None:
        publish(files, tmp_path)
        files.remove(next(path for path in files.files if path.endswith(".tfrecord")))

        with pytest.raises(StorageError, match="a shard of the manifest is not there"):
            rk.open("test-memory://bucket/train")

    def test_a_dataset_that_is_replaced_while_it_is_opened(self, files: MemoryFileSystem, tmp_path: Path) -> None:
        publish(files, tmp_path)
        replaced: list[str] = []

        def replace(operation: str, path: str) -> None:
            if operation == "open" and path.endswith(".tfrecord") and not replaced:
                replaced.append(path)
                publish(files, tmp_path, "overwrite")

        files.faults = replace

        assert len(list(rk.open("test-memory://bucket/train"))) == 5
        assert replaced

    def test_damage_is_named(self, files: MemoryFileSystem, tmp_path: Path) -> None:
        publish(files, tmp_path)
        path = next(path for path in files.files if path.endswith(".tfrecord"))
        data = bytearray(files.files[path])
        data[20] ^= 1
        files.put(path, bytes(data))

        with pytest.raises(rk.CorruptRecordError, match="record 0 at byte 0"):
            list(rk.open("test-memory://bucket/train"))

    def test_overlays_are_for_files_of_this_machine(self, files: MemoryFileSystem, tmp_path: Path) -> None:
        publish(files, tmp_path)

        with pytest.raises(ValueError, match="this is an address"):
            rk.open("test-memory://bucket/train", overlays=[tmp_path])
