"""Joined: values looked up in a table by a key."""

from __future__ import annotations

import builtins
import pickle
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordkit.columns import Batch, BytesColumn, Ragged
from recordkit.dataset import open as open_dataset
from recordkit.errors import MissingExtraError, SchemaError, StorageError
from recordkit.schema import Field, Schema
from recordkit.storage.write import write
from recordkit.tools.fields._joined import Joined
from recordkit.tools.fields._sources import RowSpan, bind
from tests.tools.test_sources import read_back

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

SCHEMA = Schema({"id": "int64", "name": "string", "raw": "bytes", "big": "uint64", "may": "int64?", "many": "int64[2]"})
TABLE = {"id": [30, 10, 20], "name": ["cc", "a", ""], "height": [3, 1, 2], "label": ["three", "one", "two"]}


def ids(*numbers: int) -> Batch:
    return Batch({"id": np.array(numbers, np.int64)}, len(numbers))


def names(*texts: str) -> Batch:
    return Batch({"name": BytesColumn.of(texts, text=True)}, len(texts))


def looked_up(source: Joined, batch: Batch, name: str = "height", first: int = 0) -> list[Any]:
    return read_back(bind(name, source, SCHEMA, 1_000_000), first, len(batch), batch)


def saved(tmp_path: Path, kind: str, table: Mapping[str, Any] = TABLE) -> Any:
    """The table in each of the forms that a table may have."""
    arrow = pa.table(dict(table))
    path = tmp_path / f"table.{kind}"
    if kind == "parquet":
        pa.parquet.write_table(arrow, path, row_group_size=2)
    elif kind == "folder":
        pa.parquet.write_to_dataset(arrow, path)
    elif kind in ("csv", "tsv"):
        pa.csv.write_csv(arrow, path, pa.csv.WriteOptions(delimiter="," if kind == "csv" else "\t"))
    elif kind == "arrow":
        pa.feather.write_feather(arrow, path)
    elif kind == "dataset":
        write(path, table, schema=Schema.of_columns(dict(table)))
        return open_dataset(path)
    else:
        return IN_MEMORY[kind](arrow)
    return path


IN_MEMORY: dict[str, Any] = {
    "table": lambda arrow: arrow,
    "chunks": lambda arrow: pa.concat_tables([arrow.slice(0, 1), arrow.slice(1, 1), arrow.slice(2)]),
    "record batch": lambda arrow: arrow.to_batches()[0],
    "reader": lambda arrow: arrow.to_reader(),
    "pandas": lambda arrow: arrow.to_pandas(),
    "pandas index": lambda arrow: arrow.to_pandas().set_index("id"),
    "polars": pl.from_arrow,
    "dict": lambda arrow: arrow.to_pydict(),
    "dict of arrays": lambda arrow: {name: arrow[name].to_numpy() for name in arrow.column_names},
    "dict of series": lambda arrow: {name: pl.Series(arrow[name].to_pylist()) for name in arrow.column_names},
    "batch": lambda arrow: Batch({n: np.array(arrow[n].to_pylist()) for n in ("id", "height", "label")}, 3),
}
FILES = ("parquet", "folder", "csv", "tsv", "arrow", "dataset")


