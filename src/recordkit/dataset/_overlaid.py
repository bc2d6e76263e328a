"""Records as they are seen through overlays: fields added, hidden, replaced, and records deleted.

Nothing is put together on the wire: each field is decoded from the file that holds it.
"""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from recordkit import _core
from recordkit.columns import Batch
from recordkit.errors import CorruptRecordError, MalformedPayloadError, SchemaError, StorageError
from recordkit.storage.overlays import schema_through

from ._decoding import ColumnDecoder, RecordRange

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from recordkit.records import Chunk
    from recordkit.schema import Schema
    from recordkit.storage.overlays import Overlay
    from recordkit.storage.read import MappedRecords, RecordFile, Stream

    from ._decoding import Lookup


_PIECE_RECORDS, _PIECE_BYTES, _PIECES_KEPT = 8192, 1 << 20, 4
_READERS_KEPT = 8


class OverlayReader:
    """Columns of an overlay's file, for batches that are read in order.

    An overlay's records are small: to read and decode only those of one batch costs more in calls, and in threads that
    wait for each other, than in work. So they are read in pieces of many batches.

    Args:
        file: The overlay's file.
        columns: What to read of it.
    """

    def __init__(self, file: RecordFile, columns: ColumnDecoder) -> None:
        assert file.shard is not None
        self._file = file
        self._columns = columns
        made = columns.joined([]).lazy_columns.values()
        arrays = [column for column in made if isinstance(column, np.ndarray)]
        # Other columns than arrays are decoded a batch at a time: to slice them takes as long.
        self._arrays = len(arrays) == len(made)
        width = sum(array.itemsize * math.prod(array.shape[1:]) for array in arrays)
        fit = _PIECE_BYTES // max(1, width, file.shard.raw_bytes // max(1, file.count))
        # A power of two, so that few batches cross pieces.
        self._size = 1 << max(0, min(fit, _PIECE_RECORDS).bit_length() - 1)
        self._last = (file.count - 1) // self._size
        self._pieces: OrderedDict[int, _OverlayPiece | None] = OrderedDict()
        self._stream: Stream | None = None
        self._turn = threading.Lock()

    def batch(self, start: int, stop: int) -> Batch:
        """Return records [start, stop) of the file as columns.

        Raises:
            SchemaError: One of them is not as declared.
            CorruptRecordError: One of them is damaged.
        """
        number, begin = divmod(start, self._size)
        end = begin + stop - start
        if begin < end <= self._size:
            piece = self._piece(number)
            if piece is not None:
                if 2 * end > self._size and number < self._last:
                    self._piece(number + 1)  # early, while other threads still have work in this one
                return piece.cut(self._columns, begin, end)
        elif end > self._size >= stop - start:
            head, tail = self._piece(number), self._piece(number + 1)
            if head is not None and tail is not None:
                cuts = head.cut(self._columns, begin, self._size), tail.cut(self._columns, 0, end - self._size)
                return Batch.joined(cuts)
        return self._columns.decode(self._part(self._file.span(start, stop - start)), 0, stop - start)

    def _part(self, chunk: Chunk) -> RecordRange:
        return RecordRange(chunk, self._file.name, self._file)

    def _piece(self, number: int) -> _OverlayPiece | None:
        """Return a piece; None if something in it is damaged, or another thread is reading one."""
        if number in self._pieces:
            return self._pieces.get(number)
        if not self._turn.acquire(blocking=False):
            return None  # reading just the batch is faster than waiting
        try:
            if number not in self._pieces:
                self._pieces[number] = self._read(number * self._size)
                if len(self._pieces) > _PIECES_KEPT:
                    self._pieces.popitem(last=False)
            return self._pieces[number]
        finally:
            self._turn.release()

    def _read(self, first: int) -> _OverlayPiece | None:
        count = min(self._size, self._file.count - first)
        try:
            part = self._part(self._chunk(first, count))
            batch = self._columns.decode(part, 0, count) if self._arrays else None
        except (SchemaError, CorruptRecordError):
            return None  # the batch that has the bad record will raise
        return _OverlayPiece(part, None) if batch is None or batch.masks else _OverlayPiece(None, batch.lazy_columns)

    def _chunk(self, first: int, count: int) -> Chunk:
        """Return records, from the stream that the piece before has left open, if possible."""
        if self._file.compression is None:
            stream, self._stream = self._stream, None
            if stream is None or stream.next_record != first:
                stream = self._file.stream(first)
            chunk = stream.read(count)
            if chunk is not None and len(chunk) == count:
                if first + count < self._file.count:
                    self._stream = stream
                return chunk
        return self._file.span(first, count)


