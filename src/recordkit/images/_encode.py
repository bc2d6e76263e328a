"""Pictures: encoded bytes to arrays and back.

Arrays are `[height, width]` for grey, `[height, width, channels]` otherwise. Which picture a field holds, and how it is
stored, is the schema's business; here are only JPEG and PNG themselves. Headers are read without any library;
encoding and decoding need those of `recordkit[images]`, and import them then (docs/decisions/0005-image-libraries.md).
"""

from __future__ import annotations

import io
import struct
import zlib
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np

from recordkit.errors import CorruptRecordError, MissingExtraError, SchemaError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray
    from typing_extensions import Buffer

__all__ = ["QUALITY", "SIGNATURES", "Kind", "decode", "encode", "kind", "size"]

Kind: TypeAlias = Literal["jpeg", "png"]

# What every picture of a kind begins with.
SIGNATURES: Final[dict[str, bytes]] = {"jpeg": b"\xff\xd8\xff", "png": b"\x89PNG\r\n\x1a\n"}

# The quality of a JPEG unless another is asked for: TensorFlow's and OpenCV's default too.
QUALITY: Final = 95

# libjpeg goes no further, although the format could say 65535.
_LONGEST_JPEG_SIDE: Final = 65_500
# Deflate makes at most 1032 bytes of one. A Huffman-coded JPEG spends a bit or more on each block of a component, and
# one component at least has a block for every 256 pixels. So no header can ask for memory that its bytes do not earn.
_MOST_PNG_BYTES: Final = 1032
_MOST_JPEG_PIXELS: Final = 256 * 8

_EXPECTED: Final[dict[Kind, str]] = {
    "jpeg": "uint8 of shape [h,w], [h,w,1] or [h,w,3]",
    "png": "uint8 of shape [h,w] or [h,w,1 to 4], or uint16 of shape [h,w] or [h,w,1]",
}
_PNG_DEPTHS: Final = {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}
_PNG_CHANNELS: Final = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
_PALETTE: Final = 3


def kind(data: Buffer) -> Kind | None:
    r"""Return what a picture is, told by how it begins; None if it is neither.

    >>> kind(b"\x89PNG\r\n\x1a\n..."), kind(b"GIF89a")
    ('png', None)
    """
    start = bytes(memoryview(data)[:8]) if isinstance(data, bytes | bytearray) else _bytes(data)
    if start.startswith(SIGNATURES["jpeg"]):
        return "jpeg"
    return "png" if start.startswith(SIGNATURES["png"]) else None


def size(data: Buffer) -> tuple[int, int, int]:
    """Return the height, width and channels that a picture's header tells: those `decode` gives, 1 for grey.

    Raises:
        CorruptRecordError: It is no picture, or ends inside its header.

    >>> size(encode(np.zeros((4, 6, 3), np.uint8), "png"))
    (4, 6, 3)
    """
    header = _header(_bytes(data))
    return header.height, header.width, header.channels


def encode(array: NDArray[Any], kind: Kind, *, quality: int | None = None) -> bytes:
    """Return an array of pixels as a picture.

    A PNG holds exactly the array, except that `[h,w,1]` comes back as `[h,w]`. A JPEG holds nearly it: with colours at
    half the resolution (4:2:0), and the rest by `quality`.

    Args:
        array: For a JPEG, uint8 of shape [h,w], [h,w,1] or [h,w,3] (RGB). For a PNG also [h,w,2] (grey with alpha),
            [h,w,4] (RGBA), and uint16 in grey.
        kind: "jpeg" or "png".
        quality: 1 to 100, of a JPEG only; None for 95.

    Raises:
        SchemaError: The array is none that the picture can hold.
        MissingExtraError: simplejpeg or Pillow is not installed.

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
    return _encode_jpeg(pixels, quality or QUALITY) if kind == "jpeg" else _encode_png(pixels)


def decode(data: Buffer) -> NDArray[Any]:
    """Return a picture's pixels: uint8, or uint16 for a grey PNG of 16 bits; `[h,w]` for grey, else `[h,w,channels]`.

    Palettes become RGB, or RGBA if they have transparent colours; fewer bits than 8 become 8; CMYK becomes RGB. What a
    camera noted of its orientation is not applied. Damage is an error, even where part of the picture could be shown;
    but a JPEG has no checksum, so not all damage can be told.

    Raises:
        CorruptRecordError: It is no picture, or a damaged one.
        SchemaError: It is a picture whose pixels would lose bits: 16 bits in colour, or a JPEG of 12.
        MissingExtraError: simplejpeg or Pillow is not installed.

    >>> picture = encode(np.full((8, 8, 3), 200, np.uint8), "jpeg")
    >>> decode(picture).shape, decode(picture)[0, 0].tolist()
    ((8, 8, 3), [200, 200, 200])
    >>> decode(picture[:-20])
    Traceback (most recent call last):
        ...
    recordkit.errors.CorruptRecordError: ... bytes of a jpeg that cannot be decoded: Premature end of JPEG file
    """
    picture = _bytes(data)
    header = _header(picture)
    pixels = _decode_jpeg(picture, header) if header.kind == "jpeg" else _decode_png(picture, header)
    expected = (header.height, header.width, header.channels)
    if pixels.shape != (expected[:2] if header.channels == 1 else expected):
        raise _corrupt(picture, f"its header says {list(expected)}, its pixels are {list(pixels.shape)}")
    return pixels


def checked_quality(quality: Any, kind: str) -> int:
    """Return a quality that a picture of this kind can have.

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