class TestTables:
    @pytest.mark.parametrize("kind", [*FILES, *IN_MEMORY])
    def test_any_kind_of_table_is_looked_up_by_number(self, tmp_path: Path, kind: str) -> None:
        bound = bind("height", Joined(saved(tmp_path, kind)), SCHEMA, 5)

        assert (str(bound.field), bound.reads) == ("int64", ("id",))
        assert read_back(bound, 0, 5, ids(10, 20, 30, 20, 10)) == [1, 2, 3, 2, 1]

    @pytest.mark.parametrize("kind", [kind for kind in (*FILES, *IN_MEMORY) if kind != "batch"])
    def test_any_kind_of_table_is_looked_up_by_text(self, tmp_path: Path, kind: str) -> None:
        source = Joined(saved(tmp_path, kind), on="name", column="label")

        assert looked_up(source, names("a", "", "cc", "a"), "text") == ["one", "two", "three", "one"]

    def test_the_key_may_have_another_name_in_the_table(self) -> None:
        table = {"key": [1, 2], "value": [5, 6]}

        assert looked_up(Joined(table, on=("id", "key"), column="value"), ids(2, 1)) == [6, 5]

    def test_a_dictionary_of_text_is_text(self) -> None:
        table = pa.table({"id": [1, 2, 3], "height": pa.array(["x", "y", "x"]).dictionary_encode()})
        frame = pd.DataFrame({"id": [1, 2], "height": pd.Categorical(["x", "y"])})

        assert str(bind("height", Joined(table), SCHEMA, 3).field) == "string"
        assert looked_up(Joined(table), ids(3, 2)) == ["x", "y"]
        assert looked_up(Joined(frame), ids(2, 1)) == ["y", "x"]

    @pytest.mark.parametrize(
        ("column", "field"),
        [
            (pa.array([1, 2, 3], pa.int8()), "int8"),
            (pa.array([1, 2, 3], pa.uint64()), "uint64"),
            (pa.array([1.5, 2, 3], pa.float16()), "float16"),
            (pa.array([1.5, 2, 3], pa.float32()), "float32"),
            (pa.array([1.5, 2, 3]), "float64"),
            (pa.array([True, False, True]), "bool"),
            (pa.array(["a", "", "ccc"]), "string"),
            (pa.array(["a", "", "ccc"], pa.large_string()), "string"),
            (pa.array(["a", "", "ccc"], pa.string_view()), "string"),
            (pa.array([b"a", b"", b"\xff"]), "bytes"),
            (pa.array([b"ab", b"cd", b"ef"], pa.binary(2)), "bytes"),
            (pa.array([[1], [], [2, 3]]), "int64[?]"),
            (pa.array([["a"], [], ["b", ""]]), "string[?]"),
            (pa.array([[[1], [2]], [[3], [4]], []]), "int64[?,?]"),
            (pa.array([[1, 2], [3, 4], [5, 6]], pa.list_(pa.int32(), 2)), "int32[2]"),
            (pa.array([["a", "b"], ["c", "d"], ["e", ""]], pa.list_(pa.string(), 2)), "string[2]"),
            (pa.array([[[1, 2]], [], [[3, 4], [5, 6]]], pa.list_(pa.list_(pa.int64(), 2))), "int64[?,?]"),
            (pa.array([1, 2, 3], pa.timestamp("ms")), "datetime64:ms"),
            (pa.array([1, 2, 3], pa.date32()), "datetime64:D"),
            (pa.array([1, 2, 3], pa.duration("ns")), "timedelta64:ns"),
        ],
    )
    def test_the_type_is_that_of_the_column_and_slices_and_chunks_are_read_right(self, column: Any, field: str) -> None:
        expected = looked_up(Joined({"id": [0, 1, 2], "height": pa.chunked_array([column])}), ids(0, 1, 2))
        longer = pa.table({"id": [9, 0, 1, 2], "height": pa.concat_arrays([column.slice(1, 1), column])}).slice(1)
        chunks = pa.table({"id": [0, 1, 2], "height": pa.chunked_array([column.slice(0, 1), column.slice(1)])})

        assert str(bind("height", Joined(longer), SCHEMA, 3).field) == field
        assert expected[1:] == looked_up(Joined(longer), ids(1, 2)) == looked_up(Joined(chunks), ids(1, 2))
        if not field.startswith(("datetime", "timedelta")):
            assert expected == column.to_pylist()
        assert looked_up(Joined(longer), ids(2, 0, 2)) == [expected[2], expected[0], expected[2]]

    def test_a_declared_type_reads_the_text_of_a_csv_file(self, tmp_path: Path) -> None:
        (tmp_path / "t.csv").write_text("name,height\n007,0.1\n08,1\n")

        source = Joined(tmp_path / "t.csv", on="name", dtype="float32")

        assert looked_up(source, names("08", "007")) == [1.0, float(np.float32(0.1))]
        assert looked_up(Joined(str(tmp_path / "t.csv"), on="name", dtype="string"), names("007")) == ["0.1"]

    def test_a_declared_type_is_what_lists_are_read_as(self) -> None:
        table = {"id": [1, 2], "height": [0.1, 0.2]}

        assert looked_up(Joined(table, dtype="float64"), ids(2, 1)) == [0.2, 0.1]

    def test_a_column_that_is_not_there_is_refused_with_a_guess(self, tmp_path: Path) -> None:
        for kind in (*FILES, *IN_MEMORY):
            with pytest.raises(
                SchemaError, match=r"heigth: there is no column 'heigth' in the table\n  Did you mean 'hei"
            ):
                bind(
                    "heigth",
                    Joined(saved(tmp_path / kind, kind) if kind in IN_MEMORY else _in(tmp_path, kind)),
                    SCHEMA,
                    3,
                )

    @pytest.mark.parametrize(
        ("column", "message"),
        [
            (pa.array([{"a": 1}]), "which no field can hold"),
            (pa.array([[1, None]]), "and has nulls inside lists"),
            (pa.array(["1.5"]).cast(pa.decimal128(5, 2)), "which no field can hold"),
        ],
    )
    def test_a_column_that_no_record_can_hold_is_refused(self, column: Any, message: str) -> None:
        with pytest.raises(SchemaError, match=f"height: the table's column 'height' is .*{message}"):
            bind("height", Joined(pa.table({"id": [1], "height": column})), SCHEMA, 1)

    def test_a_file_that_is_not_there_or_no_table_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "bad.parquet").write_bytes(b"no parquet")

        for name in ("none.parquet", "none.csv", "none.arrow"):
            with pytest.raises(StorageError, match=f"height: .*{name}: there is no such file"):
                bind("height", Joined(tmp_path / name), SCHEMA, 1)
        with pytest.raises(SchemaError, match=r"height: .*bad.parquet: the table cannot be read"):
            bind("height", Joined(tmp_path / "bad.parquet"), SCHEMA, 1)
        with pytest.raises(SchemaError, match="unknown kind of table"):
            bind("height", Joined("heights.xlsx"), SCHEMA, 1)
        with pytest.raises(SchemaError, match="height: expected a table, found int"):
            bind("height", Joined(5), SCHEMA, 1)

    def test_without_pyarrow_files_say_what_to_install_and_dicts_do_without(self, monkeypatch: Any) -> None:
        def refuse(name: str, *more: Any, **others: Any) -> Any:
            if name.startswith("pyarrow"):
                raise ImportError(name)
            return real(name, *more, **others)

        real = builtins.__import__
        monkeypatch.setattr("recordkit.tools.fields._tables.import_module", refuse)

        with pytest.raises(MissingExtraError, match=r"heights.parquet needs pyarrow: pip install 'recordkit\[arrow\]'"):
            bind("height", Joined("heights.parquet"), SCHEMA, 1)
        assert looked_up(Joined(TABLE), ids(20)) == [2]

    def test_the_columns_of_a_dict_have_one_length(self) -> None:
        with pytest.raises(SchemaError, match="height: the columns of the table have different lengths: 1 and 2"):
            bind("height", Joined({"id": [1, 2], "height": [1]}), SCHEMA, 1)


