r"""Wording: numbers, sizes, names and values as messages print them, and the reverse for what users type.

>>> counted(1200, "file"), format_size(790_123_456), listed(["id", "label"]), did_you_mean("lable", ["label"])
('1,200 files', '790 MB', 'id, label', "Did you mean 'label'?")
"""

from __future__ import annotations

import difflib
import re
from numbers import Integral
from typing import TYPE_CHECKING, Any, Final, TypeGuard

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "clean",
    "counted",
    "did_you_mean",
    "format_size",
    "is_whole",
    "listed",
    "nearest",
    "parse_size",
    "quoted",
    "shortened",
    "whole_number",
]

_SIZE: Final = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]i?|)b?\s*", re.IGNORECASE)
_UNITS: Final = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY: Final = {"ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
# Controls of old and new terminals, letters that turn the direction of what follows, and bytes that are no text.
_UNSAFE: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_ESCAPES: Final = {"\t": "\\t", "\n": "\\n", "\r": "\\r"}


def parse_size(size: int | str) -> int:
    """Return a number of bytes.

    >>> parse_size("256MB"), parse_size("1 GiB"), parse_size(1000)
    (256000000, 1073741824, 1000)
    >>> parse_size("many")
    Traceback (most recent call last):
        ...
    ValueError: a size is a number of bytes, or text such as "256MB" or "1GiB", found 'many'
    """
    if isinstance(size, str):
        found = _SIZE.fullmatch(size)
        value = int(float(found[1]) * (_UNITS | _BINARY)[found[2].lower()]) if found else 0
    else:
        value = size if isinstance(size, int) and not isinstance(size, bool) else 0
    if value <= 0:
        message = f'a size is a number of bytes, or text such as "256MB" or "1GiB", found {size!r}'
        raise ValueError(message)
    return value


def format_size(size: int) -> str:
    """Return a number of bytes with three digits and a unit.

    >>> format_size(790_123_456), format_size(12)
    ('790 MB', '12 bytes')
    """
    for unit in "tgmk":
        if size >= _UNITS[unit]:
            rounded = float(f"{size / _UNITS[unit]:.3g}")  # may be 1000, which :.3g would print as 1e+03
            return f"{rounded:g} {unit.upper()}B"
    return counted(size, "byte")


def counted(number: int, what: str) -> str:
    """Return a number with its noun.

    >>> counted(1, "record"), counted(1200, "file")
    ('1 record', '1,200 files')
    """
    return f"{number:,} {what}{'s' * (number != 1)}"


def is_whole(number: object) -> TypeGuard[int]:
    """Tell whether something is an integer of Python or NumPy, and no bool."""
    return isinstance(number, Integral) and not isinstance(number, bool)


def whole_number(number: Any, what: str, *, least: int | None = 0) -> int:
    """Return an argument as an int.

    Raises:
        ValueError: It is no integer, or less than `least`.

    >>> whole_number(-1, "count")
    Traceback (most recent call last):
        ...
    ValueError: count is a number from 0 up, found -1
    """
    if not is_whole(number) or (least is not None and number < least):
        message = f"{what} is a {'whole number' if least is None else f'number from {least} up'}, found {number!r}"
        raise ValueError(message)
    return int(number)


def listed(names: Iterable[object], *, most: int = 8) -> str:
    """Return names with commas, and how many more there are than `most`.

    >>> listed(["id", "label"]), listed("abcdef", most=2)
    ('id, label', 'a, b and 4 more')
    """
    shown = list(map(str, names))
    more = f" and {len(shown) - most:,} more" if len(shown) > most else ""
    return ", ".join(shown[:most]) + more


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the one of `known` that is spelled most like `name`, if any is close."""
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return close[0] if close else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a question that offers the nearest of `known`, or an empty string."""
    near = nearest(name, known)
    return "" if near is None else f"Did you mean {near!r}?"


def quoted(value: object) -> str:
    """Return a value that was found, shortened; of bytes only how many, since payloads are never printed.

    >>> quoted(300), quoted("cat"), quoted(b"abc"), quoted([1, 2])
    ('300', "'cat'", '3 bytes', 'list')
    """
    if isinstance(value, bytes | bytearray | memoryview):
        return counted(len(value), "byte")
    if not isinstance(value, bool | int | float | complex | str):
        return type(value).__name__
    if isinstance(value, int) and not -(10**30) < value < 10**30:
        return f"an integer of {value.bit_length()} bits"  # Python refuses str() of a very long one
    return shortened(repr(value))


def shortened(text: str, most: int = 60) -> str:
    """Return the first `most` characters, with an ellipsis where more follow.

    >>> shortened("a long text", 6)
    'a long...'
    """
    return text if len(text) <= most else f"{text[:most]}..."


def clean(text: str) -> str:
    r"""Return text with everything escaped that a terminal would obey rather than show.

    >>> clean("red: \x1b[31m")
    'red: \\x1b[31m'
    """
    return _UNSAFE.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    code = ord(found[0])
    return _ESCAPES.get(found[0]) or (f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}")
