"""Batching: what is made of records. Columns by a schema, or each payload by a function of the user's.

A making is plain data, so that it can be sent to another process. Batches that lie across files or chunks are joined;
their errors still name the file and record that a value came from.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from recordkit import _core
from recordkit.columns import Batch
from recordkit.errors import CorruptRecordError, SchemaError
from recordkit.records import NO_LIMIT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from recordkit.records import Chunk
    from recordkit.schema import Schema


class Part(NamedTuple):
    """Consecutive records of one file, on their way into a batch."""

    chunk: Chunk
    path: str


class Making(Protocol):
    """What is made of records."""

    def batch(self, chunk: Chunk, start: int, stop: int, path: str | None) -> Any:
        """Return what records [start, stop) of a chunk make."""
        ...

    def joined(self, parts: Sequence[Part]) -> Any:
        """Return what the records of all parts make."""
        ...

    def row(self, chunk: Chunk, path: str) -> Any:
        """Return what the first record of a chunk makes."""
        ...

    def rows(self, batch: Any) -> Iterable[Any]:
        """Return the rows of what `batch` returned."""
        ...

    def check(self, batch: Any) -> None:
        """Raise if there is anything wrong that would only show later."""
        ...


@dataclass(frozen=True)
class Columns:
    """Columns of a schema's fields.

    Attributes:
        names: The fields to read; None for all.
    """

    schema: Schema
    names: tuple[str, ...] | None

    def batch(self, chunk: Chunk, start: int, stop: int, path: str | None) -> Batch:
        """Return records as columns."""
        return self.schema.decode(chunk, select=self.names, start=start, stop=stop, path=path)

    def joined(self, parts: Sequence[Part]) -> Batch:
        """Return the records of all parts as columns."""
        if len(parts) == 1:
            return self.batch(parts[0].chunk, 0, len(parts[0].chunk), parts[0].path)
        chunk = _core.join([part.chunk for part in parts])
        origins = [_Origin(len(c), c.first_record, c.file_offset, path) for c, path in parts]
        return mixed_batch(self, chunk, partial(_each_alone, self, chunk, origins))

    def row(self, chunk: Chunk, path: str) -> dict[str, Any]:
        """Return one record as a dict."""
        return self.schema.decode_row(chunk, select=self.names, path=path)

    def rows(self, batch: Batch) -> Iterator[dict[str, Any]]:
        """Return the rows of a batch as dicts."""
        return batch.rows()

    def check(self, batch: Batch) -> None:
        """Make every column, which finds values that are not what was declared."""
        for name in batch.names:
            batch[name]


@dataclass(frozen=True)
class Payloads:
    """The payloads themselves, or what a function makes of each.

    Attributes:
        parse: Takes the bytes of a payload; None to give the bytes.
    """

    parse: Callable[[bytes], Any] | None = None

    def batch(self, chunk: Chunk, start: int, stop: int, path: str | None) -> list[Any]:
        """Return one object a record."""
        return self.each(list(chunk.slice(start, stop)), lambda i: (path, chunk.first_record + start + i))

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
            error.add_note(f"{where}: parse= failed on its payload of {len(payload)} bytes")
            raise

    def joined(self, parts: Sequence[Part]) -> list[Any]:
        """Return one object a record."""
        return [row for part in parts for row in self.batch(part.chunk, 0, len(part.chunk), part.path)]

    def row(self, chunk: Chunk, path: str) -> Any:
        """Return the object of one record."""
        return self.batch(chunk, 0, 1, path)[0]

    def rows(self, batch: list[Any]) -> list[Any]:
        """Return the objects."""
        return batch

    def check(self, batch: list[Any]) -> None:
        """Nothing is left to find."""


class _Origin(NamedTuple):
    """Where consecutive records of a joined chunk came from."""

    records: int
    first_record: int
    offset: int
    path: str


class _MixedBatch(Batch):
    """A batch of records from several places, whose errors name the place."""

    def __init__(self, batch: Batch, again: Callable[[], None]) -> None:
        super().__init__(batch._columns, len(batch), batch._valid)
        self._again = again

    def __getitem__(self, name: str) -> Any:
        try:
            return super().__getitem__(name)
        except (SchemaError, CorruptRecordError):
            self._again()
            raise


def mixed_batch(making: Columns, chunk: Chunk, again: Callable[[], None]) -> Batch:
    """Return records that came from several places as one batch.

    Args:
        making: What to make of them.
        chunk: The records; their numbers in it mean nothing.
        again: Makes the same of each record where it came from, to raise an error that names the place.
    """
    try:
        return _MixedBatch(making.batch(chunk, 0, len(chunk), None), again)
    except (SchemaError, CorruptRecordError):
        again()
        raise


def _each_alone(making: Columns, chunk: Chunk, origins: Sequence[_Origin]) -> None:
    at = 0
    for origin in origins:
        piece = chunk.slice(at, at + origin.records)
        at += origin.records
        numbered, _, _ = _core.scan(piece, NO_LIMIT, origin.offset, origin.first_record)
        making.check(making.batch(numbered, 0, len(numbered), origin.path))
