from __future__ import annotations

import datetime
import logging
from typing import Any

import numpy as np
import pytest

from recordkit.columns import BytesColumn, Ragged
from recordkit.errors import SchemaError
from recordkit.schema import Schema
from recordkit.schema.infer import _from_rows

JPEG = b"\xff\xd8\xff"


def of(*values: Any) -> str:
    return str(Schema.of_rows([{"x": value} for value in values]).fields["x"])


class TestRows:
    @pytest.mark.parametrize(
        ("values", "kind"),
        [
            ([1, -2], "int64"),
            ([2**63, 1], "uint64"),
            ([1.5], "float32"),
            ([1, 1.5], "float32"),
            ([True], "bool"),
            ([1j], "complex64"),
            (["a"], "string"),
            ([b"a"], "bytes"),
            ([JPEG, JPEG + b"1"], "jpeg"),
            ([JPEG, b"a"], "bytes"),
            ([np.float64(1)], "float64"),
            ([np.zeros(3, ">i2")], "int16[3]"),
            ([np.zeros(3), np.zeros(4)], "float64[?]"),
            ([np.zeros((2, 3)), np.zeros((2, 4))], "float64[2,?]"),
            ([[1, 2], [3, 4]], "int64[2]"),
            ([[1, 2], [3], []], "int64[?]"),
            ([[1.5, 2]], "float32[2]"),
            ([["a"], ["b", "c"]], "string[?]"),
            ([[[1], [2]]], "int64[2,1]"),
            ([[JPEG]], "jpeg[1]"),
            ([1, None], "int64?"),
            ([np.array(["a", "b"])], "string[2]"),
            ([datetime.datetime(2020, 1, 1)], "datetime64:us"),
            ([datetime.date(2020, 1, 1)], "datetime64:D"),
            ([datetime.timedelta(1)], "timedelta64:us"),
            ([np.datetime64(1, "ms")], "datetime64:ms"),
        ],
    )
    def test_values_tell_the_type(self, values: list[Any], kind: str) -> None:
        assert of(*values) == kind

    @pytest.mark.parametrize("values", [[1, 2**63 - 1], [2**64 - 1], [1.5], [b"a", JPEG], [[1, 2], []], ["a", None]])
    def test_the_rows_can_be_written_with_it(self, values: list[Any]) -> None:
        rows = [{"x": value} for value in values]
        schema = Schema.of_rows(rows)

        batch = schema.decode(schema.encode_rows(rows))

        assert [_plain(batch.row(i)["x"]) for i in range(len(rows))] == values

    def test_absent_field_may_be_missing(self) -> None:
        assert Schema.of_rows([{"x": 1}, {"x": 1, "y": "a"}]) == Schema({"x": "int64", "y": "string?"})

    def test_nested_dicts_flatten(self) -> None:
        assert Schema.of_rows([{"a": {"b": 1}}]).names == ("a/b",)

    def test_floats_are_said_to_be_float32_once(self, caplog: pytest.LogCaptureFixture) -> None:
        _from_rows._say_floats_are_float32.cache_clear()

        with caplog.at_level(logging.INFO, "recordkit"):
            of(1.5)
            of(2.5)

        assert [record.message for record in caplog.records] == [
            "Python floats are stored as float32; declare float64 in a schema, or use NumPy's, to keep every digit"
        ]

    @pytest.mark.parametrize(
        ("values", "message"),
        [
            ([1, "a"], "x: int64 and string in one field\n  The latter in row 1. Convert the values, or declare"),
            ([np.zeros(1), np.zeros(1, "f4")], "x: float64 and float32 in one field\n  The latter in row 1."),
            ([[1], 1], "x: arrays of 1 and of 0 dimensions\n  The latter in row 1."),
            ([[1, "a"]], "x: int64 and string in one list\n  In row 0. Convert the values."),
            ([[[1], [2, 3]]], "x: lists of differing lengths inside one another\n  In row 0."),
            ([[1, None]], "x: None inside a list\n  In row 0. Only a whole field can be missing."),
            ([None], "x: None in every row, so its type is unknown\n  Declare a schema, or leave it out."),
            ([[]], "x: an empty list in every row, so its type is unknown\n"),
            ([object()], "x: a object is not a value a record can hold\n  In row 0."),
            ([np.zeros(1, "V3")], "x: NumPy's void24 is not a dtype a schema can hold"),
        ],
    )
    def test_what_tells_no_type_is_refused_in_words(self, values: list[Any], message: str) -> None:
        with pytest.raises(SchemaError) as caught:
            of(*values)

        assert str(caught.value).startswith(message)

    def test_no_rows_tell_nothing(self) -> None:
        with pytest.raises(SchemaError, match="there are no rows to infer a schema from"):
            Schema.of_rows([])

    def test_row_that_is_no_dict_is_refused(self) -> None:
        with pytest.raises(SchemaError, match="a row is a dict of field names and values, found int"):
            Schema.of_rows([1])  # type: ignore[list-item]


class TestColumns:
    @pytest.mark.parametrize(
        ("column", "kind"),
        [
            (np.zeros((3, 2), np.uint8), "uint8[2]"),
            ([1, None], "int64?"),
            (BytesColumn.of(["a"]), "string"),
            (BytesColumn.of([b"a", b"b"]).reshape((1, 2)), "bytes[2]"),
            (Ragged(np.zeros(2), (np.array([0, 2]),)), "float64[?]"),
            (Ragged.rectangular(np.zeros(2), np.array([[1, 2]])), "float64[?,?]"),
            (Ragged(BytesColumn.of(["a"]), (np.array([0, 1]),)), "string[?]"),
            (np.array(["a"]), "string"),
        ],
    )
    def test_columns_tell_the_type(self, column: Any, kind: str) -> None:
        schema = Schema.of_columns({"a": {"x": column}})

        assert str(schema.fields["a/x"]) == kind
        schema.encode({"a": {"x": column}})

    def test_single_value_is_no_column(self) -> None:
        with pytest.raises(SchemaError, match="x: a column has one value a row, found a single value"):
            Schema.of_columns({"x": np.array(1)})


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value
