"""Raw values: byte strings that hold whole arrays, as numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from recordkit import dtypes
from recordkit.columns import BytesColumn, first_invalid_text, to_offsets
from recordkit.errors import SchemaError
from recordkit.examples import parse_tensor
from recordkit.schema._errors import Misfit
from recordkit.schema.values import check_shape, shape_text
from recordkit.wording import counted, shortened

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from recordkit.schema.values import Shape

    from ._field import Part


def read_raw(part: Part) -> tuple[NDArray[Any], NDArray[np.int64] | None]:
    """Return the elements of every item's array, and where each item begins; no places for a fixed shape."""
    _check_dtypes(part)
    column, dtype = part.own.values, part.layout.numpy_dtype()
    assert isinstance(column, BytesColumn)
    lengths, size = np.diff(column.offsets), part.layout.size
    data = column.data[column.offsets[0] : column.offsets[-1]]
    if size is None:
        _check_lengths(part, lengths, lengths % dtype.itemsize != 0, f"a multiple of {dtype.itemsize} bytes")
        return _elements(part, data, dtype), to_offsets(lengths // dtype.itemsize)
    wanted, absent = size * dtype.itemsize, part.missing_items()
    wrong = lengths != wanted
    if absent is not None:
        wrong &= ~absent
    _check_lengths(part, lengths, wrong, counted(wanted, "byte"))
    if absent is not None:
        whole = np.zeros((part.items, wanted), np.uint8)
        whole[~absent] = data.reshape(-1, wanted) if wanted else 0
        data = whole.reshape(-1)
    return _elements(part, data, dtype), None


def _check_lengths(part: Part, lengths: NDArray[np.int64], wrong: NDArray[np.bool_], wanted: str) -> None:
    if wrong.any():
        item = int(np.flatnonzero(wrong)[0])
        raise part.fault(item, counted(int(lengths[item]), "byte"), expected=f"{part.layout.expected} ({wanted})")


def _elements(part: Part, data: NDArray[np.uint8], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return little-endian bytes as numbers."""
    if dtype == np.bool_ and data.size and int(data.max()) > 1:
        index = int(np.flatnonzero(data > 1)[0])
        column = part.own.values
        assert isinstance(column, BytesColumn)
        item = int(np.searchsorted(column.offsets - column.offsets[0], index, "right")) - 1
        raise part.fault(item, f"a byte of {data[index]}", advice="Declare uint8 to read what is there.")
    if not np.little_endian:
        return np.ascontiguousarray(data).view(dtype.newbyteorder("<")).astype(dtype)
    # Bytes need no alignment and numbers do: where the decoder put them elsewhere, move them.
    return np.require(np.ascontiguousarray(data).view(dtype), requirements="A")


def _check_dtypes(part: Part) -> None:
    """Raise if a stored dtype's name is not the one declared; one that is missing says nothing."""
    if part.dtypes is None:
        return
    names, wanted = part.dtypes.values, part.layout.dtype.encode()
    assert isinstance(names, BytesColumn)
    data = names.data[names.offsets[0] : names.offsets[-1]]
    lengths = np.diff(names.offsets)
    if (lengths == len(wanted)).all() and data.tobytes() == wanted * len(lengths):
        return
    for item, name in enumerate(BytesColumn(names.data, names.offsets).to_list()):
        if name not in (wanted, b""):
            found = _quoted_name(name)
            raise part.fault(
                item, found, expected=part.layout.dtype, advice=f"It says so in {part.layout.dtype_name!r}."
            )


def _quoted_name(name: bytes | str) -> str:
    return shortened(name if isinstance(name, str) else name.decode("ascii", "replace"), 20)


class Tensors(NamedTuple):
    """The tensors of a batch, end to end."""

    values: NDArray[Any] | BytesColumn
    offsets: NDArray[np.int64]
    dims: NDArray[np.int64]
    shape: Shape


def read_tensors(part: Part) -> Tensors:
    """Return the tensors that were serialized one in each item."""
    column, absent = part.own.values, part.missing_items()
    assert isinstance(column, BytesColumn)
    arrays: list[NDArray[Any] | None] = []
    for item, message in enumerate(BytesColumn(column.data, column.offsets).to_list()):
        lacking = absent is not None and bool(absent[item])
        arrays.append(None if lacking else _parsed(part, item, message))
    present = [array for array in arrays if array is not None]
    dtype = part.layout.dtype or (_tensor_dtype(present[0]) if present else "float32")
    shape = part.layout.shape
    if shape is None:
        shape = (None,) * (present[0].ndim if present else 1)
    _check_tensors(part, arrays, dtype, shape)
    # Where one is missing: zeros of a fixed shape, nothing of an open one.
    nothing = _zeros(dtype, tuple(size or 0 for size in shape))
    whole = [nothing if array is None else array for array in arrays]
    return Tensors(
        _joined(part, whole, dtype),
        to_offsets([array.size for array in whole]),
        np.array([array.shape for array in whole], np.int64).reshape(part.items, len(shape)),
        shape,
    )


def _parsed(part: Part, item: int, message: bytes | str) -> NDArray[Any]:
    assert isinstance(message, bytes)
    try:
        return parse_tensor(message)
    except SchemaError as error:
        raise part.fault(item, error.headline, advice=error.advice) from None


def _tensor_dtype(array: NDArray[Any]) -> str:
    return "bytes" if array.dtype == np.object_ else dtypes.name_of(array.dtype)


def _check_tensors(part: Part, arrays: list[NDArray[Any] | None], dtype: str, shape: Shape) -> None:
    stored = "bytes" if dtype == "string" else dtype
    for item, array in enumerate(arrays):
        if array is None:
            continue
        if _tensor_dtype(array) != stored:
            advice = "" if part.layout.dtype else "Tensors read together must agree in that."
            raise part.fault(
                item, f"a tensor of {_tensor_dtype(array)}", expected=f"a tensor of {dtype}", advice=advice
            )
        try:
            check_shape(array.shape, shape)
        except Misfit as misfit:
            advice = "" if part.layout.shape is not None else "Tensors read together must have equally many dimensions."
            raise part.fault(item, misfit.found, expected=f"shape {shape_text(shape)}", advice=advice) from None


def _zeros(dtype: str, shape: tuple[int, ...]) -> NDArray[Any]:
    return np.full(shape, b"", np.object_) if dtypes.is_bytes(dtype) else np.zeros(shape, dtypes.numpy_dtype(dtype))


def _joined(part: Part, arrays: list[NDArray[Any]], dtype: str) -> NDArray[Any] | BytesColumn:
    if not dtypes.is_bytes(dtype):
        empty = np.zeros(0, dtypes.numpy_dtype(dtype))
        return np.concatenate([empty, *(array.reshape(-1) for array in arrays)])
    column = BytesColumn.of([value for array in arrays for value in array.reshape(-1).tolist()], text=dtype == "string")
    bad = first_invalid_text(column) if dtype == "string" else None
    if bad is not None:
        item = int(np.searchsorted(to_offsets([array.size for array in arrays]), bad, "right")) - 1
        raise part.fault(item, "bytes that are not UTF-8", advice="Declare bytes.")
    return column