class _OverlayPiece(NamedTuple):
    """Consecutive records: as arrays, or not decoded yet."""

    part: RecordRange | None
    arrays: Mapping[str, Any] | None

    def cut(self, columns: ColumnDecoder, start: int, stop: int) -> Batch:
        """Return records [start, stop) of the piece: a copy, since the caller may change it."""
        if self.arrays is not None:
            return Batch({name: array[start:stop].copy() for name, array in self.arrays.items()}, stop - start)
        assert self.part is not None
        return columns.decode(self.part, start, stop)


class Stack:
    """The overlays of a dataset, oldest first.

    Args:
        layers: Those that apply to all its files.

    Attributes:
        deletes: Whether one of them has deleted records.
    """

    def __init__(self, layers: Sequence[Overlay] = ()) -> None:
        self.layers = tuple(layers)
        self.deletes = any(layer.deleted for layer in self.layers)
        self._places = {layer.path: place for place, layer in enumerate(self.layers)}
        self._covered: dict[str, tuple[int, ...]] = {}
        self._readers: OrderedDict[tuple[Any, ...], OverlayReader] = OrderedDict()
        self._deleted: dict[str, NDArray[np.int64]] = {}
        self._lock = threading.Lock()

    def __bool__(self) -> bool:
        return bool(self.layers)

    def __reduce__(self) -> tuple[Any, ...]:
        return Stack, (self.layers,)

    def owners(self, base: Schema | None) -> dict[str, Overlay | None]:
        """Return where each visible field is: in an overlay, or None for the records themselves."""
        owners: dict[str, Overlay | None] = dict.fromkeys(base.names if base is not None else ())
        for layer in self.layers:
            for name in layer.hides:
                owners.pop(name, None)
            owners.update(dict.fromkeys(layer.schema.names, layer))
        return owners

    def check_declared(self, declared: Schema, base: Schema | None) -> None:
        """Raise if the caller declares a field other than an overlay has it, or one that is hidden.

        Raises:
            SchemaError: The error names the field.
        """
        owners = self.owners(base)
        hidden = {name: layer for layer in self.layers for name in layer.hides if name not in owners}
        for name in declared.names:
            layer = owners.get(name)
            if name in hidden:
                message = f"{name}: hidden by {hidden[name].path}\n  To read it: overlays=False."
                raise SchemaError(message, field=name)
            if layer is not None and declared.fields.get(name) != layer.schema.fields[name]:
                expected, found = declared.select(name), layer.schema.select(name)
                message = (
                    f"{name}: declared differently than in {layer.path}\n  {found.explain_difference(expected)}\n"
                    "  To change it: recordkit.cast_fields."
                )
                raise SchemaError(message, field=name)

    def schema(self, base: Schema | None) -> Schema | None:
        """Return the visible fields."""
        return base if base is None or not self.layers else schema_through(self.layers, base)

    def check(self, file: RecordFile) -> None:
        """Raise if an overlay is not for a file as it is now. This is checked once.

        Raises:
            StorageError: The file has changed, or the overlay is not for it.
        """
        self._covers(file)

    def covers(self, layer: Overlay, file: RecordFile) -> int:
        """Return how many records of a file an overlay is for. Those appended later hold its fields themselves.

        Raises:
            StorageError: The file has changed, or the overlay is not for it.
        """
        return self._covers(file)[self._places[layer.path]]

    def own(self, file: RecordFile) -> int:
        """Return how many records a file had before any overlay; those appended later hold the overlays' fields.

        All of them if that cannot be determined.
        """
        try:
            return min(
                (count for layer, count in zip(self.layers, self._covers(file), strict=True) if layer.alters),
                default=_ALL,
            )
        except StorageError:
            return _ALL  # reading will raise

    def _covers(self, file: RecordFile) -> tuple[int, ...]:
        found = self._covered.get(file.name)
        if found is None:
            found = tuple(layer.covers(file) for layer in self.layers)
            with self._lock:
                self._covered[file.name] = found
        return found

    def file_of(self, layer: Overlay, file: RecordFile) -> RecordFile:
        """Return the overlay's file for a file of records."""
        self.check(file)
        return layer.files[_name_of(file)]

    def reader(self, layer: Overlay, columns: ColumnDecoder, file: RecordFile) -> OverlayReader:
        """Return a reader of the overlay's records for a file, for batches that are read in order."""
        key = id(layer), file.name, columns.names
        reader = self._readers.get(key)
        if reader is None:
            beside = self.file_of(layer, file)
            with self._lock:
                reader = self._readers.setdefault(key, OverlayReader(beside, columns))
                if len(self._readers) > _READERS_KEPT:
                    self._readers.popitem(last=False)
        return reader

    def deleted(self, file: RecordFile) -> NDArray[np.int64]:
        """Return the numbers of the records of a file that were deleted, in ascending order.

        Raises:
            StorageError: The file has changed since.
        """
        found = self._deleted.get(file.name)
        if found is None:
            if self.deletes:
                self.check(file)
            name = _name_of(file)
            each = [layer.deleted[name] for layer in self.layers if name in layer.deleted and self.covers(layer, file)]
            found = self._deleted[file.name] = np.unique(np.concatenate(each)) if each else _NONE
        return found


