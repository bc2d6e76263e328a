"""Decoding: the features asked for of many payloads, as columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

import numpy as np

from recordkit import _core
from recordkit.columns import BytesColumn
from recordkit.errors import SchemaError, record_place

from ._values import KIND_NUMBERS, KINDS, Kind, Values, malformed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from recordkit.records import Chunk, Reader

_NO_INTS, _NO_FLOATS = np.empty(0, np.int64), np.empty(0, np.float32)

_FEW = 4  # features; with more, the output evicts the records from the nearest cache


@dataclass(frozen=True)
class Feature:
    """A feature to decode.

    Attributes:
        name: Its name in the record.
        kind: `"bytes"`, `"float"` or `"int64"`.
        count: The exact number of values of a record, or of a step of a feature list; None for any.
        missing: What to do if a record does not have it, has it without a kind, or has it empty though `count` is not
            0: raise an `"error"`, or `"mark"` it in `Values.states` and fill in zeros.
        steps: Whether it is a feature list of a SequenceExample.
    """

    name: str
    kind: Kind
    count: int | None = None
    missing: Literal["error", "mark"] = "error"
    steps: bool = False


# Where to find a decoded feature: its number, kind and count, and its slice of a block of numbers.
Place: TypeAlias = tuple[int, Kind, int | None, slice | None]
# The output of the core: blocks of integers and of floats, and one element for each feature outside them.
_Made: TypeAlias = tuple[Any, ...]


class Unread(Protocol):
    """Records in memory that are not in a chunk yet. Each is checked while it is decoded."""

    @property
    def first_record(self) -> int:
        """The number of the first one."""
        ...

    def __len__(self) -> int: ...

    def gathered(self, decoder: _core.Decoder, start: int, stop: int) -> _Made | None:
        """Decode records [start, stop) in the core; None if they must be read first."""
        ...

    def read(self) -> Chunk:
        """Return the records as a chunk."""
        ...


class Decoder:
    """Decodes selected features straight into columns, and skips all others.

    Safe to use from many threads; it releases the GIL. Skipped features are not parsed, so malformed ones go unnoticed
    (the record's checksum is checked all the same).

    Args:
        features: What to decode.
        sequence: Whether the payloads are SequenceExamples.

    >>> from recordkit.examples import Values, encode
    >>> packed = encode({"x": Values("int64", np.array([3, 4]), count=1)}, 2)
    >>> Decoder([Feature("x", "int64", count=1)]).decode(packed)["x"].values
    array([3, 4])
    """

    def __init__(self, features: Iterable[Feature], *, sequence: bool = False) -> None:
        self.features = tuple(features)
        names = [feature.name for feature in self.features]
        if twice := sorted(name for name in set(names) if names.count(name) > 1):
            message = f"features are requested twice: {', '.join(map(repr, twice))}"
            raise ValueError(message)
        for feature in self.features:
            if feature.kind not in KIND_NUMBERS or (feature.count is not None and feature.count < 0):
                message = (
                    f"{feature.name}: expected a kind of bytes, float or int64 and a count from 0 on, found {feature}"
                )
                raise ValueError(message)
        specs = [
            (f.name, KIND_NUMBERS[f.kind], -1 if f.count is None else f.count, f.missing == "error", f.steps)
            for f in self.features
        ]
        self._core = _core.Decoder(specs, sequence)
        # Numbers of a fixed count are in two blocks, feature after feature with a gap between. Kept for each feature:
        # the values of a row and the gaps before it, or -1 if it is in neither block.
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
        self._places: tuple[int, dict[str, Place]] = -1, {}  # one object, so that threads need no lock
        numbers = all(before >= 0 and feature.count == 1 for _, feature, before, _ in self._index.values())
        self._few = numbers and len(self.features) <= _FEW

    def decode(
        self, chunk: Chunk | Unread, start: int = 0, stop: int | None = None, *, path: str | None = None
    ) -> Decoded:
        """Return the features of records [start, stop) of a chunk.

        Args:
            chunk: Records that were checked, or that are checked while they are decoded.
            start: The first record to decode.
            stop: The record to stop before; by default the end of the chunk.
            path: The file the chunk came from, to name in errors.

        Raises:
            SchemaError: A record lacks a feature, or has another kind or count.
            CorruptRecordError: A payload is not a well-formed message.
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

        Equivalent to decoding `reader.read(records)`, but in one go: threads that share a reader wait less for each
        other, and if one to four numbers of small records are selected, each record is decoded while it is in the
        nearest cache.

        Args:
            reader: Where the records come from.
            records: How many; fewer only at the end of the file.

        Raises:
            SchemaError: A record lacks a feature, or has another kind or count.
            CorruptRecordError: A record is damaged, or a payload is not a well-formed message.

        >>> import io
        >>> from recordkit.examples import encode
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
        """Return where to find each feature among this many decoded rows.

        A place is (number, kind, count, slice of `Decoded.ints` or `Decoded.floats`); the slice is None unless the
        feature has a fixed count of numbers.
        """
        known, places = self._places
        if known != rows:
            places = {}
            for name, (i, feature, before, gaps) in self._index.items():
                start = before * rows + gaps
                where = None if before < 0 else slice(start, start + (feature.count or 0) * rows)
                places[name] = (i, feature.kind, feature.count, where)
            self._places = rows, places  # the next chunk mostly has as many
        return places

    def _error(self, fault: tuple[Any, ...], chunk: Chunk, path: str | None) -> Exception:
        what, wire, record, byte, field, found_kind, found_count = fault
        number = chunk.first_record + record
        feature = self.features[field] if field >= 0 else None
        if what == 1:
            return malformed(chunk, record, wire, byte, path, feature.name if feature else None)
        assert feature is not None
        expected = _expectation(feature)
        found = ("", "", "nothing", KINDS[found_kind], f"{found_count} values")[what]
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


class Decoded:
    """The features that a `Decoder` decoded: `Values` by name, assembled on access.

    Attributes:
        first_record: The number of the first record in its file.
        ints: The values of all features with a fixed count of integers, feature after feature.
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
