from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from recordkit import records
from recordkit.errors import CorruptRecordError, SchemaError
from recordkit.examples import Decoder, Feature, Values, edit, encode
from tests import wire

AB = wire.example(wire.entry("a", wire.ints(1)), wire.entry("b", wire.ints(2)))
SEQUENCE = wire.example(wire.entry("c", wire.ints(1))) + wire.lists(
    wire.entry("l", wire.steps(wire.ints(2), wire.ints(3))), wire.entry("m", wire.steps(wire.floats(4.0)))
)


def one_int(*values: int) -> Values:
    return wire.fixed("int64", [[value] for value in values])


def edited(payload: bytes, **changes: Any) -> bytes:
    (result,) = edit(records.pack_many([payload]), **changes)
    return result


def name_of(entry: bytes) -> str:
    found = [body for field, kind, body in wire.fields(entry) if (field, kind) == (1, wire.DELIMITED)]
    return found[-1].decode() if found else ""


class TestDrop:
    def test_takes_out_the_entry_and_leaves_the_rest(self) -> None:
        assert edited(AB, drop=["a"]) == wire.example(wire.entry("b", wire.ints(2)))
        assert edited(AB, drop=["a", "b"]) == wire.example()

    def test_takes_out_every_entry_of_the_name(self) -> None:
        assert edited(AB + AB, drop=["a"]) == wire.example(wire.entry("b", wire.ints(2))) * 2

    def test_a_name_that_is_not_there_changes_nothing(self) -> None:
        assert edited(AB, drop=["c"]) == AB


class TestRename:
    def test_changes_the_name_and_keeps_the_place(self) -> None:
        expected = wire.example(wire.entry("a longer name", wire.ints(1)), wire.entry("b", wire.ints(2)))

        assert edited(AB, rename={"a": "a longer name"}) == expected

    def test_two_names_can_be_swapped(self) -> None:
        assert edited(AB, rename={"a": "b", "b": "a"}) == wire.example(
            wire.entry("b", wire.ints(1)), wire.entry("a", wire.ints(2))
        )

    def test_a_name_can_take_the_place_of_one_that_is_dropped(self) -> None:
        assert edited(AB, rename={"a": "b"}, drop=["b"]) == wire.example(wire.entry("b", wire.ints(1)))

    def test_a_name_that_is_taken_is_an_error(self) -> None:
        chunk = records.pack_many([wire.example(), AB])

        with pytest.raises(SchemaError) as caught:
            edit(chunk, rename={"a": "b"}, path="train")

        assert (caught.value.field, caught.value.record, caught.value.path) == ("b", 1, "train")
        assert str(caught.value).startswith("b: the record already has a feature of this name\n  In train: record 1.")

    def test_the_way_out_of_a_taken_name_works(self) -> None:
        with pytest.raises(SchemaError, match=r"To replace it: drop=\['b'\]\."):
            edited(AB, rename={"a": "b"})

        assert edited(AB, drop=["b"], rename={"a": "b"}) == wire.example(wire.entry("b", wire.ints(1)))

    def test_two_names_cannot_become_one(self) -> None:
        with pytest.raises((SchemaError, ValueError), match="c"):
            edited(AB, rename={"a": "c", "b": "c"})

    @pytest.mark.parametrize("replace", [False, True])
    def test_a_name_cannot_become_one_that_is_appended(self, replace: bool) -> None:
        with pytest.raises((SchemaError, ValueError), match="c"):
            edited(AB, rename={"a": "c"}, append={"c": one_int(9)}, replace=replace)

    def test_the_old_name_can_be_given_away(self) -> None:
        for replace in (False, True):
            result = edited(AB, rename={"a": "c"}, append={"a": one_int(9)}, replace=replace)

            assert {name_of(entry): entry for entry in wire.entries(result)}.keys() == {"a", "b", "c"}

    def test_an_entry_without_a_name_gets_one(self) -> None:
        payload = wire.example(wire.delimited(1, wire.delimited(2, wire.ints(5))))

        assert edited(payload, rename={"": "a"}) == wire.example(wire.entry("a", wire.ints(5)))

    def test_what_else_an_entry_holds_is_kept(self) -> None:
        extra = wire.tag(9, wire.VARINT) + b"\x07"
        payload = wire.example(wire.delimited(1, extra + wire.delimited(1, b"a") + wire.delimited(2, wire.ints(5))))

        assert edited(payload, rename={"a": "b"}) == wire.example(
            wire.delimited(1, wire.delimited(1, b"b") + extra + wire.delimited(2, wire.ints(5)))
        )


