from __future__ import annotations

import dataclasses
import pickle
from typing import Any

import numpy as np
import pytest

from recordkit.errors import SchemaError
from recordkit.schema import Array, Field, Schema, TensorProto


class TestField:
    def test_is_frozen(self) -> None:
        with pytest.raises(dataclasses.FrozenInstanceError):
            Field("int64").dtype = "int8"  # type: ignore[misc]

    def test_equal_by_content(self) -> None:
        assert Field("float32[3]?", lossy=True) == Field("float32[ 3 ]?", lossy=True)
        assert Field("float32[3]?", lossy=True) != Field("float32[3]?")
        assert Field("float32?", default=float("nan")) == Field("float32?", default=float("nan"))

    @pytest.mark.parametrize(
        ("text", "default"),
        [
            ("int8?", -3),
            ("bool?", True),
            ("float32?", 0.1),
            ("float32?", float("-inf")),
            ("complex64?", 1 + 2j),
            ("string?", "naïve"),
            ("bytes?", b"\xff"),
            ("datetime64:D?", np.datetime64("2020-02-29")),
            ("float32[2]?", (0.5, 1.5)),
            ("string[1]?", ("a",)),
            ("timedelta64:s[2]?", (np.timedelta64(1, "s"), np.timedelta64("NaT", "s"))),
            ("bytes[2]?", (b"\xff", b"")),
            ("float64[2]?", (float("nan"), 1.0)),
        ],
    )
    def test_default_survives_repr_json_and_pickle(self, text: str, default: Any) -> None:
        field = Field(text, default=default)
        schema = Schema({"x": field})

        assert eval(repr(field), {"Field": Field, "np": np}) == field
        assert Schema.from_json(schema.to_json()) == schema
        assert pickle.loads(pickle.dumps(field)) == field

    @pytest.mark.parametrize(
        ("text", "default", "message"),
        [
            ("int64", 1, "'int64' is never missing, so it needs no default\n  Write 'int64?' if it may be."),
            (
                "int64[?]?",
                1,
                "'int64[?]?' can have no default\n  A missing field of any length is read as empty.",
            ),
            ("int8?", 300, "default: expected int8?, found 300\n  int8 holds -128 to 127. Declare a wider type."),
            (
                "float32[2]?",
                [1, 2, 3],
                "default: expected float32[2]?, found shape [3]\n  Write ? for a dimension that varies.",
            ),
            ("string?", b"x", "default: expected string?, found bytes\n  Declare bytes, or decode it: .decode()."),
        ],
    )
    def test_default_that_cannot_be_is_refused(self, text: str, default: Any, message: str) -> None:
        with pytest.raises(SchemaError) as caught:
            Field(text, default=default)

        assert str(caught.value) == message

    @pytest.mark.parametrize(
        ("field", "rows", "read"),
        [
            (Field("int64?", default=7), [1, None], [1, 7]),
            (Field("float32[2]?", default=0.5), [[1, 2], None], [[1, 2], [0.5, 0.5]]),
            (Field("int8[2]?", default=(3, 4)), [None, [1, 2]], [[3, 4], [1, 2]]),
            (Field("float64?", default=0.1), [None, 2.5], [0.1, 2.5]),
        ],
    )
    def test_default_is_read_where_the_field_is_missing(self, field: Field, rows: list[Any], read: list[Any]) -> None:
        schema = Schema({"x": field})

        batch = schema.decode(schema.encode({"x": rows}))

        assert batch["x"].tolist() == read
        assert batch.valid("x").tolist() == [row is not None for row in rows]

    def test_default_is_read_for_byte_strings_too(self) -> None:
        schema = Schema({"x": Field("string?", default="none"), "y": Field("bytes[2]?", default=(b"", b"z"))})

        batch = schema.decode(schema.encode({"x": ["a", None], "y": [None, [b"1", b"2"]]}))

        assert batch["x"].to_list() == ["a", "none"]
        assert batch["y"].to_list() == [[b"", b"z"], [b"1", b"2"]]


