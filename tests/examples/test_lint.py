from __future__ import annotations

from typing import Any, get_args

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from recordkit import records
from recordkit.examples import Decoder, Feature, Finding, Kind, encode, lint
from tests import wire

KINDS: tuple[Kind, ...] = get_args(Kind)
INTS = wire.packed_ints(1, 2)


def a(feature: bytes) -> bytes:
    """An Example whose one feature has the name a."""
    return wire.example(wire.entry("a", feature))


def raw_entry(*parts: bytes) -> bytes:
    return wire.example(wire.delimited(1, b"".join(parts)))


NAME, VALUE = wire.delimited(1, b"a"), wire.delimited(2, wire.ints(5))
UNKNOWN = wire.tag(9, wire.VARINT) + b"\x01"

# What protobuf and recordkit read, and how TensorFlow differs: other values, or None where it refuses the record.
EXAMPLES: list[tuple[str, bytes, list[int], list[int] | None]] = [
    ("repeated_name", a(wire.ints(5)) + a(b""), [], [5]),
    ("no_name_or_value", raw_entry(NAME), [], None),
    ("no_name_or_value", raw_entry(VALUE) + a(wire.ints(5)), [5], None),
    ("no_name_or_value", raw_entry(NAME, NAME, VALUE), [5], None),
    ("unknown_field", a(UNKNOWN + wire.ints(5)), [5], None),
    ("unknown_field", a(wire.delimited(3, UNKNOWN + INTS)), [1, 2], None),
    ("unknown_field", wire.delimited(1, UNKNOWN + wire.entry("a", wire.ints(5))), [5], None),
    ("unknown_field", raw_entry(NAME, UNKNOWN, VALUE), [5], None),
    ("unknown_field", wire.nested_groups(1) + a(wire.ints(5)), [5], None),
    ("several_chunks", a(wire.delimited(3, INTS + INTS)), [1, 2, 1, 2], [1, 2]),
    ("several_chunks", a(wire.delimited(3, INTS + b"\x08\x03")), [1, 2, 3], [1, 2]),
    ("several_chunks", a(wire.delimited(3, b"\x08\x03" + INTS)), [3, 1, 2], None),
    ("repeated_list", a(wire.ints(1) + wire.ints(2)), [1, 2], [1]),
    ("several_kinds", a(wire.floats(1.0) + wire.ints(2)), [2], None),
    ("long_tag", wire.example(wire.delimited(1, NAME + VALUE, extra_tag=1)), [5], None),
    ("long_tag", a(wire.delimited(3, INTS, extra_tag=4)), [1, 2], None),
    ("long_tag", wire.delimited(1, wire.entry("a", wire.ints(5)), extra_tag=1), [5], []),
    ("value_before_name", raw_entry(VALUE, NAME), [5], None),
]


class TestFindings:
    @pytest.mark.parametrize(("kind", "payload"), [(kind, payload) for kind, payload, _, _ in EXAMPLES])
    def test_each_kind_is_found(self, kind: str, payload: bytes) -> None:
        found = lint([payload], sequence=kind == "value_before_name")

        assert {finding.kind for finding in found} == {kind}

    def test_says_record_byte_and_name(self) -> None:
        plain = a(wire.ints(5))
        chunk = records.chunk(records.pack(plain) * 3 + records.pack(plain + plain)).slice(2, 4)

        found = lint(chunk)

        assert found == [Finding(3, len(plain) + 2, "a", "repeated_name")]
        assert str(found[0]) == (
            "record 3, byte 16: 'a' has several entries; TensorFlow warns on every record, and may use an earlier one"
        )

    def test_what_belongs_to_no_feature_is_of_the_message(self) -> None:
        (found,) = lint([wire.nested_groups(1)])

        assert str(found) == (
            "record 0, byte 0: the message holds a field that Example does not define; TensorFlow refuses the record"
        )

    def test_every_oddity_is_told(self) -> None:
        payload = a(wire.delimited(3, INTS + INTS) + wire.floats(1.0)) + a(wire.ints(1) + wire.ints(2))

        assert [finding.kind for finding in lint([payload])] == [
            "several_chunks",
            "several_kinds",
            "repeated_name",
            "repeated_list",
        ]

    @pytest.mark.parametrize(
        "payload",
        [
            b"",
            wire.example(),
            a(b""),
            a(wire.ints()),
            a(wire.delimited(3, b"\x08\x01\x08\x02")),
            a(wire.texts(b"x", b"y")),
            a(wire.ints(1)) + wire.example(wire.entry("b", wire.ints(2))),
            raw_entry(VALUE, NAME),
            UNKNOWN + a(wire.ints(1)) + wire.delimited(7, b"x"),
        ],
        ids=[
            "nothing",
            "no features",
            "no kind",
            "empty list",
            "unpacked",
            "several bytes values",
            "two messages",
            "value before name",
            "unknown top-level fields",
        ],
    )
    def test_what_tensorflow_reads_alike_is_not_told(self, payload: bytes) -> None:
        assert lint([payload]) == []

    @given(st.lists(st.sampled_from(KINDS), max_size=5))
    def test_what_we_write_has_none(self, kinds: list[Kind]) -> None:
        values: dict[Kind, list[Any]] = {"bytes": [b"x", b""], "float": [1.5], "int64": [1, -1, 300]}
        columns = {f"f{i}": wire.fixed(kind, [values[kind], values[kind]]) for i, kind in enumerate(kinds)}

        assert lint(encode(columns, 2)) == []

    @given(st.binary(max_size=60) | wire.mutated(wire.sequences()), st.booleans())
    def test_any_bytes_are_looked_at_without_a_crash(self, payload: bytes, sequence: bool) -> None:
        for finding in lint([payload], sequence=sequence):
            assert finding.byte <= len(payload)


