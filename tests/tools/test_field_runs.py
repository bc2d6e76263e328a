"""Runs that broke off, and what comes after them."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

import pytest

import recordkit as rk
from recordkit.storage.write import Run
from recordkit.tools.fields import _add

if TYPE_CHECKING:
    from pathlib import Path

ROWS = [{"id": number} for number in range(10)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A dataset of three shards."""
    rk.write(tmp_path / "train", ROWS, records_per_shard=4)
    return tmp_path / "train"


def fails_at_nine(row: dict[str, Any]) -> int:
    if row["id"] == 9:
        message = "nine"
        raise ValueError(message)
    return 1


def break_off(path: Path, name: str = "x", out: Path | None = None) -> None:
    """Leave two finished files of three."""
    with pytest.raises(rk.SchemaError, match="nine"):
        rk.add_fields(path, {name: rk.Computed("int64", fails_at_nine, reads=["id"])}, out=out, workers=1)


def stop_before_publishing(path: Path, values: list[int], patch: pytest.MonkeyPatch) -> None:
    """Leave all files finished."""

    def stop(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with patch.context() as patched:
        patched.setattr(Run, "publish", stop)
        with pytest.raises(KeyboardInterrupt):
            rk.add_fields(path, {"x": values})


def values(path: Path, name: str = "x") -> list[int]:
    return [int(row[name]) for row in rk.open(path)]


class TestGoingOn:
    def test_finished_files_are_not_made_again(self, path: Path) -> None:
        break_off(path)

        rk.add_fields(path, {"x": rk.Computed("int64", lambda _: 2, reads=["id"])}, workers=1)

        assert values(path) == [1] * 8 + [2] * 2

    @pytest.mark.parametrize("bakes", [False, True], ids=["overlay", "out"])
    def test_without_resume_all_are_made_again(self, path: Path, bakes: bool) -> None:
        out = path.with_name("out") if bakes else None
        break_off(path, out=out)

        rk.add_fields(path, {"x": [2] * 10}, out=out, resume=False)

        assert values(out or path) == [2] * 10

    def test_without_resume_what_is_there_is_not_replaced(self, path: Path) -> None:
        out = path.with_name("out")
        rk.write(out, ROWS)

        with pytest.raises(rk.TargetExistsError):
            rk.add_fields(path, {"x": 1}, out=out, resume=False)

        assert len(rk.open(out)) == 10

    def test_a_field_that_somebody_else_adds_in_between_is_named_with_what_to_do(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        layer_folder = _add.layer_folder

        def late(*args: Any, **options: Any) -> Path:
            found = layer_folder(*args, **options)
            monkeypatch.undo()
            rk.add_fields(path, {"x": [2] * 10})
            return found

        monkeypatch.setattr(_add, "layer_folder", late)
        with pytest.raises(rk.SchemaError, match=r"^x: another writer has added.*\n.*replace=True"):
            rk.add_fields(path, {"x": [1] * 10})

        assert values(path) == [2] * 10

    def test_a_run_for_files_that_have_changed_begins_again(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        stop_before_publishing(path, list(range(10)), monkeypatch)
        file = sorted(path.glob("*.tfrecord"))[1]
        rk.write(path.with_name("other"), [{"id": 100 + number} for number in range(10)], records_per_shard=4)
        file.write_bytes(sorted(path.with_name("other").glob("*.tfrecord"))[1].read_bytes())

        rk.add_fields(path, {"x": [5] * 10})

        assert values(path) == [5] * 10

    def test_a_run_for_files_that_were_only_touched_begins_again(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        stop_before_publishing(path, list(range(10)), monkeypatch)
        for file in path.glob("*.tfrecord"):
            os.utime(file)

        rk.add_fields(path, {"x": [5] * 10})

        assert values(path) == [5] * 10

    def test_it_is_not_published_by_hand_for_what_it_is_bound_to_would_be_lacking(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        stop_before_publishing(path, list(range(10)), monkeypatch)

        with pytest.raises(rk.StorageError, match=r"a change of a dataset was interrupted here\n  Call it again"):
            rk.commit(path / "_recordkit" / "overlays" / "0001-x")
        rk.add_fields(path, {"x": list(range(10))})

        assert values(path) == list(range(10))

    def test_a_run_of_a_field_whose_name_ends_alike_is_another_run(self, path: Path) -> None:
        break_off(path, "a-x")

        made = rk.add_fields(path, {"x": list(range(10))})

        assert re.search(r"/\d+-x$", made.path)
        assert values(path) == list(range(10))


class TestDropping:
    def test_a_field_that_was_replaced_does_not_stay(self, path: Path) -> None:
        rk.add_fields(path, {"x": list(range(10))})
        rk.add_fields(path, {"x": [5] * 10}, replace=True)

        rk.drop_fields(path, "x")

        assert list(rk.open(path)) == ROWS

    def test_a_field_that_was_replaced_does_not_come_back(self, path: Path) -> None:
        rk.add_fields(path, {"x": list(range(10)), "y": 1})
        rk.add_fields(path, {"x": [5] * 10}, replace=True)

        rk.drop_fields(path, ["x", "y"])

        assert list(rk.open(path)) == ROWS

    def test_fields_of_several_overlays_go_with_them(self, path: Path) -> None:
        rk.add_fields(path, {"x": 1})
        rk.add_fields(path, {"y": 2})

        rk.drop_fields(path, ["x", "y"])

        assert list(rk.open(path)) == ROWS
        assert [folder.name for folder in (path / "_recordkit" / "overlays").iterdir()] == ["0003-hidden"]

    def test_a_field_can_be_dropped_and_added_many_times(self, path: Path) -> None:
        for number in range(3):
            rk.add_fields(path, {"x": number, "y": number})
            rk.drop_fields(path, ["y", "x"])
            rk.add_fields(path, {"x": number})
            rk.add_fields(path, {"y": number})
            rk.drop_fields(path, ["y", "x"])

        assert list(rk.open(path)) == ROWS
        rk.add_fields(path, {"x": list(range(10))})
        assert values(path) == list(range(10))
