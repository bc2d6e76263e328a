"""What an interrupted run left, and going on with it."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recordkit as rk
from recordkit.storage.staging import _parts
from recordkit.storage.write import _shards, _writer
from tests.storage import reading, ways
from tests.storage.ways import StopError

SCHEMA = rk.Schema({"id": "int64", "text": "string"})

# Every seventh or so does not fit.
row = st.one_of(
    *[st.fixed_dictionaries({"id": st.integers(-9, 9), "text": st.text(max_size=30)})] * 6,
    st.fixed_dictionaries({"id": st.just("seven"), "text": st.just("")}),
)


def write(target: Path, rows: list[Any], stops: list[int], /, **options: Any) -> None:
    """Write rows, break off before each of the rows whose numbers are given, and go on each time."""
    for stop in [*(stop for stop in stops if stop < len(rows)), None]:
        with suppress(StopError), rk.create(target, resume=True, **options) as writer:
            for number in range(writer.committed, len(rows)):
                if stop is not None and number >= stop:
                    raise StopError
                writer.write(rows[number])


def mend(error: rk.SchemaError, row: Any, number: int) -> dict[str, Any] | None:
    return {"id": number, "text": "mended"} if number % 2 else None


class TestResume:
    @settings(max_examples=60)
    @given(
        st.lists(row, max_size=25),
        st.lists(st.integers(0, 25), max_size=3),
        ways.compressions,
        st.data(),
        st.booleans(),
    )
    def test_a_run_that_broke_off_anywhere_ends_as_if_it_had_not(
        self, rows: list[Any], stops: list[int], compression: Any, data: st.DataObject, threads: bool
    ) -> None:
        options: dict[str, Any] = {
            "schema": SCHEMA,
            "compression": compression,
            "on_error": data.draw(st.sampled_from(["skip", mend])),
            "workers": 3 if threads else 1,
            "sync": False,
            **data.draw(ways.shardings(len(rows))),
        }

        with TemporaryDirectory() as folder, mock.patch.object(_shards, "MEMBER_BYTES", 150):
            write(Path(folder) / "broken" / "data", rows, stops, **options)
            write(Path(folder) / "whole" / "data", rows, [], **options)

            assert reading.tree(Path(folder) / "broken") == reading.tree(Path(folder) / "whole")

    @settings(max_examples=30)
    @given(st.lists(st.integers(0, 25), max_size=3), ways.compressions, st.data())
    def test_rows_that_raise_leave_no_trace(self, stops: list[int], compression: Any, data: st.DataObject) -> None:
        rows = [{"id": number, "text": "x" * number} for number in range(25)]
        options: dict[str, Any] = {
            "schema": SCHEMA,
            "compression": compression,
            "sync": False,
            **data.draw(ways.shardings(25)),
        }

        with TemporaryDirectory() as folder, mock.patch.object(_shards, "MEMBER_BYTES", 150):
            write(Path(folder) / "broken" / "data", rows, stops, **options)
            write(Path(folder) / "whole" / "data", rows, [], **options)

            assert reading.tree(Path(folder) / "broken") == reading.tree(Path(folder) / "whole")

    @settings(max_examples=60)
    @given(st.lists(row, max_size=25), st.integers(0, 6), ways.compressions, st.data())
    def test_a_shard_that_could_not_be_finished_is_written_again(
        self, rows: list[Any], failing: int, compression: Any, data: st.DataObject
    ) -> None:
        options: dict[str, Any] = {
            "schema": SCHEMA,
            "compression": compression,
            "on_error": "skip",
            "sync": False,
            **data.draw(ways.shardings(len(rows))),
        }
        add = _parts.StagedPart.add

        with TemporaryDirectory() as folder, mock.patch.object(_shards, "MEMBER_BYTES", 150):
            with mock.patch.object(_parts.StagedPart, "add", lambda part, shard: fail_at(failing, add, part, shard)):
                write(Path(folder) / "broken" / "data", rows, [], **options)
            if not (Path(folder) / "broken" / "data").exists():
                write(Path(folder) / "broken" / "data", rows, [], **options)
            write(Path(folder) / "whole" / "data", rows, [], **options)

            assert reading.tree(Path(folder) / "broken") == reading.tree(Path(folder) / "whole")

    @pytest.mark.parametrize("compression", [None, "gzip", "zlib"])
    def test_a_bad_row_behind_a_record_is_not_counted_with_the_shard_before_it(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compression: Any
    ) -> None:
        add = _parts.StagedPart.add
        monkeypatch.setattr(_parts.StagedPart, "add", lambda *args: fail_at(1, add, *args))
        options: dict[str, Any] = {"records_per_shard": 2, "compression": compression, "on_error": "skip"}
        with suppress(StopError), rk.create(tmp_path / "a", {"id": "int64"}, **options) as writer:
            writer.write_batch({"id": [0, 1, None, 3, None]})
        monkeypatch.undo()

        with rk.create(tmp_path / "a", {"id": "int64"}, resume=True, **options) as writer:
            writer.write_batch({"id": [0, 1, None, 3, None][writer.committed :]})

        assert writer.committed == 3
        assert reading.ids(tmp_path / "a") == [[0, 1], [3]]
        assert [bad.number for bad in rk.quarantined(tmp_path / "a")] == [2, 4]

    @pytest.mark.parametrize("stop", [1, 3, 5, 7, 9])
    def test_the_first_rows_define_the_same_schema(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop: int
    ) -> None:
        monkeypatch.setattr(_writer, "FIRST_ROWS", 6)
        rows = [{"id": number} | ({"note": "seen"} if number == 4 else {}) for number in range(10)]

        write(tmp_path / "broken" / "data", rows, [stop], records_per_shard=2)
        write(tmp_path / "whole" / "data", rows, [], records_per_shard=2)

        assert reading.tree(tmp_path / "broken") == reading.tree(tmp_path / "whole")

    def test_full_shards_are_not_written_again(self, tmp_path: Path) -> None:
        with suppress(StopError), rk.create(tmp_path / "a", {"id": "int64"}, records_per_shard=3) as writer:
            writer.write_batch({"id": range(7)})
            raise StopError

        with rk.create(tmp_path / "a", {"id": "int64"}, records_per_shard=3, resume=True) as writer:
            committed, taken = writer.committed, writer.rows
            writer.write_batch({"id": range(6, 8)})

        assert (committed, taken) == (6, 6)
        assert reading.ids(tmp_path / "a") == [[0, 1, 2], [3, 4, 5], [6, 7]]

    def test_with_nothing_to_resume_a_run_just_starts(self, tmp_path: Path) -> None:
        with rk.create(tmp_path / "a", {"id": "int64"}, resume=True) as writer:
            writer.write({"id": 1})

        assert writer.committed == 0
        assert reading.ids(tmp_path / "a") == [[1]]

    def test_dealt_rows_start_anew(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        add = _parts.StagedPart.add
        monkeypatch.setattr(_parts.StagedPart, "add", lambda *args: fail_at(1, add, *args))
        with pytest.raises(StopError), rk.create(tmp_path / "a", {"id": "int64"}, shards=3) as writer:
            writer.write_batch({"id": range(7)})
        monkeypatch.undo()

        with rk.create(tmp_path / "a", {"id": "int64"}, shards=3, resume=True) as writer:
            writer.write_batch({"id": range(7)})

        assert writer.committed == 0
        assert reading.ids(tmp_path / "a") == [[0, 3, 6], [1, 4], [2, 5]]

    def test_a_call_that_writes_columns_goes_on_behind_those_written(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        add = _parts.StagedPart.add
        monkeypatch.setattr(_parts.StagedPart, "add", lambda *args: fail_at(1, add, *args))
        columns = {"id": range(7), "deep": {"note": ["a", "b", "c", "d", "e", "f", "g"]}}
        options: dict[str, Any] = {"records_per_shard": 3, "resume": True}
        with pytest.raises(StopError):
            rk.write(tmp_path / "a", columns, {"id": "int64", "deep": {"note": "string"}}, **options)
        monkeypatch.undo()

        written = rk.write(tmp_path / "a", columns, {"id": "int64", "deep": {"note": "string"}}, **options)

        assert written.records == 7
        assert reading.ids(tmp_path / "a") == [[0, 1, 2], [3, 4, 5], [6]]
        assert [list(batch["deep/note"]) for batch in reading.batches(tmp_path / "a")][1] == ["d", "e", "f"]


def fail_at(number: int, add: Any, part: Any, shard: Any) -> None:
    if shard.name.startswith(f"shard-{number:05d}"):
        raise StopError
    add(part, shard)


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """A target of which two shards of two rows are finished."""
    with suppress(StopError), rk.create(tmp_path / "a", {"id": "int64"}, records_per_shard=2) as writer:
        writer.write_batch({"id": range(5)})
        raise StopError
    return tmp_path / "a"


class TestLeftovers:
    def test_nothing_is_under_the_final_name(self, broken: Path) -> None:
        assert [path.name for path in broken.parent.iterdir()] == [".a.recordkit"]

    def test_a_run_without_finished_shards_leaves_nothing(self, tmp_path: Path) -> None:
        with suppress(StopError), rk.create(tmp_path / "a", {"id": "int64"}) as writer:
            writer.write({"id": 1})
            raise StopError

        assert list(tmp_path.iterdir()) == []

    def test_starting_anew_names_both_ways_out(self, broken: Path) -> None:
        with pytest.raises(rk.StorageError) as caught:
            rk.create(broken, {"id": "int64"}, records_per_shard=2)

        assert str(caught.value) == (
            f"{broken}: an interrupted run left 4 rows in 2 finished shards\n"
            f"  Continue it: resume=True. Remove it: recordkit.discard({str(broken)!r})."
        )

    def test_discard_removes_it_and_says_so(self, broken: Path) -> None:
        assert rk.discard(broken)

        assert list(broken.parent.iterdir()) == []
        assert not rk.discard(broken)

    def test_discard_leaves_a_dataset_alone(self, tmp_path: Path) -> None:
        rk.write(tmp_path / "a", [{"id": 1}])

        assert not rk.discard(tmp_path / "a")

        assert reading.ids(tmp_path / "a") == [[1]]

    def test_discard_refuses_while_a_writer_is_at_work(self, tmp_path: Path) -> None:
        with rk.create(tmp_path / "a", {"id": "int64"}) as writer:
            with pytest.raises(rk.TargetBusyError):
                rk.discard(tmp_path / "a")
            writer.write({"id": 1})

        assert reading.ids(tmp_path / "a") == [[1]]

    def test_discard_that_was_refused_lets_go_of_the_other_parts(self, tmp_path: Path) -> None:
        with rk.create(tmp_path / "a", {"id": "int64"}, part=0, parts=2) as writer:
            writer.write({"id": 1})
        with rk.create(tmp_path / "a", {"id": "int64"}, part=1, parts=2), pytest.raises(rk.TargetBusyError):
            rk.discard(tmp_path / "a")

        assert rk.discard(tmp_path / "a")

    def test_overwrite_discards_it(self, broken: Path) -> None:
        with rk.create(broken, {"id": "int64"}, overwrite=True) as writer:
            writer.write({"id": 9})

        assert writer.committed == 0
        assert reading.ids(broken) == [[9]]
        assert [path.name for path in broken.parent.iterdir()] == ["a"]

    def test_another_schema_is_refused_and_told_apart(self, broken: Path) -> None:
        with pytest.raises(rk.SchemaError) as caught:
            rk.create(broken, {"id": "int32"}, records_per_shard=2, resume=True)

        first, second, third = str(caught.value).split("\n")
        assert first == f"{broken}: the interrupted run has another schema"
        assert "id" in second
        assert "int32" in second
        assert third == f"  Resume with the same schema, or remove the run: recordkit.discard({str(broken)!r})."

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"records_per_shard": 3}, "shard_records=2, and now it is 3"),
            ({"records_per_shard": 2, "compression": "gzip"}, "compression=None, and now it is 'gzip'"),
            ({"shard_size": "1GB"}, "shard_bytes=None, and now it is 1000000000"),
            ({"records_per_shard": 2, "name": "train"}, "name='a', and now it is 'train'"),
        ],
    )
    def test_other_options_are_refused_by_name(self, broken: Path, options: dict[str, Any], words: str) -> None:
        with pytest.raises(rk.StorageError) as caught:
            rk.create(broken, {"id": "int64"}, resume=True, **options)

        assert str(caught.value) == (
            f"{broken}: the interrupted run had {words}\n"
            f"  Resume with the same value, or remove the run: recordkit.discard({str(broken)!r})."
        )

    def test_what_was_refused_can_still_be_resumed(self, broken: Path) -> None:
        with pytest.raises(rk.StorageError):
            rk.create(broken, {"id": "int64"}, resume=True)

        with rk.create(broken, {"id": "int64"}, records_per_shard=2, resume=True) as writer:
            writer.write_batch({"id": range(4, 6)})

        assert reading.ids(broken) == [[0, 1], [2, 3], [4, 5]]

    def test_the_schema_need_not_be_said_again(self, broken: Path) -> None:
        with rk.create(broken, records_per_shard=2, resume=True) as writer:
            schema = writer.schema
            writer.write({"id": 4})

        assert schema == rk.Schema({"id": "int64"})

    def test_damaged_notes_are_an_error_in_words(self, broken: Path) -> None:
        (broken.parent / ".a.recordkit/part-00000-of-00001/run.json").write_text("{")

        with pytest.raises(
            rk.StorageError, match=r"run\.json: this is no sound run of a writer: .*\n.*recordkit\.discard"
        ):
            rk.create(broken, {"id": "int64"}, records_per_shard=2, resume=True)

        assert rk.discard(broken)


class TestLock:
    def test_the_holder_is_named(self, tmp_path: Path) -> None:
        lock = _parts.Lock(tmp_path / "lock", tmp_path / "a")

        with pytest.raises(rk.TargetBusyError, match=r"a: another writer is using it: process \d+ on "):
            _parts.Lock(tmp_path / "lock", tmp_path / "a")

        lock.release()
        _parts.Lock(tmp_path / "lock", tmp_path / "a").release()
