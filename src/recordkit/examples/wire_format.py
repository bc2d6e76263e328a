"""Protobuf's wire format, for single small messages; the core handles Examples in bulk.

A field is a tag (its number and a wire type, as a varint) and a value: a varint, 4 or 8 bytes, or a length and bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

VARINT, FIXED64, BYTES, _GROUP, _GROUP_END, FIXED32 = range(6)
_DEEPEST: Final = 100  # nested groups, as in protobuf
_FIXED: Final = {FIXED64: 8, FIXED32: 4}


def fields(data: memoryview) -> Iterator[tuple[int, int, Any]]:
    r"""Yield each field of a message: its number, its wire type, and an int or the bytes.

    Groups are skipped: none of these messages has any, so protobuf treats them as unknown fields.

    Raises:
        ValueError: The message is malformed.
        IndexError: It ends inside a varint.

    >>> [(number, bytes(value)) for number, wire, value in fields(memoryview(b"\x0a\x01a"))]
    [(1, b'a')]
    """
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        wire = tag & 7
        if wire == VARINT:
            value, at = varint(data, at)
            yield tag >> 3, wire, value
        elif wire == _GROUP:
            at = _after_group(data, at, tag >> 3)
        else:
            at, end = _span(data, at, wire)
            yield tag >> 3, wire, data[at:end]
            at = end


def _span(data: memoryview, at: int, wire: int) -> tuple[int, int]:
    """Return where the bytes of a field begin and end."""
    if wire == BYTES:
        length, at = varint(data, at)
    elif wire in _FIXED:
        length = _FIXED[wire]
    else:
        raise ValueError
    if length > len(data) - at:
        raise ValueError
    return at, at + length


def _after_group(data: memoryview, at: int, number: int) -> int:
    """Return where the group with this number, which begins at `at`, ends."""
    inside = [number]
    while inside:
        tag, at = varint(data, at)
        wire = tag & 7
        if wire == _GROUP:
            inside.append(tag >> 3)
        elif wire == _GROUP_END:
            if inside.pop() != tag >> 3:
                raise ValueError
        elif wire == VARINT:
            at = varint(data, at)[1]
        else:
            at = _span(data, at, wire)[1]
        if len(inside) > _DEEPEST:
            raise ValueError
    return at


def varints(data: memoryview) -> Iterator[int]:
    """Yield all varints of `data`."""
    at = 0
    while at < len(data):
        number, at = varint(data, at)
        yield number


def varint(data: memoryview, at: int) -> tuple[int, int]:
    """Return the varint at `at`, and where it ends."""
    number = shift = 0
    while True:
        byte = data[at]  # raises IndexError if the bytes end here
        number |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return number & (2**64 - 1), at
        shift += 7
        if shift > 63:
            raise ValueError


def varint_field(field: int, number: int) -> bytes:
    """Return a field that holds a number; empty for zero, which protobuf leaves out."""
    return _encoded(field << 3) + _encoded(number) if number else b""


def bytes_field(field: int, value: bytes) -> bytes:
    r"""Return a field that holds bytes: a string, a message or a packed list.

    >>> bytes_field(1, b"a")
    b'\n\x01a'
    """
    return _encoded(field << 3 | BYTES) + _encoded(len(value)) + value


def _encoded(number: int) -> bytes:
    data = bytearray()
    while number > 0x7F:
        data.append(number & 0x7F | 0x80)
        number >>= 7
    data.append(number)
    return bytes(data)
