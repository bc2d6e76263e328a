"""Drawings: arrays reduced to the few numbers needed to draw them as a line or a picture."""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Any

import numpy as np

from recordkit.dtypes import widen_floats

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MOST_LOOKED_AT = 1 << 22  # values of an array that its minimum and maximum are computed from


def plain(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array as numbers that NumPy can compute with: small floats as float32, times as counts."""
    if array.dtype.kind in "mM":
        numbers = array.astype(np.float64)
        numbers[np.isnat(array)] = np.nan
        return numbers
    if array.dtype.kind == "c":
        return np.asarray(np.abs(array))
    return widen_floats(array)


def summary(array: NDArray[Any]) -> dict[str, Any]:
    """Return the minimum, maximum and mean of an array, and its number of NaNs.

    >>> summary(np.array([1.0, np.nan, 3.0]))
    {'min': 1.0, 'max': 3.0, 'mean': 2.0, 'nan': 1}
    """
    numbers = plain(array.reshape(-1)[:_MOST_LOOKED_AT])
    finite = numbers[np.isfinite(numbers)] if numbers.dtype.kind == "f" else numbers
    if not len(finite):
        return {"nan": len(numbers)}
    low, high = finite.min().item(), finite.max().item()
    return {"min": low, "max": high, "mean": float(finite.mean(dtype=np.float64)), "nan": len(numbers) - len(finite)}


def line(array: NDArray[Any], points: int) -> list[list[int | None]]:
    """Return the lows and highs of at most `points` sections of an array, scaled to 0 to 1000.

    >>> line(np.array([0, 5, 10, 5]), 2)
    [[0, 500], [500, 1000]]
    """
    numbers = plain(array.reshape(-1)[:: 1 + array.size // _MOST_LOOKED_AT]).astype(np.float64)
    numbers[~np.isfinite(numbers)] = np.nan
    low, high = _range(numbers)
    scaled = (numbers - low) * (1000 / (high - low)) if high > low else np.where(np.isnan(numbers), np.nan, 500.0)
    edges = np.linspace(0, len(scaled), min(points, len(scaled)) + 1).astype(int)[:-1]
    if not len(edges):
        return [[], []]
    return [_whole(np.fmin.reduceat(scaled, edges)), _whole(np.fmax.reduceat(scaled, edges))]


def _whole(numbers: NDArray[np.float64]) -> list[int | None]:
    return [None if np.isnan(number) else round(number) for number in numbers.tolist()]


def _range(numbers: NDArray[np.float64]) -> tuple[float, float]:
    finite = numbers[~np.isnan(numbers)]
    return (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 0.0)


def grid(array: NDArray[Any], side: int) -> dict[str, Any] | None:
    """Return an array as a picture of at most `side` points each way; None if it has no rows and columns.

    Colours are kept, with twice as many points. Otherwise the byte of a point is 0 for NaN, and 1 (the minimum) to 255
    (the maximum) for numbers. Of further dimensions only the first entry is drawn, and then `first` is true.

    >>> grid(np.array([[0.0, 1.0], [np.nan, 0.5]]), 64)["data"]
    'Af8AgA=='
    """
    shown, first = array, False
    while shown.ndim > (3 if _is_colour(shown) else 2):
        if not len(shown):
            return None
        shown, first = shown[0], first or len(shown) > 1
    if shown.ndim < 2 or not shown.size:
        return None
    colour = shown.ndim == 3
    side = 2 * side if colour else side
    few = shown[_spread(shown.shape[0], side)][:, _spread(shown.shape[1], side)]
    data = _colours(few) if colour else _levels(few, array=shown)
    height, width = few.shape[:2]
    return {
        "h": height,
        "w": width,
        "c": 3 if colour else 1,
        "data": b64encode(data.tobytes()).decode(),
        "first": first,
    }


def _spread(length: int, most: int) -> NDArray[np.int64]:
    count = min(length, most)
    return (np.arange(count) * length) // max(1, count)


def _is_colour(array: NDArray[Any]) -> bool:
    if array.ndim < 3 or array.shape[-1] not in (3, 4) or min(array.shape[-3:-1]) < 4:
        return False
    return array.dtype == np.uint8 or array.dtype.kind == "f"


def _colours(few: NDArray[Any]) -> NDArray[np.uint8]:
    few = few[..., :3]
    if few.dtype == np.uint8:
        return np.ascontiguousarray(few)
    numbers = np.nan_to_num(few.astype(np.float32))
    low, high = float(numbers.min()), float(numbers.max())
    low, high = (0.0, 1.0) if low >= 0 and high <= 1 else (0.0, 255.0) if low >= 0 and high <= 255 else (low, high)
    colours: NDArray[np.uint8] = np.clip((numbers - low) * (255 / max(high - low, 1e-30)), 0, 255).astype(np.uint8)
    return colours


def _levels(few: NDArray[Any], array: NDArray[Any]) -> NDArray[np.uint8]:
    facts = summary(array)
    numbers = plain(few).astype(np.float64)
    low, high = float(facts.get("min", 0)), float(facts.get("max", 0))
    scaled = (numbers - low) * (254 / (high - low)) if high > low else np.full(numbers.shape, 127.0)
    levels = np.clip(np.nan_to_num(scaled, posinf=254, neginf=0), 0, 254).round().astype(np.uint8) + np.uint8(1)
    levels[np.isnan(numbers)] = 0
    return levels
