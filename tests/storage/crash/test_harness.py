"""The harness finds what it is there to find: a test that cannot fail proves nothing."""

from __future__ import annotations

import errno
import signal
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from .harness import Harness, Scenario, Step, succeed
from .replay import Disk, Operation, Tree, crashes, read_log, snapshot

if TYPE_CHECKING:
    from pathlib import Path

    from .serving import Outcome

TOYS = "tests.storage.crash.toys"
EXERCISES = "tests.storage.crash.exercises"
SOUND = Scenario("toy", TOYS, "train", write=Step("sound"), resume=Step("sound"))
OVERWRITE = Scenario("toy overwrite", TOYS, "train", Step("exchanges"), Step("exchanges"), prepare=Step("old_dataset"))


def broken(write: str) -> Scenario:
    return replace(SOUND, name=write, write=Step(write))


def numbers(harness: Harness, scenario: Scenario, *names: str) -> list[int]:
    """The operations of these names, or all."""
    return [one.number for one in harness.record(scenario).operations if one.name in names or not names]


class TestSoundToy:
    @pytest.mark.parametrize("scenario", [SOUND, OVERWRITE], ids=str)
    def test_no_crash_breaks_it(self, harness: Harness, scenario: Scenario) -> None:
        recording = harness.record(scenario)
        every, writes = numbers(harness, scenario), numbers(harness, scenario, "write")

        found = harness.lose_power(recording)
        found += harness.kill(recording, every)
        found += harness.kill(recording, every, after=True)
        found += harness.kill(recording, writes, torn=True)

        assert not found, "\n".join(found)

    @pytest.mark.parametrize("scenario", [SOUND, OVERWRITE], ids=str)
    @pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO, errno.EDQUOT], ids=lambda error: errno.errorcode[error])
    def test_no_error_breaks_it(self, harness: Harness, scenario: Scenario, error: int) -> None:
        recording = harness.record(scenario)
        every, writes = numbers(harness, scenario), numbers(harness, scenario, "write")

        found = harness.fail(recording, every, error)
        found += harness.fail(recording, every, error, rest=True)
        found += harness.fail(recording, [number + 1 for number in writes], error, half=True)
        found += harness.fail_then_lose_power(recording, numbers(harness, scenario, "fsync"))
        found += harness.shorten(recording, writes)

        assert not found, "\n".join(found)


