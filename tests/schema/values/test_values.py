"""What a row may hold, and the words for what it may not."""

from __future__ import annotations

import datetime
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from recordkit.errors import SchemaError
from recordkit.schema import Field, Schema

JPEG, PNG = b"\xff\xd8\xff\xe0...", b"\x89PNG\r\n\x1a\n..."
UTC_NOW = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)


class TestTaken:
    @pytest.mark.parametrize(
        ("kind", "value", "read"),
        [
            ("int8", True, 1),
            ("int8", np.uint64(7), 7),
            ("int8", np.array(-128), -128),
            ("uint64", 2**64 - 1, 2**64 - 1),
            ("bool", np.True_, True),
            ("float32", 0.1, np.float32(0.1)),
            ("float32", 2**24 + 1, np.float32(2**24)),
            ("float32", np.float64(0.5), 0.5),
            ("float32", np.int64(2**30), 2.0**30),
            ("float32", float("inf"), np.inf),
            ("float64", np.float32(0.1), np.float64(np.float32(0.1))),
            ("float16", 0.1, np.float16(0.1)),
            ("bfloat16", 0.1, ml_dtypes.bfloat16(0.1)),
            ("float8_e4m3fn", 448, ml_dtypes.float8_e4m3fn(448)),
            ("float8_e5m2", float("inf"), ml_dtypes.float8_e5m2(np.inf)),
            ("complex64", 2, 2),
            ("string", np.str_("a\0"), "a\0"),
            ("bytes", bytearray(b"a\0"), b"a\0"),
            ("bytes", memoryview(b"ab"), b"ab"),
            ("bytes", np.bytes_(b"ab"), b"ab"),
            ("jpeg", JPEG, JPEG),
            ("png", bytearray(PNG), PNG),
            ("datetime64:ns", np.datetime64("2020-01-01T00", "h"), np.datetime64("2020-01-01")),
            ("datetime64:D", np.datetime64("2020-01-01T00", "h"), np.datetime64("2020-01-01")),
            ("datetime64:ms", datetime.datetime(2020, 1, 1, 5), np.datetime64("2020-01-01T05")),
            ("datetime64:D", datetime.date(2020, 1, 1), np.datetime64("2020-01-01")),
            ("timedelta64:s", datetime.timedelta(minutes=1), np.timedelta64(60, "s")),
        ],
    )
    def test_scalar_is_stored_as_its_field_says(self, kind: str, value: Any, read: Any) -> None:
        schema = Schema({"x": kind})

        batch = schema.decode(schema.encode_rows([{"x": value}]))

        assert batch.row(0)["x"] == read

    @pytest.mark.parametrize(
        ("kind", "value", "read"),
        [
            ("uint64[?]", [2**64 - 1, 0], [2**64 - 1, 0]),
            ("int64[?]", range(3), [0, 1, 2]),
            ("int64[?]", [], []),
            ("int64[?]", (True, 2), [1, 2]),
            ("float32[2]", [1, 2.5], [1, 2.5]),
            ("float32[?]", np.array([1, 2], object), [1, 2]),
            ("uint8[?]", [np.uint8(3), np.uint8(4)], [3, 4]),
            ("datetime64:D[?]", [datetime.date(1970, 1, 2)], [datetime.date(1970, 1, 2)]),
            ("float32[2,?]", [np.zeros(1, np.float32)] * 2, [[0], [0]]),
        ],
    )
    def test_list_is_stored_as_its_field_says(self, kind: str, value: Any, read: Any) -> None:
        schema = Schema({"x": kind})

        batch = schema.decode(schema.encode_rows([{"x": value}]))

        assert batch["x"][0].tolist() == read

    @pytest.mark.parametrize(
        ("kind", "value"),
        [
            ("string[?]", np.array(["a", "bc"])),
            ("string[?]", np.array(["a", "bc"], object)),
            ("string[2]", ("a", "bc")),
        ],
    )
    def test_arrays_of_text_are_lists_of_text(self, kind: str, value: Any) -> None:
        schema = Schema({"x": kind})

        batch = schema.decode(schema.encode_rows([{"x": value}]))

        assert batch["x"][0].to_list() == ["a", "bc"]

    def test_none_is_missing_where_the_type_ends_in_a_question_mark(self) -> None:
        schema = Schema({"x": "int64?", "y": "float32[2,2]?", "z": "string[?]?"})

        batch = schema.decode(schema.encode_rows([{"x": None}]))

        assert batch.row(0) == {"x": None, "y": None, "z": None}

    def test_missing_and_empty_are_told_apart(self) -> None:
        schema = Schema({"x": "int64[?]?"})

        batch = schema.decode(schema.encode_rows([{"x": []}, {"x": None}]))

        assert batch.valid("x").tolist() == [True, False]


