"""Sources: functions, arrays, constants and other datasets that give the values of a new field."""

from __future__ import annotations

import concurrent.futures
import datetime
import pickle
import traceback
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordkit.columns import Batch, BytesColumn, Ragged
from recordkit.dataset import open as open_dataset
from recordkit.errors import SchemaError
from recordkit.schema import Field, Schema, TensorProto
from recordkit.storage.write import write
from recordkit.tools.fields._sources import Aligned, Bound, Computed, RowSpan, bind

if TYPE_CHECKING:
    from pathlib import Path

    from recordkit.tools._rewrite import Failure

SCHEMA = Schema({"id": "int64", "name": "string", "note": "string?"})


def batch_of(start: int, stop: int) -> Batch:
    numbers = range(start, stop)
    rows = [{"id": n, "name": "n" * n, "note": "even" if n % 2 == 0 else None} for n in numbers]
    return SCHEMA.decode(SCHEMA.encode_rows(rows))


def read_back(bound: Bound, first: int, count: int, batch: Batch | None = None, **more: Any) -> list[Any]:
    """What a reader finds once the values are written."""
    column, valid = bound.values(RowSpan(first, count, batch, **more))
    schema = Schema({bound.name: bound.field})
    masks = {} if valid is None else {bound.name: valid}
    found = schema.decode(schema.encode({bound.name: column}, valid=masks))
    rows = [row[bound.name] for row in found.rows()]
    return [_plain(row) for row in rows]


def _plain(value: Any) -> Any:
    if isinstance(value, BytesColumn | Ragged):
        return value.to_list()
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def length_of_name(row: dict[str, Any]) -> int:
    return len(row["name"])


def odd_ones_fail(row: dict[str, Any]) -> int:
    if row["id"] % 2:
        message = "bad header"
        raise ValueError(message)
    return int(row["id"])


def batch_with_seven_fails(batch: Batch) -> Any:
    if 7 in batch["id"]:
        message = "seven"
        raise ValueError(message)
    return batch["id"] * 2


class TestAFunctionOfARow:
    def test_it_sees_the_fields_it_reads_and_no_others(self) -> None:
        seen: list[dict[str, Any]] = []
        bound = bind("x", Computed("int64?", seen.append, reads=["note", "id"]), SCHEMA, 10)

        assert read_back(bound, 4, 2, batch_of(4, 6)) == [None, None]
        assert bound.reads == ("note", "id")
        assert seen == [{"note": "even", "id": 4}, {"note": None, "id": 5}]

    def test_without_reads_it_sees_all(self) -> None:
        bound = bind("x", Computed("string", lambda row: "".join(row)), SCHEMA, 10)

        assert bound.reads == SCHEMA.names
        assert read_back(bound, 0, 1, batch_of(0, 1)) == ["idnamenote"]

    def test_none_is_a_missing_value(self) -> None:
        bound = bind("x", Computed("string?", lambda row: row["note"], reads="note"), SCHEMA, 10)

        column, valid = bound.values(RowSpan(0, 3, batch_of(0, 3)))

        assert column == ["even", None, "even"]
        assert valid is not None
        assert valid.tolist() == [True, False, True]

    def test_none_for_a_field_that_is_never_missing_is_left_for_the_schema_to_refuse(self) -> None:
        bound = bind("x", Computed("string", lambda row: row["note"], reads=["note"]), SCHEMA, 10)

        with pytest.raises(SchemaError, match="x: expected string, found None"):
            read_back(bound, 0, 3, batch_of(0, 3))

    def test_it_may_read_nothing(self) -> None:
        bound = bind("x", Computed("int64", lambda row: len(row), reads=[]), None, 10)

        assert bound.reads == ()
        assert read_back(bound, 0, 3) == [0, 0, 0]

    @pytest.mark.parametrize("dtype", ["float32[2]", Field("float32[2]", lossy=True), TensorProto("float32")])
    def test_its_type_is_text_or_a_field(self, dtype: Any) -> None:
        bound = bind("x", Computed(dtype, lambda row: [row["id"], 0.5], reads=["id"]), SCHEMA, 10)

        values = [np.array(value, np.float32) for value in bound.values(RowSpan(3, 1, batch_of(3, 4)))[0]]
        assert read_back(bind("x", (dtype, values), None, 1), 0, 1) == [[3.0, 0.5]]

    def test_an_unknown_field_to_read_is_refused_with_a_guess(self) -> None:
        with pytest.raises(SchemaError) as caught:
            bind("height", Computed("int64", length_of_name, reads=["nmae"]), SCHEMA, 10)

        assert str(caught.value) == "height: reads 'nmae', which is not in the dataset\n  Did you mean 'name'?"

    def test_records_without_fields_have_nothing_to_read(self) -> None:
        with pytest.raises(SchemaError, match="height: reads 'name', and the records have no fields"):
            bind("height", Computed("int64", length_of_name, reads=["name"]), None, 10)

    def test_a_type_that_is_none_is_refused_with_the_name_of_the_field(self) -> None:
        with pytest.raises(SchemaError, match=r"height: 'flaot32' is not a dtype(.|\n)*float32"):
            bind("height", Computed("flaot32", length_of_name), SCHEMA, 10)

    def test_what_is_no_function_is_refused(self) -> None:
        with pytest.raises(SchemaError, match="height: expected a function, found str"):
            bind("height", Computed("int64", "name"), SCHEMA, 10)  # type: ignore[arg-type]


