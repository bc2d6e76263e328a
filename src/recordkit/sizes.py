"""Sizes: numbers of bytes as people write them."""

from __future__ import annotations

import re
from typing import Final

_UNITS: Final = {
    "": 1,
    "k": 10**3,
    "m": 10**6,
    "g": 10**9,
    "t": 10**12,
    "ki": 2**10,
    "mi": 2**20,
    "gi": 2**30,
    "ti": 2**40,
}


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
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?i?)b?\s*", size, re.IGNORECASE)
        value = int(float(found[1]) * _UNITS[found[2].lower()]) if found and found[2].lower() in _UNITS else 0
    else:
        value = size if isinstance(size, int) and not isinstance(size, bool) else 0
    if value <= 0:
        message = f'a size is a number of bytes, or text such as "256MB" or "1GiB", found {size!r}'
        raise ValueError(message)
    return value


def in_words(size: int) -> str:
    """Return a number of bytes for people.

    >>> in_words(790_123_456), in_words(12)
    ('790 MB', '12 bytes')
    """
    for unit, name in ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "KB")):
        if size >= unit:
            rounded = float(f"{size / unit:.3g}")  # which may be 1000, and is not to be said as 1e+03
            return f"{rounded:g} {name}"
    return f"{size} byte{'s' * (size != 1)}"
