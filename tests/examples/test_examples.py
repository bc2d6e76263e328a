"""Payloads to columns and back, held against protobuf and TensorFlow.

Long, because one set of small readers serves all of it: known payloads, odd ones, damaged ones, errors, states, names,
encoding, sequences, surveys, golden files, and the same laws with each oracle.
"""

from __future__ import annotations

import hashlib
import io
import json
import pickle
import random
import struct
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recordkit import records
from recordkit.columns import BytesColumn
from recordkit.errors import CorruptRecordError, SchemaError
from recordkit.examples import (
    EMPTY,
    MISSING,
    NO_KIND,
    PRESENT,
    Decoded,
    Decoder,
    Feature,
    Kind,
    Survey,
    Values,
    encode,
    survey,
)
from tests import wire

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

GOLDEN = Path(__file__).parents[1] / "golden"
KINDS: tuple[Kind, ...] = get_args(Kind)
A1 = bytes.fromhex("0a0c0a0a0a016112051a030a0101")  # {a: int64 [1]}

WANTED = st.tuples(st.sampled_from(KINDS), st.none() | st.integers(0, 3))  # kind and count
VALUE_OF: dict[Kind, st.SearchStrategy[Any]] = {"bytes": wire.VALUES, "float": wire.FLOAT32S, "int64": wire.INT64S}
ZERO_OF: dict[Kind, Any] = {"bytes": b"", "float": 0.0, "int64": 0}
FEATURE_OF: dict[Kind, Callable[..., bytes]] = {"bytes": wire.texts, "float": wire.floats, "int64": wire.ints}


def decode_one(payload: bytes, feature: Feature, *, sequence: bool = False) -> Values:
    return Decoder([feature], sequence=sequence).decode(records.pack_many([payload]))[feature.name]


def read_one(payload: bytes, name: str, kind: Kind = "int64") -> list[Any]:
    (values,) = wire.of_recordkit(decode_one(payload, Feature(name, kind, missing="mark")), 1)
    return values


def state_of(values: Values, row: int = 0) -> int:
    return PRESENT if values.states is None else int(values.states[row])


def is_malformed(payload: bytes, *, sequence: bool = False) -> bool:
    """Whether decoding meets something malformed when every feature is asked for, as any kind."""
    wanted = [(name, False) for name in wire.names(payload)]
    wanted += [(name, True) for name in wire.names(payload, 2)] if sequence else []
    for name, steps in wanted:
        for kind in KINDS:
            try:
                decode_one(payload, Feature(name, kind, missing="mark", steps=steps), sequence=sequence)
            except CorruptRecordError:
                return True
            except SchemaError:
                continue
    return False


class TestVectors:
    """The payloads that users were bitten by."""

    @pytest.mark.parametrize(
        ("payload", "kind", "expected", "state"),
        [
            (A1, "int64", [1], PRESENT),
            (bytes.fromhex("0a0b0a090a016112041a020801"), "int64", [1], PRESENT),
            (bytes.fromhex("0a090a070a016112021a00"), "int64", [], EMPTY),
            (bytes.fromhex("0a090a070a016112021200"), "float", [], EMPTY),
            (bytes.fromhex("0a070a050a01611200"), "int64", [], NO_KIND),
            (bytes.fromhex("0a150a130a0161120e1a0c0a0a" + "ff" * 9 + "01"), "int64", [-1], PRESENT),
            (wire.example(wire.entry("a", wire.texts(b"a\0\0", b"b"))), "bytes", [b"a\0\0", b"b"], PRESENT),
            (wire.example(wire.entry("a", wire.ints(-(2**63), 2**63 - 1))), "int64", [-(2**63), 2**63 - 1], PRESENT),
            (A1 + wire.example(wire.entry("a", wire.ints(2))), "int64", [2], PRESENT),
            (b"", "int64", [], MISSING),
            (wire.example(), "int64", [], MISSING),
        ],
        ids=[
            "packed",
            "unpacked",
            "empty int64s",
            "empty floats",
            "no kind",
            "minus one",
            "NULs",
            "limits",
            "name twice",
            "zero-length message",
            "no features",
        ],
    )
    def test_is_read_as_protobuf_reads_it(self, payload: bytes, kind: Kind, expected: list[Any], state: int) -> None:
        found = decode_one(payload, Feature("a", kind, missing="mark"))

        assert wire.of_recordkit(found, 1) == [expected]
        assert state_of(found) == state

    def test_a_float_keeps_the_bits_it_was_stored_with(self) -> None:
        payload = wire.example(wire.entry("a", wire.delimited(2, wire.delimited(1, bytes.fromhex("ecd11e3f")))))

        found = decode_one(payload, Feature("a", "float", count=1)).values

        assert isinstance(found, np.ndarray)
        assert found.tolist() == [0.6203906536102295]

    @pytest.mark.parametrize("count", [None, 3])
    def test_nan_payload_bits_survive_both_ways(self, count: int | None) -> None:
        bits = np.array([0x7FC00000, 0xFFC12345, 0x7F800001], np.uint32)  # the last is a signalling NaN
        offsets = None if count else np.array([0, 3])

        packed = encode({"a": Values("float", bits.view(np.float32), offsets, count)}, 1)
        found = Decoder([Feature("a", "float", count=count)]).decode(packed)["a"].values

        assert bits.tobytes() in packed[0]
        assert isinstance(found, np.ndarray)
        assert found.view(np.uint32).tolist() == bits.tolist()


class TestOddMessages:
    INTS = wire.packed_ints(1, 2)

    @pytest.mark.parametrize(
        ("feature", "expected"),
        [
            (wire.delimited(3, b"\x08\x01\x08\x02"), [1, 2]),
            (wire.delimited(3, INTS + INTS), [1, 2, 1, 2]),
            (wire.delimited(3, INTS + b"\x08\x03" + INTS), [1, 2, 3, 1, 2]),
            (wire.delimited(3, INTS) + wire.delimited(3, INTS), [1, 2, 1, 2]),
            (wire.floats(1.0) + wire.ints(5), [5]),
            (wire.ints(5) + wire.floats(1.0) + wire.ints(6), [6]),
            (wire.tag(9, wire.VARINT) + b"\x01" + wire.ints(5), [5]),
            (wire.nested_groups(3) + wire.ints(5), [5]),
            (wire.delimited(3, wire.delimited(2, b"x") + INTS), [1, 2]),
            (wire.delimited(3, wire.delimited(1, wire.varint(7, 9) + wire.varint(-1))), [7, -1]),
        ],
        ids=[
            "unpacked",
            "two chunks",
            "mixed",
            "the list twice",
            "two kinds",
            "three kinds",
            "unknown field",
            "group",
            "unknown field in the list",
            "long varints",
        ],
    )
    def test_values_are_joined_and_the_last_kind_counts(self, feature: bytes, expected: list[int]) -> None:
        assert read_one(wire.example(wire.entry("a", feature)), "a") == expected

    @pytest.mark.parametrize(
        ("entry", "name"),
        [
            (wire.delimited(2, wire.ints(5)) + wire.delimited(1, b"a"), "a"),
            (wire.delimited(2, wire.ints(5)), ""),
            (wire.delimited(1, b"b") + wire.delimited(1, b"a") + wire.delimited(2, wire.ints(5)), "a"),
            (wire.delimited(1, b"a") + wire.delimited(2, wire.ints(5)) + wire.delimited(1, b"b"), "b"),
            (wire.delimited(1, b"a") + wire.delimited(2, wire.floats(1.0)) + wire.delimited(2, wire.ints(5)), "a"),
        ],
        ids=["value before name", "no name", "two names", "a name behind", "two values"],
    )
    def test_an_entry_is_read_whatever_its_order(self, entry: bytes, name: str) -> None:
        payload = wire.example(wire.delimited(1, entry))

        assert read_one(payload, name) == [5]
        assert state_of(decode_one(payload, Feature("other", "int64", missing="mark"))) == MISSING

    def test_an_entry_without_a_value_has_no_kind(self) -> None:
        payload = wire.example(wire.delimited(1, wire.delimited(1, b"a")))

        assert state_of(decode_one(payload, Feature("a", "int64", missing="mark"))) == NO_KIND

    @pytest.mark.parametrize(
        ("first", "count", "missing"),
        [
            (wire.floats(1.0), None, "error"),
            (wire.floats(1.0), 1, "mark"),
            (wire.ints(1, 2), 1, "error"),
            (wire.ints(1, 2, 3), 1, "mark"),
            (b"", 1, "error"),
            (wire.ints(), 1, "error"),
        ],
        ids=["other kind", "other kind, marked", "other count", "other count, marked", "no kind", "empty"],
    )
    def test_of_two_entries_the_last_counts_whatever_the_first_is(
        self, first: bytes, count: int | None, missing: Any
    ) -> None:
        payload = wire.example(wire.entry("a", first), wire.entry("a", wire.ints(5)))

        found = decode_one(payload, Feature("a", "int64", count=count, missing=missing))

        assert wire.of_recordkit(found, 1) == [[5]]
        assert state_of(found) == PRESENT

    def test_unknown_fields_around_the_features_are_stepped_over(self) -> None:
        payload = wire.tag(7, wire.FIXED64) + b"8 bytes." + wire.nested_groups(2) + A1 + wire.delimited(2, b"\xff\xff")

        assert read_one(payload, "a") == [1]

    def test_an_entry_with_an_unknown_field_is_read(self) -> None:
        # upb 7 keeps such an entry out of the map, and TensorFlow refuses the record.
        entry = wire.delimited(1, b"a") + wire.tag(5, wire.VARINT) + b"\x01" + wire.delimited(2, wire.ints(5))

        assert read_one(wire.example(wire.delimited(1, entry)), "a") == [5]


