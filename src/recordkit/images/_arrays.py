"""Operations on arrays of pixels: resize, crop, flip and normalise.

A picture is `[h,w]` or `[h,w,channels]`, a batch of them `[n,h,w,channels]`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args

import numpy as np

from recordkit import _core
from recordkit.errors import SchemaError
from recordkit.wording import is_whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

Method: TypeAlias = Literal["nearest", "bilinear", "area"]
PixelType: TypeAlias = Literal["uint8", "float32"]
# For each channel a factor, and a shift to add after it.
Factors: TypeAlias = "tuple[NDArray[np.float32], NDArray[np.float32]]"
Direction: TypeAlias = Literal["horizontal", "vertical"]

# The core knows them by number.
_METHODS: Final[dict[str, int]] = {"nearest": 0, "bilinear": 1, "area": 2}
# TensorFlow computes positions in single precision, which cannot distinguish pixels beyond this.
_LONGEST_SIDE: Final = 1 << 24


def resize(
    array: NDArray[Any], size: Sequence[int], *, method: Method = "bilinear", dtype: PixelType | None = None
) -> NDArray[Any]:
    """Return a picture, or a batch of them, resized as TensorFlow 2 does without antialiasing.

    The views that `crop` and `flip` return are read without a copy.

    Args:
        array: uint8 or float32.
        size: Height and width.
        method: "bilinear" takes the four pixels around a position, however small the result; "area" the mean of all
            that a new pixel covers, which is better for making a picture much smaller; "nearest" one of them, which is
            right for labels.
        dtype: "uint8", rounded and clipped to 0 to 255, or "float32"; None for the array's own.

    Raises:
        SchemaError: The array is not a picture, or the size is impossible.

    >>> resize(np.array([[0, 100]], np.uint8), (1, 4)).tolist()
    [[0, 25, 75, 100]]
    >>> resize(np.array([[0, 100]], np.uint8), (1, 1), method="area", dtype="float32").tolist()
    [[50.0]]
    """
    pixels = checked_picture(array)
    batch = pixels if pixels.ndim == 4 else pixels[None] if pixels.ndim == 3 else pixels[None, ..., None]
    shape = (len(batch), *checked_size(size), batch.shape[-1])
    made = np.empty(shape, checked_dtype(pixels.dtype.name if dtype is None else dtype))
    method_number, same = number_of(method), factors(shape[-1])
    for source, target in zip(batch, made, strict=True):
        resize_into(target, source, method_number, same)
    return made if pixels.ndim == 4 else made[0] if pixels.ndim == 3 else made[0, ..., 0]


def crop(array: NDArray[Any], top: int, left: int, height: int, width: int) -> NDArray[Any]:
    """Return a part of a picture, or of each picture of a batch, as a view.

    Raises:
        SchemaError: The part is not inside the picture.

    >>> crop(np.arange(12).reshape(3, 4), 1, 2, 2, 2).tolist()
    [[6, 7], [10, 11]]
    """
    pixels, rows = np.asarray(array), _rows_axis(array)
    here = pixels.shape[rows : rows + 2]
    if not (0 <= top < top + height <= here[0] and 0 <= left < left + width <= here[1]):
        expected = f"a part of {here[0]} x {here[1]} pixels"
        found = f"{height} x {width} from row {top} and column {left} on"
        message = f"expected {expected}, found {found}"
        raise SchemaError(message, expected=expected, found=found)
    box = (slice(top, top + height), slice(left, left + width))
    return pixels[(slice(None),) * rows + box]


def flip(array: NDArray[Any], direction: Direction = "horizontal") -> NDArray[Any]:
    """Return a picture, or a batch, mirrored left to right or top to bottom, as a view.

    >>> flip(np.array([[1, 2], [3, 4]])).tolist(), flip(np.array([[1, 2], [3, 4]]), "vertical").tolist()
    ([[2, 1], [4, 3]], [[3, 4], [1, 2]])
    """
    if direction not in get_args(Direction):
        message = f"{direction!r} is no direction\n  There are horizontal (left and right change) and vertical."
        raise SchemaError(message, expected="horizontal or vertical", found=repr(direction))
    return np.flip(array, _rows_axis(array) + (direction == "horizontal"))


def normalise(
    array: NDArray[Any], *, scale: float = 1 / 255, mean: ArrayLike | None = None, std: ArrayLike | None = None
) -> NDArray[np.float32]:
    """Return `(array * scale - mean) / std` as float32.

    Args:
        array: Numbers; the channels come last.
        scale: The factor for every value, applied first. By default bytes become 0 to 1.
        mean: One number, or one for each channel; None for 0.
        std: Likewise; None for 1.

    >>> normalise(np.array([[[0, 255, 255]]], np.uint8), mean=0.5, std=[0.5, 0.5, 0.25]).tolist()
    [[[-1.0, 1.0, 2.0]]]
    """
    pixels = np.asarray(array)
    by, plus = factors(pixels.shape[-1] if pixels.ndim > 2 else 1, scale, mean, std)
    made: NDArray[np.float32] = np.multiply(pixels, by, dtype=np.float32)
    made += plus
    return made


# --- What decoding in batches needs of it


def resize_into(target: NDArray[Any], source: NDArray[Any], method: int, by: Factors) -> None:
    """Fill one picture `[h,w,channels]` with another, resized, times a factor, plus a shift. Releases the GIL."""
    _core.resize(source if _has_whole_rows(source) else np.ascontiguousarray(source), target, method, *by)


def factors(channels: int, scale: float = 1.0, mean: ArrayLike | None = None, std: ArrayLike | None = None) -> Factors:
    """Return a factor and a shift for each channel that compute `(value * scale - mean) / std`."""
    divisor = _of_channels("std", 1.0 if std is None else std, channels)
    if not divisor.all():
        message = "std: expected numbers other than 0, found 0\n  A channel that is the same everywhere has std 1."
        raise SchemaError(message, expected="numbers other than 0", found="0")
    by = _of_channels("scale", scale, channels) / divisor
    plus = -_of_channels("mean", 0.0 if mean is None else mean, channels) / divisor
    return by.astype(np.float32), plus.astype(np.float32)


def number_of(method: str) -> int:
    """Return the core's number of a method."""
    if method not in _METHODS:
        message = f"{method!r} is no method of resizing\n  There are {', '.join(_METHODS)}."
        raise SchemaError(message, expected=" or ".join(_METHODS), found=repr(method))
    return _METHODS[method]


