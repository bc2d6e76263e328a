"""Encoding: arrays of pixels to JPEG and PNG."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from recordkit.errors import SchemaError

from ._decode import pillow, simplejpeg
from ._headers import SIGNATURES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from ._headers import Kind

# The default quality of a JPEG, in TensorFlow and OpenCV, too.
QUALITY: Final = 95

# The limit of libjpeg; the format itself allows 65535.
_LONGEST_JPEG_SIDE: Final = 65_500

_EXPECTED: Final[dict[Kind, str]] = {
    "jpeg": "uint8 of shape [h,w], [h,w,1] or [h,w,3]",
    "png": "uint8 of shape [h,w] or [h,w,1 to 4], or uint16 of shape [h,w] or [h,w,1]",
}


def encode(
    array: NDArray[Any],
    kind: Kind,
    *,
    quality: int | None = None,
    full_colour: bool = False,
    progressive: bool = False,
    optimize: bool = False,
) -> bytes:
    """Return an array of pixels as a picture.

    A PNG is lossless, except that `[h,w,1]` comes back as `[h,w]`. A JPEG is lossy: colours have half the resolution
    (4:2:0) unless `full_colour` is set, and `quality` decides the rest.

    Args:
        array: For a JPEG, uint8 of shape [h,w], [h,w,1] or [h,w,3] (RGB). For a PNG also [h,w,2] (grey with alpha),
            [h,w,4] (RGBA), and uint16 in grey.
        kind: "jpeg" or "png".
        quality: 1 to 100, of a JPEG only; None for 95.
        full_colour: Whether a JPEG has colours at full resolution (4:4:4), which takes more room.
        progressive: Whether a JPEG can be shown before it has arrived completely.
        optimize: Whether to spend time on a smaller JPEG with the same pixels.

    Raises:
        SchemaError: The picture cannot hold the array.
        MissingExtraError: simplejpeg or Pillow is not installed.

    >>> from recordkit.images import decode
    >>> grey = np.arange(12, dtype=np.uint8).reshape(3, 4)
    >>> decode(encode(grey, "png")).tolist() == grey.tolist()
    True
    >>> encode(grey / 255, "png")
    Traceback (most recent call last):
        ...
    recordkit.errors.SchemaError: expected uint8 of shape [h,w] or ..., found an array of float64, shape [3,4]
      Pixels of 0 to 1 become uint8 by (array * 255).round().astype(np.uint8).
    """
    if kind not in SIGNATURES:
        message = f"{kind!r} is no kind of picture\n  There are jpeg and png."
        raise SchemaError(message, expected="jpeg or png", found=repr(kind))
    if quality is not None:
        quality = checked_quality(quality, kind)
    pixels = _checked_pixels(array, kind)
    if kind == "png":
        return _encode_png(pixels)
    return _encode_jpeg(pixels, quality or QUALITY, full_colour, progressive=progressive, optimize=optimize)


def checked_quality(quality: Any, kind: str) -> int:
    """Return the quality, checked for this kind of picture.

    >>> checked_quality(90, "jpeg")
    90
    >>> checked_quality(0, "jpeg")
    Traceback (most recent call last):
        ...
    recordkit.errors.SchemaError: quality: expected 1 to 100, found 0
    """
    if kind != "jpeg":
        message = f"quality: only a jpeg has one, and this is {kind}"
        hint = "\n  A png keeps every pixel as it is." if kind == "png" else ""
        raise SchemaError(message + hint, expected="jpeg", found=kind)
    if isinstance(quality, bool | np.bool_) or not isinstance(quality, int | np.integer) or not 1 <= quality <= 100:
        found = str(quality) if isinstance(quality, int | float | np.integer) else type(quality).__name__
        message = f"quality: expected 1 to 100, found {found}"
        raise SchemaError(message, expected="1 to 100", found=found)
    return int(quality)


def _encode_jpeg(pixels: NDArray[Any], quality: int, full_colour: bool, **options: bool) -> bytes:
    # simplejpeg always uses the fast transform, which costs up to 4 dB if nothing else is lost.
    full = full_colour or pixels.ndim == 2
    if full or any(options.values()):
        stream = io.BytesIO()
        picture = pillow("encoding a jpeg in grey or full colour, progressive or optimized").fromarray(pixels)
        picture.save(stream, "JPEG", quality=quality, subsampling=0 if full else 2, **options)
        return stream.getvalue()
    data: bytes = simplejpeg("encoding a jpeg").encode_jpeg(pixels, quality, "RGB", "420", fastdct=False)
    return data


def _encode_png(pixels: NDArray[Any]) -> bytes:
    stream = io.BytesIO()
    pillow("encoding a png").fromarray(pixels).save(stream, "PNG")
    return stream.getvalue()


def _checked_pixels(array: Any, kind: Kind) -> NDArray[Any]:
    """Return the pixels, `[h,w]` or `[h,w,channels]`, contiguous and in this machine's byte order."""
    if isinstance(array, np.ma.MaskedArray):
        raise _unfit(kind, "a masked array", "The hidden values would be stored. Fill it first: .filled(...).")
    if not hasattr(array, "__array__"):
        raise _unfit(kind, type(array).__name__, "Give the pixels as a NumPy array.")
    pixels = np.asarray(array)
    found = f"an array of {pixels.dtype.name}, shape [{','.join(map(str, pixels.shape))}]"
    advice = " ".join((*_dtype_advice(pixels, kind), *_shape_advice(pixels, kind)))
    if advice:
        raise _unfit(kind, found, advice)
    pixels = pixels[..., 0] if pixels.shape[2:] == (1,) else pixels
    return np.ascontiguousarray(pixels, pixels.dtype.newbyteorder("="))


