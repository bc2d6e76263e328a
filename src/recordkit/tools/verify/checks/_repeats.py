"""Check for runs of records that a file holds twice, such as a block that was written twice.

Records are compared by lengths and checksums alone. Memory is bounded: in a large file, both runs are found only if
they are less than about two million records apart.
"""

from __future__ import annotations

from bisect import bisect_right
from operator import itemgetter
from typing import TYPE_CHECKING, Final, NamedTuple, Self

import numpy as np

from recordkit import _core

from ._check import IDENTITY, FactsCheck

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from ._check import FileToCheck, PassResult, RecordFacts

_KEPT: Final = 1 << 22
_RECORDS: Final = 8  # fewer may be equal by chance
_BYTES: Final = 4096  # unless they fill a disk block
_FRAME: Final = 16
_SHOWN: Final = 5
_A: Final = np.uint64(0x9E3779B97F4A7C15)
_B: Final = np.uint64(0xC2B2AE3D27D4EB4F)


class Repeat(NamedTuple):
    """Consecutive records that equal earlier ones."""

    record: int
    earlier: int
    records: int
    bytes: int


class RepeatsCheck(FactsCheck):
    """Notes repeated runs of records, unless the manifest confirms that they were written that way."""

    def __init__(self, *, confirmed: bool) -> None:
        self._confirmed = confirmed
        self._repeats = Repeats()
        self._seen = 0
        self._numbers = [(0, 0)]  # how many intact records precede a record, and its number in the file

    @classmethod
    def begin(cls, file: FileToCheck) -> Self:
        """Start for any file."""
        return cls(confirmed=file.shard is not None)

    def records(self, facts: RecordFacts) -> None:
        """Take the identities of the next records."""
        if facts.first is not None:
            self._numbers.append((self._seen, facts.first))
        self._repeats.add(facts.identity, facts.records)
        self._seen += facts.records

    def end(self, result: PassResult) -> Iterator[str]:
        """Yield a note for each of the first few runs."""
        if self._confirmed and not result.differs:
            return
        repeats = self._repeats.result()
        for each in repeats[:_SHOWN]:
            first, last, earlier = map(self._number, (each.record, each.record + each.records - 1, each.earlier))
            yield (
                f"records {first:,} to {last:,} ({each.bytes:,} bytes) repeat those from {earlier:,} on: "
                "a block may have been written twice"
            )
        if len(repeats) > _SHOWN:
            yield f"and {len(repeats) - _SHOWN:,} more repeated runs of records"

    def _number(self, intact: int) -> int:
        """Return the number in the file of the record after this many intact ones."""
        before, number = self._numbers[bisect_right(self._numbers, intact, key=itemgetter(0)) - 1]
        return number + intact - before


class Repeats:
    """Finds repeated runs in the identities of records.

    >>> import struct
    >>> repeats = Repeats()
    >>> for number in [*range(20), *range(5, 15)]:
    ...     repeats.add(struct.pack("<QI", 100, number), 1)
    >>> repeats.result()
    [Repeat(record=20, earlier=5, records=10, bytes=1160)]
    """

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._held = 0
        self._first = 0  # the number of the first record that is held
        self._found: list[Repeat] = []

    def add(self, identity: bytes, records: int) -> None:
        """Take the identities of the next records, as `Chunk.identity` returns them."""
        self._pieces.append(identity)
        self._held += records
        if self._held >= _KEPT:
            self._look()
            kept = b"".join(self._pieces)[-(_KEPT // 2) * IDENTITY.itemsize :]
            self._first += self._held - len(kept) // IDENTITY.itemsize
            self._pieces, self._held = [kept], len(kept) // IDENTITY.itemsize

    def result(self) -> list[Repeat]:
        """Return the repeated runs, in file order."""
        self._look()
        return self._found

    def _look(self) -> None:
        if not _core.may_repeat(self._pieces):  # a fast test, which nearly always settles it
            return
        end = self._found[-1].record + self._found[-1].records if self._found else 0
        for found in _repeats(np.frombuffer(b"".join(self._pieces), IDENTITY), self._first):
            if found.record >= end:  # otherwise it was found before, in the records that were kept
                self._found.append(found)


def _repeats(identity: NDArray[np.void], first: int) -> list[Repeat]:
    """Return the runs that repeat earlier ones. Pairs of neighbours are compared, since single records may be equal."""
    lengths = identity["length"]
    own = (lengths * _A) ^ (identity["crc"].astype(np.uint64) * _B)
    pairs = own[:-1] * _A + own[1:]
    order = np.argsort(pairs, kind="stable")
    same = pairs[order[1:]] == pairs[order[:-1]]
    later, earlier = order[1:][same], order[:-1][same]
    back = np.zeros(len(pairs), np.int64)
    back[later] = later - earlier
    return _runs(back, np.concatenate([[0], np.cumsum(lengths + np.uint64(_FRAME), dtype=np.uint64)]), first)


def _runs(back: NDArray[np.int64], ends: NDArray[np.uint64], first: int) -> list[Repeat]:
    edges = np.flatnonzero(np.diff(back)) + 1
    starts, stops = np.concatenate([[0], edges]), np.concatenate([edges, [len(back)]])
    far = back[starts]
    records, size = stops - starts + 1, ends[stops + 1] - ends[starts]
    # Records that are all equal, or repeat in a short cycle, are not a repeated block.
    wanted = (far > 0) & ((records >= _RECORDS) | (size >= _BYTES)) & ((far >= _RECORDS) | (records <= far))
    columns = (starts + first, starts + first - far, records, size.astype(np.int64))
    return [Repeat(*map(int, row)) for row in np.stack(columns, 1)[wanted]]