# --- Arrays


def _checked_pixels(array: Any, kind: Kind) -> NDArray[Any]:
    """Return the pixels, `[h,w]` or `[h,w,channels]`, contiguous and in this machine's byte order."""
    if isinstance(array, np.ma.MaskedArray):
        raise _unfit(kind, "a masked array", "What the mask hides would be stored. Fill it first: .filled(...).")
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
    """Yield what to do about a dtype that a picture cannot hold."""
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
    """Yield what to do about a shape that a picture cannot have."""
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


# --- Headers


class _Header(NamedTuple):
    """What a picture says of itself; `channels` is how many its pixels have once they are decoded."""

    kind: Kind
    height: int
    width: int
    channels: int
    bits: int
    components: int


def _header(picture: bytes) -> _Header:
    found = kind(picture)
    if found is None:
        raise _corrupt(picture, "")
    return _jpeg_header(picture) if found == "jpeg" else _png_header(picture)


def _jpeg_header(picture: bytes) -> _Header:
    """Return what the frame header (SOF) says, found by stepping from marker to marker."""
    place = 2
    while 0 <= (place := picture.find(b"\xff", place)) < len(picture) - 1:
        marker = picture[place + 1]
        if marker == 0xFF:  # fill bytes may stand before a marker
            place += 1
            continue
        place += 2
        if marker in (0xD9, 0xDA):  # the end, or pixels, before any header
            break
        if marker <= 0x01 or 0xD0 <= marker <= 0xD8:  # these have no length
            continue
        length = int.from_bytes(picture[place : place + 2], "big")
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            return _frame_header(picture, place, length)
        place += max(length, 2)
    raise _corrupt(picture, "it has no frame header")


def _frame_header(picture: bytes, place: int, length: int) -> _Header:
    if length < 8 or len(picture) < place + length:
        raise _corrupt(picture, "it ends inside its frame header")
    bits, height, width, components = struct.unpack_from(">BHHB", picture, place + 2)
    if length != 8 + 3 * components or components not in (1, 3, 4) or not height or not width:
        raise _corrupt(picture, f"its header says {height} x {width} pixels of {components} components")
    return _Header("jpeg", height, width, min(components, 3), bits, components)


def _png_header(picture: bytes) -> _Header:
    """Return what IHDR says; a palette has a fourth channel if some of its colours are transparent."""
    chunks = _png_chunks(picture)
    name, start, length = next(chunks)
    if name != b"IHDR" or length != 13:
        raise _corrupt(picture, "it does not begin with a header")
    width, height, bits, colour, *methods = struct.unpack_from(">IIBBBBB", picture, start)
    if (
        bits not in _PNG_DEPTHS.get(colour, ())
        or not 0 < width < 2**31
        or not 0 < height < 2**31
        or methods[:2] != [0, 0]
    ):
        raise _corrupt(picture, f"its header says {height} x {width} pixels of {bits} bits, colour type {colour}")
    channels = _PNG_CHANNELS[colour]
    if colour == _PALETTE:
        channels = 4 if _has_transparency(chunks) else 3
    return _Header("png", height, width, channels, bits, _PNG_CHANNELS[colour])


def _has_transparency(chunks: Iterator[tuple[bytes, int, int]]) -> bool:
    for name, _, _ in chunks:
        if name in (b"tRNS", b"IDAT"):
            return name == b"tRNS"
    return False


def _png_chunks(picture: bytes) -> Iterator[tuple[bytes, int, int]]:
    """Yield the name, place and length of each chunk, up to the end; each is checked against its checksum."""
    place = len(SIGNATURES["png"])
    while True:
        if place + 12 > len(picture):
            raise _corrupt(picture, f"it ends inside the chunk at byte {place}")
        length = int.from_bytes(picture[place : place + 4], "big")
        name, end = picture[place + 4 : place + 8], place + 8 + length
        if end + 4 > len(picture):
            raise _corrupt(picture, f"it ends inside the chunk at byte {place}")
        if zlib.crc32(memoryview(picture)[place + 4 : end]) != int.from_bytes(picture[end : end + 4], "big"):
            raise _corrupt(picture, f"the checksum of the chunk at byte {place} does not match")
        yield name, place + 8, length
        if name == b"IEND":
            return
        place = end + 4


