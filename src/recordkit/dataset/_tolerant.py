"""Reading past damage: records that cannot be decoded are left out and collected in a log."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from recordkit import _core, log
from recordkit.errors import CorruptRecordError, SchemaError
from recordkit.storage.read import Damage
from recordkit.wording import counted

from ._decoding import RecordRange
from ._overlaid import OverlaidDecoder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from recordkit.records import Chunk

    from ._decoding import BatchDecoder

OnError: TypeAlias = "Literal['raise', 'skip'] | Callable[[Damage], None]"


class DamageLog:
    """Collects the damage that reading meets.

    Args:
        on_error: What to do: `"raise"`, `"skip"`, or call a function with it.
        max_bad: Raise if there is more than this.
    """

    def __init__(self, on_error: OnError, max_bad: int | None) -> None:
        if not callable(on_error) and on_error not in ("raise", "skip"):
            message = f"on_error is 'raise', 'skip' or a function, found {on_error!r}"
            raise ValueError(message)
        self.on_error = on_error
        self.max_bad = max_bad
        self._found: dict[tuple[str, str, int], Damage] = {}
        self._lock = threading.Lock()

    @property
    def tolerant(self) -> bool:
        """Whether reading continues after damage."""
        return self.on_error != "raise"

    @property
    def damage(self) -> tuple[Damage, ...]:
        """All damage so far, each place once, however often the records were read."""
        return tuple(self._found.values())

    def tell(self, damage: Damage) -> None:
        """Add a damaged place.

        Raises:
            CorruptRecordError: There are more than `max_bad`.
        """
        with self._lock:
            new = self._found.setdefault((damage.path, damage.kind, damage.offset), damage) is damage
            bad = len(self._found)
        if callable(self.on_error) and new:
            self.on_error(damage)
        if self.max_bad is not None and bad > self.max_bad:
            message = (
                f"{damage}\n  With it, {bad} places are damaged, and max_bad={self.max_bad}. "
                "recordkit.verify lists all damage of a file."
            )
            raise CorruptRecordError(
                message, path=damage.path, record=damage.record, offset=damage.offset, kind=damage.kind
            )

    def say(self, before: int) -> None:
        """Write to the log what was skipped since there were `before` damaged places."""
        found = self.damage[before:]
        if not found:
            return
        files = len({damage.path for damage in found})
        log.warning(
            "%s in %s passed over; the first: %s",
            counted(len(found), "damaged place"),
            counted(files, "file"),
            found[0],
        )


@dataclass(frozen=True)
class TolerantDecoder:
    """Decodes what can be decoded of records, and logs the others as damage."""

    decoder: BatchDecoder
    damage_log: DamageLog

    def decode(self, records: RecordRange, start: int, stop: int) -> Any:
        """Return the good ones of records [start, stop) as a batch."""
        good = self._good(records.cut(start, stop))
        return self.decoder.decode(good, 0, len(good.chunk))

    def joined(self, parts: Sequence[RecordRange]) -> Any:
        """Return the good records of all parts as one batch."""
        return self.decoder.joined([self._good(part) for part in parts])

    def _good(self, records: RecordRange) -> RecordRange:
        """Return the records that can be decoded."""
        # Numbered from 0, so that an error says which one failed; the range keeps the numbers that people know.
        bare = RecordRange(_core.join([records.chunk]), records.path)
        good = np.arange(len(records.chunk), dtype=np.uint64)
        while len(good):
            rest = bare.chunk if len(good) == len(records.chunk) else bare.chunk.pick(good)
            try:
                self._force(records, rest)
                break
            except (SchemaError, CorruptRecordError) as error:
                at = error.record or 0
                self._tell(records.cut(int(good[at]), int(good[at]) + 1), error)
                good = np.delete(good, at)
        return records if len(good) == len(records.chunk) else records.pick(good)

    def _force(self, records: RecordRange, rest: Chunk) -> None:
        decoder = self.decoder
        if isinstance(decoder, OverlaidDecoder):
            decoder = decoder.base  # what overlays add was checked when it was written
        decoder.force(decoder.decode(RecordRange(rest, records.path), 0, len(rest)))

    def _tell(self, bad: RecordRange, error: SchemaError | CorruptRecordError) -> None:
        kind = "malformed" if isinstance(error, CorruptRecordError) else "schema"
        number, chunk = int(bad.record_numbers(0, 1)[0]), bad.chunk  # the error's number is one among those left
        damage = Damage.from_error(
            error, bad.path or "", kind=kind, record=number, offset=chunk.file_offset, length=chunk.nbytes
        )
        self.damage_log.tell(damage)
