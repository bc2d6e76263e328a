"""Jobs: new files made of old ones, a file at a time, by threads or processes; published together when all are there.

Each file of the source becomes one part of the target. A part that is finished stays when the run breaks off, and is
not made again.
"""

from __future__ import annotations

import hashlib
import os
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, replace
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any, Protocol

import recordkit
from recordkit import progress
from recordkit import workers as _workers
from recordkit.errors import StorageError
from recordkit.paths import given_path
from recordkit.storage import LocalFile, brief_facts, commit_with, create, go_on_with, is_lone_file
from recordkit.workers import Processes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from recordkit.dataset import Dataset, Part, Records
    from recordkit.records import Chunk
    from recordkit.schema import Schema
    from recordkit.storage import RecordFile
    from recordkit.workers import Workers

    from ._bound import Failure

_ONE_SHARD = 1 << 60  # bytes: a part is never cut
# Each goes through several hands: with less that costs the most, with more the processor's cache is left on the way.
CHUNK_BYTES = 2 << 20

# The last part that gives up takes the staging folder with it, and must not take it from one that is about to begin.
_turn: AbstractContextManager[Any] = threading.Lock()


def _share(turn: AbstractContextManager[Any]) -> None:
    global _turn  # of a process that was started for this
    _turn = turn


class Change(Protocol):
    """What is made of the records of one file. Can be pickled, for processes."""

    def chunks(self, records: Records, at: int, failures: list[Failure]) -> Iterator[Chunk]:
        """Yield the new records of file number `at`; what could not be made and was skipped goes into `failures`."""
        ...


@dataclass(frozen=True)
class Target:
    """Where the new files go.

    Attributes:
        path: A folder, or a file if there is one file only and the name ends like one.
        schema: What the records hold.
        metadata: Kept in the manifest.
        compress: Whether files are compressed as those that they are made of.
        lineage: What has made the records so far.
    """

    path: str
    schema: Schema | None
    metadata: Mapping[str, Any]
    resume: bool
    overwrite: bool
    sync: bool
    compress: bool = True
    lineage: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True)
class _Job:
    records: Records
    at: int
    change: Change
    target: Target
    split: str | None
    lone: bool
    threads: _workers.Workers

    def run(self) -> tuple[int, list[Failure]]:
        """Make one file, unless an earlier run has, and return how many records it has."""
        file, target = self.records.files[self.at], self.target
        options: dict[str, Any] = {
            "compression": file.compression if target.compress else None,
            "resume": target.resume,
            "overwrite": target.overwrite,
            "metadata": target.metadata,
            "lineage": target.lineage,
            "workers": self.threads,
            "sync": target.sync,
        }
        if not self.lone:
            options |= {
                "part": self.at,
                "parts": len(self.records.files),
                "shard_size": _ONE_SHARD,
                "split": self.split,
            }
        failures: list[Failure] = []
        with _turn:
            writer = create(target.path, target.schema, **options)
        try:
            if not writer.committed:
                for chunk in self.change.chunks(self.records, self.at, failures):
                    writer.write_chunk(chunk)
        except BaseException:
            with _turn:
                writer.abort()
            raise
        return writer.close().records, failures


def run(
    records: Records, change: Change, target: Target, workers: Workers, *, splits: Mapping[str, str] | None = None
) -> tuple[int, list[Failure]]:
    """Make a file of each file, publish all of them together, and return how many records they have.

    Args:
        records: The source.
        change: What is made of it.
        target: Where it goes.
        workers: How many files at a time.
        splits: What the shards made of a file are called, by the file's name.
    """
    count = len(records.files)
    lone = is_lone_file(given_path(target.path))
    if lone and count != 1:
        message = f"{target.path}: one file cannot be made of {count}\n  Give a folder as the target."
        raise StorageError(message, path=target.path)
    hands = _workers.count(workers)
    # Each writer has a thread for the disk, so that reading and writing go on at the same time in each file. What goes
    # beside records is too little for that.
    threads: Workers = _workers.AUTO if hands > 1 and target.compress else 1
    begun = replace(target, metadata=brief_facts(target.metadata))
    jobs = [
        _Job(records, at, change, begun, (splits or {}).get(name_of(file)), lone, threads)
        for at, file in enumerate(records.files)
    ]
    # Once, before several look at it.
    go_on_with(target.path, begun.metadata, resume=target.resume, overwrite=target.overwrite, sync=target.sync)
    done, failures = 0, []
    for number, (made, failed) in enumerate(_each(jobs, hands, processes=isinstance(workers, Processes))):
        done += made
        failures += failed
        progress.step(f"writing {target.path}", number + 1, count, "files")
    if not lone:
        commit_with(target.path, target.metadata, sync=target.sync)
    return done, failures


def lineage_of(dataset: Dataset, operation: str, **arguments: Any) -> list[Mapping[str, Any]]:
    """Return what has made a dataset, and what is now made of it, bound to its content by digest."""
    digest = hashlib.blake2b(digest_size=16)
    for file in dataset.shards:
        digest.update(file.digest.encode())
    for layer in dataset._records.stack.layers:
        for beside in layer.files.values():
            digest.update(beside.digest.encode())
        digest.update(repr(sorted(layer.hides)).encode())
        for name, numbers in sorted(layer.deleted.items()):
            digest.update(os.fsencode(name) + numbers.tobytes())
    made = {"operation": operation, "recordkit": recordkit.__version__, "arguments": arguments}
    return [*dataset.lineage, made | {"source": dataset._name, "source_digest": digest.hexdigest()}]


def name_of(file: RecordFile) -> str:
    """Return a file's name in its folder."""
    return file.file.path.name if isinstance(file.file, LocalFile) else file.name


def _each(jobs: Sequence[_Job], hands: int, *, processes: bool) -> Iterator[tuple[int, list[Failure]]]:
    """Yield what the jobs return, in their order."""
    if processes:
        context = get_context("spawn")
        with ProcessPoolExecutor(hands, context, _share, (context.Lock(),)) as pool:
            yield from pool.map(_run, jobs)
    elif hands == 1 or len(jobs) == 1:
        yield from map(_run, jobs)
    else:
        with ThreadPoolExecutor(hands, "recordkit-files") as pool:
            futures = [pool.submit(copy_context().run, _run, job) for job in jobs]
            try:
                for future in futures:
                    yield future.result()
            except BaseException:
                for future in futures:
                    future.cancel()
                raise


def _run(job: _Job) -> tuple[int, list[Failure]]:
    return job.run()


def parts_of(records: Records, at: int) -> Iterator[Part]:
    """Yield the records of one file, deleted ones left out."""
    file = records.files[at]
    stream = records.open_stream(file, 0, chunk_bytes=CHUNK_BYTES)
    while (chunk := stream.read()) is not None:
        part = records.part(file, chunk)
        if len(part.chunk):
            yield part