class TestAppend:
    def test_puts_another_message_behind(self) -> None:
        assert edited(AB, append={"c": one_int(3)}) == AB + wire.example(wire.entry("c", wire.ints(3)))

    def test_takes_one_row_for_each_record(self) -> None:
        chunk = records.pack_many([AB, b"", AB])

        longer = edit(chunk, append={"c": one_int(7, 8, 9), "d": wire.ragged("bytes", [[b"x"], [], [b"y", b"z"]])})

        assert wire.numbers(Decoder([Feature("c", "int64", 1)]).decode(longer)["c"]) == [7, 8, 9]
        assert wire.of_recordkit(Decoder([Feature("d", "bytes")]).decode(longer)["d"], 3) == [[b"x"], [], [b"y", b"z"]]

    def test_too_few_rows_are_refused(self) -> None:
        with pytest.raises(SchemaError, match="c: its offsets do not fit its values, or the number of rows, 2"):
            edit(records.pack_many([AB, AB]), append={"c": one_int(7)})

    def test_a_name_that_is_taken_is_an_error_with_a_way_out(self) -> None:
        with pytest.raises(SchemaError) as caught:
            edit(records.pack_many([AB]), append={"b": one_int(3)})

        assert str(caught.value) == (
            "b: the record already has a feature of this name\n  In record 0. To replace it: replace=True."
        )

    def test_replace_takes_the_old_one_out(self) -> None:
        assert edited(AB, append={"b": one_int(3)}, replace=True) == wire.example(
            wire.entry("a", wire.ints(1))
        ) + wire.example(wire.entry("b", wire.ints(3)))

    def test_a_dropped_name_can_be_appended(self) -> None:
        assert edited(AB, drop=["b"], append={"b": one_int(3)}) == edited(AB, append={"b": one_int(3)}, replace=True)

    def test_damage_done_in_memory_stays_detectable(self) -> None:
        file = bytearray(records.pack(AB))
        chunk = records.chunk(file)
        file[-5] ^= 1  # the last byte of the payload

        longer = edit(chunk, append={"c": one_int(3)})

        with pytest.raises(CorruptRecordError, match="the payload's checksum does not match"):
            records.scan(bytes(longer))


class TestSequences:
    def test_appended_features_go_to_the_context(self) -> None:
        longer = edit(records.pack_many([SEQUENCE]), append={"d": one_int(9)}, sequence=True)

        features = [Feature("d", "int64", 1), Feature("l", "int64", 1, steps=True)]
        decoded = Decoder(features, sequence=True).decode(longer)

        assert (wire.numbers(decoded["d"]), wire.numbers(decoded["l"])) == ([9], [2, 3])

    def test_drop_and_rename_reach_the_lists(self) -> None:
        result = edited(SEQUENCE, drop=["c", "m"], rename={"l": "k"}, sequence=True)

        assert result == wire.example() + wire.lists(wire.entry("k", wire.steps(wire.ints(2), wire.ints(3))))

    def test_without_sequence_the_lists_are_left_alone(self) -> None:
        result = edited(SEQUENCE, drop=["c", "l"], rename={"m": "k"})

        assert result == wire.example() + SEQUENCE[len(wire.example(wire.entry("c", wire.ints(1)))) :]

    @pytest.mark.parametrize("replace", [False, True])
    def test_a_list_of_the_same_name_is_not_in_the_way_of_a_feature(self, replace: bool) -> None:
        result = edited(SEQUENCE, append={"l": one_int(9)}, sequence=True, replace=replace)

        assert result == SEQUENCE + wire.example(wire.entry("l", wire.ints(9)))


class TestFraming:
    def test_checksums_are_right_and_numbers_are_kept(self) -> None:
        chunk = records.chunk(records.pack(b"") * 3 + records.pack(AB) * 2).slice(3, 5)

        changed = edit(chunk, rename={"a": "c"}, append={"d": one_int(1, 2)})

        assert list(records.chunk(bytes(changed))) == list(changed)
        assert changed.first_record == 3

    def test_a_malformed_payload_is_named(self) -> None:
        chunk = records.pack_many([AB, b"\x0a\x05"])

        with pytest.raises(CorruptRecordError, match=r"^train: record 1 at byte 42: the payload is not a well-formed"):
            edit(chunk, drop=["a"], path="train")

    def test_nothing_to_do_copies(self) -> None:
        chunk = records.pack_many([AB, b"anything at all"])

        assert bytes(edit(chunk)) == bytes(chunk)

    def test_no_records_stay_none(self) -> None:
        nothing = Values("int64", np.array([], np.int64), count=1)

        assert len(edit(records.pack_many([]), drop=["a"], append={"b": nothing})) == 0


CHANGES = st.fixed_dictionaries(
    {
        "drop": st.sets(wire.NAMES, max_size=2),
        "rename": st.dictionaries(wire.NAMES, wire.NAMES, max_size=2),
        "append": st.dictionaries(wire.NAMES, st.integers(-5, 5).map(one_int), max_size=2),
        "replace": st.booleans(),
    }
)


def touches_twice(changes: dict[str, Any]) -> bool:
    """Whether two changes are about one name, which has tests of its own."""
    every = [*changes["drop"], *changes["rename"].keys(), *changes["rename"].values(), *changes["append"]]
    return len(set(every)) < len(every)