REFUSED = [
    ("int64", 1.5, "found 1.5 (float)\n  Round it with int(), or declare a float."),
    ("int64", np.float64(2), "found 2.0 (float64)\n  Round it with int(), or declare a float."),
    ("int64", "3", "found str\n  Convert it to int64 first."),
    ("int64", [1], "found list of shape [1]\n  Declare the shape, such as [?]."),
    ("int64", None, "found None\n  Declare 'int64?' if it may be missing."),
    ("uint8", -1, "found -1\n  uint8 holds 0 to 255. Declare int16."),
    ("uint8", 300, "found 300\n  uint8 holds 0 to 255. Declare int16."),
    ("int64", 2**100, "found an integer of 101 bits\n  int64 holds"),
    ("uint64", -1, "found -1\n  uint64 holds 0 to 18446744073709551615. No integer type holds it as well."),
    ("bool", 1, "found 1 (int64)\n  Make it one with `!= 0`."),
    ("float32", 1e300, "found 1e+300\n  It overflows to infinity in float32. Declare float64 to keep it as it is."),
    (
        "float32",
        np.float64(0.1),
        (
            "found 0.1 (float64)\n  float32 cannot hold it exactly. Round with .astype(np.float32), declare float64, "
            "or allow it: Field(..., lossy=True)."
        ),
    ),
    ("float32", np.int64(2**24 + 1), "found 16777217 (int64)\n  float32 cannot hold it exactly."),
    ("float64", np.int64(2**63 - 1), "found 9223372036854775807 (int64)\n  float64 cannot hold it exactly."),
    ("float32", True, "found True (bool)\n  Convert it to float32 first."),
    ("float32", 1j, "found 1j (complex128)\n  Declare complex128 to keep it as it is."),
    ("float64", np.longdouble(1), "found float128\n  Write float64, and store values with .astype(np.float64)."),
    ("complex64", np.complex128(0.1j), "found 0.1j (complex128)\n  complex64 cannot hold it exactly."),
    ("string", b"x", "found bytes\n  Declare bytes, or decode it: .decode()."),
    ("string", 3, "found int"),
    ("string", "a\ud800", "found text with a lone surrogate at character 1\n  UTF-8 cannot encode it."),
    ("bytes", "x", "found str\n  Declare string, or encode it: .encode()."),
    ("jpeg", PNG, "found 11 bytes, a png\n  Declare bytes to store any bytes."),
    ("jpeg", b"", "found 0 bytes, not a picture\n  Declare bytes to store any bytes."),
    (
        "jpeg",
        np.zeros((9, 7, 3)),
        (
            "found an array of float64, shape [9,7,3]\n  A jpeg takes uint8 of shape [h,w], [h,w,1] or [h,w,3]. "
            "Pixels of 0 to 1 become uint8 by (array * 255).round().astype(np.uint8)."
        ),
    ),
    ("jpeg", np.zeros((2, 9, 7, 3), np.uint8), "found an array of uint8, shape [2,9,7,3]\n  A jpeg takes uint8 of"),
    ("png", 5, "found int\n  Give the bytes of a png file, or the pixels as an array."),
    ("png[?]", np.zeros((9, 7, 3), np.uint8), "found an array of uint8, shape [9,7,3]\n  Is it one picture, or are"),
    ("png[?,?]", [np.zeros((9, 7, 3), np.uint8)], "found an array of uint8, shape [9,7,3]\n  Is it one picture, or"),
    ("png[2]", np.zeros((3, 9, 7, 3), np.uint8), "found shape [3]\n  Write ? for a dimension that varies."),
    ("datetime64:ms", np.datetime64(1, "ns"), "found 1970-01-01T00:00:00.000000001\n  It is not a whole number of"),
    ("datetime64:ns", np.datetime64("2300-01-01"), "found 2300-01-01\n  It is outside what datetime64:ns can hold."),
    ("datetime64:ns", UTC_NOW, "found a datetime with a time zone\n  NumPy's have none:"),
    ("datetime64:ns", np.timedelta64(1, "s"), "found 1 seconds (timedelta64:s)\n  Declare timedelta64:s to keep it"),
    ("datetime64:ns", 5, "found 5 (int64)\n  Declare int64 to keep it as it is."),
    ("float32[3]", [1, 2], "found shape [2]\n  Write ? for a dimension that varies."),
    ("float32[3]", 3.0, "found a scalar"),
    ("float32[3]", b"abc", "found 3 bytes\n  Convert them: np.frombuffer(..., np.float32)."),
    ("float32[?]", [[1], [2, 3]], "found lists of differing lengths\n  An array has rows of equal length"),
    ("float32[?]", [1, None], "found a list with None in it\n  Convert it to float32 first."),
    ("int64[?]", [1, 2.5], "found an array of float64\n  An integer field takes integers only."),
    ("int64[?]", {1, 2}, "found set\n  Give an array or a list."),
    ("int64[?]", np.ma.array([1, 2], mask=[False, True]), "found a masked array\n  The hidden values would"),
    ("int64[?]", np.zeros(2, [("a", "i4")]), "found void32\n  Give each part a field of its own."),
    ("int64[?]", np.array(["a"]), "found string\n  Only string and bytes fields take text."),
    ("string[?]", ["a", b"b"], "found bytes\n  Declare bytes, or decode it: .decode()."),
    ("string[?]", "abc", "found str\n  Give an array or a list."),
    ("string[?,?]", [["a"], ["b", "c"]], "found lists of differing lengths"),
]


