"""Quarantine: rows that did not fit, kept as JSON lines so that they can be mended and written again."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LARGEST: Final = 16 << 20  # bytes of one value that are kept; of longer ones, how long they were
_TEXT: Final = 1000  # characters of the repr of what JSON cannot hold


@dataclass(frozen=True)
class BadRow:
    """A row that was not written.

    Attributes:
        number: Of the row in its source, counted from 0.
        field: The field that did not fit, if it was one.
        reason: The error in words.
        row: The row itself; a value that was too large or of a type that JSON cannot hold is a `Lost`.
    """

    number: int
    field: str | None
    reason: str
    row: Any


@dataclass(frozen=True)
class Lost:
    """Stands for a value that the quarantine could not keep."""

    what: str


def to_line(bad: BadRow) -> bytes:
    r"""Return the line of a row.

    >>> to_line(BadRow(7, "x", "x: expected int64, found str", {"x": "seven"})).decode()
    '{"row": 7, "field": "x", "reason": "x: expected int64, found str", "values": {"x": "seven"}}\n'
    """
    value = {"row": bad.number, "field": bad.field, "reason": bad.reason, "values": _to_json(bad.row)}
    return (json.dumps(value, ensure_ascii=False) + "\n").encode(errors="surrogatepass")


def from_line(line: bytes) -> BadRow:
    """Return the row of a line."""
    value = json.loads(line.decode(errors="surrogatepass"))
    return BadRow(value["row"], value["field"], value["reason"], _from_json(value["values"]))


def read(path: Path) -> Iterator[BadRow]:
    """Yield the rows of a quarantine file."""
    with path.open("rb") as file:
        yield from map(from_line, file)


def _to_json(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        # Subclasses: np.float64 is written as what it is, others as what they hold.
        if isinstance(value, np.generic):
            return _to_json(np.asarray(value))
        if isinstance(value, float) and not math.isfinite(value):
            return {"$": "float", "value": str(float(value))}  # JSON has no word for it
        return next((kind(value) for kind in (bool, int, float, str) if isinstance(value, kind)), None)
    if isinstance(value, Mapping):
        return {str(key): _to_json(part) for key, part in value.items()} if _is_plain(value) else _pairs(value)
    if isinstance(value, list | tuple):
        return [_to_json(part) for part in value]
    if isinstance(value, bytes | bytearray | memoryview):
        return _base64(bytes(value), {"$": "bytes"})
    if isinstance(value, np.ndarray | np.generic):
        array = np.asarray(value)
        if array.dtype.kind in "biufcmM" and not array.dtype.hasobject:
            facts = {"$": "array", "dtype": array.dtype.newbyteorder("<").str, "shape": list(array.shape)}
            return _base64(array.astype(array.dtype.newbyteorder("<")).tobytes(), facts)
        return {"$": "list", "items": _to_json(array.tolist())}
    return {"$": "lost", "what": repr(value)[:_TEXT]}


def _is_plain(value: Mapping[Any, Any]) -> bool:
    return "$" not in value and all(isinstance(key, str) for key in value)


def _pairs(value: Mapping[Any, Any]) -> Any:
    return {"$": "pairs", "items": [[_to_json(key), _to_json(part)] for key, part in value.items()]}


def _key(value: Any) -> Any:
    return tuple(map(_key, value)) if isinstance(value, list) else value


def _base64(data: bytes, facts: dict[str, Any]) -> dict[str, Any]:
    if len(data) > LARGEST:
        return {"$": "lost", "what": f"{facts['$']} of {len(data):,} bytes"}
    return {**facts, "base64": base64.b64encode(data).decode()}


def _from_json(value: Any) -> Any:
    if isinstance(value, list):
        return [_from_json(part) for part in value]
    if not isinstance(value, dict):
        return value
    match value.get("$"):
        case "bytes":
            return base64.b64decode(value["base64"])
        case "array":
            data = base64.b64decode(value["base64"])
            return np.frombuffer(data, value["dtype"]).reshape(value["shape"]).copy()[()]
        case "pairs":
            return {_key(_from_json(key)): _from_json(part) for key, part in value["items"]}
        case "list":
            return _from_json(value["items"])
        case "float":
            return float(value["value"])
        case "lost":
            return Lost(value["what"])
    return {key: _from_json(part) for key, part in value.items()}
