"""Cells: a value in one line, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from recordkit import images
from recordkit.columns import BytesColumn, Ragged
from recordkit.errors import CorruptRecordError
from recordkit.wording import clean, format_size

from .screen import spark

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recordkit.tools import FieldStats

__all__ = ["digits", "histogram", "shape_words", "value_words"]

_FEW: Final = 8
_LONGEST: Final = 400
_BINS: Final = 12


def value_words(value: Any) -> str:
    r"""Return a value in one line, without control characters.

    >>> value_words("a\nb"), value_words(b"\x00\x01"), value_words(np.arange(12, dtype=np.int64))
    ('a\\nb', '2 bytes: 00 01', 'int64[12], 0 to 11: 0 1 2 3 4 5 6 7 …')
    """
    if value is None:
        return "missing"
    if isinstance(value, str):
        return clean(value[:_LONGEST]) + "…" * (len(value) > _LONGEST)
    if isinstance(value, bytes):
        return _bytes_words(value)
    if isinstance(value, np.ndarray) and value.ndim:
        return _array_words(value)
    if isinstance(value, Ragged):
        return f"{len(value)} of varying length: {_listed([value_words(each) for each in value[:3]], len(value))}"
    if isinstance(value, BytesColumn):
        return f"{len(value)} values: {_listed([value_words(each) for each in value[:3]], len(value))}"
    return digits(value)


def _listed(words: list[str], count: int) -> str:
    return " | ".join([*words, *["…"] * (count > len(words))])


def digits(value: Any) -> str:
    """Return a number, rounded to four digits if it is a float."""
    if isinstance(value, float | np.floating):
        return f"{float(value):.4g}"
    return str(value)


def _bytes_words(value: bytes) -> str:
    kind = images.kind(value)
    if kind is not None:
        try:
            return f"{kind} {shape_words(images.size(value))}, {format_size(len(value))}"
        except CorruptRecordError:
            return f"{kind} with a broken header, {format_size(len(value))}"
    more = "…" if len(value) > 12 else ""
    return f"{format_size(len(value))}{': ' if value else ''}{value[:12].hex(' ')}{more}"


def shape_words(shape: tuple[int, ...]) -> str:
    """Return the shape of a picture.

    >>> shape_words((375, 500, 3)), shape_words((28, 28, 1))
    ('500x375', '28x28 grey')
    """
    height, width, channels = (*shape, 1, 1)[:3]
    return f"{width}x{height}" + {1: " grey", 2: " grey and alpha", 4: " and alpha"}.get(channels, "")


def _array_words(array: np.ndarray[Any, Any]) -> str:
    flat = array.reshape(-1)
    first = " ".join(map(digits, flat[:_FEW]))
    if array.ndim == 1 and array.size <= _FEW:
        return f"[{first}]" if array.size else f"{array.dtype}[0]"
    span = ""
    if array.dtype.kind in "iuf" and array.size > _FEW:
        finite = flat[np.isfinite(flat)]
        span = f", {digits(finite.min())} to {digits(finite.max())}" if finite.size else ", nothing finite"
    return f"{array.dtype}[{','.join(map(str, array.shape))}]{span}: {first}{' …' * (array.size > _FEW)}"


# --- Histograms


def histogram(field: FieldStats) -> str:
    """Return the histogram of a field as a row of bars; empty if all values are equal."""
    summary = field.sizes or field
    found = summary.histogram
    return spark(_gathered(found.counts)) if found is not None and summary.min != summary.max else ""


def _gathered(counts: Sequence[int]) -> list[int]:
    """Return the counts in fewer bins, by merging equal numbers of neighbours.

    >>> _gathered([1, 2, 3]), _gathered([1] * 20)
    ([1, 2, 3], [2, 2, 2, 2, 2, 2, 2, 2, 2, 2])
    """
    step = next(step for step in range(1, len(counts) + 1) if len(counts) <= step * _BINS and len(counts) % step == 0)
    return [sum(counts[at : at + step]) for at in range(0, len(counts), step)]