_NONE = np.empty(0, np.int64)
_ALL = 1 << 62


def _name_of(file: RecordFile) -> str:
    return file.name if file.local is None else file.local.path.name


def living(deleted: NDArray[np.int64], number: int) -> int:
    """Return how many records before this one were not deleted.

    >>> living(np.array([2, 5]), 5)
    4
    """
    return number - int(np.searchsorted(deleted, number)) if len(deleted) else number


def physical(deleted: NDArray[np.int64], numbers: Any) -> Any:
    """Return the numbers in the file of records that are numbered without the deleted ones.

    >>> physical(np.array([0, 2, 3]), np.array([0, 1, 2])).tolist()
    [1, 4, 5]
    """
    if not len(deleted):
        return numbers
    return numbers + np.searchsorted(deleted - np.arange(len(deleted)), numbers, side="right")


@dataclass(frozen=True)
class OverlaidDecoder:
    """Columns of fields from records and from overlays.

    Attributes:
        base: Decodes the fields of the records themselves.
        added: The overlays that hold other fields, each with a decoder.
        order: The names of all fields, in the order of the batch.
        stack: All overlays.
    """

    base: ColumnDecoder
    added: tuple[tuple[Overlay, ColumnDecoder], ...]
    order: tuple[str, ...]
    stack: Stack
    gives_lists = False

    @property
    def overlays(self) -> tuple[Overlay, ...]:
        """The overlays to read fields from, too."""
        return tuple(layer for layer, _ in self.added)

    def decode(self, records: RecordRange, start: int, stop: int) -> Batch:
        """Return records [start, stop) of a range as columns."""
        base = self.base.decode(records, start, stop)
        return self.merged(base, [self._beside(*added, records, start, stop) for added in self.added])

    def fetched(self, records: Lookup, overlaid: Sequence[Chunk | MappedRecords]) -> Batch:
        """Return records that were looked up as columns."""
        beside = [
            columns.mixed(chunk, records.decode_alone) for chunk, (_, columns) in zip(overlaid, self.added, strict=True)
        ]
        return self.merged(self.base.fetched(records, ()), beside)

    def _beside(self, layer: Overlay, columns: ColumnDecoder, part: RecordRange, start: int, stop: int) -> Batch:
        """Return what an overlay has for records [start, stop) of a range."""
        assert part.file is not None
        end = start + self._covered(layer, part, start, stop)
        if end < stop:
            own = columns.decode(part, end, stop)
            return own if end == start else Batch.joined([self._beside(layer, columns, part, start, end), own])
        first = part.following(start, stop)
        if first is not None:
            return self.stack.reader(layer, columns, part.file).batch(first, first + stop - start)
        file = self.stack.file_of(layer, part.file)
        fetched = RecordRange(file.fetch(part.record_numbers(start, stop)), file.name, file)
        return columns.decode(fetched, 0, stop - start)

    def _covered(self, layer: Overlay, part: RecordRange, start: int, stop: int) -> int:
        """Return how many of records [start, stop) of a range an overlay is for: the first ones."""
        assert part.file is not None
        covers = self.stack.covers(layer, part.file)
        if part.numbers is None:
            return min(max(covers - part.chunk.first_record - start, 0), stop - start)
        return int(np.searchsorted(part.numbers[start:stop], covers))

    def joined(self, parts: Sequence[RecordRange]) -> Batch:
        """Return the records of all parts as columns."""
        beside = []
        for layer, columns in self.added:
            batches = [self._beside(layer, columns, part, 0, len(part.chunk)) for part in parts]
            beside.append(Batch.joined(batches) if batches else columns.joined([]))
        return self.merged(self.base.joined(parts), beside)

    def merged(self, base: Batch, beside: Sequence[Batch]) -> Batch:
        """Return one batch of the columns of several, in order."""
        batch = base.beside(*beside)
        return batch if self._in_order else batch.select(*self.order)

    @cached_property
    def _in_order(self) -> bool:
        """Whether the fields of overlays come after all others."""
        names = [name for columns in (self.base, *(of for _, of in self.added)) for name in columns.names or ()]
        return tuple(names) == self.order

    def row(self, part: RecordRange) -> dict[str, Any]:
        """Return one record as a dict."""
        row = self.base.row(part)
        for layer, columns in self.added:
            assert part.file is not None
            if not self._covered(layer, part, 0, 1):
                row |= columns.row(part)
                continue
            file = self.stack.file_of(layer, part.file)
            row |= columns.row(RecordRange(file.fetch_one(int(part.record_numbers(0, 1)[0])), file.name, file))
        return {name: row[name] for name in self.order}

    def force(self, batch: Batch) -> None:
        """Decode every column, which finds values that are not as declared."""
        self.base.force(batch)

    def describe(self) -> list[Any]:
        """Return the schemas and names, of the records and of the overlays, and what identifies the overlays."""
        added = [(columns.schema.to_dict(), columns.names) for _, columns in self.added]
        overlays = [[file.digest for file in layer.files.values()] for layer, _ in self.added]
        return [self.base.schema.to_dict(), self.base.names, added, overlays, self.order]

    def functions(self) -> tuple[Any, ...]:
        """Return none."""
        return ()


