"""Decoding: the bytes of a picture to an array of its pixels."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import numpy as np

from recordkit.errors import MissingExtraError

from ._headers import as_picture, corrupt, header_of, png_chunks, too_deep, too_large

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray
    from typing_extensions import Buffer

    from ._headers import Header, Picture


def simplejpeg(what: str) -> Any:
    """Return the module; raise if it is not installed, since `what` needs it."""
    try:
        import simplejpeg
    except ImportError as error:
        raise MissingExtraError(what, "simplejpeg", "images") from error
    return simplejpeg


def pillow(what: str) -> Any:
    """Return its module Image; raise if it is not installed, since `what` needs it."""
    try:
        from PIL import Image
    except ImportError as error:
        raise MissingExtraError(what, "Pillow", "images") from error
    return Image


Dct: TypeAlias = Literal["accurate", "fast"]

# Deflate makes at most 1032 bytes of one. A Huffman-coded JPEG spends a bit or more on each block of a component, and
# one component at least has a block for every 256 pixels. So no header can ask for memory that its bytes do not earn.
_MOST_PNG_BYTES: Final = 1032
_MOST_JPEG_PIXELS: Final = 256 * 8

# By the number of channels, as Pillow and simplejpeg call them.
_MODES: Final = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}
_COLOURS: Final = {1: "GRAY", 3: "RGB", 4: "RGBA"}


def decode(data: Buffer) -> NDArray[Any]:
    """Return a picture's pixels: uint8, or uint16 for a grey PNG of 16 bits; `[h,w]` for grey, else `[h,w,channels]`.

    Palettes become RGB, or RGBA if they have transparent colours; fewer bits than 8 become 8; CMYK becomes RGB. The
    orientation in EXIF data is not applied. Damage is an error, even if part of the picture could be shown; but a JPEG
    has no checksum, so not all damage is detected.

    Raises:
        CorruptRecordError: It is damaged or not a picture.
        SchemaError: Its pixels would lose bits: 16 bits in colour, or a 12-bit JPEG.
        MissingExtraError: simplejpeg or Pillow is not installed.

    >>> from recordkit.images import encode
    >>> picture = encode(np.full((8, 8, 3), 200, np.uint8), "jpeg")
    >>> decode(picture).shape, decode(picture)[0, 0].tolist()
    ((8, 8, 3), [200, 200, 200])
    >>> decode(picture[:-20])
    Traceback (most recent call last):
        ...
    recordkit.errors.CorruptRecordError: ... bytes of a jpeg that cannot be decoded: Premature end of JPEG file
    """
    picture = as_picture(data)
    header = header_of(picture)
    if header.kind == "jpeg":
        pixels = jpeg_pixels(picture, header)
    elif header.bits == 16 and header.channels > 1:
        raise too_deep(header)
    else:
        pixels = png_pixels(picture, header)
    return pixels[..., 0] if header.channels == 1 else pixels


def jpeg_pixels(
    picture: Picture,
    header: Header,
    channels: int | None = None,
    *,
    dct: Dct = "accurate",
    divisor: int = 1,
    room: Callable[[int], NDArray[np.uint8]] | None = None,
) -> NDArray[np.uint8]:
    """Return the pixels `[h,w,channels]` of a JPEG.

    Args:
        picture: The JPEG.
        header: Its header.
        channels: 1, 3 or 4 for grey, RGB or RGBA; None for what it has.
        dct: "accurate" is within a grey level of the standard; "fast" is a little faster.
        divisor: 1, 2, 4 or 8: each side is divided by it while decoding, rounded up. Not for CMYK.
        room: Returns memory for at least this many bytes, to use instead of new memory.
    """
    if header.bits != 8:
        raise too_deep(header)
    if header.height * header.width > _MOST_JPEG_PIXELS * len(picture):
        raise too_large(picture, header)
    channels = channels or header.channels
    if header.components == 4:
        return _checked(picture, _cmyk_pixels(picture, channels), header.height, header.width, channels)
    height, width = -(-header.height // divisor), -(-header.width // divisor)
    library = simplejpeg("decoding a jpeg")
    try:
        pixels = library.decode_jpeg(
            picture,
            _COLOURS[channels],
            fastdct=dct == "fast",
            min_height=height if divisor > 1 else 0,
            min_width=width if divisor > 1 else 0,
            buffer=room(height * width * channels) if room else None,
        )
    except ValueError as error:
        raise corrupt(picture, str(error)) from None
    return _checked(picture, pixels, height, width, channels)


def png_pixels(picture: Picture, header: Header, channels: int | None = None) -> NDArray[Any]:
    """Return the pixels `[h,w,channels]` of a PNG: uint16 if it is 16-bit grey and `channels` is None.

    Args:
        picture: The PNG.
        header: Its header.
        channels: 1, 3 or 4 for 8-bit grey, RGB or RGBA; None for what it has. Alpha is dropped, or added as opaque; it
            is not applied. Of 16 bits the upper 8 are used.
    """
    if header.height * header.width * header.components * header.bits > 8 * _MOST_PNG_BYTES * len(picture):
        raise too_large(picture, header)
    for _ in png_chunks(picture):  # all of them: Pillow does not look at the checksums of pixels
        pass
    pillow("decoding a png")
    from PIL.PngImagePlugin import PngImageFile

    is_deep_grey = header.bits == 16 and header.channels == 1  # the only mode in which Pillow keeps 16 bits
    mode = "I;16" if is_deep_grey else _MODES[channels or header.channels]
    pixels = _pillow_pixels(picture, PngImageFile, mode)
    if is_deep_grey and channels:
        pixels = _repeated((pixels >> 8).astype(np.uint8), channels)
    return _checked(picture, pixels, header.height, header.width, channels or header.channels)


def _cmyk_pixels(picture: Picture, channels: int) -> NDArray[np.uint8]:
    """Return a CMYK JPEG in other colours; libjpeg cannot convert it."""
    pillow("decoding a jpeg in CMYK")
    from PIL.JpegImagePlugin import JpegImageFile

    return _pillow_pixels(picture, JpegImageFile, _MODES[channels])


def _pillow_pixels(picture: Picture, opener: Any, mode: str) -> NDArray[Any]:
    """Decode with Pillow, without Image.open, which refuses large pictures."""
    try:
        with opener(io.BytesIO(picture)) as image:
            image.load()
            pixels = np.array(image if image.mode == mode else image.convert(mode))
    except MemoryError:
        raise
    except Exception as error:  # hostile bytes make Pillow raise a dozen kinds of exception, even SyntaxError
        raise corrupt(picture, str(error) or type(error).__name__) from None
    pixels = pixels.astype(pixels.dtype.newbyteorder("="), copy=False)
    return pixels[..., None] if pixels.ndim == 2 else pixels


def _repeated(grey: NDArray[np.uint8], channels: int) -> NDArray[np.uint8]:
    """Return a grey picture in this many channels; the fourth is opaque."""
    pixels = np.repeat(grey, channels, axis=-1)
    pixels[..., 3:] = 255
    return pixels


def _checked(picture: Picture, pixels: NDArray[Any], *expected: int) -> NDArray[Any]:
    if pixels.shape != expected:
        raise corrupt(picture, f"its header says {list(expected)}, its pixels are {list(pixels.shape)}")
    return pixels