class TestMalformed:
    @pytest.mark.parametrize(
        ("payload", "byte", "words"),
        [
            (b"\x0a", 1, "a number is cut off or longer than ten bytes"),
            (b"\x50" + b"\xff" * 11, 1, "a number is cut off or longer than ten bytes"),
            (b"\x00\x00", 0, "the tag of a field is malformed"),
            (b"\x0a\x05abc", 1, "a length exceeds its message"),
            (wire.example(wire.entry("a", b"\x1a\x7f")), 10, "a length exceeds its message"),
            (
                wire.example(wire.entry("a", wire.delimited(2, wire.delimited(1, b"abc")))),
                13,
                "a list of floats is not a multiple of four bytes long",
            ),
            (
                wire.example(wire.entry("a", wire.delimited(3, wire.delimited(1, b"\x01\xff")))),
                14,
                "a number is cut off or longer than ten bytes",
            ),
        ],
    )
    def test_says_where_and_what(self, payload: bytes, byte: int, words: str) -> None:
        chunk = records.chunk(records.pack(A1) + records.pack(payload))

        with pytest.raises(CorruptRecordError) as caught:
            Decoder([Feature("a", "int64", missing="mark")]).decode(chunk, 1, 2, path="train")

        error = caught.value
        inside = " in 'a'" if byte > 9 else ""
        assert str(error) == (
            f"train: record 1 at byte 30: the payload is not a well-formed Example: {words}, "
            f"at byte {byte} of {len(payload)}{inside}\n"
            f"  Its checksum is right, so it was written like this; it may hold another kind of message."
        )
        assert (error.record, error.offset, error.byte, error.kind) == (1, 30, byte, "malformed")
        assert (error.path, error.field) == ("train", "a" if inside else None)
        assert str(pickle.loads(pickle.dumps(error))) == str(error)

    @pytest.mark.parametrize("others", [0, 1, 40])
    @pytest.mark.parametrize("behind", [b"", b"x" * 100])
    def test_a_name_that_is_not_utf8_is_refused_wherever_it_stands(self, others: int, behind: bytes) -> None:
        bad = wire.delimited(1, wire.delimited(1, b"\xff\xfe") + wire.delimited(2, wire.ints(1)))
        payload = wire.example(*[wire.entry(f"f{i}", wire.ints(1)) for i in range(others)], bad)
        features = [Feature(f"f{i}", "int64", missing="mark") for i in range(max(others, 1))]

        with pytest.raises(CorruptRecordError, match="the name of a feature is not UTF-8"):
            Decoder(features).decode(records.chunk(records.pack(payload) + records.pack(behind)), 0, 1)

    def test_every_cut_of_a_message_is_refused_or_read_as_far_as_it_goes(self) -> None:
        payload = wire.example(*[wire.entry(name, wire.ints(1, 300)) for name in ("a", "b", "n" * 200)])

        accepted = [size for size in range(len(payload)) if not is_malformed(payload[:size])]

        assert accepted == [0]

    def test_damage_inside_what_was_not_asked_for_goes_unnoticed(self) -> None:
        payload = wire.example(wire.entry("bad", b"\x1a\x7f"), wire.entry("a", wire.ints(5)))

        assert read_one(payload, "a") == [5]
        with pytest.raises(CorruptRecordError, match="in 'bad'"):
            read_one(payload, "bad")


class TestSchemaErrors:
    THREE = wire.example(wire.entry("x", wire.ints(1, 2, 3)))

    @pytest.mark.parametrize(
        ("feature", "expected", "found"),
        [
            (Feature("y", "int64"), "a list of int64", "nothing"),
            (Feature("y", "bytes", count=1), "1 bytes value", "nothing"),
            (Feature("x", "float"), "a list of float", "int64"),
            (Feature("x", "bytes", count=3, missing="mark"), "3 bytes values", "int64"),
            (Feature("x", "int64", count=2), "2 int64 values", "3 values"),
            (Feature("x", "int64", count=1, missing="mark"), "1 int64 value", "3 values"),
            (Feature("x", "int64", count=0), "0 int64 values", "3 values"),
            (Feature("empty", "int64", count=1), "1 int64 value", "0 values"),
            (Feature("none", "int64"), "a list of int64", "nothing"),
        ],
    )
    @pytest.mark.parametrize("path", [None, "train"])
    def test_names_record_field_expected_and_found(
        self, feature: Feature, expected: str, found: str, path: str | None
    ) -> None:
        payload = self.THREE + wire.example(wire.entry("empty", wire.ints()), wire.entry("none", b""))
        zeros = [ZERO_OF[feature.kind]] * (feature.count or 0)
        sound = wire.example(wire.entry(feature.name, FEATURE_OF[feature.kind](*zeros)))
        chunk = records.chunk(records.pack(b"") * 3 + records.pack(sound) + records.pack(payload))

        with pytest.raises(SchemaError) as caught:
            Decoder([feature]).decode(chunk, 3, path=path)

        error = caught.value
        where = f"{path}: record 4" if path else "record 4"
        assert str(error) == (
            f"{feature.name}: expected {expected}, found {found}\n  In {where} at byte {chunk.offsets[4]}."
        )
        assert (error.field, error.record, error.path) == (feature.name, 4, path)
        assert (error.expected, error.found) == (expected, found)

    def test_counts_records_from_the_start_of_the_file(self) -> None:
        reader = records.Reader(io.BytesIO(bytes(records.pack_many([A1, A1, self.THREE]))))
        reader.read(1)
        chunk = reader.read()

        assert chunk is not None
        with pytest.raises(SchemaError, match="In record 2 at byte 60") as caught:
            Decoder([Feature("a", "int64")]).decode(chunk.slice(1, 2))

        assert caught.value.record == 2

    @pytest.mark.parametrize("feature", [Feature("x", "int32"), Feature("x", "int64", count=-3)])  # type: ignore[arg-type]
    def test_a_kind_or_count_that_cannot_be_is_refused_by_name(self, feature: Feature) -> None:
        with pytest.raises(ValueError, match=r"^x: expected a kind of bytes, float or int64 and a count from 0 on"):
            Decoder([feature])

    def test_a_feature_asked_for_twice_is_refused(self) -> None:
        with pytest.raises(ValueError, match=r"requested twice: .*'x'"):
            Decoder([Feature("x", "int64"), Feature("y", "int64"), Feature("x", "float")])

    @pytest.mark.parametrize(
        ("feature", "steps", "expected", "found"),
        [
            (Feature("s", "float", steps=True), [wire.floats(1.0), wire.ints(1)], "a list of float", "int64"),
            (
                Feature("s", "float", count=2, steps=True),
                [wire.floats(1, 2), wire.floats(1)],
                "2 float values a step",
                "1 values",
            ),
            (Feature("s", "float", count=1, steps=True), [b""], "1 float value a step", "a step with no kind set"),
            (Feature("t", "float", steps=True), [], "a list of float", "nothing"),
        ],
    )
    def test_says_the_same_of_feature_lists(
        self, feature: Feature, steps: list[bytes], expected: str, found: str
    ) -> None:
        payload = wire.lists(wire.entry("s", wire.steps(*steps)))

        with pytest.raises(SchemaError) as caught:
            decode_one(payload, feature, sequence=True)

        assert str(caught.value) == f"{feature.name}: expected {expected}, found {found}\n  In record 0 at byte 0."