def decoder_for(base: Schema, stack: Stack, names: Sequence[str] | None) -> ColumnDecoder | OverlaidDecoder:
    """Return a decoder of these fields, wherever they are."""
    if not stack:
        return ColumnDecoder(base, None if names is None else tuple(names))
    owners = stack.owners(base)
    order = tuple(owners) if names is None else tuple(names)
    for name in order:
        if name not in owners:
            message = f"{name}: not in the schema"
            raise SchemaError(message, field=name)
    of_layers: dict[str, tuple[Overlay, list[str]]] = {}
    for name in order:
        layer = owners[name]
        if layer is not None:
            of_layers.setdefault(str(layer.path), (layer, []))[1].append(name)
    added = tuple((layer, ColumnDecoder(layer.schema, tuple(fields))) for layer, fields in of_layers.values())
    own = ColumnDecoder(base, tuple(name for name in order if owners[name] is None))
    return OverlaidDecoder(own, added, order, stack)


def declared_decoder(
    declared: Schema, base: Schema, stack: Stack, names: Sequence[str] | None
) -> ColumnDecoder | OverlaidDecoder:
    """Return a decoder of these fields as the caller declared them; those of overlays are as they were written."""
    order = tuple(declared.names) if names is None else tuple(names)
    decoder = decoder_for(base, stack, order)
    if isinstance(decoder, ColumnDecoder):
        return ColumnDecoder(declared, names if names is None else tuple(names))
    return replace(decoder, base=ColumnDecoder(declared, decoder.base.names))


