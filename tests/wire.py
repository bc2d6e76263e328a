"""Wire bytes by hand: messages that are odd but legal, which no sound writer makes and protobuf reads all the same.

The first half builds bytes piece by piece; the second half are Hypothesis strategies over it. Nothing here imports
recordkit, so that a mistake there cannot hide here.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Iterator

VARINT, FIXED64, DELIMITED, GROUP, END_GROUP, FIXED32 = range(6)
BYTES, FLOATS, INTS = 1, 2, 3


def varint(value: int, extra: int = 0) -> bytes:
    """`value` modulo 2**64, with `extra` bytes more than it needs."""
    value &= 2**64 - 1
    sevens = [value & 0x7F]
    while value := value >> 7:
        sevens.append(value & 0x7F)
    sevens += [0] * extra
    return bytes([seven | 0x80 for seven in sevens[:-1]] + sevens[-1:])


def tag(field: int, wire_type: int, extra: int = 0) -> bytes:
    return varint(field << 3 | wire_type, extra)


def delimited(field: int, body: bytes, *, extra_tag: int = 0, extra_length: int = 0) -> bytes:
    return tag(field, DELIMITED, extra_tag) + varint(len(body), extra_length) + body


def packed_ints(*values: int) -> bytes:
    return delimited(1, b"".join(map(varint, values)))


def packed_floats(*values: float) -> bytes:
    return delimited(1, struct.pack(f"<{len(values)}f", *values))


def ints(*values: int) -> bytes:
    """A Feature with an Int64List in one packed chunk."""
    return delimited(INTS, packed_ints(*values) if values else b"")


def floats(*values: float) -> bytes:
    return delimited(FLOATS, packed_floats(*values) if values else b"")


def texts(*values: bytes) -> bytes:
    return delimited(BYTES, b"".join(delimited(1, value) for value in values))


def entry(name: str, value: bytes) -> bytes:
    return delimited(1, delimited(1, name.encode()) + delimited(2, value))


def example(*entries: bytes) -> bytes:
    return delimited(1, b"".join(entries))


def steps(*features: bytes) -> bytes:
    """A FeatureList."""
    return b"".join(delimited(1, feature) for feature in features)


def lists(*entries: bytes) -> bytes:
    """The feature_lists of a SequenceExample."""
    return delimited(2, b"".join(entries))


def nested_groups(depth: int) -> bytes:
    return tag(5, GROUP) * depth + tag(5, END_GROUP) * depth


def fields(message: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Every (field, wire type, body) of a message, as far as it is well formed. Groups are walked into."""
    at = 0

    def number() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    try:
        while at < len(message):
            field, wire_type = divmod(number(), 8)
            start = at
            if wire_type == DELIMITED:
                size = number()
                start = at
                at += size
            elif wire_type == VARINT:
                number()
            else:
                at += {FIXED64: 8, FIXED32: 4, GROUP: 0, END_GROUP: 0}[wire_type]
            yield field, wire_type, message[start:at]
    except (IndexError, KeyError):
        return


def entries(payload: bytes, field: int = 1) -> Iterator[bytes]:
    """The map entries of an Example (field 1), or the feature lists of a SequenceExample (field 2)."""
    for number, wire_type, message in fields(payload):
        if (number, wire_type) == (field, DELIMITED):
            yield from (body for inner, kind, body in fields(message) if (inner, kind) == (1, DELIMITED))


def names(payload: bytes, field: int = 1) -> set[str]:
    """Every name that an entry has, the last word on it or not; "" stands for one without a name."""
    found = {""}
    for body in entries(payload, field):
        for number, wire_type, name in fields(body):
            if (number, wire_type) == (1, DELIMITED):
                found.add(name.decode(errors="ignore"))
    return found


def has_odd_entry(payload: bytes) -> bool:
    """Whether a map entry holds more than names and values: upb then keeps it out of the map."""
    bodies = [*entries(payload, 1), *entries(payload, 2)]
    return any((field, kind) not in ((1, DELIMITED), (2, DELIMITED)) for body in bodies for field, kind, _ in fields(body))


NAMES = st.sampled_from(
    ["", "a", "b", "ab", "a/b", "image/width", "image/height", "ünïcode", "a\0b", "n" * 8, "n" * 9, "n" * 16, "n" * 17]
    + ["n" * 127, "n" * 128, "n" * 300]
)
INT64S = st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 300) | st.sampled_from([-(2**63), 2**63 - 1, 2**56, 2**49])
FLOAT32S = st.floats(width=32)
VALUES = st.binary(max_size=5) | st.binary(min_size=120, max_size=140)


@st.composite
def odd_varint(draw: st.DrawFn, values: st.SearchStrategy[int] = INT64S, longest: int = 10) -> bytes:
    value = draw(values)
    room = longest - len(varint(value))
    return varint(value, draw(st.integers(0, room) | st.just(0)))


@st.composite
def odd_delimited(draw: st.DrawFn, field: int, body: bytes, odd: bool = True) -> bytes:
    """A field with a tag or a length longer than needed, now and then. Five bytes is the most upb takes."""
    extra = st.sampled_from([0] * 9 + [1, 3, 4]) if odd else st.just(0)
    short = 5 - len(varint(len(body)))
    return delimited(
        field,
        body,
        extra_tag=min(draw(extra), 5 - len(varint(field << 3 | DELIMITED))),
        extra_length=min(draw(extra), short),
    )


