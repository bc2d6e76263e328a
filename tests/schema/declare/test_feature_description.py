"""Feature descriptions, with stand-ins for TensorFlow's classes where it is not needed."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np
import pytest

from recordkit.errors import SchemaError
from recordkit.schema import Array, Field, Schema, TensorProto

FixedLenFeature = namedtuple("FixedLenFeature", ["shape", "dtype", "default_value"])
VarLenFeature = namedtuple("VarLenFeature", ["dtype"])
RaggedFeature = namedtuple("RaggedFeature", ["dtype", "value_key", "partitions"])
FixedLenSequenceFeature = namedtuple("FixedLenSequenceFeature", ["shape", "dtype", "allow_missing"])
SparseFeature = namedtuple("SparseFeature", ["index_key"])


class TestReading:
    @pytest.mark.parametrize(
        ("feature", "field"),
        [
            (FixedLenFeature([], "int64", None), Field("int64")),
            (FixedLenFeature([2, 3], "float32", None), Field("float32[2,3]")),
            (FixedLenFeature(3, "string", None), Field("bytes[3]")),
            (FixedLenFeature((), "int64", 0), Field("int64?", default=0)),
            (FixedLenFeature((), "string", ""), Field("bytes?", default=b"")),
            (FixedLenFeature([2], "int64", [1, 2]), Field("int64[2]?", default=(1, 2))),
            (FixedLenFeature([], "int64", [7]), Field("int64?", default=7)),
            (FixedLenFeature([1, 2], "string", ["a", b"b"]), Field("bytes[1,2]?", default=((b"a", b"b"),))),
            (VarLenFeature("int64"), Field("int64[?]?")),
            (RaggedFeature("string", None, ()), Field("bytes[?]?")),
            (FixedLenSequenceFeature([], "int64", True), Field("int64[?]?")),
            (FixedLenSequenceFeature([3], "float32", True), Field("float32[?,3]?")),
        ],
    )
    def test_feature_is_a_field(self, feature: Any, field: Field) -> None:
        assert Schema.from_feature_description({"x": feature}) == Schema({"x": field})

    @pytest.mark.parametrize(
        ("feature", "field"),
        [
            (FixedLenSequenceFeature([2], "float32", False), Field("float32[2]")),
            (FixedLenSequenceFeature([], "int64", True), Field("int64?")),
            (VarLenFeature("string"), Field("bytes[?]?")),
            (RaggedFeature("int64", "x", ()), Field("int64[?]?")),
        ],
    )
    def test_feature_of_a_sequence_is_a_field_of_steps(self, feature: Any, field: Field) -> None:
        assert Schema.from_feature_description({}, {"x": feature}) == Schema({}, sequences={"x": field})

    @pytest.mark.parametrize(
        ("feature", "message"),
        [
            (SparseFeature("i"), "x: SparseFeature has no equivalent in a schema\n  There are FixedLenFeature, VarLen"),
            (FixedLenFeature([], "float64", None), "x: records hold int64, float32 and string, found float64"),
            (FixedLenFeature([None], "int64", None), "x: a shape with an open dimension, [None], has no equivalent"),
            (
                RaggedFeature("int64", "y", ()),
                "x: a RaggedFeature made of several features has no equivalent in a schema\n",
            ),
        ],
    )
    def test_what_has_no_like_is_refused_in_words(self, feature: Any, message: str) -> None:
        with pytest.raises(SchemaError) as caught:
            Schema.from_feature_description({"x": feature})

        assert str(caught.value).startswith(message)


@pytest.mark.tensorflow
class TestTensorFlow:
    def test_description_reads_every_way_of_storing(self) -> None:
        import tensorflow as tf

        schema = Schema(
            {
                "scalar": "int64",
                "fixed": "float32[2,2]",
                "narrow": "uint8[3]",
                "raw": "float64",
                "open": "string[?]",
                "array": "uint8[?,?]",
                "missing": "int64?",
                "filled": Field("float32[2]?", default=0.5),
                "filled raw": Field("float64?", default=0.1),
                "filled text": Field("string[2]?", default="a"),
                "theirs": Array("float32", shape_from="s"),
                "tensor": TensorProto("float32"),
            }
        )
        row = {
            "scalar": 1,
            "fixed": np.eye(2),
            "narrow": [1, 2, 3],
            "raw": 0.1,
            "open": ["a", "b"],
            "array": np.ones((2, 1), np.uint8),
            "theirs": np.ones((1, 2)),
            "tensor": [1.5],
        }

        parsed = tf.io.parse_example([schema.encode_rows([row])[0]] * 2, schema.to_feature_description())

        assert parsed["scalar"].numpy().tolist() == [1, 1]
        assert parsed["fixed"].numpy().tolist() == [[[1, 0], [0, 1]]] * 2
        assert parsed["narrow"].numpy().tolist() == [[1, 2, 3]] * 2
        assert parsed["raw"].numpy().tolist() == [np.float64(0.1).tobytes()] * 2
        assert parsed["open"].to_list() == [[b"a", b"b"]] * 2
        assert parsed["array"].numpy().tolist() == [b"\1\1"] * 2
        assert parsed["array/shape"].numpy().tolist() == [[2, 1]] * 2
        assert parsed["array/dtype"].numpy().tolist() == [b"uint8"] * 2
        assert parsed["missing"].to_list() == [[], []]
        assert parsed["filled"].numpy().tolist() == [[0.5, 0.5]] * 2
        assert parsed["filled raw"].numpy().tolist() == [np.float64(0.1).tobytes()] * 2
        assert parsed["filled text"].numpy().tolist() == [[b"a", b"a"]] * 2
        assert parsed["s"].to_list() == [[1, 2]] * 2
        assert tf.io.parse_tensor(parsed["tensor"][0], tf.float32).numpy().tolist() == [1.5]

    def test_their_classes_are_read(self) -> None:
        import tensorflow as tf

        description = {
            "a": tf.io.FixedLenFeature([2], tf.int64),
            "b": tf.io.FixedLenFeature([], tf.float32, default_value=1.5),
            "c": tf.io.VarLenFeature(tf.string),
            "d": tf.io.RaggedFeature(tf.int64),
            "e": tf.io.FixedLenSequenceFeature([3], tf.float32, allow_missing=True),
            "f": tf.io.FixedLenFeature(tf.TensorShape([1, 2]), tf.string),
        }

        schema = Schema.from_feature_description(description)

        assert schema == Schema(
            {
                "a": "int64[2]",
                "b": Field("float32?", default=1.5),
                "c": "bytes[?]?",
                "d": "int64[?]?",
                "e": "float32[?,3]?",
                "f": "bytes[1,2]",
            }
        )

    def test_description_there_and_back_reads_the_same(self) -> None:
        schema = Schema({"a": "int64[2]", "b": "bytes", "c": Field("float32?", default=1.5), "d": "int64[?]?"})

        assert Schema.from_feature_description(schema.to_feature_description()) == schema

    def test_what_tensorflow_wrote_is_read(self) -> None:
        import tensorflow as tf

        from recordkit import records

        example = tf.train.Example(
            features=tf.train.Features(
                feature={
                    "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[3])),
                    "data": tf.train.Feature(
                        bytes_list=tf.train.BytesList(value=[np.arange(6, dtype=np.float32).tobytes()])
                    ),
                    "shape": tf.train.Feature(int64_list=tf.train.Int64List(value=[2, 3])),
                    "tensor": tf.train.Feature(
                        bytes_list=tf.train.BytesList(value=[tf.io.serialize_tensor(tf.eye(2)).numpy()])
                    ),
                    "pixels": tf.train.Feature(bytes_list=tf.train.BytesList(value=[bytes(range(12))])),
                }
            )
        )
        schema = Schema(
            {
                "label": "int64",
                "data": Array("float32", shape_from="shape"),
                "tensor": TensorProto(),
                "pixels": "uint8[2,2,3]",
            }
        )

        batch = schema.decode(records.pack_many([example.SerializeToString()]))

        assert batch["label"].tolist() == [3]
        assert batch["data"][0].tolist() == [[0, 1, 2], [3, 4, 5]]
        assert batch["tensor"][0].tolist() == [[1, 0], [0, 1]]
        assert batch["pixels"].shape == (1, 2, 2, 3)