class TestStates:
    PAYLOADS = [
        wire.example(wire.entry("x", wire.ints(7))),
        wire.example(),
        wire.example(wire.entry("x", b"")),
        wire.example(wire.entry("x", wire.ints())),
        wire.example(wire.entry("x", wire.ints(8))),
    ]

    def test_any_count_says_missing_no_kind_and_empty(self) -> None:
        found = Decoder([Feature("x", "int64", missing="mark")]).decode(records.pack_many(self.PAYLOADS))["x"]

        assert wire.of_recordkit(found, 5) == [[7], [], [], [], [8]]
        assert found.states is not None
        assert found.states.tolist() == [PRESENT, MISSING, NO_KIND, EMPTY, PRESENT]

    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("count", [1, 2])
    def test_a_fixed_count_is_filled_with_zeros(self, kind: Kind, count: int) -> None:
        full = FEATURE_OF[kind](*[b"v" if kind == "bytes" else 9] * count)
        payloads = [wire.example(wire.entry("x", feature)) for feature in (full, b"", FEATURE_OF[kind](), full)]

        decoder = Decoder([Feature("x", kind, count=count, missing="mark")])
        found = decoder.decode(records.pack_many([b"", *payloads]))["x"]

        zeros, nines = [ZERO_OF[kind]] * count, [b"v" if kind == "bytes" else 9] * count
        assert wire.of_recordkit(found, 5) == [wire.exact(kind, row) for row in (zeros, nines, zeros, zeros, nines)]
        assert found.states is not None
        assert found.states.tolist() == [MISSING, PRESENT, NO_KIND, EMPTY, PRESENT]

    def test_no_states_where_every_record_has_it(self) -> None:
        for count in (None, 1):
            chunk = records.pack_many([self.PAYLOADS[0], self.PAYLOADS[4]])

            assert Decoder([Feature("x", "int64", count=count, missing="mark")]).decode(chunk)["x"].states is None

    def test_an_empty_list_is_no_error_where_any_count_will_do(self) -> None:
        found = decode_one(self.PAYLOADS[3], Feature("x", "int64"))

        assert (wire.of_recordkit(found, 1), state_of(found)) == ([[]], EMPTY)

    def test_an_empty_list_is_present_where_the_count_is_zero(self) -> None:
        found = decode_one(self.PAYLOADS[3], Feature("x", "int64", count=0))

        assert (wire.of_recordkit(found, 1), state_of(found)) == ([[]], PRESENT)

    @pytest.mark.parametrize("record", [1, 2])
    @pytest.mark.parametrize("count", [None, 0, 1])
    def test_missing_and_no_kind_are_errors_unless_marked(self, record: int, count: int | None) -> None:
        with pytest.raises(SchemaError, match="found nothing"):
            decode_one(self.PAYLOADS[record], Feature("x", "int64", count=count))

    def test_states_of_a_feature_list(self) -> None:
        payloads = [b"", wire.lists(wire.entry("x", b"")), wire.lists(wire.entry("x", wire.steps(wire.ints(1), b"")))]
        decoder = Decoder([Feature("x", "int64", missing="mark", steps=True)], sequence=True)

        found = decoder.decode(records.pack_many(payloads))["x"]

        assert found.states is not None
        assert found.steps is not None
        assert found.states.tolist() == [MISSING, EMPTY, PRESENT]
        assert found.steps.tolist() == [0, 0, 0, 2]
        assert wire.of_recordkit(found, 3) == [[1], []]


