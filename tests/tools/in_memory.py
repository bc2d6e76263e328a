"""A dataset in memory, with as much of the interface of a real one as statistics and comparing need."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from recordkit.schema import Schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from recordkit.columns import Batch
    from recordkit.records import Chunk


@dataclass(frozen=True)
class Known:
    """What a manifest says of a file."""

    records: int
    digest: str
    raw_bytes: int = 100


@dataclass(frozen=True)
class Bytes:
    size: int = 100


@dataclass(frozen=True)
class File:
    """A file of a dataset, which a manifest may know."""

    shard: Known | None
    file: Bytes = Bytes()

    @classmethod
    def known(cls, records: int, digest: str) -> File:
        return cls(Known(records, digest))


class MappedRecords:
    def __init__(
        self, schema: Schema, chunk: Chunk, shards: tuple[File, ...] = (), names: tuple[str, ...] | None = None
    ) -> None:
        self.schema = schema if names is None else schema.select(*names)
        self.shards = shards
        self.payloads_read = 0
        self._whole, self._chunk, self._names = schema, chunk, names

    @classmethod
    def of(cls, fields: Mapping[str, Any], rows: Iterable[Mapping[str, Any]], **more: Any) -> MappedRecords:
        schema = Schema(fields)
        return cls(schema, schema.encode_rows(rows), **more)

    def __len__(self) -> int:
        return len(self._chunk)

    def __getitem__(self, index: Any) -> Batch:
        places = np.asarray(index, np.uint64)
        return self._whole.decode(self._chunk.pick(places), select=self._names)

    def batch(self, size: int) -> Iterator[Batch]:
        for start in range(0, len(self), size):
            yield self._whole.decode(self._chunk, select=self._names, start=start, stop=min(start + size, len(self)))

    def records(self) -> Iterator[bytes]:
        for payload in self._chunk:
            self.payloads_read += 1
            yield payload

    def select(self, *names: str) -> MappedRecords:
        return MappedRecords(self._whole, self._chunk, self.shards, names)