# --- Libraries


def _encode_jpeg(pixels: NDArray[Any], quality: int) -> bytes:
    simplejpeg = _simplejpeg("encoding a jpeg")
    colours, sampling = ("RGB", "420") if pixels.ndim == 3 else ("GRAY", "GRAY")
    image = pixels if pixels.ndim == 3 else pixels[..., None]
    data: bytes = simplejpeg.encode_jpeg(image, quality, colours, sampling, fastdct=False)
    return data


def _decode_jpeg(picture: bytes, header: _Header) -> NDArray[Any]:
    if header.bits != 8:
        raise _too_deep(header)
    if header.height * header.width > _MOST_JPEG_PIXELS * len(picture):
        raise _too_large(picture, header)
    if header.components == 4:
        return _decode_cmyk(picture)
    simplejpeg = _simplejpeg("decoding a jpeg")
    try:
        pixels: NDArray[Any] = simplejpeg.decode_jpeg(picture, "RGB" if header.channels == 3 else "GRAY")
    except ValueError as error:
        raise _corrupt(picture, str(error)) from None
    return pixels if header.channels == 3 else pixels[..., 0]


def _decode_cmyk(picture: bytes) -> NDArray[Any]:
    """Return a JPEG made for print as RGB, which libjpeg does not make of it."""
    _pillow("decoding a jpeg in CMYK")
    from PIL.JpegImagePlugin import JpegImageFile

    return _pillow_pixels(picture, JpegImageFile, "RGB")


def _encode_png(pixels: NDArray[Any]) -> bytes:
    image = _pillow("encoding a png")
    stream = io.BytesIO()
    image.fromarray(pixels).save(stream, "PNG")
    return stream.getvalue()


def _decode_png(picture: bytes, header: _Header) -> NDArray[Any]:
    if header.bits == 16 and header.channels > 1:
        raise _too_deep(header)
    if header.height * header.width * header.components * header.bits > 8 * _MOST_PNG_BYTES * len(picture):
        raise _too_large(picture, header)
    for _ in _png_chunks(picture):  # all of them: Pillow does not look at the checksums of pixels
        pass
    _pillow("decoding a png")
    from PIL.PngImagePlugin import PngImageFile

    mode = "I;16" if header.bits == 16 else ("L", "LA", "RGB", "RGBA")[header.channels - 1]
    return _pillow_pixels(picture, PngImageFile, mode)


def _pillow_pixels(picture: bytes, opener: Any, mode: str) -> NDArray[Any]:
    """Return what Pillow decodes; its opener is called by itself, since Image.open refuses pictures for being large."""
    try:
        with opener(io.BytesIO(picture)) as image:
            image.load()
            pixels = np.array(image if image.mode == mode else image.convert(mode))
    except MemoryError:
        raise
    except Exception as error:  # Pillow answers hostile bytes with a dozen kinds of exception, SyntaxError among them
        raise _corrupt(picture, str(error) or type(error).__name__) from None
    return pixels.astype(pixels.dtype.newbyteorder("="), copy=False)


def _simplejpeg(what: str) -> Any:
    try:
        import simplejpeg
    except ImportError as error:
        raise MissingExtraError(what, "simplejpeg", "images") from error
    return simplejpeg


def _pillow(what: str) -> Any:
    try:
        from PIL import Image
    except ImportError as error:
        raise MissingExtraError(what, "Pillow", "images") from error
    return Image


# --- Words


def _bytes(data: Buffer) -> bytes:
    return data if isinstance(data, bytes) else bytes(memoryview(data))


def _corrupt(picture: bytes, why: str) -> CorruptRecordError:
    count = f"{len(picture)} byte{'' if len(picture) == 1 else 's'}"
    what = kind(picture)
    message = f"{count} of a {what} that cannot be decoded: {why}" if what else f"{count} that are no jpeg and no png"
    return CorruptRecordError(message, kind="bad_picture")


def _too_large(picture: bytes, header: _Header) -> CorruptRecordError:
    return _corrupt(picture, f"its header says {header.height} x {header.width} pixels, more than so few bytes hold")


def _too_deep(header: _Header) -> SchemaError:
    expected = "a picture of 8 bits, or of 16 in grey"
    found = f"a {header.kind} of {header.bits} bits in {header.channels} channels"
    message = f"expected {expected}, found {found}\n  Save it with 8 bits to decode it."
    return SchemaError(message, expected=expected, found=found)
