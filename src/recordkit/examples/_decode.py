"""Examples: the wire format of tf.train.Example and tf.train.SequenceExample.

Payloads become columns and columns payloads; features are appended, dropped and renamed on the wire. Knows kinds and
counts, not dtypes and shapes: that is `recordkit.schema`. The format is written down in docs/format/examples.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

import numpy as np

from recordkit import _core
from recordkit.columns import BytesColumn
from recordkit.errors import CorruptRecordError, MalformedPayloadError, SchemaError, record_place

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from numpy.typing import NDArray
    from typing_extensions import Buffer

    from recordkit.records import Chunk, Reader

__all__ = [
    "EMPTY",
    "MISSING",
    "NO_KIND",
    "PRESENT",
    "Decoded",
    "Decoder",
    "Feature",
    "FeatureFacts",
    "Finding",
    "Survey",
    "Values",
    "cut",
    "edit",
    "encode",
    "lint",
    "survey",
]

Kind: TypeAlias = Literal["bytes", "float", "int64"]
_KINDS: tuple[str, ...] = ("none", "bytes", "float", "int64")
_KIND_NUMBERS = {"bytes": 1, "float": 2, "int64": 3}

# What a record says of a feature; the core's numbers.
MISSING, NO_KIND, EMPTY, PRESENT = 0, 1, 2, 3

_NO_INTS, _NO_FLOATS = np.empty(0, np.int64), np.empty(0, np.float32)

_FEW = 4  # features: with more, what is decoded drives the records out of the nearest cache

# One sentence a fault, in the order of the core's enum.
_WIRE_FAULTS = (
    "",
    "a number is cut off or longer than ten bytes",
    "there is no such field: a tag is malformed",
    "a length reaches beyond the message it stands in",
    "the name of a feature is not UTF-8",
    "a list of floats is not a multiple of four bytes long",
)


@dataclass(frozen=True)
class Feature:
    """A feature to decode.

    Attributes:
        name: As it stands in the record.
        kind: `"bytes"`, `"float"` or `"int64"`.
        count: Exactly how many values a record has, or a step of a feature list; None for any number.
        missing: What to do about a record that does not have it, has it with no kind set, or has it empty where
            `count` says otherwise: `"error"`, or `"mark"` to fill in zeros and say so in `Values.states`.
        steps: Whether it is a feature list of a SequenceExample.
    """

    name: str
    kind: Kind
    count: int | None = None
    missing: Literal["error", "mark"] = "error"
    steps: bool = False


@dataclass(slots=True, eq=False)
class Values:
    """One feature of many records, as it stands on the wire.

    Attributes:
        kind: `"bytes"`, `"float"` or `"int64"`.
        values: The values of all records, back to back; byte strings may also be a list of `bytes`.
        offsets: Which values are a record's (a step's, with `steps`); None where each has exactly `count`.
        count: The number of values where it is fixed.
        steps: Which steps are a record's, for feature lists.
        states: MISSING, NO_KIND, EMPTY or PRESENT for each record; None where all are present.
    """

    kind: Kind
    values: NDArray[np.int64] | NDArray[np.float32] | BytesColumn | list[bytes]
    offsets: NDArray[np.int64] | None = None
    count: int | None = None
    steps: NDArray[np.int64] | None = None
    states: NDArray[np.uint8] | None = None


def cut(column: Values, start: int, stop: int) -> Values:
    """Return the feature of records [start, stop), over the same memory.

    >>> tokens = Values("int64", np.array([1, 2, 3, 4]), offsets=np.array([0, 1, 1, 4]))
    >>> cut(tokens, 1, 3).values.tolist(), cut(tokens, 1, 3).offsets.tolist()
    ([2, 3, 4], [0, 0, 3])
    """
    states = None if column.states is None else column.states[start:stop]
    steps = column.steps
    if steps is not None:
        steps, start, stop = steps[start : stop + 1] - steps[start], int(steps[start]), int(steps[stop])
    offsets = column.offsets
    if offsets is not None:
        offsets, start, stop = offsets[start : stop + 1] - offsets[start], int(offsets[start]), int(offsets[stop])
    elif column.count is not None:
        start, stop = start * column.count, stop * column.count
    values = column.values
    if isinstance(values, BytesColumn):
        places = values.offsets[start : stop + 1]
        values = BytesColumn(values.data[int(places[0]) : int(places[-1])], places - places[0], text=values.text)
    else:
        values = values[start:stop]
    return Values(column.kind, values, offsets, column.count, steps, states)


# Where a feature stands in what is decoded: its number, its kind, its count, and its part of a block of numbers.
Place: TypeAlias = tuple[int, Kind, int | None, slice | None]
# What the core makes of records: blocks of integers and floats, and what is in neither, an element a feature.
_Made: TypeAlias = tuple[Any, ...]


class Unread(Protocol):
    """Records that are somewhere in memory, and not in a chunk yet: each is checked when it is decoded."""

    @property
    def first_record(self) -> int:
        """The number of the first of them."""
        ...

    def __len__(self) -> int: ...

    def gathered(self, decoder: _core.Decoder, start: int, stop: int) -> _Made | None:
        """Return what the core's decoder makes of records [start, stop); None if they have to be read for that."""
        ...

    def read(self) -> Chunk:
        """Return them in a chunk."""
        ...


