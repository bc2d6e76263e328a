"""Kernels: pictures resized by weighted sums of pixels, as in TensorFlow's smoother methods.

Rows and columns are weighed apart. The arithmetic of positions and weights is TensorFlow's, in single precision, so
that a new pixel takes part of the same old ones.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import numpy as np

from recordkit.errors import SchemaError

from ._arrays import checked_picture, checked_size

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    # For each new row or column: the first old one that has a part in it, and what part that and the next ones have.
    Taps = tuple[NDArray[np.int64], Floats]

Kernel: TypeAlias = Literal["triangle", "cubic", "mitchell", "gaussian", "lanczos3", "lanczos5", "cubic table"]

# Below it a sum of weights is nothing to divide by.
_LEAST_SUM: Final = 1000 * np.finfo(np.float32).tiny
_TABLE_SIZE: Final = 1024


def resample(
    array: NDArray[Any], size: Sequence[int], kernel: Kernel, *, antialias: bool = False
) -> NDArray[np.float32]:
    """Return a picture, or a batch of them, resized, as float32; values may exceed the range of the old ones.

    Args:
        array: uint8 or float32.
        size: Height and width.
        kernel: How much each pixel has a part in a new one, by its distance. "cubic table" is "cubic" as TensorFlow has
            it without antialiasing: with one of 1024 weights that were worked out before.
        antialias: Whether each pixel of a smaller picture is made from all pixels it covers.

    Raises:
        SchemaError: The array is not a picture, or the size is impossible.

    >>> resample(np.array([[0, 100]], np.uint8), (1, 4), "triangle").tolist()
    [[0.0, 25.0, 75.0, 100.0]]
    """
    if kernel not in _KERNELS and kernel != "cubic table":
        message = f"{kernel!r} is no kernel\n  There are {', '.join(_KERNELS)} and cubic table."
        raise SchemaError(message, expected="a kernel", found=repr(kernel))
    pixels = checked_picture(array)
    rows = 1 if pixels.ndim == 4 else 0
    for axis, new in enumerate(checked_size(size), rows):
        old = pixels.shape[axis]
        taps = _table_taps(old, new) if kernel == "cubic table" else _taps(old, new, kernel, antialias)
        pixels = _weighed(pixels, axis, taps)
    return pixels


def _weighed(pixels: NDArray[Any], axis: int, taps: Taps) -> Floats:
    """Return the weighted sums of the rows, or the columns, of pictures."""
    starts, weights = taps
    last = pixels.shape[axis] - 1
    sides = (1,) * axis, (1,) * (pixels.ndim - axis - 1)
    shape = *pixels.shape[:axis], len(starts), *pixels.shape[axis + 1 :]
    made, part = np.zeros(shape, np.float32), np.empty(shape, np.float32)
    for tap in range(weights.shape[1]):
        picked = pixels.take(np.clip(starts + tap, 0, last), axis)
        made += np.multiply(picked, weights[:, tap].reshape(*sides[0], -1, *sides[1]), out=part)
    return made


def _taps(old: int, new: int, kernel: str, antialias: bool) -> Taps:
    radius, weight = _KERNELS[kernel]
    step = np.float32(1) / (np.float32(new) / np.float32(old))
    stretch = max(step, np.float32(1)) if antialias else np.float32(1)
    reach, half = np.float32(radius) * stretch, np.float32(0.5)
    centres = (np.arange(new, dtype=np.float32) + half) * step
    starts = np.clip(np.ceil(centres - reach - half), 0, old - 1).astype(np.int64)
    stops = np.clip(np.floor(centres + reach - half), 0, old - 1).astype(np.int64) + 1
    places = starts[:, None] + np.arange(int((stops - starts).max()))
    distances = np.abs(places.astype(np.float32) + half - centres[:, None]) * (np.float32(1) / stretch)
    weights = np.where(places < stops[:, None], weight(distances), np.float32(0))
    weights[centres > old] = 0  # which rounding can bring about in the last one
    return starts, _normal(weights)


def _table_taps(old: int, new: int) -> Taps:
    centres = (np.arange(new, dtype=np.float32) + np.float32(0.5)) * np.float32(old / np.float32(new)) - np.float32(0.5)
    starts = np.floor(centres).astype(np.int64)
    parts = np.rint((centres - starts.astype(np.float32)) * _TABLE_SIZE).astype(np.int64)
    distances = np.stack([parts + _TABLE_SIZE, parts, _TABLE_SIZE - parts, 2 * _TABLE_SIZE - parts], axis=1)
    places = starts[:, None] + np.arange(-1, 3)
    inside = (places >= 0) & (places < old)
    weights = np.where(inside, _cubic((distances / _TABLE_SIZE).astype(np.float32)), np.float32(0))
    return starts - 1, _normal(weights)


def _normal(weights: Floats) -> Floats:
    """Return weights whose sum is 1 for each new pixel."""
    sums = weights.sum(axis=1, keepdims=True)
    enough = np.abs(sums) >= _LEAST_SUM
    return np.where(enough, weights / np.where(enough, sums, 1), 0).astype(np.float32)


# --- Kernels: the part of a pixel by its distance, which is 0 at its radius


def _triangle(x: Floats) -> Floats:
    return np.maximum(1 - x, 0).astype(np.float32)


def _cubic(x: Floats) -> Floats:
    near = (1.5 * x - 2.5) * x * x + 1
    far = ((-0.5 * x + 2.5) * x - 4) * x + 2
    return _pieces(x, near, far)


def _mitchell(x: Floats) -> Floats:
    near = (7 / 6 * x - 2) * x * x + 8 / 9
    far = ((-7 / 18 * x + 2) * x - 10 / 3) * x + 16 / 9
    return _pieces(x, near, far)


def _pieces(x: Floats, near: Floats, far: Floats) -> Floats:
    return np.where(x < 1, near, np.where(x < 2, far, np.float32(0))).astype(np.float32)


def _gaussian(x: Floats) -> Floats:
    return np.where(x < 1.5, np.exp(-2 * x * x), np.float32(0)).astype(np.float32)


def _lanczos(radius: int) -> Callable[[Floats], Floats]:
    def weight(x: Floats) -> Floats:
        near = np.maximum(x, np.float32(1e-3))  # nearer than that is there
        waves = radius * np.sin(math.pi * near) * np.sin(math.pi * near / radius) / (math.pi * near) ** 2
        return np.where(x > radius, np.float32(0), np.where(x <= 1e-3, np.float32(1), waves)).astype(np.float32)

    return weight


_KERNELS: Final[dict[str, tuple[float, Callable[[Floats], Floats]]]] = {
    "triangle": (1, _triangle),
    "cubic": (2, _cubic),
    "mitchell": (2, _mitchell),
    "gaussian": (1.5, _gaussian),
    "lanczos3": (3, _lanczos(3)),
    "lanczos5": (5, _lanczos(5)),
}
