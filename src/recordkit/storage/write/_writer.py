"""Writer: takes rows, and publishes a complete dataset under its final name."""

from __future__ import annotations

import os
import threading
import warnings
import weakref
from collections.abc import Mapping
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from recordkit import log, progress, records
from recordkit.codecs import looks_compressed
from recordkit.errors import SchemaError, StorageError
from recordkit.schema import Schema
from recordkit.storage.format import BadRow, to_line
from recordkit.wording import counted, format_size

from ._input import at_row, batch_rows, schema_of_columns, size_of, with_row
from ._queue import WriteQueue
from ._shards import ShardSequence

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Self

    from numpy.typing import NDArray
    from typing_extensions import Buffer

    from recordkit.columns import Batch
    from recordkit.records import Chunk
    from recordkit.schema import RowEncoder
    from recordkit.storage.format import Shard
    from recordkit.storage.staging import StagedPart

    from ._options import Options


FIRST_ROWS = 100  # define the schema if none was declared
_FIRST_BYTES = 16 << 20
_CHUNK_BYTES = 2 << 20  # measured best: smaller ones cost more calls, larger ones leave the cache
_MOST_ROWS = 4096


@dataclass(frozen=True)
class Written:
    """What a writer wrote.

    Attributes:
        path: The dataset; for one part of several, the dataset it will belong to.
        records: The number of records.
        shards: The number of files.
        bytes: Their total size.
        skipped: How many rows are in quarantine.
    """

    path: str
    records: int
    shards: int
    bytes: int
    skipped: int

    def __str__(self) -> str:
        records, files = counted(self.records, "record"), counted(self.shards, "file")
        text = f"{self.path}: {records} in {files}, {format_size(self.bytes)}"
        if self.skipped:
            text += f"; {counted(self.skipped, 'row')} skipped, see recordkit.quarantined({self.path!r})"
        return text


