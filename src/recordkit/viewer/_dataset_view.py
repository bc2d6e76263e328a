"""DatasetView: the records of a dataset by number, as rows and batches, whatever damage is between them."""

from __future__ import annotations

import threading
from bisect import bisect_right
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from recordkit.columns import Batch
from recordkit.dataset import ColumnDecoder, summarize
from recordkit.dataset import open as open_dataset
from recordkit.errors import CorruptRecordError, RecordKitError, SchemaError, StorageError
from recordkit.storage.read import Damage

from ._file_view import FileView

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from recordkit.dataset import BatchDecoder, RecordRange
    from recordkit.schema import Schema

_HEAD: Final = 4096  # records of a file that can be shown before it is counted
_PATIENCE: Final = 0.4  # seconds that a request waits for counting
_PAGE: Final = 256
_PAGE_BYTES: Final = 32 << 20
_SPAN: Final = 32  # records at each place of a sample


class Failed(NamedTuple):
    """A value that could not be read, with the error."""

    words: str


class Row(NamedTuple):
    """A record to show.

    Attributes:
        number: Its number in the dataset.
        values: The values by field, with `Failed` for unreadable ones; None if the whole record is unreadable.
        error: Why the record is unreadable.
    """

    number: int
    values: dict[str, Any] | None
    error: str | None = None


class NotCountedError(Exception):
    """The records before this one have not been counted yet."""


