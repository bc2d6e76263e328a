"""What others, or damage, may have put where a field was declared, and the words for it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from recordkit import examples
from recordkit.columns import BytesColumn
from recordkit.errors import SchemaError
from recordkit.examples import Values, serialize_tensor
from recordkit.schema import Array, Field, Schema, TensorProto


def ints(*values: int) -> Values:
    return Values("int64", np.array(values), count=1)


def strings(*values: bytes) -> Values:
    return Values("bytes", BytesColumn.of(values), count=1)


def lists(*rows: list[int]) -> Values:
    offsets = np.cumsum([0, *map(len, rows)]).astype(np.int64)
    return Values("int64", np.array([value for row in rows for value in row], np.int64), offsets)


def read(declared: Any, features: dict[str, Values], rows: int = 2) -> Any:
    chunk = examples.encode(features, rows)
    return Schema({"x": declared}).decode(chunk, path="a.tfrecord")["x"]


def tensor(array: Any) -> bytes:
    return serialize_tensor(np.asarray(array))


WRONG: list[tuple[Any, dict[str, Values], str]] = [
    ("uint8", {"x": ints(1, 300)}, "expected uint8, found 300\n  In record 1 of a.tfrecord. Declare a wider type"),
    ("bool", {"x": ints(0, -1)}, "expected bool, found -1\n  In record 1 of a.tfrecord. Declare int64 to read"),
    ("int8[?]", {"x": lists([1], [2, 128])}, "expected int8[?], found 128\n  In record 1"),
    ("float64", {"x": strings(b"8 bytes.", b"4byt")}, "expected float64 (8 bytes), found 4 bytes\n  In record 1"),
    (
        "float64[?]",
        {"x": strings(b"", b"1")},
        "expected float64[?] (a multiple of 8 bytes), found 1 byte\n  In record 1",
    ),
    ("bool[2,1]", {"x": strings(b"\0\1", b"\0\2")}, "expected bool[2,1], found a byte of 2\n  In record 1"),
    ("string", {"x": strings(b"a", b"\xff")}, "expected string, found bytes that are not UTF-8\n  In record 1"),
    ("string", {"x": strings("ä".encode()[:1], "ä".encode()[1:])}, "expected string, found bytes that are not UTF-8"),
    (
        "float64",
        {"x": ints(1, 2)},
        "expected 1 bytes value, found int64\n  In a.tfrecord: record 0 at byte 0. float64 is",
    ),
    (
        "int64",
        {"x": strings(b"", b"")},
        "expected 1 int64 value, found bytes\n  In a.tfrecord: record 0 at byte 0. Declare",
    ),
    ("int64[2]", {"x": ints(1, 2)}, "expected 2 int64 values, found 1 values\n"),
    ("int64", {"y": ints(1, 2)}, "expected 1 int64 value, found nothing\n"),
    (
        "int64[?,?]",
        {"x": lists([1], [1, 2]), "x/shape": lists([1, 1], [1, 3])},
        "expected int64[?,?], found 2 values of shape [1,3]\n  In record 1 of a.tfrecord. The shape is from 'x/shape'.",
    ),
    (
        "int64[?,?]",
        {"x": lists([1], [1, 2]), "x/shape": lists([1, 1], [-1, -2])},
        "expected int64[?,?], found 2 values of shape [-1,-2]\n  In record 1",
    ),
    (
        "int64[?,?,?]",
        {"x": lists([1], []), "x/shape": lists([1, 1, 1], [0, 2**62, 2**62])},
        "expected int64[?,?,?], found 0 values of shape [0,4611686018427387904,4611686018427387904]\n  In record 1",
    ),
    (
        "int64[?,?,?]",
        {"x": lists([1], []), "x/shape": lists([1, 1, 1], [2**32, 2**31, 2])},
        "expected int64[?,?,?], found 0 values of shape [4294967296,2147483648,2]\n  In record 1",
    ),
    (
        "int64[?,2]",
        {"x": lists([1, 2], [1]), "x/shape": lists([1, 2], [1, 1])},
        "expected int64[?,2], found 1 value of shape [1,1]\n  In record 1",
    ),
    ("int64[?,?]", {"x": lists([1], [])}, "expected int64[?,?], found no 'x/shape' beside it\n  In record 0"),
    ("int64[?,2]", {"x": lists([1, 2], [1])}, "expected int64[?,2], found 1 value\n  In record 1"),
    (
        "float64[?,?]",
        {
            "x": strings(b"8 bytes.", b""),
            "x/shape": lists([1, 1], [0, 1]),
            "x/dtype": strings(b"float64", b"float32"),
        },
        "expected float64, found float32\n  In record 1 of a.tfrecord. It says so in 'x/dtype'.",
    ),
    (
        Array("float32", shape_from="s"),
        {"x": strings(b"4byt", b"8 bytes."), "s": lists([1, 1], [2])},
        "expected 2 dimensions, found 1 number in 's'\n  In record 1 of a.tfrecord. Arrays read together must agree",
    ),
    (
        Array("float32", shape_from="s"),
        {"x": strings(b"4byt", b"")},
        "expected Array('float32', shape_from='s'), found no 's' beside it\n  In record 0",
    ),
    (
        TensorProto(),
        {"x": strings(tensor(np.eye(2)), tensor(np.ones(2)))},
        "expected shape [?,?], found shape [2]\n  In record 1 of a.tfrecord. Tensors read together must have",
    ),
    (
        TensorProto(),
        {"x": strings(tensor(np.eye(2)), tensor(np.ones((2, 2), np.int8)))},
        "expected a tensor of float64, found a tensor of int8\n  In record 1 of a.tfrecord. Tensors read together",
    ),
    (
        TensorProto("float64", (2, 2)),
        {"x": strings(tensor(np.eye(2)), tensor(np.eye(3)))},
        "expected shape [2,2], found shape [3,3]\n  In record 1",
    ),
    (TensorProto(), {"x": strings(b"junk", b"")}, "expected TensorProto(), found 4 bytes that are not a TensorProto\n"),
    (
        TensorProto("string"),
        {"x": strings(tensor(np.array([b"a"], object)), tensor(np.array([b"\xff"], object)))},
        "expected TensorProto('string'), found bytes that are not UTF-8\n  In record 1",
    ),
]


class TestRefused:
    @pytest.mark.parametrize(("declared", "features", "words"), WRONG, ids=[words[:48] for _, _, words in WRONG])
    def test_error_names_record_field_expected_and_found(
        self, declared: Any, features: dict[str, Values], words: str
    ) -> None:
        with pytest.raises(SchemaError) as caught:
            read(declared, features)

        assert str(caught.value).startswith(f"x: {words}")
        assert (caught.value.field, caught.value.path) == ("x", "a.tfrecord")

    def test_record_is_counted_from_where_reading_began(self) -> None:
        chunk = examples.encode({"x": ints(1, 2, 300)}, 3)

        with pytest.raises(SchemaError) as caught:
            Schema({"x": "uint8"}).decode(chunk, start=1)["x"]

        assert caught.value.record == 2

    def test_unknown_field_is_not_selected(self) -> None:
        with pytest.raises(SchemaError, match="lable: not in the schema\n  Did you mean 'label'"):
            Schema({"label": "int64"}).decode(examples.encode({"label": ints(1)}, 1), select=["lable"])


class TestTaken:
    def test_one_open_dimension_needs_no_shape(self) -> None:
        found = read("int64[?,2]", {"x": lists([1, 2, 3, 4], [])})

        assert [row.shape for row in found] == [(2, 2), (0, 2)]

    def test_raw_bytes_need_no_dtype_beside_them(self) -> None:
        found = read("uint8[?,?]", {"x": strings(b"ab", b""), "x/shape": lists([2, 1], [0, 3])})

        assert [row.shape for row in found] == [(2, 1), (0, 3)]

    def test_empty_list_is_missing_where_one_value_is_declared(self) -> None:
        chunk = examples.encode({"x": lists([1], [])}, 2)

        batch = Schema({"x": Field("int64?", default=9)}).decode(chunk)

        assert batch["x"].tolist() == [1, 9]
        assert batch.valid("x").tolist() == [True, False]

    def test_picture_is_not_looked_into(self) -> None:
        assert read("jpeg", {"x": strings(b"a", b"b")}).to_list() == [b"a", b"b"]

    def test_only_selected_columns_are_decoded(self) -> None:
        schema = Schema({"x": "int64", "y": "int64"})
        chunk = examples.encode({"x": ints(1)}, 1)

        assert schema.decode(chunk, select=["x"]).names == ("x",)

    def test_columns_are_made_when_they_are_asked_for(self) -> None:
        schema = Schema({"x": "uint8", "y": "int64"})
        chunk = examples.encode({"x": ints(300), "y": ints(1)}, 1)

        assert schema.decode(chunk)["y"].tolist() == [1]

    def test_numbers_are_aligned_whatever_lies_before_them(self) -> None:
        schema = Schema({"x": "float64[?]"})

        found = schema.decode(schema.encode({"x": [[1.5], [2.5, 3.5]]}))["x"]

        assert found.values.flags.aligned
