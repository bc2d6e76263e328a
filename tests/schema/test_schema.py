from __future__ import annotations

import json
import sys
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from recordkit import dtypes
from recordkit.errors import MissingExtraError, SchemaError
from recordkit.schema import Array, Field, Schema, TensorProto

if TYPE_CHECKING:
    from pathlib import Path

TOUR = {
    "id": "int64",
    "image": "jpeg",
    "label": "int64",
    "tokens": "int64[?]",
    "embedding": "float32[768]",
    "depth": "float64[?,?]",
    "note": "string?",
}


class TestDeclaring:
    def test_nested_dicts_flatten(self) -> None:
        schema = Schema({"a": {"b": {"c": "int64"}, "d": "string"}})

        assert schema.names == ("a/b/c", "a/d")

    def test_fields_cannot_be_changed(self) -> None:
        with pytest.raises(TypeError):
            Schema(TOUR).fields["id"] = Field("int8")  # type: ignore[index]

    def test_order_does_not_matter_to_equality(self) -> None:
        one, two = Schema({"a": "int64", "b": "int8"}), Schema({"b": "int8", "a": "int64"})

        assert one == two
        assert hash(one) == hash(two)

    def test_field_and_sequence_are_not_the_same(self) -> None:
        assert Schema({"a": "int64"}) != Schema({}, sequences={"a": "int64"})

    @pytest.mark.parametrize(
        ("declared", "message"),
        [
            ({"x": "flaot32"}, "x: 'flaot32' is not a dtype a schema can hold\n  Did you mean 'float32'?"),
            (
                {"x": 3},
                (
                    "x: 3 is not a type\n"
                    "  A field is a text such as 'float32[3]', a Field, an Array, a TensorProto, or a dict of fields."
                ),
            ),
            ({"": "int64"}, "'': a field's name is a string that is not empty"),
            ({3: "int64"}, "3: a field's name is a string that is not empty"),
            ({"\ud800": "int64"}, "'\\ud800': a field's name must have a UTF-8 form, and this has a lone surrogate"),
            (
                {"a": {"b": "int64"}, "a/b": "int64"},
                "a/b: declared twice\n  Once under its full name, once in a nested dict.",
            ),
            (
                {"x": "float64[?,?]", "x/shape": "int64"},
                (
                    "x/shape: this name is needed for the shape of 'x'\n"
                    "  'x' is float64[?,?], whose arrays are stored with it. Rename one of the two."
                ),
            ),
            ({"x": "float64[?,?]", "x/dtype": "string"}, "x/dtype: this name is needed for the dtype of 'x'\n"),
            (
                {"x": Array("float32", shape_from="y/shape"), "y": "int64[?,?]"},
                "y/shape: this name is needed for the shape of 'y'",
            ),
            (
                {"x": Array("float32", shape_from="s"), "s": "string"},
                "x: its shape cannot be in 's', which is string\n  Declare the shape as int64[?].",
            ),
            ([1], "a schema is a dict of names and types, found list"),
        ],
    )
    def test_what_contradicts_itself_is_refused_in_words(self, declared: Any, message: str) -> None:
        with pytest.raises(SchemaError) as caught:
            Schema(declared)

        assert str(caught.value).startswith(message)

    def test_names_of_companions_are_free_where_there_are_none(self) -> None:
        assert Schema({"x": "float64[2,2]", "x/shape": "int64"}).wire_names("x") == ("x",)

    @pytest.mark.parametrize(
        ("sequences", "message"),
        [
            ({"x": "int64"}, "x: declared as a field and as a sequence\n"),
            ({"y": Field("int64?", default=1)}, "y: a sequence can have no default\n"),
            ({"y": Array("int8", shape_from="x")}, "y: its shape cannot be in 'x', which is int64\n"),
        ],
    )
    def test_sequence_that_contradicts_a_field_is_refused(self, sequences: Any, message: str) -> None:
        with pytest.raises(SchemaError) as caught:
            Schema({"x": "int64"}, sequences=sequences)

        assert str(caught.value).startswith(message)

    def test_one_shape_cannot_be_of_a_field_and_of_a_sequence(self) -> None:
        with pytest.raises(SchemaError, match="'s' cannot hold the shapes of a field and of a sequence"):
            Schema({"x": Array("int8", shape_from="s")}, sequences={"y": Array("int8", shape_from="s")})