class Writer:
    """Writes a dataset. Made by `recordkit.create` and `recordkit.append`; it belongs to one thread.

    Nothing appears under the final name before `close`, which the `with` statement calls. If the block ends with an
    exception, nothing is published; finished shards are kept, and `resume=True` continues after them.

    Attributes:
        path: The target.
        committed: How many rows of the source an earlier run has already written. Skip that many, then continue.
    """

    def __init__(
        self, part: StagedPart, options: Options, schema: Schema | None, split: str, publish: Callable[[Writer], None]
    ) -> None:
        self.path = str(part.target)
        self._part = part
        self._options = options
        self._publish = publish
        self._declared = schema is not None
        self._schema = schema
        self._encoder: RowEncoder | None = schema.encoder() if schema is not None else None
        self._take_at = 1
        self._first: list[Mapping[str, Any]] = []
        self._first_bytes = 0
        self._packed: list[bytes] = []
        self._packed_bytes = 0
        self._messages = False  # the payloads are Examples, which can define a schema
        self._raw = False  # the payloads are in a format of the user's own
        self._records = 0
        finished = part.shards
        self.committed = sum(shard.rows for shard in finished)
        self._rows = self.committed
        self._ours = True  # False after a fork, in the child
        self._queue: WriteQueue | None = WriteQueue(options.workers, 2 * options.workers if options.compression else 1)
        self._sequences = self._make_sequences(split, finished)
        self._hinted = options.compression is None
        self.written: Written | None = None
        _open.add(self)

    def _make_sequences(self, split: str, finished: tuple[Shard, ...]) -> list[ShardSequence]:
        options, queue = self._options, self._queue
        assert queue is not None
        counts: list[int] | None = None
        if options.shards is not None and options.rows is not None:
            each, more = divmod(options.rows, options.shards)
            counts = [each + (number < more) for number in range(options.shards)][len(finished) :]
        elif options.shards is not None:
            return [ShardSequence(self._part, queue, options, split, first=number) for number in range(options.shards)]
        return [
            ShardSequence(
                self._part, queue, options, split, first=len(finished), first_row=self.committed, counts=counts
            )
        ]

    # --- Taking rows

    @property
    def schema(self) -> Schema | None:
        """The schema: the declared one, or the one that the first rows define."""
        return self._schema

    @property
    def rows(self) -> int:
        """How many rows of the source were taken so far, including skipped ones and those of an earlier run."""
        return self._rows + len(self._encoder or ()) + len(self._first) + len(self._packed)

    def write(self, row: Any) -> None:
        """Write one row, completely or not at all.

        Args:
            row: A dict of the schema's fields, or an `Example` message of protobuf.

        Raises:
            SchemaError: It does not fit, and `on_error` is `"raise"`. The writer stays usable for other rows.
            StorageError: Earlier rows could not be written.
        """
        encoder = self._encoder
        if encoder is None or self._packed or not (type(row) is dict or isinstance(row, Mapping)):
            self._write_slowly(row)
            return
        try:
            encoder.append(row)
        except SchemaError as error:
            self._refuse(error, row)
            return
        if len(encoder) >= self._take_at:
            self._take_rows()

    def _write_slowly(self, row: Any) -> None:
        """Take a message, or one of the first rows, which may define the schema."""
        self._check_open()
        self._refuse_beside_raw()
        if hasattr(row, "SerializeToString"):
            self._messages = True
            self._write_payload(row.SerializeToString(), row)
            return
        self._take_packed()
        if not isinstance(row, Mapping):
            self._refuse(_not_a_row(row), row)
        elif self._encoder is None:
            self._take_first(row)
        else:
            try:
                self._encoder.append(row)
            except SchemaError as error:
                self._refuse(error, row)

    def _take_first(self, row: Mapping[str, Any]) -> None:
        self._first.append(deepcopy(row))  # the caller may use its dict and arrays for the next row
        self._first_bytes += size_of(row)
        if len(self._first) >= FIRST_ROWS or self._first_bytes >= _FIRST_BYTES:
            self._define()

    def write_batch(
        self, columns: Mapping[str, Any] | Batch, *, valid: Mapping[str, NDArray[np.bool_]] | None = None
    ) -> None:
        """Write many rows, given as columns: the fast way.

        If a value does not fit and `on_error` is `"raise"`, none of the rows is written; otherwise the rows that do
        fit are.

        Args:
            columns: As for `Schema.encode`.
            valid: Masks for optional fields, False where a value is missing.
        """
        self._check_open()
        self._refuse_beside_raw()
        self._take_all()
        if self._schema is None:
            self._set_schema(schema_of_columns(columns))
        assert self._schema is not None
        before = self._rows
        try:
            for chunk in self._schema.encode_pieces(columns, valid=valid, piece_bytes=_CHUNK_BYTES):
                self._put(chunk)
        except SchemaError as error:
            if self._options.on_error == "raise":
                raise at_row(self._explained(error), before) from None
            # All values were checked first; only a record over protobuf's 2 GiB shows up later.
            for row in islice(batch_rows(columns, valid or {}), self._rows - before, None):
                self.write(row)
            self._take_all()

    def write_raw(self, payload: Buffer) -> None:
        """Write one payload as it is.

        With a schema, it must be an Example that fits. Without one, and if nothing else was written, the dataset
        holds payloads in your own format: `recordkit.open(path, raw=True)` returns them.
        """
        self._check_open()
        self._raw |= self._schema is None and not self._first and not self._messages
        self._write_payload(bytes(payload), payload)

    def write_chunk(self, chunk: Chunk) -> None:
        """Write records as they are, without checking their payloads: for copies of existing records."""
        self._check_open()
        self._take_all()
        self._raw |= self._schema is None
        if len(chunk):
            self._put(chunk)

    def _write_payload(self, payload: bytes, row: Any) -> None:
        if self._first:
            self._define()
        if self._encoder is not None:
            self._take_rows()
        if self._schema is not None:
            try:
                batch = self._schema.decode(records.pack_many([payload]))
                for name in batch.names:
                    batch[name]
            except (SchemaError, ValueError) as error:
                found = error if isinstance(error, SchemaError) else SchemaError(str(error))
                self._refuse(found, row if isinstance(row, bytes) else payload)
                return
        self._packed.append(payload)
        self._packed_bytes += len(payload)
        if self._packed_bytes >= _CHUNK_BYTES or len(self._packed) >= _MOST_ROWS:
            self._take_packed()

    def _refuse_beside_raw(self) -> None:
        if self._raw:
            message = (
                f"{self.path}: rows cannot follow payloads that were written without a schema\n"
                "  Pass schema= to write both."
            )
            raise SchemaError(message, path=self.path)

    def _refuse(self, error: SchemaError, row: Any) -> None:
        """Handle a row that does not fit, as `on_error` says."""
        number = self.rows
        error = with_row(self._explained(error), number)
        on_error = self._options.on_error
        if on_error == "raise":
            raise error
        if callable(on_error):
            mended = on_error(error, row, number)
            if mended is not None:
                self._write_mended(mended, number)
                return
        self._take_all()
        self._rows += 1
        # Serialized now: the caller may reuse the row's dict and arrays for the next one.
        self._sequence().skip(to_line(BadRow(number, error.field, str(error), row)))

    def _write_mended(self, row: Any, number: int) -> None:
        """Take the row that `on_error` returned instead. If that does not fit either, raise."""
        self._take_packed()
        if self._encoder is None and isinstance(row, Mapping):
            self._take_first(row)
            return
        try:
            if self._encoder is None:
                raise _not_a_row(row)
            self._encoder.append(row)
        except SchemaError as error:
            raise with_row(self._explained(error), number) from None
        if len(self._encoder) >= self._take_at:
            self._take_rows()

    def _explained(self, error: SchemaError) -> SchemaError:
        if self._declared or self._schema is None:
            return error
        note = "The first rows defined the schema; pass schema= to declare another."
        return error.but(advice=f"{error.advice} {note}".lstrip())

    # --- From rows to chunks

    def _define(self) -> None:
        """Let the rows taken so far define the schema, and write them."""
        rows, self._first, self._first_bytes = self._first, [], 0
        self._set_schema(self._schema_of(rows))
        failures = []
        for row in rows:
            try:
                self.write(row)
            except SchemaError as error:
                failures.append(error)  # the rows after it were accepted earlier and must not be lost
        if failures:
            if failures[1:]:
                failures[0].add_note(f"and {len(failures) - 1} more of the first rows do not fit")
            raise failures[0]

    def _schema_of(self, rows: list[Mapping[str, Any]]) -> Schema:
        """Return the schema that the rows define, ignoring rows that disagree with earlier ones."""
        agreed = list(rows)
        while True:
            try:
                return Schema.of_rows(agreed)
            except SchemaError as error:
                if error.record is None:
                    raise
                del agreed[error.record]
                if self._options.on_error == "raise":
                    self._first = agreed  # still to be written, if the caller continues
                    raise

    def _set_schema(self, schema: Schema) -> None:
        self._schema = schema
        self._encoder = schema.encoder()
        run = self._part.run or {}
        self._part.run = {**run, "schema": schema.to_dict()}

    def _take_rows(self) -> None:
        encoder = self._encoder
        if encoder is None or not len(encoder):
            return
        chunk = encoder.take()
        self._put(chunk)
        wanted = _CHUNK_BYTES * len(chunk) // max(1, chunk.nbytes)
        self._take_at = max(1, min(wanted, 16 * self._take_at, _MOST_ROWS))

    def _take_packed(self) -> None:
        if self._packed:
            payloads, self._packed, self._packed_bytes = self._packed, [], 0
            chunk = records.pack_many(payloads)
            if self._schema is None and self._messages:
                self._set_schema(Schema.infer(chunk, strict=True))
            self._put(chunk)

    def _take_all(self) -> None:
        if self._first:
            self._define()
        self._take_rows()
        self._take_packed()

    def _put(self, chunk: Chunk) -> None:
        self._check_open()
        if not self._hinted:
            self._hint(chunk)
        self._rows += len(chunk)
        if len(self._sequences) == 1:
            self._sequences[0].put(chunk)
        else:
            count = len(self._sequences)
            for number, sequence in enumerate(self._sequences):
                dealt = np.arange((number - self._records) % count, len(chunk), count, dtype=np.uint64)
                if len(dealt):
                    sequence.put(chunk.pick(dealt))
        self._records += len(chunk)
        progress.step(f"writing {self.path}", self._rows, self._options.rows, "rows")

    def _sequence(self) -> ShardSequence:
        return self._sequences[self._records % len(self._sequences)]

    def _hint(self, chunk: Chunk) -> None:
        self._hinted = True
        if looks_compressed(chunk[0]):
            log.info(
                "%s: these records look compressed already; %s would hardly shrink them and would slow down reading",
                self.path,
                self._options.compression,
            )

    # --- Ending

    def flush(self) -> None:
        """Wait until every row taken so far is in a file of the staging folder; raise write errors.

        Rows are synced to disk when their shard is finished. In a gzip file, this ends a member.
        """
        self._check_open()
        self._take_all()
        for sequence in self._sequences:
            sequence.flush()
        assert self._queue is not None
        self._queue.wait()

    def close(self) -> Written:
        """Finish the last shard and publish the dataset under its final name; for a part, only finish it.

        Returns:
            A summary of what was written. Closing again returns the same.
        """
        if self.written is not None:
            return self.written
        self._check_open()
        queue = self._queue
        assert queue is not None
        try:
            self.flush()
            for sequence in self._sequences:
                needed = len(self._sequences) > 1 or not self._part.shards
                queue.do(partial(sequence.finish, needed=needed))
                queue.wait()
            self._add_empty()
            if self._part.run is None:
                self._part.run = {}
            shards = self._part.shards
            self._publish(self)
        except BaseException:
            self.abort()
            raise
        self._let_go()
        self.written = Written(
            self.path,
            sum(shard.records for shard in shards),
            len(shards),
            sum(shard.bytes for shard in shards),
            sum(shard.skipped for shard in shards),
        )
        (log.warning if self.written.skipped else log.info)("%s", self.written)
        return self.written

    def _add_empty(self) -> None:
        """Add empty shards where more were asked for than the rows fill."""
        options, queue = self._options, self._queue
        assert queue is not None
        if options.shards is None or options.rows is None:
            return
        if self._rows != options.rows:
            message = (
                f"{self.path}: expected {options.rows:,} rows, found {self._rows:,}\n  Pass the actual number as rows=."
            )
            raise StorageError(message, path=self.path)
        for number in range(len(self._part.shards), options.shards):
            sequence = ShardSequence(
                self._part, queue, options, self._part.shards[0].split, first=number, first_row=self._rows
            )
            queue.do(partial(sequence.finish, needed=True))
            queue.wait()

    def abort(self) -> None:
        """Stop writing. Nothing is published; finished shards are kept for `resume=True`."""
        if self._queue is None:
            return
        with suppress(Exception):
            # Keep full shards, and rows that would fill one; a disk that failed fails again. Do nothing that an
            # uninterrupted run would not do: end no member and define no schema early.
            if self._schema is not None:
                self._take_all()
            self._queue.wait()
            if self._options.on_error == "raise":  # else the next row may be a bad one that belongs to this shard
                for sequence in self._sequences:
                    self._queue.do(sequence.finish_full)
                self._queue.wait()
        self._let_go()
        try:
            if len(self._sequences) > 1:
                self._part.clear()  # rows were dealt to all shards, so some are useless without the others
            kept = self._part.shards
            if kept:
                log.warning(
                    "%s: not published. %s rows in %d finished shards are kept; resume=True continues after them",
                    self.path,
                    f"{sum(shard.rows for shard in kept):,}",
                    len(kept),
                )
        finally:
            self._part.give_up()

    def _let_go(self) -> None:
        queue, self._queue = self._queue, None
        if queue is not None:
            queue.stop()
        for sequence in self._sequences:
            sequence.close()
        self._rows, self._encoder = self.rows, None

    def forget(self) -> None:
        """Leave writing to the parent of this forked process, which has the threads and continues."""
        if self._queue is not None:
            self._queue, self._encoder, self._ours = None, None, False
            self._part.release()

    def _check_open(self) -> None:
        if not self._ours:
            message = (
                f"{self.path}: this writer belongs to the process that this one was forked from\n"
                "  Write from there, or give each process a writer of its own: recordkit.create(..., part=0, parts=2)."
            )
            raise StorageError(message, path=self.path)
        if self._queue is None:
            message = f"{self.path}: the writer is closed"
            raise StorageError(message, path=self.path)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()

    def __del__(self) -> None:
        if getattr(self, "_queue", None) is not None:
            self.drop()

    def drop(self) -> None:
        """Abort a writer that was never closed, and warn about it."""
        if self._queue is not None:
            message = f"{self.path}: a writer was never closed; nothing is published"
            warnings.warn(message, ResourceWarning, stacklevel=2)
            self.abort()

    def __repr__(self) -> str:
        state = "closed" if self._queue is None else "open"
        return f"<Writer of {self.path}, {state}, {self.rows:,} rows>"


def _not_a_row(row: Any) -> SchemaError:
    return SchemaError(f"a row is a dict of field names and values, found {type(row).__name__}")


_open: weakref.WeakSet[Writer] = weakref.WeakSet()


def _drop_all() -> None:
    for writer in list(_open):
        writer.drop()


def _forget_all() -> None:
    for writer in list(_open):
        writer.forget()


# `__del__` is too late: when a program ends, the threads and modules that aborting needs are gone before it runs.
threading._register_atexit(_drop_all)  # type: ignore[attr-defined]
os.register_at_fork(after_in_child=_forget_all)
