"""Skipping: records that are sound and yet not what was expected are left out, and noted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from recordkit.errors import CorruptRecordError, SchemaError
from recordkit.storage import Damage

from ._batching import Part

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from recordkit.records import Chunk

    from ._batching import Making
    from ._damage_log import DamageLog


@dataclass(frozen=True)
class Skipping:
    """A making that leaves out records which cannot be made anything of, and notes them as damage."""

    making: Making
    log: DamageLog

    def batch(self, chunk: Chunk, start: int, stop: int, path: str | None) -> Any:
        """Return what the good ones of records [start, stop) make."""
        return self._kept(chunk.slice(start, stop), path)

    def joined(self, parts: Sequence[Part]) -> Any:
        """Return what the good records of all parts make."""
        return self.making.joined([Part(self._good(part.chunk, part.path), part.path) for part in parts])

    def _kept(self, chunk: Chunk, path: str | None) -> Any:
        return self.making.batch(good := self._good(chunk, path), 0, len(good), path)

    def _good(self, chunk: Chunk, path: str | None) -> Chunk:
        good = np.arange(len(chunk), dtype=np.uint64)
        at = 0
        while at < len(good):
            try:
                rest = chunk if len(good) == len(chunk) else chunk.pick(good)
                self.making.check(self.making.batch(rest, 0, len(rest), path))
                break
            except (SchemaError, CorruptRecordError) as error:
                at = (error.record or 0) - rest.first_record
                bad = chunk.slice(int(good[at]), int(good[at]) + 1)
                self._tell(bad, path, error)
                good = np.delete(good, at)
        return chunk if len(good) == len(chunk) else chunk.pick(good)

    def _tell(self, bad: Chunk, path: str | None, error: SchemaError | CorruptRecordError) -> None:
        kind = "malformed" if isinstance(error, CorruptRecordError) else "schema"
        words = str(error).partition("\n")[0]
        if isinstance(error, CorruptRecordError):  # which names a place, and one among those that are left
            words = words.partition(f" at byte {error.offset}: ")[2] or words
        self.log.tell(Damage(path or "", kind, bad.first_record, bad.file_offset, bad.nbytes, words))

    def row(self, chunk: Chunk, path: str) -> Any:
        """Return what the first record of a chunk makes."""
        return self.making.row(chunk, path)

    def rows(self, batch: Any) -> Iterable[Any]:
        """Return the rows of what `batch` returned."""
        return self.making.rows(batch)

    def check(self, batch: Any) -> None:
        """Raise if there is anything wrong that would only show later."""
        self.making.check(batch)
