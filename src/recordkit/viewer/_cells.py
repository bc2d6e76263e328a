"""Cells: a value as the page shows it: plain texts and numbers for JSON, cut to the room there is.

Numbers that a page must not round go as text. Bytes never go here: the page fetches a picture or a sound by its name.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from recordkit.columns import BytesColumn, Ragged

from . import _drawings, _media
from ._dataset_view import Failed


@dataclass(frozen=True)
class Room:
    """How much of a value is shown.

    Attributes:
        text: Characters of a text.
        items: Entries of a list.
        points: Of a line.
        side: Points of a picture of an array, each way.
        hex: Bytes of a byte string.
    """

    text: int
    items: int
    points: int
    side: int
    hex: int


SMALL: Final = Room(text=240, items=4, points=96, side=48, hex=16)
LARGE: Final = Room(text=50_000, items=200, points=480, side=256, hex=256)
_FEW: Final = 6  # numbers that are written out rather than drawn
_WRITTEN: Final = 64  # numbers that are written out where there is room
_EXACT: Final = 2**53


def cell(name: str, value: Any, room: Room) -> dict[str, Any]:
    """Return a value as the page shows it.

    >>> cell("label", np.int64(3), SMALL)
    {'k': 'number', 'text': '3'}
    >>> cell("note", None, SMALL)
    {'k': 'missing'}
    """
    if value is None:
        return {"k": "missing"}
    if isinstance(value, Failed):
        return {"k": "failed", "text": value.words}
    if isinstance(value, str):
        return _text(value, room)
    if isinstance(value, bytes):
        return _bytes(value, room)
    if isinstance(value, BytesColumn):
        return _many(name, value, room)
    if isinstance(value, Ragged):
        return _ragged(name, value, room)
    array = np.asarray(value)
    return _array(name, array, room) if array.ndim else {"k": _kind(array), "text": number(array[()])}


def _kind(array: Any) -> str:
    return {"b": "bool", "m": "time", "M": "time"}.get(array.dtype.kind, "number")


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


def _text(value: str, room: Room) -> dict[str, Any]:
    shown = value[: room.text]
    return (
        {"k": "text", "text": shown, "chars": len(value)} if len(value) > len(shown) else {"k": "text", "text": shown}
    )


def _bytes(value: bytes, room: Room) -> dict[str, Any]:
    kind = _media.media_type(value)
    if kind is not None and kind.startswith("image/"):
        size = _media.picture_size(value)
        shape = {"h": size[0], "w": size[1], "c": size[2]} if size is not None else {}
        small = len(value) <= _media.SMALL_PICTURE or (size is not None and size[0] * size[1] <= _media._MOST_PIXELS)
        return {"k": "picture", "type": kind, "bytes": len(value), "small": small, **shape}
    if kind is not None:
        return {"k": "sound", "type": kind, "bytes": len(value)}
    return {"k": "bytes", "bytes": len(value), "hex": value[: room.hex].hex(" ")} | _readable(value, room)


def _readable(value: bytes, room: Room) -> dict[str, Any]:
    """Return bytes as text, if they are one."""
    start = value[: min(len(value), room.text)]
    try:
        text = start.decode()
    except UnicodeDecodeError as error:
        if error.start < len(start) - 3 or len(start) == len(value):
            return {}
        text = start[: error.start].decode()
    return {"text": text} if text and all(letter.isprintable() or letter in "\n\t\r" for letter in text) else {}


def _many(name: str, value: BytesColumn, room: Room) -> dict[str, Any]:
    count = int(np.prod(value.shape, dtype=np.int64))
    flat = value.reshape((count,))
    items = [cell(name, flat[i], room) for i in range(min(count, room.items))]
    return {"k": "list", "shape": list(value.shape), "count": count, "items": items}


def _ragged(name: str, value: Ragged, room: Room) -> dict[str, Any]:
    items = [cell(name, value[i], room) for i in range(min(len(value), room.items))]
    return {"k": "list", "shape": [len(value)], "count": len(value), "items": items, "ragged": True}


def _array(name: str, array: Any, room: Room) -> dict[str, Any]:
    facts: dict[str, Any] = {"shape": list(array.shape), "dtype": str(array.dtype)}
    if array.dtype.kind in "OSU":
        return {
            "k": "list",
            "count": array.size,
            "items": [cell(name, v, room) for v in array.flat[: room.items]],
        } | facts
    facts |= {key: _safe(value) for key, value in _drawings.summary(array).items()}
    if array.ndim == 2 and 0 < array.size <= _WRITTEN and room is LARGE:
        return {"k": "matrix", "rows": [[number(value) for value in row] for row in array]} | facts
    if array.size <= (_FEW if room is SMALL else 2 * _FEW):
        return {"k": "numbers", "items": [number(value) for value in array.reshape(-1)]} | facts
    if array.ndim > 1 and (drawn := _drawings.grid(array, room.side)) is not None and min(drawn["h"], drawn["w"]) > 1:
        return {"k": "grid"} | facts | drawn
    lows, highs = _drawings.line(array, room.points)
    sound = {"sound": True} if _media.sounds_like(name, array) else {}
    start = [number(value) for value in array.reshape(-1)[:_WRITTEN]] if room is LARGE else []
    return {"k": "line", "lows": lows, "highs": highs, "items": start} | sound | facts


def _safe(value: Any) -> Any:
    """Return a number as it can go in JSON: as text where a page would round it, or where JSON has no such number."""
    if isinstance(value, float):
        return value if math.isfinite(value) else number(value)
    return str(value) if isinstance(value, int) and abs(value) > _EXACT else value


def safe(value: Any) -> Any:
    """Return nested dicts and lists with every number as it can go in JSON.

    >>> safe({"max": 2**63 - 1, "rows": [1, float("inf")]})
    {'max': '9223372036854775807', 'rows': [1, '∞']}
    """
    if isinstance(value, dict):
        return {str(key): safe(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [safe(item) for item in value]
    return _safe(value)
