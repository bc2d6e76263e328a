"""Quarantine: keeps rows that did not fit as JSON lines, so that they can be fixed and written again."""

from __future__ import annotations

import base64
import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from recordkit.dtypes import ML_DTYPES
from recordkit.errors import StorageError
from recordkit.filesystems import open_regular

from . import side_json as declare
from .side_json import MOST_BYTES, FormatMismatch, in_words

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LARGEST: Final = 16 << 20  # bytes of one value that are kept; of longer ones, how long they were
_TEXT: Final = 1000  # characters of the repr of what JSON cannot hold

DECLARED: Final = declare.JsonFormat(
    "line of a quarantine",
    declare.record(
        {
            "row": declare.number(),
            "field": declare.or_null(declare.text()),
            "reason": declare.text(),
            "values": declare.anything,
        }
    ),
    "The rows of other lines can be read: remove this one.",
)


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
    """A placeholder for a value that the quarantine could not keep."""

    what: str


def to_line(bad: BadRow) -> bytes:
    r"""Return the line of a row.

    >>> to_line(BadRow(7, "x", "x: expected int64, found str", {"x": "seven"})).decode()
    '{"row": 7, "field": "x", "reason": "x: expected int64, found str", "values": {"x": "seven"}}\n'
    """
    value = {"row": bad.number, "field": bad.field, "reason": bad.reason, "values": _kept(bad.row)}
    line = (json.dumps(value, ensure_ascii=False) + "\n").encode(errors="surrogatepass")
    if len(line) <= MOST_BYTES:
        return line
    lost = {"$": "lost", "what": f"a row that takes {len(line):,} bytes"}
    return (json.dumps({**value, "values": lost}, ensure_ascii=False) + "\n").encode(errors="surrogatepass")


def _kept(row: Any) -> Any:
    """Return a row as JSON; values nested too deeply become `Lost`."""
    try:
        value = _to_json(row)
        declare.anything(value)
    except (RecursionError, FormatMismatch):
        return {"$": "lost", "what": f"a {type(row).__name__} of values too deep within each other"}
    return value


def from_line(line: bytes, where: str = "the line") -> BadRow:
    """Return the row of a line.

    Raises:
        StorageError: It is not one that `to_line` gave.
    """
    value = DECLARED.parse(line, where)
    try:
        return BadRow(value["row"], value["field"], value["reason"], _from_json(value["values"]))
    except FormatMismatch as mismatch:
        raise DECLARED.error(where, str(mismatch)) from None


def read_quarantine(path: Path) -> Iterator[BadRow]:
    """Yield the rows of a quarantine file.

    Raises:
        StorageError: It is not there, or a line of it is none of ours.
    """
    try:
        file = os.fdopen(open_regular(path), "rb")
    except StorageError:
        raise
    except OSError as error:
        words = os.strerror(error.errno or 0)
        message = (
            f"{path}: the rows that were skipped cannot be read: {words}\n  Put the file back; the manifest names it."
        )
        raise StorageError(message, path=str(path), errno=error.errno) from None
    with file:
        for number in count(1):
            line = file.readline(MOST_BYTES + 1)
            if not line:
                return
            where = f"{path}: line {number}"
            if len(line) > MOST_BYTES:
                raise DECLARED.error(where, f"expected at most {MOST_BYTES:,} bytes, found more")
            yield from_line(line, where)


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
        if array.dtype.kind in "biufcmM" and not array.dtype.hasobject and array.dtype.name not in ML_DTYPES:
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
    if "$" not in value:
        return {key: _from_json(part) for key, part in value.items()}
    _check_mark(value)
    match value["$"]:
        case "bytes":
            return _bytes(value)
        case "array":
            return _array(value)
        case "pairs":
            return dict(map(_pair, value["items"]))
        case "list":
            return _from_json(value["items"])
        case "float":
            return float(value["value"])
    return Lost(value["what"])


def _mark(**keys: declare.Rule) -> declare.Rule:
    return declare.record({"$": declare.text(), **keys})


_MARKS: Final = {
    "bytes": _mark(base64=declare.text()),
    "array": _mark(
        dtype=declare.text("[<|][biufcmM][0-9]{1,2}(\\[[0-9]{0,9}[a-zA-Z]{1,7}\\])?", "a dtype of NumPy"),
        shape=declare.array(declare.number()),
        base64=declare.text(),
    ),
    "pairs": _mark(items=declare.array(declare.array(declare.anything))),
    "list": _mark(items=declare.anything),
    "float": _mark(value=declare.one_of("inf", "-inf", "nan")),
    "lost": _mark(what=declare.text()),
}


def _check_mark(value: dict[str, Any]) -> None:
    declare.one_of(*_MARKS)(value["$"])
    _MARKS[value["$"]](value)


def _bytes(value: Mapping[str, Any]) -> bytes:
    try:
        return base64.b64decode(value["base64"], validate=True)
    except ValueError:
        raise FormatMismatch(in_words(value["base64"]), "Base64") from None


def _array(value: Mapping[str, Any]) -> Any:
    data, shape = _bytes(value), value["shape"]
    try:
        return np.frombuffer(data, value["dtype"]).reshape(shape).copy()[()]
    except (ValueError, TypeError):
        found = f"{len(data):,} bytes"
        raise FormatMismatch(found, f"an array of {value['dtype']} and shape {in_words(shape)}") from None


def _pair(items: list[Any]) -> tuple[Any, Any]:
    try:
        key, value = items
        return _hashable(_key(_from_json(key))), _from_json(value)
    except (ValueError, TypeError):
        raise FormatMismatch(in_words(items), "a key and a value") from None


def _hashable(key: Any) -> Any:
    hash(key)
    return key
