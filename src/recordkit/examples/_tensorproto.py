"""TensorProto: the message of `tf.io.serialize_tensor`, read and written without TensorFlow.

    message TensorProto {
      DataType dtype = 1;  TensorShapeProto tensor_shape = 2;
      bytes tensor_content = 4;                      // little-endian, row-major; else one of:
      float float_val = 5;  double double_val = 6;   int32 int_val = 7;       bytes string_val = 8;
      float scomplex_val = 9;  int64 int64_val = 10; bool bool_val = 11;      double dcomplex_val = 12;
      int32 half_val = 13;  uint32 uint32_val = 16;  uint64 uint64_val = 17;  // all repeated
    }
    message TensorShapeProto { message Dim { int64 size = 1; } repeated Dim dim = 2; bool unknown_rank = 3; }

Where a typed list has fewer values than the shape, the last one repeats; an empty list means zeros.
"""

from __future__ import annotations

import math
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from recordkit import dtypes
from recordkit.dtypes import DTYPES
from recordkit.errors import SchemaError

from .wire_format import BYTES, VARINT, bytes_field, fields, varint, varint_field, varints

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

_CODES: Final = {dtype.name: dtype.tensor for dtype in DTYPES.values() if dtype.tensor is not None}
TENSOR_DTYPES: Final = frozenset(_CODES)
_NAMES: Final = {number: name for name, (number, *_) in _CODES.items()}

# A tensor of repeated values can be small on the wire and huge in memory; larger ones are treated as damaged.
MOST_BYTES: Final = 1 << 30


def parse_tensor(data: bytes, *, most_bytes: int = MOST_BYTES) -> NDArray[Any]:
    r"""Return the tensor in a serialized TensorProto; byte strings become an array of objects.

    Args:
        data: What `tf.io.serialize_tensor` returned.
        most_bytes: The limit of memory for a tensor; larger ones are refused.

    >>> parse_tensor(b"\x08\x03\x12\x04\x12\x02\x08\x03:\x01\x07").tolist()
    [7, 7, 7]
    """
    try:
        return _parsed(memoryview(data), most_bytes)
    except SchemaError:
        raise
    except (IndexError, TypeError, ValueError):
        message = f"{len(data)} bytes that are not a TensorProto\n  Declare bytes to read them as they are."
        raise SchemaError(message) from None


def serialize_tensor(array: NDArray[Any]) -> bytes:
    r"""Return an array as a serialized TensorProto, byte for byte as `tf.io.serialize_tensor` does.

    Args:
        array: Numbers, or an object array of bytes.

    >>> serialize_tensor(np.array([7, 7], np.int32))
    b'\x08\x03\x12\x04\x12\x02\x08\x02"\x08\x07\x00\x00\x00\x07\x00\x00\x00'
    """
    name = "bytes" if array.dtype == np.object_ else dtypes.name_of(array.dtype)
    if name not in _CODES:
        message = (
            f"TensorFlow does not serialize tensors of {name}\n  View it as another dtype, such as int64 or uint8."
        )
        raise SchemaError(message)
    dims = b"".join(bytes_field(2, varint_field(1, size)) for size in array.shape)
    head = varint_field(1, _CODES[name][0]) + bytes_field(2, dims)
    if name == "bytes":
        return head + b"".join(bytes_field(8, value) for value in array.reshape(-1).tolist())
    content = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
    return head + (bytes_field(4, content) if content else b"")


def _parsed(data: memoryview, most_bytes: int) -> NDArray[Any]:
    number, shape, content, lists = _parts(data)
    name = _NAMES.get(number)
    if name is None:
        message = (
            f"a TensorProto of DataType {number}, which recordkit cannot hold\n  Declare bytes to read it as it is."
        )
        raise SchemaError(message)
    size = _checked_size(shape, name, most_bytes)
    if name == "bytes":
        return _strings(size, content, lists.get(8, [])).reshape(shape)
    return _numbers(name, size, content, lists).reshape(shape)


