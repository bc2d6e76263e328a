"""Shapes: the small pictures of the dataset of `recordkit demo`. Equal numbers give equal pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["FIELDS", "NAMES", "row"]

NAMES: Final = ("circle", "square", "triangle", "ring", "cross")
FIELDS: Final = {"id": "int64", "label": "int64", "name": "string", "box": "float32[4]"}  # and the picture itself

# One colour each, so that a tiny model has something to learn.
_COLOURS: Final = np.array([[230, 80, 60], [60, 130, 230], [70, 190, 90], [240, 190, 50], [160, 90, 210]], np.float32)


def row(number: int) -> dict[str, Any]:
    """Return a picture of a shape, its name, and its box: ymin, xmin, ymax, xmax as fractions of the picture.

    >>> first = row(0)
    >>> first["name"], first["image"].dtype.name, first["image"].ndim, row(0)["box"].tolist() == first["box"].tolist()
    ('circle', 'uint8', 3, True)
    """
    rng = np.random.default_rng(number)
    label = number % len(NAMES)
    height, width = rng.integers(96, 177, 2)
    radius = rng.uniform(0.2, 0.34) * min(height, width)
    middle = np.array([rng.uniform(radius, side - radius) for side in (height, width)])
    y, x = np.ogrid[:height, :width]
    inside = _inside(label, (y - middle[0]) / radius, (x - middle[1]) / radius)
    pixels = _background(rng, height, width)
    pixels[inside] = _COLOURS[label] + rng.normal(0, 18, 3)
    pixels += rng.normal(0, 5, (height, width, 1))
    box = np.concatenate([middle - radius, middle + radius]) / [height, width, height, width]
    return {
        "id": number,
        "image": pixels.clip(0, 255).astype(np.uint8),
        "label": label,
        "name": NAMES[label],
        "box": box.astype(np.float32),
    }


def _background(rng: np.random.Generator, height: int, width: int) -> NDArray[Any]:
    """Return a gradient between two dark colours."""
    top, bottom = rng.uniform(20, 120, (2, 3)).astype(np.float32)
    share = np.linspace(0, 1, height, dtype=np.float32)[:, None, None]
    return np.repeat(top + (bottom - top) * share, width, axis=1)


def _inside(label: int, y: NDArray[Any], x: NDArray[Any]) -> NDArray[Any]:
    """Return which points are inside a shape that extends from -1 to 1."""
    far = y * y + x * x
    near_both = (abs(y) < 1) & (abs(x) < 1)
    shapes = {
        "circle": far < 1,
        "square": near_both,
        "triangle": (y < 1) & (abs(x) * 2 < y + 1),
        "ring": (far < 1) & (far > 0.36),
        "cross": near_both & ((abs(y) < 0.33) | (abs(x) < 0.33)),
    }
    return np.asarray(shapes[NAMES[label]])
