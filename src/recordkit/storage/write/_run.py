"""Run: makes each shard of a target by itself, in any order, in threads or processes.

However many shards there are, the run is one part of the target with one lock: no shard keeps a file open.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from recordkit import progress
from recordkit.errors import StorageError
from recordkit.storage.format import set_name, staging_of
from recordkit.storage.staging import Lock, StagedPart, number_of, part_folder

from . import _commit
from ._options import Options
from ._queue import WriteQueue
from ._shards import ShardSequence

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from recordkit.codecs import Compression
    from recordkit.engines import Workers
    from recordkit.records import Chunk
    from recordkit.storage.format import Shard


class Run:
    """An unfinished target. Pickle it to let helper processes make shards of it.

    Args:
        part: Its only part.
        lone: Whether the target is one file.
        owner: The process that started it; this one by default.

    Attributes:
        finished: The shards of an earlier run, by number.
    """

    def __init__(self, part: StagedPart, *, lone: bool, owner: int | None = None) -> None:
        self.finished: Mapping[int, Shard] = {}
        self._part = part
        self._lone = lone
        self._owner = os.getpid() if owner is None else owner
        if owner is None:
            self._refuse_helpers()
            self.finished = {number_of(shard): shard for shard in part.shards}

    def _refuse_helpers(self) -> None:
        """Raise if a helper process still works for a run whose own process was killed."""
        Lock(self._part.folder / "helpers", self._part.target).release()

    def __reduce__(self) -> tuple[Any, ...]:
        return _Helper, (self._part.target, self._lone, self._part.sync, self._owner)

    def make(
        self,
        number: int,
        chunks: Iterable[Chunk],
        *,
        split: str | None = None,
        compression: Compression = None,
        workers: Workers = 1,
    ) -> int:
        """Write records as they are into one shard, and return how many there are.

        Args:
            number: Its place among the shards.
            chunks: The records.
            split: The set of shards it belongs to; by default named after the target.
            compression: As for `create`.
            workers: How many threads compress and write.
        """
        options = Options.of(lone=True, compression=compression, workers=workers, sync=self._part.sync)
        queue = WriteQueue(options.workers, 2 * options.workers if compression else 1)
        name = self._part.target.name if self._lone else set_name(split, self._part.target)
        sequence = ShardSequence(self._part, queue, options, name, first=number)
        records = 0
        try:
            for chunk in chunks:
                if len(chunk):
                    sequence.put(chunk)
                    records += len(chunk)
                    progress.step(f"writing {self._part.target}", records, None, "rows")
            sequence.flush()
            queue.do(partial(sequence.finish, needed=True))
            queue.wait()
        finally:
            queue.stop()
            sequence.close()
        return records

    def publish(self, shards: int) -> None:
        """Give the shards their names.

        Raises:
            StorageError: There are not as many as there should be.
        """
        self._part.look_again()
        found = len(self._part.shards)
        if found != shards:
            message = f"{self._part.target}: expected {shards} finished shards, found {found}\n  Begin again."
            raise StorageError(message, path=str(self._part.target))
        if self._lone:
            _commit.publish_file(self._part)
        else:
            _commit.publish_parts(self._part.target, [self._part], sync=self._part.sync)

    def abandon(self) -> None:
        """Remove everything this run wrote."""
        self._part.abandon()

    def give_up(self) -> None:
        """Keep finished shards so that a later run can resume, and remove the rest."""
        self._part.give_up()


class _Helper(Run):
    """A run that another process started; that process waits for the shards made here."""

    def __init__(self, target: Path, lone: bool, sync: bool, owner: int) -> None:
        self._given = target, lone, sync, owner

    def make(self, number: int, chunks: Iterable[Chunk], **options: Any) -> int:
        """Write one shard, unless the process that waits for it has ended."""
        with self._helping() as part:
            return Run(part, lone=self._given[1], owner=self._given[3]).make(number, chunks, **options)

    @contextmanager
    def _helping(self) -> Iterator[StagedPart]:
        target, _, sync, owner = self._given
        lock = Lock(part_folder(staging_of(target), 0, 1) / "helpers", target, shared=True)
        try:
            if os.getppid() != owner:  # its lock went with it, and another run may have begun
                message = (
                    f"{target}: the process that makes it has ended\n  Start again: it continues where it stopped."
                )
                raise StorageError(message, path=str(target))
            yield StagedPart(target, sync=sync, gaps=True, lock=lock)
        finally:
            lock.release()