class Decoder:
    """Decodes the features asked for, straight into columns; all others are stepped over.

    Safe to use from many threads; the work is done without the GIL. A feature that is not asked for is not looked
    into, so damage inside it goes unnoticed (the record's checksum has been checked all the same).

    Args:
        features: What to decode.
        sequence: Whether the payloads are SequenceExamples.

    >>> from recordkit.records import pack_many
    >>> packed = encode({"x": Values("int64", np.array([3, 4]), count=1)}, 2)
    >>> Decoder([Feature("x", "int64", count=1)]).decode(packed)["x"].values
    array([3, 4])
    """

    def __init__(self, features: Iterable[Feature], *, sequence: bool = False) -> None:
        self.features = tuple(features)
        names = [feature.name for feature in self.features]
        if twice := sorted(name for name in set(names) if names.count(name) > 1):
            message = f"features are asked for twice: {', '.join(map(repr, twice))}"
            raise ValueError(message)
        for feature in self.features:
            if feature.kind not in _KIND_NUMBERS or (feature.count is not None and feature.count < 0):
                message = (
                    f"{feature.name}: expected a kind of bytes, float or int64 and a count from 0 on, found {feature}"
                )
                raise ValueError(message)
        specs = [
            (f.name, _KIND_NUMBERS[f.kind], -1 if f.count is None else f.count, f.missing == "error", f.steps)
            for f in self.features
        ]
        self._core = _core.Decoder(specs, sequence)
        # Numbers of a fixed count stand in two blocks, one feature behind the other with a gap between: for each
        # feature how many values a row and how many gaps are before it, or -1 where it is in neither block.
        self._index: dict[str, tuple[int, Feature, int, int]] = {}
        gap = _core.block_gap()
        width, gaps = {"int64": 0, "float": 0}, {"int64": 0, "float": 0}
        for i, feature in enumerate(self.features):
            kind = feature.kind
            if feature.count is None or feature.steps or kind == "bytes":
                self._index[feature.name] = (i, feature, -1, 0)
                continue
            self._index[feature.name] = (i, feature, width[kind], gaps[kind])
            width[kind] += feature.count
            gaps[kind] += gap
        self._places: tuple[int, dict[str, Place]] = -1, {}  # one object: threads look at it without a lock
        numbers = all(before >= 0 and feature.count == 1 for _, feature, before, _ in self._index.values())
        self._few = numbers and len(self.features) <= _FEW

    def decode(
        self, chunk: Chunk | Unread, start: int = 0, stop: int | None = None, *, path: str | None = None
    ) -> Decoded:
        """Return the features of records [start, stop) of a chunk.

        Args:
            chunk: Records whose checksums are right, or such as are checked while they are decoded.
            start: The first record to decode.
            stop: The record to stop before; by default the end of the chunk.
            path: The file the chunk came from, to name in errors.

        Raises:
            SchemaError: When a record lacks a feature, or has another kind or count.
            CorruptRecordError: When a payload is not a well-formed message.
        """
        if stop is None:
            stop = len(chunk)
        places = self.places(stop - start)
        if not isinstance(chunk, _core.Chunk):
            gathered = chunk.gathered(self._core, start, stop)
            if gathered is not None:
                return Decoded(gathered, places, stop - start, chunk.first_record + start)
            chunk = chunk.read()
        made = self._core.decode(chunk, start, stop)
        if len(made) != 3:
            raise self._error(made, chunk, path)
        return Decoded(made, places, stop - start, chunk.first_record + start)

    def read(self, reader: Reader, records: int) -> Decoded | None:
        """Return the features of the next records of a reader, or None at its end.

        The same as decoding what `reader.read(records)` returns, in one go: threads that share a reader get less into
        each other's way, and where one to four numbers of small records are asked for, each record is decoded while it
        is in the nearest cache.

        Args:
            reader: Where the records come from.
            records: Exactly how many, unless the file ends before.

        Raises:
            SchemaError: When a record lacks a feature, or has another kind or count.
            CorruptRecordError: When a record is not sound, or a payload is not a well-formed message.

        >>> import io
        >>> from recordkit.records import Reader
        >>> packed = encode({"x": Values("int64", np.array([1, 2, 3]), count=1)}, 3)
        >>> reader, decoder = Reader(io.BytesIO(packed)), Decoder([Feature("x", "int64", 1)])
        >>> while (decoded := decoder.read(reader, 2)) is not None:
        ...     print(decoded.first_record, decoded["x"].values.tolist())
        0 [1, 2]
        2 [3]
        """
        found = reader.decoded(self._core, records, few_fields=self._few)
        if isinstance(found, tuple):
            first, made = found
            return Decoded(made, self.places(records), records, first)
        return None if found is None else self.decode(found, path=reader.path)

    def places(self, rows: int) -> dict[str, Place]:
        """Return where each feature stands in what is decoded of so many rows.

        That is (its number, its kind, its count, and which numbers of `Decoded.ints` or `Decoded.floats` are its own);
        the last is None if its count of numbers is not fixed.
        """
        known, places = self._places
        if known != rows:
            places = {}
            for name, (i, feature, before, gaps) in self._index.items():
                start = before * rows + gaps
                where = None if before < 0 else slice(start, start + (feature.count or 0) * rows)
                places[name] = (i, feature.kind, feature.count, where)
            self._places = rows, places  # mostly the next have as many
        return places

    def _error(self, fault: tuple[Any, ...], chunk: Chunk, path: str | None) -> Exception:
        what, wire, record, byte, field, found_kind, found_count = fault
        number = chunk.first_record + record
        feature = self.features[field] if field >= 0 else None
        if what == 1:
            return _malformed(chunk, record, wire, byte, path, feature.name if feature else None)
        assert feature is not None
        expected = _expectation(feature)
        found = ("", "", "nothing", _KINDS[found_kind], f"{found_count} values")[what]
        if what == 3 and found_kind == 0:
            found = "a step with no kind set"
        where = f"In {record_place(path, number, int(chunk.offsets[record]))}."
        text = f"{feature.name}: expected {expected}, found {found}"
        return SchemaError(
            text, where=where, field=feature.name, record=number, path=path, expected=expected, found=found
        )


