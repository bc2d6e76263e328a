"""Shard file: one file of records in the making, and the facts of it that come along the way."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from recordkit import _core, filesystems
from recordkit.codecs import codec_of
from recordkit.storage.format import Fingerprint, IndexBuilder, Shard, new_digest

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray
    from typing_extensions import Buffer

    from recordkit.records import Chunk


class Block(NamedTuple):
    """Consecutive records on their way to a shard. What is told of them is found out by whoever writes them."""

    pieces: Sequence[Chunk]
    raw_bytes: int
    records: int
    first_row: int  # of the source
    end_row: int
    bad: tuple[bytes, ...]  # rows that were skipped before the first record of the block, as lines of the quarantine
    bad_within: tuple[bytes, ...]  # and behind it
    ends_shard: bool

    def lengths(self) -> NDArray[np.uint64]:
        """Return the length of every payload."""
        return np.concatenate([chunk.lengths for chunk in self.pieces]) if self.pieces else np.empty(0, np.uint64)

    def identity(self) -> bytes:
        """Return what a digest is made of."""
        return b"".join(chunk.identity() for chunk in self.pieces)

    def crc(self) -> int:
        """Return the CRC of the framed records."""
        crc = 0
        for chunk in self.pieces:
            crc = _core.crc32c_combine(crc, chunk.crc32c(), chunk.nbytes)
        return crc


class ShardFile:
    """A shard that is being written: its records, its index, its quarantine.

    Args:
        folder: Where to put the files, `stem` plus an ending each.
        stem: What it is called until all shards are there.
        first_row: How many rows of the source came before it.
        sync: Whether it is to last.
    """

    def __init__(
        self, folder: Path, stem: str, ending: str, compression: str | None, first_row: int, *, sync: bool
    ) -> None:
        self.folder = folder
        self.stem = stem
        self._compression = compression
        self._first_row = first_row
        self._file = filesystems.File(folder / f"{stem}{ending}", early=sync)
        self._bad_file: filesystems.File | None = None
        self._digest = new_digest()
        self._index = IndexBuilder()
        self._crc = 0
        self._skipped = 0
        self.records = 0
        self.raw_bytes = 0

    @property
    def size(self) -> int:
        """The size of the file so far."""
        return self._file.size

    def put(self, block: Block, stored: Sequence[Buffer], crc: int) -> None:
        """Append a block in the form in which it is stored, and the CRC of that."""
        size = sum(memoryview(piece).nbytes for piece in stored)
        if codec_of(self._compression).in_members:
            self._index.add_member(self._file.size, self.raw_bytes, self.records)
        self._file.write(stored)
        self._crc = _core.crc32c_combine(self._crc, crc, size)
        self._digest.update(block.identity())
        self._index.add(block.lengths())
        self.records += block.records
        self.raw_bytes += block.raw_bytes

    def put_end(self, tail: bytes) -> None:
        """Append bytes that end a compressed stream."""
        self._file.write([tail])
        self._crc = _core.crc32c(tail, self._crc)

    def put_bad(self, lines: Sequence[bytes]) -> None:
        """Keep rows that were skipped."""
        if lines and self._bad_file is None:
            self._bad_file = filesystems.File(self.folder / f"{self.stem}.jsonl")
        if self._bad_file is not None:
            self._bad_file.write(lines)
            self._skipped += len(lines)

    def finish(self, end_row: int, *, split: str, sync: bool) -> Shard:
        """Make all of it last, and return what is known of it."""
        self._file.finish(sync=sync)
        if self._bad_file is not None:
            self._bad_file.finish(sync=sync)
        index = self._index.to_bytes(Fingerprint.of(self._file.path))
        filesystems.write_new(self.folder / f"{self.stem}.rki", index, sync=sync)
        filesystems.sync_folder(self.folder, sync=sync)
        return Shard(
            name=self._file.path.name,
            records=self.records,
            bytes=self._file.size,
            raw_bytes=self.raw_bytes,
            crc32c=f"{self._crc:08x}",
            digest=self._digest.hexdigest(),
            compression=self._compression,
            rows=end_row - self._first_row,
            skipped=self._skipped,
            split=split,
        )

    def close(self) -> None:
        """Let go of the files as they are."""
        self._file.close()
        if self._bad_file is not None:
            self._bad_file.close()
