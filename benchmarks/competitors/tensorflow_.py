"""TensorFlow, with tf.data as its own guides advise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import columns
import numpy as np
import tensorflow as tf
from columns import Digest, Lists
from competitors import tensorflow_pipes as pipes
from google.protobuf import __version__ as protobuf_version
from worker import Request, Work, serve, sync

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


def scan(request: Request) -> Work:
    """Count records inside the graph, record by record or a batch at a time; or, as people do, in a loop."""
    records, zero = records_of(request), np.int64(0)
    if request.get("in_batches"):
        batches = records.batch(1024)

        def count() -> int:
            return int(batches.reduce(zero, lambda number, batch: number + tf.size(batch, out_type=tf.int64)))
    elif request.get("in_a_loop"):

        def count() -> int:
            return sum(1 for _ in records)
    else:

        def count() -> int:
            return int(records.reduce(zero, lambda number, _: number + 1))

    def work(digest: Digest | None) -> int:
        if digest:
            sizes = records.batch(1024).map(lambda batch: tf.reduce_sum(tf.cast(tf.strings.length(batch), tf.int64)))
            digest.add("records and bytes", np.array([count(), int(sizes.reduce(zero, lambda a, b: a + b))]))
        return count()

    return work


def records_of(request: Request) -> tf.data.Dataset:
    records = tf.data.TFRecordDataset(request["file"], compression_type=compression(request))
    return records.take(request["records"]) if request.get("prefix") else records


def compression(request: Request) -> str:
    return request.get("compression", "").upper()


def decode(request: Request) -> Work:
    """Parse the records into batches of NumPy arrays."""
    batches = parsed(request)

    def work(digest: Digest | None) -> int:
        done = 0
        for batch in batches.as_numpy_iterator():
            done += rows_of(batch)
            if digest:
                for name, value in batch.items():
                    add(digest, name, value)
        return done

    return work


def parsed(request: Request) -> tf.data.Dataset:
    described = {name: feature(declared, request.get("lists")) for name, declared in request["fields"].items()}
    records, tune, size = records_of(request), tf.data.AUTOTUNE, request["batch"]
    if request.get("one_by_one"):
        return records.map(lambda record: tf.io.parse_single_example(record, described)).batch(size)
    return records.batch(size).map(lambda many: in_parts(tf.io.parse_example(many, described)), tune).prefetch(tune)


def pipeline(request: Request) -> Work:
    return pipes.pipeline(request, feature)


def feature(declared: str, lists: str | None) -> Any:
    base, _, dims = declared.partition("[")
    dtype = {"int64": tf.int64, "float32": tf.float32}.get(base, tf.string)
    if dims != "?]":
        return tf.io.FixedLenFeature([int(dims[:-1])] if dims else [], dtype)
    return tf.io.VarLenFeature(dtype) if lists == "sparse" else tf.io.RaggedFeature(dtype, row_splits_dtype=tf.int64)


def in_parts(batch: dict[str, Any]) -> dict[str, Any]:
    """Lists as the tensors they are made of: as whole ones, NumPy would get an array a row, which is far slower."""
    parts = dict(batch)
    for name, value in batch.items():
        if isinstance(value, tf.RaggedTensor):
            parts[name] = (value.values, value.row_splits)
        elif isinstance(value, tf.SparseTensor):
            parts[name] = (value.values, value.indices, value.dense_shape)
    return parts


def rows_of(batch: dict[str, Any]) -> int:
    """How many records a batch is of; every workload has a field that is no list."""
    return next(len(value) for value in batch.values() if not isinstance(value, tuple))


def add(digest: Digest, name: str, value: Any) -> None:
    if isinstance(value, tuple) and len(value) == 2:
        digest.add_columns({name: Lists(*value)})
    elif isinstance(value, tuple):
        values, indices, shape = value
        digest.add(name, values, np.bincount(indices[:, 0], minlength=shape[0]))
    elif value.dtype == object:
        digest.add_strings(name, value)
    else:
        digest.add(name, value)


def write(request: Request) -> Work:
    """Write payloads that are ready, or a tf.train.Example built of each dict."""
    payloads = ready(request) if request.get("source") == "payloads" else built(request)
    options = tf.io.TFRecordOptions(compression(request), compression_level=request.get("level"))

    def work(digest: Digest | None) -> int:
        done = 0
        with tf.io.TFRecordWriter(request["output"], options) as writer:
            for payload in payloads():
                writer.write(payload)
                done += 1
        if request.get("sync"):
            sync(request["output"])
        return done

    return work


def bake(request: Request) -> Work:
    """Add a field as recipes do: every record becomes an Example in Python, and bytes again."""
    records = records_of(request)
    ((name, column),) = columns.load(request["folder"], request["adds"]).items()
    values = column[: request["records"]].tolist()

    def work(digest: Digest | None) -> int:
        with tf.io.TFRecordWriter(request["output"]) as writer:
            for payload, value in zip(records.as_numpy_iterator(), values, strict=True):
                example = tf.train.Example()
                example.ParseFromString(payload)
                example.features.feature[name].int64_list.value.append(value)
                writer.write(example.SerializeToString())
        if request.get("sync"):
            sync(request["output"])
        return len(values)

    return work


def ready(request: Request) -> Callable[[], Iterable[bytes]]:
    payloads = list(records_of({"file": request["file"]}).take(request["records"]).as_numpy_iterator())
    return lambda: payloads


def built(request: Request) -> Callable[[], Iterable[bytes]]:
    drawn = columns.load(request["folder"], request["fields"], mapped=True)
    rows = columns.dicts(columns.rows(drawn, 0, request["records"]))
    floats = {name for name, declared in request["fields"].items() if declared == "float32"}

    def example(row: dict[str, Any]) -> tf.train.Example:
        features = {
            name: tf.train.Feature(float_list=tf.train.FloatList(value=[value]))
            if name in floats
            else tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))
            for name, value in row.items()
        }
        return tf.train.Example(features=tf.train.Features(feature=features))

    return lambda: (example(row).SerializeToString() for row in rows)


if __name__ == "__main__":
    versions = {"tensorflow": tf.__version__, "numpy": np.__version__, "protobuf": protobuf_version}
    jobs = {"scan": scan, "count": scan, "decode": decode, "encode": write, "write": write, "bake": bake}
    serve(versions, jobs | {"pipeline": pipeline, "images": pipes.images})
