"""Source: the records of a dataset, as pipelines read them."""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from recordkit.errors import CorruptRecordError, SchemaError
from recordkit.pipeline import TracedElements, traced
from recordkit.storage import files_at_once, permissions_of
from recordkit.wording import counted

from ._decoding import ColumnDecoder, PayloadDecoder
from ._in_order import OrderedBatches
from ._overlaid import OverlaidDecoder
from ._tolerant import TolerantDecoder

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from recordkit.pipeline import Section

    from ._decoding import BatchDecoder, RecordRange
    from ._sequence import FetchedRecords, RecordSequence

_AHEAD_BYTES = 128 << 20  # of compressed files, whose records are had by decompressing many others
_AHEAD_BYTES_OF_MANY = 32 << 20  # of more files than stay open, each of which is opened once for all of its records
_AHEAD_OF_EACH = 16  # records of such a file
_WORTH_IT = 4  # records of each: for fewer, opening it once for all saves little
_AT_FIRST = 64  # times less is read before there is anything to give


@dataclass(frozen=True)
class DatasetSource:
    """Records [start, stop) of a dataset, and what is made of them."""

    records: RecordSequence
    making: BatchDecoder
    name: str
    start: int = 0
    stop: int | None = None

    @cached_property
    def indexed(self) -> bool:
        """Whether a record can be had by its number: not from a pipe."""
        return not any(not file.file.seekable for file in self.records.files)

    @property
    def lists(self) -> bool:
        """Whether a batch of them is a list."""
        return isinstance(self.making, PayloadDecoder)

    @property
    def exact(self) -> bool:
        """Whether every record gives an element: none is passed over."""
        return not self.records.tolerant

    @property
    def ends(self) -> NDArray[np.int64]:
        """The number of records up to the end of each file."""
        return np.clip(self.records.ends - self.start, 0, self.count())

    @property
    def mean_bytes(self) -> int:
        """About how large a record is."""
        return self.records.mean_bytes

    @property
    def exact_mean_bytes(self) -> int:
        """How large a record is on average, the same for the same records, however they are stored."""
        return self.records.exact_mean_bytes

    @cached_property
    def ahead_bytes(self) -> int | None:
        """How much should be read at once."""
        files = self.records.files
        if any(file.compression is not None for file in files):
            return _AHEAD_BYTES
        each = len(files) * self.mean_bytes
        many = len(files) > files_at_once() and _WORTH_IT * each <= _AHEAD_BYTES_OF_MANY
        return min(_AHEAD_OF_EACH * each, _AHEAD_BYTES_OF_MANY) if many else None

    @property
    def first_bytes(self) -> int | None:
        """How much of that at first."""
        compressed = self.ahead_bytes == _AHEAD_BYTES
        return None if self.ahead_bytes is None or compressed else self.ahead_bytes // _AT_FIRST

    def count(self) -> int:
        """Return how many records there are."""
        count = self.records.count
        return max(0, (count if self.stop is None else min(count, self.stop)) - self.start)

    def place(self, number: int) -> str:
        """Name the file and record of a number."""
        path, record = self.records.named(number + self.start)
        return f"{path}: record {record}"

    def digest(self) -> str:
        """Return what tells these records from all others."""
        facts = hashlib.sha256(f"{self.start} {self.stop}".encode())
        for file in self.records.files:
            facts.update(self.records.digest_of(file).encode())
        return facts.hexdigest()[:32]

    def permissions(self) -> int | None:
        """Return the permissions that all files allow; None if none is on this machine."""
        paths = [file.local.path for file in self.records.files if file.local is not None]
        return permissions_of(*paths) if paths else None

    def made(self) -> list[Any]:
        """Return what is made of the records, as far as can be told: which fields, and what was added beside them."""
        making = self.making
        if isinstance(making, ColumnDecoder):
            return [making.schema.to_dict(), making.names]
        if not isinstance(making, OverlaidDecoder):
            return [type(making).__name__]
        added = [(columns.schema.to_dict(), columns.names) for _, columns in making.added]
        beside = [[file.digest for file in layer.files.values()] for layer, _ in making.added]
        return [making.base.schema.to_dict(), making.base.names, added, beside, making.order]

    def words(self) -> str:
        """Return how many there are, for people."""
        count = f"{self.count():,} records in " if self.indexed else ""
        return f"{self.name}: {count}{counted(len(self.records.files), 'file')}"

    def expect(self, count: int) -> None:
        """Take notice that so many records will be asked for, anywhere among them."""
        files, total = self.records.files, max(1, self.count())
        if len(files) <= files_at_once():
            for file, records in zip(files, np.diff(self.ends, prepend=0).tolist(), strict=True):
                file.will_be_read(records * count // total)

    def load(self, numbers: NDArray[np.int64]) -> _Selection:
        """Read records."""
        return _Selection(self, numbers + self.start)

    def stream(
        self, first: int, count: int | None, size: int, section: Section, workers: int
    ) -> Iterator[tuple[TracedElements, list[float], float]]:
        """Yield what becomes of records from number `first` on, with the seconds of each step and of decoding."""
        if self.stop is not None:
            left = max(0, self.stop - self.start - first)
            count = left if count is None else min(count, left)
        if self.exact:
            yield from self._flow(first, count, size, Through(self.making, section), workers, several=section.pads)
            return
        # Which records are passed over is known when they are read, so all before `first` are read again.
        at = 0
        log = self.records.log
        before = len(log.damage)
        for values in self._flow(0, None, size, TolerantDecoder(self.making, log), workers):
            start = min(len(values), max(0, first - at))
            stop = len(values) if count is None else min(len(values), first + count - at)
            at += len(values)
            if start < stop:
                yield _sectioned(values, start, stop, section)
            if count is not None and at >= first + count:
                break
        log.say(before)

    def _flow(
        self, first: int, count: int | None, size: int, making: Any, workers: int, *, several: bool = False
    ) -> Iterator[Any]:
        records, first = self.records, first + self.start
        at = 0
        if first:
            if first >= records.count:
                return
            at, first = records.place(first)
        yield from OrderedBatches(records.files[at:], first, count, size, making, records, workers, several=several)


def _sectioned(values: Any, start: int, stop: int, section: Section) -> tuple[TracedElements, list[float], float]:
    some = values[start:stop] if isinstance(values, list) else values.take(slice(start, stop))
    return (*section.run(traced(some), lambda i: f"row {i} of {stop - start}"), 0.0)


@dataclass(frozen=True)
class Through:
    """A making whose records go through the steps of a pipeline at once, by whoever has decoded them."""

    making: BatchDecoder
    section: Section

    def batch(self, part: RecordRange, start: int, stop: int) -> Any:
        """Return what records [start, stop) of a part become."""
        begun = time.perf_counter()
        values = self.making.batch(part, start, stop)
        return self._run(values, _RecordNames([part], start), begun)

    def joined(self, parts: Sequence[RecordRange]) -> Any:
        """Return what the records of all parts become."""
        begun = time.perf_counter()
        return self._run(self.making.joined(parts), _RecordNames(parts), begun)

    def _run(self, values: Any, places: _RecordNames, begun: float) -> tuple[TracedElements, list[float], float]:
        decoding = time.perf_counter() - begun
        return (*self.section.run(traced(values), places.name), decoding)

    def row(self, part: RecordRange) -> Any:
        """Return what the first record of a part makes."""
        return self.making.row(part)

    def rows(self, batch: Any) -> Iterable[Any]:
        """Return the rows of what the making returned."""
        return self.making.rows(batch)

    def check(self, batch: Any) -> None:
        """Raise if there is anything wrong that would only show later."""
        self.making.check(batch)


class _RecordNames:
    """Names the records of parts from the `first` on, if anybody asks."""

    __slots__ = ("_first", "_parts")

    def __init__(self, parts: Sequence[RecordRange], first: int = 0) -> None:
        self._parts, self._first = parts, first

    def name(self, at: int) -> str:
        at += self._first
        for part in self._parts:
            if at < len(part.chunk):
                return f"{part.path}: record {int(part.record_numbers(at, at + 1)[0])}"
            at -= len(part.chunk)
        return f"row {at}"


class _Selection:
    """Records that were read, to be decoded some at a time."""

    def __init__(self, source: DatasetSource, numbers: NDArray[np.int64]) -> None:
        self._source = source
        self._numbers = numbers
        self._fetched: FetchedRecords | None = None
        try:
            self._fetched = source.records.fetched(numbers, source.making)
        except CorruptRecordError:
            if source.exact:
                raise

    def piece(self, start: int, stop: int) -> TracedElements:
        """Return records [start, stop) of them as elements; those that are damaged may be lacking."""
        records, making = self._source.records, self._source.making
        if self._source.exact:
            assert self._fetched is not None
            return traced(self._fetched.values(start, stop))
        try:
            if self._fetched is not None:
                values = self._fetched.values(start, stop)
                making.check(values)
                return traced(values)
        except (SchemaError, CorruptRecordError):
            pass
        good = np.flatnonzero([records.is_good(number, making) for number in self._numbers[start:stop].tolist()])
        if not len(good):
            return TracedElements(making.joined([]), [], stop - start)
        values = records.fetched(self._numbers[start:stop][good], making).values(0, len(good))
        return TracedElements(values, (good + 1).tolist(), stop - start)
