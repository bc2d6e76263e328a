"""Datasets whose parts were written by several writers."""

from __future__ import annotations

import shutil
import subprocess
import sys
import textwrap
from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recordkit as rk
from tests.storage import reading, ways

if TYPE_CHECKING:
    from pathlib import Path

IDS = {"id": "int64"}


def write(target: Path, part: int, parts: int, ids: list[Any], **options: Any) -> None:
    with rk.create(target, part=part, parts=parts, **{"schema": IDS, **options}) as writer:
        for number in ids:
            writer.write({"id": number})


class TestCommit:
    @settings(max_examples=30)
    @given(st.lists(st.integers(0, 7), min_size=1, max_size=5), st.data(), ways.compressions)
    def test_parts_written_in_any_order_follow_their_numbers(
        self, counts: list[int], data: st.DataObject, compression: Any
    ) -> None:
        order = data.draw(st.permutations(range(len(counts))))
        options: dict[str, Any] = {"compression": compression, "records_per_shard": 3, "sync": False}

        with ways.folder() as folder:
            for part in order:
                write(folder / "a", part, len(counts), [10 * part + n for n in range(counts[part])], **options)
            written = rk.commit(folder / "a", sync=False)
            found = reading.ids(folder / "a")
            names = [path.name for path in reading.files(folder / "a")]

        assert list(chain.from_iterable(found)) == [
            10 * part + n for part, count in enumerate(counts) for n in range(count)
        ]
        assert written.records == sum(counts)
        assert [name.split("-of-")[0] for name in names] == [f"a-{number:05d}" for number in range(len(names))]

    def test_parts_may_come_from_several_processes(self, tmp_path: Path) -> None:
        program = """
            import sys
            import recordkit as rk
            part = int(sys.argv[2])
            rk.write(sys.argv[1], [{"id": 10 * part + n} for n in range(part + 1)], {"id": "int64"}, part=part, parts=3)
        """
        command = [sys.executable, "-c", textwrap.dedent(program), str(tmp_path / "a")]
        children = [subprocess.Popen([*command, str(part)]) for part in (2, 0, 1)]
        assert [child.wait(timeout=60) for child in children] == [0, 0, 0]

        written = rk.commit(tmp_path / "a")

        assert str(written) == f"{tmp_path / 'a'}: 6 records in 3 files, {written.bytes} bytes"
        assert reading.ids(tmp_path / "a") == [[0], [10, 11], [20, 21, 22]]
        assert [path.name for path in tmp_path.iterdir()] == ["a"]

    def test_nothing_is_under_the_name_before(self, tmp_path: Path) -> None:
        write(tmp_path / "a", 0, 1, [1])

        assert [path.name for path in tmp_path.iterdir()] == [".a.recordkit"]

    def test_missing_parts_are_named(self, tmp_path: Path) -> None:
        write(tmp_path / "a", 2, 5, [1])
        write(tmp_path / "a", 0, 5, [1])

        with pytest.raises(rk.StorageError) as caught:
            rk.commit(tmp_path / "a")

        assert str(caught.value) == f"{tmp_path / 'a'}: expected 5 parts, found 2\n  Missing: 1, 3, 4."

    def test_of_many_missing_parts_some_are_named(self, tmp_path: Path) -> None:
        write(tmp_path / "a", 0, 100, [1])

        with pytest.raises(rk.StorageError, match=r"18, 19, 20 and 79 more\.$"):
            rk.commit(tmp_path / "a")

    def test_unfinished_parts_are_named_and_can_be_finished(self, tmp_path: Path) -> None:
        options: dict[str, Any] = {"records_per_shard": 2}
        write(tmp_path / "a", 0, 2, [1], **options)
        with suppress(ways.StopError), rk.create(tmp_path / "a", IDS, part=1, parts=2, **options) as writer:
            ways.break_off(writer, 2, 3, 4)

        with pytest.raises(rk.StorageError, match=r"parts are unfinished: 1\n  Write them with resume=True"):
            rk.commit(tmp_path / "a")
        with rk.create(tmp_path / "a", IDS, part=1, parts=2, resume=True, **options) as writer:
            writer.write_batch({"id": [2, 3, 4][writer.committed :]})
        rk.commit(tmp_path / "a")

        assert writer.committed == 2
        assert reading.ids(tmp_path / "a") == [[1], [2, 3], [4]]

    def test_a_part_that_is_being_written_is_waited_for(self, tmp_path: Path) -> None:
        write(tmp_path / "a", 0, 2, [1])
        with rk.create(tmp_path / "a", IDS, part=1, parts=2) as writer:
            writer.write({"id": 2})
            with pytest.raises(rk.TargetBusyError):
                rk.commit(tmp_path / "a")

        assert rk.commit(tmp_path / "a").records == 2

    @pytest.mark.parametrize(
        ("options", "name"),
        [
            ({"schema": {"id": "int32"}}, "schema"),
            ({"compression": "gzip"}, "compression"),
            ({"records_per_shard": 7}, "shard_bytes"),
            ({"metadata": {"by": "another"}}, "metadata"),
            ({"name": "other"}, "name"),
        ],
    )
    def test_parts_that_do_not_go_together_are_named(self, tmp_path: Path, options: dict[str, Any], name: str) -> None:
        write(tmp_path / "a", 0, 2, [1])
        write(tmp_path / "a", 1, 2, [2], **options)

        with pytest.raises(rk.StorageError) as caught:
            rk.commit(tmp_path / "a")

        message = f"{tmp_path / 'a'}: part 1 was written with another {name} than part 0\n  Write it again."
        assert str(caught.value) == message

    def test_a_part_without_rows_need_not_know_the_schema(self, tmp_path: Path) -> None:
        write(tmp_path / "a", 0, 3, [], schema=None)
        write(tmp_path / "a", 1, 3, [1], schema=None)
        write(tmp_path / "a", 2, 3, [], schema=None)

        rk.commit(tmp_path / "a")

        assert reading.ids(tmp_path / "a") == [[], [1], []]

    def test_parts_may_announce_different_numbers_of_rows(self, tmp_path: Path) -> None:
        for part in range(2):
            rk.write(tmp_path / "a", [{"id": part}] * (part + 3), shards=2, part=part, parts=2)

        rk.commit(tmp_path / "a")

        assert reading.ids(tmp_path / "a") == [[0, 0], [0], [1, 1], [1, 1]]
        assert "rows" not in reading.manifest(tmp_path / "a")["lineage"][0]["arguments"]

    def test_quarantines_are_told_part_by_part(self, tmp_path: Path) -> None:
        for part in range(2):
            write(tmp_path / "a", part, 2, [1, f"bad in {part}"], on_error="skip")

        written = rk.commit(tmp_path / "a")

        assert written.skipped == 2
        assert [bad.row for bad in rk.quarantined(tmp_path / "a")] == [{"id": "bad in 0"}, {"id": "bad in 1"}]

    def test_a_second_commit_finds_nothing(self, tmp_path: Path) -> None:
        write(tmp_path / "a", 0, 1, [1])
        rk.commit(tmp_path / "a")

        with pytest.raises(rk.StorageError, match=r"there are no parts to commit\n  Write them with create"):
            rk.commit(tmp_path / "a")

        assert reading.ids(tmp_path / "a") == [[1]]

    def test_another_number_of_parts_is_refused(self, tmp_path: Path) -> None:
        write(tmp_path / "a", 0, 2, [1])

        with pytest.raises(rk.StorageError, match=r"an unfinished run has 2 parts, and this writer is one of 3\n"):
            rk.create(tmp_path / "a", IDS, part=0, parts=3)

    def test_parts_of_two_runs_are_not_mixed(self, tmp_path: Path) -> None:
        write(tmp_path / "a", 0, 2, [1])
        staging = tmp_path / ".a.recordkit"
        shutil.copytree(staging / "part-00000-of-00002", staging / "part-00001-of-00003")

        with pytest.raises(rk.StorageError, match=r"some parts say there are 2 parts, others say 3\n  .*discard"):
            rk.commit(tmp_path / "a")

    def test_a_dataset_is_not_overwritten_unasked(self, tmp_path: Path) -> None:
        rk.write(tmp_path / "a", [{"id": 1}])

        with pytest.raises(rk.TargetExistsError):
            rk.create(tmp_path / "a", IDS, part=0, parts=2)

    def test_parts_replace_a_dataset_when_told_to(self, tmp_path: Path) -> None:
        rk.write(tmp_path / "a", [{"id": 1}])

        for part in range(2):
            write(tmp_path / "a", part, 2, [part + 5], overwrite=True)
        during = reading.ids(tmp_path / "a")
        rk.commit(tmp_path / "a")

        assert during == [[1]]
        assert reading.ids(tmp_path / "a") == [[5], [6]]
