from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import tensorflow as tf

import recordkit as rk
from recordkit.errors import SchemaError
from recordkit.integrations.tensorflow import to_tf_dataset
from tests.dataset.files import SCHEMA as FILES
from tests.dataset.files import flip, offset_of, save_many
from tests.integrations.contract import COUNTS, HERE, LoaderContract

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.tensorflow

SCHEMA = {
    "id": "int64",
    "tokens": "int32[?]",
    "depth": "float64[?,?]",
    "box": "float32[2,2]",
    "name": "string",
    "words": "bytes[?]",
    "age": "uint8?",
    "when": "datetime64:ms",
}
ROWS: list[dict[str, Any]] = [
    {
        "id": number,
        "tokens": list(range(number)),
        "depth": np.full((number, 2), 0.5),
        "box": [[number, 1], [2, 3]],
        "name": "é" * number,
        "words": [b"a\x00"] * number,
        "age": None if number == 1 else 40 + number,
        "when": np.datetime64(number, "ms"),
    }
    for number in range(4)
]


@pytest.fixture
def ds(tmp_path: Path) -> rk.Dataset:
    rk.write(tmp_path / "rows.tfrecord", ROWS, SCHEMA)
    return rk.open(tmp_path / "rows.tfrecord")


class TestBatches:
    def test_the_signature_says_what_the_schema_does(self, ds: rk.Dataset) -> None:
        spec = to_tf_dataset(ds.batch(3)).element_spec

        assert spec == {
            "id": tf.TensorSpec([None], tf.int64),
            "tokens": tf.RaggedTensorSpec([None, None], tf.int32, 1, tf.int64),
            "depth": tf.RaggedTensorSpec([None, None, None], tf.float64, 2, tf.int64),
            "box": tf.TensorSpec([None, 2, 2], tf.float32),
            "name": tf.TensorSpec([None], tf.string),
            "words": tf.RaggedTensorSpec([None, None], tf.string, 1, tf.int64),
            "age": tf.TensorSpec([None], tf.uint8),
            "age/valid": tf.TensorSpec([None], tf.bool),
            "when": tf.TensorSpec([None], tf.int64),
        }

    def test_the_values_are_those_of_the_records(self, ds: rk.Dataset) -> None:
        first, last = to_tf_dataset(ds.batch(3))

        assert first["tokens"].to_list() == [[], [0], [0, 1]]
        assert first["depth"].to_list() == [[], [[0.5, 0.5]], [[0.5, 0.5], [0.5, 0.5]]]
        assert first["box"].numpy()[2].tolist() == [[2, 1], [2, 3]]
        assert first["name"].numpy().tolist() == [b"", "é".encode(), "éé".encode()]
        assert first["words"].to_list()[2] == [b"a\x00", b"a\x00"]
        assert (first["age/valid"].numpy().tolist(), last["age/valid"].numpy().tolist()) == (
            [True, False, True],
            [True],
        )
        assert last["when"].numpy().tolist() == [3]

    def test_what_is_filled_up_has_any_length(self, ds: rk.Dataset) -> None:
        padded = to_tf_dataset(ds.select("tokens", "box").batch(3, pad=-1))

        assert padded.element_spec["tokens"] == tf.TensorSpec([None, None], tf.int32)
        assert [batch["tokens"].shape.as_list() for batch in padded] == [[3, 2], [1, 3]]

    def test_each_iteration_is_the_next_epoch(self, ds: rk.Dataset) -> None:
        pipe = ds.select("id").shuffle(seed=2).batch(4)
        expected = [next(iter(pipe))["id"].tolist() for _ in range(3)]
        pipe.set_epoch(0)

        data = to_tf_dataset(pipe)

        assert [next(iter(data))["id"].numpy().tolist() for _ in range(3)] == expected


class TestElements:
    def test_rows_are_dicts(self, ds: rk.Dataset) -> None:
        data = to_tf_dataset(ds.select("id", "tokens", "name", "words"))

        rows = list(data)

        assert data.element_spec["tokens"] == tf.TensorSpec([None], tf.int32)
        assert data.element_spec["name"] == tf.TensorSpec([], tf.string)
        assert (rows[2]["tokens"].numpy().tolist(), rows[2]["name"].numpy()) == ([0, 1], "éé".encode())
        assert rows[3]["words"].numpy().tolist() == [b"a\x00"] * 3

    def test_tuples_of_what_map_returned_keep_their_structure(self, ds: rk.Dataset) -> None:
        data = to_tf_dataset(ds.map(lambda row: (row["box"], {"id": row["id"]})).batch(2))

        box, rest = next(iter(data))

        assert (box.shape.as_list(), rest["id"].numpy().tolist()) == ([2, 2, 2], [0, 1])

    def test_rows_that_happen_to_be_alike_fit_a_ragged_signature(self, ds: rk.Dataset) -> None:
        pipe = ds.take(3).map(lambda row: row["tokens"]).batch(2)

        data = to_tf_dataset(pipe, signature=tf.RaggedTensorSpec([None, None], tf.int32, 1, tf.int64))

        assert [batch.to_list() for batch in data] == [[[], [0]], [[0, 1]]]

    def test_more_than_a_signature_says_is_an_error(self, ds: rk.Dataset) -> None:
        data = to_tf_dataset(ds.select("id", "name").batch(2), signature={"id": tf.TensorSpec([None], tf.int64)})

        with pytest.raises(tf.errors.OpError, match="structure"):
            next(iter(data))

    def test_a_missing_value_is_named(self, ds: rk.Dataset) -> None:
        with pytest.raises(SchemaError, match=r"^age: missing\n  TensorFlow has no missing values: batch first"):
            to_tf_dataset(ds.select("age").skip(1))

    def test_of_which_there_are_none_need_a_signature(self, ds: rk.Dataset) -> None:
        with pytest.raises(SchemaError, match=r"there are no elements to infer .*\n  Pass signature="):
            to_tf_dataset(ds.take(0).batch(2))


class TestToTfDatasetAsLoader(LoaderContract):
    @staticmethod
    def load(path: str, crew: Any, stop: int | None = None, state: Any = None) -> tuple[list[list[int]], Any]:
        pipe = rk.open(path, schema=FILES).select("id").shuffle(seed=3).batch(4)
        signature = {"id": tf.TensorSpec([None], tf.int64)}
        data = to_tf_dataset(pipe, signature=signature, state=state)
        batches = [batch["id"].numpy().tolist() for batch in data.take(-1 if stop is None else stop)]
        pipe.set_epoch(0)
        elements = iter(pipe)
        for _ in batches:
            next(elements, None)
        return batches, elements.state_dict()

    @pytest.fixture
    def elsewhere(self) -> Any:
        return call

    @pytest.fixture
    def crew(self) -> Any:
        return HERE

    def test_every_record_comes_once(self, tmp_path: Path, crew: Any, elsewhere: Any) -> None:
        super().test_every_record_comes_once(tmp_path, crew, elsewhere)

    def test_damage_arrives_with_file_and_record(self, tmp_path: Path, crew: Any, elsewhere: Any) -> None:
        damaged = save_many(tmp_path, COUNTS)[2]
        flip(damaged, offset_of(damaged, 6) + 20)

        # TensorFlow makes an error of its own of any other.
        with pytest.raises(tf.errors.OpError, match=r"CorruptRecordError: .*data-002\.tfrecord: record 6 at byte \d+"):
            self.load(str(tmp_path), crew)


def call(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    return function(*args, **options)
