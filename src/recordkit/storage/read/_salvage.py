"""Salvage: walks through a file, damaged or not, and yields its intact records and descriptions of the damage.

The core decides what is intact after damage, one window at a time, so that memory does not grow with the file. The
rules are in docs/format/records.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Final, Literal, cast

from recordkit import _core, records
from recordkit.codecs import all_zeros, codec_of, most_payload, segments
from recordkit.errors import CorruptRecordError
from recordkit.filesystems import cut_short, written_over
from recordkit.records import CHANGED, LARGE_BYTES, NO_LIMIT
from recordkit.wording import counted

from ._contiguous import ContiguousBytes, Plain
from ._damage import Damage
from ._explain import unstable_words

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator
    from typing import TypeAlias

    from typing_extensions import Buffer

    from recordkit.codecs import Compression, Gap, Zipped
    from recordkit.filesystems import ByteFile
    from recordkit.records import Chunk

    from ._contiguous import ByteSource

    _Found: TypeAlias = tuple[int, int, int, bool]  # offset, length, how, nested: as the core returns it
    _Lost: TypeAlias = tuple[int, int, int, int]  # offset, length, what, records before

_CHUNK: Final = 1 << 20
_WINDOW: Final = 1 << 20
_GIVE_UP: Final = 32 << 20  # a window without the start of a record grows no larger than this
_FRAME: Final = 16
_TORN_HEADER: Final = 1  # faults, as the core numbers them
_BAD_LENGTH: Final = 2

_LOST: Final = ("bad_length", "bad_payload", "torn", "zeros")  # as the core counts them
_JOINED: Final = ("bad_length", "zeros")


@dataclass(frozen=True)
class SkippedRecords:
    """A large record that was checked and not kept; it offers what callers need of a `Chunk`.

    Attributes:
        first_record: Its number.
        file_offset: Where it starts.
        nbytes: The size of its frame.
    """

    first_record: int
    file_offset: int
    nbytes: int
    _identity: bytes

    def __len__(self) -> int:
        return 1

    def identity(self) -> bytes:
        """Return its length and CRC."""
        return self._identity


def walk(
    file: ByteFile,
    compression: Compression,
    *,
    offset: int = 0,
    record: int = 0,
    max_record_bytes: int = NO_LIMIT,
    nested: bool = False,
    fault: CorruptRecordError | None = None,
) -> Iterator[Chunk | Damage]:
    """Yield every intact record of a file, in chunks, and a `Damage` wherever something is wrong, in file order.

    Records are numbered in file order, counting damaged ones whose header is intact. Every record that is yielded has
    a payload with the right checksum.

    Args:
        file: The file.
        compression: How it is compressed.
        offset: Where to start in a plain file; must be the start of a record.
        record: The number of the record that starts there.
        max_record_bytes: Records with longer payloads are skipped and reported.
        nested: Whether to yield records found inside the payload of a damaged one. They may be part of its content
            rather than records of this file; they are reported in any case.
        fault: What a reader raised at `offset`; if a second reading is intact, that is reported.

    >>> import io
    >>> from recordkit.filesystems import ObjectFile
    >>> good, bad = records.pack(b"good"), bytearray(records.pack(b"bad!"))
    >>> bad[13] ^= 1
    >>> for item in walk(ObjectFile(io.BytesIO(good + bytes(bad) + good), "a.tfrecord"), None):
    ...     print(item if isinstance(item, Damage) else list(item))
    [b'good']
    a.tfrecord: record 1 at byte 20: the payload or its checksum is damaged
    [b'good']
    """
    if compression is None:
        walker = _Walker(Plain(file), file.name, offset, record, max_record_bytes, nested=nested)
        yield from cast("Iterator[Chunk | Damage]", walker.items(fault))
    elif offset:
        message = f"{file.name}: only a plain file can be walked from an offset"
        raise ValueError(message)
    else:
        found = _walk_compressed(file, compression, record, max_record_bytes, nested=nested)
        yield from cast("Iterator[Chunk | Damage]", found)


def walk_checking(
    file: ByteFile, compression: Compression, *, offset: int = 0, record: int = 0
) -> Iterator[Chunk | SkippedRecords | Damage]:
    """Yield what `walk` does, but a `SkippedRecords` for each large record, so that memory stays flat.

    A damaged record of a compressed file is still held in memory, unless it claims to be larger than any should be.
    """
    if compression is None:
        return _Walker(Plain(file), file.name, offset, record, NO_LIMIT, nested=False, pass_large=True).items()
    return _walk_compressed(file, compression, record, most_payload(file.size), nested=False, pass_large=True)


# --- Walking


class _Walker:
    """Walks through one source.

    Attributes:
        at: Everything before this offset is done.
        record: The number of the next record.
    """

    def __init__(
        self,
        source: ByteSource,
        path: str,
        at: int,
        record: int,
        max_record_bytes: int,
        *,
        nested: bool,
        pass_large: bool = False,
        raw: bool = False,
    ) -> None:
        self.at = at
        self.record = record
        self._source = source
        self._path = path
        self._most = max_record_bytes
        self._nested = nested
        self._pass_large = pass_large
        self._raw = raw
        self._window = _WINDOW
        self._outer = record  # the number of the damaged record that contains nested ones

    def items(self, fault: CorruptRecordError | None = None) -> Iterator[Chunk | SkippedRecords | Damage]:
        """Yield chunks and damage, starting with a fault if one is known."""
        held: Damage | None = None
        for item in self._items(fault):
            if held is not None and isinstance(item, Damage) and _go_on(held, item):
                held = self._lost(held.kind, held.offset, held.length + item.length, held.record)
                continue
            if held is not None:
                yield held
            held = item if isinstance(item, Damage) else None
            if held is None:
                yield item
        if held is not None:
            yield held

    def _items(self, fault: CorruptRecordError | None) -> Iterator[Chunk | SkippedRecords | Damage]:
        while fault is not None or (fault := (yield from self._sound())) is not None:
            if fault.kind in CHANGED:
                raise fault
            if fault.kind == "too_large" and (damage := self._too_large()) is not None:
                yield damage
            else:
                yield from self._salvaged(fault)
            self._source.forget(self.at)
            fault = None

    def _sound(self) -> Generator[Chunk | SkippedRecords, None, CorruptRecordError | None]:
        """Yield records up to the first fault, and return it."""
        reader = records.Reader(
            self._source.opened(self.at),
            path=self._path,
            chunk_bytes=_CHUNK,
            max_record_bytes=min(self._most, LARGE_BYTES),
            offset=self.at,
            first_record=self.record,
            had=self._source.had,
        )
        while True:
            try:
                chunk = self._next(reader)
            except CorruptRecordError as fault:
                return fault.with_traceback(None)  # which would keep everything that was read alive
            if chunk is None:
                return None
            self.at = chunk.file_offset + chunk.nbytes
            self.record += len(chunk)
            self._source.forget(self.at)
            yield chunk

    def _next(self, reader: records.Reader) -> Chunk | SkippedRecords | None:
        try:
            return reader.read()
        except CorruptRecordError as fault:
            if fault.kind != "too_large" or self._length > self._most:
                raise
        return self._large(*reader.pass_large())

    @property
    def _length(self) -> int:
        """The payload length in the next header."""
        return int.from_bytes(self._source.read_at(self.at, 8), "little")

    def _large(self, size: int, identity: bytes) -> Chunk | SkippedRecords:
        """Return a record that was checked piece by piece; it is read whole only now that it is known to be intact."""
        if self._pass_large:
            return SkippedRecords(self.record, self.at, size, identity)
        return self._again(self._source.taken(self.at, size), self.at, self.record)

    def _too_large(self) -> Damage | None:
        """Skip a record that is larger than allowed; None if the file ends inside it."""
        length = self._length
        if length + _FRAME > self._source.left(self.at):
            return None
        self.at += length + _FRAME
        return self._left_out(self.at - length - _FRAME, length)

    def _salvaged(self, fault: CorruptRecordError) -> Iterator[Chunk | Damage]:
        """Yield what a window after a fault holds."""
        there, found, lost, decided = self._decided()
        start, self.at = self.at, self.at + decided
        if not there or (found and (found[0][0], found[0][2]) == (0, 0) and not found[0][3]):
            length = found[0][1] + _FRAME if found else 0
            yield self._damage("unstable_read", start, length, unstable_words(fault, still_there=there))
        for kind, group in groupby(sorted([*found, *map(_as_lost, lost)]), self._sort):
            if kind == "lost":
                for offset, length, what, _ in group:
                    damage = self._lost(_kind(_LOST[-what - 1], length), start + offset, length, self.record)
                    self._outer, self.record = self.record, damage.next_record
                    yield damage
            elif kind == "too_large":
                for offset, length, _, _ in group:
                    yield self._left_out(start + offset, length)
            elif kind == "confirmed":
                for record in group:
                    yield from self._confirmed(start, record)
            else:
                inside = list(group)
                if kind == "sound":
                    for chunk in self._chunks(start, inside, self.record):
                        yield self._counted(chunk)
                else:
                    yield self._nested_damage(start, inside)
                    if self._nested:
                        yield from self._chunks(start, inside, self._outer)

    def _decided(self) -> tuple[bool, list[_Found], list[_Lost], int]:
        """Enlarge the window until the core decides; return if bytes are left, what it found and lost, and to where."""
        size = self._window
        self._window = _WINDOW
        while True:
            left = self._source.left(self.at, size)
            there = min(size, left)
            try:
                found, lost, decided, searched = _core.salvage_at(self._source.read_at, self.at, there, left - there)
            except BufferError:  # the file became shorter
                now = self.at + self._source.left(self.at)
                raise cut_short(self._path, self._source.had, now, record=self.record, offset=self.at) from None
            if decided or not there:
                return there > 0, found, lost, decided
            if searched and size >= _GIVE_UP:
                self._window = size
                zeros = all_zeros(self._source, self.at, self.at + searched)
                return True, [], [(0, searched, _LOST.index("zeros" if zeros else "bad_length"), 0)], searched
            # Room for a record longer than the window and for the one after it, but not more: it all is in memory.
            size = max(2 * size, _WINDOW + self._length) if self._header_is_sound() else 2 * size

    def _header_is_sound(self) -> bool:
        return _core.scan(self._source.read_at(self.at, 12), NO_LIMIT)[1] not in (_TORN_HEADER, _BAD_LENGTH)

    def _sort(self, record: _Found) -> Literal["lost", "too_large", "confirmed", "nested", "sound"]:
        _, length, how, nested = record
        if how < 0:
            return "lost"
        if length > self._most:
            return "too_large"
        if nested:
            return "nested"
        return "confirmed" if how else "sound"

    def _confirmed(self, start: int, record: _Found) -> Iterator[Chunk | Damage]:
        offset, length, _, _ = record
        words = "the length's checksum is damaged; the payload's confirms the record, which is kept"
        yield self._damage("bad_length_crc", start + offset, length + _FRAME, words)
        frame = bytearray(self._source.read_at(start + offset, length + _FRAME))
        frame[8:12] = _core.mask_crc(_core.crc32c(frame[:8])).to_bytes(4, "little")
        yield self._counted(self._again(frame, start + offset, self.record))

    def _chunks(self, start: int, inside: Iterable[_Found], record: int) -> Iterator[Chunk]:
        """Yield records of a window, numbered from `record` on; adjacent ones share a chunk."""
        for begin, end in _runs(inside):
            yield (chunk := self._again(self._source.read_at(start + begin, end - begin), start + begin, record))
            record += len(chunk)

    def _again(self, data: Buffer, offset: int, record: int) -> Chunk:
        """Parse bytes that were found to be intact records."""
        chunk, fault, _ = _core.scan(data, NO_LIMIT, offset, record)
        if fault or chunk.nbytes != memoryview(data).nbytes:
            raise written_over(self._path)
        return chunk

    def _counted(self, chunk: Chunk) -> Chunk:
        self.record += len(chunk)
        return chunk

    # --- In words

    def _nested_damage(self, start: int, inside: list[_Found]) -> Damage:
        begin, end = inside[0][0], inside[-1][0] + inside[-1][1] + _FRAME
        done = "kept anyway" if self._nested else "left out; nested=True keeps them"
        count = counted(len(inside), "record")
        words = f"{count} inside the payload of a damaged one, possibly part of its content: {done}"
        return Damage(self._path, "nested", self._outer, start + begin, end - begin, words, self._raw)

    def _lost(self, kind: str, offset: int, length: int, record: int) -> Damage:
        words = _WORDS.get(kind, "")
        if kind == "zeros":
            tail = self._source.whole and self._source.left(offset + length) == 0
            words = (
                f"zero tail of {length} bytes (unclean shutdown?)"
                if tail
                else f"zero-filled region {offset}…{offset + length - 1}"
            )
        return Damage(self._path, kind, record, offset, length, words, self._raw)

    def _left_out(self, offset: int, length: int) -> Damage:
        words = f"the record has {length} bytes, more than max_record_bytes allows, and is left out"
        damage = self._damage("too_large", offset, length + _FRAME, words)
        self.record = damage.next_record
        return damage

    def _damage(self, kind: str, offset: int, length: int, words: str) -> Damage:
        return Damage(self._path, kind, self.record, offset, length, words, self._raw)


_WORDS: Final = {
    "bad_payload_crc": "the payload or its checksum is damaged",
    "bad_length": "the length of a record is damaged, or bytes were inserted or removed",
    "torn_header": "truncated record: the file ends inside its 12-byte header",
    "torn_payload": "truncated record: the file ends before the record does",
}
_LOSSES: Final = (*_WORDS, "zeros")


def _kind(what: str, length: int) -> str:
    if what == "torn":
        return "torn_header" if length < 12 else "torn_payload"
    return "bad_payload_crc" if what == "bad_payload" else what


def _as_lost(lost: _Lost) -> _Found:
    """Return a lost region in the form of a found record, to sort both by offset; a negative `how` marks it."""
    offset, length, what, _ = lost
    return offset, length, -what - 1, False


def _runs(inside: Iterable[_Found]) -> Iterator[tuple[int, int]]:
    """Yield where runs of adjacent records begin and end, each about a chunk long."""
    begin = end = -1
    for offset, length, _, _ in inside:
        if offset != end or end - begin >= _CHUNK:
            if end > begin:
                yield begin, end
            begin = offset
        end = offset + length + _FRAME
    if end > begin:
        yield begin, end


def _go_on(held: Damage, item: Damage) -> bool:
    return (item.kind, item.offset) == (held.kind, held.offset + held.length) and item.kind in _JOINED


# --- Compressed files


def _walk_compressed(
    file: ByteFile,
    compression: Zipped,
    record: int,
    max_record_bytes: int,
    *,
    nested: bool,
    pass_large: bool = False,
) -> Iterator[Chunk | SkippedRecords | Damage]:
    """Walk through the bytes between gaps. Losses on either side of a gap are reported with the gap."""
    pieces = segments(file, compression, nested=nested)
    start, gap, lost, before = 0, None, record, 0
    while True:
        span = ContiguousBytes(pieces, start)
        walker = _Walker(
            span, file.name, start, record, max_record_bytes, nested=nested, pass_large=pass_large, raw=True
        )
        tail, torn = 0, None
        for item in walker.items():
            loss = item if isinstance(item, Damage) and item.kind in _LOSSES else None
            if gap is not None:
                after = loss.length if loss is not None and loss.offset == start else 0
                yield _gap_damage(file.name, gap, lost, before + after)
                gap = None
                if after:
                    continue
            if loss is not None and span.gap is not None and loss.offset + loss.length == span.end:
                tail, torn = loss.length, loss.record
            else:
                yield item
        if gap is not None:
            yield _gap_damage(file.name, gap, lost, before)
        if span.gap is None:
            file.check_not_truncated()
            return
        gap, before = span.gap, tail
        lost = walker.record if torn is None else torn
        record, start = _after_gap(file, compression, gap, walker.record, span.end)


def _after_gap(file: ByteFile, compression: Compression, gap: Gap, record: int, start: int) -> tuple[int, int]:
    """Return the number and offset of the first record after a gap, from the headers of our members."""
    members = codec_of(compression).members(file)
    for member in members or ():
        if member.offset == gap.offset + gap.length and member.first_record >= record:
            return member.first_record, member.raw_offset
    return record, start


def _gap_damage(path: str, gap: Gap, record: int, around: int) -> Damage:
    words = f"{gap.words}; {around} bytes around it belong to no complete record" if around else gap.words
    return Damage(path, gap.kind, record, gap.offset, gap.length, words)
