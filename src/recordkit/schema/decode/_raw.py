"""Raw values: whole arrays stored as byte strings, and serialized tensors."""

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

    from ._field import DecodedField


def read_raw(field: DecodedField) -> tuple[NDArray[Any], NDArray[np.int64] | None]:
    """Return the elements of all arrays, and where each item begins; None in its place for a fixed shape."""
    _check_dtypes(field)
    column, dtype = field.own.values, field.layout.numpy_dtype()
    assert isinstance(column, BytesColumn)
    lengths, size = np.diff(column.offsets), field.layout.size
    data = column.data[column.offsets[0] : column.offsets[-1]]
    if size is None:
        _check_lengths(field, lengths, lengths % dtype.itemsize != 0, f"a multiple of {dtype.itemsize} bytes")
        return _elements(field, data, dtype), to_offsets(lengths // dtype.itemsize)
    wanted, absent = size * dtype.itemsize, field.missing_items()
    wrong = lengths != wanted
    if absent is not None:
        wrong &= ~absent
    _check_lengths(field, lengths, wrong, counted(wanted, "byte"))
    if absent is not None:
        whole = np.zeros((field.items, wanted), np.uint8)
        whole[~absent] = data.reshape(-1, wanted) if wanted else 0
        data = whole.reshape(-1)
    return _elements(field, data, dtype), None


def _check_lengths(field: DecodedField, lengths: NDArray[np.int64], wrong: NDArray[np.bool_], wanted: str) -> None:
    if wrong.any():
        item = int(np.flatnonzero(wrong)[0])
        raise field.error(item, counted(int(lengths[item]), "byte"), expected=f"{field.layout.expected} ({wanted})")


def _elements(field: DecodedField, data: NDArray[np.uint8], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return little-endian bytes as numbers."""
    if dtype == np.bool_ and data.size and int(data.max()) > 1:
        index = int(np.flatnonzero(data > 1)[0])
        column = field.own.values
        assert isinstance(column, BytesColumn)
        item = int(np.searchsorted(column.offsets - column.offsets[0], index, "right")) - 1
        raise field.error(item, f"a byte of {data[index]}", advice="Declare uint8 to read the stored values.")
    if not np.little_endian:
        return np.ascontiguousarray(data).view(dtype.newbyteorder("<")).astype(dtype)
    # Numbers need alignment, which the decoder does not promise for bytes.
    return np.require(np.ascontiguousarray(data).view(dtype), requirements="A")


def _check_dtypes(field: DecodedField) -> None:
    """Raise if a stored dtype name is not the declared one; a missing name is allowed."""
    if field.dtypes is None:
        return
    names, wanted = field.dtypes.values, field.layout.dtype.encode()
    assert isinstance(names, BytesColumn)
    data = names.data[names.offsets[0] : names.offsets[-1]]
    lengths = np.diff(names.offsets)
    if (lengths == len(wanted)).all() and data.tobytes() == wanted * len(lengths):
        return
    for item, name in enumerate(BytesColumn(names.data, names.offsets).to_list()):
        if name not in (wanted, b""):
            found = _quoted_name(name)
            raise field.error(
                item, found, expected=field.layout.dtype, advice=f"It says so in {field.layout.dtype_name!r}."
            )


def _quoted_name(name: bytes | str) -> str:
    return shortened(name if isinstance(name, str) else name.decode("ascii", "replace"), 20)


class DecodedTensors(NamedTuple):
    """The tensors of a batch, end to end."""

    values: NDArray[Any] | BytesColumn
    offsets: NDArray[np.int64]
    dims: NDArray[np.int64]
    shape: Shape


def read_tensors(field: DecodedField) -> DecodedTensors:
    """Return the tensors that the items hold in serialized form."""
    column, absent = field.own.values, field.missing_items()
    assert isinstance(column, BytesColumn)
    arrays: list[NDArray[Any] | None] = []
    for item, message in enumerate(BytesColumn(column.data, column.offsets).to_list()):
        lacking = absent is not None and bool(absent[item])
        arrays.append(None if lacking else _parsed(field, item, message))
    present = [array for array in arrays if array is not None]
    dtype = field.layout.dtype or (_tensor_dtype(present[0]) if present else "float32")
    shape = field.layout.shape
    if shape is None:
        shape = (None,) * (present[0].ndim if present else 1)
    _check_tensors(field, arrays, dtype, shape)
    # A missing one is zeros if its shape is fixed, and empty if not.
    nothing = _zeros(dtype, tuple(size or 0 for size in shape))
    whole = [nothing if array is None else array for array in arrays]
    return DecodedTensors(
        _joined(field, whole, dtype),
        to_offsets([array.size for array in whole]),
        np.array([array.shape for array in whole], np.int64).reshape(field.items, len(shape)),
        shape,
    )


def _parsed(field: DecodedField, item: int, message: bytes | str) -> NDArray[Any]:
    assert isinstance(message, bytes)
    try:
        return parse_tensor(message)
    except SchemaError as error:
        raise field.error(item, error.headline, advice=error.advice) from None


def _tensor_dtype(array: NDArray[Any]) -> str:
    return "bytes" if array.dtype == np.object_ else dtypes.name_of(array.dtype)


def _check_tensors(field: DecodedField, arrays: list[NDArray[Any] | None], dtype: str, shape: Shape) -> None:
    stored = "bytes" if dtype == "string" else dtype
    for item, array in enumerate(arrays):
        if array is None:
            continue
        if _tensor_dtype(array) != stored:
            advice = "" if field.layout.dtype else "Tensors read together must agree in that."
            raise field.error(
                item, f"a tensor of {_tensor_dtype(array)}", expected=f"a tensor of {dtype}", advice=advice
            )
        try:
            check_shape(array.shape, shape)
        except Misfit as misfit:
            advice = (
                "" if field.layout.shape is not None else "Tensors read together must have equally many dimensions."
            )
            raise field.error(item, misfit.found, expected=f"shape {shape_text(shape)}", advice=advice) from None


def _zeros(dtype: str, shape: tuple[int, ...]) -> NDArray[Any]:
    return np.full(shape, b"", np.object_) if dtypes.is_bytes(dtype) else np.zeros(shape, dtypes.numpy_dtype(dtype))


def _joined(field: DecodedField, arrays: list[NDArray[Any]], dtype: str) -> NDArray[Any] | BytesColumn:
    if not dtypes.is_bytes(dtype):
        empty = np.zeros(0, dtypes.numpy_dtype(dtype))
        return np.concatenate([empty, *(array.reshape(-1) for array in arrays)])
    column = BytesColumn.of([value for array in arrays for value in array.reshape(-1).tolist()], text=dtype == "string")
    bad = first_invalid_text(column) if dtype == "string" else None
    if bad is not None:
        item = int(np.searchsorted(to_offsets([array.size for array in arrays]), bad, "right")) - 1
        raise field.error(item, "bytes that are not UTF-8", advice="Declare bytes.")
    return column