def _in(tmp_path: Path, kind: str) -> Any:
    (tmp_path / kind).mkdir()
    return saved(tmp_path / kind, kind)


class TestKeysThatAreNotThere:
    def test_they_are_an_error_that_names_one_and_counts_the_rest(self) -> None:
        with pytest.raises(SchemaError) as caught:
            looked_up(Joined(TABLE), ids(10, 77, 20, 78, 79), first=1_000)

        assert str(caught.value) == (
            "height: record 1001 has id 77, which is not in the table\n"
            "  So do 2 more of these 5 records. Give default=, or say dtype='int64?' to leave the field missing there."
        )
        assert (caught.value.field, caught.value.record) == ("height", 1_001)

    def test_text_is_quoted(self) -> None:
        with pytest.raises(SchemaError, match="record 0 has name 'zz', which is not in the table"):
            looked_up(Joined(TABLE, on="name"), names("zz"))

    @pytest.mark.parametrize(
        ("column", "default"),
        [
            ([1, 2, 3], 0),
            (["a", "bb", ""], "none"),
            ([b"a", b"", b"c"], b"\xff" * 100),
            ([[1], [], [2, 3]], [7, 8]),
            ([["a"], [], ["b", "c"]], ["x", "y"]),
            (np.ones((3, 2), np.float32), [0.5, 2]),
            (np.array([1, 2, 2**64 - 1], np.uint64), 2**63),
            ([[[1]], [[1, 2]], [[1], [2]]], [[7, 8, 9]]),
        ],
    )
    @pytest.mark.parametrize("rows", [3, 0])
    def test_they_get_the_default(self, column: Any, default: Any, rows: int) -> None:
        field = Schema.of_columns({"height": column}).fields["height"]
        table = {"id": np.arange(3)[:rows], "height": column[:rows]}

        found = looked_up(Joined(table, default=default, dtype=field), ids(5, *range(rows), 6))

        expected = column.tolist() if isinstance(column, np.ndarray) else column
        assert found == [default, *expected[:rows], default]

    @pytest.mark.parametrize(
        "column", [[1, 2, 3], ["a", "", "c"], [[1], [], [2, 3]], np.ones((3, 2)), [["a"], [], ["b"]]]
    )
    @pytest.mark.parametrize("rows", [3, 0])
    def test_they_are_missing_where_the_type_allows_it(self, column: Any, rows: int) -> None:
        field = Schema.of_columns({"height": column}).fields["height"]
        table = {"id": np.arange(3)[:rows], "height": column[:rows]}

        found = looked_up(Joined(table, dtype=f"{field}?"), ids(5, *range(rows), 6))

        expected = column.tolist() if isinstance(column, np.ndarray) else column
        assert found == [None, *expected[:rows], None]

    def test_a_default_of_none_makes_the_field_one_that_may_be_missing(self) -> None:
        bound = bind("height", Joined(TABLE, default=None), SCHEMA, 3)

        assert str(bound.field) == "int64?"
        assert read_back(bound, 0, 2, ids(5, 10)) == [None, 1]
        with pytest.raises(SchemaError, match=r"height: default=None needs a type that ends in \?"):
            bind("height", Joined(TABLE, default=None, dtype="int64"), SCHEMA, 3)

    def test_a_default_that_does_not_fit_is_refused_at_once(self) -> None:
        with pytest.raises(SchemaError, match=r"height: expected int64, found 0\.5 \(float\) as the default"):
            bind("height", Joined(TABLE, default=0.5), SCHEMA, 3)

    def test_a_default_is_not_rounded_to_the_type_of_the_table(self) -> None:
        table = {"id": [10], "height": np.array([1])}

        assert looked_up(Joined(table, default=0.5, dtype="float32"), ids(10, 5)) == [1, 0.5]

    def test_a_record_without_a_key_is_like_one_whose_key_is_not_there(self) -> None:
        table = {"may": [0, 1], "height": [5, 6]}
        batch = Batch({"may": np.array([1, 0, 0])}, 3, {"may": np.array([True, False, True])})

        assert looked_up(Joined(table, on="may", default=-1), batch) == [6, -1, 5]
        assert looked_up(Joined(table, on="may", dtype="int64?"), batch) == [6, None, 5]
        with pytest.raises(SchemaError, match="height: record 1 has no may to look up"):
            looked_up(Joined(table, on="may"), batch)


