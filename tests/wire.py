"""Wire bytes by hand: messages that are odd but legal, which no sound writer makes and protobuf reads all the same.

First come functions that build bytes piece by piece and walk over them; then Hypothesis strategies; then what turns
protobuf's answers and ours into lists that can be compared.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from hypothesis import strategies as st

from recordkit.columns import BytesColumn
from recordkit.examples import Kind, Values

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

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
    found = {(field, wire_type) for body in bodies for field, wire_type, _ in fields(body)}
    return not found <= {(1, DELIMITED), (2, DELIMITED)}


SHORT_NAMES = ["", "a", "b", "ab", "a/b", "image/width", "image/height", "ünïcode", "a\0b"]
NAMES = st.sampled_from([*SHORT_NAMES, *("n" * size for size in (8, 9, 16, 17, 127, 128, 300))])
INT64S = st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 300) | st.sampled_from([-(2**63), 2**63 - 1, 2**56, 2**49])
FLOAT32S = st.floats(width=32)
VALUES = st.binary(max_size=5) | st.binary(min_size=120, max_size=140)


@dataclass
class Draw:
    """Draws messages that are legal and, `odd` times in a hundred at each turn, not what a sound writer makes."""

    draw: st.DrawFn
    odd: int

    def oddly(self) -> bool:
        return self.odd > 0 and self.draw(st.integers(0, 99)) >= 100 - self.odd

    def some(self, most: int) -> range:
        return range(self.draw(st.integers(0, most)))

    def number(self) -> bytes:
        value = self.draw(INT64S)
        room = 10 - len(varint(value))
        return varint(value, self.draw(st.integers(0, room)) if self.oddly() else 0)

    def delimited(self, field: int, body: bytes) -> bytes:
        """Now and then with a tag or a length longer than needed; five bytes is the most upb takes."""
        room = 5 - len(varint(field << 3)), 5 - len(varint(len(body)))
        tag_extra, length_extra = (self.draw(st.integers(0, most)) if self.oddly() else 0 for most in room)
        return delimited(field, body, extra_tag=tag_extra, extra_length=length_extra)

    def unknown(self, known: tuple[int, ...] = (1, 2, 3), depth: int = 2) -> bytes:
        """A field that no message of Example defines: another number, or one of `known` with another wire type."""
        field = self.draw(st.sampled_from([4, 5, 15, 16, 2047, 2**29 - 1]))
        wire_type = self.draw(st.sampled_from([VARINT, FIXED64, DELIMITED, FIXED32] + [GROUP] * (depth > 0)))
        if wire_type in (VARINT, FIXED64, FIXED32):
            field = self.draw(st.sampled_from((field, *known)))
        if wire_type == VARINT:
            return tag(field, wire_type) + self.number()
        if wire_type == DELIMITED:
            return delimited(field, self.draw(st.binary(max_size=6)))
        if wire_type == GROUP:
            inner = b"".join(self.unknown(known, depth - 1) for _ in self.some(2))
            return tag(field, GROUP) + inner + tag(field, END_GROUP)
        size = 4 if wire_type == FIXED32 else 8
        return tag(field, wire_type) + self.draw(st.binary(min_size=size, max_size=size))

    def values(self, kind: int) -> list[bytes]:
        """The pieces of a list: a packed chunk, or single values."""
        if kind == BYTES:
            return [self.delimited(1, self.draw(VALUES)) for _ in self.some(3)]
        if kind == INTS:
            numbers, single = [self.number() for _ in self.some(12)], VARINT
        else:
            numbers, single = [struct.pack("<f", self.draw(FLOAT32S)) for _ in self.some(5)], FIXED32
        if self.draw(st.integers(0, 3)) == 3:
            return [tag(1, single) + number for number in numbers]
        return [self.delimited(1, b"".join(numbers))] if numbers or self.oddly() else []

    def values_in_pieces(self, kind: int) -> bytes:
        pieces = self.values(kind)
        while self.oddly():
            pieces += self.values(kind)
        if self.oddly():
            pieces.append(self.unknown(known=(2, 3)))  # field 1 may be a value, whatever its wire type
        return b"".join(pieces)

    def feature(self) -> bytes:
        kinds = self.draw(st.sampled_from([[], [BYTES], [FLOATS], [INTS]]))
        while self.oddly():
            kinds = [*kinds, self.draw(st.sampled_from([BYTES, FLOATS, INTS]))]
        pieces = [self.delimited(kind, self.values_in_pieces(kind)) for kind in kinds]
        if self.oddly():
            pieces.insert(0, self.unknown())
        return b"".join(pieces)

    def feature_list(self) -> bytes:
        pieces = [self.delimited(1, self.feature()) for _ in self.some(3)]
        if self.oddly():
            pieces.append(self.unknown(known=(2, 3)))
        return b"".join(pieces)

    def entry(self, name: str, value: Callable[[], bytes]) -> bytes:
        names = [name] if not self.oddly() else self.draw(st.lists(NAMES, max_size=2))
        values = [value()] if not self.oddly() else [value() for _ in self.some(2)]
        parts = [self.delimited(1, one.encode()) for one in names] + [self.delimited(2, one) for one in values]
        if self.oddly():
            parts = self.draw(st.permutations(parts))
        return self.delimited(1, b"".join(parts))

    def maps(self, field: int, value: Callable[[], bytes]) -> list[bytes]:
        """A map in one piece or several, which merge."""
        names = self.draw(st.lists(NAMES, max_size=4, unique=True))
        while names and self.oddly():
            names.append(self.draw(st.sampled_from(names)))
        entries = [self.entry(name, value) for name in names]
        if self.oddly():
            entries.insert(0, self.unknown())
        cut = self.draw(st.integers(0, len(entries)))
        return [self.delimited(field, b"".join(part)) for part in (entries[:cut], entries[cut:]) if part]


@st.composite
def examples(draw: st.DrawFn, odd: tuple[int, ...] = (0, 2, 10, 40)) -> bytes:
    """Examples, from plain ones to ones that are odd at every turn."""
    source = Draw(draw, draw(st.sampled_from(odd)))
    pieces = source.maps(1, source.feature)
    if source.oddly():
        pieces = draw(st.permutations([*pieces, source.unknown(known=(1,))]))
    return b"".join(pieces)


@st.composite
def sequences(draw: st.DrawFn, odd: tuple[int, ...] = (0, 2, 10, 40)) -> bytes:
    """SequenceExamples, likewise."""
    source = Draw(draw, draw(st.sampled_from(odd)))
    pieces = source.maps(1, source.feature) + source.maps(2, source.feature_list)
    if source.oddly():
        pieces = draw(st.permutations([*pieces, source.unknown(known=(1, 2))]))
    return b"".join(pieces)


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


KIND_OF = {"bytes_list": "bytes", "float_list": "float", "int64_list": "int64"}


def exact(kind: str | None, values: Iterable[Any]) -> list[Any]:
    """Values that compare as their bits do: 0.0 is not -0.0, and one NaN is as good as another."""
    if kind != "float":
        return list(values)
    return ["nan" if value != value else struct.pack("<f", value) for value in values]


def of_protobuf(feature: Any) -> tuple[str | None, list[Any]]:
    """Kind and values of a Feature of protobuf's."""
    field = feature.WhichOneof("kind")
    kind = KIND_OF[field] if field else None
    return kind, exact(kind, getattr(feature, field).value) if field else []