class TestBrokenToys:
    @pytest.mark.parametrize(
        ("write", "words"),
        [
            ("no_fsync", "names dropped, data lost:\n  after the crash: the target is neither"),
            ("no_fsync", "names kept, data zeroed:\n  after the crash: the target is neither"),
            ("rename_before_fsync", "names kept, data lost:\n  after the crash: the target is neither"),
            ("no_fsync_of_staging", "names dropped, data kept:\n  after the crash: the target is neither"),
            ("no_fsync_of_parent", "names dropped, data kept:\n  the run ended well, and the target is the old one"),
            ("in_place", "names kept, data kept:\n  after the crash: the target is neither"),
            ("in_place", "torn:\n  after the crash: the target is neither"),
        ],
    )
    def test_a_loss_of_power_tells(self, harness: Harness, write: str, words: str) -> None:
        found = harness.lose_power(harness.record(broken(write)))

        assert any(words in violation for violation in found), "\n".join(found)

    def test_removing_the_old_dataset_first_is_found(self, harness: Harness) -> None:
        scenario = replace(OVERWRITE, name="removes first", write=Step("removes_first"), resume=Step("removes_first"))

        found = harness.kill(harness.record(scenario), numbers(harness, scenario))

        assert any("train/train-00000 is missing" in violation for violation in found)

    def test_a_resume_that_trusts_a_torn_shard_is_found(self, harness: Harness) -> None:
        step = Step("trusts_what_is_staged")
        scenario = replace(SOUND, name="trusts", write=step, resume=step)

        found = harness.kill(harness.record(scenario), numbers(harness, scenario, "write"), torn=True)

        assert len(found) == 3
        assert "train/train-00000 has 25 bytes, not 50, that differ from byte 25" in found[0]

    def test_an_error_that_is_passed_over_is_found(self, harness: Harness) -> None:
        scenario = broken("deaf")

        found = harness.fail(harness.record(scenario), numbers(harness, scenario, "fsync"), errno.EIO)

        assert "ended without an error, although this failed:" in found[0]

    def test_an_error_that_helps_nobody_is_found(self, harness: Harness) -> None:
        scenario = broken("mute")

        found = harness.fail(harness.record(scenario), [1], errno.ENOSPC)

        assert "the error names no path" in found[0]
        assert "the error does not say what to do" in found[0]

    def test_a_second_fsync_does_not_make_good_a_failed_one(self, harness: Harness) -> None:
        scenario = broken("fsyncs_again")

        found = harness.fail_then_lose_power(harness.record(scenario), numbers(harness, scenario, "fsync")[:1])

        assert (
            "data lost (2 such states): after the crash: the target is neither the old dataset nor the new one"
            in found[0]
        )

    def test_a_short_write_that_is_taken_for_a_whole_one_is_found(self, harness: Harness) -> None:
        scenario = broken("ignores_short_writes")

        found = harness.shorten(harness.record(scenario), numbers(harness, scenario, "write"))

        assert len(found) == 3

    def test_what_the_shim_cannot_see_is_not_taken_for_nothing(self, harness: Harness) -> None:
        step = Step("through_a_map")

        with pytest.raises(AssertionError, match="the shim did not see all that was done"):
            harness.record(Scenario("unseen", EXERCISES, "train", write=step, resume=step))


class TestShim:
    def watch(self, harness: Harness, function: str, **plan: int) -> tuple[Outcome, Disk, list[Operation], Tree]:
        with harness.place({}) as root:
            disk, log = Disk(root), root.with_suffix(".log")
            outcome = harness.call(EXERCISES, Step(function), root, log=log, **plan)
            operations, tree = read_log(log, root), snapshot(root)
            log.unlink()
        for operation in operations:
            disk.apply(operation)
        return outcome, disk, operations, tree

    def test_the_log_tells_all_that_was_done(self, harness: Harness) -> None:
        outcome, disk, operations, tree = self.watch(harness, "everything")

        succeed(outcome)
        assert disk.tree() == tree
        names = {operation.name for operation in operations}
        assert names >= {
            *(
                "create",
                "open+truncate",
                "write",
                "pwrite",
                "writev",
                "pwritev",
                "sendfile",
                "copy_file_range",
                "close",
            ),
            *("ftruncate", "truncate", "fallocate", "fsync", "fdatasync", "mkdir", "rename", "exchange", "link"),
            *("symlink", "unlink", "rmdir", "sync"),
        }

    def test_a_kill_at_any_operation_leaves_what_the_log_says(self, harness: Harness) -> None:
        _, _, whole, _ = self.watch(harness, "everything")

        for number in range(1, len(whole) + 1, 3):
            before, disk, operations, tree = self.watch(harness, "everything", kill_at=number)
            after, later, _, later_tree = self.watch(harness, "everything", kill_after=number)

            assert before.signal == after.signal == signal.SIGKILL
            assert [(one.number, one.name) for one in operations] == [(one.number, one.name) for one in whole][
                : number - 1
            ]
            assert disk.tree() == tree
            assert later.tree() == later_tree

    def test_threads_take_turns(self, harness: Harness) -> None:
        outcome, disk, operations, tree = self.watch(harness, "in_threads")

        succeed(outcome)
        assert [operation.number for operation in operations] == list(range(1, 4 * 20 * 3 + 1))
        assert disk.tree() == tree

    def test_what_is_outside_the_folder_does_not_count(self, harness: Harness) -> None:
        assert self.watch(harness, "elsewhere")[2] == []

    def test_reading_does_not_count(self, harness: Harness) -> None:
        assert [operation.name for operation in self.watch(harness, "read_only")[2]] == ["create", "write", "close"]

    def test_a_failure_does_nothing(self, harness: Harness) -> None:
        outcome, _, operations, tree = self.watch(harness, "fill", fail_at=3, errno=errno.EDQUOT)

        assert outcome.value == errno.EDQUOT
        assert (operations[2].result, operations[2].error) == (-1, errno.EDQUOT)
        assert tree == {"file": b"0123456789"}

    def test_a_disk_fills_up_in_the_midst_of_a_write(self, harness: Harness) -> None:
        outcome, _, _, tree = self.watch(harness, "fill", room=25)

        assert outcome.value == errno.ENOSPC
        assert tree == {"file": b"0123456789" * 2 + b"01234"}

    def test_a_short_write_takes_half(self, harness: Harness) -> None:
        outcome, _, operations, _ = self.watch(harness, "fill", short_at=2)

        succeed(outcome)
        assert (operations[1].result, operations[1].data, operations[2].offset) == (5, b"01234", 5)