class TestAFunctionThatFails:
    def test_the_error_names_field_and_record_and_has_the_cause(self) -> None:
        bound = bind("height", Computed("int64", odd_ones_fail, reads=["id"]), SCHEMA, 2000)

        with pytest.raises(SchemaError) as caught:
            bound.values(RowSpan(1233, 2, Batch({"id": np.array([2, 3])}, 2)))

        assert str(caught.value) == (
            "height: the function failed on record 1234: ValueError: bad header\n"
            '  Its traceback is above; on_error="skip" leaves the field missing if its type ends in ?'
        )
        assert (caught.value.field, caught.value.record) == ("height", 1234)
        assert isinstance(caught.value.__cause__, ValueError)
        assert "odd_ones_fail" in "".join(traceback.format_exception(caught.value))

    def test_skipped_the_field_is_missing_and_the_failure_is_told(self) -> None:
        bound = bind("height", Computed("int64?", odd_ones_fail, reads=["id"]), SCHEMA, 2000)
        failures: list[Failure] = []

        found = read_back(bound, 4, 4, batch_of(4, 8), on_error="skip", failures=failures)

        assert found == [4, None, 6, None]
        assert failures == [(5, "ValueError: bad header"), (7, "ValueError: bad header")]

    def test_skipping_needs_a_field_that_may_be_missing(self) -> None:
        bound = bind("height", Computed("int64", odd_ones_fail, reads=["id"]), SCHEMA, 2000)

        with pytest.raises(
            SchemaError, match=r"failed on record 5(.|\n)*needs a type that ends in \?, such as 'int64\?'"
        ):
            bound.values(RowSpan(4, 4, batch_of(4, 8), on_error="skip"))

    def test_a_long_message_is_cut(self) -> None:
        def fails(row: Any) -> None:
            raise ValueError("payload " * 1000 + "\nmore")

        with pytest.raises(SchemaError) as caught:
            bind("x", Computed("int64", fails, reads=[]), SCHEMA, 1).values(RowSpan(0, 1, None))

        assert len(str(caught.value)) < 400

    def test_an_interrupt_is_not_skipped(self) -> None:
        def stops(row: Any) -> None:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            bind("x", Computed("int64?", stops, reads=[]), SCHEMA, 1).values(RowSpan(0, 1, None, on_error="skip"))

    def test_damage_in_the_data_is_no_failure_of_the_function(self) -> None:
        def broken() -> Any:
            message = "id: expected int8, found 300"
            raise SchemaError(message)

        bound = bind("x", Computed("int64?", lambda row: 1, reads=["id"]), SCHEMA, 1)

        with pytest.raises(SchemaError, match=r"^id: expected int8, found 300$"):
            bound.values(RowSpan(0, 1, Batch({"id": broken}, 1), on_error="skip"))

    @pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of forking beside threads that others left
    def test_in_another_process_the_traceback_is_still_told(self) -> None:
        bound = bind("height", Computed("int64", odd_ones_fail, reads=["id"]), SCHEMA, 2000)
        batch = Batch({"id": np.array([3])}, 1)

        with concurrent.futures.ProcessPoolExecutor(1, mp_context=get_context("fork")) as pool:
            error = pool.submit(bound.values, RowSpan(3, 1, batch)).exception()

        assert isinstance(error, SchemaError)
        assert error.record == 3
        assert "in odd_ones_fail" in "".join(traceback.format_exception(error))


