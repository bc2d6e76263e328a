from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordkit import examples, records
from recordkit.columns import BytesColumn
from recordkit.errors import CorruptRecordError, SchemaError
from recordkit.examples import Values
from recordkit.schema import Schema
from tests.wire import entry, example, floats, ints, steps, texts
from tests.wire import lists as feature_lists

JPEG, PNG = b"\xff\xd8\xff\xe0", b"\x89PNG\r\n\x1a\n"


def lists(kind: Any, *rows: list[Any]) -> Values:
    offsets = np.cumsum([0, *map(len, rows)]).astype(np.int64)
    flat = [value for row in rows for value in row]
    if kind == "bytes":
        return Values("bytes", BytesColumn.of(flat), offsets)
    numbers: Any = np.array(flat, np.int64 if kind == "int64" else np.float32)
    return Values(kind, numbers, offsets)


def infer(**features: Values) -> dict[str, str]:
    rows = len(next(iter(features.values())).offsets)  # type: ignore[arg-type]
    columns = {name.replace("__", "/"): values for name, values in features.items()}
    schema = Schema.infer(examples.encode(columns, rows - 1))
    return {name: str(field) for name, field in schema.fields.items()}


class TestFromTheWire:
    @pytest.mark.parametrize(
        ("values", "kind"),
        [
            (lists("int64", [1], [2]), "int64"),
            (lists("int64", [1, 2], [3, 4]), "int64[2]"),
            (lists("int64", [1, 2], [3]), "int64[?]"),
            (lists("int64", [], [3]), "int64[?]"),
            (lists("int64", [], []), "int64[?]"),
            (lists("float", [1.5], [2]), "float32"),
            (lists("bytes", [b"a"], ["ü".encode()]), "string"),
            (lists("bytes", [b"a"], [b"\xff"]), "bytes"),
            (lists("bytes", [b"a", b"b"], []), "string[?]"),
            (lists("bytes", [JPEG], [JPEG]), "jpeg"),
            (lists("bytes", [PNG, PNG], [PNG, PNG]), "png[2]"),
            (lists("bytes", [JPEG], [PNG]), "bytes"),
        ],
    )
    def test_kind_and_counts_tell_the_type(self, values: Values, kind: str) -> None:
        assert infer(x=values) == {"x": kind}

    def test_field_that_a_record_lacks_may_be_missing(self) -> None:
        schema = Schema({"x": "int64?", "y": "int64"})

        inferred = Schema.infer(schema.encode({"x": [1, None], "y": [1, 2]}))

        assert inferred == schema

    def test_feature_without_a_kind_may_be_missing(self) -> None:
        payloads = [bytes.fromhex("0a0c0a0a0a016112051a030a0101"), bytes.fromhex("0a070a050a01611200")]

        inferred = Schema.infer(records.pack_many(payloads))

        assert inferred == Schema({"a": "int64?"})
        assert inferred.decode(records.pack_many(payloads)).valid("a").tolist() == [True, False]

    def test_feature_that_never_has_a_kind_can_be_read(self) -> None:
        chunk = records.pack_many([bytes.fromhex("0a070a050a01611200")])

        inferred = Schema.infer(chunk)

        assert inferred.decode(chunk).valid("a").tolist() == [False]

    def test_chunks_are_taken_together(self) -> None:
        one = Schema({"x": "int64[2]"}).encode({"x": [[1, 2]]})
        two = Schema({"x": "int64[3]", "y": "string"}).encode({"x": [[1, 2, 3]], "y": ["a"]})

        assert Schema.infer([one, two]) == Schema({"x": "int64[?]", "y": "string?"})

    def test_two_kinds_under_one_name_are_left_out_and_said(self, caplog: pytest.LogCaptureFixture) -> None:
        one, two = Schema({"id": "int64", "x": "int64"}), Schema({"id": "int64", "x": "float32"})

        chunks = [one.encode({"id": [1], "x": [1]}), two.encode({"id": [2], "x": [1.5]})]
        inferred = Schema.infer(chunks)

        assert inferred == Schema({"id": "int64"})
        (said,) = caplog.messages
        assert said.startswith("x: left out of the fields: records have float and int64 lists under one name")
        assert said.endswith("""open(path, schema={'x': "float32[?]?", ...: ...}, on_error="skip").""")
        with pytest.raises(SchemaError, match="x: float and int64 lists under one name"):
            Schema.infer(chunks, strict=True)

    def test_nothing_is_told_from_no_records(self) -> None:
        with pytest.raises(SchemaError, match="there are no records to tell a schema from"):
            Schema.infer(records.pack_many([]))

    def test_payload_that_is_no_example_is_reported(self) -> None:
        with pytest.raises(CorruptRecordError):
            Schema.infer(records.pack_many([b"\xff\xff"]))

    def test_sequences_are_told_from_fields(self) -> None:
        schema = Schema({"id": "int64"}, sequences={"a": "float32[2]", "b": "int64[?]", "c": "float64[?,?]?"})
        rows = [
            {"id": 1, "a": [[1, 2]], "b": [[1], []], "c": [np.eye(2), np.ones((1, 3))]},
            {"id": 2, "a": [[1, 2], [3, 4]], "b": []},
        ]

        assert Schema.infer(schema.encode_rows(rows)) == schema


