"""Values: one Python value checked against a dtype and a shape, and made into what is stored.

Knows dtypes and shapes, not fields or records: what does not fit is a `Misfit`. Whole columns are `_gather`'s.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from recordkit import dtypes, images
from recordkit.columns import BytesColumn, Ragged
from recordkit.errors import SchemaError
from recordkit.images import SIGNATURES
from recordkit.schema._errors import Misfit
from recordkit.wording import counted, quoted

from ._casts import fit

if TYPE_CHECKING:
    from numpy.typing import NDArray


def picture_bytes(value: Any, kind: str, quality: int | None = None) -> bytes:
    r"""Return the encoded picture that is stored for `value`: itself if it is one, else made of its pixels.

    >>> picture_bytes(b"\x89PNG\r\n\x1a\n...", "png")
    b'\x89PNG\r\n\x1a\n...'
    """
    if isinstance(value, bytes | bytearray | memoryview):
        return _checked(bytes(value), kind)
    if hasattr(value, "__array__"):
        return _encoded(value, kind, quality)
    found = "None" if value is None else type(value).__name__
    raise Misfit(found, f"Give the bytes of a {kind} file, or the pixels as an array.")


def _checked(picture: bytes, kind: str) -> bytes:
    found = images.kind(picture)
    if found != kind:
        what = "not a picture" if found is None else f"a {found}"
        found_bytes = f"{counted(len(picture), 'byte')}, {what}"
        raise Misfit(found_bytes, "Declare bytes to store any bytes.")
    return picture


def _encoded(array: Any, kind: str, quality: int | None) -> bytes:
    try:
        return images.encode(array, cast("images.Kind", kind), quality=quality)
    except SchemaError as error:
        advice = error.advice
        if np.ndim(array) > 3:
            advice = f"For several pictures in one field, declare their number or ?, such as {kind}[?]."
        raise Misfit(error.found or "", f"A {kind} takes {error.expected}. {advice}") from None


def check_stack(array: NDArray[Any], ndim: int) -> None:
    """Raise `Misfit` if an array is not surely pictures, with `ndim` dimensions before those of each.

    A picture in colour given where several were wanted would pass for as many narrow grey ones as it has rows.
    """
    rest = array.shape[ndim:]
    if ndim and len(rest) == 2 and rest[1] <= 4:
        shape = ",".join(map(str, array.shape))
        advice = "Is it one picture, or are they several in grey? Give [array] for one, array[..., None] for several."
        raise Misfit(found=f"an array of {array.dtype.name}, shape [{shape}]", advice=advice)


Shape: TypeAlias = tuple[int | None, ...]

# Python's own numbers carry no promise of width, so a float field rounds them; NumPy's do, so they must fit exactly.
_PYTHON_NUMBERS = frozenset({int, float, complex})

_EQUAL_LENGTHS = "An array has rows of equal length; pad them, or flatten."


def to_int(value: Any, dtype: str) -> int:
    """Return a scalar for an integer field.

    >>> to_int(np.int64(3), "int8"), to_int(True, "int8")
    (3, 1)
    """
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if not isinstance(value, int | np.integer | np.bool_):
        raise _not_a_scalar(value, dtype)
    low, high = dtypes.bounds(dtype)
    number = int(value)
    if not low <= number <= high:
        raise Misfit(found=quoted(number), advice=f"{dtype} holds {low} to {high}. {_wider(number, dtype)}")
    return number


def _wider(number: int, dtype: str) -> str:
    """Return the advice to declare the narrowest type that holds `number` and all that `dtype` does, if one does."""
    low, high = dtypes.bounds(dtype)
    for name in sorted(dtypes.INTEGERS, key=dtypes.itemsize):
        least, most = dtypes.bounds(name)
        if least <= min(low, number) and max(high, number) <= most:
            return f"Declare {name}."
    return "No integer type holds it as well."


def to_array(value: Any, dtype: str, shape: Shape | None, *, rounding: bool = False) -> NDArray[Any]:
    """Return a value as an array of exactly this numeric dtype and a shape that `shape` allows, None being any.

    >>> to_array([[1, 2], [3, 4]], "uint8", (2, None)).tolist()
    [[1, 2], [3, 4]]
    """
    array, python_numbers = _as_numpy(value, dtype, shape)
    if array.size == 0 and isinstance(value, list | tuple):
        array = array.astype(dtypes.numpy_dtype(dtype))  # an empty list has no dtype of its own
    if shape is not None:
        check_shape(array.shape, shape)
    return fit(array, dtype, rounding=rounding or python_numbers)


def check_shape(found: tuple[int, ...], declared: Shape) -> None:
    """Raise `Misfit` unless `declared` allows the shape `found`."""
    if len(found) == len(declared) and all(d is None or d == f for f, d in zip(found, declared, strict=True)):
        return
    advice = "Write ? for a dimension that varies." if len(found) == len(declared) else ""
    raise Misfit(found="a scalar" if found == () else f"shape {shape_text(found)}", advice=advice)


def shape_text(shape: Shape) -> str:
    """Return a shape as the schema language writes it.

    >>> shape_text((2, None))
    '[2,?]'
    """
    return f"[{','.join('?' if size is None else str(size) for size in shape)}]"


def _as_numpy(value: Any, dtype: str, shape: Shape | None) -> tuple[NDArray[Any], bool]:
    """Return a value as an array, and whether it was made of Python's own numbers."""
    if isinstance(value, np.ndarray):
        if isinstance(value, np.ma.MaskedArray):
            raise Misfit(
                found="a masked array", advice="The hidden values would be stored. Fill it first: .filled(...)."
            )
        return (value, False) if value.dtype != np.object_ else _as_numpy(value.tolist(), dtype, shape)
    if isinstance(value, np.generic):
        return np.asarray(value), False
    if isinstance(value, list | tuple | range | bool | int | float | complex):
        types = _leaf_types(value)
        return _from_list(value, dtype, types), types <= _PYTHON_NUMBERS
    if isinstance(value, datetime.date | datetime.timedelta):
        return _from_datetime(value), False
    if isinstance(value, Ragged):
        found, values = _rectangle(value)
        return np.asarray(values).reshape(found), False
    if not isinstance(value, str | bytes | bytearray | Mapping) and hasattr(value, "__array__"):
        return np.asarray(value), False
    raise _not_a_scalar(value, dtype) if shape == () else _not_an_array(value, dtype)


