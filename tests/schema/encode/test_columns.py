"""What a column may be, and the words for what it may not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from recordkit.columns import BytesColumn, Ragged
from recordkit.errors import SchemaError
from recordkit.records import Reader, chunk
from recordkit.schema import Field, Schema
from recordkit.schema.declare import layout_of
from recordkit.schema.encode._columns import gather
from recordkit.schema.encode._wire import to_wire

if TYPE_CHECKING:
    from pathlib import Path


def encode_and_decode(kind: str, column: Any, **options: Any) -> Any:
    schema = Schema({"x": kind})
    return schema.decode(schema.encode({"x": column}, **options))["x"]


class TestTaken:
    @pytest.mark.parametrize("kind", ["int64", "float32", "int64[2]", "float32[2,2]"])
    def test_array_of_the_right_dtype_is_not_copied(self, kind: str) -> None:
        field = Field(kind)
        column = np.zeros((100, *(size or 0 for size in field.shape)), field.dtype)

        wire = to_wire(layout_of("x", field), gather(layout_of("x", field), column))

        assert np.shares_memory(np.asarray(wire["x"].values), column)

    def test_raw_array_is_not_copied(self) -> None:
        column = np.zeros((10, 4, 4))
        layout = layout_of("x", Field("float64[4,4]"))

        values = to_wire(layout, gather(layout, column))["x"].values

        assert isinstance(values, BytesColumn)
        assert np.shares_memory(values.data, column)

    @pytest.mark.parametrize(
        ("kind", "column", "read"),
        [
            ("int64", np.array([1, 2], np.int8), [1, 2]),
            ("int64", np.array([True, False]), [1, 0]),
            ("int64", (1, 2), [1, 2]),
            ("int64", range(2), [0, 1]),
            ("int64", iter([1, 2]), [1, 2]),
            ("int64", np.array([1, 2], object), [1, 2]),
            ("int64", [1, True], [1, 1]),
            ("uint64", [2**64 - 1, 0], [2**64 - 1, 0]),
            ("float32", [0.5, 1], [0.5, 1]),
            ("bool", [True, False], [True, False]),
            ("int8", np.array([1, 2]), [1, 2]),
            ("float32[2]", [[1, 2], (3, 4)], [[1, 2], [3, 4]]),
            ("float32[2]", [np.zeros(2, np.float32), [1.5, 2]], [[0, 0], [1.5, 2]]),
            ("int64[3]", Ragged(np.arange(6), (np.array([0, 3, 6]),)), [[0, 1, 2], [3, 4, 5]]),
            ("int64[2]", np.array([[1, 2], [3, 4]], object), [[1, 2], [3, 4]]),
            ("int64[0]", np.zeros((3, 0), np.int64), [[], [], []]),
            ("float64[0,2]", np.zeros((2, 0, 2)), [[], []]),
            ("int64", np.array([], np.int64), []),
            ("int64", [], []),
        ],
    )
    def test_fixed_column_reads_as_an_array(self, kind: str, column: Any, read: list[Any]) -> None:
        found = encode_and_decode(kind, column)

        assert found.tolist() == read
        assert found.dtype.name == Field(kind).dtype

    @pytest.mark.parametrize(
        ("kind", "column", "read"),
        [
            ("int64[?]", np.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
            ("int64[?]", [[1], [], (2, 3)], [[1], [], [2, 3]]),
            ("int64[?]", Ragged(np.arange(3), (np.array([0, 1, 3]),)), [[0], [1, 2]]),
            ("int64[?]", Ragged(np.arange(9), (np.array([0, 5, 8, 9]),))[1:], [[5, 6, 7], [8]]),
            ("int8[?]", Ragged(np.arange(3), (np.array([0, 1, 3]),)), [[0], [1, 2]]),
            ("int64[?,2]", Ragged(np.arange(4).reshape(2, 2), (np.array([0, 0, 2]),)), [[], [[0, 1], [2, 3]]]),
            ("int64[?,?]", np.ones((1, 1, 2), np.int64), [[[1, 1]]]),
            ("int64[?,?]", Ragged(np.arange(3), (np.array([0, 1, 2]), np.array([0, 1, 3]))), [[[0]], [[1, 2]]]),
            ("float64[?]", [[0.5], [1, 2]], [[0.5], [1, 2]]),
            ("string[?]", [["a"], []], [["a"], []]),
            ("string[?]", Ragged(BytesColumn.of(["a", "b"]), (np.array([0, 2, 2]),)), [["a", "b"], []]),
            ("string[?]", BytesColumn.of(["a", "b"]).reshape((2, 1)), [["a"], ["b"]]),
            ("string[?]", np.array([["a"], ["b"]]), [["a"], ["b"]]),
            ("bytes[?,1]", [[[b"a"], [b"b"]]], [[[b"a"], [b"b"]]]),
        ],
    )
    def test_open_column_reads_as_ragged(self, kind: str, column: Any, read: list[Any]) -> None:
        found = encode_and_decode(kind, column)

        assert isinstance(found, Ragged)
        assert found.to_list() == read

    @pytest.mark.parametrize(
        ("kind", "column", "read"),
        [
            ("string", ["a", "ü\0"], ["a", "ü\0"]),
            ("string", np.array(["a", "ü"]), ["a", "ü"]),
            ("string", BytesColumn.of(["a", "ü"]), ["a", "ü"]),
            ("bytes", [b"a", bytearray(b"\0")], [b"a", b"\0"]),
            ("bytes", np.array([b"a", b"bc"]), [b"a", b"bc"]),
            ("string[2]", [["a", "b"]], [["a", "b"]]),
            ("string[2]", BytesColumn.of(["a", "b"]).reshape((1, 2)), [["a", "b"]]),
            ("jpeg", [b"\xff\xd8\xff1"], [b"\xff\xd8\xff1"]),
            ("png", BytesColumn.of([b"\x89PNG\r\n\x1a\n"]), [b"\x89PNG\r\n\x1a\n"]),
        ],
    )
    def test_byte_strings_read_as_a_bytes_column(self, kind: str, column: Any, read: list[Any]) -> None:
        found = encode_and_decode(kind, column)

        assert isinstance(found, BytesColumn)
        assert found.to_list() == read
        assert found.text == kind.startswith("string")

    def test_exact_shape_of_every_row_is_kept(self) -> None:
        arrays = [np.zeros((0, 5)), np.zeros((2, 0)), np.zeros((1, 1))]

        found = encode_and_decode("float64[?,?]", arrays)

        assert [row.shape for row in found] == [(0, 5), (2, 0), (1, 1)]

    def test_none_in_a_list_is_missing(self) -> None:
        schema = Schema({"x": "int64?", "y": "string[?]?"})

        batch = schema.decode(schema.encode({"x": [1, None], "y": [None, ["a"]]}))

        assert batch.valid("x").tolist() == [True, False]
        assert batch.valid("y").tolist() == [False, True]

    def test_mask_says_what_is_missing(self) -> None:
        schema = Schema({"x": "int64?", "y": "float64[?,?]?"})
        valid = {"x": np.array([True, False]), "y": np.array([False, True])}

        batch = schema.decode(schema.encode({"x": np.array([1, 2]), "y": np.ones((2, 1, 1))}, valid=valid))

        assert [list(row.values()) for row in batch.rows()] == [[1, None], [None, [[1.0]]]]

    def test_fixed_column_may_be_ragged_where_rows_are_missing(self) -> None:
        schema = Schema({"x": "int64[2]?"})
        column = Ragged(np.arange(2), (np.array([0, 0, 2]),))

        batch = schema.decode(schema.encode({"x": column}, valid={"x": np.array([False, True])}))

        assert [row["x"] if row["x"] is None else row["x"].tolist() for row in batch.rows()] == [None, [0, 1]]

    def test_optional_column_may_be_left_out(self) -> None:
        schema = Schema({"x": "int64", "y": "float32[2,?]?", "z": "jpeg?"})

        batch = schema.decode(schema.encode({"x": [1, 2]}))

        assert batch.valid("y").tolist() == batch.valid("z").tolist() == [False, False]

    def test_rows_can_be_said_where_no_column_tells(self) -> None:
        schema = Schema({"x": "int64?"})

        assert len(schema.encode({}, rows=3)) == 3

    def test_nested_dicts_are_columns_too(self) -> None:
        schema = Schema({"a": {"b": "int64"}})

        assert schema.decode(schema.encode({"a": {"b": [1, 2]}}))["a/b"].tolist() == [1, 2]


class TestRefused:
    @pytest.mark.parametrize(
        ("kind", "column", "words"),
        [
            ("int8", np.array([1, 300]), "found 300\n  In row 1. int8 holds -128 to 127. Declare a wider type."),
            ("int64", np.array([1, 2**63], np.uint64), "found 9223372036854775808\n  In row 1. int64 holds"),
            ("uint64", np.array([1, -1]), "found -1\n  In row 1. uint64 holds"),
            ("int64", np.array([1.0]), "found an array of float64\n  An integer field takes integers only."),
            ("bool", np.array([1, 0]), "found an array of int64\n  Make it one with `!= 0`."),
            ("float32", np.array([0.5, 0.1]), "found 0.1 (float64)\n  In row 1. float32 cannot hold it exactly."),
            ("float32", [0.5, 1e300], "found 1e+300\n  In row 1. It overflows to infinity in float32."),
            ("float32", [0.5, np.float64(0.1)], "found 0.1 (float64)\n  In row 1. float32 cannot hold it exactly."),
            ("float32[2]", np.full((2, 2), 0.1), "found 0.1 (float64)\n  In row 0."),
            ("float32[2]", np.zeros((3, 4)), "found shape [4]\n  Write ? for a dimension that varies."),
            ("int64", [1, None, 2], "found None\n  In row 1. Declare 'int64?' if it may be missing."),
            ("int64", [1, 2.5], "found 2.5 (float)\n  In row 1. Round it with int(), or declare a float."),
            ("int64", [1, 2**64], "found 18446744073709551616\n  In row 1. int64 holds"),
            ("string", ["a", b"b"], "found bytes\n  In row 1. Declare bytes, or decode it: .decode()."),
            ("string", ["a", "\ud800"], "found text with a lone surrogate at character 0\n  In row 1."),
            ("int64[?]", [[1], [2, "a"]], "found a list with str in it\n  In row 1. Convert it to int64 first."),
            ("int8[?]", [[1], [2, 300]], "found 300\n  In row 1. int8 holds"),
            ("int64", "abc", "found str\n  A column is an array or a list with one value a row."),
            ("int64", 5, "found int\n  A column is an array or a list with one value a row."),
            ("int64", np.int64(5), "found a single value\n  A column is an array or a list with one value a row."),
            ("int64", np.ma.array([1], mask=[True]), "found a masked array\n  The hidden values would be stored."),
            ("string", BytesColumn.of([b"x"]), "found bytes\n  Declare bytes."),
            ("bytes", BytesColumn.of(["x"]), "found text\n  Declare string."),
            ("int64", BytesColumn.of([b"x"]), "found a BytesColumn\n  Only string, bytes, jpeg and png fields"),
            ("jpeg", BytesColumn.of([b"\xff\xd8\xff", b"z"]), "found 1 byte, not a jpeg\n  In row 1."),
            ("int64[3]", Ragged(np.arange(5), (np.array([0, 3, 5]),)), "found shape [2]\n  In row 1."),
            ("int8[?]", Ragged(np.array([1, 2, 300]), (np.array([0, 2, 3]),)), "found 300\n  In row 1."),
            ("int64[?,?]", Ragged(np.arange(5), (np.array([0, 3, 5]),)), "found rows of 1 dimensions"),
        ],
    )
    def test_error_names_field_row_expected_and_found(self, kind: str, column: Any, words: str) -> None:
        with pytest.raises(SchemaError) as caught:
            Schema({"x": kind}).check_columns({"x": column})

        assert str(caught.value).startswith(f"x: expected {kind}, {words}")

    def test_text_that_is_not_utf8_is_refused(self) -> None:
        column = BytesColumn(np.array([65, 255], np.uint8), np.array([0, 1, 2]), text=True)

        with pytest.raises(SchemaError, match="found bytes that are not UTF-8\n  In row 1"):
            Schema({"x": "string"}).encode({"x": column})

    @pytest.mark.parametrize(
        ("columns", "options", "message"),
        [
            ({"x": [1, 2], "y": [1]}, {}, "y: expected 2 rows as x has, found 1"),
            ({"x": [1], "y": [1]}, {"rows": 3}, "x: expected 3 rows, found 1"),
            (
                {"x": [1]},
                {},
                "y: missing from the columns\n  The columns are x. Declare 'int64?' if it may be missing.",
            ),
            ({"x": [1], "yy": [1]}, {}, "yy: not in the schema\n  Did you mean 'y'?"),
            (
                {"x": [1, 2], "y": [1, 2]},
                {"valid": {"x": [True]}},
                "x: expected a mask of 2 rows, found one of shape [1]",
            ),
            (
                {"x": [1, 2], "y": [1, 2]},
                {"valid": {"x": [True, False]}},
                "x: expected int64, found None\n  In row 1. Declare 'int64?' if it may be missing.",
            ),
        ],
    )
    def test_columns_that_do_not_go_together_are_refused(
        self, columns: dict[str, Any], options: dict[str, Any], message: str
    ) -> None:
        with pytest.raises(SchemaError) as caught:
            Schema({"x": "int64", "y": "int64"}).encode(columns, **options)

        assert str(caught.value) == message

    def test_number_of_rows_must_be_known(self) -> None:
        with pytest.raises(SchemaError, match="the number of rows is unknown without a column"):
            Schema({"x": "int64?"}).encode({})


class TestRead:
    def test_the_next_records_are_what_decoding_them_gives(self, tmp_path: Path) -> None:
        schema = Schema({"a": "int64", "b": "float32", "c": "int64", "d": "string?"})
        numbers = np.arange(5000)
        columns = {"a": numbers, "b": numbers.astype(np.float32), "c": -numbers, "d": [None, "x"] * 2500}
        path = tmp_path / "data.tfrecord"
        path.write_bytes(schema.encode(columns))

        for select in (("a",), ("c", "b", "a"), ("d", "a"), None):
            with path.open("rb") as file:
                reader = Reader(file)
                batches = list(iter(lambda: schema.read(reader, 700, select=select), None))  # noqa: B023
            assert [len(batch) for batch in batches] == [700] * 7 + [100]
            expected = schema.decode(chunk(path.read_bytes()), select=select)
            assert all(batch.names == expected.names for batch in batches)
            for name in expected.names:
                assert [v for batch in batches for v in batch[name]] == list(expected[name])
                assert (
                    np.concatenate([batch.valid(name) for batch in batches]).tolist() == expected.valid(name).tolist()
                )

    def test_a_field_that_is_asked_for_twice_is_one(self, tmp_path: Path) -> None:
        schema, path = Schema({"a": "int64", "b": "int64", "c": "float32?"}), tmp_path / "data.tfrecord"
        path.write_bytes(schema.encode({"a": np.arange(9), "b": -np.arange(9), "c": np.ones(9, np.float32)}))

        for select in (("b", "b", "a"), ("c", "b", "c", "a")):
            with path.open("rb") as file:
                read = schema.read(Reader(file), 9, select=select)
            for batch in (read, schema.decode(chunk(path.read_bytes()), select=select)):
                assert batch is not None
                assert batch.names == tuple(dict.fromkeys(select))
                assert list(batch["b"]) == list(-np.arange(9))
                assert list(batch["a"]) == list(range(9))

    def test_an_error_says_what_to_do_and_where(self, tmp_path: Path) -> None:
        path = tmp_path / "data.tfrecord"
        path.write_bytes(Schema({"a": "int64"}).encode({"a": np.arange(3)}))

        with (
            path.open("rb") as file,
            pytest.raises(SchemaError, match="Declare int64 to read the stored values") as caught,
        ):
            Schema({"a": "float32"}).read(Reader(file), 3)

        assert caught.value.path == str(path)
