"""Rewrite a dataset: an engine makes a new file from each old one, and all are published together.

Each file of the source becomes one shard of the target. Finished shards survive an interrupted run, and are not made
again.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypedDict

import recordkit
from recordkit import progress
from recordkit.dataset import open  # noqa: A004
from recordkit.engines import AUTO
from recordkit.errors import RecordKitError, StorageError
from recordkit.filesystems import given_path, permissions_of
from recordkit.storage.format import is_lone_file
from recordkit.storage.staging import changing
from recordkit.storage.write import begin_run
from recordkit.wording import listed

from ._engines import engine_for, workers_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from recordkit.dataset import Dataset, RecordRange, RecordSequence
    from recordkit.engines import Engine, Workers
    from recordkit.records import Chunk
    from recordkit.schema import Schema
    from recordkit.storage.read import RecordFile
    from recordkit.storage.write import Run

# Smaller chunks cost too much overhead in each step, and larger ones do not fit the processor's cache.
CHUNK_BYTES = 2 << 20


class RewriteOptions(TypedDict, total=False):
    """The keywords of every tool that writes a new dataset. See `recordkit.add_fields`."""

    workers: Workers | Engine
    resume: bool
    overwrite: bool
    sync: bool


def chosen(options: RewriteOptions) -> RewriteOptions:
    """Return the options, with defaults for the missing ones.

    Raises:
        TypeError: There is an unknown option.
    """
    defaults = RewriteOptions(workers=AUTO, resume=True, overwrite=False, sync=True)
    if unknown := sorted(options.keys() - defaults.keys()):
        message = f"there is no option {unknown[0]!r}; there are {listed(defaults)}"
        raise TypeError(message)
    return {**defaults, **options}


class Failure(NamedTuple):
    """A record without a value because a change failed there, and why."""

    record: int
    words: str


class FileChange(Protocol):
    """Makes the new records of one file. Can be pickled, for processes."""

    def chunks(self, records: RecordSequence, at: int, failures: list[Failure]) -> Iterator[Chunk]:
        """Yield the new records of file number `at`, and add what failed and was skipped to `failures`."""
        ...


@dataclass(frozen=True)
class Target:
    """Where the new files go.

    Attributes:
        path: A folder, or a file if the source is one file and the name ends like one.
        schema: The schema of the new records.
        metadata: Goes into the manifest.
        compress: Whether to compress each file like its source.
        lineage: The operations that made the records so far.
        origin: The dataset that must be unchanged when the files are published; None if that does not matter.
    """

    path: str
    schema: Schema | None
    metadata: Mapping[str, Any]
    resume: bool
    overwrite: bool
    sync: bool
    compress: bool = True
    lineage: Sequence[Mapping[str, Any]] = ()
    origin: Origin | None = None


@dataclass(frozen=True)
class Origin:
    """The state of a dataset when a rewrite began, to detect later changes.

    Attributes:
        path: What to open.
        folder: Where the files are.
        files: Their paths, sizes, and digests or modification times.
        layers: The paths of its overlays.
    """

    path: Any
    folder: Path
    files: tuple[tuple[Any, ...], ...]
    layers: tuple[Path, ...]

    @classmethod
    def of(cls, path: Any, dataset: Dataset, folder: Path) -> Origin:
        """Return the current state of a dataset."""
        layers = tuple(path for layer in dataset.sequence.stack.layers for path in layer.paths)
        return cls(path, folder, tuple(map(_facts_of, dataset.shards)), layers)

    @contextmanager
    def held(self) -> Iterator[Dataset]:
        """Lock the dataset against changes inside the block, and open it again.

        Raises:
            TargetBusyError: Another writer is changing it.
        """
        with changing(self.folder):
            yield open(self.path)

    def check(self, now: Dataset, *, layers: bool = True) -> None:
        """Raise if the files have changed, or, with `layers`, the overlays.

        Raises:
            StorageError: They are.
        """
        beside = tuple(path for layer in now.sequence.stack.layers for path in layer.paths)
        if tuple(map(_facts_of, now.shards)) != self.files or (layers and beside != self.layers):
            message = (
                f"{self.path}: the dataset was changed during the run\n"
                "  Nothing was published. Run it again on the current dataset."
            )
            raise StorageError(message, path=str(self.path))


def _facts_of(file: RecordFile) -> tuple[Any, ...]:
    assert file.local is not None
    path = file.local.path
    facts = path.stat()
    return str(path), facts.st_size, file.shard.digest if file.shard is not None else facts.st_mtime_ns


@dataclass(frozen=True)
class _Making:
    """Makes any of the new files. Can be pickled, once for all files that a process makes."""

    records: RecordSequence
    change: FileChange
    run: Run
    compress: bool
    splits: Mapping[str, str]
    threads: Workers

    def file(self, at: int) -> tuple[int, list[Failure]]:
        """Make one file, and return its number of records and its failures."""
        file = self.records.files[at]
        failures: list[Failure] = []
        made = self.run.make(
            at,
            self.change.chunks(self.records, at, failures),
            split=self.splits.get(name_of(file)),
            compression=file.compression if self.compress else None,
            workers=self.threads,
        )
        return made, failures


def run(
    records: RecordSequence,
    change: FileChange,
    target: Target,
    workers: Workers | Engine,
    *,
    splits: Mapping[str, str] | None = None,
    check: Callable[[Origin, Dataset], None] = Origin.check,
) -> tuple[int, list[Failure]]:
    """Make a new file from each file, publish all together, and return their number of records and the failures.

    Args:
        records: The source.
        change: Makes the new records.
        target: Where they go.
        workers: How many files to make at a time, or the engine that makes them.
        splits: The names of the new shards, by the name of the source file.
        check: Raises if the source has changed so much that the new files no longer fit it.
    """
    count = len(records.files)
    if is_lone_file(given_path(target.path)) and count != 1:
        message = f"{target.path}: {count} files cannot become one\n  Choose a folder as the target."
        raise StorageError(message, path=target.path)
    at_once = workers_of(workers)
    # Each writer has a thread for the disk, so that reading and writing overlap in each file. Overlays are too small
    # for that.
    threads: Workers = AUTO if at_once > 1 and target.compress else 1
    run = begin_run(
        target.path,
        target.schema,
        metadata=target.metadata,
        lineage=target.lineage,
        resume=target.resume,
        overwrite=target.overwrite,
        mode=_mode_of(records),
        sync=target.sync,
    )
    try:
        making = _Making(records, change, run, target.compress, splits or {}, threads)
        done, failures = sum(shard.records for shard in run.finished.values()), []
        files = [at for at in range(count) if at not in run.finished]
        results = engine_for(workers, len(files)).map(making.file, files)
        for number, (made, failed) in enumerate(results):
            done += made
            failures += failed
            progress.step(f"writing {target.path}", len(run.finished) + number + 1, count, "files")
        if target.origin is None:
            run.publish(count)
        else:
            with target.origin.held() as now:
                try:
                    check(target.origin, now)
                except RecordKitError:
                    run.abandon()  # the new files are for a source that no longer exists
                    raise
                run.publish(count)
    except BaseException:
        run.give_up()
        raise
    return done, failures


def _mode_of(records: RecordSequence) -> int | None:
    """Return the permissions that all files share; None if none of them is local."""
    paths = [file.local.path for file in records.files if file.local is not None]
    return permissions_of(*paths) if paths else None


def lineage_of(dataset: Dataset, operation: str, **arguments: Any) -> list[Mapping[str, Any]]:
    """Return the operations that made a dataset and the new one, bound to its content by a digest."""
    digest = hashlib.blake2b(digest_size=16)
    for file in dataset.shards:
        digest.update(file.digest.encode())
    for layer in dataset.sequence.stack.layers:
        for beside in layer.files.values():
            digest.update(beside.digest.encode())
        digest.update(repr(sorted(layer.hides)).encode())
        for name, numbers in sorted(layer.deleted.items()):
            digest.update(os.fsencode(name) + numbers.tobytes())
    made = {"operation": operation, "recordkit": recordkit.__version__, "arguments": arguments}
    return [*dataset.lineage, made | {"source": dataset.name, "source_digest": digest.hexdigest()}]


def name_of(file: RecordFile) -> str:
    """Return the name of a file in its folder."""
    return file.name if file.local is None else file.local.path.name


def parts_of(records: RecordSequence, at: int) -> Iterator[RecordRange]:
    """Yield the records of one file, without deleted ones."""
    file = records.files[at]
    stream = records.open_stream(file, 0, chunk_bytes=CHUNK_BYTES)
    while (chunk := stream.read()) is not None:
        part = records.part(file, chunk)
        if len(part.chunk):
            yield part
