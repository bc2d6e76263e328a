"""The pass over one file: one or several threads read it once, and every check gets what it needs on the way.

An intact file is read a single time, in place in the page cache if that is faster. Only a damaged one is read again.
"""

from __future__ import annotations

import errno
import math
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, cast

from recordkit import _core
from recordkit.codecs import codec_of
from recordkit.errors import CorruptRecordError, StorageError, WrongFileError
from recordkit.filesystems import TOO_MANY, TOO_MANY_CODES, ByteFile, mapped_at_most
from recordkit.records import CHANGED, CHUNK_BYTES, LARGE_BYTES, NO_LIMIT, Reader
from recordkit.storage.read import (
    Damage,
    MemberStream,
    Sequential,
    SkippedRecords,
    advice_of,
    compression_of,
    diagnosed,
    unstable_words,
    walk,
    walk_checking,
)
from recordkit.tools.verify.checks import CHECKS, FileToCheck, PassResult, RecordFacts

from ._report import FileReport, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import IO

    from recordkit.records import Chunk
    from recordkit.schema import Schema
    from recordkit.storage.read import Stream
    from recordkit.tools.verify.checks import Level

    from ._find import Candidate

_SMALL: Final = 8 << 20  # done before a second thread has started
_CLEARLY: Final = 0.85  # measured: 0.6 where pages are large, 0.8 to 1.4 where they are small
_SOME_CHUNKS: Final = 8  # as many bytes as one map


@dataclass(frozen=True)
class FileVerifier:
    """Verifies a file. Can be pickled, so that any engine can run it.

    Attributes:
        level: How much to check.
        schema: The schema that Examples must match; None for the schema in each file's manifest.
        inferred: The schema for files without a manifest.
        threads: The number of threads for each file.
        tell: Called with the number of bytes that were read.
    """

    level: Level
    schema: Schema | None
    inferred: Schema | None
    threads: int
    tell: Callable[[int], None]

    def __call__(self, candidate: Candidate) -> FileReport:
        """Verify one file, and return its report."""
        name = candidate.file.name
        if candidate.missing is not None:
            return FileReport(name, "missing", damage=(Damage(name, "missing", 0, 0, 0, candidate.missing),))
        try:
            return _Pass(self._checked(candidate), self.tell).report(self.threads)
        except WrongFileError as error:
            damage = Damage.from_error(error, name, kind=error.kind or "wrong_file")
            report = FileReport(name, "wrong_file", damage=(damage,), notes=(error.advice,) if error.advice else ())
        except CorruptRecordError:
            raise  # a bug: damage is reported, never raised
        except OSError as error:
            if error.errno in TOO_MANY_CODES:
                message = f"{name}: cannot be verified: {os.strerror(error.errno)}\n  {TOO_MANY}"
                raise StorageError(message, path=name, errno=error.errno) from None
            verdict: Verdict = "missing" if error.errno == errno.ENOENT else "unreadable"
            report = FileReport(name, verdict, damage=(Damage.from_error(error, name, kind=verdict),))
        finally:
            candidate.file.close()
        return report

    def _checked(self, candidate: Candidate) -> FileToCheck:
        return FileToCheck(
            candidate.file,
            compression_of(candidate.file),
            "records" if self.schema is None and candidate.holds_no_examples else self.level,
            candidate.shard,
            candidate.expected,
            self.schema or candidate.schema or self.inferred,
        )