class DatasetView:
    """The records of a dataset by number. Safe to use from many threads.

    Args:
        where: What `recordkit.open` takes, except pipes.
        split: Only this split.
    """

    def __init__(self, where: Any, *, split: str | None = None) -> None:
        self.where = where
        self.dataset = open_dataset(where, split=split, on_error="skip")
        self._records = self.dataset.sequence
        self.summary = summarize(self.dataset)
        if self.summary.bytes is None:
            message = f"{self.summary.name}: a pipe cannot be viewed: it can be read only once\n  Save it to a file."
            raise StorageError(message)
        self.shards = [FileView(file, self._records.stack) for file in self.dataset.shards]
        self._ready = threading.Condition()
        self._ends: list[int] | None = None  # once all are known
        self.problem: str | None = None
        self.schema = self._schema()

    def _schema(self) -> Schema | None:
        try:
            return self.dataset.schema
        except RecordKitError as error:
            self.problem = str(error)
            return None

    # --- Counting

    @property
    def ends(self) -> list[int]:
        """The number of records up to the end of each file, for the files counted so far."""
        if self._ends is not None:
            return self._ends
        ends, total = [], 0
        for shard in self.shards:
            if shard.count is None:
                break
            total += shard.count
            ends.append(total)
        if len(ends) == len(self.shards):
            self._ends = ends
        return ends

    @property
    def count(self) -> int | None:
        """How many records there are; None until all files are counted."""
        ends = self.ends
        return (ends[-1] if ends else 0) if len(ends) == len(self.shards) else None

    def prepare(self, tell: Callable[[int, int, str], object]) -> None:
        """Count the records of every file, in order."""
        for at, shard in enumerate(self.shards):
            if shard.count is None:
                tell(at, len(self.shards), "files")
                self._prepare(shard, lambda at=at: tell(at, len(self.shards), "files"))  # type: ignore[misc]
        tell(len(self.shards), len(self.shards), "files")

    def _prepare(self, shard: FileView, step: Callable[[], object]) -> None:
        try:
            shard.prepare(step)
        except (RecordKitError, OSError, ValueError) as error:
            # An unreadable file is shown without records, with the reason.
            shard.tell(Damage.from_error(error, shard.file.name, kind="unreadable"))
            shard.count = 0
        with self._ready:
            self._ready.notify_all()

    def place(self, number: int) -> tuple[FileView, int]:
        """Return the file of a record, and the number of the record in this file.

        Raises:
            NotCountedError: The files before it have not been counted yet.
            IndexError: There is no such record.
        """
        ends = self.ends
        at = bisect_right(ends, number)
        if number < 0 or (at == len(ends) == len(self.shards)):
            message = f"record {number} of {ends[-1] if ends else 0}"
            raise IndexError(message)
        inside = number - (ends[at - 1] if at else 0)
        if at == len(ends) and inside >= _HEAD:
            raise NotCountedError
        return self.shards[at], inside

    def _wait_for(self, number: int) -> None:
        """Wait briefly until counting reaches a record, unless it can be shown without that."""
        if number >= self._end + _HEAD and self.count is None:
            with self._ready:
                self._ready.wait_for(lambda: self.count is not None or self._end > number, _PATIENCE)

    @property
    def _end(self) -> int:
        return (self.ends or [0])[-1]

    @property
    def at_once(self) -> int:
        """How many records to read at a time: fewer if they are large."""
        return max(1, min(_PAGE, _PAGE_BYTES // self._records.mean_bytes))

    # --- Reading by number

    def decoder(self, names: Sequence[str], shard: FileView | None = None) -> BatchDecoder | None:
        """Return the decoder for these fields; None if the payloads are not Examples."""
        if self.schema is None:
            return None
        if shard is not None and shard.walked and self._records.stack:
            # After damage the record numbers are uncertain, so overlays cannot be matched to records.
            own = self._records.own_schema
            return None if own is None else ColumnDecoder(own, tuple(name for name in names if name in own.names))
        return self._records.decoder(tuple(names))

    def rows(self, numbers: Sequence[int], names: Sequence[str]) -> list[Row]:
        """Return records by number, in the given order; numbers out of range are skipped."""
        self._wait_for(max(numbers, default=0))
        placed: dict[int, tuple[FileView, list[tuple[int, int]]]] = {}
        for number in numbers:
            try:
                shard, inside = self.place(number)
            except IndexError:
                continue
            placed.setdefault(id(shard), (shard, []))[1].append((number, inside))
        found = {row.number: row for shard, pairs in placed.values() for row in self._rows_of(shard, pairs, names)}
        return [found[number] for number in numbers if number in found]

    def _rows_of(self, shard: FileView, pairs: list[tuple[int, int]], names: Sequence[str]) -> list[Row]:
        numbers = np.array([inside for _, inside in pairs], np.int64)
        try:
            part = shard.part(numbers) if shard.count is not None else _head_of(shard, numbers)
            if part is None:
                return []
            return [
                Row(pairs[i][0], values) for i, values in enumerate(self._values(shard, part, names)) if i < len(pairs)
            ]
        except (RecordKitError, UnicodeDecodeError, OSError) as error:
            if len(pairs) > 1:
                return [row for pair in pairs for row in self._rows_of(shard, [pair], names)]
            return [self._alone(shard, *pairs[0], names, error)]

    def _values(self, shard: FileView, part: RecordRange, names: Sequence[str]) -> list[dict[str, Any]]:
        decoder = self.decoder(names, shard)
        if decoder is None:
            return [{"payload": payload} for payload in part.chunk]
        batch: Batch = decoder.decode(part, 0, len(part.chunk))
        return [{name: row.get(name) for name in names} for row in batch.rows()]

    def _alone(self, shard: FileView, number: int, inside: int, names: Sequence[str], error: Exception) -> Row:
        """Return a record that cannot be decoded as a whole: field by field, if its checksums match."""
        try:
            part = shard.one(inside)
        except (RecordKitError, OSError):
            if isinstance(error, CorruptRecordError):
                shard.tell(Damage.from_error(error, shard.file.name))
            return Row(number, None, str(error))
        values: dict[str, Any] = {}
        for name in names:
            try:
                values |= self._values(shard, part, [name])[0]
            except (RecordKitError, UnicodeDecodeError) as failure:
                values[name] = Failed(str(failure))
        if values and all(isinstance(value, Failed) for value in values.values()):
            return Row(number, None, str(error))
        return Row(number, values)

    # --- Reading in order

    def batches(self, first: int, names: Sequence[str]) -> Iterator[tuple[Batch, NDArray[np.int64], int]]:
        """Yield batches of these fields from record `first` on, their record numbers, and the next number.

        Records with other fields than the rest are skipped.
        """
        for at, shard in enumerate(self.shards):
            while shard.count is None:
                with self._ready:
                    self._ready.wait_for(lambda shard=shard: shard.count is not None, 0.1)  # type: ignore[misc]
                yield Batch({}, 0), np.empty(0, np.int64), first
            end = self.ends[at]
            start = end - shard.count
            if first >= end:
                continue
            for part, inside in shard.parts(max(0, first - start)):
                for batch, rows in self._good(shard, part, names):
                    yield batch, inside[rows] + start, int(inside[rows.stop - 1]) + start + 1
            yield Batch({}, 0), np.empty(0, np.int64), end

    def _good(self, shard: FileView, part: RecordRange, names: Sequence[str]) -> Iterator[tuple[Batch, slice]]:
        decoder = self.decoder(names, shard)
        if decoder is None:
            message = "these records have no fields: they are read as payloads"
            raise SchemaError(message)
        yield from _good_rows(decoder, part, 0, len(part.chunk))

    def sampled(self, count: int, names: Sequence[str]) -> Iterator[Batch]:
        """Yield batches with about `count` records in total, spread over the records counted so far."""
        with self._ready:
            self._ready.wait_for(lambda: self.count is not None, _PATIENCE)
        total = self._end
        if not total and self.count is None:
            part = self.shards[0].first(count)
            if part is not None:
                yield from (batch for batch, _ in self._good(self.shards[0], part, names))
        elif total <= count:
            yield from self._some(0, total, names)
        else:
            for start in np.linspace(0, total - _SPAN, max(1, count // _SPAN)).astype(int).tolist():
                yield from self._some(start, _SPAN, names)

    def _some(self, start: int, count: int, names: Sequence[str]) -> Iterator[Batch]:
        """Yield the records [start, start + count)."""
        done = 0
        for batch, _, at in self.batches(start, names):
            take = min(len(batch), count - done)
            if take > 0:
                yield batch if take == len(batch) else _first_rows(batch, take)
            done = max(done + take, at - start)
            if done >= count:
                return


def batched(numbers: Sequence[int], size: int) -> Iterator[Sequence[int]]:
    """Yield the numbers in runs of `size`."""
    for start in range(0, len(numbers), size):
        yield numbers[start : start + size]


def _head_of(shard: FileView, numbers: NDArray[np.int64]) -> RecordRange | None:
    part = shard.first(int(numbers.max()) + 1)
    if part is None:
        raise NotCountedError
    there = numbers[numbers < len(part.chunk)]
    return part.pick(there.astype(np.uint64)) if len(there) else None


def _first_rows(batch: Batch, count: int) -> Batch:
    columns = {name: batch[name][:count] for name in batch.names}
    return Batch(columns, count, {name: batch.valid(name)[:count] for name in batch.names})


def _good_rows(decoder: BatchDecoder, part: RecordRange, start: int, stop: int) -> Iterator[tuple[Batch, slice]]:
    """Yield batches of the records [start, stop) of a part, without those that cannot be decoded."""
    if start == stop:
        return
    try:
        batch = decoder.decode(part, start, stop)
        decoder.force(batch)
    except (RecordKitError, UnicodeDecodeError):
        if stop - start > 1:
            middle = (start + stop) // 2
            yield from _good_rows(decoder, part, start, middle)
            yield from _good_rows(decoder, part, middle, stop)
        return
    yield batch, slice(start, stop)