class TestRefused:
    @pytest.mark.parametrize(("kind", "value", "words"), REFUSED, ids=[f"{k}-{w[:24]}" for k, _, w in REFUSED])
    def test_error_names_field_expected_and_found(self, kind: str, value: Any, words: str) -> None:
        with pytest.raises(SchemaError) as caught:
            Schema({"x": kind}).check({"x": value})

        assert str(caught.value).startswith(f"x: expected {kind}, {words}")
        assert (caught.value.field, caught.value.expected) == ("x", kind)

    @pytest.mark.parametrize(("kind", "value", "words"), REFUSED, ids=[f"{k}-{w[:24]}" for k, _, w in REFUSED])
    def test_writing_a_row_refuses_what_checking_refuses(self, kind: str, value: Any, words: str) -> None:
        encoder = Schema({"x": kind}).encoder()

        with pytest.raises(SchemaError) as caught:
            encoder.append({"x": value})

        assert str(caught.value).startswith(f"x: expected {kind}, {words}")
        assert len(encoder) == 0


class TestLossy:
    @pytest.mark.parametrize(
        ("kind", "value", "read"),
        [
            ("float32", np.float64(0.1), np.float32(0.1)),
            ("float16", np.float32(0.1), np.float16(0.1)),
            ("complex64", np.complex128(0.1), np.complex64(0.1)),
            ("float32", np.int64(2**24 + 1), np.float32(2**24)),
            ("datetime64:D", np.datetime64("2020-01-01T12", "h"), np.datetime64("2020-01-01")),
        ],
    )
    def test_field_that_allows_it_rounds(self, kind: str, value: Any, read: Any) -> None:
        schema = Schema({"x": Field(kind, lossy=True)})

        batch = schema.decode(schema.encode_rows([{"x": value}]))

        assert batch["x"][0] == read

    @pytest.mark.parametrize(
        ("kind", "value"),
        [
            ("float32", np.float64(1e300)),
            ("int8", 300),
            ("int64", 1.5),
            ("float8_e4m3fn", 1000.0),
            ("float8_e4m3fn", 1000),
            ("float8_e4m3fn", float("inf")),
            ("float8_e5m2", 1e6),
        ],
    )
    def test_values_of_another_size_are_refused_even_so(self, kind: str, value: Any) -> None:
        with pytest.raises(SchemaError):
            Schema({"x": Field(kind, lossy=True)}).check({"x": value})


@pytest.fixture
def nested() -> Schema:
    return Schema({"a": {"b": "int64", "c": "string?"}, "label": "int8"})


class TestRows:
    @pytest.mark.parametrize(
        ("row", "message"),
        [
            ({"a": {"b": 1}, "lable": 2}, "lable: not in the schema\n  Did you mean 'label'?"),
            ({"a": {"b": 1, "zzz": 3}, "label": 2}, "a/zzz: not in the schema\n  It has a/b, a/c, label."),
            (
                {"a": {"b": 1}},
                "label: missing from the row\n  The row has a. Declare 'int8?' if it may be missing.",
            ),
            (
                {"a": None, "label": 1},
                "a/b: missing from the row\n  The row has a, label. Declare 'int64?' if it may be missing.",
            ),
            ({}, "a/b: missing from the row\n  The row is empty. Declare 'int64?' if it may be missing."),
            ([1], "a row is a dict of field names and values, found list"),
            (
                {"a": {"b": 1}, "a/b": 2, "label": 1},
                "a/b: given twice\n  Once under its full name, once in a nested dict.",
            ),
            ({3: 1}, "field names are strings, found 3 as one"),
        ],
    )
    def test_row_of_the_wrong_names_is_refused_in_words(self, nested: Schema, row: Any, message: str) -> None:
        with pytest.raises(SchemaError) as caught:
            nested.check(row)

        assert str(caught.value) == message

    def test_encoding_rows_names_the_row(self, nested: Schema) -> None:
        rows = [{"a": {"b": 1}, "label": 1}, {"a": {"b": 1}, "label": 300}]

        with pytest.raises(SchemaError) as caught:
            nested.encode_rows(rows)

        assert str(caught.value) == (
            "label: expected int8, found 300\n  In row 1. int8 holds -128 to 127. Declare int16."
        )
        assert caught.value.record == 1

    def test_refused_row_leaves_nothing_behind(self, nested: Schema) -> None:
        encoder = nested.encoder()
        encoder.append({"a": {"b": 1}, "label": 1})
        with pytest.raises(SchemaError):
            encoder.append({"a": {"b": 2}, "label": 300})
        encoder.append({"a/b": 3, "label": 3})

        batch = nested.decode(encoder.take())

        assert batch["a/b"].tolist() == [1, 3]
        assert len(encoder) == 0

    def test_field_names_with_a_nul_are_whole(self) -> None:
        schema = Schema({"a\0b": "int64", "a": "int64"})

        batch = schema.decode(schema.encode_rows([{"a\0b": 1, "a": 2}]))

        assert batch.row(0) == {"a\0b": 1, "a": 2}