class _Pass:
    """The pass over one file."""

    def __init__(self, checked: FileToCheck, tell: Callable[[int], None]) -> None:
        self._checked = checked
        self._file = checked.file
        self._compression = checked.compression
        self._tell = tell
        self._damage: list[Damage] = []
        self._notes: list[str] = []
        self._read = _SummedFile(checked.file)
        self._claimed: int | None = None  # how many records the headers of gzip members say
        self._start_again()

    def _start_again(self) -> None:
        self._checks = [check for kind in CHECKS if (check := kind.begin(self._checked)) is not None]
        self._of_payloads = [check for check in self._checks if check.wants_payloads]
        self._records = self._raw_bytes = 0
        self._lock = threading.Lock()
        self._waiting: dict[int, RecordFacts] = {}
        self._at = 0

    def _add(self, facts: RecordFacts) -> None:
        """Pass the next records to all checks."""
        for check in self._checks:
            check.records(facts)
        self._records += facts.records
        self._raw_bytes += facts.size

    def report(self, threads: int) -> FileReport:
        """Read the file, and return the report."""
        size = self._file.size if self._file.seekable else 0
        if (local := self._file.local) is not None:
            local.had = max(local.had, size)
        try:
            if size <= _SMALL:
                threads = 1
            elif self._could_be_mapped(threads) and self._is_faster_mapped():
                while self._take_mapped():
                    pass
            self._go_through(self._stream(), threads)
        except CorruptRecordError as error:
            try:
                self._continue_after_damage(error)
            except CorruptRecordError as changed:  # the file changed during the pass
                self._damage.append(self._as_damage(changed, 0))
        if not self._damage and self._is_miscounted:
            words = f"the headers of its gzip members say {self._claimed:,} records, but there are {self._records:,}"
            self._damage.append(Damage(self._file.name, "gzip_damaged", self._records, 0, 0, words))
        size = size or self._raw_bytes
        if not size:
            self._notes.append("the file is empty: no records, which is not an error")
        self._end_checks(size)
        verdict: Verdict = "damaged" if self._damage else "sound"
        damage = tuple(sorted(self._damage, key=lambda each: (each.path != self._file.name, each.record)))
        return FileReport(self._file.name, verdict, self._records, size, self._compression, damage, tuple(self._notes))

    def _end_checks(self, size: int) -> None:
        crc = None if self._compression is None else self._read.crc(size)
        damaged = bool(self._damage)
        for check in self._checks:
            for found in check.end(PassResult(self._records, size, crc, damaged, bool(self._damage))):
                if isinstance(found, Damage):
                    self._damage.append(found)
                else:
                    self._notes.append(found)

    # --- Sound files

    def _could_be_mapped(self, threads: int) -> bool:
        """Whether one thread could check the records in place, in the page cache."""
        if self._file.local is None or self._compression is not None or self._of_payloads:
            return False
        # With fast checksums, reading threads wait for each other and are no faster together than one alone.
        return threads == 1 or _core.crc32c_path() != "portable"

    def _is_faster_mapped(self) -> bool:
        """Measure both ways on a few chunks, and return whether maps are clearly faster. With small pages they are not.

        Each way is measured twice, since another process may disturb one of them.
        """
        read = mapped = math.inf
        for _ in range(2):
            read = min(read, self._pace(self._take_some))
            mapped = min(mapped, self._pace(self._take_mapped))
        return mapped < _CLEARLY * read

    def _pace(self, take: Callable[[], object]) -> float:
        """Return the seconds that a byte takes."""
        started, before = time.perf_counter(), self._at
        take()
        return (time.perf_counter() - started) / (self._at - before) if self._at > before else math.inf

    def _take_some(self) -> None:
        reader = self._reader()
        try:
            for chunk in islice(reader, _SOME_CHUNKS):
                self._take(chunk)
        except CorruptRecordError as error:
            self._take_large(reader, error)

    def _take_mapped(self) -> bool:
        """Check the next records in place, in the page cache; False if the rest has to be read."""
        local = self._file.local
        assert local is not None
        descriptor = local.descriptor
        facts = RecordFacts(*_core.check_mapped(descriptor, self._at, mapped_at_most()))
        self._add(facts)
        self._at += facts.size
        self._tell(facts.size)
        return facts.size > 0

    def _reader(self) -> Reader:
        """Return a reader of a plain file that starts where the pass is."""
        local = self._file.local
        source: Any = Sequential(self._file) if local is None else local.descriptor
        return Reader(
            source,
            path=self._file.name,
            chunk_bytes=CHUNK_BYTES,
            max_record_bytes=self._most,
            offset=self._at,
            first_record=self._records,
            had=0 if local is None else local.had,
        )

    @property
    def _most(self) -> int:
        """The longest payload that is read as a whole."""
        return NO_LIMIT if self._of_payloads else LARGE_BYTES

    def _stream(self) -> Stream:
        if self._compression is None:
            return self._reader()
        members = codec_of(self._compression).members(self._file)
        if members is not None:
            self._claimed = sum(member.records for member in members)
            if self._of_payloads or max(member.raw_bytes for member in members) <= LARGE_BYTES:
                return MemberStream(self._read, members)
        source = cast("IO[bytes]", codec_of(self._compression).reader(self._read))
        return Reader(source, path=self._file.name, max_record_bytes=self._most)

    @property
    def _is_pipe(self) -> bool:
        return not self._file.seekable

    def _go_through(self, stream: Stream, threads: int) -> None:
        while True:
            try:
                self._take_by(stream, threads)
                return
            except CorruptRecordError as error:
                self._take_large(stream, error)

    def _take_by(self, stream: Stream, threads: int) -> None:
        if threads == 1:
            self._take_all(stream)
            return
        with ThreadPoolExecutor(threads, "recordkit-verify") as pool:
            running = [pool.submit(copy_context().run, self._take_all, stream) for _ in range(threads)]
        errors = [error for each in running if (error := each.exception()) is not None]
        if errors:
            # Every thread raises the first fault; of other errors, one is enough.
            raise min(errors, key=lambda error: getattr(error, "offset", None) or 0)

    def _take_large(self, stream: Stream, error: CorruptRecordError) -> None:
        """Check a record that is too large to read as a whole, or raise the error."""
        if error.kind != "too_large" or not isinstance(stream, Reader):
            raise error
        facts = RecordFacts(*stream.pass_large())
        self._add(facts)
        self._at += facts.size
        self._tell(facts.size)

    def _take_all(self, stream: Stream) -> None:
        while (chunk := stream.read()) is not None:
            if len(chunk):
                self._take(chunk)

    def _take(self, chunk: Chunk) -> None:
        """Check a chunk. Its facts wait until those of all chunks before it are in."""
        facts = RecordFacts(chunk.nbytes, chunk.identity())
        damage = [each for check in self._of_payloads for each in check.chunk(chunk)]
        with self._lock:
            self._damage += damage
            self._waiting[chunk.file_offset] = facts
            while (turn := self._waiting.pop(self._at, None)) is not None:
                self._add(turn)
                self._at += turn.size
        self._tell(chunk.nbytes)

    # --- Damaged ones

    def _continue_after_damage(self, error: CorruptRecordError) -> None:
        """Continue after the damage that stopped the stream."""
        if error.kind in CHANGED:
            raise error
        if self._is_pipe:
            self._damage.append(self._as_damage(error, 0))
            self._notes.append("a pipe can be read only once: nothing after the damage was checked")
        elif not self._report_single_cause(error):
            if self._compression is None:
                self._walk(error, error.offset or 0, error.record or 0)
            else:
                self._damage.clear()
                self._start_again()
                self._walk(error, 0, 0)

    def _walk(self, error: CorruptRecordError, offset: int, record: int) -> None:
        found, first = [], 0
        through = walk if self._of_payloads else walk_checking
        for item in through(self._file, self._compression, offset=offset, record=record):
            if isinstance(item, Damage):
                found.append(item)
                continue
            first = first or _first_bytes(item)
            self._add(RecordFacts(item.nbytes, item.identity(), item.first_record))
            if not isinstance(item, SkippedRecords):
                self._damage += [each for check in self._of_payloads for each in check.chunk(item)]
            self._tell(item.nbytes)
        again = not found or (self._compression is None and found[0].offset != offset)
        if again and not self._is_miscounted:  # reported at the end
            words = unstable_words(error, still_there=first > 0)
            damage = self._as_damage(error, first if self._compression is None else 0)
            found.append(replace(damage, kind="unstable_read", words=words))
        self._damage += found

    def _report_single_cause(self, error: CorruptRecordError) -> bool:
        """Whether all records are damaged for one known reason, which is then reported."""
        if error.record or error.offset or self._records:
            return False
        source = codec_of(self._compression).seekable(self._file)
        try:
            found = diagnosed(source)
        except CorruptRecordError:
            return False
        if found is None:
            return False
        if found.kind == "crlf_to_lf":  # only some of the records are too short
            self._notes.append(found.words)
            return False
        self._damage.append(Damage(self._file.name, found.kind, 0, 0, source.size, found.words, self._raw))
        self._notes += advice_of(found, self._file.name)[1:]
        return True

    @property
    def _is_miscounted(self) -> bool:
        return self._claimed not in (None, self._records)

    @property
    def _raw(self) -> bool:
        return self._compression is not None

    def _as_damage(self, error: CorruptRecordError, length: int) -> Damage:
        record = self._records if error.record is None else error.record
        return Damage.from_error(error, self._file.name, record=record, length=length, raw=self._raw)