@st.composite
def unknown_field(draw: st.DrawFn, known: tuple[int, ...] = (1, 2, 3), depth: int = 2) -> bytes:
    """A field that no message of Example defines, groups included."""
    field = draw(st.sampled_from([4, 5, 15, 16, 2047, 2**29 - 1]) | st.integers(4, 2**29 - 1))
    wire_type = draw(st.sampled_from([VARINT, FIXED64, DELIMITED, FIXED32] + [GROUP] * (depth > 0)))
    if wire_type not in (DELIMITED, GROUP) and draw(st.booleans()):
        field = draw(st.sampled_from(known))  # the number is defined, with another wire type
    head = tag(field, wire_type)
    if wire_type == VARINT:
        return head + draw(odd_varint())
    if wire_type == DELIMITED:
        return delimited(field, draw(st.binary(max_size=6)))
    if wire_type == GROUP:
        inner = draw(st.lists(unknown_field(depth=depth - 1), max_size=2))
        return head + b"".join(inner) + tag(field, END_GROUP)
    return head + draw(st.binary(min_size=4, max_size=4) if wire_type == FIXED32 else st.binary(min_size=8, max_size=8))


@st.composite
def odd_list(draw: st.DrawFn, kind: int, odd: bool = True) -> bytes:
    """The body of a list: packed, unpacked, in several chunks, mixed, with unknown fields between."""
    parts = []
    for _ in range(draw(st.integers(0, 4))):
        if odd and draw(st.integers(0, 9)) == 0:
            # Field 1 as a varint, a fixed32 or bytes may be a value here.
            parts.append(draw(unknown_field(known=(2, 3))))
        elif kind == BYTES:
            parts.append(draw(odd_delimited(1, draw(VALUES), odd)))
        elif draw(st.booleans()):
            single = odd_varint() if kind == INTS else st.builds(lambda value: struct.pack("<f", value), FLOAT32S)
            parts.append(tag(1, VARINT if kind == INTS else FIXED32) + draw(single))
        elif kind == INTS:
            parts.append(draw(odd_delimited(1, b"".join(draw(st.lists(odd_varint(), max_size=12))), odd)))
        else:
            values = draw(st.lists(FLOAT32S, max_size=6))
            parts.append(draw(odd_delimited(1, struct.pack(f"<{len(values)}f", *values), odd)))
    return b"".join(parts)


@st.composite
def odd_feature(draw: st.DrawFn, odd: bool = True) -> bytes:
    """A Feature: no kind, one list, the same list again, several kinds."""
    parts = []
    for _ in range(draw(st.sampled_from([0, 1, 1, 1, 1, 2, 3]))):
        if odd and draw(st.integers(0, 9)) == 0:
            parts.append(draw(unknown_field()))
        else:
            kind = draw(st.sampled_from([BYTES, FLOATS, INTS]))
            parts.append(draw(odd_delimited(kind, draw(odd_list(kind, odd)), odd)))
    return b"".join(parts)


@st.composite
def odd_entry(draw: st.DrawFn, value: st.SearchStrategy[bytes], odd: bool = True) -> bytes:
    """A map entry: name and value in any order, missing or repeated. Values that repeat merge."""
    counts = st.sampled_from([1, 1, 1, 1, 1, 0, 2])
    parts = [draw(odd_delimited(1, draw(NAMES).encode(), odd)) for _ in range(draw(counts))]
    parts += [draw(odd_delimited(2, draw(value), odd)) for _ in range(draw(counts))]
    if draw(st.integers(0, 3)) == 0:
        parts = draw(st.permutations(parts))
    return draw(odd_delimited(1, b"".join(parts), odd))


@st.composite
def odd_map(draw: st.DrawFn, field: int, value: st.SearchStrategy[bytes], odd: bool = True) -> bytes:
    parts = draw(st.lists(odd_entry(value, odd) | (unknown_field() if odd else odd_entry(value, odd)), max_size=5))
    return draw(odd_delimited(field, b"".join(parts), odd))


@st.composite
def odd_example(draw: st.DrawFn, odd: bool = True) -> bytes:
    """An Example in one piece or several, with unknown fields between."""
    pieces = [odd_map(1, odd_feature(odd), odd)] * 4 + [unknown_field(known=(1,))] * odd
    return b"".join(draw(st.lists(st.one_of(pieces), max_size=3)))


@st.composite
def odd_sequence(draw: st.DrawFn, odd: bool = True) -> bytes:
    """A SequenceExample."""
    feature_list = st.lists(odd_feature(odd), max_size=3).map(lambda features: steps(*features))
    pieces = [odd_map(1, odd_feature(odd), odd), odd_map(2, feature_list, odd)] * 3 + [unknown_field(known=(1, 2))] * odd
    return b"".join(draw(st.lists(st.one_of(pieces), max_size=4)))


@st.composite
def mutated(draw: st.DrawFn, payloads: st.SearchStrategy[bytes]) -> bytes:
    """A payload with a few bytes flipped, cut, put in or taken out."""
    payload = bytearray(draw(payloads))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(payload)))
        how = draw(st.sampled_from(["flip", "set", "cut", "insert", "delete"]))
        if how == "flip" and at < len(payload):
            payload[at] ^= 1 << draw(st.integers(0, 7))
        elif how == "set" and at < len(payload):
            payload[at] = draw(st.sampled_from([0, 1, 0x0A, 0x12, 0x1A, 0x7F, 0x80, 0xFF]))
        elif how == "cut":
            del payload[at:]
        elif how == "insert":
            payload[at:at] = draw(st.binary(min_size=1, max_size=3))
        else:
            del payload[at : at + draw(st.integers(1, 3))]
    return bytes(payload)
