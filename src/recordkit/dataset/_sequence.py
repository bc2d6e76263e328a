"""The files of a dataset as one sequence of records, and facts about it that are found once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cached_property, partial
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from recordkit import _core
from recordkit import engines as workers
from recordkit.errors import CorruptRecordError, SchemaError
from recordkit.examples import other_message, survey
from recordkit.records import CHUNK_BYTES, Chunk
from recordkit.schema import Schema
from recordkit.storage.read import Damage, fetch, fetch_later

from ._decoding import ColumnDecoder, Lookup, RecordRange
from ._overlaid import Stack, declared_decoder, decoder_for, living, physical
from ._schema import check_declared, check_rest, with_rest
from ._tolerant import DamageLog

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from recordkit.storage.overlays import Overlay
    from recordkit.storage.read import MappedRecords, RecordFile, Stream

    from ._decoding import BatchDecoder

    _Read: TypeAlias = Callable[[Sequence[RecordFile], NDArray[np.int64], NDArray[np.int64]], Chunk | MappedRecords]

_SAMPLED_FILES = 8
_SAMPLED_BYTES = 2 << 20  # looking at as many takes about 25 ms
_EMPTY_EXAMPLE = 2  # bytes at most


class RecordSequence:
    """All records of a dataset's files, numbered across the files.

    Args:
        files: In order.
        known: The schema from the manifest.
        declared: The schema that the caller expects.
        log: Collects damage.
        examples: Whether to read payloads as Examples at all.
        stack: The overlays on the records.

    Attributes:
        tolerant: Whether damaged records are skipped.
        overlaid: Whether there are overlays.
    """

    def __init__(
        self,
        files: Sequence[RecordFile],
        known: Schema | None,
        declared: Schema | None,
        log: DamageLog,
        *,
        examples: bool = True,
        stack: Stack | None = None,
    ) -> None:
        self.files = tuple(files)
        self.stack = stack or Stack()
        self.overlaid = bool(self.stack)
        self.known = known
        self.declared = declared
        self.log = log
        self.tolerant = log.tolerant
        self.examples = examples

    def __reduce__(self) -> tuple[Any, ...]:
        log = self.log
        return _restored, (self.files, self.known, self.declared, log.on_error, log.max_bad, self.examples, self.stack)

    @cached_property
    def ends(self) -> NDArray[np.int64]:
        """The number of records up to the end of each file.

        Raises:
            CorruptRecordError: A damaged file does not show where its next record starts.
        """
        return np.cumsum(self._counts(), dtype=np.int64)

    def _counts(self) -> list[int]:
        if len(self.files) < 2 or all(file.shard is not None for file in self.files):
            return [self._living_count(file) for file in self.files]
        with ThreadPoolExecutor(min(8, 2 * workers.count(workers.AUTO)), "recordkit-count") as pool:
            return list(pool.map(self._living_count, self.files))

    def _living_count(self, file: RecordFile) -> int:
        return self.living(file, self._count(file))

    def _count(self, file: RecordFile) -> int:
        try:
            return file.count
        except CorruptRecordError:
            if not self.log.tolerant:
                raise
        stream = file.stream(tell=self.log.tell)
        while stream.read() is not None:
            pass
        return stream.next_record

    @property
    def count(self) -> int:
        """How many there are."""
        return int(self.ends[-1]) if self.files else 0

    @cached_property
    def mean_bytes(self) -> int:
        """About how large a record is."""
        known = [file.shard for file in self.files if file.shard is not None and file.shard.records]
        if known:
            return max(1, sum(shard.raw_bytes for shard in known) // sum(shard.records for shard in known))
        sample = next((part.chunk for part in self._samples()), None)
        return max(1, sample.nbytes // len(sample)) if sample is not None else 1

    @cached_property
    def exact_mean_bytes(self) -> int:
        """How large a record is on average: the same however the records are stored. Needs indexes."""
        physical = sum(file.count for file in self.files)
        return max(1, sum(file.raw_bytes for file in self.files) // max(1, physical))

    def rows_in(self, size: int) -> int:
        """Return how many records take about `size` bytes."""
        return max(1, min(size // self.mean_bytes, 1 << 16))

    @cached_property
    def schema(self) -> Schema | None:
        """What the records hold: as declared, from the manifest, or inferred from some of them.

        None if the payloads are no Examples.
        """
        if not self.examples:
            return None
        if self.declared is not None:
            self._check_declared(self.declared)
            return self.declared
        return self.stack.schema(self.own_schema)

    @cached_property
    def own_schema(self) -> Schema | None:
        """What the records themselves hold, without overlays."""
        return (self.known or self.inferred()) if self.examples else None

    def decoder(self, names: tuple[str, ...] | None) -> BatchDecoder | None:
        """Return a decoder of these fields, None for all of them; None if the payloads are no Examples."""
        schema = self.schema
        if schema is None:
            return None
        if not self.stack:
            return ColumnDecoder(schema, names)
        if self.declared is None:
            return decoder_for(self.own_schema or Schema({}), self.stack, names)
        return declared_decoder(self.declared, self.own_schema or Schema({}), self.stack, names)

    def with_declared(self, fields: Mapping[Any, Any]) -> RecordSequence:
        """Return the same records with the fields that a dict declares, where `...: ...` stands for all others.

        Raises:
            SchemaError: It leaves out fields without `...: ...`, or declares fields that are missing.
        """
        declared = with_rest(fields, self.schema or Schema({})) if ... in fields else Schema(fields)
        made = RecordSequence(self.files, self.known, declared, self.log, examples=self.examples, stack=self.stack)
        made.schema  # noqa: B018 - checked now, not at the first batch
        if ... not in fields:
            known = self.schema if self.known is not None or self.stack else None
            check_rest(declared, known, next(self._firsts(self.files), None) if known is None else None)
        return made

    def _check_declared(self, declared: Schema) -> None:
        if self.stack:
            self.stack.check_declared(declared, self.own_schema)
            owners = self.stack.owners(self.own_schema)
            declared = declared.select(*(name for name in declared.names if owners.get(name) is None))
        sample = next(self._firsts(self.files), None)
        if sample is not None:
            check_declared(declared, sample, self.known, tolerant=self.log.tolerant)

    def _samples(self) -> list[RecordRange]:
        """Return the first records of some files, the first file included; of any file if those are empty."""
        step = max(1, len(self.files) // _SAMPLED_FILES)
        samples = list(self._firsts(self.files[::step]))
        return samples or list(islice(self._firsts(self.files), 1))

    def _firsts(self, files: Sequence[RecordFile]) -> Iterator[RecordRange]:
        for file in files:
            chunk = self._sampled(file).read()
            if chunk is not None and len(chunk):
                yield RecordRange(chunk, file.name)

    def _sampled(self, file: RecordFile) -> Stream:
        # Damage is logged when the records are read, not when they are sampled.
        return file.stream(tell=(lambda damage: None) if self.log.tolerant else None)

    def _many_samples(self) -> list[RecordRange]:
        """Return more of the same, for fields that are rare: all records, if there are few."""
        samples = self._samples()
        room = _SAMPLED_BYTES // max(1, len(samples))
        named = {file.name: file for file in self.files if file.file.seekable}
        more = []
        for part in samples:
            size, first = part.chunk.nbytes, part.chunk.first_record + len(part.chunk)
            stream = self._sampled(named[part.path]) if part.path in named else None
            # Damage after the first records is reported when it is read.
            with suppress(CorruptRecordError):
                while stream is not None and size < room and (chunk := stream.read()) is not None:
                    if chunk.first_record >= first:
                        more.append(RecordRange(chunk, part.path))
                        size += chunk.nbytes
        return samples + more

    @cached_property
    def other_message(self) -> str | None:
        """What kind of message the payloads look like, if they are not Examples."""
        part = next(iter(self._samples()), None) if self.examples else None
        return None if part is None else other_message(part.chunk, survey(part.chunk))

    def inferred(self, *, strict: bool = False) -> Schema | None:
        """Return the schema inferred from the first records; None if they are not Examples."""
        samples = self._many_samples()
        if self.stack:
            samples = self._own_of(samples)
        if not samples:
            return Schema({})
        try:
            schema = Schema.infer((part.chunk for part in samples), strict=strict)
        except CorruptRecordError:
            return None  # payloads of another kind
        except SchemaError as error:
            paths = dict.fromkeys(part.path or "" for part in samples)
            error.add_note(f"Found in the first records of {', '.join(paths)}.")
            raise
        # Other messages, such as TensorBoard events, may look like Examples with unknown fields only.
        longest = max(int(part.chunk.lengths.max()) for part in samples)
        return schema if schema.names or longest <= _EMPTY_EXAMPLE else None

    def _own_of(self, samples: list[RecordRange]) -> list[RecordRange]:
        """Return those that the overlays were made for, without records that were appended to a file later."""
        named = {file.name: file for file in self.files}
        cut = []
        for part in samples:
            own = self.stack.own(named[part.path or ""]) - part.chunk.first_record
            cut.append(part.cut(0, max(0, min(own, len(part.chunk)))))
        return [part for part in cut if len(part.chunk)] or samples

    def open_stream(self, file: RecordFile, first: int, *, chunk_bytes: int = CHUNK_BYTES) -> Stream:
        """Open the records of a file from number `first` on."""
        return file.stream(first, tell=self.log.tell if self.tolerant else None, chunk_bytes=chunk_bytes)

    def living(self, file: RecordFile, number: int) -> int:
        """Return how many of a file's records before this one are not deleted."""
        return living(self.stack.deleted(file), number) if self.stack.deletes else number

    def part(self, file: RecordFile, chunk: Chunk) -> RecordRange:
        """Return some records of a file without those that are deleted."""
        if not self.overlaid:
            return RecordRange(chunk, file.name, file)
        numbers = file.numbers_at(chunk.offsets) if self.log.tolerant else None
        part = RecordRange(chunk, file.name, file, numbers)
        deleted = self.stack.deleted(file) if self.stack.deletes else ()
        if not len(deleted):
            return part
        kept = np.flatnonzero(~np.isin(part.record_numbers(0, len(chunk)), deleted))
        return part if len(kept) == len(chunk) else part.pick(kept.astype(np.uint64))

    def place(self, number: int) -> tuple[int, int]:
        """Return which file holds a record, and the record's number there."""
        file = int(np.searchsorted(self.ends, number, side="right")) if len(self.files) > 1 else 0
        inside = number - (int(self.ends[file - 1]) if file else 0)
        return file, int(physical(self.stack.deleted(self.files[file]), inside)) if self.overlaid else inside

    def row(self, number: int, decoder: BatchDecoder) -> Any:
        """Return one record as a row."""
        at, record = self.place(number)
        file = self.files[at]
        return decoder.row(RecordRange(file.fetch_one(record), file.name, file))

    def many(self, numbers: NDArray[np.int64], decoder: BatchDecoder) -> Any:
        """Return these records as a batch: read in the order of the files, given in the order asked for."""
        return self.fetched(numbers, decoder).values(0, len(numbers))

    def fetched(self, numbers: NDArray[np.int64], decoder: BatchDecoder) -> FetchedRecords:
        """Read these records, in the order of the files; they are decoded later, in the order asked for."""
        read = fetch if decoder.gives_lists else fetch_later
        chunk = self._fetched(numbers, None, read)
        overlaid = [self._fetched(numbers, layer, read) for layer in decoder.overlays]
        return FetchedRecords(self, decoder, numbers, chunk, overlaid)

    def named(self, number: int) -> tuple[str, int]:
        """Return the name of the file that holds a record, and the record's number there."""
        at, record = self.place(number)
        return self.files[at].name, record

    def is_good(self, number: int, decoder: BatchDecoder) -> bool:
        """Return whether a record can be decoded; if not, log the damage."""
        at, record = self.place(number)
        file = self.files[at]
        try:
            decoder.force(decoder.decode(RecordRange(file.fetch_one(record), file.name, file), 0, 1))
        except (SchemaError, CorruptRecordError) as error:
            self._tell(file, record, error)
            return False
        return True

    def _tell(self, file: RecordFile, record: int, error: SchemaError | CorruptRecordError) -> None:
        offsets, lengths = file.places()
        kind = getattr(error, "kind", None) or ("malformed" if isinstance(error, CorruptRecordError) else "schema")
        offset, length = int(offsets[record]), int(lengths[record])
        self.log.tell(Damage.from_error(error, file.name, kind=kind, record=record, offset=offset, length=length))

    def digest_of(self, file: RecordFile) -> str:
        """Return an identity of a file's records and of those that are deleted."""
        deleted = self.stack.deleted(file).tobytes().hex() if self.stack else ""
        try:
            return file.digest + deleted
        except CorruptRecordError:
            if not self.log.tolerant:
                raise
            return f"damaged, {file.file.size} bytes{deleted}"

    def _fetched(self, numbers: NDArray[np.int64], layer: Overlay | None, read: _Read) -> Chunk | MappedRecords:
        """Read records of any files, in the order of their numbers; or what an overlay has for them."""
        which, inside, counts = _core.split_numbers(self.ends, numbers)
        used = np.flatnonzero(counts)
        if len(used) < len(self.files):
            which = np.searchsorted(used, which)
        files = [self.files[at] for at in used.tolist()]
        if self.stack.deletes:
            for at, file in enumerate(files):
                if len(deleted := self.stack.deleted(file)):
                    here = which == at
                    inside[here] = physical(deleted, inside[here])
        if layer is not None:
            files, which = self._beside(files, layer, which, inside)
        return read(files, which, inside)

    def _beside(
        self, files: list[RecordFile], layer: Overlay, which: NDArray[np.int64], inside: NDArray[np.int64]
    ) -> tuple[list[RecordFile], NDArray[np.int64]]:
        """Return which files hold an overlay's fields of some records: its own, or those of the records."""
        covers = np.array([self.stack.covers(layer, file) for file in files], np.int64)
        itself = inside >= covers[which]
        if not itself.any():
            return [self.stack.file_of(layer, file) for file in files], which
        places, which = np.unique(2 * which + itself, return_inverse=True)
        found = [files[place // 2] for place in places.tolist()]
        return [
            file if place % 2 else self.stack.file_of(layer, file)
            for file, place in zip(found, places.tolist(), strict=True)
        ], which


class FetchedRecords:
    """Records that were read, of any files, and are not decoded yet.

    Args:
        overlaid: What each overlay of the decoder has for them.
    """

    def __init__(
        self,
        records: RecordSequence,
        decoder: BatchDecoder,
        numbers: NDArray[np.int64],
        chunk: Chunk | MappedRecords,
        overlaid: Sequence[Chunk | MappedRecords],
    ) -> None:
        self._records = records
        self._decoder = decoder
        self._numbers = numbers
        self._chunk = chunk
        self._overlaid = overlaid

    def values(self, start: int, stop: int) -> Any:
        """Return records [start, stop) of them as a batch."""
        numbers = self._numbers[start:stop]
        records = Lookup(
            self._cut(self._chunk, start, stop),
            lambda i: self._records.named(int(numbers[i])),
            partial(self._decode_alone, numbers),
        )
        return self._decoder.fetched(records, [self._cut(each, start, stop) for each in self._overlaid])

    def _cut(self, chunk: Chunk | MappedRecords, start: int, stop: int) -> Chunk | MappedRecords:
        return chunk if stop - start == len(self._numbers) else chunk.slice(start, stop)

    def _decode_alone(self, numbers: NDArray[np.int64]) -> None:
        decoder = self._decoder
        for number in numbers.tolist():
            at, record = self._records.place(number)
            file = self._records.files[at]
            decoder.force(decoder.decode(RecordRange(file.fetch_one(record), file.name, file), 0, 1))


def _restored(
    files: Any, known: Any, declared: Any, on_error: Any, max_bad: Any, examples: bool, stack: Stack
) -> RecordSequence:
    return RecordSequence(files, known, declared, DamageLog(on_error, max_bad), examples=examples, stack=stack)