def _first_bytes(item: Chunk | SkippedRecords) -> int:
    """Return the size of the frame of the first record."""
    return item.nbytes if isinstance(item, SkippedRecords) else item.slice(0, 1).nbytes


class _SummedFile(ByteFile):
    """A file that computes its checksum while its bytes are read, each once, in any order."""

    def __init__(self, file: ByteFile) -> None:
        self._file = file
        self.name = file.name
        self._pieces: dict[int, tuple[int, int]] = {}

    @property
    def size(self) -> int:
        return self._file.size

    def check_not_truncated(self, record: int | None = None, offset: int | None = None) -> None:
        """Raise an error if the file has fewer bytes than it had."""
        self._file.check_not_truncated(record, offset)

    def read_at(self, offset: int, size: int) -> bytes:
        """Read `size` bytes at `offset`; fewer only at the end of the file."""
        piece = self._file.read_at(offset, size)
        if piece:
            self._pieces[offset] = len(piece), _core.crc32c(piece)
        return piece

    def crc(self, size: int) -> int | None:
        """Return the checksum of the file; None if some of it was not read."""
        at = crc = 0
        for offset, (length, own) in sorted(self._pieces.items()):
            if offset != at:
                return None
            crc, at = _core.crc32c_combine(crc, own, length), at + length
        return crc if at == size else None
