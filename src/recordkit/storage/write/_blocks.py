"""Blocks: splits a stream of chunks into blocks, at places that depend on the records alone.

The same records give the same shards and the same gzip members, however the rows arrive and however often the run is
interrupted and resumed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from recordkit import _core

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from recordkit.records import Chunk

MEMBER_BYTES: Final = 1 << 20
_FRAME: Final = np.uint64(16)


class Block(NamedTuple):
    """Consecutive records on their way to a shard. Lengths and checksums are computed when the block is written."""

    pieces: Sequence[Chunk]
    raw_bytes: int
    records: int
    first_row: int  # of the source
    end_row: int
    bad: tuple[bytes, ...]  # quarantine lines of rows that were skipped before the first record of the block
    bad_within: tuple[bytes, ...]  # and after it
    ends_shard: bool

    def lengths(self) -> NDArray[np.uint64]:
        """Return the length of every payload."""
        return np.concatenate([chunk.lengths for chunk in self.pieces]) if self.pieces else np.empty(0, np.uint64)

    def identity(self) -> bytes:
        """Return the lengths and CRCs of the payloads, which the digest of a shard covers."""
        return b"".join(chunk.identity() for chunk in self.pieces)

    def crc(self) -> int:
        """Return the CRC of the framed records."""
        crc = 0
        for chunk in self.pieces:
            crc = _core.crc32c_combine(crc, chunk.crc32c(), chunk.nbytes)
        return crc


class BlockSplitter:
    """Splits chunks into blocks that never cross the end of a shard.

    Args:
        block_bytes: A block ends with the record that reaches this size; None to pass chunks on as they are.
        shard_bytes: The same for a shard; None if compression decides how large its file gets.
        shard_records: How many records each shard gets; None if bytes decide.
        first_row: How many rows of the source came before.
    """

    def __init__(
        self,
        block_bytes: int | None,
        shard_bytes: int | None,
        shard_records: Iterable[int] | None,
        first_row: int,
    ) -> None:
        self._block_bytes = block_bytes
        self._shard_bytes = shard_bytes
        self._counts = None if shard_records is None else iter(shard_records)
        self._shard_records = self._next_count()
        self._in_shard = (0, 0)  # bytes and records
        self._pending: list[Chunk] = []
        self._pending_bytes = 0
        self._bad: list[bytes] = []
        self._bad_within: list[bytes] = []
        self._bad_bytes = 0
        self._first_row = first_row
        self._row = first_row

    def skip(self, line: bytes) -> Iterator[Block]:
        """Keep the quarantine line of a rejected row; yield a block when too many have piled up."""
        self._row += 1
        # Kept apart: rows rejected before a record may belong to the previous shard.
        (self._bad_within if self._pending else self._bad).append(line)
        self._bad_bytes += len(line)
        if self._bad_bytes >= MEMBER_BYTES:
            yield self._block(ends_shard=False)

    def cut(self, chunk: Chunk) -> Iterator[Block]:
        """Take the records of as many rows, and yield every complete block."""
        if self._leaves_room(chunk):
            self._take(chunk, chunk.nbytes)
            yield self._block(ends_shard=False)
            return
        ends = np.cumsum(chunk.lengths + _FRAME)
        start = 0
        while start < len(chunk):
            stop, full, ends_shard = self._stop(ends, start)
            size = int(ends[stop - 1]) - (int(ends[start - 1]) if start else 0)
            self._take(chunk.slice(start, stop) if stop - start < len(chunk) else chunk, size)
            if full or ends_shard:
                yield self._block(ends_shard=ends_shard)
            start = stop

    def _leaves_room(self, chunk: Chunk) -> bool:
        """Tell whether a whole chunk is one block, as most are: then nobody needs to know where its records end."""
        if self._block_bytes is not None or self._shard_records is not None or not len(chunk):
            return False
        return self._shard_bytes is None or self._in_shard[0] + chunk.nbytes < self._shard_bytes

    def _take(self, records: Chunk, size: int) -> None:
        self._pending.append(records)
        self._pending_bytes += size
        self._row += len(records)
        self._in_shard = (self._in_shard[0] + size, self._in_shard[1] + len(records))

    def rest(self) -> Iterator[Block]:
        """Yield what is still pending, possibly nothing but skipped rows."""
        if self._pending or self._bad:
            yield self._block(ends_shard=False)

    def _stop(self, ends: NDArray[np.uint64], start: int) -> tuple[int, bool, bool]:
        """Return where the next piece ends, whether it fills its block, and whether it ends its shard."""
        before = int(ends[start - 1]) if start else 0
        count = len(ends)
        stop, full, ends_shard = count, self._block_bytes is None, False
        if self._block_bytes is not None:
            room = self._block_bytes - self._pending_bytes
            reached = int(np.searchsorted(ends, np.uint64(before + max(room, 1)))) + 1
            if reached <= stop:
                stop, full = reached, True
        size, records = self._in_shard
        if self._shard_bytes is not None:
            reached = int(np.searchsorted(ends, np.uint64(before + max(self._shard_bytes - size, 1)))) + 1
            if reached <= stop:
                stop, ends_shard = reached, True
        if self._shard_records is not None and start + self._shard_records - records <= stop:
            stop, ends_shard = start + self._shard_records - records, True
        return stop, full, ends_shard

    def _next_count(self) -> int | None:
        return None if self._counts is None else next(self._counts, None)

    def _block(self, *, ends_shard: bool) -> Block:
        chunks, self._pending, self._pending_bytes = self._pending, [], 0
        bad, self._bad = tuple(self._bad), []
        bad_within, self._bad_within, self._bad_bytes = tuple(self._bad_within), [], 0
        first_row, self._first_row = self._first_row, self._row
        if ends_shard:
            self._in_shard = (0, 0)
            self._shard_records = self._next_count()
        return Block(
            pieces=chunks,
            raw_bytes=sum(chunk.nbytes for chunk in chunks),
            records=sum(map(len, chunks)),
            first_row=first_row,
            end_row=self._row,
            bad=bad,
            bad_within=bad_within,
            ends_shard=ends_shard,
        )