def _expectation(feature: Feature) -> str:
    if feature.count is None:
        return f"a list of {feature.kind}"
    plural = "value" if feature.count == 1 else "values"
    step = " a step" if feature.steps else ""
    return f"{feature.count} {feature.kind} {plural}{step}"


def _malformed(
    chunk: Chunk, record: int, wire: int, byte: int, path: str | None, field: str | None = None
) -> CorruptRecordError:
    number, offset = chunk.first_record + record, int(chunk.offsets[record])
    inside = f" in {field!r}" if field else ""
    at = f"at byte {byte} of {len(chunk[record])}{inside}"
    return MalformedPayloadError(
        f"the payload is not a well-formed Example: {_WIRE_FAULTS[wire]}, {at}",
        place=record_place(path, number, offset),
        advice="Its checksum is right, so it was written like this; it may hold another kind of message.",
        path=path,
        record=number,
        offset=offset,
        byte=byte,
        kind="malformed",
        field=field,
    )


class Decoded:
    """What a `Decoder` made of some records: `Values` by name, put together when asked for.

    Attributes:
        first_record: The number of the first of them in its file.
        ints: The values of all features that have a fixed count of integers, one feature behind the other.
        floats: The same for floats.
    """

    __slots__ = ("_parts", "_places", "_rows", "first_record", "floats", "ints")

    def __init__(self, made: _Made, places: dict[str, Place], rows: int, first_record: int) -> None:
        ints, floats, self._parts = made
        self.ints = _NO_INTS if ints is None else ints
        self.floats = _NO_FLOATS if floats is None else floats
        self._places, self._rows, self.first_record = places, rows, first_record

    def __len__(self) -> int:
        return self._rows

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __getitem__(self, name: str) -> Values:
        i, kind, count, where = self._places[name]
        part = self._parts[i] if self._parts else None
        if where is not None:
            numbers = (self.ints if kind == "int64" else self.floats)[where]
            return Values(kind, numbers, None, count, None, part[0] if part else None)
        assert part is not None
        states, values, byte_offsets, offsets, steps = part
        if kind == "bytes":
            return Values("bytes", BytesColumn(values, byte_offsets), offsets, count, steps, states)
        return Values(kind, values, offsets, count, steps, states)


