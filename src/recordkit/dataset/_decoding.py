"""Decoding: records become columns by a schema, or objects by a function of the user's.

A decoder is plain data, so that it can be sent to another process. Batches that cross files or chunks are joined; their
errors still name the file and record that a value came from.
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
from recordkit.records import NO_LIMIT, Chunk

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from recordkit.examples import Unread
    from recordkit.schema import Schema
    from recordkit.storage.overlays import Overlay
    from recordkit.storage.read import MappedRecords, RecordFile


class RecordRange(NamedTuple):
    """Records of one file.

    Attributes:
        path: The file's name, for errors; None if they are of several files.
        file: The file, if it is needed to read more about the records.
        numbers: Their numbers in the file, if they are not consecutive from `chunk.first_record` on.
    """

    chunk: Chunk
    path: str | None
    file: RecordFile | None = None
    numbers: NDArray[np.int64] | None = None

    def record_numbers(self, start: int, stop: int) -> NDArray[np.int64]:
        """Return the numbers that records [start, stop) have in their file."""
        if self.numbers is not None:
            return self.numbers[start:stop]
        return np.arange(self.chunk.first_record + start, self.chunk.first_record + stop, dtype=np.int64)

    def following(self, start: int, stop: int) -> int | None:
        """Return the number of the first of records [start, stop) if they are consecutive in the file."""
        if self.numbers is None:
            return self.chunk.first_record + start
        some = self.numbers[start:stop]
        return int(some[0]) if len(some) and np.array_equal(some[1:], some[:-1] + 1) else None

    def cut(self, start: int, stop: int) -> RecordRange:
        """Return records [start, stop)."""
        numbers = None if self.numbers is None else self.numbers[start:stop]
        return self._replace(chunk=self.chunk.slice(start, stop), numbers=numbers)

    def pick(self, indices: NDArray[np.uint64]) -> RecordRange:
        """Return the records at these indices."""
        numbers = self.record_numbers(0, len(self.chunk))[indices.astype(np.int64)]
        return self._replace(chunk=self.chunk.pick(indices), numbers=numbers)


class BatchDecoder(Protocol):
    """Decodes records. Plain data that can be pickled."""

    @property
    def gives_lists(self) -> bool:
        """Whether a batch is a list of objects, not columns."""
        ...

    @property
    def overlays(self) -> tuple[Overlay, ...]:
        """The overlays to read fields from, too."""
        return ()

    def decode(self, records: RecordRange, start: int, stop: int) -> Any:
        """Return records [start, stop) of a range as a batch."""
        ...

    def joined(self, parts: Sequence[RecordRange]) -> Any:
        """Return the records of all parts as one batch."""
        ...

    def fetched(self, records: Lookup, overlaid: Sequence[Chunk | MappedRecords]) -> Any:
        """Return records that were looked up as a batch, with what each overlay has for them."""
        ...

    def row(self, records: RecordRange) -> Any:
        """Return the first record of a range."""
        ...

    def force(self, batch: Any) -> None:
        """Decode the columns of a batch that are not decoded yet, so that errors come now."""

    def describe(self) -> list[Any]:
        """Return what is decoded, as plain data: part of what caches are keyed by."""
        ...

    def functions(self) -> tuple[Any, ...]:
        """Return the user's functions that it calls."""
        return ()


class Lookup(NamedTuple):
    """Records of any files that were looked up.

    Attributes:
        place: Returns the file and the number of record i there.
        decode_alone: Decodes each record by itself, to raise an error that names its place.
    """

    chunk: Chunk | MappedRecords
    place: Callable[[int], tuple[str | None, int]]
    decode_alone: Callable[[], object]