class TestAFunctionOfABatch:
    @pytest.mark.parametrize(
        ("dtype", "fn", "expected"),
        [
            ("int64", lambda batch: batch["id"] * 2, [8, 10]),
            ("string", lambda batch: batch["name"], ["nnnn", "nnnnn"]),
            ("int64[?]", lambda batch: Ragged(np.arange(3), (np.array([0, 1, 3]),)), [[0], [1, 2]]),
            ("string?", lambda batch: ["a", None], ["a", None]),
            ("float32[2]", lambda batch: np.ones((len(batch), 2), np.float32), [[1, 1], [1, 1]]),
            ("string?", lambda batch: np.array(["a", None], object), ["a", None]),
        ],
    )
    def test_it_returns_a_column(self, dtype: str, fn: Any, expected: list[Any]) -> None:
        bound = bind("x", Computed(dtype, fn, reads=["id", "name"], batched=True), SCHEMA, 10)

        assert read_back(bound, 4, 2, batch_of(4, 6)) == expected

    @pytest.mark.parametrize("wrong", [np.arange(3), [1], 5, "ab", b"ab", None, np.array(1), {"a": 1, "b": 2}])
    def test_anything_but_a_row_a_record_is_refused(self, wrong: Any) -> None:
        bound = bind("x", Computed("int64?", lambda batch: wrong, reads=["id"], batched=True), SCHEMA, 10)

        with pytest.raises(SchemaError, match="x: expected 2 rows for a batch of 2 records, found"):
            bound.values(RowSpan(4, 2, batch_of(4, 6), on_error="skip"))

    def test_a_failure_names_the_records(self) -> None:
        bound = bind("x", Computed("int64", batch_with_seven_fails, reads=["id"], batched=True), SCHEMA, 10)

        with pytest.raises(SchemaError, match="x: the function failed on records 4 to 8: ValueError: seven"):
            bound.values(RowSpan(4, 5, batch_of(4, 9)))

    def test_skipping_leaves_out_only_the_records_that_fail_by_themselves(self) -> None:
        bound = bind("x", Computed("int64?", batch_with_seven_fails, reads=["id"], batched=True), SCHEMA, 10)
        failures: list[Failure] = []

        found = read_back(bound, 3, 6, batch_of(3, 9), on_error="skip", failures=failures)

        assert found == [6, 8, 10, 12, None, 16]
        assert failures == [(7, "ValueError: seven")]

    def test_it_is_not_called_for_no_records(self) -> None:
        bound = bind("x", Computed("int64", lambda batch: batch["id"][0], reads=["id"], batched=True), SCHEMA, 10)

        assert read_back(bound, 4, 0, batch_of(4, 4)) == []

    @given(st.sets(st.integers(0, 20)))
    def test_skipping_by_halves_is_the_same_as_one_by_one(self, bad: set[int]) -> None:
        def fails(batch: Batch) -> Any:
            if bad & set(batch["id"].tolist()):
                raise ValueError
            return batch["name"]

        bound = bind("x", Computed("string?", fails, reads=["id", "name"], batched=True), SCHEMA, 21)
        failures: list[Failure] = []

        found = read_back(bound, 0, 21, batch_of(0, 21), on_error="skip", failures=failures)

        assert found == [None if n in bad else "n" * n for n in range(21)]
        assert failures == [(n, "ValueError") for n in sorted(bad)]


