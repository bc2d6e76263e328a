from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from recordkit.columns import BytesColumn, Ragged
from recordkit.errors import SchemaError
from recordkit.schema import Schema, TensorProto

JPEG = b"\xff\xd8\xff"


@pytest.fixture
def schema() -> Schema:
    return Schema({"id": "int64"}, sequences={"frames": "jpeg?", "actions": "float32[2]"})


class TestSequences:
    def test_first_level_is_the_steps(self, schema: Schema) -> None:
        rows = [
            {"id": 1, "frames": [JPEG, JPEG + b"2"], "actions": [[1, 2], [3, 4], [5, 6]]},
            {"id": 2, "frames": [], "actions": []},
        ]

        batch = schema.decode(schema.encode_rows(rows))

        assert batch["actions"].offsets[0].tolist() == [0, 3, 3]
        assert batch["actions"].to_list() == [[[1, 2], [3, 4], [5, 6]], []]
        assert batch["frames"].to_list() == [[JPEG, JPEG + b"2"], []]

    def test_missing_sequence_and_sequence_of_no_steps_are_told_apart(self, schema: Schema) -> None:
        rows = [{"id": 1, "frames": [], "actions": []}, {"id": 2, "actions": []}]

        batch = schema.decode(schema.encode_rows(rows))

        assert batch.valid("frames").tolist() == [True, False]

    @pytest.mark.parametrize(
        "actions",
        [
            np.zeros((2, 3, 2), np.float32),
            Ragged(np.zeros((6, 2), np.float32), (np.array([0, 3, 6]),)),
            [np.zeros((3, 2)), [[0, 0]] * 3],
            Ragged(np.zeros((9, 2), np.float32), (np.array([0, 3, 6, 9]),))[1:],
        ],
    )
    def test_columns_of_steps_come_in_many_forms(self, schema: Schema, actions: Any) -> None:
        batch = schema.decode(schema.encode({"id": [1, 2], "actions": actions}))

        assert batch["actions"].to_list() == [[[0, 0]] * 3] * 2

    @pytest.mark.parametrize(
        ("kind", "rows"),
        [
            ("int64[?]", [[[1], []], [], [[2, 3]]]),
            ("string", [["a"], [], ["b", "c"]]),
            ("string[?]", [[["a"], []], [], [["b", "c"]]]),
            ("uint64", [[2**64 - 1], [], [0]]),
            ("float64[?,2]", [[[[1.5, 2.5]], []], []]),
            ("int64[?,?]", [[[[1], [2]], [[3, 4]]], []]),
            ("uint8[1,2]", [[[[1, 2]]], []]),
        ],
    )
    def test_steps_have_any_type(self, kind: str, rows: list[Any]) -> None:
        schema = Schema({}, sequences={"x": kind})
        arrays = [[_array(kind, step) for step in row] for row in rows]

        batch = schema.decode(schema.encode_rows([{"x": row} for row in arrays]))

        assert batch["x"].to_list() == rows
        assert bytes(schema.encode(batch)) == bytes(schema.encode_rows([{"x": row} for row in arrays]))

    def test_steps_may_be_tensors(self) -> None:
        schema = Schema({}, sequences={"x": TensorProto("float32", (None,))})

        batch = schema.decode(schema.encode_rows([{"x": [[1, 2], [3]]}, {"x": []}]))

        assert batch["x"].to_list() == [[[1, 2], [3]], []]

    def test_text_of_steps_is_text(self) -> None:
        schema = Schema({}, sequences={"x": "string"})
        column = Ragged(BytesColumn.of(["a", "b"]), (np.array([0, 1, 2]),))

        assert schema.decode(schema.encode({"x": column}))["x"].to_list() == [["a"], ["b"]]

    @pytest.mark.parametrize(
        ("row", "message"),
        [
            (
                {"id": 1, "actions": [[1, 2], [3]]},
                "actions: expected float32[2], found shape [1]\n  In step 1. Write ? for a dimension that varies.",
            ),
            (
                {"id": 1, "actions": [[1, 2], None]},
                "actions: expected float32[2], found None\n  In step 1. No step can be missing.",
            ),
            (
                {"id": 1, "actions": None},
                "actions: expected float32[2], found None\n  Declare 'float32[2]?' if it may be missing.",
            ),
            ({"id": 1, "actions": 5}, "actions: expected float32[2], found int\n  A sequence is a list of steps."),
            (
                {"id": 1, "actions": np.zeros((2, 3))},
                "actions: expected float32[2], found shape [3]\n  Write ? for a dimension that varies.",
            ),
            (
                {"id": 1, "actions": [], "frames": [b"q"]},
                ("frames: expected jpeg?, found 1 byte, not a picture\n  In step 0. Declare bytes to store any bytes."),
            ),
        ],
    )
    def test_error_names_the_step(self, schema: Schema, row: dict[str, Any], message: str) -> None:
        with pytest.raises(SchemaError) as caught:
            schema.check(row)

        assert str(caught.value) == message

    @pytest.mark.parametrize(
        "actions",
        [
            [[[0, 0]], [[0, 0], [0, np.float64(0.1)]]],
            Ragged(np.array([[0, 0], [0, 0], [0, 0.1]]), (np.array([0, 1, 3]),)),
        ],
    )
    def test_error_of_a_column_names_row_and_step(self, schema: Schema, actions: Any) -> None:
        with pytest.raises(SchemaError) as caught:
            schema.encode({"id": [1, 2], "actions": actions})

        assert str(caught.value).startswith(
            "actions: expected float32[2], found 0.1 (float64)\n  In row 1. In step 1. float32 cannot hold it exactly."
        )

    def test_stored_value_that_does_not_fit_names_record_and_step(self) -> None:
        wide = Schema({}, sequences={"x": "int64"})
        chunk = wide.encode_rows([{"x": [1]}, {"x": [2, 300]}])

        with pytest.raises(SchemaError) as caught:
            Schema({}, sequences={"x": "uint8"}).decode(chunk)["x"]

        assert str(caught.value) == (
            "x: expected uint8, found 300\n  In record 1. In step 1. Declare a wider type, such as int64."
        )

    @pytest.mark.tensorflow
    def test_tensorflow_reads_the_same_steps(self) -> None:
        import tensorflow as tf

        schema = Schema(
            {"id": "int64", "t": "string[?]"},
            sequences={"a": "float32[2]", "b": "int64[?]", "c": "string", "d": "float64[?,?]", "e": "int64?"},
        )
        rows = [
            {
                "id": 7,
                "t": ["x"],
                "a": [[1, 2], [3, 4]],
                "b": [[1], [], [2, 3]],
                "c": ["p", "q"],
                "d": [np.eye(2), np.zeros((0, 3))],
                "e": [1, 2],
            },
            {"id": 8, "t": [], "a": [], "b": [], "c": [], "d": []},
        ]
        chunk = schema.encode_rows(rows)

        context, steps = tf.io.parse_single_sequence_example(chunk[0], *schema.to_feature_description())
        _, none = tf.io.parse_single_sequence_example(chunk[1], *schema.to_feature_description())

        assert context["id"].numpy() == 7
        assert steps["a"].numpy().tolist() == [[1, 2], [3, 4]]
        assert steps["b"].to_list() == [[1], [], [2, 3]]
        assert steps["c"].numpy().tolist() == [b"p", b"q"]
        assert steps["d"].numpy().tolist() == [np.eye(2).tobytes(), b""]
        assert steps["d/shape"].numpy().tolist() == [[2, 2], [0, 3]]
        assert steps["d/dtype"].numpy().tolist() == [b"float64"] * 2
        assert none["e"].numpy().tolist() == []


def _array(kind: str, step: Any) -> Any:
    """An empty list of lists has no second dimension; an array has."""
    return np.zeros((0, 2)) if kind == "float64[?,2]" and step == [] else step
