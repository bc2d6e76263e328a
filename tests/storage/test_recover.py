"""What a run that was killed while it published leaves: readers change nothing, and the next writer finishes it.

The laws for every moment are in tests/storage/crash; here are the facts around them.
"""

from __future__ import annotations

import shutil
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import pytest

import recordkit as rk
from recordkit import filesystems
from recordkit.filesystems import _local_writes
from recordkit.storage.publish import _by_rename
from tests.storage import reading

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

KINDS = ("new", "overwrite", "swapping", "append", "file", "overwritten file", "extend", "extend a foreign file")
MOVES = ("rename", "rename_new", "exchange", "extend_file", "rename_for_good")
CHANGES = (*MOVES, "cut_file", "remove_file", "remove_tree", "replace_file", "sync_folder", "make_folder", "write_new")
LONE = ("file", "overwritten file", "extend", "extend a foreign file")


class KilledError(BaseException):
    """Ends a run, and nothing is changed behind it."""


@contextmanager
def killed(after: int) -> Iterator[None]:
    """Let a run inside the block end once it has written its journal and made so many moves."""
    moves = dead = 0

    def wrapped(name: str, change: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            nonlocal moves, dead
            if dead:
                raise rk.StorageError("dead")
            if publishing and name in MOVES and not (args and str(args[-1]).endswith(".old")):
                if moves == after:
                    dead = 1
                    raise KilledError
                moves += 1
            return change(*args, **options)

        return call

    publishing = False
    do_moves = _by_rename._do_moves

    def begin(*args: Any, **options: Any) -> None:
        nonlocal publishing
        publishing = True
        do_moves(*args, **options)

    with pytest.MonkeyPatch.context() as patch:
        for name in CHANGES:
            counted = wrapped(name, getattr(filesystems, name))
            for module in (filesystems, _local_writes):
                patch.setattr(module, name, counted)
        patch.setattr(_by_rename, "_do_moves", begin)
        with suppress(KilledError, rk.StorageError):
            yield
    assert dead, "the run came to its end"


def begun(folder: Path, kind: str, after: int) -> Path:
    """Leave a run of a kind that was killed, and return its target."""
    lone = kind in LONE
    target = folder / ("one.tfrecord" if lone else "train")
    if kind not in ("new", "file"):
        rk.write(target, {"id": list(range(8))}, records_per_shard=None if lone else 4)
    if kind == "extend a foreign file":
        shutil.rmtree(folder / "_recordkit")
    with pytest.MonkeyPatch.context() as patch:
        if kind == "swapping":
            patch.setattr(filesystems, "exchange", lambda one, other: False)
        with killed(after):
            again(target, kind)
    return target


def again(target: Path, kind: str, **options: Any) -> None:
    """Do what the run did."""
    if kind in ("append", "extend", "extend a foreign file"):
        with rk.append(target, **options) as writer:
            writer.write_batch({"id": [8, 9]})
    else:
        rk.write(target, {"id": [8, 9]}, overwrite=kind not in ("new", "file"), **options)


def new_ids(kind: str) -> list[int]:
    return [*range(8), 8, 9] if kind in ("append", "extend", "extend a foreign file") else [8, 9]


def ids(target: Path) -> list[int]:
    return [int(row["id"]) for row in rk.open(target)]


MOVED = {"new": range(4), "overwrite": range(4), "swapping": (0, 4, 5, 6), "extend a foreign file": range(1)}
MOMENTS = [(kind, after) for kind in KINDS for after in MOVED.get(kind, range(3))]


@pytest.fixture(params=MOMENTS, ids=lambda moment: f"{moment[0]}, {moment[1]} moves")
def left(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Path]:
    kind, after = request.param
    return kind, begun(tmp_path, kind, after)


class TestReaders:
    def test_see_the_old_state_or_the_new_one_or_say_what_to_do_and_change_nothing(
        self, left: tuple[str, Path], caplog: pytest.LogCaptureFixture
    ) -> None:
        kind, target = left
        before = reading.tree(target.parent)

        try:
            seen = ids(target)
        except rk.StorageError as error:
            assert f"recordkit.recover({str(target)!r})" in str(error)  # noqa: PT017
            assert kind in ("new", "swapping", "file") or "extend" in kind
        else:
            assert seen in (list(range(8)), new_ids(kind))
            said = [record for record in caplog.records if "was interrupted" in record.message]
            assert len(said) == 1
            assert f"recordkit.recover({str(target)!r})" in said[0].message

        assert reading.tree(target.parent) == before

    def test_verify_finds_nothing_wrong_with_it(self, left: tuple[str, Path]) -> None:
        _, target = left
        before = reading.tree(target.parent)

        with suppress(rk.StorageError):
            ids(target)
            assert rk.verify(target).ok

        assert reading.tree(target.parent) == before

    def test_a_glob_of_shards_does_not_see_those_that_do_not_count_yet(self, tmp_path: Path) -> None:
        target = begun(tmp_path, "append", 2)
        assert len(list(target.glob("*.tfrecord"))) == 3

        dataset = rk.open(str(target / "*.tfrecord"))

        assert [int(row["id"]) for row in dataset] == list(range(8))
        assert [path.name for path, _ in dataset.left_out] == ["train-append1-00000-of-00001.tfrecord"]

    def test_a_file_that_was_replaced_before_its_manifest_has_the_schema_of_the_new_one(self, tmp_path: Path) -> None:
        target = tmp_path / "one.tfrecord"
        rk.write(target, [{"id": 1}], {"id": "int64"})
        with killed(1):
            rk.write(target, [{"id": 1}], {"id": "int8"}, overwrite=True)

        schema = rk.open(target).schema
        assert schema is not None
        assert schema.to_dict() == rk.Schema({"id": "int8"}).to_dict()


class TestRecover:
    def test_finishes_what_was_published(self, left: tuple[str, Path]) -> None:
        kind, target = left

        assert rk.recover(target)

        assert ids(target) == new_ids(kind)
        assert rk.verify(target).ok
        assert [path.name for path in target.parent.iterdir() if path.name.startswith(".")] == []
        assert not rk.recover(target)

    def test_a_run_that_was_not_publishing_is_left_alone(self, tmp_path: Path) -> None:
        with suppress(ZeroDivisionError), rk.create(tmp_path / "train", {"id": "int64"}, records_per_shard=1) as writer:
            for number in range(3):
                writer.write({"id": number})
                writer.flush()
            raise ZeroDivisionError
        before = reading.tree(tmp_path)

        assert not rk.recover(tmp_path / "train")

        assert reading.tree(tmp_path) == before

    def test_the_next_writer_does_it_too(self, left: tuple[str, Path]) -> None:
        kind, target = left

        if kind in ("new", "overwrite", "swapping"):
            with suppress(rk.TargetExistsError):
                again(target, kind, resume=True)
            assert ids(target) == new_ids(kind)
        else:
            with rk.append(target) as writer:
                writer.write({"id": 10})
            assert ids(target) == [*new_ids(kind), 10]


class TestNewerData:
    """A journal is bound to the state that it was written for."""

    @pytest.mark.parametrize("after", [0, 1])
    @pytest.mark.parametrize("kind", KINDS)
    def test_stays_whoever_comes(self, kind: str, after: int, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        (tmp_path / "elsewhere").mkdir()
        target = begun(tmp_path, kind, 0 if kind == "extend a foreign file" else after)
        newer = tmp_path / "elsewhere" / target.name
        rk.write(newer, {"id": list(range(100, 150))})
        if target.is_dir():
            shutil.rmtree(target)
        shutil.copytree(newer, target) if newer.is_dir() else shutil.copy(newer, target)
        before = {name: data for name, data in reading.tree(tmp_path).items() if not name.startswith(".")}
        all_before = reading.tree(tmp_path)

        assert ids(target) == list(range(100, 150))
        assert "was interrupted" in caplog.text
        with pytest.raises(rk.StorageError, match=r"it has changed since then\n.*recordkit\.discard"):
            rk.recover(target)
        with pytest.raises(rk.StorageError, match="it has changed since then"):
            rk.append(target)
        with pytest.raises(rk.StorageError, match="it has changed since then"):
            rk.write(target, [{"id": 1}], overwrite=True)
        assert reading.tree(tmp_path) == all_before

        rk.discard(target)

        assert reading.tree(tmp_path) == before

    def test_records_that_others_have_added_behind_stay(self, tmp_path: Path) -> None:
        target = begun(tmp_path, "extend", 0)
        with target.open("ab") as file:
            file.write(rk.records.pack(b"by another tool"))
        before = target.read_bytes()

        with pytest.raises(rk.StorageError, match="it has changed since then"):
            rk.append(target)

        assert target.read_bytes() == before

    def test_a_field_that_was_added_since_stays(self, tmp_path: Path) -> None:
        target = begun(tmp_path, "overwrite", 0)
        rk.add_fields(target, {"more": list(range(8))})

        with pytest.raises(rk.StorageError, match="it has changed since then"):
            rk.recover(target)

        assert rk.open(target)[7]["more"] == 7


class TestAppendOnceMore:
    @pytest.mark.parametrize("kind", ["append", "extend", "extend a foreign file"])
    def test_rows_of_a_run_that_was_complete_are_not_added_again(self, tmp_path: Path, kind: str) -> None:
        target = begun(tmp_path, kind, 0)
        rk.recover(target)

        for _ in range(2):
            with pytest.raises(rk.TargetExistsError, match=r"has added the same rows\n.*resume=False"):
                again(target, kind, resume=True)

        assert ids(target) == new_ids(kind)
        assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []

    @pytest.mark.parametrize("kind", ["append", "extend", "extend a foreign file"])
    def test_they_are_if_that_is_meant(self, tmp_path: Path, kind: str) -> None:
        target = begun(tmp_path, kind, 0)
        rk.recover(target)

        again(target, kind)

        assert ids(target) == [*new_ids(kind), 8, 9]

    def test_other_rows_are_added(self, tmp_path: Path) -> None:
        target = begun(tmp_path, "append", 0)
        rk.recover(target)

        with rk.append(target, resume=True) as writer:
            writer.write_batch({"id": [10, 11]})

        assert ids(target) == [*new_ids("append"), 10, 11]