class TestModel:
    """Operations by hand; inodes are what `new` says."""

    @pytest.fixture
    def disk(self, tmp_path: Path) -> Disk:
        (tmp_path / "a").mkdir()
        (tmp_path / "b").mkdir()
        (tmp_path / "a" / "old").write_bytes(b"old")
        disk = Disk(tmp_path)
        self.inodes = {name: (tmp_path / name).stat().st_ino for name in ("", "a", "b", "a/old")}
        return disk

    def new(self, disk: Disk, path: str, data: bytes) -> int:
        inode = max(disk.nodes) + 1
        disk.apply(Operation(1, "create", path, inode=inode))
        disk.apply(Operation(2, "write", path, inode=inode, data=data, result=len(data)))
        return inode

    def sync(self, disk: Disk, inode: int | str, result: int = 0) -> None:
        number = self.inodes[inode] if isinstance(inode, str) else inode
        disk.apply(Operation(3, "fsync", "", inode=number, result=result))

    def dropped(self, disk: Disk) -> Tree:
        """The files that are left when all that is not durable is lost."""
        tree = dict(disk.trees())["names dropped, data lost"]
        return {name: content for name, content in tree.items() if content is not None}

    def test_at_first_all_is_durable(self, disk: Disk) -> None:
        assert {name for name, _ in disk.trees()} == {
            f"names {n}, data {d}" for n in ("kept", "dropped") for d in ("kept", "lost", "zeroed")
        }
        assert all(tree == {"a": None, "a/old": b"old", "b": None} for _, tree in disk.trees())

    def test_fsync_of_a_new_file_does_not_make_its_name_last(self, disk: Disk) -> None:
        self.sync(disk, self.new(disk, "a/new", b"new"))

        assert self.dropped(disk) == {"a/old": b"old"}

    def test_fsync_of_a_folder_does_not_make_the_bytes_last(self, disk: Disk) -> None:
        self.new(disk, "a/new", b"new")
        self.sync(disk, "a")

        trees = dict(disk.trees())

        assert trees["names dropped, data lost"]["a/new"] == b""
        assert trees["names dropped, data zeroed"]["a/new"] == b"\0\0\0"
        assert trees["names dropped, data kept"]["a/new"] == b"new"

    def test_both_make_the_file_last(self, disk: Disk) -> None:
        self.sync(disk, self.new(disk, "a/new", b"new"))
        self.sync(disk, "a")

        assert all(tree["a/new"] == b"new" for _, tree in disk.trees())

    def test_fsync_of_the_parent_does_not_reach_down(self, disk: Disk) -> None:
        self.sync(disk, self.new(disk, "a/new", b"new"))
        self.sync(disk, "")

        assert self.dropped(disk) == {"a/old": b"old"}

    def test_what_is_written_after_an_fsync_is_lost(self, disk: Disk) -> None:
        inode = self.inodes["a/old"]
        disk.apply(Operation(1, "write", "a/old", inode=inode, offset=3, data=b"er", result=2))

        assert {tree["a/old"] for _, tree in disk.trees()} == {b"older", b"old", b"old\0\0"}

    def test_a_cut_that_was_not_fsynced_may_be_undone(self, disk: Disk) -> None:
        disk.apply(Operation(1, "ftruncate", "a/old", inode=self.inodes["a/old"], length=1))

        assert {tree["a/old"] for _, tree in disk.trees()} == {b"o", b"old"}

    def test_a_failed_fsync_is_final(self, disk: Disk) -> None:
        disk.apply(Operation(1, "write", "a/old", inode=self.inodes["a/old"], offset=3, data=b"er", result=2))
        self.sync(disk, "a/old", result=-1)
        self.sync(disk, "a/old")

        assert self.dropped(disk) == {"a/old": b"old"}

    def test_a_removal_is_undone_until_its_folder_is_fsynced(self, disk: Disk) -> None:
        disk.apply(Operation(1, "unlink", "a/old", inode=self.inodes["a/old"]))

        assert self.dropped(disk) == {"a/old": b"old"}
        self.sync(disk, "a")
        assert self.dropped(disk) == {}

    def test_a_rename_across_folders_lasts_when_the_new_folder_is_fsynced(self, disk: Disk) -> None:
        disk.apply(Operation(1, "rename", "a/old", "b/new"))

        assert self.dropped(disk) == {"a/old": b"old"}
        self.sync(disk, "a")
        assert self.dropped(disk) == {"a/old": b"old"}
        self.sync(disk, "b")
        assert self.dropped(disk) == {"b/new": b"old"}

    def test_a_rename_is_in_both_folders_or_in_none(self, disk: Disk) -> None:
        disk.apply(Operation(1, "rename", "a/old", "b/new"))

        assert {len(tree) for _, tree in disk.trees()} == {3}

    def test_a_name_in_a_new_folder_does_not_come_without_the_folder(self, disk: Disk) -> None:
        disk.apply(Operation(1, "mkdir", "a/new", inode=max(disk.nodes) + 1))
        disk.apply(Operation(2, "rename", "a/old", "a/new/old"))

        assert dict(disk.trees())["names kept only in a/new, data kept"].keys() == {"a", "a/new", "a/new/old", "b"}

    def test_a_name_that_was_given_anew_is_not_taken_by_an_older_rename(self, disk: Disk) -> None:
        disk.apply(Operation(1, "rename", "a/old", "b/new"))
        self.sync(disk, self.new(disk, "a/old", b"newer"))
        self.sync(disk, "a")
        self.sync(disk, "b")

        assert self.dropped(disk) == {"a/old": b"newer", "b/new": b"old"}

    def test_an_exchange_is_undone_as_a_whole(self, disk: Disk) -> None:
        self.sync(disk, self.new(disk, "a/new", b"new"))
        self.sync(disk, "a")
        disk.apply(Operation(1, "exchange", "a/old", "a/new"))

        assert self.dropped(disk) == {"a/old": b"old", "a/new": b"new"}
        self.sync(disk, "a")
        assert self.dropped(disk) == {"a/old": b"new", "a/new": b"old"}

    def test_one_folder_may_be_written_back_before_another(self, disk: Disk) -> None:
        self.sync(disk, self.new(disk, "a/new", b"new"))
        self.sync(disk, self.new(disk, "b/new", b"new"))

        trees = dict(disk.trees())

        assert trees["names kept only in a, data kept"].keys() == {"a", "a/new", "a/old", "b"}
        assert trees["names kept only in b, data kept"].keys() == {"a", "a/old", "b", "b/new"}

    def test_half_of_a_write_is_one_of_the_crashes(self, disk: Disk) -> None:
        operation = Operation(1, "write", "a/old", inode=self.inodes["a/old"], data=b"NEWER", result=5)

        torn = [crash.tree["a/old"] for crash in crashes(disk, [operation]) if crash.label == "torn"]

        assert torn == [b"NEd"]