@pytest.mark.tensorflow
class TestAgainstTensorFlow:
    DTYPES = {"bytes": "string", "float": "float32", "int64": "int64"}

    def varlen(self, tf: Any, kinds: dict[str, Kind]) -> dict[str, Any]:
        return {name: tf.io.VarLenFeature(self.DTYPES[kind]) for name, kind in kinds.items()}

    def by_tensorflow(self, tf: Any, payload: bytes, kinds: dict[str, Kind]) -> dict[str, list[Any]] | None:
        try:
            found = tf.io.parse_single_example(payload, self.varlen(tf, kinds))
        except (tf.errors.InvalidArgumentError, UnicodeDecodeError):  # the payload stands in its message, as text
            return None
        return {name: wire.exact(kind, found[name].values.numpy().tolist()) for name, kind in kinds.items()}

    def by_recordkit(self, payload: bytes, kinds: dict[str, Kind]) -> dict[str, list[Any]]:
        features = [Feature(name, kind, missing="mark") for name, kind in kinds.items()]
        decoded = Decoder(features).decode(records.pack_many([payload]))
        return {name: wire.of_recordkit(decoded[name], 1)[0] for name in kinds}

    def kinds_of(self, features: Any) -> dict[str, Kind]:
        # Where no kind is set, any can be asked for.
        return {name: wire.of_protobuf(feature)[0] or "int64" for name, feature in features.items()}  # type: ignore[misc]

    @pytest.mark.parametrize(
        ("kind", "payload", "ours", "theirs"), [example for example in EXAMPLES if example[0] != "value_before_name"]
    )
    def test_it_does_differ_where_something_is_found(
        self, tf: Any, kind: str, payload: bytes, ours: list[int], theirs: list[int] | None
    ) -> None:
        found = self.by_tensorflow(tf, payload, {"a": "int64"})

        assert self.by_recordkit(payload, {"a": "int64"}) == {"a": ours}
        assert found == (None if theirs is None else {"a": theirs})

    @settings(max_examples=300)
    @given(payload=wire.examples(odd=(0, 2, 10)))
    def test_it_reads_what_we_read_where_nothing_is_found(self, tf: Any, payload: bytes) -> None:
        assume(not lint([payload]))
        kinds = self.kinds_of(tf.train.Example.FromString(payload).features.feature)
        kinds.setdefault("absent", "int64")

        assert self.by_tensorflow(tf, payload, kinds) == self.by_recordkit(payload, kinds)

    def sequence_by_tensorflow(
        self, tf: Any, payload: bytes, kinds: dict[str, Kind], steps: dict[str, Kind]
    ) -> tuple[dict[str, list[Any]], dict[str, list[list[Any]]]] | None:
        try:
            wanted = self.varlen(tf, kinds), self.varlen(tf, steps)
            context, lists = tf.io.parse_single_sequence_example(payload, *wanted)
        except (tf.errors.InvalidArgumentError, UnicodeDecodeError):
            return None
        rows: dict[str, list[list[Any]]] = {}
        for name, kind in steps.items():
            rows[name] = [[] for _ in range(int(lists[name].dense_shape[0]))]
            values = wire.exact(kind, lists[name].values.numpy().tolist())
            for (step, _), value in zip(lists[name].indices.numpy(), values, strict=True):
                rows[name][step].append(value)
        flat = {name: wire.exact(kind, context[name].values.numpy().tolist()) for name, kind in kinds.items()}
        return flat, rows

    def sequence_by_recordkit(
        self, payload: bytes, kinds: dict[str, Kind], steps: dict[str, Kind]
    ) -> tuple[dict[str, list[Any]], dict[str, list[list[Any]]]]:
        chunk = records.pack_many([payload])

        def read(name: str, kind: Kind, *, steps: bool) -> list[list[Any]]:
            decoder = Decoder([Feature(name, kind, missing="mark", steps=steps)], sequence=True)
            return wire.of_recordkit(decoder.decode(chunk)[name], 1)

        context = {name: read(name, kind, steps=False)[0] for name, kind in kinds.items()}
        return context, {name: read(name, kind, steps=True) for name, kind in steps.items()}

    def test_it_refuses_a_sequence_with_a_value_before_its_name(self, tf: Any) -> None:
        payload = raw_entry(VALUE, NAME)

        assert self.sequence_by_recordkit(payload, {"a": "int64"}, {}) == ({"a": [5]}, {})
        assert self.sequence_by_tensorflow(tf, payload, {"a": "int64"}, {}) is None
        assert self.by_tensorflow(tf, payload, {"a": "int64"}) == {"a": [5]}

    @settings(max_examples=200)
    @given(payload=wire.sequences(odd=(0, 2, 10)))
    def test_it_reads_the_sequences_we_read_where_nothing_is_found(self, tf: Any, payload: bytes) -> None:
        assume(not lint([payload], sequence=True))
        message = tf.train.SequenceExample.FromString(payload)
        kinds = self.kinds_of(message.context.feature)
        steps: dict[str, Kind] = {}
        for name, feature_list in message.feature_lists.feature_list.items():
            found: set[Any] = {wire.of_protobuf(step)[0] for step in feature_list.feature} - {None}
            assume(len(found) <= 1)
            steps[name] = next(iter(found), "int64")
        kinds.setdefault("absent", "int64")

        theirs = self.sequence_by_tensorflow(tf, payload, kinds, steps)

        assert theirs == self.sequence_by_recordkit(payload, kinds, steps)
