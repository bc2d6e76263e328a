"""Decoding in batches: many pictures into one array."""

from __future__ import annotations

import math
from collections import deque
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, TypeAlias, get_args

import numpy as np

from recordkit import _core
from recordkit.errors import CorruptRecordError, SchemaError

from ._arrays import checked_dtype, checked_size, factors, normalise, number_of, resize_into
from ._decode import Dct, jpeg_pixels, png_pixels
from ._headers import as_picture, header_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray
    from typing_extensions import Buffer

    from ._arrays import Factors, Method, PixelType
    from ._headers import Header, Picture

_LEAST_KEPT, _MOST_KEPT = 1 << 20, 64 << 20  # bytes of a batch whose memory is used again

_CHANNELS: Final = (1, 3, 4, None)
_Refusal: TypeAlias = CorruptRecordError | SchemaError


class _Wish(NamedTuple):
    """The options that apply to every picture."""

    size: tuple[int, int] | None
    channels: int | None
    dct: Dct
    scaled: bool


def decode_batch(
    pictures: Sequence[Buffer],
    size: Sequence[int] | None = None,
    *,
    channels: int | None = 3,
    dtype: PixelType = "uint8",
    method: Method = "bilinear",
    scaled: bool = False,
    scale: float = 1.0,
    mean: ArrayLike | None = None,
    std: ArrayLike | None = None,
    dct: Dct = "accurate",
    out: NDArray[Any] | None = None,
) -> NDArray[Any] | list[NDArray[Any]]:
    """Return the pixels of many pictures: one array `[n,h,w,channels]` if a size is given, else a list of arrays.

    Runs in the calling thread, and releases the GIL to decode and resize.

    Args:
        pictures: JPEGs and PNGs in any mixture.
        size: The height and width to resize each to, as `resize` does.
        channels: 1, 3 or 4 for grey, RGB or RGBA. Alpha is dropped, or added as opaque; it is not applied. None keeps
            the channels of the picture, which must then be the same for all of one array.
        dtype: "uint8", or "float32" with `(value * scale - mean) / std`. Of a 16-bit PNG the upper 8 bits are used.
        method: "bilinear", "area" or "nearest".
        scaled: Whether a JPEG may be decoded straight to a smaller `size`: faster, with nearly the same pixels. Rarer
            kinds, such as progressive ones, are decoded at a half, a quarter or an eighth if that is large enough.
        scale: The factor for values of 0 to 255; 1 / 255 gives 0 to 1.
        mean: One number, or one for each channel.
        std: One number, or one for each channel.
        dct: "accurate" is within a grey level of what TensorFlow calls INTEGER_ACCURATE; "fast" is hardly faster.
        out: An array `[n,h,w,channels]` to fill and return instead of a new one.

    Raises:
        CorruptRecordError: One is damaged or not a picture; `record` is its position in the batch.
        SchemaError: One cannot be decoded as asked, or the options contradict each other.
        MissingExtraError: simplejpeg or Pillow is not installed.

    >>> from recordkit.images import encode
    >>> jpeg, png = (encode(np.full((30, 40, 3), 255, np.uint8), kind) for kind in ("jpeg", "png"))
    >>> batch = decode_batch([jpeg, png], (22, 22), dtype="float32", scale=1 / 255)
    >>> batch.shape, batch[:, 0, 0, 0].tolist()
    ((2, 22, 22, 3), [1.0, 1.0])
    >>> [pixels.shape for pixels in decode_batch([jpeg, png], channels=1)]
    [(30, 40, 1), (30, 40, 1)]
    >>> decode_batch([jpeg, png[:-20]])
    Traceback (most recent call last):
        ...
    recordkit.errors.CorruptRecordError: picture 1: 97 bytes of a png that cannot be decoded: ...
    """
    wish = _checked_wish(size, channels, dct, scaled)
    wanted, number = checked_dtype(dtype), number_of(method)
    if wanted == np.uint8 and (scale != 1 or mean is not None or std is not None):
        message = 'scale, mean and std: only for float32, and uint8 is asked for\n  Add dtype="float32".'
        raise SchemaError(message, expected="float32", found="uint8")
    if wish.size is None:
        if out is not None:
            message = "out: only with a size, which makes one array of all"
            raise SchemaError(message)
        made = [_pixels(place, picture, wish) for place, picture in enumerate(pictures)]
        return made if wanted == np.uint8 else [normalise(each, scale=scale, mean=mean, std=std) for each in made]
    shape = (len(pictures), *wish.size, channels or _channels_of(pictures))
    by = factors(shape[-1], scale, mean, std)
    batch = _new_array(shape, wanted) if out is None else _checked_out(out, shape, wanted)
    scratch = _Scratch()
    to_size = _core.JpegDecoder() if wish.scaled else None
    for place, picture in enumerate(pictures):
        if to_size is not None and _is_decoded(picture, batch[place], wish, number, by, to_size):
            continue
        pixels = _pixels(place, picture, wish, scratch)
        if pixels.shape[-1] != shape[-1]:
            raise _other_channels(place, shape[-1], pixels.shape[-1])
        resize_into(batch[place], pixels, number, by)
    return batch