@dataclass(frozen=True)
class ColumnDecoder:
    """Columns of a schema's fields.

    Attributes:
        names: The fields to read; None for all.
    """

    schema: Schema
    names: tuple[str, ...] | None
    gives_lists = False
    overlays = ()

    def decode(self, records: RecordRange, start: int, stop: int) -> Batch:
        """Return records [start, stop) of a range as columns."""
        if records.numbers is None:
            return self.schema.decode(records.chunk, select=self.names, start=start, stop=stop, path=records.path)
        return self.mixed(records.chunk.slice(start, stop), partial(_fetch_each, self, records.cut(start, stop)))

    def joined(self, parts: Sequence[RecordRange]) -> Batch:
        """Return the records of all parts as columns."""
        if len(parts) == 1:
            return self.decode(parts[0], 0, len(parts[0].chunk))
        chunk = _core.join([part.chunk for part in parts])
        if any(part.numbers is not None for part in parts):
            return self.mixed(chunk, partial(_fetch_each, self, *parts))
        origins = [_ChunkOrigin(len(p.chunk), p.chunk.first_record, p.chunk.file_offset, p.path) for p in parts]
        return self.mixed(chunk, partial(_each_alone, self, chunk, origins))

    def mixed(self, chunk: Chunk | Unread, decode_alone: Callable[[], object]) -> Batch:
        """Return records that came from several places as one batch.

        Args:
            chunk: The records; their numbers in it mean nothing.
            decode_alone: Decodes each record by itself, to raise an error that names its place.
        """
        try:
            return _MixedBatch(self.schema.decode(chunk, select=self.names), decode_alone)
        except (SchemaError, CorruptRecordError):
            decode_alone()
            raise

    def fetched(self, records: Lookup, overlaid: Sequence[Chunk | MappedRecords]) -> Batch:
        """Return records that were looked up as columns."""
        return self.mixed(records.chunk, records.decode_alone)

    def row(self, records: RecordRange) -> dict[str, Any]:
        """Return the first record as a dict."""
        return self.schema.decode_row(records.chunk, select=self.names, path=records.path)

    def force(self, batch: Batch) -> None:
        """Decode every column, which finds values that are not as declared."""
        for name in batch.names:
            batch[name]

    def describe(self) -> list[Any]:
        """Return the schema and the names."""
        return [self.schema.to_dict(), self.names]

    def functions(self) -> tuple[Any, ...]:
        """Return none."""
        return ()


@dataclass(frozen=True)
class PayloadDecoder:
    """The payloads themselves, or what a function returns for each.

    Attributes:
        parse: Takes the bytes of a payload; None to give the bytes.
    """

    parse: Callable[[bytes], Any] | None = None
    gives_lists = True
    overlays = ()

    def decode(self, records: RecordRange, start: int, stop: int) -> list[Any]:
        """Return one object a record."""
        payloads = list(records.chunk.slice(start, stop))
        return self._each(payloads, lambda i: (records.path, int(records.record_numbers(start, stop)[i])))

    def fetched(self, records: Lookup, overlaid: Sequence[Chunk | MappedRecords]) -> list[Any]:
        """Return one object a record."""
        assert isinstance(records.chunk, Chunk)  # payloads are read at once
        return self._each(list(records.chunk), records.place)

    def _each(self, payloads: list[bytes], place: Callable[[int], tuple[str | None, int]]) -> list[Any]:
        """Return one object a payload; `place` gives the file and record of payload i, for errors."""
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
        return [row for part in parts for row in self.decode(part, 0, len(part.chunk))]

    def row(self, records: RecordRange) -> Any:
        """Return the object of the first record."""
        return self.decode(records, 0, 1)[0]

    def force(self, batch: list[Any]) -> None:
        """Do nothing: all is decoded."""

    def describe(self) -> list[Any]:
        """Return that these are payloads, in the word that caches on disk have for it."""
        return ["Payloads"]

    def functions(self) -> tuple[Any, ...]:
        """Return the function, if there is one."""
        return () if self.parse is None else (self.parse,)


class _ChunkOrigin(NamedTuple):
    """Where consecutive records of a joined chunk came from."""

    records: int
    first_record: int
    offset: int
    path: str | None


class _MixedBatch(Batch):
    """A batch of records from several places, whose errors name the place."""

    def __init__(self, batch: Batch, decode_alone: Callable[[], object]) -> None:
        super().__init__(batch.lazy_columns, len(batch), batch.masks)
        self._decode_alone = decode_alone

    def __getitem__(self, name: str) -> Any:
        try:
            return super().__getitem__(name)
        except (SchemaError, CorruptRecordError):
            self._decode_alone()
            raise


def _each_alone(decoder: ColumnDecoder, chunk: Chunk, origins: Sequence[_ChunkOrigin]) -> None:
    at = 0
    for origin in origins:
        piece = chunk.slice(at, at + origin.records)
        at += origin.records
        numbered, _, _ = _core.scan(piece, NO_LIMIT, origin.offset, origin.first_record)
        decoder.force(decoder.decode(RecordRange(numbered, origin.path), 0, len(numbered)))


def _fetch_each(decoder: ColumnDecoder, *parts: RecordRange) -> None:
    """Read each record again and decode it by itself."""
    for part in parts:
        for number in part.record_numbers(0, len(part.chunk)).tolist():
            if part.file is not None:
                decoder.force(decoder.decode(RecordRange(part.file.fetch_one(number), part.path), 0, 1))