def _rectangle(value: Ragged) -> tuple[tuple[int, ...], NDArray[Any] | BytesColumn]:
    """Return the shape of lists in lists that are all equally long, and what they hold."""
    shape = [len(value)]
    for level in value.offsets:
        lengths = set(np.diff(level).tolist())
        if len(lengths) > 1:
            raise Misfit(found="lists of differing lengths", advice=_EQUAL_LENGTHS)
        shape.append(lengths.pop() if lengths else 0)
    return (*shape, *value.values.shape[1:]), value.values


def _from_list(value: Any, dtype: str, types: set[type]) -> NDArray[Any]:
    """Return Python values of these types, nested or not, as an array."""
    wrong = types & {str, bytes, bytearray, type(None), dict}
    if wrong:
        raise Misfit(found=f"a list with {_type_name(min(wrong, key=str))} in it", advice=_convert_first(dtype))
    if isinstance(value, list | tuple) and types & {datetime.datetime, datetime.date, datetime.timedelta}:
        return np.array([_as_numpy(item, dtype, ())[0] for item in value])
    try:
        array = np.asarray(value)
    except ValueError:
        raise Misfit(found="lists of differing lengths", advice=_EQUAL_LENGTHS) from None
    # Python integers that no NumPy integer dtype holds together became floats or objects: look at each.
    if types == {int} and array.dtype.kind in "fO" and array.size and dtype in dtypes.INTEGERS:
        numbers = [to_int(number, dtype) for number in np.array(value, np.object_).reshape(-1)]
        return np.array(numbers, dtype).reshape(array.shape)
    return array


def _leaf_types(value: Any) -> set[type]:
    """Return the types of what a nested list holds."""
    if not isinstance(value, list | tuple):
        return {int} if isinstance(value, range) else {type(value)}
    types = set(map(type, value))
    if types & {list, tuple}:
        return set[type]().union(*map(_leaf_types, value))
    return types


def _from_datetime(value: datetime.date | datetime.timedelta) -> NDArray[Any]:
    if isinstance(value, datetime.timedelta):
        return np.asarray(np.timedelta64(value))
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        raise Misfit(
            found="a datetime with a time zone", advice="NumPy's have none: .astimezone(UTC).replace(tzinfo=None)."
        )
    return np.asarray(np.datetime64(value))


def to_bytes(value: Any, dtype: str, *, quality: int | None = None) -> bytes:
    r"""Return a scalar for a string, bytes, jpeg or png field, as the bytes stored; `quality` is for arrays of pixels.

    >>> to_bytes("naïve", "string"), to_bytes(bytearray(b"x"), "bytes")
    (b'na\xc3\xafve', b'x')
    """
    if isinstance(value, np.ndarray) and value.ndim == 0 and value.dtype.kind in "USTO":
        value = value[()]
    if dtype == "string":
        return _encoded_text(value)
    if dtype in SIGNATURES:
        return picture_bytes(value, dtype, quality)
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    if isinstance(value, str):
        raise Misfit(found="str", advice="Declare string, or encode it: .encode().")
    raise Misfit(found=_type_name(type(value)))


