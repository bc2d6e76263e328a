"""Pictures: decoding JPEG and PNG to tensors, and encoding them."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from recordkit import images
from recordkit.errors import CorruptRecordError, InvalidArgumentError, MalformedPayloadError
from recordkit.tf.tensors import (
    Tensor,
    as_dtype,
    convert_to_tensor,
    float32,
    object_array,
    one_string,
    string_tensor,
    uint8,
    uint16,
)

from ._pixels import convert_image_dtype

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from recordkit.tf.tensors import DType, DTypeLike, UnknownDims

# TensorFlow uses the fast DCT by default, and the pixels have to be the same.
_DCT: Final[dict[str, Literal["accurate", "fast"]]] = {
    "": "fast",
    "INTEGER_FAST": "fast",
    "INTEGER_ACCURATE": "accurate",
}
# Their numbers in JFIF.
_UNITS: Final = {"in": 1, "cm": 2}
# How a segment of XMP begins, and the space left in it: a segment has 65535 bytes, two of them its length.
_XMP: Final = b"http://ns.adobe.com/xap/1.0/\0"
_MOST_XMP: Final = 0xFFFF - 2 - len(_XMP)


def decode_jpeg(
    contents: Any,
    channels: int | None = 0,
    ratio: int = 1,
    fancy_upscaling: bool = True,
    try_recover_truncated: bool = False,
    acceptable_fraction: float = 1,
    dct_method: str = "",
    name: str | None = None,
) -> Tensor:
    """Decode a JPEG, or a PNG, to uint8 pixels of shape [height, width, channels].

    Args:
        contents: The bytes.
        channels: 1 or 3 for grey or RGB; 0 for what the picture has.
        ratio: 1, 2, 4 or 8: the divisor of each side while decoding.
        fancy_upscaling: Not used: colours of half the resolution are always smoothed.
        try_recover_truncated: Not used: a damaged picture is an error.
        acceptable_fraction: Not used.
        dct_method: `"INTEGER_ACCURATE"` or `"INTEGER_FAST"`, which is the default, as in TensorFlow.
        name: Not used.

    Raises:
        MalformedPayloadError: It is not a picture, or a damaged one; it is a `tf.errors.InvalidArgumentError`.

    >>> decode_jpeg(encode_jpeg(np.zeros((4, 6, 3), np.uint8))).shape
    TensorShape([4, 6, 3])
    """
    if dct_method not in _DCT:
        message = f"dct_method: expected one of {', '.join(map(repr, _DCT))}, found {dct_method!r}"
        raise InvalidArgumentError(message)
    if ratio not in (1, 2, 4, 8):
        message = f"ratio: expected 1, 2, 4 or 8, found {ratio}"
        raise InvalidArgumentError(message)
    data = one_string("decode_jpeg", contents)
    return Tensor(_decoded(data, channels or 0, dct=_DCT[dct_method], ratio=ratio), _unknown_dims(channels or 0))


def decode_png(contents: Any, channels: int | None = 0, dtype: DTypeLike = uint8, name: str | None = None) -> Tensor:
    """Decode a PNG, or a JPEG, to pixels of shape [height, width, channels].

    Args:
        contents: The bytes.
        channels: 1, 3 or 4 for grey, RGB or RGBA; 0 for what the picture has.
        dtype: uint8 or uint16; colour pictures of 16 bits can only be decoded to uint8.
        name: Not used.
    """
    data, wanted, channels = one_string("decode_png", contents), as_dtype(dtype), channels or 0
    if wanted is uint8:
        return Tensor(_decoded(data, channels), _unknown_dims(channels))
    if wanted is not uint16:
        message = f"decode_png: dtype is uint8 or uint16, found {wanted.name}"
        raise InvalidArgumentError(message)
    return Tensor(_deep(data, channels), _unknown_dims(channels))


def decode_image(
    contents: Any,
    channels: int | None = None,
    dtype: DTypeLike = uint8,
    name: str | None = None,
    expand_animations: bool = True,
) -> Tensor:
    """Decode a JPEG or a PNG to pixels of shape [height, width, channels].

    Args:
        contents: The bytes.
        channels: 1, 3 or 4 for grey, RGB or RGBA; None or 0 for what the picture has.
        dtype: uint8, uint16, float32 from 0 to 1, or any dtype that `convert_image_dtype` converts uint16 to.
        name: Not used.
        expand_animations: Matters only for `ragged_batch`: GIFs are not supported.
    """
    data, wanted = one_string("decode_image", contents), as_dtype(dtype)
    # Where it may be a GIF, TensorFlow does not even know the rank; then it treats no dimension as unknown.
    unknown = () if expand_animations else _unknown_dims(channels or 0)
    is_png = images.kind(data) == "png"
    if wanted is uint8:
        return Tensor(_decoded(data, channels or 0), unknown)
    if wanted is float32:
        deep = _deep(data, channels or 0) if is_png else _decoded(data, channels or 0)
        return Tensor(deep / np.float32(np.iinfo(deep.dtype).max), unknown)
    # For a JPEG, TensorFlow multiplies by 256 here.
    deep = _deep(data, channels or 0) if is_png else _decoded(data, channels or 0).astype(np.uint16) << 8
    return convert_image_dtype(Tensor(deep, unknown), wanted)


def _unknown_dims(channels: int) -> UnknownDims:
    """Return the unknown dimensions of a picture that is decoded to this number of channels."""
    return True, True, not channels


def encode_jpeg(
    image: Any,
    format: str = "",  # noqa: A002 - their name
    quality: int = 95,
    progressive: bool = False,
    optimize_size: bool = False,
    chroma_downsampling: bool = True,
    density_unit: str = "in",
    x_density: int = 300,
    y_density: int = 300,
    xmp_metadata: str = "",
    name: str | None = None,
) -> Tensor:
    """Encode pixels as a JPEG.

    Args:
        image: uint8 of shape [height, width, 1] or [height, width, 3].
        format: `"grayscale"` or `"rgb"`, to check the pixels; by default either.
        quality: 0 to 100.
        progressive: Whether to write a progressive JPEG.
        optimize_size: Whether to spend time on a smaller file with the same pixels.
        chroma_downsampling: Whether colours have half the resolution.
        density_unit: `"in"` or `"cm"`: the unit of the densities, for printing.
        x_density: Pixels per unit, from left to right.
        y_density: Pixels per unit, from top to bottom.
        xmp_metadata: XML to store in the file.
        name: Not used.

    >>> pixels = np.zeros((4, 6, 3), np.uint8)
    >>> decode_jpeg(encode_jpeg(pixels, chroma_downsampling=False)).shape
    TensorShape([4, 6, 3])
    """
    pixels = _given("encode_jpeg", image, uint8)
    channels = {"": (1, 3), "grayscale": (1,), "rgb": (3,)}.get(format)
    if channels is None:
        message = f"format: expected '', 'grayscale' or 'rgb', found {format!r}"
        raise InvalidArgumentError(message)
    if pixels.ndim != 3 or pixels.shape[2] not in channels:
        wanted = " or ".join(map(str, channels))
        message = f"encode_jpeg: expected the shape [height, width, {wanted}], found {list(pixels.shape)}"
        raise InvalidArgumentError(message)
    if not 0 <= int(quality) <= 100:
        message = f"quality must be in [0,100], got {int(quality)}"
        raise InvalidArgumentError(message)
    data = images.encode(
        pixels,
        "jpeg",
        quality=max(1, int(quality)),  # 0 means the same as 1
        full_colour=not chroma_downsampling,
        progressive=bool(progressive),
        optimize=bool(optimize_size),
    )
    return string_tensor(
        _with_header(data, density_unit, (x_density, y_density), one_string("xmp_metadata", xmp_metadata))
    )


def _with_header(data: bytes, unit: str, densities: tuple[int, int], xmp: bytes) -> bytes:
    """Return a JPEG with its density in the 20 bytes of JFIF that it begins with, followed by XMP."""
    if unit not in _UNITS:
        message = f"density_unit: expected 'in' or 'cm', found {unit!r}"
        raise InvalidArgumentError(message)
    if len(xmp) > _MOST_XMP:
        message = f"xmp_metadata: expected {_MOST_XMP} bytes at most, found {len(xmp)}"
        raise InvalidArgumentError(message)
    x, y = (int(density) & 0xFFFF for density in densities)  # truncated as in TensorFlow
    header = data[:13] + struct.pack(">BHH", _UNITS[unit], x, y) + data[18:20]
    if xmp:
        header += struct.pack(">BBH", 0xFF, 0xE1, 2 + len(_XMP) + len(xmp)) + _XMP + xmp
    return header + data[20:]


def encode_png(image: Any, compression: int = -1, name: str | None = None) -> Tensor:
    """Encode pixels as a PNG; several pictures as a tensor of strings.

    Args:
        image: uint8 of shape [height, width, channels] with 1 to 4 channels, or grey uint16; or more leading
            dimensions.
        compression: Not used.
        name: Not used.

    >>> decode_png(encode_png([[[7]]])).numpy().tolist()
    [[[7]]]
    """
    pixels = _given("encode_png", image, uint8, uint16)
    if pixels.ndim < 3:
        message = f"encode_png: expected the shape [height, width, channels], found {list(pixels.shape)}"
        raise InvalidArgumentError(message)
    if pixels.ndim == 3:
        return string_tensor(images.encode(pixels, "png"))
    pictures = [images.encode(each, "png") for each in pixels.reshape((-1, *pixels.shape[-3:]))]
    return Tensor(object_array(pictures).reshape(pixels.shape[:-3]))


def _given(what: str, image: Any, *dtypes: DType) -> NDArray[Any]:
    """Return pixels, which must have one of these dtypes; Python numbers get the first of them."""
    tensor = convert_to_tensor(image, None if hasattr(image, "dtype") else dtypes[0])
    if tensor.dtype not in dtypes:
        names = " or ".join(dtype.name for dtype in dtypes)
        message = f"{what}: expected {names}, found {tensor.dtype.name}\n  Use tf.image.convert_image_dtype."
        raise InvalidArgumentError(message)
    return np.asarray(tensor)


def _decoded(data: bytes, channels: int, *, dct: Literal["accurate", "fast"] = "fast", ratio: int = 1) -> Any:
    """Return the pixels of a picture as uint8; a damaged one raises the kind of error that TensorFlow raises."""
    if channels not in (0, 1, 3, 4):
        message = f"channels: expected 0, 1, 3 or 4, found {channels}"
        raise InvalidArgumentError(message)
    if channels == 4 and images.kind(data) == "jpeg":
        message = "channels: a JPEG does not have 4\n  Use 0, 1 or 3."
        raise InvalidArgumentError(message)
    try:
        if ratio > 1 and images.kind(data) == "jpeg":
            return images.decode_reduced(data, ratio, channels or None, dct=dct)
        return images.decode_batch([data], channels=channels or None, dct=dct)[0]
    except CorruptRecordError as error:
        raise _malformed(error) from None


def _deep(data: bytes, channels: int) -> Any:
    """Return the pixels of a picture as uint16."""
    try:
        pixels = images.decode(data)
    except CorruptRecordError as error:
        raise _malformed(error) from None
    if pixels.dtype != np.uint16:
        return _decoded(data, channels).astype(np.uint16) * np.uint16(257)  # 255 becomes 65535
    deep = np.repeat(pixels[..., None], channels or 1, axis=-1)
    deep[..., 3:] = np.iinfo(np.uint16).max
    return deep


def _malformed(error: CorruptRecordError) -> MalformedPayloadError:
    return MalformedPayloadError(error.summary, advice=error.advice)