def decode_reduced(data: Buffer, divisor: int, channels: int | None = None, *, dct: Dct = "accurate") -> NDArray[Any]:
    """Return the pixels of a JPEG `[h,w,channels]`, with each side divided while it is decoded, and rounded up.

    Args:
        data: The JPEG.
        divisor: 1, 2, 4 or 8.
        channels: 1, 3 or 4 for grey, RGB or RGBA; None for what the picture has.
        dct: As for `decode_batch`.

    Raises:
        CorruptRecordError: It is not a picture, or a damaged one.

    >>> from recordkit.images import encode
    >>> decode_reduced(encode(np.zeros((9, 16, 3), np.uint8), "jpeg"), 4).shape
    (3, 4, 3)
    """
    picture = as_picture(data)
    header = header_of(picture)
    if header.components != 4:
        return jpeg_pixels(picture, header, channels, dct=dct, divisor=divisor)
    # libjpeg does not convert CMYK, so such a picture is resized once it is decoded.
    size = [-(-side // divisor) for side in (header.height, header.width)]
    return decode_batch([picture], size, channels=channels)[0]


class _BatchMemory:
    """The memory of one batch. When the last array that uses it is gone, the next batch may take it.

    Fresh pages cost up to a tenth of the time that decoding and resizing take.
    """

    # At most four free blocks. Adding and taking are atomic, for `__del__` may run in any thread at any time.
    _free: ClassVar[deque[NDArray[np.uint8]]] = deque(maxlen=4)

    def __init__(self, block: NDArray[np.uint8]) -> None:
        self._block = block
        self.__array_interface__ = block.__array_interface__

    @classmethod
    def of(cls, size: int) -> _BatchMemory:
        """Return memory of this many bytes, that of an earlier batch if possible."""
        for _ in range(len(cls._free)):
            try:
                block = cls._free.pop()
            except IndexError:  # another thread was faster
                break
            if len(block) == size:
                return cls(block)
            cls._free.appendleft(block)
        return cls(np.empty(size, np.uint8))

    def __del__(self) -> None:
        self._free.append(self._block)


def _new_array(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return a writable array with arbitrary contents."""
    size = math.prod(shape) * dtype.itemsize
    if not _LEAST_KEPT <= size <= _MOST_KEPT:
        return np.empty(shape, dtype)
    return np.asarray(_BatchMemory.of(size)).view(dtype).reshape(shape)


class _Scratch:
    """Memory for the pixels of one picture, reused for the next."""

    def __init__(self) -> None:
        self._memory = np.empty(0, np.uint8)

    def room_for(self, size: int) -> NDArray[np.uint8]:
        if len(self._memory) < size:
            self._memory = np.empty(size, np.uint8)
        return self._memory


def _is_decoded(
    picture: Any, target: NDArray[Any], wish: _Wish, method: int, by: Factors, decoder: _core.JpegDecoder
) -> bool:
    """Decode a picture straight to its place in the batch, and return whether that worked.

    If not, `_pixels` decodes it or says why it cannot.
    """
    try:
        data = _checked_picture(picture)
        channels = wish.channels or header_of(data).channels
        return channels == target.shape[-1] and decoder.decode(data, target, method, *by)
    except (CorruptRecordError, SchemaError):
        return False


def _pixels(place: int, picture: Any, wish: _Wish, scratch: _Scratch | None = None) -> NDArray[np.uint8]:
    """Return the pixels `[h,w,channels]` of one of many pictures; errors name it."""
    try:
        data = _checked_picture(picture)
        header = header_of(data)
        channels = wish.channels or header.channels
        if header.kind == "png":
            return png_pixels(data, header, channels)
        room = None if scratch is None else scratch.room_for
        return jpeg_pixels(data, header, channels, dct=wish.dct, divisor=_divisor(header, wish), room=room)
    except (CorruptRecordError, SchemaError) as error:
        raise _named(error, place) from None


def _divisor(header: Header, wish: _Wish) -> int:
    """Return by how much libjpeg should divide the sides of a JPEG that only libjpeg can decode.

    It also supports 3/8, 5/8 and so on, but has fast code for halves only.
    """
    if wish.size is None or not wish.scaled or header.components == 4:
        return 1
    height, width = wish.size
    fitting = (by for by in (8, 4, 2) if -(-header.height // by) >= height and -(-header.width // by) >= width)
    return next(fitting, 1)


def _channels_of(pictures: Sequence[Buffer]) -> int:
    """Return the channels of the first picture, which all others must have, too."""
    if not len(pictures):
        return 3
    try:
        return header_of(_checked_picture(pictures[0])).channels
    except (CorruptRecordError, SchemaError) as error:
        raise _named(error, 0) from None


# --- What is asked for


def _checked_wish(size: Any, channels: Any, dct: Any, scaled: bool) -> _Wish:
    if channels not in _CHANNELS:
        message = f"channels: expected 1, 3, 4 or None, found {channels!r}"
        raise SchemaError(message, expected="1, 3, 4 or None", found=repr(channels))
    if dct not in get_args(Dct):
        message = f"dct: expected 'accurate' or 'fast', found {dct!r}"
        raise SchemaError(message, expected="'accurate' or 'fast'", found=repr(dct))
    if scaled and size is None:
        message = "scaled: only with a size, which says how small a picture may be decoded"
        raise SchemaError(message)
    return _Wish(None if size is None else checked_size(size), channels, dct, scaled)


def _checked_picture(picture: Any) -> Picture:
    try:
        return as_picture(picture)
    except TypeError:
        found = type(picture).__name__
        message = f"expected the bytes of a picture, found {found}"
        raise SchemaError(message, expected="bytes", found=found) from None


def _checked_out(out: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return the array to fill, after a check that it can be filled in place."""
    array = out if isinstance(out, np.ndarray) else None
    if array is None or array.shape != shape or array.dtype != dtype or not array.flags.carray:
        expected = f"a writable, contiguous array of {dtype.name}, shape {list(shape)}"
        found = type(out).__name__ if array is None else f"one of {array.dtype.name}, shape {list(array.shape)}"
        message = f"out: expected {expected}, found {found}"
        raise SchemaError(message, expected=expected, found=found)
    return array


def _other_channels(place: int, expected: int, found: int) -> _Refusal:
    message = f"expected {expected} channels as picture 0 has, found {found}\n  Choose one: channels=3."
    return _named(SchemaError(message, expected=f"{expected} channels", found=f"{found} channels"), place)


def _named(error: _Refusal, place: int) -> _Refusal:
    """Return the error with the position of the picture in the batch."""
    return error.but(place=f"picture {place}", record=place)