def _encoded_text(value: Any) -> bytes:
    if not isinstance(value, str):
        advice = "Declare bytes, or decode it: .decode()." if isinstance(value, bytes | bytearray | memoryview) else ""
        raise Misfit(found=_type_name(type(value)), advice=advice)
    try:
        return value.encode()
    except UnicodeEncodeError as error:
        advice = "UTF-8 cannot encode it. Repair it with .encode('utf-8', 'replace').decode(), or declare bytes."
        raise Misfit(found=f"text with a lone surrogate at character {error.start}", advice=advice) from None


def to_byte_strings(
    value: Any, dtype: str, shape: Shape, *, quality: int | None = None
) -> tuple[tuple[int, ...], list[bytes]]:
    """Return an array of byte strings as its shape and its values, row-major; `quality` is for arrays of pixels.

    >>> to_byte_strings([["a", "b"]], "string", (None, 2))
    ((1, 2), [b'a', b'b'])
    """
    found: tuple[int, ...]
    if isinstance(value, Ragged) and isinstance(value.values, BytesColumn):
        found, values = _rectangle(value)[0], value.values.to_numpy().reshape(-1).tolist()
    elif isinstance(value, BytesColumn):
        found, values = tuple(value.shape), value.reshape((len(value.offsets) - 1,)).to_list()
    elif _is_pixels(value, dtype):
        found, values = _pictures(np.asarray(value), len(shape))
    elif isinstance(value, np.ndarray):
        found, values = value.shape, value.reshape(-1).tolist()
    elif isinstance(value, list | tuple):
        found, values = _flattened(value, len(shape), dtype)
    else:
        raise _not_an_array(value, dtype)
    check_shape(found, shape)
    return found, [to_bytes(item, dtype, quality=quality) for item in values]


def _is_pixels(value: Any, dtype: str) -> bool:
    """Tell whether a value for a picture field is an array of numbers, whose last dimensions are a picture's own."""
    if dtype not in SIGNATURES or not hasattr(value, "__array__"):
        return False
    return np.asarray(value).dtype.kind not in "USTO"


def _pictures(array: NDArray[Any], ndim: int) -> tuple[tuple[int, ...], list[Any]]:
    """Return how many pictures there are along the first `ndim` dimensions, and each."""
    check_stack(array, ndim)
    found = array.shape[:ndim]
    return found, list(array.reshape(math.prod(found), *array.shape[ndim:]))


def _flattened(value: Sequence[Any], ndim: int, dtype: str) -> tuple[tuple[int, ...], list[Any]]:
    """Return a nested list's shape and its items: to the depth declared, so that strings are never taken apart."""
    shape, items = [len(value)], list(value)
    for depth in range(1, ndim):
        if not items or not all(isinstance(item, list | tuple | np.ndarray) for item in items):
            break
        for item in items:
            if _is_pixels(item, dtype):
                check_stack(item, ndim - depth)
        lengths = {len(item) for item in items}
        if len(lengths) > 1:
            raise Misfit(found="lists of differing lengths", advice=_EQUAL_LENGTHS)
        shape.append(lengths.pop())
        items = [part for item in items for part in item]
    return tuple(shape), items


def _not_a_scalar(value: Any, dtype: str) -> Misfit:
    if isinstance(value, float | np.floating) and dtype in dtypes.INTEGERS:
        return Misfit(
            found=f"{quoted(float(value))} ({_type_name(type(value))})",
            advice="Round it with int(), or declare a float.",
        )
    if isinstance(value, np.ndarray | list | tuple):
        shape = np.shape(value) if isinstance(value, np.ndarray) else (len(value),)
        return Misfit(
            found=f"{_type_name(type(value))} of shape {shape_text(shape)}", advice="Declare the shape, such as [?]."
        )
    return Misfit(found=_type_name(type(value)), advice=_convert_first(dtype) if isinstance(value, str | bytes) else "")


def _not_an_array(value: Any, dtype: str) -> Misfit:
    if isinstance(value, bytes | bytearray | memoryview) and not dtypes.is_bytes(dtype):
        return Misfit(found=quoted(value), advice=f"Convert them: np.frombuffer(..., np.{dtype}).")
    return Misfit(found=_type_name(type(value)), advice="Give an array or a list.")


def _convert_first(dtype: str) -> str:
    return f"Convert it to {dtype} first."


def _type_name(kind: type) -> str:
    return "None" if kind is type(None) else kind.__name__
