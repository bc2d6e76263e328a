"""Pixels: resizing, cropping, flipping and scaling pictures that are tensors already."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from recordkit import images as _images
from recordkit.errors import InvalidArgumentError
from recordkit.tf.tensors import Tensor, as_dtype, as_unknown_dims, convert_to_tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from recordkit.tf.tensors import DType, DTypeLike, UnknownDims


class ResizeMethod:
    """The methods of `resize`."""

    BILINEAR = "bilinear"
    NEAREST_NEIGHBOR = "nearest"
    BICUBIC = "bicubic"
    AREA = "area"
    LANCZOS3 = "lanczos3"
    LANCZOS5 = "lanczos5"
    GAUSSIAN = "gaussian"
    MITCHELLCUBIC = "mitchellcubic"


# The kernels that weight the pixels around each new one, without and with antialiasing; None where the core resizes.
_KERNELS: Final[dict[str, tuple[_images.Kernel | None, _images.Kernel | None]]] = {
    "bilinear": (None, "triangle"),
    "nearest": (None, None),
    "bicubic": ("cubic table", "cubic"),
    "area": (None, None),
    "lanczos3": ("lanczos3", "lanczos3"),
    "lanczos5": ("lanczos5", "lanczos5"),
    "gaussian": ("gaussian", "gaussian"),
    "mitchellcubic": ("mitchell", "mitchell"),
}


def resize(
    images: Any,
    size: Any,
    method: str = ResizeMethod.BILINEAR,
    preserve_aspect_ratio: bool = False,
    antialias: bool = False,
    name: str | None = None,
) -> Tensor:
    """Resize a picture, or a batch of them; the result is float32, except with method "nearest".

    Args:
        images: Of shape [height, width, channels], or [n, height, width, channels].
        size: Height and width.
        method: One of `ResizeMethod`.
        preserve_aspect_ratio: Whether the result only has to fit into `size`.
        antialias: Whether downscaling averages all pixels that a new one covers, which "area" always does, and
            "nearest" never.
        name: Not used.

    >>> resize(np.array([[[0], [100]]], np.uint8), [1, 4]).numpy().tolist()
    [[[0.0], [25.0], [75.0], [100.0]]]
    """
    given = convert_to_tensor(images)
    pixels = np.asarray(given)
    if pixels.ndim not in (3, 4):
        message = f"resize: 'images' must have either 3 or 4 dimensions, found {pixels.ndim}"
        raise ValueError(message)
    if method not in _KERNELS:
        message = f"resize: unknown method {method!r}\n  Use one of {', '.join(_KERNELS)}."
        raise ValueError(message)
    sides, unknown = _sides(size), given.unknown_dims
    if preserve_aspect_ratio:
        sides = _fitting(pixels.shape[-3:-1], sides)
    else:
        unknown = as_unknown_dims([*unknown[:-3], False, False, *unknown[-1:]])
    if method == ResizeMethod.NEAREST_NEIGHBOR:
        return Tensor(_nearest(pixels, sides), unknown)
    if pixels.dtype.kind not in "iuf":
        message = f"resize: expected numbers, found {pixels.dtype.name}"
        raise InvalidArgumentError(message)
    known = pixels if pixels.dtype == np.uint8 else pixels.astype(np.float32, copy=False)
    kernel = _KERNELS[method][bool(antialias)]
    if kernel is not None:
        return Tensor(_images.resample(known, sides, kernel, antialias=bool(antialias)), unknown)
    core: Literal["area", "bilinear"] = "area" if method == "area" else "bilinear"
    return Tensor(_images.resize(known, sides, method=core, dtype="float32"), unknown)


def _sides(size: Any) -> tuple[int, int]:
    sides = np.asarray(convert_to_tensor(size))
    if sides.shape != (2,) or sides.dtype.kind not in "iu":
        message = "resize: 'size' must be two whole numbers: new_height, new_width"
        raise ValueError(message)
    if sides.min() < 1:
        message = f"resize: output dimensions must be positive, found {sides.tolist()}"
        raise InvalidArgumentError(message)
    return int(sides[0]), int(sides[1])


def _fitting(now: Sequence[int], sides: tuple[int, int]) -> tuple[int, int]:
    """Return the largest size with this aspect ratio that fits into another size; rounded as in TensorFlow."""
    here, wanted = np.array(now, np.float32), np.array(sides, np.float32)
    height, width = np.rint((wanted / here).min() * here).astype(int).tolist()
    return height, width


def _nearest(pixels: NDArray[Any], sides: tuple[int, int]) -> NDArray[Any]:
    """Resize pixels of any dtype: other than uint8 and float32, by resizing the numbers of their rows and columns."""
    if pixels.dtype in (np.uint8, np.float32):
        return _images.resize(pixels, sides, method="nearest")
    axis = pixels.ndim - 3
    for at, side in enumerate(sides, axis):
        numbers = np.arange(pixels.shape[at], dtype=np.float32)[:, None]
        picked = _images.resize(numbers, (side, 1), method="nearest")[:, 0].astype(np.int64)
        pixels = pixels.take(picked, axis=at)
    return pixels


def convert_image_dtype(image: Any, dtype: DTypeLike, saturate: bool = False, name: str | None = None) -> Tensor:
    """Convert pixels to another dtype; integers from 0 to their maximum correspond to floats from 0 to 1.

    Args:
        image: Pixels.
        dtype: An integer or float dtype.
        saturate: Whether values beyond the range of the dtype are clipped to it.
        name: Not used.

    >>> convert_image_dtype(np.array([0, 255], np.uint8), "float32").numpy()
    array([0., 1.], dtype=float32)
    """
    tensor, wanted = convert_to_tensor(image), as_dtype(dtype)
    for each in (tensor.dtype, wanted):
        if not (each.is_integer or each.is_floating):
            message = f"convert_image_dtype: pixels are whole numbers or floats, found {each.name}"
            raise AttributeError(message)
    if tensor.dtype is wanted:
        return tensor
    with np.errstate(invalid="ignore", over="ignore"):
        return Tensor(np.asarray(_converted(np.asarray(tensor), tensor.dtype, wanted, saturate)), tensor.unknown_dims)


def _converted(pixels: NDArray[Any], dtype: DType, wanted: DType, saturate: bool) -> NDArray[Any]:
    if dtype.is_floating and wanted.is_floating:
        return pixels.astype(wanted.numpy)
    if dtype.is_integer and wanted.is_floating:
        return np.asarray(pixels.astype(wanted.numpy) * wanted.numpy.type(1.0 / dtype.max))
    if dtype.is_floating:
        scaled = pixels * pixels.dtype.type(wanted.max + 0.5)
        return _clipped(scaled, wanted) if saturate else scaled.astype(wanted.numpy)
    if dtype.max > wanted.max:
        scaled = pixels // ((int(dtype.max) + 1) // (int(wanted.max) + 1))
        return _clipped(scaled, wanted) if saturate else scaled.astype(wanted.numpy)
    larger = _clipped(pixels, wanted) if saturate else pixels.astype(wanted.numpy)
    return np.asarray(larger * wanted.numpy.type((int(wanted.max) + 1) // (int(dtype.max) + 1)))


def _clipped(values: NDArray[Any], wanted: DType) -> NDArray[Any]:
    """Return values in another dtype, clipped to its range."""
    least, most = (_limit(values.dtype, int(limit)) for limit in (wanted.min, wanted.max))
    return np.asarray(np.clip(values, least, most).astype(wanted.numpy))


def _limit(dtype: np.dtype[Any], limit: int) -> Any:
    """Return the value of a dtype that is nearest to a limit without exceeding it."""
    if dtype.kind != "f":
        held = np.iinfo(dtype)
        return dtype.type(min(max(limit, int(held.min)), int(held.max)))
    value = dtype.type(limit)
    return np.nextafter(value, dtype.type(0)) if abs(float(value)) > abs(limit) else value


def flip_left_right(image: Any) -> Tensor:
    """Mirror a picture, or a batch of them, left to right.

    >>> flip_left_right([[[1], [2]]]).numpy().tolist()
    [[[2], [1]]]
    """
    pixels, unknown = _pictures("flip_left_right", image)
    return Tensor(_images.flip(pixels).copy(), unknown)


def random_flip_left_right(image: Any, seed: int | None = None) -> Tensor:
    """Mirror a picture, or each one of a batch, left to right with a probability of one half.

    Args:
        image: Of shape [height, width, channels], or [n, height, width, channels].
        seed: For the same result each time; it differs from TensorFlow's.
    """
    (pixels, unknown), random = _pictures("random_flip_left_right", image), np.random.default_rng(seed)
    flips = random.random((*pixels.shape[:-3], 1, 1, 1)) < 0.5
    return Tensor(np.where(flips, _images.flip(pixels), pixels), unknown)


def central_crop(image: Any, central_fraction: float) -> Tensor:
    """Crop a picture, or each one of a batch, to the central fraction of its height and width.

    >>> central_crop(np.zeros((4, 8, 3)), 0.5).shape
    TensorShape([2, 4, 3])
    """
    fraction = float(central_fraction)
    if not 0 < fraction <= 1:
        message = f"central_fraction must be within (0, 1], found {fraction}"
        raise ValueError(message)
    pixels, unknown = _pictures("central_crop", image)
    height, width = pixels.shape[-3:-1]
    top, left = (int((side - side * fraction) / 2) for side in (height, width))
    return Tensor(_images.crop(pixels, top, left, height - 2 * top, width - 2 * left), unknown)


def per_image_standardization(image: Any) -> Tensor:
    """Scale each picture to a mean of 0 and a standard deviation of 1, as float32.

    >>> per_image_standardization([[[1], [3]]]).numpy().tolist()
    [[[-1.0], [1.0]]]
    """
    given, unknown = _pictures("per_image_standardization", image, most=None)
    pixels, axes = given.astype(np.float32), (-3, -2, -1)
    mean = pixels.mean(axes, np.float64, keepdims=True)
    # A picture of one colour has a deviation of 0.
    least = 1 / np.sqrt(np.prod(pixels.shape[-3:]))
    std = np.maximum(pixels.std(axes, np.float64, keepdims=True), least)
    return Tensor(((pixels - mean) / std).astype(np.float32), unknown)


def _pictures(what: str, image: Any, most: int | None = 4) -> tuple[NDArray[Any], UnknownDims]:
    """Return the pixels of a picture or a batch with at most `most` dimensions, and which of these are unknown."""
    tensor = convert_to_tensor(image)
    pixels = np.asarray(tensor)
    if pixels.ndim < 3 or pixels.ndim > (most or pixels.ndim):
        message = f"{what}: a picture is [height, width, channels], found {pixels.ndim} dimensions"
        raise ValueError(message)
    return pixels, tensor.unknown_dims
