"""Parsing: every kind of feature, over records that have it, lack it, or have something else there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from recordkit import records
from recordkit import tf as ours
from recordkit.columns import BytesColumn
from recordkit.errors import MalformedPayloadError, SchemaError
from tests import wire
from tests.tf.both import plain, run, same

if TYPE_CHECKING:
    from collections.abc import Callable

DTYPES = ("int64", "float32", "string")
VALUES: dict[str, list[Any]] = {
    "int64": [1, -2, 3, 2**62],
    "float32": [0.5, -1, 3, 4],
    "string": [b"a", b"", b"c\0", b"d"],
}
MAKE: dict[str, Callable[..., bytes]] = {"int64": wire.ints, "float32": wire.floats, "string": wire.texts}


def unpacked(dtype: str, values: list[Any]) -> bytes:
    """A Feature whose numbers stand one by one."""
    if dtype == "int64":
        return wire.delimited(3, b"".join(wire.tag(1, 0) + wire.varint(value) for value in values))
    if dtype == "float32":
        return wire.delimited(2, b"".join(wire.tag(1, 5) + np.float32(value).tobytes() for value in values))
    return wire.texts(*values)


def record(dtype: str, state: str, count: int) -> bytes:
    """A payload whose feature x is in some state; `count` values where it is as it should be."""
    values, make = VALUES[dtype][:count], MAKE[dtype]
    other = "float32" if dtype == "int64" else "int64"
    made: dict[str, Callable[[], bytes]] = {
        "there": lambda: wire.example(wire.entry("x", make(*values)), wire.entry("y", wire.ints(9))),
        "one more": lambda: wire.example(wire.entry("x", make(*VALUES[dtype][: count + 1]))),
        "missing": lambda: wire.example(wire.entry("y", wire.ints(9))),
        "empty list": lambda: wire.example(wire.entry("x", make())),
        "no kind": lambda: wire.example(wire.entry("x", b"")),
        "other kind": lambda: wire.example(wire.entry("x", MAKE[other](*VALUES[other][:count]))),
        "one by one": lambda: wire.example(wire.entry("x", unpacked(dtype, values))),
        "joined": lambda: wire.example(wire.entry("y", wire.ints(9))) + wire.example(wire.entry("x", make(*values))),
        "no payload": lambda: b"",
        "cut off": lambda: wire.example(wire.entry("x", make(*values)))[:-1],
    }
    return made[state]()


STATES = (
    "there",
    "one more",
    "missing",
    "empty list",
    "no kind",
    "other kind",
    "one by one",
    "joined",
    "no payload",
    "cut off",
)
DEFAULTS = {"int64": "7", "float32": "2.5", "string": "'z'"}
# What x is asked for as, and how many values it then should have.
FEATURES = {
    "scalar": ("tf.io.FixedLenFeature([], {dtype})", 1),
    "matrix": ("tf.io.FixedLenFeature([1, 2], {dtype})", 2),
    "with default": ("tf.io.FixedLenFeature([], {dtype}, default_value={default})", 1),
    "matrix with default": ("tf.io.FixedLenFeature((2, 1), {dtype}, [{default}, {default}])", 2),
    "any number": ("tf.io.VarLenFeature({dtype})", 3),
    "ragged": ("tf.io.RaggedFeature({dtype})", 3),
    "items": ("tf.io.FixedLenSequenceFeature([], {dtype}, allow_missing=True)", 3),
    "pairs": ("tf.io.FixedLenSequenceFeature([2], {dtype}, True, {default})", 2),
}


def described(asked: str, dtype: str) -> tuple[str, int]:
    """The text of a description, and how many values it asks for."""
    text, count = FEATURES[asked]
    return text.format(dtype=f"tf.{dtype}", default=DEFAULTS[dtype]), count


@pytest.mark.tensorflow
class TestAsTensorFlow:
    @pytest.mark.parametrize("dtype", DTYPES)
    @pytest.mark.parametrize("state", STATES)
    @pytest.mark.parametrize("asked", FEATURES)
    def test_one_record(self, tf: Any, asked: str, state: str, dtype: str) -> None:
        feature, count = described(asked, dtype)
        script = f"result = tf.io.parse_single_example(payload, {{'x': {feature}}})"

        same(script, tf, payload=record(dtype, state, count))

    @pytest.mark.parametrize("dtype", DTYPES)
    @pytest.mark.parametrize("state", STATES)
    @pytest.mark.parametrize("asked", FEATURES)
    def test_a_batch(self, tf: Any, asked: str, state: str, dtype: str) -> None:
        feature, count = described(asked, dtype)
        there = record(dtype, "there", count)
        payloads = [there, record(dtype, state, count), there]

        same(f"result = tf.io.parse_example(tf.constant(payloads), {{'x': {feature}}})", tf, payloads=payloads)

    @pytest.mark.parametrize("asked", FEATURES)
    def test_no_records(self, tf: Any, asked: str) -> None:
        feature, _ = described(asked, "int64")

        same(f"result = tf.io.parse_example(tf.constant([], tf.string), {{'x': {feature}}})", tf)

    @pytest.mark.parametrize(
        "script",
        [
            "tf.io.parse_example([1], {'x': tf.io.VarLenFeature(tf.int64)})",
            "tf.io.parse_example([[b'']], {'x': tf.io.VarLenFeature(tf.int64)})",
            "tf.io.parse_example(b'', {'x': tf.io.VarLenFeature(tf.int64)})",
            "tf.io.parse_single_example([b''], {'x': tf.io.VarLenFeature(tf.int64)})",
            "tf.io.parse_example([b''], {})",
            "tf.io.parse_example([b''], None)",
            "tf.io.parse_single_example(b'', None)",
            "tf.io.parse_example([b''], {'x': 3})",
            "tf.io.parse_example([b''], {'x': tf.io.VarLenFeature(tf.int32)})",
            "tf.io.parse_example([b''], {'x': tf.io.FixedLenFeature([None], tf.int64)})",
            "tf.io.parse_example([b''], {'x': tf.io.FixedLenFeature([2, None], tf.int64)})",
            "tf.io.parse_example([b''], {'x': tf.io.FixedLenFeature(None, tf.int64)})",
            "tf.io.parse_example([b''], {'x': tf.io.FixedLenFeature([2], tf.int64, 5)})",
            "tf.io.parse_example([b''], {'x': tf.io.FixedLenFeature([], tf.int64, [5])})",
            "tf.io.parse_example([b''], {'x': tf.io.FixedLenFeature([2, 2], tf.int64, [1, 2, 3, 4])})",
            "tf.io.parse_example([b''], {'x': tf.io.FixedLenFeature([], tf.int64, 1.5)})",
            "tf.io.parse_example([b''], {'x': tf.io.FixedLenFeature([], tf.float32, 1)})",
            "tf.io.parse_example([b''], {'x': tf.io.FixedLenFeature([], tf.string, 1)})",
            "tf.io.parse_example([b''], {'x': tf.io.FixedLenFeature([], tf.string, np.array('é'))})",
            "tf.io.parse_example([b''], {'x': tf.io.FixedLenFeature(2, 'int64', np.arange(2))})",
            "tf.io.parse_example([b''], {'x': tf.io.FixedLenFeature([0], np.int64)})",
            "tf.io.parse_example([b''], {'x': tf.io.FixedLenSequenceFeature([], tf.int64)})",
            "tf.io.parse_example([b''], {'x': tf.io.FixedLenSequenceFeature([2], tf.int64, True, [1, 2])})",
            "tf.io.parse_example([b''], {'s': tf.io.SparseFeature('i', 'v', 'int64', 3), 'v': tf.io.FixedLenFeature(1, 'int64')})",  # noqa: E501
        ],
    )
    def test_what_can_be_asked_for(self, tf: Any, script: str) -> None:
        same(f"result = {script}", tf)


def two_features(**features: bytes) -> bytes:
    return wire.example(*(wire.entry(name, feature) for name, feature in features.items()))


@pytest.mark.tensorflow
class TestSparse:
    PLACED = two_features(i=wire.ints(3, 1), j=wire.ints(0, 1), v=wire.floats(0.5, 0.25))
    ONE = two_features(i=wire.ints(0), j=wire.ints(1), v=wire.floats(9))

    @pytest.mark.parametrize(
        "feature",
        [
            "tf.io.SparseFeature('i', 'v', tf.float32, 5)",
            "tf.io.SparseFeature('i', 'v', tf.float32, size=5, already_sorted=True)",
            "tf.io.SparseFeature(index_key=['i', 'j'], value_key='v', dtype=tf.float32, size=[5, 2])",
        ],
    )
    def test_values_go_to_their_places(self, tf: Any, feature: str) -> None:
        payloads = [self.PLACED, b"", self.ONE]

        same(f"result = tf.io.parse_example(payloads, {{'s': {feature}}})", tf, payloads=payloads)
        same(f"result = tf.io.parse_single_example(payload, {{'s': {feature}}})", tf, payload=self.PLACED)
        same(f"result = tf.io.parse_single_example(b'', {{'s': {feature}}})", tf)

    def test_values_may_be_asked_for_by_themselves_too(self, tf: Any) -> None:
        script = """
            features = {"s": tf.io.SparseFeature("i", "v", tf.float32, 5), "v": tf.io.VarLenFeature(tf.float32)}
            result = tf.io.parse_example([payload], features)
            result["whole"] = tf.sparse.to_dense(result["s"])
            """

        same(script, tf, payload=self.PLACED)

    @pytest.mark.parametrize("keys", ["'i', 'v', tf.float32, 5", "['i', 'j'], 'v', tf.float32, [5, 1]"])
    @pytest.mark.parametrize("already_sorted", [False, True])
    def test_places_outside_are_left_to_whoever_uses_them(self, tf: Any, keys: str, already_sorted: bool) -> None:
        outside = two_features(i=wire.ints(10, 2, -3), j=wire.ints(0, 9, 1), v=wire.floats(1, 2, 3))
        script = f"""
            sparse = tf.io.SparseFeature({keys}, already_sorted={already_sorted})
            result = [tf.io.parse_example(payloads, {{"s": sparse}})["s"]]
            result += [tf.io.parse_single_example(payload, {{"s": sparse}})["s"] for payload in payloads]
            try:
                tf.sparse.to_dense(result[0])
            except tf.errors.InvalidArgumentError:
                result.append("out of bounds")
            """

        assert same(script, tf, payloads=[outside, self.ONE])[-1] == "out of bounds"

    def test_indices_that_are_not_as_many_as_the_values_are_refused(self) -> None:
        other = two_features(i=wire.ints(1, 2), v=wire.floats(1))

        with pytest.raises(SchemaError) as caught:
            ours.io.parse_example([self.PLACED, other], {"s": ours.io.SparseFeature("i", "v", ours.float32, 5)})

        assert str(caught.value).startswith("s: expected 1, one for each value of 'v', found 2 indices in 'i'")
        assert caught.value.record == 1


PARTS: dict[str, tuple[str, Any]] = {
    "lengths": ("RowLengths('p')", [(2, 3), (1, 0)]),
    "splits": ("RowSplits('p')", [(0, 2, 5), (0, 1, 1)]),
    "starts": ("RowStarts('p')", [(0, 2), (0, 1)]),
    "limits": ("RowLimits('p')", [(2, 5), (1, 1)]),
    "row ids": ("ValueRowIds('p')", [(0, 0, 1, 1, 3), (0,)]),
    "uniform": ("UniformRowLength(1)", [(), ()]),
}
FIVE, SINGLE = wire.ints(1, 2, 3, 4, 5), wire.ints(7)


@pytest.mark.tensorflow
class TestRagged:
    @pytest.mark.parametrize("splits", ["tf.int32", "tf.int64"])
    @pytest.mark.parametrize("part", PARTS)
    def test_values_are_put_in_rows(self, tf: Any, part: str, splits: str) -> None:
        partition, (many, few) = PARTS[part]
        payloads = [two_features(x=FIVE, p=wire.ints(*many)), b"", two_features(x=SINGLE, p=wire.ints(*few))]
        feature = f"tf.io.RaggedFeature(tf.int64, 'x', [tf.io.RaggedFeature.{partition}], row_splits_dtype={splits})"

        same(f"result = tf.io.parse_example(payloads, {{'r': {feature}}})", tf, payloads=payloads)
        # TensorFlow makes a tensor of -1 rows of a record that has no splits.
        for payload in [one for one in payloads if one or part != "splits"]:
            same(f"result = tf.io.parse_single_example(payload, {{'r': {feature}}})", tf, payload=payload)

    @pytest.mark.parametrize("inner", PARTS)
    @pytest.mark.parametrize("outer", ["RowLengths('q')", "UniformRowLength(2)"])
    def test_rows_are_put_in_rows(self, tf: Any, outer: str, inner: str) -> None:
        partition, (many, _) = PARTS[inner]
        numbers = {"row ids": (0, 0, 1, 1, 1)}.get(inner, many)
        payload = two_features(x=FIVE, p=wire.ints(*numbers), q=wire.ints(1, 1))
        if inner == "uniform":
            partition, payload = "UniformRowLength(3)", two_features(x=wire.ints(*range(6)), q=wire.ints(1, 1))
        parts = f"[tf.io.RaggedFeature.{outer}, tf.io.RaggedFeature.{partition}]"
        feature = f"tf.io.RaggedFeature(tf.int64, value_key='x', partitions={parts})"

        same(f"result = tf.io.parse_example([payload], {{'r': {feature}}})", tf, payload=payload)
        same(f"result = tf.io.parse_single_example(payload, {{'r': {feature}}})", tf, payload=payload)

    @pytest.mark.parametrize(
        ("partition", "numbers"),
        [
            ("RowLengths", (1, 1)),
            ("RowLengths", (6, -1)),
            ("RowSplits", (1, 5)),
            ("RowSplits", (0, 4, 3, 5)),
            ("RowSplits", (0, 4)),
            ("RowStarts", (1, 2)),
            ("RowStarts", (0, 6)),
            ("RowLimits", (2, 4)),
            ("ValueRowIds", (0, 0, 1)),
            ("ValueRowIds", (1, 0, 1, 2, 2)),
        ],
    )
    def test_rows_that_do_not_take_up_the_values_are_refused(self, tf: Any, partition: str, numbers: Any) -> None:
        few = next(few for text, (_, few) in PARTS.values() if text.startswith(partition))
        good = two_features(x=SINGLE, p=wire.ints(*few))
        bad = two_features(x=FIVE, p=wire.ints(*numbers))
        script = f"""
            feature = tf.io.RaggedFeature(tf.int64, "x", [tf.io.RaggedFeature.{partition}("p")], validate=True)
            result = tf.io.parse_single_example(payload, {{"r": feature}})
            """
        part = getattr(ours.io.RaggedFeature, partition)("p")

        with pytest.raises(SchemaError, match="r: expected rows that match the values of 'x'") as caught:
            ours.io.parse_example([good, bad], {"r": ours.io.RaggedFeature(ours.int64, "x", [part])})

        assert caught.value.record == 1
        assert run(script, tf, payload=bad)[0] == "raised"

    def test_rows_do_not_run_on_into_the_next_record(self) -> None:
        uniform = ours.io.RaggedFeature(ours.int64, "x", [ours.io.RaggedFeature.UniformRowLength(2)])

        with pytest.raises(SchemaError, match="In record 0"):
            ours.io.parse_example([two_features(x=wire.ints(1, 2, 3)), two_features(x=wire.ints(4))], {"r": uniform})


@pytest.mark.tensorflow
class TestWhatTensorFlowDrops:
    """As docs/format/examples.md has it: what protobuf keeps and reads, we keep and read."""

    INTS = "result = tf.io.parse_example([payload], {'x': tf.io.RaggedFeature(tf.int64)})['x'].to_list()"

    @pytest.mark.parametrize(
        ("payload", "kept", "theirs"),
        [
            (
                wire.example(wire.entry("x", wire.delimited(3, wire.packed_ints(1) + wire.packed_ints(2)))),
                [[1, 2]],
                [[1]],
            ),
            (wire.example(wire.entry("x", wire.ints(1) + wire.ints(2))), [[1, 2]], [[1]]),
            (wire.example(wire.entry("x", wire.floats(5) + wire.ints(1))), [[1]], ("raised", "InvalidArgumentError")),
            (wire.example(wire.delimited(1, wire.delimited(1, b"x"))), [[]], ("raised", "InvalidArgumentError")),
            (
                wire.example(wire.entry("x", wire.ints(1)), wire.delimited(7, b"new")),
                [[1]],
                ("raised", "InvalidArgumentError"),
            ),
        ],
    )
    def test_is_kept(self, tf: Any, payload: bytes, kept: Any, theirs: Any) -> None:
        assert run(self.INTS, ours, payload=payload) == kept
        assert run(self.INTS, tf, payload=payload) == theirs

    def test_a_name_that_is_there_twice_counts_once(self, tf: Any) -> None:
        payload = wire.example(wire.entry("x", wire.ints(1)), wire.entry("x", wire.ints(2)))

        assert same(self.INTS, tf, payload=payload) == [[2]]

    def test_the_last_counts_though_it_has_no_kind(self, tf: Any) -> None:
        script = "result = tf.io.parse_single_example(payload, {'x': tf.io.FixedLenFeature([], tf.int64, 5)})['x']"
        payload = wire.example(wire.entry("x", wire.ints(1)), wire.entry("x", b""))

        assert run(script, ours, payload=payload) == plain(ours.constant(5, ours.int64))
        assert run(script, tf, payload=payload) == plain(ours.constant(1, ours.int64))


class TestErrors:
    @pytest.mark.parametrize(
        ("feature", "words"),
        [
            (
                ours.io.FixedLenFeature([], ours.int64),
                "x: expected 1 int64 value, found nothing\n  In record 1. Give it a default_value if it may be missing",
            ),
            (
                ours.io.FixedLenFeature([], ours.int64, 0),
                "y: expected 1 int64 value, found bytes\n  In record 1. Ask for tf.string to read the stored values.",
            ),
        ],
    )
    def test_record_and_key_are_named(self, feature: Any, words: str) -> None:
        name = words[0]
        payloads = [wire.example(wire.entry(name, wire.ints(1))), wire.example(wire.entry("y", wire.texts(b"a")))]

        with pytest.raises(ours.errors.InvalidArgumentError) as caught:
            ours.io.parse_example(payloads, {name: feature})

        assert str(caught.value).startswith(words)
        assert caught.value.message == str(caught.value)

    def test_empty_list_does_not_take_the_default(self) -> None:
        with pytest.raises(SchemaError, match="x: expected 1 int64 value, found an empty list\n  In record 0"):
            ours.io.parse_example([two_features(x=wire.ints())], {"x": ours.io.FixedLenFeature([], ours.int64, 3)})

    def test_what_is_no_example_is_an_invalid_argument_and_a_corrupt_record(self) -> None:
        with pytest.raises(ours.errors.InvalidArgumentError) as caught:
            ours.io.parse_example([b"", b"\xff"], {"x": ours.io.FixedLenFeature([], ours.int64, 3)})

        assert isinstance(caught.value, MalformedPayloadError)
        assert caught.value.record == 1


class TestWhatIsGiven:
    DESCRIPTION = {"x": ours.io.FixedLenFeature([], ours.int64)}
    PAYLOADS = [two_features(x=wire.ints(number)) for number in (5, 6)]

    @pytest.mark.parametrize(
        "given",
        [
            PAYLOADS,
            tuple(PAYLOADS),
            np.array(PAYLOADS, object),
            ours.constant(PAYLOADS),
            [ours.constant(payload) for payload in PAYLOADS],
            ours.Tensor(records.pack_many(PAYLOADS)),
            ours.Tensor(BytesColumn.of(PAYLOADS)),
        ],
        ids=lambda given: type(given).__name__,
    )
    def test_payloads_in_any_form_are_parsed(self, given: Any) -> None:
        assert ours.io.parse_example(given, self.DESCRIPTION)["x"].numpy().tolist() == [5, 6]

    def test_records_of_a_file_are_numbered_as_there(self) -> None:
        chunk = records.chunk(bytes(records.pack_many([*self.PAYLOADS, b""])))

        with pytest.raises(SchemaError) as caught:
            ours.io.parse_example(ours.Tensor(chunk.slice(1, 3)), self.DESCRIPTION)

        assert caught.value.record == 2

    def test_descriptions_that_differ_only_in_their_class_are_told_apart(self) -> None:
        payload = two_features(x=FIVE, p=wire.ints(0, 2, 5))
        by = ours.io.RaggedFeature

        rows = ours.io.parse_single_example(payload, {"r": by(ours.int64, "x", [by.RowSplits("p")])})["r"]

        with pytest.raises(SchemaError):
            ours.io.parse_single_example(payload, {"r": by(ours.int64, "x", [by.RowLengths("p")])})
        assert rows.to_list() == [[1, 2], [3, 4, 5]]