class TestNullsAndRepeats:
    def test_a_key_that_is_there_twice_is_refused_at_once(self) -> None:
        numbers = {"id": [7, 7, 1, 2, 2, 2], "height": [0] * 6}
        texts = {"name": ["a", "b"] + [f"n{n // 2}" for n in range(20)], "height": [0] * 22}

        with pytest.raises(SchemaError, match=r"height: more than one row of the table has id 2, 7\n"):
            bind("height", Joined(numbers), SCHEMA, 3)
        with pytest.raises(SchemaError, match=r"has name 'n0', 'n1', 'n2', 'n3', 'n4' and 5 more\n"):
            bind("height", Joined(texts, on="name"), SCHEMA, 3)

    @pytest.mark.parametrize("make", [pa.table, pd.DataFrame, pl.DataFrame, dict])
    def test_a_null_for_a_key_is_refused(self, make: Any) -> None:
        for key, column in (("id", [1, None, 3]), ("name", ["a", None, "c"])):
            table = make({key: column, "height": [1, 2, 3]})
            with pytest.raises(SchemaError, match=rf"height: no key in 1 row of the table's column '{key}'\n.*row 1"):
                bind("height", Joined(table, on=key), SCHEMA, 3)

    @pytest.mark.parametrize("make", [pa.table, pd.DataFrame, pl.DataFrame, dict])
    @pytest.mark.parametrize("column", [[1.5, None, 3.0], ["a", None, "c"], [[1], None, [2, 3]]])
    def test_a_null_for_a_value_is_missing_or_refused(self, make: Any, column: list[Any]) -> None:
        table = make({"id": [1, 2, 3], "height": column})
        typed = {float: "float64?", str: "string?", list: "int64[?]?"}[type(column[0])]

        assert looked_up(Joined(table, dtype=typed), ids(3, 2, 1, 9)) == [*column[::-1], None]
        with pytest.raises(
            SchemaError, match=r"height: no value in 1 row of the table's column 'height', with key 2\n"
        ):
            bind("height", Joined(table, dtype=typed.removesuffix("?")), SCHEMA, 3)

    @pytest.mark.parametrize(
        ("dtype", "default"), [("string?", "x"), ("float32?", 0.5), ("int64[?]?", [1]), ("jpeg?", None)]
    )
    def test_a_column_of_nothing_but_nulls_is_missing_everywhere(self, dtype: str, default: Any) -> None:
        table = pa.table({"id": [1, 2], "height": pa.nulls(2)})

        assert looked_up(Joined(table, dtype=dtype), ids(2, 3, 1)) == [None, None, None]
        assert looked_up(Joined(table, dtype=dtype, default=default), ids(2, 3, 1)) == [None, default, None]
        with pytest.raises(SchemaError, match="height: None in every row, so its type is unknown"):
            bind("height", Joined(table), SCHEMA, 3)

    def test_a_default_does_not_stand_for_a_null(self) -> None:
        table = pa.table({"id": [1, 2], "height": [5, None]})

        assert looked_up(Joined(table, dtype="int64?", default=7), ids(1, 2, 3)) == [5, None, 7]