class TestQuality:
    @pytest.mark.parametrize("field", [Field("jpeg", quality=90), Field("jpeg[?]?", lossy=True, quality=1)])
    def test_survives_repr_print_json_and_pickle(self, field: Field) -> None:
        schema = Schema({"x": field, "y": "jpeg"})

        assert eval(repr(field), {"Field": Field}) == field
        assert f'"x": rk.{field!r},' in str(schema)
        assert eval(repr(schema), {"Schema": Schema, "Field": Field}) == schema
        assert pickle.loads(pickle.dumps(schema)) == Schema.from_json(schema.to_json()) == schema
        assert Schema.from_json(schema.to_json()).fields["x"].quality == field.quality

    def test_counts_for_equality_and_is_no_difference_to_a_reader(self) -> None:
        ours, theirs = Schema({"x": Field("jpeg", quality=90)}), Schema({"x": "jpeg"})

        assert ours != theirs
        assert ours.compare(theirs) == theirs.compare(ours) == ()

    def test_left_out_leaves_no_trace(self) -> None:
        schema = Schema({"x": Field("jpeg", quality=None)})

        assert schema == Schema({"x": "jpeg"})
        assert schema.to_dict()["fields"] == {"x": "jpeg"}

    def test_numpy_integer_will_do(self) -> None:
        assert repr(Field("jpeg", quality=np.int64(80))) == "Field('jpeg', quality=80)"  # type: ignore[arg-type]

    @pytest.mark.parametrize(
        ("text", "quality", "message"),
        [
            ("jpeg", 0, "quality: expected 1 to 100, found 0"),
            ("jpeg", 101, "quality: expected 1 to 100, found 101"),
            ("jpeg", 90.0, "quality: expected 1 to 100, found 90.0"),
            ("jpeg", "90", "quality: expected 1 to 100, found str"),
            ("jpeg", True, "quality: expected 1 to 100, found True"),
            ("png", 90, "quality: only a jpeg has one, and this is png\n  A png keeps every pixel as it is."),
            ("int64[?]", 90, "quality: only a jpeg has one, and this is int64"),
        ],
    )
    def test_that_cannot_be_is_refused(self, text: str, quality: Any, message: str) -> None:
        with pytest.raises(SchemaError) as caught:
            Field(text, quality=quality)

        assert str(caught.value) == message

    def test_in_json_that_cannot_be_is_refused_with_the_name_of_the_field(self) -> None:
        saved = {"recordkit": "schema", "version": 1, "fields": {"x": {"type": "png", "quality": 90}}}

        with pytest.raises(SchemaError, match=r"^x: quality: only a jpeg has one, and this is png"):
            Schema.from_json(saved)


class TestArray:
    def test_shape_from_is_written_beside_it(self) -> None:
        schema = Schema({"x": Array("float32", shape_from="s")})

        chunk = schema.encode_rows([{"x": np.zeros((2, 3), np.float32)}])

        assert Schema({"s": "int64[?]"}).decode(chunk)["s"].to_list() == [[2, 3]]

    def test_declared_shape_must_be_that_of_the_array(self) -> None:
        schema = Schema({"s": "int64[?]", "x": Array("float32", shape_from="s")})
        schema.encode_rows([{"x": np.zeros((2, 3)), "s": [2, 3]}])

        with pytest.raises(SchemaError) as caught:
            schema.encode_rows([{"x": np.zeros((2, 3)), "s": [3, 2]}])

        assert str(caught.value) == "x: its shape is not the one in 's'\n  Arrays that share a shape must agree in it."

    def test_two_arrays_may_share_a_shape(self) -> None:
        schema = Schema({"x": Array("float32", shape_from="s"), "y": Array("uint8", shape_from="s", optional=True)})

        chunk = schema.encode_rows([{"x": np.ones((2, 2)), "y": np.ones((2, 2), np.uint8)}])

        assert schema.decode(chunk)["y"].to_list() == [[[1, 1], [1, 1]]]

    def test_declared_shape_of_fixed_length_is_used_too(self) -> None:
        schema = Schema({"s": "int64[2]", "x": Array("uint8", shape_from="s")})

        batch = schema.decode(schema.encode_rows([{"x": np.eye(2, dtype=np.uint8), "s": [2, 2]}]))

        assert batch["s"].tolist() == [[2, 2]]
        assert batch["x"].to_list() == [[[1, 0], [0, 1]]]

    def test_number_of_bytes_tells_one_dimension(self) -> None:
        schema = Schema({"x": Array("uint8", shape=(None, 2))})

        batch = schema.decode(schema.encode_rows([{"x": [[1, 2], [3, 4]]}, {"x": np.zeros((0, 2), np.uint8)}]))

        assert [row.shape for row in batch["x"]] == [(2, 2), (0, 2)]

    def test_fixed_shape_is_raw_bytes_whatever_the_dtype(self) -> None:
        schema = Schema({"x": Array("int64", shape=(2,))})

        chunk = schema.encode_rows([{"x": [1, 2]}])

        assert Schema({"x": "bytes"}).decode(chunk)["x"][0] == np.array([1, 2], "<i8").tobytes()
        assert schema.decode(chunk)["x"].tolist() == [[1, 2]]

    def test_rows_of_differing_rank_are_written(self) -> None:
        schema = Schema({"x": Array("uint8", shape_from="s")})

        chunk = schema.encode_rows([{"x": [1]}, {"x": [[2, 3]]}])

        assert schema.decode(chunk, start=1)["x"].to_list() == [[[2, 3]]]
        with pytest.raises(SchemaError, match="expected 1 dimensions, found 2 numbers in 's'"):
            schema.decode(chunk)["x"]

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (
                {"dtype": "float32"},
                "Array('float32'): expected either shape= or shape_from=\n  One of them gives the shape",
            ),
            ({"dtype": "string", "shape_from": "s"}, "Array('string'): raw bytes hold numbers\n  Declare 'string'"),
            (
                {"dtype": "int8", "shape": (None, None)},
                "the number of bytes does not determine this shape\n  Use at most one None",
            ),
            (
                {"dtype": "int8", "shape": (-1,)},
                "a dimension is less than zero\n  Write None for any length.",
            ),
            ({"dtype": "int9", "shape": (1,)}, "'int9' is not a dtype a schema can hold\n  Did you mean 'int"),
        ],
    )
    def test_what_makes_no_array_is_refused(self, arguments: dict[str, Any], message: str) -> None:
        with pytest.raises(SchemaError) as caught:
            Array(**arguments)

        assert message in str(caught.value)


