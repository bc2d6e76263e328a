"""Writes the golden files anew: TensorFlow writes the records, and says in JSON beside them what it put in.

Run as `.venv/bin/python tests/golden/make_golden.py`. Not to be run to make a test pass: see PROVENANCE.md.
"""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent

EXAMPLES: list[dict[str, list[Any]]] = [
    {"bytes": ["bytes", b"one"], "float": ["float", 0.620390625], "int64": ["int64", 7]},
    {"bytes": ["bytes", b"a\0\0", b"b", b""], "float": ["float", 1.5, -0.0, 3e38], "int64": ["int64", *range(-3, 200)]},
    {"bytes": ["bytes"], "float": ["float"], "int64": ["int64"]},
    {"int64": ["int64", -1, -(2**63), 2**63 - 1, 2**31, -(2**31), 2**56, 2**56 - 1]},
    {"float": ["float", float("inf"), float("-inf"), float("nan"), 1e-45]},
    {"größe": ["int64", 1], "图像/标签": ["bytes", "猫".encode()], "🙂": ["float", 2.5], "": ["int64", 4]},
    {"name of more than sixteen bytes": ["int64", 1], "n" * 200: ["bytes", b"v" * 300]},
    {"no kind set": []},
    {},
    {f"feature/{i:03d}": ["int64", i * i] for i in range(60)},
]
SEQUENCES: list[tuple[dict[str, list[Any]], dict[str, list[list[Any]]]]] = [
    ({"id": ["int64", 1]}, {"frames": [["bytes", b"jpeg 0"], ["bytes", b"jpeg 1"]], "actions": [["float", 0.5, -1.0]]}),
    ({}, {"tokens": [["int64", 1, 2, 3], ["int64"], ["int64", -4]], "no steps": []}),
    ({"größe": ["bytes", b"\xff\0"]}, {}),
    ({}, {}),
]


def filled(tf: Any, feature: list[Any]) -> Any:
    """A tf.train.Feature of [kind, *values]; [] for one with no kind."""
    if not feature:
        return tf.train.Feature()
    kind, *values = feature
    if kind == "bytes":
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))
    if kind == "float":
        return tf.train.Feature(float_list=tf.train.FloatList(value=values))
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


def filled_map(tf: Any, features: dict[str, list[Any]]) -> Any:
    return tf.train.Features(feature={name: filled(tf, feature) for name, feature in features.items()})


def plain(feature: list[Any]) -> list[Any]:
    """Bytes as hex, and floats as the hex of their four little-endian bytes, so that JSON keeps every bit."""
    if not feature or feature[0] == "int64":
        return feature
    pack = bytes.hex if feature[0] == "bytes" else lambda value: struct.pack("<f", value).hex()
    return [feature[0], *(pack(value) for value in feature[1:])]


def write(tf: Any, name: str, messages: list[Any], expected: Any) -> None:
    with tf.io.TFRecordWriter(str(HERE / f"{name}.tfrecord")) as writer:
        for message in messages:
            writer.write(message.SerializeToString())
    (HERE / f"{name}.json").write_text(json.dumps(expected, indent=1, ensure_ascii=False) + "\n")


def main() -> None:
    import tensorflow as tf

    examples = [tf.train.Example(features=filled_map(tf, features)) for features in EXAMPLES]
    write(tf, "examples", examples, [{name: plain(f) for name, f in features.items()} for features in EXAMPLES])

    sequences, expected = [], []
    for context, lists in SEQUENCES:
        feature_lists = {
            name: tf.train.FeatureList(feature=[filled(tf, step) for step in steps]) for name, steps in lists.items()
        }
        sequences.append(
            tf.train.SequenceExample(
                context=filled_map(tf, context), feature_lists=tf.train.FeatureLists(feature_list=feature_lists)
            )
        )
        expected.append(
            {
                "context": {name: plain(feature) for name, feature in context.items()},
                "lists": {name: [plain(step) for step in steps] for name, steps in lists.items()},
            }
        )
    write(tf, "sequences", sequences, expected)


if __name__ == "__main__":
    main()