def baked_chunk(part: RecordRange, base: Schema, stack: Stack, *, sure: bool = True) -> Chunk:
    """Return records with added fields put in and hidden ones taken out, as `bake` writes them.

    Args:
        part: The records.
        base: What they hold.
        stack: The overlays.
        sure: Whether that is all they hold. If it was inferred from some of them, others may have a feature with the
            name of an added one.
    """
    assert part.file is not None
    # Cut where records were appended at different times, because they hold different fields.
    ends = {stack.covers(layer, part.file) for layer in stack.layers}
    numbers = part.record_numbers(0, len(part.chunk))
    cuts = sorted({0, len(numbers), *(int(np.searchsorted(numbers, end)) for end in ends)})
    pieces = [_merged(part.cut(start, stop), base, stack, sure=sure) for start, stop in pairwise(cuts)]
    return pieces[0] if len(pieces) == 1 else _core.join(pieces)


def _merged(part: RecordRange, base: Schema, stack: Stack, *, sure: bool) -> Chunk:
    """Do this for records that the same overlays are for."""
    assert part.file is not None
    chunk = part.chunk
    sequence = bool(base.sequences)
    owners = stack.owners(base)
    first = int(part.record_numbers(0, 1)[0]) if len(chunk) else 0
    beside = [layer for layer in stack.layers if stack.covers(layer, part.file) > first]
    schemas = [base]
    if not sure or len(beside) < len(stack.layers):
        schemas += [layer.schema for layer in stack.layers]
    inside = {name for name, layer in owners.items() if layer is None or layer not in beside}
    features = [(name, feature) for of in schemas for name in of.names for feature in of.wire_names(name)]
    hidden = {feature for name, feature in features if name not in inside}
    hidden -= {feature for name, feature in features if name in inside}
    if hidden:
        chunk = rewritten_chunk(part, chunk, hidden, sequence=sequence)
    for layer in beside:
        kept = [name for name in layer.schema.names if owners.get(name) is layer]
        if not kept:
            continue
        tail = stack.file_of(layer, part.file).fetch(part.record_numbers(0, len(part.chunk)))
        gone = {feature for name in layer.schema.names if name not in kept for feature in layer.schema.wire_names(name)}
        if gone:
            tail = rewritten_chunk(part, tail, gone, sequence=False)
        chunk = rewritten_chunk(part, chunk, set(), sequence=sequence, tail=tail)
    return chunk


def rewritten_chunk(
    part: RecordRange,
    chunk: Chunk,
    drop: set[str],
    *,
    sequence: bool,
    tail: Chunk | None = None,
    absent: frozenset[str] = frozenset(),
) -> Chunk:
    """Return records without some features, and with others appended.

    Args:
        part: Where the records came from, for errors.
        chunk: The records.
        drop: The features to take out.
        sequence: Whether they are SequenceExamples.
        tail: A record for each of them, whose features are added.
        absent: Features that none of them may have.
    """
    fault, _, record, byte, name, changed = _core.rewrite(chunk, drop, {}, set(), set(absent), sequence, tail)
    if fault:
        number = int(part.record_numbers(record, record + 1)[0])
        where = f"{part.path}: record {number}"
        if fault == 1:
            message = f"{where}: its payload is not a valid Example from byte {byte} on"
            raise MalformedPayloadError(message, path=part.path, record=number, byte=byte, kind="malformed")
        if fault == 2:
            message = f"{where}: {name}: the record already has a feature of this name\n  To replace it: replace=True."
            raise SchemaError(message, path=part.path, record=number, field=name)
        message = f"{where}: with the new fields it would be 2 GiB or more, which protobuf cannot read"
        raise SchemaError(message, path=part.path, record=number)
    return changed