class TestNames:
    LENGTHS = [0, 1, 7, 8, 9, 15, 16, 17, 24, 127, 128, 129, 300, 5000]

    @pytest.mark.parametrize("value", [wire.ints(5), wire.ints(*range(5, 200))], ids=["short", "long"])
    @pytest.mark.parametrize("size", LENGTHS)
    def test_names_of_any_length_are_told_apart_by_any_letter(self, size: int, value: bytes) -> None:
        name = "n" * size
        places = {0, 3, 8, size // 2, max(size - 1, 0)}
        near = {name + "n", name[1:], "m" + name, *(name[:i] + "m" + name[i + 1 :] for i in places)} - {name}
        others = [wire.entry(other, wire.ints(9, 9)) for other in sorted(near)]
        payload = wire.example(*others, wire.entry(name, value), *others)

        assert read_one(payload, name)[0] == 5
        assert read_one(wire.example(*others), name) == []

    def test_names_that_share_their_beginning_and_end(self) -> None:
        names = [f"image/{'x' * (i % 20)}/{i:04d}/width" for i in range(300)]
        payload = wire.example(*[wire.entry(name, wire.ints(i)) for i, name in enumerate(names)])

        decoded = Decoder([Feature(name, "int64", count=1) for name in names]).decode(records.pack_many([payload]))

        assert [wire.of_recordkit(decoded[name], 1) for name in names] == [[[i]] for i in range(300)]

    @pytest.mark.parametrize("asked", [1, 100, 10_000])
    def test_ten_thousand_names(self, asked: int) -> None:
        names = [f"feature/{i}" for i in range(10_000)]
        entries = [[wire.entry(name, wire.ints(i, row)) for i, name in enumerate(names)] for row in range(3)]
        rows = [wire.example(*row) for row in entries]
        wanted = names[:: 10_000 // asked]

        decoded = Decoder([Feature(name, "int64", count=2) for name in wanted]).decode(records.pack_many(rows))

        for i, name in zip(range(0, 10_000, 10_000 // asked), wanted, strict=True):
            assert wire.numbers(decoded[name]) == [i, 0, i, 1, i, 2]

    def test_a_short_entry_behind_many_long_ones(self) -> None:
        long = [wire.entry(f"long/{i}", wire.texts(b"x" * 200)) for i in range(3000)]
        payload = wire.example(*long, wire.entry("label", wire.ints(7)))

        found = Decoder([Feature("label", "int64", count=1)]).decode(records.pack_many([payload] * 3))["label"]

        assert wire.numbers(found) == [7, 7, 7]

    def test_a_name_with_a_nul_is_a_name_like_any(self) -> None:
        payload = wire.example(wire.entry("a", wire.ints(1)), wire.entry("a\0b", wire.ints(2)))

        assert (read_one(payload, "a"), read_one(payload, "a\0b")) == ([1], [2])


class TestOrderAndPlace:
    def test_any_order_in_each_record_gives_the_same_columns(self) -> None:
        shuffle = random.Random(7).shuffle
        names = [f"f{i}" for i in range(30)]
        payloads = []
        for row in range(50):
            entries = [wire.entry(name, wire.ints(row * 100 + i)) for i, name in enumerate(names)]
            shuffle(entries)
            payloads.append(wire.example(*entries))

        decoded = Decoder([Feature(name, "int64", count=1) for name in names]).decode(records.pack_many(payloads))

        for i, name in enumerate(names):
            assert wire.numbers(decoded[name]) == [row * 100 + i for row in range(50)]

    @settings(max_examples=150)
    @given(st.lists(wire.examples(), max_size=5), st.dictionaries(wire.NAMES, WANTED, min_size=1))
    def test_a_record_is_read_the_same_alone_and_among_others(
        self, payloads: list[bytes], wanted: dict[str, tuple[Kind, int | None]]
    ) -> None:
        features = [Feature(name, kind, count, missing="mark") for name, (kind, count) in wanted.items()]

        alone = [outcome(Decoder(features), records.chunk(records.pack(payload))) for payload in payloads]
        shared = Decoder(features)
        again = [outcome(shared, records.pack_many([payload])) for payload in payloads]
        chunk = records.chunk(bytes(records.pack_many(payloads)))
        together = outcome(shared, chunk)

        assert again == alone
        columns: dict[str, list[Any]] = {name: [] for name in wanted}
        for number, one in enumerate(alone):
            if isinstance(one, str):
                place = f"record {number} at byte {chunk.offsets[number]}"
                assert together == one.replace("record 0 at byte 0", place)
                return
            for name in wanted:
                columns[name] += one[name]
        assert together == columns

    @given(st.integers(0, 8), st.integers(0, 8))
    def test_a_range_of_records_is_that_range(self, start: int, stop: int) -> None:
        chunk = records.pack_many([wire.example(wire.entry("x", wire.ints(i))) for i in range(8)])
        decoder = Decoder([Feature("x", "int64", count=1)])

        if start > stop:
            with pytest.raises((IndexError, ValueError)):
                decoder.decode(chunk, start, stop)
            return

        assert wire.numbers(decoder.decode(chunk, start, stop)["x"]) == list(range(start, stop))

    def test_records_the_chunk_does_not_have_are_an_error(self) -> None:
        with pytest.raises(IndexError):
            Decoder([]).decode(records.pack_many([A1]), 0, 2)

    def test_no_records_give_columns_of_length_zero(self) -> None:
        features = [Feature("i", "int64"), Feature("f", "float", 3), Feature("b", "bytes", 1)]

        decoded = Decoder(features).decode(records.pack_many([]))

        assert len(decoded) == 0
        assert [wire.of_recordkit(decoded[name], 0) for name in decoded] == [[], [], []]

    def test_asking_for_nothing_still_reads_the_frame_of_every_message(self) -> None:
        assert len(Decoder([]).decode(records.pack_many([A1, b""]))) == 2
        with pytest.raises(CorruptRecordError):
            Decoder([]).decode(records.pack_many([b"\x0a\x05"]))

    def test_many_threads_share_a_decoder(self) -> None:
        names = [f"f{i}" for i in range(20)]
        decoder = Decoder([Feature(name, "int64") for name in names])

        def work(seed: int) -> bool:
            rng = random.Random(seed)
            payloads, expected = [], []
            for _ in range(200):
                row = {name: [rng.randrange(-5, 10**12)] * rng.randrange(4) for name in rng.sample(names, len(names))}
                payloads.append(wire.example(*[wire.entry(name, wire.ints(*values)) for name, values in row.items()]))
                expected.append(row)
            decoded = decoder.decode(records.pack_many(payloads))
            return all(wire.of_recordkit(decoded[name], 200) == [row[name] for row in expected] for name in names)

        with ThreadPoolExecutor(8) as pool:
            assert all(pool.map(work, range(16)))


def outcome(decoder: Decoder, chunk: records.Chunk) -> dict[str, list[Any]] | str:
    """Values and states by name, or the error's text."""
    try:
        decoded = decoder.decode(chunk)
    except (SchemaError, CorruptRecordError) as error:
        return str(error)
    found = {}
    for name in decoded:
        rows = wire.of_recordkit(decoded[name], len(chunk))
        found[name] = [(values, state_of(decoded[name], row)) for row, values in enumerate(rows)]
    return found


# Columns by name, each a kind and rows of values; and how many rows.
Table: TypeAlias = tuple[dict[str, tuple[Kind, list[list[Any]]]], int]


@st.composite
def tables(draw: st.DrawFn, names: st.SearchStrategy[str] = wire.NAMES) -> Table:
    rows = draw(st.integers(0, 5))
    table = {}
    for name in draw(st.lists(names, unique=True, max_size=5)):
        kind = draw(st.sampled_from(KINDS))
        size = draw(st.none() | st.integers(0, 3))
        row = st.lists(VALUE_OF[kind], min_size=size or 0, max_size=4 if size is None else size)
        table[name] = (kind, [draw(row) for _ in range(rows)])
    return table, rows


def encoded(data: Table) -> records.Chunk:
    table, rows = data
    columns = {}
    for name, (kind, lists) in table.items():
        same = len({len(one) for one in lists}) == 1
        columns[name] = wire.fixed(kind, lists) if same else wire.ragged(kind, lists)
    return encode(columns, rows)


class TestHugeCounts:
    @pytest.mark.parametrize("kind", ["int64", "float"])
    @pytest.mark.parametrize("count", [2**50, 2**59, 2**60, 2**61 - 1, 2**62, 2**63 - 1])
    def test_a_count_that_no_memory_holds_is_told_as_such(self, kind: Kind, count: int) -> None:
        chunk = records.pack_many([A1] * 16)

        with pytest.raises(MemoryError):
            Decoder([Feature("a", kind, count), Feature("b", kind, count)]).decode(chunk)


class TestRead:
    """The next records of a reader, decoded: as what it reads is."""

    @pytest.mark.parametrize("features", [1, 4, 5, 30])
    def test_is_what_reading_and_decoding_gives(self, tmp_path: Path, features: int) -> None:
        decoder, path = Decoder([Feature(f"f{i}", "int64", 1) for i in range(features)]), alike(tmp_path, 40_000)

        with path.open("rb") as file:
            found = read_whole(decoder, records.Reader(file), 1000)
        with path.open("rb") as file:
            chunk = records.Reader(file, chunk_bytes=1 << 30).read()

        assert chunk is not None
        for name, column in found.items():
            assert column.tolist() == wire.numbers(decoder.decode(chunk)[name])

    def test_threads_get_every_record_once_and_are_told_which(self, tmp_path: Path) -> None:
        decoder, path = Decoder([Feature("f0", "int64", 1), Feature("f3", "int64", 1)]), alike(tmp_path, 60_000)
        found: dict[int, Decoded] = {}

        def pull() -> None:
            while (decoded := decoder.read(reader, 500)) is not None:
                found[decoded.first_record] = decoded

        with path.open("rb") as file:
            reader = records.Reader(file)
            threads = [threading.Thread(target=pull) for _ in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

        assert sorted(found) == list(range(0, 60_000, 500))
        for first, decoded in found.items():
            assert wire.numbers(decoded["f0"]) == list(range(first, first + 500))
            assert wire.numbers(decoded["f3"]) == list(range(first + 3, first + 503))

    @pytest.mark.parametrize("features", [2, 30])
    def test_what_is_wrong_is_told_as_ever(self, tmp_path: Path, features: int) -> None:
        decoder = Decoder([Feature(f"f{i}", "int64", 1) for i in range(features)])
        path = alike(tmp_path, 20_000, wrong={19_500: wire.example(wire.entry("f0", wire.ints(1)))})

        with path.open("rb") as file, pytest.raises(SchemaError, match=r"record 19500 at byte") as caught:
            read_whole(decoder, records.Reader(file), 1000)

        assert (caught.value.path, caught.value.field, caught.value.record) == (str(path), "f1", 19_500)

    @pytest.mark.parametrize("features", [2, 30])
    def test_damage_is_an_error_behind_the_sound_records(self, tmp_path: Path, features: int) -> None:
        decoder, path = Decoder([Feature(f"f{i}", "int64", 1) for i in range(features)]), alike(tmp_path, 20_000)
        data = bytearray(path.read_bytes())
        data[-40] ^= 1
        path.write_bytes(data)

        with path.open("rb") as file:
            reader = records.Reader(file)
            parts = [decoder.read(reader, 1000) for _ in range(20)]
            with pytest.raises(CorruptRecordError, match="record 19999"):
                decoder.read(reader, 1000)

        assert [len(part) for part in parts if part is not None] == [1000] * 19 + [999]

    @pytest.mark.parametrize("features", [2, 30])
    def test_asking_for_more_than_memory_holds_gives_what_there_is(self, tmp_path: Path, features: int) -> None:
        decoder, path = Decoder([Feature(f"f{i}", "int64", 1) for i in range(features)]), alike(tmp_path, 5000)

        with path.open("rb") as file:
            reader = records.Reader(file)
            first = decoder.read(reader, 2000)
            rest = decoder.read(reader, 2**60)

        assert first is not None
        assert rest is not None
        assert wire.numbers(first["f1"]) + wire.numbers(rest["f1"]) == list(range(1, 5001))

    def test_reading_no_records_is_an_error_and_not_the_end(self) -> None:
        with pytest.raises(ValueError, match="from 1 up"):
            Decoder([Feature("x", "int64", 1)]).read(records.Reader(io.BytesIO(b"")), 0)


def alike(folder: Path, count: int, wrong: dict[int, bytes] | None = None) -> Path:
    """A file of records with 30 numbers, each its record's number and its own."""
    numbers = np.arange(count)
    columns = {f"f{i}": Values("int64", numbers + i, count=1) for i in range(30)}
    chunk: bytes | records.Chunk = encode(columns, count)
    for record, payload in (wrong or {}).items():
        payloads = list(records.chunk(chunk))
        payloads[record] = payload
        chunk = records.pack_many(payloads)
    path = folder / "alike.tfrecord"
    path.write_bytes(chunk)
    return path


def read_whole(decoder: Decoder, reader: records.Reader, count: int) -> dict[str, NDArray[np.int64]]:
    parts: dict[str, list[Any]] = {feature.name: [] for feature in decoder.features}
    while (decoded := decoder.read(reader, count)) is not None:
        for name, part in parts.items():
            part.append(decoded[name].values)
    return {name: np.concatenate(part) for name, part in parts.items()}


class TestEncode:
    @pytest.mark.parametrize(
        ("values", "payload"),
        [
            (wire.fixed("int64", [[1]]), A1.hex()),
            (wire.ragged("int64", [[1]]), A1.hex()),
            (wire.fixed("int64", [[]]), "0a090a070a016112021a00"),
            (wire.fixed("float", [[]]), "0a090a070a016112021200"),
            (wire.fixed("bytes", [[]]), "0a090a070a016112020a00"),
            (wire.fixed("int64", [[-1]]), "0a150a130a0161120e1a0c0a0a" + "ff" * 9 + "01"),
            (wire.fixed("float", [[0.620390625]]), "0a0f0a0d0a0161120812060a04ecd11e3f"),
            (wire.fixed("bytes", [[b"a\0\0", b"b"]]), "0a110a0f0a0161120a0a080a036100000a0162"),
        ],
    )
    def test_gives_the_known_bytes(self, values: Values, payload: str) -> None:
        assert encode({"a": values}, 1)[0].hex() == payload

    @given(tables())
    def test_is_what_decode_reads_back(self, data: Table) -> None:
        table, rows = data

        packed = encoded(data)
        decoded = Decoder([Feature(name, kind) for name, (kind, _) in table.items()]).decode(packed)

        assert len(packed) == rows
        for name, (kind, lists) in table.items():
            assert wire.of_recordkit(decoded[name], rows) == [wire.exact(kind, one) for one in lists]

    @given(tables())
    def test_is_canonical_wire_format(self, data: Table) -> None:
        table, rows = data

        payloads = list(encoded(data))

        assert payloads == [
            wire.example(*[wire.entry(name, FEATURE_OF[kind](*lists[row])) for name, (kind, lists) in table.items()])
            for row in range(rows)
        ]

    @given(tables())
    def test_has_sound_checksums(self, data: Table) -> None:
        packed = encoded(data)

        assert list(records.chunk(bytes(packed))) == list(packed)
        assert packed.offsets.tolist() == records.scan(bytes(packed)).tolist()

    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("count", [0, 1, 2, 17])
    def test_fixed_counts_of_every_kind_come_back(self, kind: Kind, count: int) -> None:
        rows = [[b"%d/%d" % (row, i) if kind == "bytes" else row * 50 + i for i in range(count)] for row in range(20)]

        packed = encode({"x": wire.fixed(kind, rows)}, 20)
        found = Decoder([Feature("x", kind, count=count)]).decode(packed)["x"]

        assert (found.count, found.offsets, found.states) == (count, None, None)
        assert wire.of_recordkit(found, 20) == [wire.exact(kind, row) for row in rows]

    def test_varints_of_every_length_come_back(self) -> None:
        edges = [2**k + d for k in range(63) for d in (-1, 0, 1)]
        values = np.array([0, *edges, *[-edge for edge in edges], 2**63 - 1, -(2**63)], np.int64)

        for count in (None, 1):
            offsets = np.arange(len(values) + 1) if count is None else None
            packed = encode({"x": Values("int64", values, offsets, count)}, len(values))

            assert packed[5] == wire.example(wire.entry("x", wire.ints(int(values[5]))))
            assert wire.numbers(Decoder([Feature("x", "int64", count=1)]).decode(packed)["x"]) == values.tolist()
            assert wire.numbers(Decoder([Feature("x", "int64")]).decode(packed)["x"]) == values.tolist()

    def test_a_state_leaves_the_feature_out_or_its_list_empty(self) -> None:
        values = np.array([1, 2, 3, 4])
        states = np.array([PRESENT, MISSING, NO_KIND, EMPTY], np.uint8)
        ragged = Values("int64", values[:1], np.array([0, 1, 1, 1, 1]), states=states)

        packed = encode({"x": ragged, "y": Values("int64", values, count=1)}, 4)

        assert survey(packed.slice(1, 3)).features.keys() == {"y"}
        assert read_one(packed[0], "x") == [1]
        assert state_of(decode_one(packed[3], Feature("x", "int64"))) == EMPTY

    def test_offsets_need_not_start_at_zero(self) -> None:
        ints = Values("int64", np.arange(10), np.array([3, 5, 5, 8]))
        data = BytesColumn(np.frombuffer(b"..abcde", np.uint8), np.array([2, 3, 5, 7]))
        texts = Values("bytes", data, np.array([0, 1, 1, 3]))

        packed = encode({"i": ints, "t": texts}, 3)

        assert [read_one(payload, "i") for payload in packed] == [[3, 4], [], [5, 6, 7]]
        assert [read_one(payload, "t", "bytes") for payload in packed] == [[b"a"], [], [b"bc", b"de"]]

    BYTES = BytesColumn.of([b"a", b"bc"])

    @pytest.mark.parametrize(
        "column",
        [
            Values("int64", np.array([1]), count=1),
            Values("int64", np.array([1, 2, 3]), count=2),
            Values("int64", np.array([1, 2])),
            Values("int64", np.array([1, 2]), np.array([0, 1])),
            Values("int64", np.array([1, 2]), np.array([0, 1, 2, 2])),
            Values("int64", np.array([1, 2]), np.array([0, 1, 3])),
            Values("int64", np.array([1, 2]), np.array([0, 2, 1])),
            Values("int64", np.array([1, 2]), np.array([-1, 1, 2])),
            Values("int64", np.array([1, 2]), np.array([0, 2**62, 2**63 - 1])),
            Values("bytes", BytesColumn(BYTES.data, np.array([0, 1, 4])), count=1),
            Values("bytes", BytesColumn(BYTES.data, np.array([0, 2, 1])), count=1),
            Values("bytes", BytesColumn(BYTES.data, np.array([-1, 1, 2])), count=1),
        ],
        ids=[
            "too few values",
            "not whole rows",
            "no offsets",
            "too few offsets",
            "too many offsets",
            "offset past the end",
            "falling offsets",
            "negative offset",
            "huge offsets",
            "byte offset past the end",
            "falling byte offsets",
            "negative byte offset",
        ],
    )
    def test_offsets_that_do_not_fit_are_refused_before_anything_is_read(self, column: Values) -> None:
        with pytest.raises(SchemaError) as caught:
            encode({"fine": Values("int64", np.array([1, 2]), count=1), "x": column}, 2)

        assert caught.value.field == "x"
        assert str(caught.value) == "x: its offsets do not fit its values, or the number of rows, 2"

    @pytest.mark.parametrize(
        "column",
        [
            Values("int64", np.array([1, 2, 3]), count=1),
            Values("bytes", BytesColumn.of([b"a", b"b", b"c"]), count=1),
        ],
    )
    def test_values_left_over_are_refused(self, column: Values) -> None:
        with pytest.raises(SchemaError, match="x: its offsets do not fit its values"):
            encode({"x": column}, 2)

    @pytest.mark.parametrize(
        ("kind", "values"),
        [
            ("int64", np.array([1.5])),
            ("int64", np.array([2**63], np.uint64)),
            ("float", np.array([0.1])),
            ("float", np.array([2**24 + 1])),
            ("int64", np.array([[1]])),
            ("int64", np.array(["1"])),
        ],
        ids=["1.5 as int64", "uint64 as int64", "float64 as float", "int64 as float", "two dimensions", "text"],
    )
    def test_arrays_that_would_lose_something_are_refused(self, kind: Kind, values: Any) -> None:
        with pytest.raises((TypeError, ValueError, RuntimeError)):
            encode({"x": Values(kind, values, count=1)}, 1)

    def test_arrays_with_gaps_are_read_as_they_are_or_refused(self) -> None:
        spread = np.arange(2_000_000)[::2]

        try:
            packed = encode({"x": Values("int64", spread, count=1)}, len(spread))
        except (TypeError, ValueError, RuntimeError):
            return

        assert wire.numbers(Decoder([Feature("x", "int64", count=1)]).decode(packed)["x"]) == spread.tolist()

    def test_a_feature_list_needs_a_sequence(self) -> None:
        steps = Values("int64", np.array([1, 2]), count=1, steps=np.array([0, 2]))

        with pytest.raises(SchemaError, match="x"):
            encode({"x": steps}, 1)

    @pytest.mark.slow
    @pytest.mark.parametrize("over", [0, 1])
    def test_a_payload_of_two_gib_is_refused(self, over: int) -> None:
        # Five lengths of five bytes, their tags, the bytes value's own, and the name.
        size = 2**31 - 1 - (5 * 6 + 3) + over
        column = BytesColumn(np.zeros(size, np.uint8), np.array([0, size]))

        if not over:
            packed = encode({"x": Values("bytes", column, count=1)}, 1)
            assert packed.lengths.tolist() == [2**31 - 1]
            return
        with pytest.raises(SchemaError) as caught:
            encode({"x": Values("bytes", column, count=1)}, 1)

        assert caught.value.record == 0
        assert str(caught.value) == (
            "row 0: the record would be 2 GiB or more, which protobuf cannot read\n  Split it into several."
        )


class TestSequences:
    def columns(self) -> dict[str, Values]:
        return {
            "id": wire.fixed("int64", [[1], [2], [3]]),
            "frames": Values("bytes", BytesColumn.of([b"a", b"b", b"c"]), count=1, steps=np.array([0, 2, 2, 3])),
            "tokens": Values(
                "int64", np.arange(4), np.array([0, 3, 3, 4]), steps=np.array([0, 1, 3, 3]),
                states=np.array([PRESENT, PRESENT, MISSING], np.uint8),
            ),
        }  # fmt: skip

    def test_encode_gives_canonical_wire_format(self) -> None:
        packed = encode(self.columns(), 3, sequence=True)

        assert list(packed) == [
            wire.example(wire.entry("id", wire.ints(1)))
            + wire.lists(
                wire.entry("frames", wire.steps(wire.texts(b"a"), wire.texts(b"b"))),
                wire.entry("tokens", wire.steps(wire.ints(0, 1, 2))),
            ),
            wire.example(wire.entry("id", wire.ints(2)))
            + wire.lists(wire.entry("frames", b""), wire.entry("tokens", wire.steps(wire.ints(), wire.ints(3)))),
            wire.example(wire.entry("id", wire.ints(3)))
            + wire.lists(wire.entry("frames", wire.steps(wire.texts(b"c")))),
        ]

    def test_decode_reads_it_back(self) -> None:
        packed = encode(self.columns(), 3, sequence=True)
        features = [
            Feature("id", "int64", count=1),
            Feature("frames", "bytes", count=1, steps=True),
            Feature("tokens", "int64", missing="mark", steps=True),
        ]

        decoded = Decoder(features, sequence=True).decode(packed)

        for name, expected in self.columns().items():
            found = decoded[name]
            assert wire.of_recordkit(found, 3) == wire.of_recordkit(expected, 3)
            if expected.steps is not None and found.steps is not None:
                assert found.steps.tolist() == expected.steps.tolist()
        assert [state_of(decoded["frames"], row) for row in range(3)] == [PRESENT, EMPTY, PRESENT]
        assert [state_of(decoded["tokens"], row) for row in range(3)] == [PRESENT, PRESENT, MISSING]

    def test_the_last_of_two_lists_of_one_name_counts(self) -> None:
        one, two = wire.entry("s", wire.steps(wire.ints(1), wire.ints(2))), wire.entry("s", wire.steps(wire.ints(3)))
        before = wire.lists(wire.entry("s", wire.steps(wire.ints(9))))
        chunk = records.pack_many([before, wire.lists(one, two), wire.lists(one) + wire.lists(two)])

        for count in (None, 1):
            found = Decoder([Feature("s", "int64", count, steps=True)], sequence=True).decode(chunk)["s"]

            assert found.steps is not None
            assert found.steps.tolist() == [0, 1, 2, 3]
            assert wire.numbers(found) == [9, 3, 3]

    def test_of_two_lists_the_last_counts_whatever_the_first_is(self) -> None:
        payload = wire.lists(wire.entry("s", wire.steps(wire.floats(1.0))), wire.entry("s", wire.steps(wire.ints(3))))

        found = decode_one(payload, Feature("s", "int64", steps=True), sequence=True)

        assert wire.of_recordkit(found, 1) == [[3]]

    def test_context_and_lists_of_one_name_are_two_things(self) -> None:
        lists = wire.lists(wire.entry("x", wire.steps(wire.floats(2.0))))
        payload = wire.example(wire.entry("x", wire.ints(1))) + lists

        assert wire.of_recordkit(decode_one(payload, Feature("x", "int64"), sequence=True), 1) == [[1]]
        assert wire.numbers(decode_one(payload, Feature("x", "float", steps=True), sequence=True)) == [2.0]
        assert wire.of_recordkit(decode_one(payload, Feature("x", "int64")), 1) == [[1]]

    def test_context_and_lists_of_one_name_cannot_be_asked_for_together(self) -> None:
        # What is decoded is looked up by name, so one of them would hide the other.
        with pytest.raises(ValueError, match="x"):
            Decoder([Feature("x", "int64"), Feature("x", "float", steps=True)], sequence=True)


class TestSurvey:
    def test_tells_what_the_payloads_hold(self) -> None:
        payloads = [
            wire.example(wire.entry("label", wire.ints(-3)), wire.entry("image", wire.texts(b"\xff\xd8\xff..."))),
            wire.example(wire.entry("label", wire.ints(9, 4)), wire.entry("text", wire.texts("größe".encode(), b"x"))),
            wire.example(wire.entry("label", b""), wire.entry("text", wire.texts())),
        ]

        found = survey(records.pack_many(payloads))

        label, image, text = (found.features[name] for name in ("label", "image", "text"))
        assert (found.rows, found.message, found.problem, found.lists) == (3, "Example", None, {})
        assert (label.records, set(label.kinds), label.no_kind, label.empty) == (3, {"int64"}, 1, 0)
        assert (label.min_count, label.max_count, label.min_int, label.max_int) == (1, 2, -3, 9)
        assert (image.records, set(image.kinds), image.jpeg, image.png, image.utf8) == (
            1,
            {"bytes"},
            True,
            False,
            False,
        )
        assert (text.empty, text.min_count, text.max_count, text.min_bytes, text.max_bytes) == (1, 0, 2, 1, 7)
        assert (text.utf8, text.jpeg, text.min_int) == (True, False, None)

    def test_tells_the_steps_of_a_sequence(self) -> None:
        payloads = [wire.lists(wire.entry("s", wire.steps(*[wire.floats(1, 2)] * n))) for n in (0, 3, 1)]

        found = survey(records.pack_many(payloads))

        steps = found.lists["s"]
        assert (found.message, found.features) == ("SequenceExample", {})
        assert (steps.records, set(steps.kinds), steps.min_steps, steps.max_steps) == (3, {"float"}, 0, 3)
        assert (steps.min_count, steps.max_count) == (2, 2)

    @pytest.mark.parametrize("payload", [b"not an example", b"\xff" * 20, b"\x0a\x03\x0a\x05a"])
    def test_another_kind_of_message_is_told_with_the_reason(self, payload: bytes) -> None:
        found = survey(records.pack_many([A1, payload, A1]), path="train")

        assert (found.message, found.rows) == ("other", 1)
        assert found.problem is not None
        assert (found.problem.record, found.problem.kind) == (1, "malformed")
        assert str(found.problem).startswith("train: record 1 at byte 30: the payload is not a well-formed Example: ")

    def test_names_with_a_nul_are_whole(self) -> None:
        payload = wire.example(wire.entry("a\0b", wire.ints(1)), wire.entry("a\0c", wire.ints(2)))

        assert survey(records.pack_many([payload])).features.keys() == {"a\0b", "a\0c"}

    def test_looks_at_a_range(self) -> None:
        chunk = records.pack_many([wire.example(wire.entry(name, wire.ints(1))) for name in "abcd"])

        assert survey(chunk, 1, 3).features.keys() == {"b", "c"}

    @settings(max_examples=200)
    @given(st.lists(wire.sequences(odd=(0, 0, 10)), max_size=4), st.lists(wire.sequences(odd=(0, 0, 10)), max_size=4))
    def test_merged_surveys_say_what_one_of_all_says(self, one: list[bytes], two: list[bytes]) -> None:
        merged = survey(records.pack_many(one)).merge(survey(records.pack_many(two)))

        assert merged == survey(records.pack_many(one + two))

    def test_an_empty_bytes_list_does_not_spoil_what_is_known_of_values(self) -> None:
        empty, full = (wire.example(wire.entry("x", wire.texts(*values))) for values in ([], [b"abc"]))

        merged = survey(records.pack_many([empty])).merge(survey(records.pack_many([full])))

        assert (merged.features["x"].min_bytes, merged.features["x"].utf8) == (3, True)

    def test_merging_with_what_is_no_example_keeps_the_reason(self) -> None:
        good, bad = survey(records.pack_many([A1])), survey(records.pack_many([b"\xff"]))

        for merged in (good.merge(bad), bad.merge(good)):
            assert merged.message == "other"
            assert merged.problem is bad.problem

    @given(st.binary(max_size=60))
    def test_junk_is_surveyed_without_a_crash(self, junk: bytes) -> None:
        assert isinstance(survey(records.pack_many([junk])), Survey)


class TestGolden:
    def unhex(self, feature: list[Any]) -> tuple[str | None, list[Any]]:
        if not feature:
            return None, []
        kind, *values = feature
        if kind == "int64":
            return kind, values
        raw = [bytes.fromhex(value) for value in values]
        return kind, raw if kind == "bytes" else wire.exact(kind, [struct.unpack("<f", value)[0] for value in raw])

    def test_files_are_those_that_were_written(self) -> None:
        provenance = (GOLDEN / "PROVENANCE.md").read_text()

        for path in GOLDEN.glob("*.tfrecord"):
            assert f"`{path.name}`" in provenance
            assert hashlib.sha256(path.read_bytes()).hexdigest() in provenance

    def test_examples_of_tensorflow(self) -> None:
        expected = json.loads((GOLDEN / "examples.json").read_text())

        payloads = list(records.chunk((GOLDEN / "examples.tfrecord").read_bytes()))

        assert len(payloads) == len(expected)
        for payload, features in zip(payloads, expected, strict=True):
            assert survey(records.pack_many([payload])).features.keys() == features.keys()
            for name, feature in features.items():
                kind, values = self.unhex(feature)
                found = decode_one(payload, Feature(name, kind or "int64", missing="mark"))  # type: ignore[arg-type]
                assert wire.of_recordkit(found, 1) == [values]
                assert state_of(found) == (NO_KIND if kind is None else PRESENT if values else EMPTY)

    def test_sequences_of_tensorflow(self) -> None:
        expected = json.loads((GOLDEN / "sequences.json").read_text())

        payloads = list(records.chunk((GOLDEN / "sequences.tfrecord").read_bytes()))

        assert len(payloads) == len(expected)
        for payload, message in zip(payloads, expected, strict=True):
            for name, feature in message["context"].items():
                kind, values = self.unhex(feature)
                found = decode_one(payload, Feature(name, kind), sequence=True)  # type: ignore[arg-type]
                assert wire.of_recordkit(found, 1) == [values]
            for name, steps in message["lists"].items():
                kinds = {self.unhex(step)[0] for step in steps} or {"int64"}
                found = decode_one(payload, Feature(name, kinds.pop(), steps=True), sequence=True)  # type: ignore[arg-type]
                assert wire.of_recordkit(found, 1) == [self.unhex(step)[1] for step in steps]


@pytest.mark.tensorflow
class TestAgainstProtobuf:
    """Protobuf's own parser (upb) is asked the same questions and must give the same answers."""

    LIKELY_BYTES = st.sampled_from(b"\x0a\x12\x1a\x00\x01\x02\x04\x08a\x80")

    def parsed(self, message: Any, payload: bytes) -> Any:
        from google.protobuf.message import DecodeError

        try:
            return message.FromString(payload)
        except DecodeError:
            return None

    def check_features(self, features: Any, payload: bytes, *, sequence: bool = False) -> None:
        for name, feature in features.items():
            kind, values = wire.of_protobuf(feature)
            found = decode_one(payload, Feature(name, kind or "int64", missing="mark"), sequence=sequence)  # type: ignore[arg-type]
            assert wire.of_recordkit(found, 1) == [values]
            assert state_of(found) == (NO_KIND if kind is None else PRESENT if values else EMPTY)
        absent = decode_one(payload, Feature("absent", "int64", missing="mark"), sequence=sequence)
        assert state_of(absent) == MISSING

    def check_lists(self, lists: Any, payload: bytes) -> None:
        for name, feature_list in lists.items():
            steps = [wire.of_protobuf(step) for step in feature_list.feature]
            kinds = {kind for kind, _ in steps} - {None}
            if len(kinds) > 1:
                with pytest.raises(SchemaError, match="expected a list of"):
                    decode_one(payload, Feature(name, kinds.pop(), steps=True), sequence=True)  # type: ignore[arg-type]
                continue
            kind = kinds.pop() if kinds else "int64"
            found = decode_one(payload, Feature(name, kind, steps=True), sequence=True)  # type: ignore[arg-type]
            assert wire.of_recordkit(found, 1) == [values for _, values in steps]

    def check(self, tf: Any, payload: bytes) -> None:
        message = self.parsed(tf.train.Example, payload)
        if message is None:
            assert is_malformed(payload)
        elif wire.has_odd_entry(payload):  # upb leaves it out of the map, we do not
            assert not is_malformed(payload)
        else:
            self.check_features(message.features.feature, payload)

    @settings(max_examples=400)
    @given(payload=wire.examples())
    def test_odd_but_legal_examples_are_read_equal(self, tf: Any, payload: bytes) -> None:
        assert self.parsed(tf.train.Example, payload) is not None

        self.check(tf, payload)

    @settings(max_examples=400)
    @given(payload=wire.mutated(wire.examples()))
    def test_damaged_examples_are_refused_by_both_or_read_equal(self, tf: Any, payload: bytes) -> None:
        self.check(tf, payload)

    @settings(max_examples=400)
    @given(payload=st.binary(max_size=30) | st.lists(LIKELY_BYTES, max_size=20).map(bytes))
    def test_junk_is_refused_by_both_or_read_equal(self, tf: Any, payload: bytes) -> None:
        self.check(tf, payload)

    @settings(max_examples=300)
    @given(payload=wire.sequences() | wire.mutated(wire.sequences()))
    def test_sequences_are_refused_by_both_or_read_equal(self, tf: Any, payload: bytes) -> None:
        message = self.parsed(tf.train.SequenceExample, payload)
        if message is None:
            assert is_malformed(payload, sequence=True)
        elif wire.has_odd_entry(payload):
            assert not is_malformed(payload, sequence=True)
        else:
            self.check_features(message.context.feature, payload, sequence=True)
            self.check_lists(message.feature_lists.feature_list, payload)

    @pytest.mark.parametrize("extra", range(10))
    def test_a_length_may_take_five_bytes_and_no_more(self, tf: Any, extra: int) -> None:
        payload = wire.delimited(1, wire.entry("a", wire.ints(1)), extra_length=extra)

        self.check(tf, payload)
        assert is_malformed(payload) == (extra > 4)

    @pytest.mark.parametrize("extra", range(10))
    def test_a_tag_may_take_five_bytes_and_no_more(self, tf: Any, extra: int) -> None:
        payload = wire.delimited(1, wire.entry("a", wire.ints(1)), extra_tag=extra)

        self.check(tf, payload)
        assert is_malformed(payload) == (extra > 4)

    @pytest.mark.parametrize("last", [0, 1, 2, 3, 0x7F, 0x80])
    @pytest.mark.parametrize("how", ["packed", "single", "unknown"])
    def test_bits_beyond_the_sixty_fourth_do_not_count(self, tf: Any, last: int, how: str) -> None:
        number = b"\xff" * 9 + bytes([last])
        body = {"packed": wire.delimited(1, number), "single": b"\x08" + number, "unknown": b"\x50" + number}[how]

        self.check(tf, wire.example(wire.entry("a", wire.delimited(3, body))))

    @pytest.mark.parametrize("depth", range(93, 104))
    def test_groups_nest_as_deep_as_messages_leave_room(self, tf: Any, depth: int) -> None:
        groups = wire.nested_groups(depth)

        for payload in (
            groups,
            wire.delimited(1, groups),
            wire.example(wire.entry("a", groups)),
            wire.example(wire.entry("a", wire.delimited(3, groups))),
        ):
            self.check(tf, payload)

    @pytest.mark.parametrize("inside", [b"\x00\x00", b"\x02\x00", b"\x03\x04", b"\x06", b"\x0c", b"\x0f"])
    def test_what_stands_in_a_group_is_checked_alike(self, tf: Any, inside: bytes) -> None:
        self.check(tf, wire.tag(5, wire.GROUP) + inside + wire.tag(5, wire.END_GROUP))
        self.check(tf, inside)


@pytest.mark.tensorflow
class TestAgainstTensorFlow:
    # TensorFlow cannot be asked for a feature whose name is empty or holds a NUL.
    NAMES = wire.NAMES.filter(lambda name: name not in ("", "a\0b"))

    def parse(self, tf: Any, payloads: Sequence[bytes], kinds: dict[str, Kind]) -> dict[str, list[list[Any]]]:
        dtypes = {"bytes": tf.string, "float": tf.float32, "int64": tf.int64}
        ragged = {name: tf.io.RaggedFeature(dtypes[kind]) for name, kind in kinds.items()}
        if not payloads or not kinds:
            return {name: [] for name in kinds}
        found = tf.io.parse_example(list(payloads), ragged)
        return {name: [wire.exact(kind, row) for row in found[name].to_list()] for name, kind in kinds.items()}

    @settings(max_examples=150)
    @given(data=tables(names=NAMES))
    def test_what_we_encode_it_reads(self, tf: Any, data: Table) -> None:
        table, _ = data
        payloads = list(encoded(data))

        parsed = self.parse(tf, payloads, {name: kind for name, (kind, _) in table.items()})
        messages = [tf.train.Example.FromString(payload) for payload in payloads]

        for name, (kind, lists) in table.items():
            expected = [wire.exact(kind, one) for one in lists]
            assert parsed[name] == expected
            features = [message.features.feature[name] for message in messages]
            assert [wire.of_protobuf(feature) for feature in features] == [(kind, one) for one in expected]
        assert all(len(message.features.feature) == len(table) for message in messages)

    @settings(max_examples=150)
    @given(data=tables())
    def test_what_protobuf_encodes_we_read(self, tf: Any, data: Table) -> None:
        table, rows = data
        lists_of = {"bytes": "bytes_list", "float": "float_list", "int64": "int64_list"}
        payloads = []
        for row in range(rows):
            message = tf.train.Example()
            for name, (kind, lists) in table.items():
                getattr(message.features.feature[name], lists_of[kind]).SetInParent()
                getattr(message.features.feature[name], lists_of[kind]).value.extend(lists[row])
            payloads.append(message.SerializeToString())

        decoder = Decoder([Feature(name, kind) for name, (kind, _) in table.items()])
        decoded = decoder.decode(records.pack_many(payloads))

        for name, (kind, lists) in table.items():
            assert wire.of_recordkit(decoded[name], rows) == [wire.exact(kind, one) for one in lists]

    def test_fixed_length_features_are_read_equal(self, tf: Any) -> None:
        rows = 50
        rng = np.random.default_rng(7)
        ints, floats = rng.integers(-(2**63), 2**63 - 1, (rows, 3)), rng.standard_normal((rows, 2)).astype(np.float32)
        texts = [b"%d" % row for row in range(rows)]

        packed = encode(
            {
                "i": Values("int64", ints.ravel(), count=3),
                "f": Values("float", floats.ravel(), count=2),
                "t": Values("bytes", BytesColumn.of(texts), count=1),
            },
            rows,
        )
        found = tf.io.parse_example(
            list(packed),
            {
                "i": tf.io.FixedLenFeature([3], tf.int64),
                "f": tf.io.FixedLenFeature([2], tf.float32),
                "t": tf.io.FixedLenFeature([], tf.string),
            },
        )

        assert (found["i"].numpy() == ints).all()
        assert (found["f"].numpy() == floats).all()
        assert found["t"].numpy().tolist() == texts

    def test_nan_bits_reach_it(self, tf: Any) -> None:
        bits = np.array([0xFFC12345, 0x7FC00001], np.uint32)

        packed = encode({"a": Values("float", bits.view(np.float32), count=2)}, 1)
        found = tf.io.parse_single_example(packed[0], {"a": tf.io.FixedLenFeature([2], tf.float32)})["a"]

        assert found.numpy().view(np.uint32).tolist() == bits.tolist()

    def test_it_reads_the_file_we_write_and_we_read_the_file_it_writes(self, tf: Any, tmp_path: Path) -> None:
        payloads = [wire.example(wire.entry("x", wire.ints(i))) for i in range(100)] + [b""]
        ours, theirs = tmp_path / "ours.tfrecord", tmp_path / "theirs.tfrecord"

        ours.write_bytes(records.pack_many(payloads))
        with tf.io.TFRecordWriter(str(theirs)) as writer:
            for payload in payloads:
                writer.write(payload)

        assert ours.read_bytes() == theirs.read_bytes()
        assert [payload.numpy() for payload in tf.data.TFRecordDataset(str(ours))] == payloads

    def test_sequences_we_encode_it_reads(self, tf: Any) -> None:
        columns = TestSequences().columns()
        packed = encode(columns, 3, sequence=True)

        messages = [tf.train.SequenceExample.FromString(payload) for payload in packed]
        context, lists = zip(
            *[
                tf.io.parse_single_sequence_example(
                    payload,
                    {"id": tf.io.FixedLenFeature([], tf.int64)},
                    {"frames": tf.io.FixedLenSequenceFeature([], tf.string, allow_missing=True)},
                )
                for payload in packed
            ],
            strict=True,
        )

        assert [int(one["id"]) for one in context] == [1, 2, 3]
        assert [one["frames"].numpy().tolist() for one in lists] == [[b"a", b"b"], [], [b"c"]]
        steps = [step for message in messages for step in message.feature_lists.feature_list["tokens"].feature]
        assert [wire.of_protobuf(step)[1] for step in steps] == wire.of_recordkit(columns["tokens"], 3)