class TestSelecting:
    def test_select_keeps_the_order_given(self) -> None:
        schema = Schema(TOUR, sequences={"steps": "int64"})

        assert schema.select("steps", "note", "id").names == ("note", "id", "steps")

    def test_drop_keeps_the_rest(self) -> None:
        assert Schema({"a": "int64", "b": "int64"}, sequences={"c": "int64"}).drop("a").names == ("b", "c")

    @pytest.mark.parametrize("verb", ["select", "drop", "wire_names"])
    def test_unknown_name_asks_what_was_meant(self, verb: str) -> None:
        with pytest.raises(SchemaError) as caught:
            getattr(Schema(TOUR), verb)("lable")

        assert str(caught.value) == "lable: not in the schema\n  Did you mean 'label'?"

    def test_companions_are_named(self) -> None:
        schema = Schema(TOUR)

        assert schema.wire_names("depth") == ("depth", "depth/shape", "depth/dtype")
        assert schema.wire_names("tokens") == ("tokens",)


class TestPrinting:
    def test_table_is_worth_pasting(self) -> None:
        schema = Schema(
            {**TOUR, "data": Array("float32", shape_from="shape"), "n": Field("int64?", default=0)},
            sequences={"t": TensorProto()},
        )

        assert str(schema) == (
            "rk.Schema({\n"
            '    "id":        "int64",\n'
            '    "image":     "jpeg",\n'
            '    "label":     "int64",\n'
            '    "tokens":    "int64[?]",\n'
            '    "embedding": "float32[768]",\n'
            '    "depth":     "float64[?,?]",\n'
            '    "note":      "string?",\n'
            "    \"data\":      rk.Array('float32', shape_from='shape'),\n"
            "    \"n\":         rk.Field('int64?', default=0),\n"
            "}, sequences={\n"
            '    "t": rk.TensorProto(),\n'
            "})"
        )

    def test_repr_is_one_line(self) -> None:
        assert repr(Schema({"a": "int64"}, sequences={"b": "bytes?"})) == (
            "Schema({'a': 'int64'}, sequences={'b': 'bytes?'})"
        )

    def test_schema_without_fields_prints_too(self) -> None:
        assert (str(Schema({})), repr(Schema({}))) == ("rk.Schema({})", "Schema({})")


class TestSaving:
    def test_saved_schema_loads(self, tmp_path: Path) -> None:
        schema = Schema({**TOUR, "x": Field("float32?", default=0.5, lossy=True)}, sequences={"t": TensorProto("int8")})

        schema.save(tmp_path / "s.json")

        assert Schema.load(tmp_path / "s.json") == schema
        assert [path.name for path in tmp_path.iterdir()] == ["s.json"]

    def test_existing_file_is_kept_unless_asked(self, tmp_path: Path) -> None:
        path = tmp_path / "s.json"
        Schema({"a": "int64"}).save(path)

        with pytest.raises(FileExistsError, match="Pass overwrite=True to replace it"):
            Schema({"b": "int64"}).save(path)
        assert Schema.load(path).names == ("a",)
        Schema({"b": "int64"}).save(path, overwrite=True)

        assert Schema.load(path).names == ("b",)

    def test_format_is_plain_json(self) -> None:
        assert json.loads(Schema({"a": "int64", "b": Field("int8?", default=1)}).to_json()) == {
            "recordkit": "schema",
            "version": 1,
            "fields": {"a": "int64", "b": {"type": "int8?", "default": 1}},
            "sequences": {},
        }

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("{", "not JSON: "),
            ("[]", 'not a schema of recordkit\n  A saved one begins with {"recordkit": "schema"}.'),
            (
                '{"recordkit": "schema", "version": 2}',
                "schema format 2, and this recordkit reads up to 1\n  Install a newer recordkit.",
            ),
            ('{"recordkit": "schema", "version": 1, "fields": {"a": "int65"}}', "a: 'int65' is not a dtype"),
            ('{"recordkit": "schema", "version": 1, "fields": {"a": {"size": 1}}}', 'a: not a type: {"size": 1}'),
            ('{"recordkit": "schema", "version": 1, "fields": {"a": {"type": "int8", "new": 1}}}', "a: "),
            ('{"recordkit": "schema", "version": 1, "fields": []}', "'fields' is not a JSON object"),
        ],
    )
    def test_what_is_no_saved_schema_is_refused_in_words(self, text: str, message: str, tmp_path: Path) -> None:
        (tmp_path / "s.json").write_text(text)

        with pytest.raises(SchemaError) as caught:
            Schema.from_json(text)
        with pytest.raises(SchemaError) as loading:
            Schema.load(tmp_path / "s.json")

        assert str(caught.value).startswith(message)
        assert str(loading.value).startswith(f"{tmp_path / 's.json'}: {message}")


