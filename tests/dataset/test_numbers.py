"""Numbers that come out are of the types that NumPy calls by these names, wherever they come from.

Where int64 is C's long, NumPy has a second type for long long: it is equal, and `is` another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import recordkit as rk
from recordkit import examples, records, tf
from recordkit.columns import Batch, BytesColumn, Ragged

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ROWS = [{"a": n, "x": list(range(n)), "y": [[n] * n], "z": [n, n], "t": "t" * n, "d": [2.5] * n} for n in range(1, 6)]
SCHEMA = {"a": "int64", "x": "int64[?]", "y": "int64[?,?]", "z": "int64[2]", "t": "string", "d": "float64[?]"}


def arrays(value: Any) -> Iterator[Any]:
    """Every array and number in a value."""
    if isinstance(value, Batch | dict):
        for name in value:
            yield from arrays(value[name])
        if isinstance(value, Batch):
            yield from (value.valid(name) for name in value)
    elif isinstance(value, Ragged):
        yield from (*arrays(value.values), *value.offsets, *([] if value.shapes is None else [value.shapes]))
    elif isinstance(value, BytesColumn):
        yield from (value.data, value.offsets, value.lengths)
    elif isinstance(value, tf.RaggedTensor):
        yield from (value.flat_values.numpy(), *(splits.numpy() for splits in value.nested_row_splits))
    elif isinstance(value, tf.SparseTensor):
        yield from (value.indices.numpy(), value.values.numpy(), value.dense_shape.numpy())
    elif isinstance(value, tf.Tensor):
        yield from arrays(value.numpy())
    elif isinstance(value, np.ndarray | np.generic):
        yield value


def own(array: Any) -> bool:
    """Whether an array's type is the one that NumPy has under its name."""
    return array.dtype.type is np.dtype(array.dtype.name).type


@pytest.fixture
def path(tmp_path: Path) -> Path:
    rk.write(tmp_path / "a.tfrecord", ROWS, schema=SCHEMA)
    return tmp_path / "a.tfrecord"


def test_of_datasets_and_pipelines(path: Path) -> None:
    ds = rk.open(path)
    found = [
        ds[2],
        ds[:],
        ds[[3, 1]],
        next(iter(ds)),
        next(iter(ds.batch(3))),
        next(iter(ds.batch(3, pad=0))),
        next(iter(ds.shuffle(1).batch(3))),
        next(iter(ds.select("x").batch(3))),
        next(iter(ds.map_batches(dict).batch(2))),
        ds[:]["x"].to_padded(0),
    ]

    numbers = list(arrays({str(at): value for at, value in enumerate(found)}))

    assert len(numbers) > 60
    assert all(map(own, numbers))
    assert type(ds[0]["x"][:]) is np.ndarray
    assert type(ds[1]["x"][0]) is np.int64


def test_of_records_and_examples() -> None:
    chunk = records.pack_many([b"abc", b"d"])
    packed = rk.Schema({"x": "int64[?]"}).encode_rows([{"x": [1, 2]}, {"x": []}])
    values = examples.Decoder([examples.Feature("x", "int64")]).decode(packed)["x"]

    assert all(map(own, (chunk.offsets, chunk.lengths, records.scan(bytes(records.pack(b"a"))))))
    assert type(np.asarray(values.values)[0]) is np.int64
    assert values.offsets is not None
    assert type(values.offsets[0]) is np.int64


def test_of_tensors(path: Path) -> None:
    payload = rk.open(path, raw=True)[3]
    io = tf.io
    features: dict[str, Any] = {
        "a": io.FixedLenFeature([], tf.int64),
        "z": io.FixedLenFeature([2], tf.int64),
        "x": io.VarLenFeature(tf.int64),
        "r": io.RaggedFeature(tf.int64, "x"),
        "f": io.FixedLenSequenceFeature([], tf.int64, allow_missing=True),
    }
    alone = io.parse_single_example(payload, features)
    several = io.parse_example([payload, payload], features)

    numbers = list(arrays({"alone": alone, "several": several}))

    assert len(numbers) >= 12
    assert all(map(own, numbers))