class TestLaws:
    @given(wire.examples(), CHANGES)
    def test_what_is_not_named_keeps_its_bytes_and_its_order(self, payload: bytes, changes: dict[str, Any]) -> None:
        assume(not touches_twice(changes))
        try:
            result = edited(payload, **changes)
        except SchemaError:
            return

        touched = {*changes["drop"], *changes["rename"], *changes["rename"].values(), *changes["append"]}
        before, after = ([e for e in wire.entries(p) if name_of(e) not in touched] for p in (payload, result))
        assert after == before
        others = [[f for f in wire.fields(p) if f[:2] != (1, wire.DELIMITED)] for p in (payload, result)]
        assert others[0] == others[1]

    @given(wire.examples(), st.dictionaries(wire.NAMES, st.integers(-5, 5).map(one_int), min_size=1, max_size=2))
    def test_appending_only_makes_longer(self, payload: bytes, added: dict[str, Values]) -> None:
        assume(not set(added) & wire.names(payload))

        result = edited(payload, append=added)

        assert result == payload + encode(added, 1)[0]

    @given(wire.mutated(wire.sequences()) | st.binary(max_size=40), CHANGES, st.booleans())
    def test_any_bytes_are_edited_or_refused(self, payload: bytes, changes: dict[str, Any], sequence: bool) -> None:
        try:
            changed = edit(records.pack_many([payload]), **changes, sequence=sequence)
        except (SchemaError, CorruptRecordError, ValueError):
            return

        assert records.scan(bytes(changed)).tolist() == [0]


@pytest.mark.tensorflow
class TestAgainstProtobuf:
    @settings(max_examples=250)
    @given(payload=wire.examples(), changes=CHANGES)
    def test_is_what_protobuf_makes_of_the_same_changes(self, tf: Any, payload: bytes, changes: dict[str, Any]) -> None:
        assume(not touches_twice(changes) and not wire.has_odd_entry(payload))
        message = tf.train.Example.FromString(payload)
        features = message.features.feature
        taken = {*changes["rename"].values(), *([] if changes["replace"] else changes["append"])} & set(features)

        if taken:
            with pytest.raises(SchemaError) as caught:
                edited(payload, **changes)
            assert caught.value.field in taken
            return
        for name in changes["drop"] & set(features):
            del features[name]
        for old, new in changes["rename"].items():
            if old in features:
                features[new].CopyFrom(features[old])
                del features[old]
        for name, values in changes["append"].items():
            features[name].Clear()
            features[name].int64_list.value[:] = values.values.tolist()

        assert tf.train.Example.FromString(edited(payload, **changes)) == message

    @given(payload=wire.sequences(), drop=st.sets(wire.NAMES, max_size=2), value=st.integers(-5, 5))
    def test_sequences_too(self, tf: Any, payload: bytes, drop: set[str], value: int) -> None:
        assume(not wire.has_odd_entry(payload))
        message = tf.train.SequenceExample.FromString(payload)
        for features in (message.context.feature, message.feature_lists.feature_list):
            for name in drop & set(features):
                del features[name]
        message.context.feature["new"].int64_list.value[:] = [value]

        result = edited(payload, drop=drop, append={"new": one_int(value)}, sequence=True)

        assert tf.train.SequenceExample.FromString(result) == message

    def test_tensorflow_reads_the_result_without_a_warning(self, tf: Any, capfd: pytest.CaptureFixture[str]) -> None:
        features = {name: tf.io.VarLenFeature(tf.int64) for name in "abc"}

        def read(payload: bytes) -> tuple[dict[str, list[int]], str]:
            capfd.readouterr()
            found = tf.io.parse_single_example(payload, features)
            batch = tf.io.parse_example([payload], features)
            assert all((found[name].values.numpy() == batch[name].values.numpy()).all() for name in features)
            return {name: found[name].values.numpy().tolist() for name in features}, capfd.readouterr().err

        doubled, warned = read(AB + wire.example(wire.entry("b", wire.ints(3))))
        appended = read(edited(AB, append={"c": one_int(3)}))
        replaced = read(edited(AB, append={"b": one_int(3)}, replace=True))
        renamed = read(edited(AB, rename={"a": "c"}, drop=["b"]))

        assert doubled["b"] == [3]
        assert "Data loss!" in warned  # what splicing avoids
        assert appended == ({"a": [1], "b": [2], "c": [3]}, "")
        assert replaced == ({"a": [1], "b": [3], "c": []}, "")
        assert renamed == ({"a": [], "b": [], "c": [1]}, "")

    def test_tensorflow_reads_an_appended_context(self, tf: Any, capfd: pytest.CaptureFixture[str]) -> None:
        payload = edited(SEQUENCE, append={"d": one_int(9)}, sequence=True)
        capfd.readouterr()

        context, lists = tf.io.parse_single_sequence_example(
            payload,
            {name: tf.io.FixedLenFeature([], tf.int64) for name in "cd"},
            {"l": tf.io.FixedLenSequenceFeature([], tf.int64)},
        )

        assert (int(context["c"]), int(context["d"]), lists["l"].numpy().tolist()) == (1, 9, [2, 3])
        assert capfd.readouterr().err == ""
