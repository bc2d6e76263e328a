"""Batching: what is made of records. Columns by a schema, or each payload by a function of the user's.

A making is plain data, so that it can be sent to another process. Batches that lie across files or chunks are joined;
their errors still name the file and record that a value came from.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from recordkit import _core
from recordkit.columns import Batch
from recordkit.errors import CorruptRecordError, SchemaError
from recordkit.pipeline import failed
from recordkit.records import NO_LIMIT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from recordkit.examples import Unread
    from recordkit.records import Chunk
    from recordkit.schema import Schema
    from recordkit.storage import RecordFile


class RecordRange(NamedTuple):
    """Records of one file, on their way into a batch.

    Attributes:
        path: The file's name, for errors; None where they are of several.
        file: The file, where it is needed to find more of the records.
        numbers: Their numbers in the file, where they do not follow each other from `chunk.first_record` on.
    """

    chunk: Chunk
    path: str | None
    file: RecordFile | None = None
    numbers: NDArray[np.int64] | None = None

    def record_numbers(self, start: int, stop: int) -> NDArray[np.int64]:
        """Return the numbers of records [start, stop) of the part in their file."""
        if self.numbers is not None:
            return self.numbers[start:stop]
        return np.arange(self.chunk.first_record + start, self.chunk.first_record + stop, dtype=np.int64)

    def following(self, start: int, stop: int) -> int | None:
        """Return the number of the first of records [start, stop) if they follow each other in the file."""
        if self.numbers is None:
            return self.chunk.first_record + start
        some = self.numbers[start:stop]
        return int(some[0]) if len(some) and np.array_equal(some[1:], some[:-1] + 1) else None

    def cut(self, start: int, stop: int) -> RecordRange:
        """Return records [start, stop) of the part."""
        numbers = None if self.numbers is None else self.numbers[start:stop]
        return self._replace(chunk=self.chunk.slice(start, stop), numbers=numbers)

    def pick(self, indices: NDArray[np.uint64]) -> RecordRange:
        """Return some records of the part."""
        numbers = self.record_numbers(0, len(self.chunk))[indices.astype(np.int64)]
        return self._replace(chunk=self.chunk.pick(indices), numbers=numbers)


class BatchDecoder(Protocol):
    """What is made of records."""

    def batch(self, part: RecordRange, start: int, stop: int) -> Any:
        """Return what records [start, stop) of a part make."""
        ...

    def joined(self, parts: Sequence[RecordRange]) -> Any:
        """Return what the records of all parts make."""
        ...

    def row(self, part: RecordRange) -> Any:
        """Return what the first record of a part makes."""
        ...

    def rows(self, batch: Any) -> Iterable[Any]:
        """Return the rows of what `batch` returned."""
        ...

    def check(self, batch: Any) -> None:
        """Raise if there is anything wrong that would only show later."""
        ...


@dataclass(frozen=True)
class ColumnDecoder:
    """Columns of a schema's fields.

    Attributes:
        names: The fields to read; None for all.
    """

    schema: Schema
    names: tuple[str, ...] | None

    def batch(self, part: RecordRange, start: int, stop: int) -> Batch:
        """Return records as columns."""
        if part.numbers is None:
            return self.schema.decode(part.chunk, select=self.names, start=start, stop=stop, path=part.path)
        return self.mixed(part.chunk.slice(start, stop), partial(_fetch_each, self, part.cut(start, stop)))

    def joined(self, parts: Sequence[RecordRange]) -> Batch:
        """Return the records of all parts as columns."""
        if len(parts) == 1:
            return self.batch(parts[0], 0, len(parts[0].chunk))
        chunk = _core.join([part.chunk for part in parts])
        if any(part.numbers is not None for part in parts):
            return self.mixed(chunk, partial(_fetch_each, self, *parts))
        origins = [_ChunkOrigin(len(p.chunk), p.chunk.first_record, p.chunk.file_offset, p.path) for p in parts]
        return self.mixed(chunk, partial(_each_alone, self, chunk, origins))

    def mixed(self, chunk: Chunk | Unread, again: Callable[[], object]) -> Batch:
        """Return records that came from several places as one batch.

        Args:
            chunk: The records; their numbers in it mean nothing.
            again: Makes the same of each record where it came from, to raise an error that names the place.
        """
        try:
            return _MixedBatch(self.schema.decode(chunk, select=self.names), again)
        except (SchemaError, CorruptRecordError):
            again()
            raise

    def row(self, part: RecordRange) -> dict[str, Any]:
        """Return one record as a dict."""
        return self.schema.decode_row(part.chunk, select=self.names, path=part.path)

    def rows(self, batch: Batch) -> Iterator[dict[str, Any]]:
        """Return the rows of a batch as dicts."""
        return batch.rows()

    def check(self, batch: Batch) -> None:
        """Make every column, which finds values that are not what was declared."""
        for name in batch.names:
            batch[name]


@dataclass(frozen=True)
class PayloadDecoder:
    """The payloads themselves, or what a function makes of each.

    Attributes:
        parse: Takes the bytes of a payload; None to give the bytes.
    """

    parse: Callable[[bytes], Any] | None = None

    def batch(self, part: RecordRange, start: int, stop: int) -> list[Any]:
        """Return one object a record."""
        payloads = list(part.chunk.slice(start, stop))
        return self.each(payloads, lambda i: (part.path, int(part.record_numbers(start, stop)[i])))

    def each(self, payloads: list[bytes], place: Callable[[int], tuple[str | None, int]]) -> list[Any]:
        """Return one object a payload; `place` tells file and record of payload i, to name in errors."""
        if self.parse is None:
            return payloads
        return [self._parsed(payload, i, place) for i, payload in enumerate(payloads)]

    def _parsed(self, payload: bytes, number: int, place: Callable[[int], tuple[str | None, int]]) -> Any:
        assert self.parse is not None
        try:
            return self.parse(payload)
        except Exception as error:
            path, record = place(number)
            where = f"{path}: record {record}" if path else f"record {record}"
            error = failed(error, f"{where}: parse= failed on its payload of {len(payload)} bytes")
            raise error

    def joined(self, parts: Sequence[RecordRange]) -> list[Any]:
        """Return one object a record."""
        return [row for part in parts for row in self.batch(part, 0, len(part.chunk))]

    def row(self, part: RecordRange) -> Any:
        """Return the object of one record."""
        return self.batch(part, 0, 1)[0]

    def rows(self, batch: list[Any]) -> list[Any]:
        """Return the objects."""
        return batch

    def check(self, batch: list[Any]) -> None:
        """Nothing is left to find."""


class _ChunkOrigin(NamedTuple):
    """Where consecutive records of a joined chunk came from."""

    records: int
    first_record: int
    offset: int
    path: str | None


class _MixedBatch(Batch):
    """A batch of records from several places, whose errors name the place."""

    def __init__(self, batch: Batch, again: Callable[[], object]) -> None:
        super().__init__(batch.lazy_columns, len(batch), batch.masks)
        self._again = again

    def __getitem__(self, name: str) -> Any:
        try:
            return super().__getitem__(name)
        except (SchemaError, CorruptRecordError):
            self._again()
            raise


def _each_alone(making: ColumnDecoder, chunk: Chunk, origins: Sequence[_ChunkOrigin]) -> None:
    at = 0
    for origin in origins:
        piece = chunk.slice(at, at + origin.records)
        at += origin.records
        numbered, _, _ = _core.scan(piece, NO_LIMIT, origin.offset, origin.first_record)
        making.check(making.batch(RecordRange(numbered, origin.path), 0, len(numbered)))


def _fetch_each(making: ColumnDecoder, *parts: RecordRange) -> None:
    """Make the same of each record, read once more from where it stands."""
    for part in parts:
        for number in part.record_numbers(0, len(part.chunk)).tolist():
            if part.file is not None:
                making.check(making.batch(RecordRange(part.file.fetch_one(number), part.path), 0, 1))
