"""tfx_bsl: the TFX libraries' C++ coders between Examples and Arrow; TensorFlow reads and writes the records."""

from __future__ import annotations

import columns
import numpy as np
import pyarrow as pa
import tensorflow as tf
import tfx_bsl
from columns import Digest
from tensorflow_metadata.proto.v0 import schema_pb2
from tfx_bsl.coders.example_coder import ExamplesToRecordBatchDecoder, RecordBatchToExamplesEncoder
from worker import Request, Work, serve


def decode(request: Request) -> Work:
    """Decode batches of payloads to Arrow, and see their values as NumPy arrays."""
    decoder = ExamplesToRecordBatchDecoder(schema(request).SerializeToString())
    payloads = tf.data.TFRecordDataset(request["file"])
    if request.get("prefix"):
        payloads = payloads.take(request["records"])
    batches = payloads.batch(request["batch"]).prefetch(tf.data.AUTOTUNE)

    def work(digest: Digest | None) -> int:
        done = 0
        for some in batches.as_numpy_iterator():
            batch = decoder.DecodeBatch(some)
            # Every field is a list of one value; behind the lists stand the values.
            arrays = {name: batch[name].values.to_numpy() for name in batch.schema.names}
            done += len(batch)
            if digest:
                digest.add_columns(arrays)
        return done

    return work


def schema(request: Request) -> schema_pb2.Schema:
    kinds = {"float32": schema_pb2.FLOAT, "int64": schema_pb2.INT}
    fields = [schema_pb2.Feature(name=name, type=kinds[declared]) for name, declared in request["fields"].items()]
    return schema_pb2.Schema(feature=fields)


def encode(request: Request) -> Work:
    """Encode slices of the columns from Arrow, and write the payloads."""
    drawn = columns.load(request["folder"], request["fields"])
    encoder, count, size = RecordBatchToExamplesEncoder(), request["records"], request["rows"]

    def work(digest: Digest | None) -> int:
        with tf.io.TFRecordWriter(request["output"]) as writer:
            for start in range(0, count, size):
                for payload in encoder.encode(lists(drawn, start, min(count, start + size))):
                    writer.write(payload)
        return int(count)

    return work


def lists(drawn: columns.Columns, start: int, stop: int) -> pa.RecordBatch:
    offsets = pa.array(np.arange(stop - start + 1))
    arrays = [pa.LargeListArray.from_arrays(offsets, pa.array(column[start:stop])) for column in drawn.values()]
    return pa.RecordBatch.from_arrays(arrays, names=list(drawn))


if __name__ == "__main__":
    versions = {"tfx_bsl": tfx_bsl.__version__, "tensorflow": tf.__version__, "pyarrow": pa.__version__}
    serve(versions, {"decode": decode, "encode": encode})