class TestTensorProto:
    def test_dtype_and_shape_are_found_in_the_tensors(self) -> None:
        schema = Schema({"x": TensorProto()})

        batch = schema.decode(schema.encode_rows([{"x": np.eye(2)}, {"x": np.ones((0, 3))}]))

        assert [(row.dtype, row.shape) for row in batch["x"]] == [(np.dtype("f8"), (2, 2)), (np.dtype("f8"), (0, 3))]

    def test_fixed_shape_gives_an_array(self) -> None:
        schema = Schema({"x": TensorProto("uint8", (2,), optional=True)})

        batch = schema.decode(schema.encode({"x": [[1, 2], None]}))

        assert batch["x"].tolist() == [[1, 2], [0, 0]]
        assert batch.valid("x").tolist() == [True, False]

    def test_scalars_give_an_array(self) -> None:
        schema = Schema({"x": TensorProto()})

        batch = schema.decode(schema.encode({"x": np.array([1, 2], np.int32)}))

        assert batch["x"].tolist() == [1, 2]
        assert batch["x"].dtype == np.int32

    def test_text_is_text_and_bytes_are_bytes(self) -> None:
        schema = Schema({"x": TensorProto("string"), "y": TensorProto()})

        batch = schema.decode(schema.encode_rows([{"x": ["a", "ü"], "y": [b"\xff"]}]))

        assert batch["x"].to_list() == [["a", "ü"]]
        assert batch["y"].to_list() == [[b"\xff"]]

    @pytest.mark.parametrize("dtype", ["jpeg", "datetime64:ns", "float8_e5m2"])
    def test_dtypes_tensorflow_does_not_serialize_are_refused(self, dtype: str) -> None:
        with pytest.raises(SchemaError, match="TensorFlow does not serialize tensors of this dtype"):
            TensorProto(dtype)

    def test_lists_of_differing_lengths_are_no_tensor(self) -> None:
        with pytest.raises(SchemaError, match="found lists of differing lengths\n  A tensor has rows of equal length"):
            Schema({"x": TensorProto()}).check({"x": [[1], [2, 3]]})

    def test_how_to_make_it_optional_is_said(self) -> None:
        with pytest.raises(SchemaError, match="found None\n  Pass optional=True if it may be missing"):
            Schema({"x": TensorProto()}).check({"x": None})

    def test_array_of_a_dtype_tensorflow_does_not_serialize_is_refused(self) -> None:
        with pytest.raises(
            SchemaError, match=r"found datetime64\[D\]\n  TensorFlow does not serialize tensors of this dtype"
        ):
            Schema({"x": TensorProto()}).check({"x": np.array("2020", "M8[D]")})