def encode(columns: Mapping[str, Values], rows: int, *, sequence: bool = False) -> Chunk:
    """Return `rows` framed records with the given features, in the order of the mapping.

    Where `states` says MISSING or NO_KIND the feature is left out of the record; a record without values gets an empty
    list.

    Raises:
        SchemaError: When offsets and values do not fit each other, or a payload would reach 2 GiB, protobuf's limit.

    >>> packed = encode({"x": Values("int64", np.array([1]), count=1)}, 1)
    >>> packed[0].hex()
    '0a0c0a0a0a017812051a030a0101'
    """
    for name, column in columns.items():
        if column.steps is not None and not sequence:
            message = f"{name}: a feature list needs a SequenceExample\n  Pass sequence=True."
            raise SchemaError(message, field=name)
    sources = [_source(name, column) for name, column in columns.items()]
    fault, at, chunk = _core.encode(sources, rows, sequence)
    if fault == 1:
        name = list(columns)[at]
        message = f"{name}: its offsets do not fit its values, or the number of rows, {rows}"
        raise SchemaError(message, field=name)
    if fault == 2:
        message = f"row {at}: the record would be 2 GiB or more, which protobuf cannot read\n  Split it into several."
        raise SchemaError(message, record=at)
    return chunk


def _source(name: str, column: Values) -> tuple[Any, ...]:
    kind, steps, states = _KIND_NUMBERS[column.kind], column.steps, column.states
    count = -1 if column.offsets is not None or column.count is None else column.count
    values: Any = column.values
    byte_offsets = None
    if isinstance(values, BytesColumn):
        values, byte_offsets = values.data, _contiguous(values.offsets)
    return (
        name,
        kind,
        steps is not None,
        count,
        values if isinstance(values, list) else _contiguous(values),
        byte_offsets,
        _contiguous(column.offsets),
        _contiguous(steps),
        _contiguous(states),
    )


def _contiguous(array: NDArray[Any] | None) -> NDArray[Any] | None:
    return array if array is None or array.flags.c_contiguous else np.ascontiguousarray(array)