class TestComparing:
    @pytest.mark.parametrize(
        ("ours", "theirs", "words"),
        [
            ({"a": "int64"}, {"a": "int64"}, []),
            ({"a": "int64"}, {"a": "int32"}, ["a: expected int64, found int32"]),
            ({"a": "int64[2]"}, {"a": "int64[?]"}, ["a: expected shape [2], found shape [?]"]),
            ({"a": "int64"}, {"a": "int64[?]"}, ["a: expected a scalar, found shape [?]"]),
            ({"a": "int64"}, {"a": "int64?"}, ["a: expected one that is never missing, found one that may be missing"]),
            (
                {"a": "int64?"},
                {"a": "float32[2]"},
                [
                    "a: expected int64, found float32",
                    "a: expected a scalar, found shape [2]",
                    "a: expected one that may be missing, found one that is never missing",
                ],
            ),
            (
                {"label": "int64"},
                {"lable": "int64"},
                ["label: missing; did you mean 'lable'?", "lable: not expected; did you mean 'label'?"],
            ),
            (
                {"a": "int64"},
                {"zzz": "jpeg"},
                ["a: missing, expected int64", "zzz: not expected, found jpeg"],
            ),
            (
                {"a": "float32[?,?]"},
                {"a": Array("float32", shape_from="s")},
                ["a: expected float32[?,?], found Array('float32', shape_from='s')"],
            ),
            (
                {"a": Field("int8?", default=1)},
                {"a": "int8?"},
                ["a: expected Field('int8?', default=1), found Field('int8?')"],
            ),
        ],
    )
    def test_differences_are_said_in_words(self, ours: Any, theirs: Any, words: list[str]) -> None:
        found = Schema(ours).compare(Schema(theirs))

        assert [str(difference) for difference in found] == words
        assert Schema(ours).explain_difference(Schema(theirs)) == "\n".join(words)

    def test_field_is_not_a_sequence(self) -> None:
        found = Schema({"a": "int64"}).compare(Schema({}, sequences={"a": "int64"}))

        assert [(d.field, d.what, d.words) for d in found] == [
            ("a", "storage", "a: expected int64, found a sequence of int64")
        ]


class TestExtras:
    def test_bfloat16_needs_ml_dtypes_only_when_values_are_touched(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "ml_dtypes", None)
        dtypes.numpy_dtype.cache_clear()
        schema = Schema({"x": "bfloat16"})

        with pytest.raises(MissingExtraError, match=r"bfloat16 needs ml_dtypes: pip install 'recordkit\[ml_dtypes\]'"):
            schema.encode({"x": [1.5]})

    def test_description_needs_tensorflow(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "tensorflow", None)

        with pytest.raises(MissingExtraError, match="to_feature_description needs tensorflow"):
            Schema({"x": "int64"}).to_feature_description()


class TestThreads:
    def test_one_schema_decodes_in_many_threads(self) -> None:
        schema = Schema({"x": "int64", "y": "string?", "z": "float64[?,?]"})
        rows = [{"x": i, "y": str(i), "z": np.full((1, i % 3), i)} for i in range(200)]
        chunk = schema.encode_rows(rows)
        found: list[bool] = []

        def work() -> None:
            for _ in range(20):
                batch = schema.decode(chunk)
                found.append(batch["x"].sum() == 19900 and batch["y"][7] == "7" and len(batch["z"]) == 200)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert found == [True] * 80
