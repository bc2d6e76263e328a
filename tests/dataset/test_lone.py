"""Lone files: their overlays are kept with the file itself, and several of them can be opened together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recordkit as rk
from recordkit.errors import StorageError
from tests.dataset.bases import read


def lone(path: Path, start: int = 0) -> Path:
    rk.write(path, [{"id": start + at, "y": at} for at in range(4)], sync=False)
    return path


def linked(tmp_path: Path, name: str = "a.tfrecord") -> tuple[Path, Path]:
    """A lone file, and a link to it in another folder."""
    real, link = lone(tmp_path / "real" / "a.tfrecord"), tmp_path / "links" / name
    link.parent.mkdir()
    link.symlink_to(Path("../real/a.tfrecord"))
    return real, link


def fields(where: Path) -> tuple[str, ...]:
    schema = rk.open(where).schema
    assert schema is not None
    return schema.names


class TestALinkToALoneFile:
    @pytest.mark.parametrize("name", ["a.tfrecord", "other.tfrecord"])
    def test_is_changed_where_the_file_is(self, tmp_path: Path, name: str) -> None:
        real, link = linked(tmp_path, name)

        rk.add_fields(link, {"x": np.arange(4)})
        rk.drop_fields(link, ["y"])
        with rk.append(link) as writer:
            writer.write({"id": 4, "x": 4})
        rk.delete(link, where="id == 1")

        assert list(link.parent.iterdir()) == [link]
        expected = [{"id": at, "x": at} for at in (0, 2, 3, 4)]
        for where in (real, link, [link], str(link.parent / "*.tfrecord"), link.parent):
            assert read(where) == expected
            ds = rk.open(where)
            assert [ds[at]["x"] for at in range(len(ds))] == [0, 2, 3, 4]
        assert read(link, overlays=False)[1]["id"] == 1

    def test_keeps_what_was_added_beside_the_link(self, tmp_path: Path) -> None:
        real, link = linked(tmp_path)
        rk.add_fields(
            str(link.parent / "*.tfrecord"), {"x": np.arange(4)}
        )  # a glob stays as it is, as earlier versions left a path

        rk.add_fields(link, {"z": np.arange(4)})

        assert fields(link) == ("id", "y", "x", "z")
        assert fields(real) == ("id", "y")

    def test_in_a_cache_of_links_is_read_as_before(self, tmp_path: Path) -> None:
        blob = lone(tmp_path / "blob.tfrecord").rename(tmp_path / "0f3c")
        link = tmp_path / "snapshot" / "train.tfrecord"
        link.parent.mkdir()
        link.symlink_to(blob)

        assert list(rk.open(link).splits) == ["train"]
        assert len(read(link.parent)) == 4


class TestSeveralLoneFiles:
    def test_that_were_changed_alike_one_by_one_are_read_together(self, tmp_path: Path) -> None:
        files = [lone(tmp_path / f"{name}.tfrecord", at * 4) for at, name in enumerate("abc")]
        for at, file in enumerate(files):
            rk.add_fields(file, {"x": np.arange(4) + at * 4})
            rk.drop_fields(file, ["y"])
            rk.delete(file, where=f"id == {at * 4 + 1}")
        expected = [{"id": at, "x": at} for at in range(12) if at % 4 != 1]

        for where in (tmp_path, files, str(tmp_path / "*.tfrecord")):
            assert read(where) == expected
            ds = rk.open(where)
            assert [ds[at]["x"] for at in range(len(ds))] == [row["x"] for row in expected]
        with rk.append(files[1]) as writer:
            writer.write({"id": 99, "x": 99})
        assert [row["x"] for row in read(tmp_path)] == [0, 2, 3, 4, 6, 7, 99, 8, 10, 11]
        rk.bake(tmp_path, tmp_path / "baked")
        assert read(tmp_path / "baked") == read(files)

    def test_can_be_changed_together_from_then_on(self, tmp_path: Path) -> None:
        files = [lone(tmp_path / f"{name}.tfrecord", at * 4) for at, name in enumerate("ab")]
        for file in files:
            rk.add_fields(file, {"x": np.arange(4)})

        rk.drop_fields(tmp_path, ["x"])
        assert fields(tmp_path) == ("id", "y")
        assert fields(files[0]) == ("id", "y")
        rk.add_fields(tmp_path, {"x": rk.Computed("int64", lambda row: -row["id"], reads=["id"])})
        assert [row["x"] for row in read(tmp_path)] == [-at for at in range(8)]

    @pytest.mark.parametrize(
        ("change", "todo"),
        [
            (lambda file: rk.add_fields(file, {"x": 1}), "add x to it"),
            (lambda file: rk.drop_fields(file, ["y"]), "drop y from it"),
        ],
    )
    def test_of_which_one_was_not_changed_are_refused_with_what_to_do(
        self, tmp_path: Path, change: Any, todo: str
    ) -> None:
        first, second = lone(tmp_path / "a.tfrecord"), lone(tmp_path / "b.tfrecord")
        change(first)

        with pytest.raises(StorageError, match=rf"b\.tfrecord: .* changes other files, but not this one\n.*{todo}"):
            read(tmp_path)
        change(second)
        assert len(read(tmp_path)) == 8

    def test_changed_differently_or_in_another_order_are_refused(self, tmp_path: Path) -> None:
        first, second = lone(tmp_path / "a.tfrecord"), lone(tmp_path / "b.tfrecord")
        rk.add_fields(first, {"x": 1})
        rk.add_fields(second, {"x": 1.5})

        with pytest.raises(StorageError, match="changes other files, but not this one"):
            read(tmp_path)

    def test_each_get_the_values_of_their_own_last_overlay(self, tmp_path: Path) -> None:
        first, second = lone(tmp_path / "a.tfrecord"), lone(tmp_path / "b.tfrecord")
        rk.add_fields(first, {"x": 1})
        rk.add_fields(second, {"x": 2})
        rk.add_fields(tmp_path, {"x": 3}, replace=True)
        rk.add_fields(first, {"x": 4}, replace=True)

        with pytest.raises(StorageError, match="changes other files, but not this one"):
            read(tmp_path)
        rk.add_fields(second, {"x": 5}, replace=True)
        assert [row["x"] for row in read(tmp_path)] == [4] * 4 + [5] * 4