def of_recordkit(values: Values, rows: int) -> list[list[Any]]:
    """The values of each record; of each step, for a feature list."""
    flat = values.values.to_list() if isinstance(values.values, BytesColumn) else numbers(values)
    flat = exact(values.kind, flat)
    if values.offsets is not None:
        return [flat[start:stop] for start, stop in pairwise(values.offsets.tolist())]
    assert values.count is not None
    groups = rows if values.steps is None else int(values.steps[-1])
    assert len(flat) == groups * values.count
    return [flat[i * values.count : (i + 1) * values.count] for i in range(groups)]


def numbers(values: Values) -> list[Any]:
    """The flat values of a column of numbers."""
    assert isinstance(values.values, np.ndarray)
    return list(values.values.tolist())


def ragged(kind: Kind, rows: Sequence[Sequence[Any]]) -> Values:
    """A column to encode, of any number of values a row."""
    offsets = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    return Values(kind, _flat(kind, [value for row in rows for value in row]), offsets)


def fixed(kind: Kind, rows: Sequence[Sequence[Any]]) -> Values:
    """A column to encode, of as many values in each row as in the first."""
    return Values(kind, _flat(kind, [value for row in rows for value in row]), count=len(rows[0]) if rows else 0)


def _flat(kind: Kind, values: list[Any]) -> NDArray[np.int64] | NDArray[np.float32] | BytesColumn:
    if kind == "bytes":
        return BytesColumn.of(values)
    return np.array(values, np.int64) if kind == "int64" else np.array(values, np.float32)
