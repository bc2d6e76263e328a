"""Layers: bound to their base, and refused where anything has changed."""

from __future__ import annotations

import os
import shutil
from time import sleep
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import recordkit as rk
from recordkit import records
from recordkit.errors import RecordKitError, StorageError
from recordkit.filesystems import LocalFile
from recordkit.storage.overlays import (
    Base,
    Overlay,
    new_overlay,
    overlay_facts,
    overlays_of,
    remove_overlay,
    write_overlay,
)
from recordkit.storage.overlays._overlay import KEY, _numbers
from recordkit.storage.overlays._write import _text
from recordkit.storage.read import RecordFile
from tests.dataset.bases import build, listing, raw, read
from tests.dataset.files import payloads, save

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

CHANGED = r"data-000.tfrecord: the file has changed since the overlay 0001-\w+ was written\n  .*overlays=False"
NOT_WRITTEN = r"x-0000[01]-of-00002.tfrecord: these are not the records that were written\n  .*remove .*0001-x and add"


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """Two foreign files of five records each, with an overlay `x` whose values are all as long as each other."""
    base = build(tmp_path, "foreign", [5, 5])
    rk.add_fields(base, {"x": np.arange(10) + 200})
    return base


def layer_file(base: Path, number: int) -> Path:
    return base / "_recordkit" / "overlays" / "0001-x" / f"x-0000{number}-of-00002.tfrecord"


def pack(some: list[bytes]) -> bytes:
    return b"".join(map(records.pack, some))


def every_way_refuses(base: Path, words: str) -> None:
    """Whichever way the added field is read."""
    ways: list[Callable[[], object]] = [
        lambda: read(base),
        lambda: rk.open(base)[0],
        lambda: rk.open(base)[:],
        lambda: rk.open(base)[[1, 7]],
        lambda: list(rk.open(base).batch(3)),
        lambda: rk.bake(base, base.parent / "baked"),
    ]
    for way in ways:
        with pytest.raises(StorageError, match=words):
            way()
    assert len(read(base, overlays=False)) == len(raw(base))
    assert not (base.parent / "baked").exists()