class TestArraysAndLists:
    @pytest.mark.parametrize(
        ("source", "field"),
        [
            (np.arange(5), "int64"),
            (np.ones((5, 2, 3), np.float32), "float32[2,3]"),
            (np.array(["a", "bb", "c", "d", "e"]), "string"),
            ([1, 2, 3, 4, 5], "int64"),
            (["a", None, "c", None, "e"], "string?"),
            ([[1], [2, 3], [], [4], [5]], "int64[?]"),
            (range(5), "int64"),
            (np.array([1, None, 3, 4, 5], object), "int64?"),
            (BytesColumn.of([b"a", b"bb", b"", b"d", b"e"]), "bytes"),
            (Ragged(np.arange(7), (np.array([0, 2, 2, 3, 6, 7]),)), "int64[?]"),
            (pd.Series([1, 2, 3, 4, 5]), "int64"),
            (pd.Series(["a", None, "c", "d", "e"]), "string?"),
            (pl.Series(["a", None, "c", "d", "e"]), "string?"),
            (pa.array([[1], [2], None, [4, 4], []]), "int64[?]?"),
            (pa.chunked_array([[1.5, 2], [3, 4, 5]]), "float64"),
        ],
    )
    def test_the_type_is_told_from_the_values_and_any_part_can_be_had(self, source: Any, field: str) -> None:
        bound = bind("x", source, None, 5)
        whole = read_back(bound, 0, 5)

        assert (bound.name, str(bound.field), bound.reads) == ("x", field, ())
        assert len(whole) == 5
        for first in range(5):
            for count in range(6 - first):
                assert read_back(bound, first, count) == whole[first : first + count]

    def test_the_type_can_be_declared(self) -> None:
        bound = bind("x", ("float32[?]", [[1.5], [], [2, 3]]), None, 3)

        assert read_back(bound, 0, 3) == [[1.5], [], [2, 3]]
        assert bound.field == Field("float32[?]")

    @pytest.mark.parametrize("source", [np.arange(9_999), list(range(9_999)), ("int32", np.arange(9_999))])
    def test_another_length_is_refused(self, source: Any) -> None:
        with pytest.raises(SchemaError) as caught:
            bind("height", source, SCHEMA, 10_000)

        assert str(caught.value) == "height: expected 10,000 rows, as many as the dataset has, found 9,999"

    def test_one_array_for_all_is_explained(self) -> None:
        with pytest.raises(SchemaError, match=r"np.broadcast_to\(value, \(10, 3\)\)"):
            bind("x", ("float32[3]", np.zeros(3, np.float32)), None, 10)

    def test_nothing_is_copied_but_what_is_asked_for(self) -> None:
        array = np.arange(1_000)
        text = BytesColumn.of(["abc"] * 1_000)

        assert np.shares_memory(bind("x", array, None, 1_000).values(RowSpan(10, 5, None))[0], array)
        assert np.shares_memory(bind("x", text, None, 1_000).values(RowSpan(10, 5, None))[0].data, text.data)

    def test_a_memory_map_stays_one_and_another_process_maps_it_again(self, tmp_path: Path) -> None:
        np.save(tmp_path / "big.npy", np.arange(100_000, dtype=np.float32).reshape(-1, 2))
        bound = bind("x", np.load(tmp_path / "big.npy", mmap_mode="r"), None, 50_000)

        packed = pickle.dumps(bound)
        column, _ = pickle.loads(packed).values(RowSpan(7, 2, None))

        assert isinstance(bound.values(RowSpan(7, 2, None))[0], np.memmap)
        assert isinstance(column, np.memmap)
        assert column.tolist() == [[14, 15], [16, 17]]
        assert len(packed) < 2_000

    def test_a_part_of_a_memory_map_is_pickled_as_what_it_holds(self, tmp_path: Path) -> None:
        np.save(tmp_path / "big.npy", np.arange(100))
        bound = bind("x", np.load(tmp_path / "big.npy", mmap_mode="r")[50:], None, 50)

        assert pickle.loads(pickle.dumps(bound)).values(RowSpan(0, 2, None))[0].tolist() == [50, 51]

    def test_an_array_on_a_disk_is_read_as_it_is_cut(self) -> None:
        class OnDisk:
            dtype, shape = np.dtype("int16"), (1_000_000, 4)
            asked: list[slice] = []

            def __len__(self) -> int:
                return self.shape[0]

            def __getitem__(self, rows: slice) -> Any:
                self.asked.append(rows)
                return np.zeros((rows.stop - rows.start, 4), self.dtype)

        bound = bind("x", OnDisk(), None, 1_000_000)

        assert str(bound.field) == "int16[4]"
        assert read_back(bound, 5, 1) == [[0, 0, 0, 0]]
        assert OnDisk.asked == [slice(5, 6)]

    @pytest.mark.parametrize(
        ("source", "message"),
        [
            ((1, 2, 3), r"x: a tuple is a pair \(type, values\)"),
            (("flaot32", [1, 2, 3]), "x: 'flaot32' is not a dtype"),
            (("int64", Computed("int64", length_of_name)), "x: Computed has a type of its own"),
            ({"a": [1, 2, 3]}, r"x: a dict gives no values\n  A table is joined by a key"),
            (pd.DataFrame({"a": [1, 2, 3]}), r"x: a DataFrame gives no values\n  A table is joined by a key"),
            (pa.table({"a": [1, 2, 3]}), r"x: a Table gives no values\n  A table is joined by a key"),
            (length_of_name, r"x: a function gives no values\n  A function needs a type"),
            ({1, 2, 3}, "x: a set gives no values"),
            (np.ma.masked_array([1, 2, 3], [False, True, False]), "x: found a masked array"),
            (np.zeros(3, "i4,i4"), "x: NumPy's"),
            ([None, None, None], "x: None in every row, so its type is unknown"),
            ([1, "a", 2], "x: int64 and string in one field"),
        ],
    )
    def test_what_gives_no_values_is_refused_in_words(self, source: Any, message: str) -> None:
        with pytest.raises(SchemaError, match=message):
            bind("x", source, None, 3)


