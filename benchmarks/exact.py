"""Exact: the first pictures of W2 as they should come out: decoded by Pillow, resized by the formula, from 0 to 1.

Run where Pillow is, as `python -m exact COUNT FOLDER TARGET`; `quality` needs NumPy alone.
"""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import columns
import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

SIZE = 224


def resized(pixels: NDArray[Any], size: int = SIZE) -> NDArray[np.float64]:
    """Return a picture resized bilinearly with half-pixel centres and nothing averaged, as tf.image.resize does."""
    down, across = (weights(length, size) for length in pixels.shape[:2])
    return np.einsum("ij,jkc,lk->ilc", down, pixels, across, optimize=True)


def weights(length: int, size: int) -> NDArray[np.float64]:
    """Return how much of each old line is in each new one."""
    centres = np.clip((np.arange(size) + 0.5) * length / size - 0.5, 0, length - 1)
    below = np.minimum(centres.astype(int), length - 2)
    found = np.zeros((size, length))
    found[np.arange(size), below] = 1 - (centres - below)
    found[np.arange(size), below + 1] = centres - below
    return found


def quality(found: NDArray[Any], path: str) -> float:
    """Return the peak signal-to-noise ratio of pictures to the exact ones, in decibels."""
    wanted = np.load(path)
    if found.shape != wanted.shape or found.dtype != wanted.dtype:
        message = f"pictures are {found.dtype} {found.shape}, not {wanted.dtype} {wanted.shape}"
        raise ValueError(message)
    return float(-10 * np.log10(np.mean((found - wanted) ** 2, dtype=np.float64) + 1e-12))


def main(count: int, folder: Path, target: Path) -> None:
    """Keep the first pictures."""
    from PIL import Image

    files = columns.dicts(columns.rows(columns.load(folder, ["image"]), 0, count))
    pixels = [np.asarray(Image.open(io.BytesIO(file["image"])).convert("RGB")) for file in files]
    np.save(target, np.stack([resized(each) / 255 for each in pixels]).astype(np.float32))


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]))
