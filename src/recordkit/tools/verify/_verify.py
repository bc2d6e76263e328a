"""Verify: all files of a dataset, and one report about them."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from recordkit import progress
from recordkit.dataset import DamageLog, RecordSequence
from recordkit.engines import AUTO, Engine, Processes, Threads, Workers
from recordkit.errors import RecordKitError, SchemaError
from recordkit.filesystems import mapped_at_most
from recordkit.schema import Schema
from recordkit.storage.read import RecordFile
from recordkit.tools._engines import engine_for, workers_of

from ._find import find
from ._pass import FileVerifier
from ._report import Problem, Verified

if TYPE_CHECKING:
    from recordkit.filesystems import ByteFile
    from recordkit.tools.verify.checks import Level

    from ._find import Candidate, Findings, Where

_LEVELS: Final = ("records", "examples", "images")
_SAMPLED_FILES: Final = 8


def verify(
    where: Where,
    *,
    check: Level = "records",
    workers: Workers | Engine = AUTO,
    schema: Schema | Mapping[str, Any] | None = None,
) -> Verified:
    """Check a dataset, and report everything that is wrong with it.

    Every byte is read once. Problems are reported rather than raised: look at `ok` of the report.

    - Always: the framing and both checksums of every record, trailing bytes, and the checksums of gzip and zlib data;
      the sizes, counts, checksums and digests in the manifest; missing and extra shards; indexes.
    - With `check="examples"`, also that every payload is an Example that matches the schema.
    - With `check="images"`, also that every JPEG and PNG decodes completely. Needs `recordkit[images]`.

    Without a manifest, a file that was cut exactly between two records cannot be told from a shorter, intact file.

    Args:
        where: What `recordkit.open` takes: a folder, a file, a glob, `name@16`, a list of those, an open file, `"-"`.
        check: How much to check: `"records"`, `"examples"` or `"images"`.
        workers: The number of threads, or an engine that processes the files.
        schema: The schema that the Examples must match. By default it comes from the manifest, or is inferred from the
            first Examples.

    Raises:
        StorageError: There are no files.

    >>> import pathlib, tempfile, recordkit as rk
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.tfrecord"
    >>> _ = rk.write(path, [{"id": number} for number in range(100)])
    >>> print(verify(path))
    1 file, 100 sound records, 3.1 KB: no damage found
    >>> data = bytearray(path.read_bytes())
    >>> data[2000] ^= 1
    >>> _ = path.write_bytes(data)
    >>> print(verify(path))
    1 file, 99 sound records, 3.1 KB: 1 file not sound
      /.../a.tfrecord: damaged, 99 sound records in 3.1 KB
        record 64 at byte 1984: the payload or its checksum is damaged
        the manifest says 100 records, but 99 are sound
    """
    if check not in _LEVELS:
        message = f"check is 'records', 'examples' or 'images', found {check!r}"
        raise ValueError(message)
    threads = workers_of(workers)
    mapped_at_most()  # fails for a bad environment variable, before a file is blamed for it
    found = find(where)
    engine = engine_for(Threads(threads) if isinstance(workers, Processes) else workers, len(found.candidates))
    return _Verifier(found, check, schema).verified(engine, threads)


class _Verifier:
    """Verifies the files that were found."""

    def __init__(self, found: Findings, level: Level, schema: Schema | Mapping[str, Any] | None) -> None:
        self._found = found
        self._level = level
        self._declared = Schema(schema) if isinstance(schema, Mapping) else schema

    def verified(self, engine: Engine, threads: int) -> Verified:
        """Verify all files, and return the report."""
        candidates = self._found.candidates
        inferred = self._inferred if self._level != "records" else None
        if self._level != "records":
            self._note_payloads()
        threads = max(1, threads // max(1, len(candidates)))  # for each file
        tell = _Progress(_total(candidates))
        reports = engine.map(FileVerifier(self._level, self._declared, inferred, threads, tell), candidates)
        return Verified(tuple(reports), tuple(self._found.problems), tuple(self._found.notes))

    # --- The schema of the payloads

    def _note_payloads(self) -> None:
        other = [each for each in self._found.candidates if self._declared is None and each.holds_no_examples]
        if other:
            more = f" and of {len(other) - 1:,} more files" * (len(other) > 1)
            self._found.notes.append(
                f"the payloads of {other[0].file.name}{more} were not checked: "
                "according to the manifest they are not Examples"
            )

    @property
    def _inferred(self) -> Schema | None:
        """The schema inferred from the first records of files without a manifest; None if they have none in common."""
        there = [each.file for each in self._found.candidates if not each.known and each.missing is None]
        some = there[:: max(1, len(there) // _SAMPLED_FILES)]
        files = [RecordFile(file.reopened()) for file in some if file.seekable]
        files = [file for file in files if _can_be_read(file)]
        if self._declared is not None or not files:
            return None
        try:
            return RecordSequence(files, None, None, DamageLog("skip", None)).inferred(strict=True)
        except SchemaError as error:
            self._found.problems.append(Problem(files[0].name, "schema", error.headline))
            return None


class _Progress:
    """Reports the bytes read by all threads as progress. In another process it reports nothing."""

    def __init__(self, total: int | None) -> None:
        self._lock = threading.Lock()
        self._done = 0
        self._total = total

    def __call__(self, size: int) -> None:
        with self._lock:
            self._done += size
            done = self._done
        progress.step("verifying", done, self._total, "bytes")

    def __reduce__(self) -> tuple[Any, ...]:
        return _Progress, (self._total,)


def _can_be_read(file: RecordFile) -> bool:
    try:
        file.compression  # noqa: B018 - reads its first bytes
    except (RecordKitError, OSError):
        return False
    return True


def _total(candidates: list[Candidate]) -> int | None:
    """Return the number of bytes to read, as far as it is known in advance; None if a pipe is among the files."""
    if any(not candidate.file.seekable for candidate in candidates):
        return None
    total = 0
    for candidate in candidates:
        try:
            total += candidate.shard.raw_bytes if candidate.shard is not None else _size(candidate.file)
        except OSError:
            continue
    return total


def _size(file: ByteFile) -> int:
    """Return the size of a file without opening it, since there may be ten thousand."""
    return file.size if file.local is None else file.local.path.stat().st_size
