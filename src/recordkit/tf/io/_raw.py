"""Tensors from raw bytes and from TensorProtos, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from recordkit import examples
from recordkit.dtypes import ML_DTYPES
from recordkit.errors import InvalidArgumentError
from recordkit.tf.tensors import Tensor, as_dtype, convert_to_tensor, of_numpy, one_string, string, string_tensor

if TYPE_CHECKING:
    from recordkit.tf.tensors import DTypeLike


def decode_raw(
    input_bytes: Any,
    out_type: DTypeLike,
    little_endian: bool = True,
    fixed_length: int | None = None,
    name: str | None = None,
) -> Tensor:
    r"""Return the numbers that strings hold as bytes, along a new last dimension.

    Args:
        input_bytes: A string, or a tensor of strings of one length.
        out_type: The dtype of the numbers.
        little_endian: Whether the least significant byte comes first.
        fixed_length: Cut every string to this number of bytes, or pad it with zeros.
        name: Not used.

    >>> decode_raw(b"\1\0\2\0", "uint16").numpy()
    array([1, 2], dtype=uint16)
    """
    dtype = as_dtype(out_type)
    if dtype is string:
        message = "decode_raw: expected a dtype of numbers, found string"
        raise InvalidArgumentError(message)
    strings = np.asarray(convert_to_tensor(input_bytes, string))
    values: list[bytes] = strings.reshape(-1).tolist()
    if fixed_length is not None:
        values = [value[:fixed_length].ljust(fixed_length, b"\0") for value in values]
    length = _one_length(values, dtype.size) if fixed_length is None else _whole(fixed_length, dtype.size)
    order = dtype.numpy.newbyteorder("<" if little_endian else ">") if dtype.name not in ML_DTYPES else dtype.numpy
    numbers = np.frombuffer(b"".join(values), order).astype(dtype.numpy)
    unknown = (*(False,) * strings.ndim, True) if fixed_length is None else ()
    return Tensor(numbers.reshape((*strings.shape, length // dtype.size)), unknown)


def _one_length(values: list[bytes], size: int) -> int:
    lengths = [len(value) for value in values]
    for element, length in enumerate(lengths):
        if length != lengths[0]:
            message = (
                f"decode_raw: expected strings of one length, found {lengths[0]} bytes, and {length} in element "
                f"{element}\n  Pass fixed_length= to cut or pad them."
            )
            raise InvalidArgumentError(message)
    return _whole(lengths[0] if lengths else 0, size)


def _whole(length: int, size: int) -> int:
    if length % size:
        message = f"decode_raw: expected a multiple of {size} bytes, found {length}\n  Check the dtype."
        raise InvalidArgumentError(message)
    return length


def serialize_tensor(tensor: Any, name: str | None = None) -> Tensor:
    """Return a tensor as the bytes of a TensorProto, which `parse_tensor` reads.

    >>> parse_tensor(serialize_tensor([1, 2]), "int32").numpy()
    array([1, 2], dtype=int32)
    """
    return string_tensor(examples.serialize_tensor(np.asarray(convert_to_tensor(tensor))))


def parse_tensor(serialized: Any, out_type: DTypeLike, name: str | None = None) -> Tensor:
    """Return the tensor in a serialized TensorProto, which must be of `out_type`."""
    array = examples.parse_tensor(one_string("parse_tensor", serialized))
    wanted, found = as_dtype(out_type), of_numpy(array.dtype)
    if found is not wanted:
        message = f"parse_tensor: expected {wanted.name}, found {found.name if found else array.dtype}"
        raise InvalidArgumentError(message)
    return Tensor(array)