def _parts(data: memoryview) -> tuple[int, tuple[int, ...], bytes, dict[int, list[Any]]]:
    """Return a message's dtype, shape, content and typed lists."""
    number, content = 0, b""
    shape: list[int] = []
    lists: dict[int, list[Any]] = {}
    for field, wire, value in fields(data):
        if field == 1 and wire == VARINT:
            number = value
        elif field == 2 and wire == BYTES:
            shape += _dims(value)
        elif field == 4 and wire == BYTES:
            content = bytes(value)
        else:
            lists.setdefault(field, []).append((wire, value))
    return number, tuple(shape), content, lists


def _dims(data: memoryview) -> Iterator[int]:
    for field, _, dim in fields(data):
        if field == 2:
            sizes = [value for number, _, value in fields(dim) if number == 1]
            yield sizes[-1] if sizes else 0
        elif field == 3 and dim:
            raise ValueError  # no tensor has an unknown rank


def _checked_size(shape: tuple[int, ...], name: str, most_bytes: int) -> int:
    """Return the number of elements; raise for impossible shapes."""
    itemsize = 8 if name == "bytes" else dtypes.itemsize(name)
    # The product without zeros, because NumPy multiplies the sizes of empty arrays too.
    if len(shape) > 32 or any(size >= 2**63 for size in shape):
        message = f"a TensorProto of the impossible shape {list(shape)}"
        raise SchemaError(message)
    needed = math.prod(size for size in shape if size) * itemsize
    if needed > most_bytes:
        message = (
            f"a TensorProto of shape {list(shape)}, which takes {needed} bytes\n  At most {most_bytes} are allowed."
        )
        raise SchemaError(message)
    return math.prod(shape)


def _numbers(name: str, size: int, content: bytes, lists: dict[int, list[Any]]) -> NDArray[Any]:
    dtype = dtypes.numpy_dtype(name)
    if content and size:
        if len(content) != size * dtype.itemsize:
            message = f"a TensorProto with {len(content)} bytes for {size} values of {name}"
            raise SchemaError(message)
        return np.frombuffer(content, _little(dtype)).astype(dtype)
    _, field, fixed = _CODES[name]
    values = _typed_values(lists.get(field, []), fixed)
    if fixed and name.startswith("complex"):
        values = values[: len(values) // 2 * 2].view(dtype)
    elif name in dtypes.FLOATS and not fixed:  # their bits
        values = values.astype(f"u{dtype.itemsize}").view(dtype)
    elif not fixed:
        # Varints hold 64-bit two's complement, so dropping the upper bits gives the number.
        values = values != 0 if name == "bool" else values.astype(dtype)
    return _repeated(values.astype(dtype, copy=False), size)


def _little(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return dtype if np.little_endian else dtype.newbyteorder("<")


def _typed_values(chunks: list[Any], fixed: str) -> NDArray[Any]:
    """Return the values of a typed list, packed or not."""
    if fixed:
        return np.frombuffer(b"".join(value for _, value in chunks), fixed)
    numbers = [number for wire, value in chunks for number in ([value] if wire == VARINT else varints(value))]
    return np.array(numbers, np.uint64)


def _repeated(values: NDArray[Any], size: int) -> NDArray[Any]:
    if len(values) >= size:
        return values[:size].copy()
    whole = np.zeros(size, values.dtype)
    if len(values):
        whole[: len(values)] = values
        whole[len(values) :] = values[-1]
    return whole


def _strings(size: int, content: bytes, chunks: list[Any]) -> NDArray[Any]:
    values = _string_content(memoryview(content), size) if content else [bytes(value) for _, value in chunks]
    array = np.empty(size, np.object_)
    array[:] = (values + [values[-1] if values else b""] * (size - len(values)))[:size]
    return array


def _string_content(content: memoryview, size: int) -> list[bytes]:
    """Return byte strings from tensor_content: all their lengths as varints, then all their bytes."""
    lengths, at = [], 0
    for _ in range(size):
        length, at = varint(content, at)
        lengths.append(length)
    ends = list(accumulate(lengths, initial=at))
    if ends.pop(0) + sum(lengths) != len(content):
        message = f"a TensorProto whose {size} byte strings do not fill its {len(content)} bytes"
        raise SchemaError(message)
    return [bytes(content[end - length : end]) for end, length in zip(ends, lengths, strict=True)]