def _dtype_advice(pixels: NDArray[Any], kind: Kind) -> Iterator[str]:
    """Yield advice for a dtype that a picture cannot hold."""
    dtype = pixels.dtype
    if dtype.name == "uint16":
        if kind == "jpeg":
            yield "A jpeg holds 8 bits: (array >> 8).astype(np.uint8) keeps the upper ones; a png holds 16 in grey."
        elif pixels.ndim == 3 and pixels.shape[2] != 1:
            yield "A png of 16 bits is written in grey only; (array >> 8).astype(np.uint8) keeps the upper 8."
    elif dtype.kind == "f":
        yield "Pixels of 0 to 1 become uint8 by (array * 255).round().astype(np.uint8)."
    elif dtype.kind == "b":
        yield "A mask becomes uint8 by array.astype(np.uint8) * 255."
    elif dtype.kind in "iu" and dtype.name != "uint8":
        yield "If all pixels are 0 to 255, use array.astype(np.uint8)."
    elif dtype.name != "uint8":
        yield "Pixels are numbers."


def _shape_advice(pixels: NDArray[Any], kind: Kind) -> Iterator[str]:
    """Yield advice for a shape that a picture cannot have."""
    shape, most = pixels.shape, 3 if kind == "jpeg" else 4
    if len(shape) > 3:
        yield "These are several pictures; each is encoded by itself."
    elif len(shape) < 2:
        yield "A picture has a height and a width: use .reshape(height, width, 3)."
    elif 0 in shape:
        yield "A picture has at least one pixel."
    elif len(shape) == 3 and (shape[2] > most or (shape[2] == 2 and kind == "jpeg")):
        if shape[2] == 4:
            yield "A jpeg has no transparency: drop it with array[..., :3], or use png."
        elif shape[2] == 2:
            yield "A jpeg has no transparency: drop it with array[..., 0], or use png."
        elif shape[0] <= 4:
            yield "Channels come last: array.transpose(1, 2, 0)."
        else:
            yield f"A picture has up to {most} channels; for more, store the array itself, such as uint8[?,?,?]."
    elif kind == "jpeg" and max(shape[:2]) > _LONGEST_JPEG_SIDE:
        yield f"A jpeg has up to {_LONGEST_JPEG_SIDE} pixels a side; use png, or cut it into tiles."


def _unfit(kind: Kind, found: str, advice: str) -> SchemaError:
    expected = _EXPECTED[kind]
    return SchemaError(f"expected {expected}, found {found}\n  {advice}", expected=expected, found=found)
