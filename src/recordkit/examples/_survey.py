"""Survey: the features of many payloads, and what TensorFlow would read differently."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from recordkit import _core

from ._values import KIND_NUMBERS, malformed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from typing_extensions import Buffer

    from recordkit.errors import CorruptRecordError
    from recordkit.records import Chunk

    from ._values import Kind


@dataclass(frozen=True)
class FeatureFacts:
    """Facts about one feature of many records. In a feature list, counts are per step.

    Attributes:
        records: The number of records that have it, in any state.
        kinds: The kinds it has in these records.
        no_kind: The number of records that have it without a kind.
        empty: The number of records that have it with an empty list.
        min_count: The fewest values of a record in which it has a kind; 0 if there is none.
        max_count: The most values.
        bytes_values: The number of bytes values.
        min_bytes: The shortest of them.
        max_bytes: The longest of them.
        min_steps: The fewest steps of a feature list.
        max_steps: The most steps.
        min_int: The least int64 value; None without any.
        max_int: The greatest int64 value.
        utf8: Whether it has bytes values and all of them are UTF-8.
        jpeg: Whether all bytes values start as a JPEG does.
        png: Whether all bytes values start as a PNG does.
    """

    records: int
    kinds: frozenset[Kind]
    no_kind: int
    empty: int
    min_count: int
    max_count: int
    bytes_values: int
    min_bytes: int
    max_bytes: int
    min_steps: int
    max_steps: int
    min_int: int | None
    max_int: int | None
    utf8: bool
    jpeg: bool
    png: bool

    def merge(self, other: FeatureFacts) -> FeatureFacts:
        """Return the facts of both sets of records."""
        one, two = self, other
        with_bytes = [facts for facts in (one, two) if facts.bytes_values]
        ints = [value for value in (one.min_int, one.max_int, two.min_int, two.max_int) if value is not None]
        return FeatureFacts(
            records=one.records + two.records,
            kinds=one.kinds | two.kinds,
            no_kind=one.no_kind + two.no_kind,
            empty=one.empty + two.empty,
            min_count=min((facts.min_count for facts in (one, two) if facts.kinds), default=0),
            max_count=max(one.max_count, two.max_count),
            bytes_values=one.bytes_values + two.bytes_values,
            min_bytes=min((facts.min_bytes for facts in with_bytes), default=0),
            max_bytes=max(one.max_bytes, two.max_bytes),
            min_steps=min(one.min_steps, two.min_steps),
            max_steps=max(one.max_steps, two.max_steps),
            min_int=min(ints, default=None),
            max_int=max(ints, default=None),
            utf8=bool(with_bytes) and all(facts.utf8 for facts in with_bytes),
            jpeg=bool(with_bytes) and all(facts.jpeg for facts in with_bytes),
            png=bool(with_bytes) and all(facts.png for facts in with_bytes),
        )


@dataclass(frozen=True)
class Survey:
    """Facts about many payloads of unknown contents.

    Attributes:
        rows: The number of payloads.
        message: `"Example"`, `"SequenceExample"`, or `"other"` if a payload is neither.
        features: Facts about each feature; in a SequenceExample, of the context.
        lists: Facts about each feature list.
        problem: Why a payload is neither.
    """

    rows: int
    message: Literal["Example", "SequenceExample", "other"]
    features: Mapping[str, FeatureFacts]
    lists: Mapping[str, FeatureFacts]
    problem: CorruptRecordError | None = None

    def merge(self, other: Survey) -> Survey:
        """Return the facts of both sets of payloads."""
        messages = {self.message, other.message}
        message: Literal["Example", "SequenceExample", "other"] = "Example"
        if "other" in messages:
            message = "other"
        elif "SequenceExample" in messages:
            message = "SequenceExample"
        return Survey(
            self.rows + other.rows,
            message,
            _merge(self.features, other.features),
            _merge(self.lists, other.lists),
            self.problem or other.problem,
        )


def _merge(one: Mapping[str, FeatureFacts], two: Mapping[str, FeatureFacts]) -> dict[str, FeatureFacts]:
    merged = dict(one)
    for name, facts in two.items():
        merged[name] = merged[name].merge(facts) if name in merged else facts
    return merged


def survey(chunk: Chunk, start: int = 0, stop: int | None = None, *, path: str | None = None) -> Survey:
    """Return facts about the payloads of a chunk.

    >>> import numpy as np
    >>> from recordkit.examples import Values, encode
    >>> packed = encode({"x": Values("int64", np.array([5, 7]), count=1)}, 2)
    >>> facts = survey(packed).features["x"]
    >>> sorted(facts.kinds), facts.records, facts.min_int, facts.max_int
    (['int64'], 2, 5, 7)
    """
    found = _core.survey(chunk, start, len(chunk) if stop is None else stop)
    problem = None
    message: Literal["Example", "SequenceExample", "other"] = "SequenceExample" if found["with_lists"] else "Example"
    if found["malformed"]:
        wire, record, byte = found["malformed"]
        problem, message = malformed(chunk, record, wire, byte, path), "other"
    features = {name: _facts(raw) for name, raw in found["features"].items()}
    lists = {name: _facts(raw) for name, raw in found["lists"].items()}
    return Survey(found["records"], message, features, lists, problem)


def _facts(raw: dict[str, Any]) -> FeatureFacts:
    kinds: frozenset[Kind] = frozenset(kind for kind in KIND_NUMBERS if raw[kind])  # type: ignore[misc]
    has_bytes, has_ints = raw["bytes_values"] > 0, raw["max_int"] >= raw["min_int"]
    return FeatureFacts(
        records=raw["records"],
        kinds=kinds,
        no_kind=raw["no_kind"],
        empty=raw["empty"],
        min_count=raw["min_count"] if kinds else 0,
        max_count=raw["max_count"],
        bytes_values=raw["bytes_values"],
        min_bytes=raw["min_bytes"] if has_bytes else 0,
        max_bytes=raw["max_bytes"],
        min_steps=raw["min_steps"] if raw["max_steps"] >= raw["min_steps"] else 0,
        max_steps=raw["max_steps"],
        min_int=raw["min_int"] if has_ints else None,
        max_int=raw["max_int"] if has_ints else None,
        utf8=has_bytes and raw["utf8"],
        jpeg=has_bytes and raw["jpeg"],
        png=has_bytes and raw["png"],
    )


# A kind and a sentence for each finding, in the order of the core's enum.
_LINTS = (
    ("repeated_name", "has several entries; TensorFlow warns on every record, and may use an earlier one"),
    ("no_name_or_value", "is an entry without exactly one name and one value; TensorFlow refuses the record"),
    ("unknown_field", "holds a field that Example does not define; TensorFlow refuses the record"),
    ("several_chunks", "has its values in several chunks; TensorFlow reads the first and drops the rest"),
    ("repeated_list", "has its list several times; TensorFlow reads the first and drops the rest"),
    ("several_kinds", "has lists of several kinds; TensorFlow takes the first, protobuf the last"),
    ("value_before_name", "has its value before its name, which TensorFlow refuses in a SequenceExample"),
    ("long_tag", "holds a tag in more bytes than it needs; TensorFlow refuses the record"),
)


@dataclass(frozen=True)
class Finding:
    """Something in a payload that TensorFlow reads differently from protobuf and recordkit.

    Attributes:
        record: The number of the record.
        byte: The position in its payload.
        field: The name of the feature; empty if it belongs to none.
        kind: A word such as `"repeated_name"`.
    """

    record: int
    byte: int
    field: str
    kind: str

    def __str__(self) -> str:
        what = repr(self.field) if self.field else "the message"
        return f"record {self.record}, byte {self.byte}: {what} {dict(_LINTS)[self.kind]}"


def lint(payloads: Chunk | Iterable[Buffer], *, sequence: bool = False) -> list[Finding]:
    """Return what protobuf reads, but TensorFlow reads differently or refuses.

    >>> twice = bytes.fromhex("0a0c0a0a0a017812051a030a0101") * 2
    >>> print(lint([twice])[0])
    record 0, byte 16: 'x' has several entries; TensorFlow warns on every record, and may use an earlier one
    """
    first = payloads.first_record if isinstance(payloads, _core.Chunk) else 0
    return [
        Finding(first + number, byte, name, _LINTS[kind][0])
        for number, payload in enumerate(payloads)
        for kind, byte, name in _core.lint(payload, sequence)
    ]
