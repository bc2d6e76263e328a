from __future__ import annotations

from contextlib import suppress
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from recordkit.errors import SchemaError
from recordkit.examples import parse_tensor, serialize_tensor

DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
DTYPES += ["float16", "float32", "float64", "complex64", "complex128"]

arrays = st.sampled_from(DTYPES).flatmap(
    lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=0, min_side=0, max_side=3))
)


def message(dtype: int, shape: tuple[int, ...], *fields: bytes) -> bytes:
    """A TensorProto made by hand; sizes up to 127."""
    dims = b"".join(bytes([0x12, 2, 0x08, size]) for size in shape)
    return bytes([0x08, dtype, 0x12, len(dims)]) + dims + b"".join(fields)


class TestParsing:
    @given(arrays)
    def test_what_was_serialized_comes_back(self, array: Any) -> None:
        found = parse_tensor(serialize_tensor(array))

        assert (found.dtype, found.shape, found.tobytes()) == (array.dtype, array.shape, array.tobytes())

    @pytest.mark.parametrize(
        ("data", "read"),
        [
            (message(3, (3,), b"\x3a\x01\x07"), [7, 7, 7]),  # int_val, packed: the last value repeats
            (message(3, (3,), b"\x38\x01", b"\x38\x02"), [1, 2, 2]),  # int_val, one by one
            (message(3, (2,)), [0, 0]),  # no values: zeros
            (message(3, (1,), b"\x3a\x03\x07\x08\x09"), [7]),  # more values than the shape has
            (message(6, (1,), b"\x38" + b"\xff" * 9 + b"\x01"), [-1]),  # int8 as a negative int32
            (message(1, (2,), b"\x2d\x00\x00\x80\x3f"), [1.0, 1.0]),  # float_val
            (message(19, (1,), b"\x6a\x02\x80\x78"), [1.0]),  # half_val: the bits of a float16
            (message(14, (1,), b"\x6a\x02\x80\x7f"), [1.0]),  # half_val: the bits of a bfloat16
            (message(10, (2,), b"\x5a\x02\x01\x00"), [True, False]),  # bool_val
            (message(8, (1,), b"\x4a\x08\x00\x00\x80\x3f\x00\x00\x00\x40"), [1 + 2j]),  # scomplex_val
            (message(7, (3,), b"\x42\x01a", b"\x42\x00"), [b"a", b"", b""]),  # string_val
            (message(7, (2,), b"\x22\x05\x01\x02abc"), [b"a", b"bc"]),  # strings in tensor_content
            (message(9, ()), 0),
            (message(23, (1,), b"\x8a\x01\x0a" + b"\xff" * 9 + b"\x01"), [2**64 - 1]),  # uint64_val
            (message(3, (0, 5)), []),
        ],
    )
    def test_every_way_to_hold_values_is_read(self, data: bytes, read: Any) -> None:
        assert parse_tensor(data).tolist() == read

    @given(st.binary(max_size=40))
    def test_any_bytes_are_a_tensor_or_a_schema_error(self, junk: bytes) -> None:
        with suppress(SchemaError):
            parse_tensor(junk, most_bytes=1 << 20)

    @given(arrays, st.data())
    def test_a_cut_or_changed_message_is_a_tensor_or_a_schema_error(self, array: Any, data: st.DataObject) -> None:
        changed = bytearray(serialize_tensor(array))
        changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))

        with suppress(SchemaError):
            parse_tensor(bytes(changed[: data.draw(st.integers(0, len(changed)))]), most_bytes=1 << 20)

    @pytest.mark.parametrize(
        ("data", "words"),
        [
            (b"junk", "4 bytes that are not a TensorProto\n  Declare bytes to read them as they are."),
            (message(20, ()), "a TensorProto of DataType 20, which recordkit cannot hold\n  Declare bytes"),
            (message(1, (2,), b"\x22\x04abcd"), "a TensorProto with 4 bytes for 2 values of float32"),
            (message(7, (2,), b"\x22\x03\x01\x02a"), "a TensorProto whose 2 byte strings do not fill its 3 bytes"),
            (message(2, (127,) * 5), "a TensorProto of shape [127, 127, 127, 127, 127], which takes 264"),
        ],
    )
    def test_what_is_no_tensor_is_refused_in_words(self, data: bytes, words: str) -> None:
        with pytest.raises(SchemaError) as caught:
            parse_tensor(data)

        assert str(caught.value).startswith(words)

    @pytest.mark.parametrize(("dtype", "name"), [("M8[s]", "datetime64:s"), (ml_dtypes.float8_e4m3fn, "float8_e4m3fn")])
    def test_dtype_tensorflow_does_not_serialize_is_refused(self, dtype: Any, name: str) -> None:
        with pytest.raises(SchemaError, match=f"TensorFlow does not serialize tensors of {name}"):
            serialize_tensor(np.zeros(1, dtype))


@pytest.mark.tensorflow
class TestTensorFlow:
    @settings(deadline=None)
    @given(arrays)
    def test_bytes_are_those_of_serialize_tensor(self, array: Any) -> None:
        import tensorflow as tf

        theirs = tf.io.serialize_tensor(tf.constant(array)).numpy()

        assert serialize_tensor(array) == theirs

    @settings(deadline=None)
    @given(hnp.arrays(object, hnp.array_shapes(min_dims=1, max_side=3), elements=st.binary(max_size=3)))
    def test_bytes_of_strings_are_those_of_serialize_tensor(self, array: Any) -> None:
        import tensorflow as tf

        theirs = tf.io.serialize_tensor(tf.constant(array)).numpy()

        assert serialize_tensor(array) == theirs
        assert parse_tensor(theirs).tolist() == array.tolist()

    @settings(deadline=None)
    @given(arrays)
    def test_typed_lists_of_make_tensor_proto_are_read(self, array: Any) -> None:
        import tensorflow as tf

        # Compressed as graphs store constants: equal values at the end stand for themselves once.
        proto = tf.make_tensor_proto(array)
        content = tf.io.parse_tensor(proto.SerializeToString(), tf.as_dtype(array.dtype)).numpy()

        found = parse_tensor(proto.SerializeToString())

        assert (found.dtype, found.shape, found.tobytes()) == (array.dtype, array.shape, np.asarray(content).tobytes())

    @pytest.mark.parametrize("dtype", ["float16", "bfloat16", "bool", "uint16", "complex64", "int8", "string"])
    def test_values_of_a_list_repeat_as_tensorflow_repeats_them(self, dtype: str) -> None:
        import tensorflow as tf

        lists = {"float16": "half_val", "bfloat16": "half_val", "bool": "bool_val", "complex64": "scomplex_val"}
        proto = tf.make_tensor_proto(0)
        proto.Clear()
        proto.dtype = tf.as_dtype(dtype).as_datatype_enum
        proto.tensor_shape.dim.add().size = 3
        values: list[Any] = [b"a", b"b"] if dtype == "string" else [1, 0, 1, 1] if dtype == "complex64" else [1, 0]
        getattr(proto, lists.get(dtype, "string_val" if dtype == "string" else "int_val")).extend(values)
        data = proto.SerializeToString()

        found = parse_tensor(data)

        assert found.tolist() == np.asarray(tf.io.parse_tensor(data, tf.as_dtype(dtype)).numpy()).tolist()
