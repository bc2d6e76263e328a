"""Shards: from chunks to finished shards, one after the other.

The caller's thread splits, any free worker compresses, and the queue writes the files in order.
"""

from __future__ import annotations

from functools import partial
from itertools import repeat
from typing import TYPE_CHECKING

from recordkit import _core, filesystems
from recordkit.codecs import codec_of
from recordkit.storage.format import Fingerprint, IndexBuilder, Shard, new_digest, suffix

from ._blocks import MEMBER_BYTES, BlockSplitter

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from concurrent.futures import Future
    from pathlib import Path

    from typing_extensions import Buffer

    from recordkit.records import Chunk
    from recordkit.storage.staging import StagedPart

    from ._blocks import Block
    from ._options import Options
    from ._queue import WriteQueue


class ShardFile:
    """A shard that is being written: its records, its index, its quarantine.

    Args:
        folder: Where to put the files; each is named `stem` plus an ending.
        stem: Its name until all shards are there.
        first_row: How many rows of the source came before it.
        sync: Whether to sync it to disk.
    """

    def __init__(
        self, folder: Path, stem: str, ending: str, compression: str | None, first_row: int, *, sync: bool
    ) -> None:
        self.folder = folder
        self.stem = stem
        self._compression = compression
        self._first_row = first_row
        self._file = filesystems.NewFile(folder / f"{stem}{ending}", early=sync)
        self._bad_file: filesystems.NewFile | None = None
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
        """Append a block as it is stored, compressed or not.

        Args:
            block: The records.
            stored: The bytes to write.
            crc: Their CRC.
        """
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
        """Append the bytes that end a compressed stream."""
        self._file.write([tail])
        self._crc = _core.crc32c(tail, self._crc)

    def put_bad(self, lines: Sequence[bytes]) -> None:
        """Append lines to the quarantine."""
        if lines and self._bad_file is None:
            self._bad_file = filesystems.NewFile(self.folder / f"{self.stem}.jsonl")
        if self._bad_file is not None:
            self._bad_file.write(lines)
            self._skipped += len(lines)

    def finish(self, end_row: int, *, split: str, sync: bool) -> Shard:
        """Finish the files, sync them if asked to, and return the entry for the manifest."""
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
        """Close the files as they are."""
        self._file.close()
        if self._bad_file is not None:
            self._bad_file.close()


class ShardSequence:
    """Writes shards `first`, `first` + 1 and so on of a part.

    Args:
        part: Where they go.
        queue: Runs the jobs.
        options: How to write them.
        split: The set they belong to.
        first: The number of the first one.
        first_row: How many rows of the source came before it.
        counts: How many records each gets; None if bytes decide.
    """

    def __init__(
        self,
        part: StagedPart,
        queue: WriteQueue,
        options: Options,
        split: str,
        *,
        first: int = 0,
        first_row: int = 0,
        counts: Iterable[int] | None = None,
    ) -> None:
        self._part = part
        self._queue = queue
        self._options = options
        self._codec = codec_of(options.compression)
        self._split = split
        self._number = first
        self._row = first_row
        compressed = options.compression is not None
        if counts is None and options.shard_records is not None:
            counts = repeat(options.shard_records)
        self._splitter = BlockSplitter(
            block_bytes=MEMBER_BYTES if compressed else None,
            shard_bytes=None if compressed else options.shard_bytes,
            shard_records=counts,
            first_row=first_row,
        )
        self._shard: ShardFile | None = None
        self._stream = self._codec.stream(options.level)
        self._full = False
        self._end_row = first_row

    def skip(self, line: bytes) -> None:
        """Quarantine a rejected row."""
        for block in self._splitter.skip(line):
            self._hand_over(block)

    def put(self, chunk: Chunk) -> None:
        """Take the records of as many rows."""
        for block in self._splitter.cut(chunk):
            self._hand_over(block)

    def flush(self) -> None:
        """Pass pending records to the queue."""
        for block in self._splitter.rest():
            self._hand_over(block)

    def _hand_over(self, block: Block) -> None:
        if self._codec.in_members and block.records:
            member = self._queue.start(self._codec.compress, block.pieces, block.records, self._options.level)
            self._queue.do(partial(self._write_member, block, member))
        else:
            self._queue.do(partial(self._write, block))

    # --- Jobs of the queue

    def _write_member(self, block: Block, member: Future[bytes]) -> None:
        data = member.result()
        self._before(block)
        self._append(block, [data], _core.crc32c(data))

    def _write(self, block: Block) -> None:
        self._before(block)
        if self._stream is None:
            self._append(block, block.pieces, block.crc())
            return
        data = b"".join(self._stream.compress(piece) for piece in block.pieces)
        self._append(block, [data], _core.crc32c(data))

    def _before(self, block: Block) -> None:
        """Make sure that the shard for this block is open."""
        if self._shard is not None and block.bad:
            self._shard.put_bad(block.bad)
        if self._full and block.records:
            self._finish(block.first_row + len(block.bad))
        if self._shard is None:
            self._open()
            assert self._shard is not None
            if self._row == block.first_row:
                self._shard.put_bad(block.bad)
        self._shard.put_bad(block.bad_within)

    def _append(self, block: Block, stored: Sequence[Buffer], crc: int) -> None:
        assert self._shard is not None
        if block.records:
            self._shard.put(block, stored, crc)
        limit = self._options.shard_bytes
        self._full |= block.ends_shard or (limit is not None and self._shard.size >= limit)
        self._end_row = block.end_row

    def _open(self) -> None:
        self._shard = ShardFile(
            self._part.data,
            f"shard-{self._number:05d}",
            suffix(self._options.compression),
            self._options.compression,
            self._row,
            sync=self._options.sync,
        )
        self._stream = self._codec.stream(self._options.level)
        self._full = False

    def _finish(self, end_row: int) -> None:
        shard = self._shard
        assert shard is not None
        if self._stream is not None:
            shard.put_end(self._stream.finish())
        elif self._codec.in_members and not shard.records:
            shard.put_end(self._codec.compress([], 0, self._options.level))
        self._part.add(shard.finish(end_row, split=self._split, sync=self._options.sync))
        self._shard = None
        self._number += 1
        self._row = end_row

    def finish_full(self) -> None:
        """Finish the open shard if it is full; to be called through the queue."""
        if self._shard is not None and self._full:
            self._finish(self._end_row)

    def finish(self, *, needed: bool) -> None:
        """Finish the last shard, an empty one if `needed`; to be called through the queue."""
        if self._shard is None and needed:
            self._open()
            self._end_row = self._row
        if self._shard is not None:
            self._finish(self._end_row)

    def close(self) -> None:
        """Close the open shard as it is."""
        if self._shard is not None:
            self._shard.close()
