"""Skipping: records that are sound and yet not what was expected are left out, and noted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from recordkit import _core
from recordkit.errors import CorruptRecordError, SchemaError
from recordkit.storage import Damage

from ._decoding import RecordRange
from ._overlaid import OverlaidDecoder

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from recordkit.records import Chunk

    from ._damage_log import DamageLog
    from ._decoding import BatchDecoder


@dataclass(frozen=True)
class TolerantDecoder:
    """A making that leaves out records which cannot be made anything of, and notes them as damage."""

    making: BatchDecoder
    log: DamageLog

    def batch(self, part: RecordRange, start: int, stop: int) -> Any:
        """Return what the good ones of records [start, stop) make."""
        good = self._good(part.cut(start, stop))
        return self.making.batch(good, 0, len(good.chunk))

    def joined(self, parts: Sequence[RecordRange]) -> Any:
        """Return what the good records of all parts make."""
        return self.making.joined([self._good(part) for part in parts])

    def _good(self, part: RecordRange) -> RecordRange:
        """Leave out records that nothing can be made of."""
        # Numbered from 0, so that an error tells which it was; the part keeps the numbers that people know.
        bare = RecordRange(_core.join([part.chunk]), part.path)
        good = np.arange(len(part.chunk), dtype=np.uint64)
        while len(good):
            rest = bare.chunk if len(good) == len(part.chunk) else bare.chunk.pick(good)
            try:
                self._check(part, rest)
                break
            except (SchemaError, CorruptRecordError) as error:
                at = error.record or 0
                self._tell(part.cut(int(good[at]), int(good[at]) + 1), error)
                good = np.delete(good, at)
        return part if len(good) == len(part.chunk) else part.pick(good)

    def _check(self, part: RecordRange, rest: Chunk) -> None:
        making = self.making
        if isinstance(making, OverlaidDecoder):
            making = making.base  # what layers add was checked when it was written
        making.check(making.batch(RecordRange(rest, part.path), 0, len(rest)))

    def _tell(self, bad: RecordRange, error: SchemaError | CorruptRecordError) -> None:
        kind = "malformed" if isinstance(error, CorruptRecordError) else "schema"
        number, chunk = int(bad.record_numbers(0, 1)[0]), bad.chunk  # the error's number is one among those left
        damage = Damage.from_error(
            error, bad.path or "", kind=kind, record=number, offset=chunk.file_offset, length=chunk.nbytes
        )
        self.log.tell(damage)

    def row(self, part: RecordRange) -> Any:
        """Return what the first record of a part makes."""
        return self.making.row(part)

    def rows(self, batch: Any) -> Iterable[Any]:
        """Return the rows of what `batch` returned."""
        return self.making.rows(batch)

    def check(self, batch: Any) -> None:
        """Raise if there is anything wrong that would only show later."""
        self.making.check(batch)