class TestOneValueForAll:
    @pytest.mark.parametrize(
        ("source", "field", "value"),
        [
            (7, "int64", 7),
            (True, "bool", True),
            (0.5, "float32", 0.5),
            (np.float64(0.1), "float64", 0.1),
            (np.array(3, np.uint8), "uint8", 3),
            ("train", "string", "train"),
            ("", "string", ""),
            (b"\x00\xff", "bytes", b"\x00\xff"),
            (datetime.date(2024, 2, 29), "datetime64:D", datetime.date(2024, 2, 29)),
            (("float64", 0.1), "float64", 0.1),
            (("int8?", 5), "int8?", 5),
            (("string?", None), "string?", None),
        ],
    )
    def test_every_record_has_it(self, source: Any, field: str, value: Any) -> None:
        bound = bind("x", source, None, 1_000_000_000)

        assert str(bound.field) == field
        assert read_back(bound, 999, 3) == [value] * 3
        assert read_back(bound, 0, 0) == []

    def test_it_is_checked_at_once(self) -> None:
        with pytest.raises(SchemaError, match="x: expected uint8, found 300"):
            bind("x", ("uint8", 300), None, 10)

    @pytest.mark.parametrize("source", [None, ("string", None)])
    def test_nothing_for_all_needs_a_type_that_may_be_missing(self, source: Any) -> None:
        with pytest.raises(SchemaError, match="x: None for every record needs a type"):
            bind("x", source, None, 10)


