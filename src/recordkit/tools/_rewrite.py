"""Jobs: new files made of old ones, a file at a time, by threads or processes; published together when all are there.

Each file of the source becomes one shard of the target. A shard that is finished stays when the run breaks off, and is
not made again.
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
from recordkit.filesystems import given_path
from recordkit.storage import begin_run, changing, is_lone_file, permissions_of
from recordkit.wording import listed

from ._engines import engine_for, workers_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from recordkit.dataset import Dataset, RecordRange, RecordSequence
    from recordkit.engines import Engine, Workers
    from recordkit.records import Chunk
    from recordkit.schema import Schema
    from recordkit.storage import RecordFile, Run

# Each goes through several hands: with less that costs the most, with more the processor's cache is left on the way.
CHUNK_BYTES = 2 << 20


class RewriteOptions(TypedDict, total=False):
    """The keywords of all tools that write a new dataset. `recordkit.add_fields` explains them."""

    workers: Workers | Engine
    resume: bool
    overwrite: bool
    sync: bool


def chosen(options: RewriteOptions) -> RewriteOptions:
    """Return the options with the defaults for those left out.

    Raises:
        TypeError: There is an option of another name.
    """
    defaults = RewriteOptions(workers=AUTO, resume=True, overwrite=False, sync=True)
    if unknown := sorted(options.keys() - defaults.keys()):
        message = f"there is no option {unknown[0]!r}; there are {listed(defaults)}"
        raise TypeError(message)
    return {**defaults, **options}


class Failure(NamedTuple):
    """A record for which a change made no value, and why."""

    record: int
    words: str


class Change(Protocol):
    """What is made of the records of one file. Can be pickled, for processes."""

    def chunks(self, records: RecordSequence, at: int, failures: list[Failure]) -> Iterator[Chunk]:
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
        origin: What has to be as it is now when the files appear; None where that does not matter.
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
    """A dataset as it was when something was begun to be made of it, to be told from what is there later.

    Attributes:
        path: What to open.
        folder: Where the files are.
        files: Their paths, with what tells them from others.
        layers: What was changed beside them.
    """

    path: Any
    folder: Path
    files: tuple[tuple[Any, ...], ...]
    layers: tuple[Path, ...]

    @classmethod
    def of(cls, path: Any, dataset: Dataset, folder: Path) -> Origin:
        """Return what a dataset is now."""
        layers = tuple(path for layer in dataset.sequence.stack.layers for path in layer.paths)
        return cls(path, folder, tuple(map(_facts_of, dataset.shards)), layers)

    @contextmanager
    def held(self) -> Iterator[Dataset]:
        """Keep others from changing the dataset inside the block, and give it as it is now.

        Raises:
            TargetBusyError: Somebody else is changing it.
        """
        with changing(self.folder):
            yield open(self.path)

    def check(self, now: Dataset, *, layers: bool = True) -> None:
        """Raise if the files are others than they were, or, with `layers`, what was changed beside them is.

        Raises:
            StorageError: They are.
        """
        beside = tuple(path for layer in now.sequence.stack.layers for path in layer.paths)
        if tuple(map(_facts_of, now.shards)) != self.files or (layers and beside != self.layers):
            message = (
                f"{self.path}: the dataset has been changed while something was being made of it\n"
                "  Nothing was published. Do it again, with what is there now."
            )
            raise StorageError(message, path=str(self.path))


def _facts_of(file: RecordFile) -> tuple[Any, ...]:
    assert file.local is not None
    path = file.local.path
    facts = path.stat()
    return str(path), facts.st_size, file.shard.digest if file.shard is not None else facts.st_mtime_ns


@dataclass(frozen=True)
class _Making:
    """What is done to every file. Can be pickled, once for all files that a process makes."""

    records: RecordSequence
    change: Change
    run: Run
    compress: bool
    splits: Mapping[str, str]
    threads: Workers

    def file(self, at: int) -> tuple[int, list[Failure]]:
        """Make one file, and return how many records it has."""
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
    change: Change,
    target: Target,
    workers: Workers | Engine,
    *,
    splits: Mapping[str, str] | None = None,
    check: Callable[[Origin, Dataset], None] = Origin.check,
) -> tuple[int, list[Failure]]:
    """Make a file of each file, publish all of them together, and return how many records they have.

    Args:
        records: The source.
        change: What is made of it.
        target: Where it goes.
        workers: How many files at a time, or an engine that makes them.
        splits: What the shards made of a file are called, by the file's name.
        check: Raises if the origin of the target, as it is now, does not go with what was made of it.
    """
    count = len(records.files)
    if is_lone_file(given_path(target.path)) and count != 1:
        message = f"{target.path}: one file cannot be made of {count}\n  Give a folder as the target."
        raise StorageError(message, path=target.path)
    at_once = workers_of(workers)
    # Each writer has a thread for the disk, so that reading and writing go on at the same time in each file. What goes
    # beside records is too little for that.
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
                    run.abandon()  # what was made is for what is no longer there
                    raise
                run.publish(count)
    except BaseException:
        run.give_up()
        raise
    return done, failures


def _mode_of(records: RecordSequence) -> int | None:
    """Return the permissions that all files have; None where none is on this machine."""
    paths = [file.local.path for file in records.files if file.local is not None]
    return permissions_of(*paths) if paths else None


def lineage_of(dataset: Dataset, operation: str, **arguments: Any) -> list[Mapping[str, Any]]:
    """Return what has made a dataset, and what is now made of it, bound to its content by digest."""
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
    """Return a file's name in its folder."""
    return file.name if file.local is None else file.local.path.name


def parts_of(records: RecordSequence, at: int) -> Iterator[RecordRange]:
    """Yield the records of one file, deleted ones left out."""
    file = records.files[at]
    stream = records.open_stream(file, 0, chunk_bytes=CHUNK_BYTES)
    while (chunk := stream.read()) is not None:
        part = records.part(file, chunk)
        if len(part.chunk):
            yield part
