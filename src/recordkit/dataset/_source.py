"""The records of a dataset as a source for pipelines."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from recordkit.errors import CorruptRecordError, SchemaError
from recordkit.filesystems import files_at_once, permissions_of
from recordkit.pipeline import TracedElements, traced
from recordkit.wording import counted

from ._in_order import OrderedBatches
from ._tolerant import TolerantDecoder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from recordkit.pipeline import Section

    from ._decoding import BatchDecoder
    from ._sequence import FetchedRecords, RecordSequence

_AHEAD_BYTES = 128 << 20  # of compressed files: to read one record, many others are decompressed
_AHEAD_BYTES_OF_MANY = 32 << 20  # with more files than can stay open: each is opened once for several records
_AHEAD_OF_EACH = 16  # records of such a file
_WORTH_IT = 4  # records of each: for fewer, opening it once for all saves little
_AT_FIRST = 64  # the first read is this much smaller, so that the first records come soon


@dataclass(frozen=True)
class DatasetSource:
    """Records [start, stop) of a dataset, and how to decode them.

    Attributes:
        sequential: Read from front to back only, even if records could be looked up by number.
        most_rows: How many records to decode at a time at most; None for as many as fit.
    """

    records: RecordSequence
    decoder: BatchDecoder
    name: str
    start: int = 0
    stop: int | None = None
    sequential: bool = False
    most_rows: int | None = None

    @cached_property
    def indexed(self) -> bool:
        """Whether a record can be read by its number: not from a pipe."""
        return not self.sequential and all(file.file.seekable for file in self.records.files)

    @property
    def gives_lists(self) -> bool:
        """Whether a batch is a list: of payloads, or of what parse= returned."""
        return self.decoder.gives_lists

    @property
    def gives_columns(self) -> bool:
        """Whether a batch is a `Batch`."""
        return not self.decoder.gives_lists

    def as_records(self) -> DatasetSource:
        """Return this."""
        return self

    @property
    def exact(self) -> bool:
        """Whether every record gives an element: none is skipped as damaged."""
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
        """How large a record is on average: the same for the same records, however they are stored."""
        return self.records.exact_mean_bytes

    @cached_property
    def ahead_bytes(self) -> int | None:
        """How much to read at once, if single records are expensive to read; else None."""
        files = self.records.files
        if any(file.compression is not None for file in files):
            return _AHEAD_BYTES
        each = len(files) * self.mean_bytes
        many = len(files) > files_at_once() and _WORTH_IT * each <= _AHEAD_BYTES_OF_MANY
        return min(_AHEAD_OF_EACH * each, _AHEAD_BYTES_OF_MANY) if many else None

    @property
    def first_bytes(self) -> int | None:
        """How much to read at first."""
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
        """Return an identity of the records."""
        facts = hashlib.sha256(f"{self.start} {self.stop}".encode())
        for file in self.records.files:
            facts.update(self.records.digest_of(file).encode())
        return facts.hexdigest()[:32]

    def permissions(self) -> int | None:
        """Return the permissions that all files allow; None if none is on this machine."""
        paths = [file.local.path for file in self.records.files if file.local is not None]
        return permissions_of(*paths) if paths else None

    def describe(self) -> list[Any]:
        """Return what is decoded: part of what caches are keyed by."""
        return self.decoder.describe()

    def summary(self) -> str:
        """Return the name, and how many records and files there are."""
        count = f"{self.count():,} records in " if self.indexed else ""
        return f"{self.name}: {count}{counted(len(self.records.files), 'file')}"

    def functions(self) -> tuple[Any, ...]:
        """Return the user's functions that decode the records."""
        return self.decoder.functions()

    def pipelines(self) -> tuple[()]:
        """Return none."""
        return ()

    def expect(self, count: int) -> None:
        """Hint that about `count` random lookups follow."""
        files, total = self.records.files, max(1, self.count())
        if len(files) <= files_at_once():
            for file, records in zip(files, np.diff(self.ends, prepend=0).tolist(), strict=True):
                file.expect_reads(records * count // total)

    def load(self, numbers: NDArray[np.int64]) -> _Selection:
        """Read the records with these numbers."""
        return _Selection(self, numbers + self.start)

    def batches(self, first: int, count: int | None, size: int, workers: int) -> Iterator[tuple[Any, float]]:
        """Yield records from number `first` on, `size` at a time, and the seconds spent on decoding them."""
        if self.exact:
            return self._in_order(first, self._limited(first, count), size, self.decoder, workers)
        return ((values, 0.0) for values in self._good(first, count, size, workers))

    def stream(
        self, first: int, count: int | None, size: int, section: Section, workers: int
    ) -> Iterator[tuple[TracedElements, list[float], float]]:
        """Yield what steps make of records from number `first` on, with the seconds of each step and of decoding."""
        if self.exact:
            yield from self._in_order(first, self._limited(first, count), size, self.decoder, workers, section)
            return
        for values in self._good(first, count, size, workers):
            yield (*section.run(traced(values), partial(_row, len(values))), 0.0)

    def _limited(self, first: int, count: int | None) -> int | None:
        """Return how many records to read from number `first` on, if `count` are wanted."""
        if self.stop is None:
            return count
        left = max(0, self.stop - self.start - first)
        return left if count is None else min(count, left)

    def _good(self, first: int, count: int | None, size: int, workers: int) -> Iterator[Any]:
        """Yield intact records from number `first` on, counted without the damaged ones."""
        count = self._limited(first, count)
        # Which records are damaged is known when they are read, so all before `first` are read again.
        at = 0
        log = self.records.log
        before = len(log.damage)
        for values, _ in self._in_order(0, None, size, TolerantDecoder(self.decoder, log), workers):
            start = min(len(values), max(0, first - at))
            stop = len(values) if count is None else min(len(values), first + count - at)
            at += len(values)
            if start < stop:
                yield values[start:stop] if isinstance(values, list) else values.take(slice(start, stop))
            if count is not None and at >= first + count:
                break
        log.say(before)

    def _in_order(
        self,
        first: int,
        count: int | None,
        size: int,
        decoder: BatchDecoder | TolerantDecoder,
        workers: int,
        section: Section | None = None,
    ) -> Iterator[Any]:
        records, first = self.records, first + self.start
        at = 0
        if first:
            if first >= records.count:
                return iter(())
            at, first = records.place(first)
        return iter(OrderedBatches(records.files[at:], first, count, size, decoder, records, workers, section))


def _row(count: int, at: int) -> str:
    return f"row {at} of {count}"


class _Selection:
    """Records that were read, to be decoded some at a time."""

    def __init__(self, source: DatasetSource, numbers: NDArray[np.int64]) -> None:
        self._source = source
        self._numbers = numbers
        self._fetched: FetchedRecords | None = None
        try:
            self._fetched = source.records.fetched(numbers, source.decoder)
        except CorruptRecordError:
            if source.exact:
                raise

    def elements(self, start: int, stop: int) -> TracedElements:
        """Decode records [start, stop) of them; damaged ones are left out."""
        records, decoder = self._source.records, self._source.decoder
        if self._source.exact:
            assert self._fetched is not None
            return traced(self._fetched.values(start, stop))
        try:
            if self._fetched is not None:
                values = self._fetched.values(start, stop)
                decoder.force(values)
                return traced(values)
        except (SchemaError, CorruptRecordError):
            pass
        good = np.flatnonzero([records.is_good(number, decoder) for number in self._numbers[start:stop].tolist()])
        if not len(good):
            return TracedElements(decoder.joined([]), [], stop - start)
        values = records.fetched(self._numbers[start:stop][good], decoder).values(0, len(good))
        return TracedElements(values, (good + 1).tolist(), stop - start)