class TestArrays:
    @pytest.mark.parametrize("kind", ["float64[?,?]", "uint8[?,?,?]", "int64[?,?]", "float32[?,?]", "string[?,?]"])
    def test_arrays_are_known_by_their_shape(self, kind: str) -> None:
        schema = Schema({"x": kind, "y": "int64"})
        fill: Any = "a" if kind.startswith("string") else 1
        rank = kind.count("?")
        rows = [{"x": np.full((2,) * rank, fill, object), "y": 1}, {"x": np.full((1,) * rank, fill, object), "y": 2}]

        assert Schema.infer(schema.encode_rows(rows)) == schema

    def test_array_may_be_missing(self) -> None:
        schema = Schema({"x": "float64[?,?]?"})

        assert Schema.infer(schema.encode({"x": [np.eye(2), None]})) == schema

    def test_shape_that_does_not_agree_with_the_size_is_a_field_of_its_own(self) -> None:
        found = infer(x=lists("int64", [1, 2, 3]), x__shape=lists("int64", [2, 2]))

        assert found == {"x": "int64[3]", "x/shape": "int64[2]"}

    def test_shape_of_one_number_is_a_field_of_its_own(self) -> None:
        found = infer(x=lists("int64", [1, 2, 3]), x__shape=lists("int64", [3]))

        assert found == {"x": "int64[3]", "x/shape": "int64"}

    def test_one_record_that_disagrees_is_enough(self) -> None:
        schema = Schema({"x": "int64[?,?]"})
        good = schema.encode({"x": [[[1, 2]]]})
        columns = {"x": lists("int64", [1, 2]), "x/shape": lists("int64", [2, 2])}

        inferred = Schema.infer([good, examples.encode(columns, 1)])

        assert {name: str(field) for name, field in inferred.fields.items()} == {"x": "int64[2]", "x/shape": "int64[2]"}

    def test_array_without_its_shape_in_another_chunk_is_none(self) -> None:
        with_shape = Schema({"x": "int64[?,?]"}).encode({"x": [[[1, 2]]]})
        without = Schema({"x": "int64[2]"}).encode({"x": [[1, 2]]})

        for chunks in ([with_shape, without], [without, with_shape]):
            assert Schema.infer(chunks) == Schema({"x": "int64[2]", "x/shape": "int64[2]?"})

    def test_shape_without_an_array_is_kept(self) -> None:
        with_array = Schema({"x": "int64[?,?]"}).encode({"x": [[[1, 2]]]})
        alone = Schema({"x/shape": "int64[2]"}).encode({"x/shape": [[1, 2]]})

        assert Schema.infer([with_array, alone]) == Schema({"x": "int64[2]?", "x/shape": "int64[2]"})

    def test_dtype_that_is_none_is_text(self) -> None:
        found = infer(
            x=lists("bytes", [b"\xff" * 4]), x__shape=lists("int64", [2, 2]), x__dtype=lists("bytes", [b"float99"])
        )

        assert found == {"x": "bytes", "x/dtype": "string", "x/shape": "int64[2]"}