class TestOtherDatasets:
    @pytest.fixture
    def other(self, tmp_path: Path) -> Any:
        rows = [{"height": n, "note": None if n % 3 else f"n{n}"} for n in range(100)]
        write(tmp_path / "other.tfrecord", rows, schema=Schema({"height": "int64", "note": "string?"}))
        return open_dataset(tmp_path / "other.tfrecord")

    def test_the_field_of_the_same_name_is_taken(self, other: Any) -> None:
        bound = bind("height", other, SCHEMA, 100)

        assert (str(bound.field), bound.reads) == ("int64", ())
        assert read_back(bound, 97, 3) == [97, 98, 99]

    def test_another_field_can_be_named(self, other: Any) -> None:
        bound = bind("remark", Aligned(other, "note"), SCHEMA, 100)

        assert str(bound.field) == "string?"
        assert read_back(bound, 2, 5) == [None, "n3", None, None, "n6"]

    def test_it_can_be_sent_to_another_process(self, other: Any) -> None:
        bound = pickle.loads(pickle.dumps(bind("height", other, SCHEMA, 100)))

        assert read_back(bound, 5, 2) == [5, 6]

    def test_a_part_of_a_dataset_is_counted_as_such(self, other: Any) -> None:
        assert read_back(bind("height", other.skip(90), SCHEMA, 10), 0, 2) == [90, 91]

    def test_another_length_is_refused(self, other: Any) -> None:
        with pytest.raises(SchemaError, match="height: expected 99 rows, as many as the dataset has, found 100"):
            bind("height", other, SCHEMA, 99)

    def test_a_field_that_is_not_there_is_refused(self, other: Any) -> None:
        with pytest.raises(SchemaError, match=r"weight: there is no field 'weight'(.|\n)*It has height, note"):
            bind("weight", other, SCHEMA, 100)

    def test_a_sequence_is_refused(self, tmp_path: Path) -> None:
        schema = Schema({}, sequences={"steps": "int64"})
        write(tmp_path / "s.tfrecord", [{"steps": [1, 2]}], schema=schema)

        with pytest.raises(SchemaError, match="steps: 'steps' is a sequence"):
            bind("steps", open_dataset(tmp_path / "s.tfrecord"), SCHEMA, 1)

    def test_a_batch_is_taken_like_a_dataset(self) -> None:
        bound = bind("note", batch_of(0, 6), SCHEMA, 6)

        assert str(bound.field) == "string?"
        assert read_back(bound, 1, 3) == [None, "even", None]
        assert read_back(bind("x", Aligned(batch_of(0, 6), "id"), SCHEMA, 6), 4, 2) == [4, 5]


class TestPickling:
    @pytest.mark.parametrize(
        "source",
        [
            Computed("int64", length_of_name, reads=["name"]),
            np.arange(10),
            list(range(10)),
            BytesColumn.of(["a"] * 10),
            Ragged(np.arange(10), (np.arange(11),)),
            ("float32", [0.5] * 10),
            "constant",
            batch_of(0, 10).row(3)["id"],
        ],
    )
    def test_what_is_bound_gives_the_same_afterwards(self, source: Any) -> None:
        bound = bind("x", source, SCHEMA, 10)
        again = pickle.loads(pickle.dumps(bound))

        assert (again.name, again.field, again.reads) == (bound.name, bound.field, bound.reads)
        assert read_back(again, 3, 4, batch_of(3, 7)) == read_back(bound, 3, 4, batch_of(3, 7))

    def test_a_source_can_be_pickled_before_it_is_bound(self) -> None:
        source = pickle.loads(pickle.dumps(Computed("int64", length_of_name, reads=["name"])))

        assert read_back(bind("x", source, SCHEMA, 10), 3, 1, batch_of(3, 4)) == [3]
