"""Cells: values as the page shows them, as text and numbers for JSON, cut to the room there is.

Numbers that a page must not round are sent as text. Bytes are not sent: the page fetches pictures and sounds by URL.

A new kind of cell is a function here, a line in `_KINDS` or `_ARRAY_KINDS`, and a maker in static/cells.js.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from recordkit.columns import BytesColumn, Ragged

from . import _drawings, _media
from ._dataset_view import Failed

if TYPE_CHECKING:
    from collections.abc import Callable

Cell: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class CellLimits:
    """How much of a value a cell shows.

    Attributes:
        text: Characters of a text.
        items: Items of a list.
        points: Points of a line.
        side: Pixels of an array drawn as a picture, in each direction.
        hex: Bytes of a byte string.
    """

    text: int
    items: int
    points: int
    side: int
    hex: int


SMALL: Final = CellLimits(text=240, items=4, points=96, side=48, hex=16)
LARGE: Final = CellLimits(text=50_000, items=200, points=480, side=256, hex=256)
_FEW: Final = 6  # numbers that are printed, not drawn
_WRITTEN: Final = 64  # numbers that are printed where there is room
_EXACT: Final = 2**53


def cell(name: str, value: Any, limits: CellLimits) -> Cell:
    """Return a value as the page shows it.

    >>> cell("label", np.int64(3), SMALL)
    {'k': 'number', 'text': '3'}
    >>> cell("note", None, SMALL)
    {'k': 'missing'}
    """
    return next(made for kind in _KINDS if (made := kind(name, value, limits)) is not None)


def number(value: Any) -> str:
    """Return a number, exactly.

    >>> number(np.float32(0.1)), number(np.int64(2**63 - 1)), number(float("nan")), number(np.bool_(True))
    ('0.1', '9223372036854775807', 'NaN', 'true')
    """
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, float | np.floating):
        if math.isnan(value):
            return "NaN"
        if math.isinf(value):
            return "∞" if value > 0 else "-∞"
    return str(value)


# --- Kinds of cells: each function returns the cell of a value of its kind, and None for other values


def _missing(name: str, value: Any, limits: CellLimits) -> Cell | None:
    return {"k": "missing"} if value is None else None


def _failed(name: str, value: Any, limits: CellLimits) -> Cell | None:
    return {"k": "failed", "text": value.words} if isinstance(value, Failed) else None


def _text(name: str, value: Any, limits: CellLimits) -> Cell | None:
    if not isinstance(value, str):
        return None
    return {"k": "text", "text": value[: limits.text]} | ({"chars": len(value)} if len(value) > limits.text else {})


def _picture(name: str, value: Any, limits: CellLimits) -> Cell | None:
    kind = _media.media_type(value) if isinstance(value, bytes) else None
    if kind is None or not kind.startswith("image/"):
        return None
    size = _media.picture_size(value)
    shape = {"h": size[0], "w": size[1], "c": size[2]} if size is not None else {}
    return {"k": "picture", "type": kind, "bytes": len(value), "small": _media.can_be_small(value, size), **shape}


def _sound(name: str, value: Any, limits: CellLimits) -> Cell | None:
    kind = _media.media_type(value) if isinstance(value, bytes) else None
    return {"k": "sound", "type": kind, "bytes": len(value)} if kind is not None else None


def _bytes(name: str, value: Any, limits: CellLimits) -> Cell | None:
    if not isinstance(value, bytes):
        return None
    return {"k": "bytes", "bytes": len(value), "hex": value[: limits.hex].hex(" ")} | _readable(value, limits)


def _readable(value: bytes, limits: CellLimits) -> dict[str, str]:
    """Return bytes as text, if they are text."""
    start = value[: min(len(value), limits.text)]
    try:
        text = start.decode()
    except UnicodeDecodeError as error:
        if error.start < len(start) - 3 or len(start) == len(value):
            return {}
        text = start[: error.start].decode()
    return {"text": text} if text and all(letter.isprintable() or letter in "\n\t\r" for letter in text) else {}


def _strings(name: str, value: Any, limits: CellLimits) -> Cell | None:
    if not isinstance(value, BytesColumn):
        return None
    count = int(np.prod(value.shape, dtype=np.int64))
    flat = value.reshape((count,))
    items = [cell(name, flat[i], limits) for i in range(min(count, limits.items))]
    return {"k": "list", "shape": list(value.shape), "count": count, "items": items}


def _ragged(name: str, value: Any, limits: CellLimits) -> Cell | None:
    if not isinstance(value, Ragged):
        return None
    items = [cell(name, value[i], limits) for i in range(min(len(value), limits.items))]
    return {"k": "list", "shape": [len(value)], "count": len(value), "items": items, "ragged": True}


def _scalar(name: str, value: Any, limits: CellLimits) -> Cell | None:
    array = np.asarray(value)
    kind = {"b": "bool", "m": "time", "M": "time"}.get(array.dtype.kind, "number")
    return {"k": kind, "text": number(array[()])} if not array.ndim else None


def _array(name: str, value: Any, limits: CellLimits) -> Cell:
    array = np.asarray(value)
    facts: Cell = {"shape": list(array.shape), "dtype": str(array.dtype)}
    if array.dtype.kind in "OSU":
        items = [cell(name, each, limits) for each in array.flat[: limits.items]]
        return {"k": "list", "count": array.size, "items": items} | facts
    facts |= {key: _safe(fact) for key, fact in _drawings.summary(array).items()}
    return next(made for kind in _ARRAY_KINDS if (made := kind(name, array, limits)) is not None) | facts


_KINDS: Final[tuple[Callable[[str, Any, CellLimits], Cell | None], ...]] = (
    _missing,
    _failed,
    _text,
    _picture,
    _sound,
    _bytes,
    _strings,
    _ragged,
    _scalar,
    _array,
)


# --- Kinds of cells for arrays of numbers


def _matrix(name: str, array: Any, limits: CellLimits) -> Cell | None:
    if array.ndim != 2 or not 0 < array.size <= _WRITTEN or limits is not LARGE:
        return None
    return {"k": "matrix", "rows": [[number(value) for value in row] for row in array]}


def _numbers(name: str, array: Any, limits: CellLimits) -> Cell | None:
    few = array.size <= (_FEW if limits is SMALL else 2 * _FEW)
    return {"k": "numbers", "items": [number(value) for value in array.reshape(-1)]} if few else None


def _grid(name: str, array: Any, limits: CellLimits) -> Cell | None:
    drawn = _drawings.grid(array, limits.side) if array.ndim > 1 else None
    return {"k": "grid", **drawn} if drawn is not None and min(drawn["h"], drawn["w"]) > 1 else None


def _line(name: str, array: Any, limits: CellLimits) -> Cell:
    lows, highs = _drawings.line(array, limits.points)
    sound = {"sound": True} if _media.sounds_like(name, array) else {}
    start = [number(value) for value in array.reshape(-1)[:_WRITTEN]] if limits is LARGE else []
    return {"k": "line", "lows": lows, "highs": highs, "items": start} | sound


_ARRAY_KINDS: Final[tuple[Callable[[str, Any, CellLimits], Cell | None], ...]] = (_matrix, _numbers, _grid, _line)


# --- Numbers in JSON


def _safe(value: Any) -> Any:
    """Return a number for JSON: as text if the page would round it, or if JSON has no such number."""
    if isinstance(value, float):
        return value if math.isfinite(value) else number(value)
    return str(value) if isinstance(value, int) and abs(value) > _EXACT else value


def safe(value: Any) -> Any:
    """Return nested dicts and lists with every number made safe for JSON.

    >>> safe({"max": 2**63 - 1, "rows": [1, float("inf")]})
    {'max': '9223372036854775807', 'rows': [1, '∞']}
    """
    if isinstance(value, dict):
        return {str(key): safe(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [safe(item) for item in value]
    return _safe(value)