def checked_dtype(dtype: Any) -> np.dtype[Any]:
    """Return the dtype that pixels were asked for in."""
    found: np.dtype[Any] = np.dtype(dtype)
    if found.name not in get_args(PixelType):
        message = f"dtype: expected uint8 or float32, found {found.name}"
        raise SchemaError(message, expected="uint8 or float32", found=found.name)
    return found


def checked_size(size: Any) -> tuple[int, int]:
    """Return the height and width that were asked for."""
    sides = tuple(size) if isinstance(size, tuple | list | np.ndarray) else ()
    if len(sides) != 2 or not all(_is_side(side) for side in sides):
        found = repr(size) if isinstance(size, int | tuple | list) else type(size).__name__
        message = f"size: expected (height, width), each 1 to {_LONGEST_SIDE}, found {found}"
        raise SchemaError(message, expected="(height, width)", found=found)
    return int(sides[0]), int(sides[1])


def _is_side(side: Any) -> bool:
    return is_whole(side) and 1 <= side <= _LONGEST_SIDE


def _of_channels(name: str, values: ArrayLike, channels: int) -> NDArray[np.float64]:
    """Return one finite number for each channel."""
    try:
        numbers = np.broadcast_to(np.asarray(values, np.float64), channels)
    except (TypeError, ValueError):
        numbers = np.full(1, np.nan)
    if not np.isfinite(numbers).all():
        expected = "a number" if name == "scale" else f"a number, or {channels}"
        message = f"{name}: expected {expected}, found {_found(values)}"
        raise SchemaError(message, expected=expected, found=_found(values))
    return numbers


def _found(values: Any) -> str:
    return (
        repr(values)
        if isinstance(values, int | float)
        else f"{type(values).__name__} of shape {list(np.shape(values))}"
    )


def _has_whole_rows(source: NDArray[Any]) -> bool:
    """Whether the pixels of each row are contiguous, from the left or from the right."""
    size, (rows, columns, values) = source.itemsize, source.strides
    row_is_whole = values == size and abs(columns) == size * source.shape[2]
    return row_is_whole and rows % size == 0 and source.flags.aligned


def checked_picture(array: Any) -> NDArray[Any]:
    """Return pixels in this machine's byte order, in two to four dimensions."""
    pixels = np.asarray(array)
    pixels = pixels.astype(pixels.dtype.newbyteorder("="), copy=False)
    shape = ",".join(map(str, pixels.shape))
    found = f"an array of {pixels.dtype.name}, shape [{shape}]"
    if pixels.dtype.name not in get_args(PixelType):
        raise _no_picture(found, "Numbers of other types become float32 by array.astype(np.float32).")
    rows = _rows_axis(pixels)
    if 0 in pixels.shape[rows:] or max(pixels.shape[rows : rows + 2]) > _LONGEST_SIDE:
        raise _no_picture(found, f"A picture has 1 to {_LONGEST_SIDE} pixels a side, and a channel at least.")
    return pixels


def _rows_axis(array: Any) -> int:
    """Return which dimension of a picture, or of a batch, is the height."""
    shape = np.shape(array)
    if not 2 <= len(shape) <= 4:
        found = f"an array of shape [{','.join(map(str, shape))}]"
        raise _no_picture(found, "Channels come last, and pictures of a batch first.")
    return 1 if len(shape) == 4 else 0


def _no_picture(found: str, advice: str) -> SchemaError:
    expected = "uint8 or float32 of shape [h,w], [h,w,channels] or [n,h,w,channels]"
    return SchemaError(f"expected {expected}, found {found}\n  {advice}", expected=expected, found=found)