class TestKeys:
    @pytest.mark.parametrize("on", ["many", "missing", 5, ("id",), ("id", "x", "y")])
    def test_what_cannot_be_a_key_is_refused(self, on: Any) -> None:
        with pytest.raises(SchemaError, match=r"^height: "):
            bind("height", Joined({"many": [1], "height": [1]}, on=on), SCHEMA, 3)

    def test_a_key_must_be_of_one_kind_on_both_sides(self) -> None:
        message = r"height: 'name' is string in the dataset, and 'id' int64 in the table\n  Convert"
        with pytest.raises(SchemaError, match=message):
            bind("height", Joined(TABLE, on=("name", "id")), SCHEMA, 3)
        with pytest.raises(SchemaError, match="'id' is int64 in the dataset, and 'name' string in the table"):
            bind("height", Joined(TABLE, on=("id", "name")), SCHEMA, 3)
        with pytest.raises(SchemaError, match="column 'x' is float64"):
            bind("height", Joined({"x": np.ones(1), "height": [1]}, on=("id", "x")), SCHEMA, 3)

    def test_records_without_fields_cannot_be_joined(self) -> None:
        with pytest.raises(SchemaError, match=r"no field 'id' in the dataset to join on\n  Its records have no fields"):
            bind("height", Joined(TABLE), None, 3)

    def test_bytes_are_looked_up_as_text_and_the_other_way_round(self) -> None:
        raw = Batch({"raw": BytesColumn.of([b"a", b""])}, 2)

        assert looked_up(Joined(TABLE, on=("raw", "name")), raw) == [1, 2]
        assert looked_up(Joined({"key": [b"cc"], "height": [9]}, on=("name", "key")), names("cc")) == [9]

    def test_signed_and_unsigned_keys_are_the_same_only_if_they_are(self) -> None:
        numbers = np.array([2**64 - 1, 2**63, 5], np.uint64)
        unsigned = {"big": numbers, "id": [-1, -(2**63), 5], "height": [1, 2, 3]}
        big = Batch({"big": numbers}, 3)

        assert looked_up(Joined(unsigned, on="big"), big) == [1, 2, 3]
        assert looked_up(Joined(unsigned, on=("big", "id"), default=0), big) == [0, 0, 3]
        assert looked_up(Joined(unsigned, on=("id", "big"), default=0), ids(-1, -(2**63), 5)) == [0, 0, 3]

    @given(st.dictionaries(st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3), st.integers(0, 9)), st.data())
    def test_numbers_are_looked_up_as_a_dict_would(self, table: dict[int, int], data: st.DataObject) -> None:
        keys = data.draw(st.lists(st.integers(-4, 4) | st.sampled_from([*table, 0])))
        columns = {"id": list(table), "height": list(table.values())}

        found = looked_up(Joined(columns, dtype="int64?"), ids(*keys))

        assert found == [table.get(key) for key in keys]

    @given(st.dictionaries(st.text(max_size=3), st.text(max_size=3) | st.none()), st.data())
    def test_texts_are_looked_up_as_a_dict_would(self, table: dict[str, str | None], data: st.DataObject) -> None:
        keys = data.draw(st.lists(st.text(max_size=2) | st.sampled_from([*table, ""])))
        columns = {"name": pa.array(table, pa.string()), "height": pa.array(table.values(), pa.string())}

        found = looked_up(Joined(columns, on="name", dtype="string?", default="?"), names(*keys))

        assert found == [table.get(key, "?") for key in keys]

    @given(st.dictionaries(st.integers(0, 9), st.lists(st.integers(0, 9), max_size=3)), st.lists(st.integers(0, 9)))
    def test_lists_are_looked_up_as_a_dict_would(self, table: dict[int, list[int]], keys: list[int]) -> None:
        columns = {"id": pa.array(table, pa.int64()), "height": pa.array(table.values(), pa.list_(pa.int64()))}

        missing = looked_up(Joined(columns, dtype="int64[?]?"), ids(*keys))
        default = looked_up(Joined(columns, default=[1, 2]), ids(*keys))

        assert missing == [table.get(key) for key in keys]
        assert default == [table.get(key, [1, 2]) for key in keys]