class TestAnOverlayOfAnotherBaseIsRefused:
    def test_a_file_rewritten_with_the_same_size(self, base: Path) -> None:
        save(base / "data-000.tfrecord", payloads(0, 5)[::-1])

        every_way_refuses(base, CHANGED)

    @pytest.mark.parametrize("time", [0, 1_000_000_000, 315_532_800_000_000_000, 1_700_000_000_123_456_789])
    def test_a_file_of_the_same_size_and_time(self, tmp_path: Path, time: int) -> None:
        base = build(tmp_path, "foreign", [5, 5])
        for path in base.glob("data-*"):
            os.utime(path, ns=(time, time))
        rk.add_fields(base, {"x": np.arange(10) + 200})

        save(base / "data-000.tfrecord", payloads(0, 5)[::-1])
        os.utime(base / "data-000.tfrecord", ns=(time, time))

        every_way_refuses(base, CHANGED)

    def test_a_file_that_grew(self, base: Path) -> None:
        save(base / "data-000.tfrecord", payloads(0, 6))

        every_way_refuses(base, CHANGED)

    def test_a_file_that_was_cut(self, base: Path) -> None:
        save(base / "data-000.tfrecord", payloads(0, 4))

        every_way_refuses(base, CHANGED)

    def test_two_files_exchanged(self, base: Path) -> None:
        first, second = base / "data-000.tfrecord", base / "data-001.tfrecord"
        first.rename(base / "aside")
        second.rename(first)
        (base / "aside").rename(second)

        every_way_refuses(base, CHANGED)

    def test_a_file_put_in_later(self, base: Path) -> None:
        save(base / "data-002.tfrecord", payloads(10, 12))

        with pytest.raises(
            StorageError, match=r"data-002.tfrecord: the overlay 0001-x changes other files, but not this one\n  .*"
        ):
            read(base)
        assert len(read(base, overlays=False)) == 12

    def test_a_lone_file_that_others_appended_to(self, tmp_path: Path) -> None:
        path = build(tmp_path, "lone", [3])
        rk.add_fields(path, {"x": np.arange(3)})
        with path.open("ab") as file:
            file.write(records.pack(payloads(3, 4)[0]))

        with pytest.raises(StorageError, match=r"one.tfrecord: the file has changed since the overlay 0001-x"):
            read(path)

    def test_a_dataset_of_ours_that_was_overwritten_loses_its_layers(self, tmp_path: Path) -> None:
        path = build(tmp_path, "folder", [3, 3])
        rk.add_fields(path, {"x": np.arange(6)})

        rk.write(path, [{"id": 9, "name": "new"}], overwrite=True)

        assert read(path) == [{"id": 9, "name": "new"}]

    def test_deleted_records_of_a_file_that_changed(self, tmp_path: Path) -> None:
        base = build(tmp_path, "foreign", [5, 5])
        rk.delete(base, where="id == 2")
        save(base / "data-000.tfrecord", payloads(0, 5)[::-1])

        every_way_refuses(base, CHANGED)
        with pytest.raises(StorageError, match=CHANGED):
            len(rk.open(base))

    def test_a_copy_with_other_times_is_not_another(self, base: Path, tmp_path: Path) -> None:
        rows = read(base)

        shutil.copytree(base, tmp_path / "copy", copy_function=shutil.copyfile)
        os.utime(base / "data-000.tfrecord")

        assert read(tmp_path / "copy") == read(base) == rows

    def test_is_not_read_whole_where_times_were_kept(self, base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        rows = read(base)
        sleep(0.05)  # more than a tick of the clock, after which times can be trusted
        rk.delete(base, where="id == 8")
        shutil.copytree(base, base.parent / "copy")
        looked_at: list[RecordFile] = []

        with monkeypatch.context() as patched:
            patched.setattr(RecordFile, "digest", property(looked_at.append))
            for path in (base, base.parent / "copy"):
                layer = overlays_of(path)[1]
                for name in ("data-000.tfrecord", "data-001.tfrecord"):
                    layer.check(RecordFile(LocalFile(path / name)))

        assert looked_at == []
        assert len(rows) == len(read(base)) + 1


class TestADamagedOverlayIsRefused:
    def test_its_two_files_exchanged(self, base: Path) -> None:
        first, second = layer_file(base, 0), layer_file(base, 1)
        one, other = first.read_bytes(), second.read_bytes()
        assert len(one) == len(other)
        first.write_bytes(other)
        second.write_bytes(one)

        every_way_refuses(base, NOT_WRITTEN)

    def test_its_two_files_renamed_to_each_other(self, base: Path) -> None:
        first, second = layer_file(base, 0), layer_file(base, 1)
        first.rename(base / "aside")
        second.rename(first)
        (base / "aside").rename(second)

        every_way_refuses(base, NOT_WRITTEN)

    @pytest.mark.parametrize("manifest_last", [True, False])
    def test_its_two_files_exchanged_and_all_of_it_copied(
        self, base: Path, tmp_path: Path, manifest_last: bool
    ) -> None:
        first, second = layer_file(base, 0), layer_file(base, 1)
        one, other = first.read_bytes(), second.read_bytes()
        first.write_bytes(other)
        second.write_bytes(one)
        copy = tmp_path / "copy"
        shutil.copytree(base, copy)
        if manifest_last:
            manifest = layer_file(copy, 0).parent / "_recordkit" / "manifest.json"
            manifest.write_bytes(manifest.read_bytes())

        every_way_refuses(copy, NOT_WRITTEN)

    def test_its_records_reordered(self, base: Path) -> None:
        file = layer_file(base, 0)
        file.write_bytes(pack(list(rk.open(file, raw=True))[::-1]))

        every_way_refuses(base, NOT_WRITTEN)

    def test_cut_behind_a_record(self, base: Path) -> None:
        file = layer_file(base, 0)
        file.write_bytes(pack(list(rk.open(file, raw=True))[:-1]))

        every_way_refuses(base, r"x-00000-of-00002.tfrecord: expected \d+ bytes, found \d+\n  .*remove")

    def test_cut_inside_a_record(self, base: Path) -> None:
        file = layer_file(base, 0)
        file.write_bytes(file.read_bytes()[:-3])

        every_way_refuses(base, r"x-00000-of-00002.tfrecord: expected \d+ bytes, found \d+\n  .*remove")

    def test_a_file_missing(self, base: Path) -> None:
        layer_file(base, 1).unlink()

        with pytest.raises(StorageError, match=r"x-00001-of-00002.tfrecord: the file is missing\n  .*remove"):
            read(base)

    def test_with_fewer_records_than_the_base_has(self, base: Path) -> None:
        manifest = layer_file(base, 0).parent / "_recordkit" / "manifest.json"
        manifest.write_text(manifest.read_text().replace('"records": 5', '"records": 4', 1))

        with pytest.raises(RecordKitError):
            rk.open(base)

    def test_a_folder_that_is_none(self, base: Path, tmp_path: Path) -> None:
        with pytest.raises(StorageError, match=r"empty: not an overlay\n  To write one: recordkit.add_fields"):
            rk.open(base, overlays=[tmp_path / "empty"])

    def test_one_kept_elsewhere_for_other_files(self, base: Path, tmp_path: Path) -> None:
        other = build(tmp_path / "other", "folder", [5, 5])
        rk.add_fields(other, {"y": np.arange(10)}, overlay=tmp_path / "work" / "y")

        with pytest.raises(
            StorageError, match=r"data-000.tfrecord: the overlay y changes other files, but not this one"
        ):
            read(base, overlays=[tmp_path / "work" / "y"])


class TestLayers:
    def test_apply_in_the_order_of_their_numbers(self, base: Path) -> None:
        for number in range(2, 12):
            rk.add_fields(base, {"x": np.full(10, number)}, replace=True, sync=False)

        assert [layer.path.name for layer in overlays_of(base)] == [f"{number:04d}-x" for number in range(1, 12)]
        assert [row["x"] for row in read(base)] == [11] * 10

    def test_know_what_they_change(self, base: Path) -> None:
        (layer,) = overlays_of(base)

        assert layer.schema == rk.Schema({"x": "int64"})
        assert list(layer.base) == list(layer.files) == ["data-000.tfrecord", "data-001.tfrecord"]
        assert [of.records for of in layer.base.values()] == [5, 5]
        assert (layer.hides, layer.deleted, layer.name, layer.empty) == (frozenset(), {}, "x", False)

    def test_go_behind_all_others_unless_one_was_begun(self, tmp_path: Path) -> None:
        overlays = tmp_path / "_recordkit" / "overlays"
        assert new_overlay(tmp_path, "image/height") == overlays / "0001-image_height"
        write_overlay(overlays / "0007-deleted", overlay_facts([]))
        assert new_overlay(tmp_path, "..") == overlays / "0008-layer"

        (overlays / ".0008-width.recordkit").mkdir()
        (overlays / ".0003-depth.recordkit").mkdir()
        assert new_overlay(tmp_path, "width") == overlays / "0008-width"
        assert new_overlay(tmp_path, "depth") == overlays / "0008-depth"

    def test_are_gone_when_removed_even_if_an_earlier_removal_broke_off(self, base: Path) -> None:
        (layer,) = overlays_of(base)
        aside = layer.path.with_name(".0001-x.removed")
        aside.mkdir()
        (aside / "left").touch()

        remove_overlay(layer.path)

        assert overlays_of(base) == ()
        assert list(layer.path.parent.iterdir()) == []

    def test_written_without_records_are_read_again(self, tmp_path: Path) -> None:
        base = [Base(name, "0" * 32, 101, 2000, 0) for name in "ab"]
        deleted = {"a": np.array([0, 9, 100]), "b": np.array([3])}

        path = write_overlay(tmp_path / "0001-both", overlay_facts(base, hides={"u", "t"}, deleted=deleted))

        layer = Overlay.load(path)
        assert layer.hides == {"t", "u"}
        assert {name: numbers.tolist() for name, numbers in layer.deleted.items()} == {"a": [0, 9, 100], "b": [3]}
        assert layer.files == {}

    @given(st.sets(st.integers(0, 3000)).map(sorted))
    def test_numbers_of_deleted_records_are_read_as_written(self, numbers: list[int]) -> None:
        records = max(numbers, default=-1) + 1

        assert _numbers(_text(np.array(numbers, np.int64)), records).tolist() == numbers

    def test_the_manifest_is_what_the_documentation_says(self, base: Path) -> None:
        rk.delete(base, where="id == 8")

        added, deleted = (
            rk.storage.Manifest.load(layer.path / "_recordkit" / "manifest.json") for layer in overlays_of(base)
        )

        assert added is not None
        assert deleted is not None
        facts = added.metadata[KEY]
        keys = {"name", "digest", "records", "size", "changed_at", "sample"}
        assert [set(of) for of in facts["base"]] == [keys] * 2
        assert (facts["hides"], facts["deleted"]) == ([], {})
        assert list(deleted.metadata[KEY]["deleted"]) == ["data-001.tfrecord"]
        assert deleted.shards == ()

    def test_a_foreign_folder_gets_nothing_but_one_folder(self, base: Path) -> None:
        rk.delete(base, where="id == 8")
        rk.drop_fields(base, "name")

        assert sorted(path.name for path in base.iterdir()) == ["_recordkit", "data-000.tfrecord", "data-001.tfrecord"]
        assert pack(payloads(0, 5)) == listing(base)["data-000.tfrecord"]