@st.composite
def arrays_of_others(draw: st.DrawFn) -> list[dict[str, bytes]]:
    """Records with what may be an array, its shape and its dtype: right, nearly right, or hostile."""
    kind = draw(st.sampled_from(["raw", "raw", "int64", "float"]))
    sizes = st.sampled_from([0, 0, 1, 2, 3, 2**31, 2**62, 2**63 - 1, -1])
    dtypes = st.sampled_from(
        ["uint8", "float64", "float32", "int64", "bool", "bfloat16", "float8_e5m2", "bytes", "string", "", "x"]
    )
    rank, dtype, has_dtype = draw(st.integers(2, 3)), draw(dtypes), draw(st.booleans())
    rows = []
    for _ in range(draw(st.integers(1, 3))):
        shape = draw(st.lists(sizes, min_size=rank, max_size=rank))
        product = math.prod(shape)
        count = product if 0 <= product <= 20 and draw(st.booleans()) else draw(st.integers(0, 4))
        raw = bytes(count * {"float64": 8, "int64": 8, "float32": 4, "bfloat16": 2}.get(dtype, 1))
        odd = draw(st.sampled_from([[raw], [raw], [raw], [], [b"", b""]]))
        values = texts(*odd) if kind == "raw" else ints(*[1] * count) if kind == "int64" else floats(*[1] * count)
        beside = {"x/dtype": texts(dtype.encode())} if has_dtype else {}
        rows.append({"x": values, "x/shape": ints(*shape), **beside})
    return rows


class TestWhatIsInferredCanBeRead:
    @given(arrays_of_others(), st.booleans())
    def test_arrays_of_others(self, rows: list[dict[str, bytes]], in_steps: bool) -> None:
        if in_steps:
            entries = [[entry(name, steps(value, value)) for name, value in row.items()] for row in rows]
            chunk = records.pack_many([feature_lists(*each) for each in entries])
        else:
            entries = [[entry(name, value) for name, value in row.items()] for row in rows]
            chunk = records.pack_many([example(*each) for each in entries])

        schema = Schema.infer(chunk)
        batch = schema.decode(chunk)

        assert all(len(batch[name]) == len(rows) for name in schema.names)

    @pytest.mark.parametrize(
        ("value", "shape", "dtype"),
        [
            (texts(b""), [0, 3], "float32"),
            (texts(bytes(12)), [1, 3], "float32"),
            (texts(b""), [0, 3], "int64"),
            (texts(), [0, 3], "uint8"),
            (texts(b""), [0, 0, 2**62], "uint8"),
            (ints(), [0, 0, 2**62], None),
        ],
    )
    def test_what_no_array_is_stored_as_are_fields(self, value: bytes, shape: list[int], dtype: str | None) -> None:
        beside = [] if dtype is None else [entry("x/dtype", texts(dtype.encode()))]
        chunk = records.pack_many([example(entry("x", value), entry("x/shape", ints(*shape)), *beside)])

        schema = Schema.infer(chunk)

        assert set(schema.names) >= {"x", "x/shape"}
        assert schema.decode(chunk)["x/shape"].tolist() == [shape]


def test_a_name_that_a_feature_and_a_list_share_is_the_list_and_that_is_said(caplog: pytest.LogCaptureFixture) -> None:
    values = {
        "x": Values("int64", np.array([7]), count=1),
        "y": Values("int64", np.array([1, 2]), offsets=np.array([0, 1, 2]), steps=np.array([0, 2])),
    }
    payload = examples.encode(values, 1, sequence=True)[0].replace(b"\n\x01y", b"\n\x01x")

    with caplog.at_level("WARNING", "recordkit"):
        schema = Schema.infer(records.pack_many([payload]))

    assert (list(schema.fields), list(schema.sequences)) == ([], ["x"])
    assert schema.decode(records.pack_many([payload]))["x"].to_list() == [[1, 2]]
    assert "a feature and a feature list" in caplog.text