class TestSizeAndPickling:
    def test_a_hundred_thousand_rows_are_no_trouble(self) -> None:
        order = np.random.default_rng(0).permutation(100_000)
        texts = BytesColumn.of([f"key{n}" for n in order])
        table = {"id": order, "name": texts, "height": order * 2, "label": texts}
        batch = Batch({"id": np.arange(100_000), "name": BytesColumn.of([f"key{n}" for n in range(100_000)])}, 100_000)

        by_number, _ = bind("height", Joined(table), SCHEMA, 100_000).values(RowSpan(0, 100_000, batch))
        by_text, _ = bind("label", Joined(table, on="name"), SCHEMA, 100_000).values(RowSpan(0, 100_000, batch))

        assert np.array_equal(by_number, np.arange(100_000) * 2)
        assert np.array_equal(by_text.data, batch["name"].data)

    def test_a_small_batch_costs_little_however_large_the_table(self, monkeypatch: Any) -> None:
        table = {"id": np.arange(1_000), "height": BytesColumn.of(["text"] * 1_000)}
        ragged = {"id": np.arange(1_000), "height": Ragged(np.arange(1_000), (np.arange(1_001),))}
        bounds = [bind("height", Joined(each), SCHEMA, 1_000) for each in (table, ragged)]

        # What goes through all of a column.
        monkeypatch.setattr(BytesColumn, "lengths", None)
        monkeypatch.setattr(Ragged, "_take", None)

        assert [len(bound.values(RowSpan(0, 1, ids(7)))[0]) for bound in bounds] == [1, 1]

    @pytest.mark.parametrize("kind", ["table", "pandas", "polars", "dict"])
    def test_it_can_be_sent_to_another_process(self, tmp_path: Path, kind: str) -> None:
        source = Joined(saved(tmp_path, kind), on="name", column="label", default="none")

        for each in (source, pickle.loads(pickle.dumps(source))):
            bound = pickle.loads(pickle.dumps(bind("x", each, SCHEMA, 3)))
            assert read_back(bound, 0, 2, names("a", "zz")) == ["one", "none"]

    def test_what_is_printed_is_short(self) -> None:
        source = Joined({"id": list(range(10_000))}, default=None, dtype=Field("int64?"))

        assert repr(source) == "Joined(table=dict, on='id', default=None, dtype=Field('int64?'))"
