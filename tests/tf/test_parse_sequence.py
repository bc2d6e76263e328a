"""SequenceExamples: a context and feature lists, one record and a batch, as TensorFlow parses them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from recordkit import tf as ours
from recordkit.errors import SchemaError
from tests import wire
from tests.tf.both import same

if TYPE_CHECKING:
    from collections.abc import Callable

MAKE: dict[str, Callable[..., bytes]] = {"int64": wire.ints, "float32": wire.floats, "string": wire.texts}
VALUES: dict[str, list[Any]] = {"int64": [1, -2, 3], "float32": [0.5, -1, 3], "string": [b"a", b"", b"c"]}


def sequence(context: dict[str, bytes], lists: dict[str, list[bytes]]) -> bytes:
    features = b"".join(wire.entry(name, feature) for name, feature in context.items())
    steps = b"".join(wire.entry(name, wire.steps(*own)) for name, own in lists.items())
    return wire.delimited(1, features) + wire.delimited(2, steps)


def record(dtype: str, state: str, count: int) -> bytes:
    """A payload whose feature list s is in some state; `count` values a step where it is as it should be."""
    make, values = MAKE[dtype], VALUES[dtype]
    other = "float32" if dtype == "int64" else "int64"
    step = make(*values[:count])
    lists: dict[str, dict[str, list[bytes]]] = {
        "there": {"s": [step, step]},
        "one step": {"s": [make(*reversed(values[:count]))]},
        "no steps": {"s": []},
        "missing": {"t": [step]},
        "uneven": {"s": [step, make(*values[: count + 1]), make()]},
        "other kind": {"s": [MAKE[other](*VALUES[other][:count])]},
        "no kind": {"s": [b"", step]},
        "joined": {"t": [step]},
    }
    payload = sequence({"c": make(*values[:1])}, lists[state])
    return payload + (sequence({}, {"s": [step]}) if state == "joined" else b"")


STATES = ("there", "one step", "no steps", "missing", "uneven", "other kind", "no kind", "joined")
FEATURES = {
    "dense": ("tf.io.FixedLenSequenceFeature([], {dtype})", 1),
    "dense matrix": ("tf.io.FixedLenSequenceFeature([1, 2], {dtype})", 2),
    "dense, may be missing": ("tf.io.FixedLenSequenceFeature([], {dtype}, allow_missing=True)", 1),
    "any number": ("tf.io.VarLenFeature({dtype})", 2),
    "ragged": ("tf.io.RaggedFeature({dtype})", 2),
}


@pytest.mark.tensorflow
class TestAsTensorFlow:
    @pytest.mark.parametrize("dtype", MAKE)
    @pytest.mark.parametrize("state", STATES)
    @pytest.mark.parametrize("asked", FEATURES)
    def test_one_record_and_a_batch(self, tf: Any, asked: str, state: str, dtype: str) -> None:
        text, count = FEATURES[asked]
        features = f"{{'c': tf.io.FixedLenFeature([], tf.{dtype})}}, {{'s': {text.format(dtype=f'tf.{dtype}')}}}"
        payload, there = record(dtype, state, count), record(dtype, "there", count)

        same(f"result = tf.io.parse_single_sequence_example(payload, {features})", tf, payload=payload)
        same(f"result = tf.io.parse_sequence_example(payloads, {features})", tf, payloads=[there, payload, there])

    @pytest.mark.parametrize(
        "context",
        [
            "tf.io.FixedLenFeature([1], tf.int64)",
            "tf.io.FixedLenFeature([2], tf.int64, [7, 8])",
            "tf.io.FixedLenFeature([], tf.string)",
            "tf.io.VarLenFeature(tf.int64)",
            "tf.io.RaggedFeature(tf.int64)",
            "tf.io.FixedLenSequenceFeature([], tf.int64, True)",
            "tf.io.SparseFeature('i', 'c', tf.int64, 3)",
        ],
    )
    def test_context(self, tf: Any, context: str) -> None:
        for payloads in [[record("int64", "there", 1)], [record("int64", "there", 1), b""]]:
            same(f"result = tf.io.parse_sequence_example(payloads, {{'c': {context}}})", tf, payloads=payloads)

    @pytest.mark.parametrize(
        "features",
        [
            "None, None",
            "{}, {}",
            "None, {'s': tf.io.FixedLenFeature([], tf.int64)}",
            "None, {'s': tf.io.SparseFeature('i', 'v', tf.int64, 3)}",
            "None, {'s': tf.io.FixedLenSequenceFeature([], tf.int64, True, -1)}",
            "None, {'s': tf.io.FixedLenSequenceFeature([], tf.int64, True), 'v': tf.io.VarLenFeature(tf.int64)}",
            "{'s': tf.io.FixedLenFeature([], tf.int64, 3)}, {'s': tf.io.FixedLenSequenceFeature([], tf.int64)}",
        ],
    )
    def test_what_can_be_asked_for(self, tf: Any, features: str) -> None:
        payload = record("int64", "there", 1)

        same(f"result = tf.io.parse_sequence_example([payload], {features})", tf, payload=payload)
        same(f"result = tf.io.parse_sequence_example(payload, {features})", tf, payload=payload)
        same(f"result = tf.io.parse_single_sequence_example([payload], {features})", tf, payload=payload)
        same(f"result = tf.io.parse_sequence_example(tf.constant([], tf.string), {features})", tf)

    @pytest.mark.parametrize("part", ["RowLengths('p')", "ValueRowIds('q')", "UniformRowLength(1)"])
    def test_steps_are_put_in_rows(self, tf: Any, part: str) -> None:
        lists = {
            "x": [wire.ints(1, 2, 3), wire.ints(4)],
            "p": [wire.ints(1, 2), wire.ints(1)],
            "q": [wire.ints(0, 0, 1), wire.ints(0)],
        }
        payload = sequence({}, lists)
        features = f"None, {{'r': tf.io.RaggedFeature(tf.int64, 'x', [tf.io.RaggedFeature.{part}])}}"

        same(f"result = tf.io.parse_sequence_example([payload, b''], {features})", tf, payload=payload)
        same(f"result = tf.io.parse_single_sequence_example(payload, {features})", tf, payload=payload)


class TestErrors:
    def test_rows_of_other_steps_are_refused(self) -> None:
        part = ours.io.RaggedFeature(ours.int64, "x", [ours.io.RaggedFeature.RowLengths("p")])
        payloads = [
            sequence({}, {"x": [wire.ints(1)], "p": []}),
            sequence({}, {"x": [], "p": [wire.ints(1)]}),
        ]

        with pytest.raises(SchemaError, match="r: expected rows that match the values of 'x'"):
            ours.io.parse_sequence_example(payloads, None, {"r": part})

    def test_record_and_key_are_named(self) -> None:
        with pytest.raises(SchemaError) as caught:
            ours.io.parse_sequence_example([b""], None, {"s": ours.io.FixedLenSequenceFeature([], ours.int64)})

        assert str(caught.value) == (
            "s: expected 1 int64 value a step, found nothing\n  In record 0. Give it allow_missing=True if it may be "
            "missing, or read it as a VarLenFeature."
        )
