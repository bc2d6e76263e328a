"""Appended: records that came when there were layers already, and files that layers are not for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

import recordkit as rk
from recordkit.errors import StorageError
from tests.dataset.bases import build, read

if TYPE_CHECKING:
    from pathlib import Path


def lone(folder: Path, name: str, start: int, **options: object) -> Path:
    rk.write(folder / name, [{"id": start + at} for at in range(4)], sync=False, **options)  # type: ignore[arg-type]
    return folder / name


def ids(where: object) -> list[int]:
    ds = rk.open(where)  # type: ignore[arg-type]
    assert [int(ds[at]["id"]) for at in range(len(ds))] == [row["id"] for row in read(where)]
    return [row["id"] for row in read(where)]


class TestSeveralLoneFiles:
    @pytest.mark.parametrize("apart", [False, True])
    def test_of_which_one_has_deleted_records_are_read_together(self, tmp_path: Path, apart: bool) -> None:
        first = lone(tmp_path, "a.tfrecord", 0)
        second = lone(tmp_path / "other" if apart else tmp_path, "a.tfrecord" if apart else "b.tfrecord", 10)
        rk.delete(first, where="id == 1")

        assert ids([first, second]) == [0, 2, 3, 10, 11, 12, 13]
        assert ids([second, first]) == [10, 11, 12, 13, 0, 2, 3]
        rk.delete(second, where="id == 13")
        assert ids([first, second]) == [0, 2, 3, 10, 11, 12]
        assert rk.verify([first, second]).ok

    def test_of_which_one_has_more_fields_are_refused(self, tmp_path: Path) -> None:
        first, second = lone(tmp_path, "a.tfrecord", 0), lone(tmp_path, "b.tfrecord", 10)
        rk.add_fields(first, {"x": 1})

        with pytest.raises(
            StorageError, match=r"b\.tfrecord: the overlay 0001-x changes other files, but not this one"
        ):
            read([first, second])

    def test_of_which_one_was_appended_to(self, tmp_path: Path) -> None:
        first, second = lone(tmp_path, "a.tfrecord", 0), lone(tmp_path, "b.tfrecord", 10)
        rk.add_fields(str(tmp_path / "*.tfrecord"), {"x": np.arange(8)})
        with rk.append(first) as writer:
            writer.write({"id": 4, "x": 44})

        assert [row["x"] for row in read([first, second])] == [0, 1, 2, 3, 44, 4, 5, 6, 7]
        assert read(second) == [{"id": 10 + at, "x": 4 + at} for at in range(4)]


class TestALoneFileThatIsWrittenAnew:
    def test_has_none_of_the_layers_of_the_old_one(self, tmp_path: Path) -> None:
        path = lone(tmp_path, "a.tfrecord", 0)
        rk.add_fields(path, {"x": 1})
        rk.delete(path, where="id == 1")

        lone(tmp_path, "a.tfrecord", 0, overwrite=True)

        assert read(path) == [{"id": at} for at in range(4)]
        assert not any((tmp_path / "_recordkit" / "overlays").iterdir())

    def test_leaves_the_layers_to_the_other_files_that_they_are_for(self, tmp_path: Path) -> None:
        first, second = lone(tmp_path, "a.tfrecord", 0), lone(tmp_path, "b.tfrecord", 10)
        rk.add_fields(str(tmp_path / "*.tfrecord"), {"x": np.arange(8)})

        lone(tmp_path, "a.tfrecord", 20, overwrite=True)

        assert read(first) == [{"id": 20 + at} for at in range(4)]
        assert [row["x"] for row in read(second)] == [4, 5, 6, 7]
        with pytest.raises(StorageError, match="the file has changed since the overlay"):
            read([first, second])


class TestAppendedRows:
    def test_have_what_was_added_and_may_leave_out_what_may_be_missing(self, tmp_path: Path) -> None:
        path = build(tmp_path, "folder", [2, 2])
        rk.add_fields(path, {"x": np.arange(4), "y": ("string?", ["a", None, "b", "c"])})
        rk.drop_fields(path, "name")

        with rk.append(path) as writer:
            writer.write({"id": 4, "x": 4})
            with pytest.raises(rk.SchemaError, match="x: missing from the row"):
                writer.write({"id": 5})

        assert read(path)[-1] == {"id": 4, "x": 4, "y": None}
        assert read(path, overlays=False)[-1] == {"id": 4, "name": None}

    def test_are_refused_by_a_layer_elsewhere_that_they_know_nothing_of(self, tmp_path: Path) -> None:
        path, elsewhere = build(tmp_path, "folder", [3]), tmp_path / "x"
        rk.add_fields(path, {"x": np.arange(3)}, overlay=elsewhere)

        with rk.append(path) as writer:
            writer.write({"id": 3, "name": "late"})

        with pytest.raises(StorageError, match=r"append1-.*: the overlay x changes other files, but not this one"):
            read(path, overlays=[elsewhere])

    def test_are_seen_alike_by_who_opens_their_shard_alone(self, tmp_path: Path) -> None:
        path = build(tmp_path, "folder", [3])
        rk.add_fields(path, {"x": np.arange(3)})
        with rk.append(path) as writer:
            writer.write({"id": 3, "name": "late", "x": 3})

        assert read(next(path.glob("*append1*"))) == [{"id": 3, "name": "late", "x": 3}]

    def test_to_a_file_of_others_do_not_change_what_is_told_of_its_records(self, tmp_path: Path) -> None:
        path = build(tmp_path, "foreign lone", [3])
        rk.cast_fields(path, {"id": "float32"})

        for at in (3, 4):
            with rk.append(path) as writer:
                writer.write({"id": at + 0.5, "name": "late"})

        assert [row["id"] for row in read(path)] == [0, 1, 2, 3.5, 4.5]
        rk.bake(path, tmp_path / "baked")
        assert [row["id"] for row in read(tmp_path / "baked", overlays=False)] == [0, 1, 2, 3.5, 4.5]