def edit(
    chunk: Chunk,
    *,
    drop: Iterable[str] = (),
    rename: Mapping[str, str] | None = None,
    append: Mapping[str, Values] | None = None,
    replace: bool = False,
    sequence: bool = False,
    path: str | None = None,
) -> Chunk:
    """Return the records with features changed on the wire; all else is copied byte for byte and not decoded.

    Args:
        chunk: The records to change.
        drop: Features to take out, where a record has them.
        rename: Old names and new ones. A record that has the new name already is an error.
        append: Features to put at the end of each record, one row a record. Of a SequenceExample, context features.
        replace: Whether `append` may take the place of features that are there; otherwise they are an error.
        sequence: Whether `drop` and `rename` mean feature lists of a SequenceExample too.
        path: The file the chunk came from, to name in errors.

    >>> packed = encode({"x": Values("int64", np.array([1]), count=1)}, 1)
    >>> longer = edit(packed, append={"y": Values("int64", np.array([2]), count=1)})
    >>> survey(edit(longer, rename={"x": "z"})).features.keys()
    dict_keys(['y', 'z'])
    """
    added, renamed = dict(append or {}), dict(rename or {})
    given = [*renamed.values(), *added]
    if twice := sorted(name for name in set(given) if given.count(name) > 1):
        message = f"{twice[0]}: two features would get this name"
        raise SchemaError(message, field=twice[0])
    tail = encode(added, len(chunk)) if added else None
    # A name that is given away by `rename` is free.
    in_the_way = set(added) - set(renamed)
    replaced, absent = (in_the_way, set()) if replace else (set(), in_the_way)
    fault, wire, record, byte, name, changed = _core.rewrite(
        chunk, set(drop), renamed, replaced, absent, sequence, tail
    )
    if fault == 1:
        raise _malformed(chunk, record, wire, byte, path)
    if fault:
        number = chunk.first_record + record
        where = f"{path}: record {number}" if path else f"record {number}"
        if fault == 2:
            way_out = f"drop=[{name!r}]" if name in renamed.values() else "replace=True"
            text = f"{name}: the record has a feature of this name already\n  In {where}. To replace it: {way_out}."
            raise SchemaError(text, field=name, record=number, path=path)
        text = f"{where}: with the new features it would be 2 GiB or more, which protobuf cannot read"
        raise SchemaError(text, record=number, path=path)
    return changed


@dataclass(frozen=True)
class FeatureFacts:
    """What many records say of one feature. Of a feature list, counts are a step's.

    Attributes:
        records: How many have it, whatever its state.
        kinds: The kinds it was seen with.
        no_kind: How many have it with no kind set.
        empty: How many have it with a list that is empty.
        min_count: The fewest values where a kind is set; 0 where it never is.
        max_count: The most values.
        bytes_values: How many bytes values there are.
        min_bytes: The shortest of them.
        max_bytes: The longest of them.
        min_steps: The fewest steps, of a feature list.
        max_steps: The most steps.
        min_int: The least int64 value; None where there is none.
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
    """What many payloads hold, without anything known of them before.

    Attributes:
        rows: How many payloads were looked at.
        message: `"Example"`, `"SequenceExample"`, or `"other"` where a payload is neither.
        features: Facts of each feature; of a SequenceExample, its context.
        lists: Facts of each feature list.
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
    """Return what the payloads of a chunk hold.

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
        problem, message = _malformed(chunk, record, wire, byte, path), "other"
    features = {name: _facts(raw) for name, raw in found["features"].items()}
    lists = {name: _facts(raw) for name, raw in found["lists"].items()}
    return Survey(found["records"], message, features, lists, problem)


def _facts(raw: dict[str, Any]) -> FeatureFacts:
    kinds: frozenset[Kind] = frozenset(kind for kind in _KIND_NUMBERS if raw[kind])  # type: ignore[misc]
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


# One kind and one sentence a finding, in the order of the core's enum.
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
    """Something in a payload that TensorFlow reads another way than protobuf, and than recordkit.

    Attributes:
        record: The number of the record.
        byte: Where in its payload.
        field: The feature's name; empty where it belongs to none.
        kind: One word for what it is, such as `"repeated_name"`.
    """

    record: int
    byte: int
    field: str
    kind: str

    def __str__(self) -> str:
        what = repr(self.field) if self.field else "the message"
        return f"record {self.record}, byte {self.byte}: {what} {dict(_LINTS)[self.kind]}"


def lint(payloads: Chunk | Iterable[Buffer], *, sequence: bool = False) -> list[Finding]:
    """Return what TensorFlow would read differently, or refuse, though protobuf reads it.

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
