"""The messages of tf.train, with protobuf's as the oracle: the same script, the same answers."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings

from recordkit import tf as ours
from recordkit.errors import MalformedPayloadError
from recordkit.tf import example_pb2, train
from recordkit.tf.train import BytesList, Example, Feature, FeatureList, Features, FloatList, Int64List, SequenceExample
from tests import wire
from tests.tf.both import same, scripts

SETUP = """
T = tf.train
def ints(*values): return T.Feature(int64_list=T.Int64List(value=values))
def floats(*values): return T.Feature(float_list=T.FloatList(value=values))
def texts(*values): return T.Feature(bytes_list=T.BytesList(value=values))
def record(**features): return T.Example(features=T.Features(feature=features))
"""

# Each leaves in `result` what protobuf says, too.
SCRIPTS = scripts("messages")


@pytest.mark.tensorflow
class TestAsProtobuf:
    @pytest.mark.parametrize("name", SCRIPTS)
    def test_script(self, tf: Any, name: str) -> None:
        same(SETUP + SCRIPTS[name], tf)

    @settings(max_examples=60)
    @given(wire.examples())
    @example(b"\x0a\x00")
    def test_every_example_that_protobuf_reads_is_the_same_message(self, payload: bytes) -> None:
        from tensorflow.core.example import example_pb2 as theirs

        expected = theirs.Example.FromString(payload)
        found = Example.FromString(payload)

        again = theirs.Example.FromString(found.SerializeToString())
        expected.DiscardUnknownFields()
        assert again.SerializeToString(deterministic=True) == expected.SerializeToString(deterministic=True)

    @settings(max_examples=60)
    @given(wire.sequences(odd=(0, 2)))
    def test_every_sequence_example_is_the_same_message_or_refused(self, payload: bytes) -> None:
        from tensorflow.core.example import example_pb2 as theirs

        expected = theirs.SequenceExample.FromString(payload)
        try:
            found = SequenceExample.FromString(payload)
        except MalformedPayloadError:
            return  # groups, which no writer of Examples makes

        again = theirs.SequenceExample.FromString(found.SerializeToString())
        expected.DiscardUnknownFields()
        assert again.SerializeToString(deterministic=True) == expected.SerializeToString(deterministic=True)


class TestWhatProtobufRefuses:
    def test_features_are_assigned_into_the_map(self) -> None:
        message = Example()
        message.features.feature["x"] = Feature(int64_list=Int64List(value=[1]))
        message.features.feature["y"] = {"float_list": {"value": [2]}}

        assert Example.FromString(message.SerializeToString()).features.feature["y"].float_list.value == [2.0]

    def test_fields_are_assigned(self) -> None:
        message, feature = Example(), Feature()
        feature.int64_list = Int64List(value=[1])
        feature.int64_list.value = [2, 3]
        feature.int64_list.value += [4]
        message.features = Features(feature={"x": feature})

        assert message.features.feature["x"].int64_list.value == [2, 3, 4]

    @pytest.mark.parametrize(
        "values",
        [
            np.array([[1, 2], [3, 4]]),
            ours.constant([[1, 2], [3, 4]]),
            [ours.constant(1), 2, np.int8(3), np.array(4)],
            [np.array([1, 2]), ours.constant([3, 4])],
            np.array([1, 2, 3, 4], np.uint64),
        ],
        ids=str,
    )
    def test_arrays_and_tensors_are_numbers(self, values: Any) -> None:
        assert list(Int64List(value=values).value) == [1, 2, 3, 4]
        assert list(FloatList(value=values).value) == [1.0, 2.0, 3.0, 4.0]

    @pytest.mark.parametrize(
        ("values", "stored"),
        [
            (ours.constant(["a", "b"]), [b"a", b"b"]),
            (
                [ours.constant("a"), ours.io.serialize_tensor(ours.constant(1))],
                [b"a", b'\x08\x03\x12\x00"\x04\1\0\0\0'],
            ),
            (np.array([b"a", b"b"]), [b"a", b"b"]),
            (np.array([b"a\0", b"b"], object), [b"a\0", b"b"]),
            ([bytearray(b"a"), memoryview(b"b")], [b"a", b"b"]),
            ([np.array([1, 2], np.uint8)], [b"\1\2"]),
            (np.array([[1], [2]], ">u2"), [b"\1\0\2\0"]),
            ([ours.constant([1.5])], [np.float32(1.5).tobytes()]),
        ],
    )
    def test_arrays_and_tensors_are_bytes(self, values: Any, stored: list[bytes]) -> None:
        assert list(BytesList(value=values).value) == stored

    def test_bools_are_ints(self) -> None:
        assert list(Int64List(value=[True, np.True_]).value) == [1, 1]


class TestErrors:
    @pytest.mark.parametrize(
        ("make", "words"),
        [
            (lambda: Int64List(value=["a"]), "Int64List.value: expected int, found str"),
            (lambda: Int64List(value=np.array([1.5])), "Int64List.value: expected int, found an array of float64"),
            (lambda: FloatList(value=[b"a"]), "FloatList.value: expected float, found bytes"),
            (
                lambda: BytesList(value=["a"]),
                "BytesList.value: expected bytes, found str\n  Encode text: value.encode().",
            ),
            (lambda: BytesList(value=b"a"), "BytesList.value: expected a list of bytes, found bytes\n  Put it in bra"),
            (lambda: Feature(int64_list=FloatList()), "Feature.int64_list: expected Int64List, found FloatList"),
            (lambda: Features(feature={"x": Int64List()}), "feature['x']: expected Feature, found Int64List"),
            (lambda: FeatureList(feature=[1]), "FeatureList.feature: expected Feature, found int"),
        ],
    )
    def test_type_errors_name_the_field(self, make: Any, words: str) -> None:
        with pytest.raises(TypeError) as caught:
            make()

        assert str(caught.value).startswith(words)

    def test_a_value_that_is_refused_changes_nothing(self) -> None:
        feature = Feature()

        with pytest.raises(TypeError):
            feature.int64_list.value.append("a")

        assert feature.WhichOneof("kind") is None

    @pytest.mark.parametrize("payload", [b"\xff", b"\x0a\xff", b"\x12\x02\x0a"])
    @pytest.mark.parametrize("kind", [Example, SequenceExample])
    def test_what_is_no_message_is_refused(self, kind: Any, payload: bytes) -> None:
        if kind is Example and payload[0] == 0x12:
            payload = payload[:-1]

        with pytest.raises(MalformedPayloadError):
            kind.FromString(payload)


class TestAsValues:
    MESSAGE = SequenceExample(
        context=Features(feature={"c": Feature(float_list=FloatList(value=[0.5]))}),
        feature_lists={"feature_list": {"s": FeatureList(feature=[Feature(bytes_list=BytesList(value=[b"a"]))])}},
    )

    def test_messages_are_copied_and_pickled(self) -> None:
        assert copy.deepcopy(self.MESSAGE) == self.MESSAGE
        assert pickle.loads(pickle.dumps(self.MESSAGE)) == self.MESSAGE

    def test_classes_are_those_of_the_module_that_protobuf_generates(self) -> None:
        assert {name: getattr(example_pb2, name) for name in example_pb2.__all__} == {
            name: getattr(train, name) for name in train.__all__
        }

    def test_values_are_an_array_to_numpy(self) -> None:
        assert np.asarray(Int64List(value=[1, 2]).value).dtype == np.int64
        assert np.asarray(BytesList(value=[b"a\0"]).value).tolist() == [b"a\0"]
