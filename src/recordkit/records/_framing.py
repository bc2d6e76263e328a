"""Records: the framing that turns a file's bytes into payloads and back.

Nothing here knows what a payload holds; that is `recordkit.examples`.
The format is written down in docs/format/records.md.
"""

from __future__ import annotations

import io
import threading
import zlib
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import IO, TYPE_CHECKING, Any, Final, Literal, cast

from recordkit import _core
from recordkit.errors import CorruptRecordError, record_place
from recordkit.filesystems import REPLACE_BY_RENAMING, cut_short, mapped_at_most, name_of, read_piece

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import numpy as np
    from numpy.typing import NDArray
    from typing_extensions import Buffer

    from recordkit._core import Chunk


NO_LIMIT = 2**64 - 1
LARGE_BYTES = 16 << 20  # where payloads are only checked, a longer one is read a piece at a time
_FRAME = 16
CHUNK_BYTES = 1 << 20  # of what was measured, the best: the system copies less at a time more slowly

# One sentence a fault, in the order of the core's enum. Kinds are what `CorruptRecordError.kind` says.
_FAULTS = (
    ("none", ""),
    ("torn_header", "the file ends inside the 12-byte header"),
    ("bad_length_crc", "the length's checksum does not match"),
    ("torn_payload", "the file ends inside the payload"),
    ("bad_payload_crc", "the payload's checksum does not match"),
    ("too_large", "the record is larger than max_record_bytes allows"),
    ("cut_short", "the file became shorter while it was read"),
    ("written_over", "the file was written over while it was read"),
)
_CUT_SHORT = 6
CHANGED = ("cut_short", "written_over")  # kinds: no damage of a file, but another file than was begun


def corrupt(fault: int, *, path: str | None, record: int, offset: int, checked: bool = True) -> CorruptRecordError:
    """Return the error for a fault that the core found.

    Args:
        fault: The fault, as the core numbers it.
        path: The file, to name in the error.
        record: The number of the record.
        offset: Where it starts.
        checked: Whether the payloads of all records before it were checked.
    """
    kind, words = _FAULTS[fault]
    advice = ""
    if kind in CHANGED:
        advice = REPLACE_BY_RENAMING
    elif kind == "too_large":
        advice = "If you trust the file, open it with a larger max_record_bytes."
    elif record:
        more = "." if kind == "torn_header" else "; recordkit.repair finds those behind it too."
        advice = f"{before_it(record, checked=checked)}{more}"
    elif kind == "bad_length_crc" and offset == 0:
        advice = "This may not be an uncompressed TFRecord file at all."
    place = record_place(path, record, offset)
    return CorruptRecordError(words, place=place, advice=advice, path=path, record=record, offset=offset, kind=kind)


def before_it(records: int, *, checked: bool) -> str:
    """Return what is known of the records before a damaged one, as a sentence without its full stop.

    >>> before_it(4811, checked=False)
    'The 4811 records before it were found by their headers; their payloads were not checked'
    """
    if records == 1:
        return (
            f"The record before it {'is sound' if checked else 'was found by its header; its payload was not checked'}"
        )
    found = "are sound" if checked else "were found by their headers; their payloads were not checked"
    return f"The {records} records before it {found}"


def pack(payload: Buffer) -> bytes:
    """Return one payload as a framed record.

    >>> pack(b"abc").hex(" ")
    '03 00 00 00 00 00 00 00 b0 99 49 0e 61 62 63 6e 57 f1 21'
    """
    return bytes(_core.pack([payload]))


def pack_many(payloads: Iterable[Buffer]) -> Chunk:
    """Return the payloads as framed records in one chunk, ready to be written to a file.

    >>> packed = pack_many([b"one", b"two"])
    >>> len(packed), packed.nbytes, packed[1]
    (2, 38, b'two')
    """
    return _core.pack(payloads)


def chunk(data: Buffer, *, path: str | None = None, max_record_bytes: int = NO_LIMIT) -> Chunk:
    """Return the records of `data`, the bytes of a whole uncompressed file, without copying them.

    Raises:
        CorruptRecordError: At the first record that is not sound.

    >>> [bytes(payload) for payload in chunk(pack(b"one") + pack(b""))]
    [b'one', b'']
    """
    records, fault, offset = _core.scan(data, max_record_bytes)
    if fault:
        raise corrupt(fault, path=path, record=len(records), offset=offset)
    return records


def scan(data: Buffer, *, path: str | None = None, max_record_bytes: int = NO_LIMIT) -> NDArray[np.uint64]:
    """Return the byte offset of every record in `data`.

    Args:
        data: The bytes of a whole, uncompressed file.
        path: The file `data` came from, to name in errors.
        max_record_bytes: Payloads longer than this are refused.

    Raises:
        CorruptRecordError: At the first record that is not sound.

    >>> scan(pack(b"one") + pack(b"two")).tolist()
    [0, 19]
    >>> scan(pack(b"one")[:-1])
    Traceback (most recent call last):
        ...
    recordkit.errors.CorruptRecordError: record 0 at byte 0: the file ends inside the payload
    """
    return chunk(data, path=path, max_record_bytes=max_record_bytes).offsets


_MOST: Final = (1 << 63) - 1  # records asked for, which the core counts in 64 bits


class Reader:
    """Reads the records of an open file, a chunk at a time, in memory that is used again.

    Takes a file descriptor, a file opened with `open(path, "rb")`, or any object with `read` or `readinto`. A real
    file is read from `offset` on without moving its position. Several threads may call `read` on one reader; each call
    gives the next records.

    Args:
        file: Where the bytes come from. It stays open and is not closed here.
        path: The name to give in errors; by default the file's own.
        chunk_bytes: About how many bytes of records a chunk holds.
        max_record_bytes: Payloads longer than this are refused. Whatever the limit, memory grows only with bytes
            that really arrive.
        offset: Where to start; must be the start of a record.
        first_record: The number of the record that starts there, to name in errors.
        had: How many bytes the file is known to have had. A file with fewer at its end, or with fewer than when this
            reader was made, became shorter while it was read, which is an error.

    >>> import io
    >>> reader = Reader(io.BytesIO(pack(b"one") + pack(b"two") + pack(b"three")))
    >>> list(reader.read(2))
    [b'one', b'two']
    >>> [list(chunk) for chunk in reader]
    [[b'three']]
    """

    def __init__(
        self,
        file: int | IO[bytes],
        *,
        path: str | None = None,
        chunk_bytes: int = CHUNK_BYTES,
        max_record_bytes: int = NO_LIMIT,
        offset: int = 0,
        first_record: int = 0,
        had: int = 0,
    ) -> None:
        self._path = path if path is not None else name_of(file)
        self._file = file  # keeps the descriptor open
        self._core = _core.Reader(
            _descriptor_of(file), chunk_bytes, max_record_bytes, offset, first_record, mapped_at_most(), had
        )
        self._from_start = first_record == 0
        self._fault: tuple[int, int, int] | None = None  # the first one: which, of which record, and where
        self._lock = threading.Lock()

    def read(self, records: int | None = None) -> Chunk | None:
        """Return the next chunk, or None at the end of the file.

        Args:
            records: Exactly how many records, unless the file ends before; by default about `chunk_bytes` of them.

        Raises:
            CorruptRecordError: When a record is not sound. The sound ones before it were given first.
        """
        self._expect(records)
        return self._found(*self._core.next(None if records is None else min(records, _MOST)))

    def decoded(
        self, decoder: _core.Decoder, records: int, *, few_fields: bool
    ) -> tuple[int, tuple[Any, ...]] | Chunk | None:
        """Return what a decoder makes of the next records, and the number of the first; for `examples.Decoder.read`.

        Where there are not so many, or not all are what it wants, return what `read` does.
        """
        self._expect(records)
        made = decoder.decode_next(self._core, min(records, _MOST), few_fields)
        return made if len(made) == 2 else self._found(*made)

    def _expect(self, records: int | None) -> None:
        if records is not None and records < 1:
            message = f"records is a number from 1 up, found {records!r}"
            raise ValueError(message)
        self._raise_fault()

    def _found(self, found: Chunk, fault: int, offset: int) -> Chunk | None:
        if fault:
            with self._lock:
                # Threads may meet several; the first in the file counts.
                if self._fault is None or offset < self._fault[2]:
                    self._fault = fault, found.first_record + len(found), offset
            if not len(found):
                self._raise_fault()
        return found if len(found) else None

    @property
    def failure(self) -> CorruptRecordError | None:
        """What the next call raises."""
        if self._fault is None:
            return None
        fault, record, offset = self._fault
        if fault == _CUT_SHORT:
            return cut_short(self._path, *self._core.sizes, record=record, offset=offset)
        return corrupt(fault, path=self._path, record=record, offset=offset, checked=self._from_start)

    def _raise_fault(self) -> None:
        # A new one each time, which no name here is given: with its traceback it would keep what it has met alive.
        if self._fault is not None:
            raise cast("CorruptRecordError", self.failure)

    def pass_large(self) -> tuple[int, bytes]:
        """Check the record that `read` has called too large without keeping it, and go on behind it.

        Return the size of its frame, and its length and CRC as `Chunk.identity` has them. Nobody else may read
        meanwhile.

        Raises:
            CorruptRecordError: It is not sound.

        >>> import io
        >>> reader = Reader(io.BytesIO(pack(b"large") + pack(b"one")), max_record_bytes=4)
        >>> try:
        ...     reader.read()
        ... except CorruptRecordError as error:
        ...     print(error.kind, reader.pass_large()[0], list(reader.read()))
        too_large 21 [b'one']
        """
        fault, length, crc = self._core.pass_large()
        if self._fault is not None:
            self._fault = (fault, *self._fault[1:]) if fault else None
        self._raise_fault()
        return length + _FRAME, length.to_bytes(8, "little") + crc.to_bytes(4, "little")

    @property
    def path(self) -> str | None:
        """The name to give in errors."""
        return self._path

    @property
    def next_record(self) -> int:
        """The number of the first record that was not given out; at the end, how many there are."""
        return self._core.next_record

    def __iter__(self) -> Iterator[Chunk]:
        while (found := self.read()) is not None:
            yield found


def _descriptor_of(file: int | IO[bytes]) -> int | IO[bytes]:
    """The descriptor where that is all there is to the file; buffered and wrapping objects are asked themselves."""
    if isinstance(file, int):
        return file
    raw = getattr(file, "raw", file)
    if isinstance(raw, io.FileIO) and raw.seekable():
        return raw.fileno()
    if hasattr(file, "readinto"):
        return file
    if not hasattr(file, "read"):
        message = f"expected a file descriptor or an open file, found {type(file).__name__}"
        raise TypeError(message)
    return cast("IO[bytes]", _ReadInto(file))


class _ReadInto:
    """Reads into memory from an object that only gives bytes."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def readinto(self, buffer: memoryview) -> int:
        piece = read_piece(self._file, len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)


@dataclass(frozen=True)
class Found:
    """A record that can be shown to be intact.

    Attributes:
        offset: Where its frame starts.
        length: The length of its payload.
        how: `"sound"`, or `"bad_length_crc"` where the length's checksum is damaged and the payload's confirms both.
        nested: Whether it stands inside the payload of a damaged record, and so may not be a record of this file.
        repeats: The number of an earlier record with the same length and bytes, if there is one: a block that was
            written twice shows like this, and so do records that were equal from the start.
    """

    offset: int
    length: int
    how: Literal["sound", "bad_length_crc"]
    nested: bool
    repeats: int | None = None


@dataclass(frozen=True)
class Lost:
    """A range of bytes that belongs to no intact record.

    Attributes:
        offset: Where it starts.
        length: How many bytes.
        kind: `"bad_length"`, `"bad_payload"`, `"torn"` or `"zeros"`.
        record: How many records were found before it.
    """

    offset: int
    length: int
    kind: Literal["bad_length", "bad_payload", "torn", "zeros"]
    record: int

    def __str__(self) -> str:
        end = self.offset + self.length
        return f"bytes {self.offset}…{end - 1}, behind {self.record} records: {self._words()}"

    def _words(self) -> str:
        if self.kind == "zeros":
            return f"{self.length} zero bytes (an unclean shutdown?)"
        if self.kind == "bad_payload":
            return "the payload or its checksum is damaged"
        if self.kind == "torn":
            return f"{self.length} bytes of a record that was never finished"
        return "the length of a record is damaged, or bytes were put in or taken out"


@dataclass(frozen=True)
class Salvage:
    """What `salvage` found.

    Attributes:
        found: Every record that is intact, in the order of the file.
        lost: The ranges of bytes that belong to none.
    """

    found: tuple[Found, ...]
    lost: tuple[Lost, ...]

    @property
    def ok(self) -> bool:
        """Whether the data is sound records and nothing else."""
        return not self.lost and all(record.how == "sound" for record in self.found)


_HOW: tuple[Literal["sound", "bad_length_crc"], ...] = ("sound", "bad_length_crc")
_LOST: tuple[Literal["bad_length", "bad_payload", "torn", "zeros"], ...] = (
    "bad_length",
    "bad_payload",
    "torn",
    "zeros",
)


def salvage(data: Buffer, *, nested: bool = True) -> Salvage:
    """Return every record of a damaged file that can be shown to be intact, and what is lost.

    Args:
        data: The bytes of a whole, uncompressed file.
        nested: Whether to list records that stand inside the payload of a damaged one.

    >>> good, bad = pack(b"good"), bytearray(pack(b"bad!"))
    >>> bad[13] ^= 1
    >>> rescued = salvage(good + bytes(bad) + good)
    >>> [record.offset for record in rescued.found], rescued.found[1].repeats
    ([0, 40], 0)
    >>> print(rescued.lost[0])
    bytes 20…39, behind 1 records: the payload or its checksum is damaged
    """
    view = memoryview(data).cast("B")
    found, lost, _, _ = _core.salvage(view)
    if not nested:
        found = [record for record in found if not record[3]]
    firsts: dict[tuple[int, bytes], int] = {}
    records = []
    for number, (offset, length, how, inside) in enumerate(found):
        # Length and stored checksum decide nearly always; the bytes are compared before anything is claimed.
        end = offset + 12 + length
        first = firsts.setdefault((length, bytes(view[end : end + 4])), number)
        earlier = found[first][0] + 12
        same = first != number and view[earlier : earlier + length] == view[offset + 12 : end]
        records.append(Found(offset, length, _HOW[how], inside, first if same else None))
    return Salvage(tuple(records), tuple(Lost(start, size, _LOST[what], before) for start, size, what, before in lost))


@dataclass(frozen=True)
class Diagnosis:
    """A pattern behind damage that touches every record.

    Attributes:
        kind: `"unmasked_crc"`, `"zlib_crc"`, `"zero_crc"`, `"big_endian"`, `"lf_to_crlf"` or `"crlf_to_lf"`.
        records: How many records the pattern explains.
        words: A sentence for people.
        payloads: Where each payload lies, (offset, length), if the records can be read as they stand.
    """

    kind: str
    records: int
    words: str
    payloads: tuple[tuple[int, int], ...] = ()


_TRIES = 1024  # so few that a checksum of 32 bits is never right by chance

# What other writers are known to put where the masked CRC-32C belongs, and how they order the bytes.
_FLAVOURS: tuple[tuple[str, Literal["little", "big"], Callable[[memoryview], int], str], ...] = (
    ("unmasked_crc", "little", _core.crc32c, "have unmasked CRCs"),
    ("zlib_crc", "little", zlib.crc32, "have the CRC-32 of zlib in place of CRC-32C"),
    ("zero_crc", "little", lambda payload: 0, "have zeros in place of checksums"),
    ("big_endian", "big", lambda payload: _core.mask_crc(_core.crc32c(payload)), "are written big-endian"),
)


def diagnose(data: Buffer, *, whole: bool = True) -> Diagnosis | None:
    """Return the pattern that explains why no record is sound, if there is one.

    Files of writers that do not keep to the format, and files that went through a transfer in text mode, fail in every
    record at once; salvaging them byte by byte would hide the reason.

    Args:
        data: The bytes of an uncompressed file.
        whole: Whether that is all of it, rather than its first bytes.

    >>> import struct
    >>> payload = b"payload"
    >>> header = struct.pack("<Q", len(payload))
    >>> record = header + struct.pack("<I", _core.crc32c(header)) + payload + struct.pack("<I", _core.crc32c(payload))
    >>> print(diagnose(record * 5).words)
    all 5 records have unmasked CRCs: the program that wrote them does not keep to the format
    """
    view = memoryview(data).cast("B")
    if not any(view):
        return None  # zeros would pass for empty records with zeros in place of checksums
    for kind, order, checksum, words in _FLAVOURS:
        payloads = _frames(view, order, checksum, whole=whole)
        if payloads:
            count = len(payloads)
            which = f"{'all' if whole else 'the first'} {count} records"
            text = f"{which} {words}: the program that wrote them does not keep to the format"
            return Diagnosis(kind, count, text, tuple(payloads))
    return _text_mode(view, whole=whole)


def _frames(
    view: memoryview, order: Literal["little", "big"], checksum: Callable[[memoryview], int], *, whole: bool
) -> list[tuple[int, int]]:
    """The payloads of the file under another reading of the frame; none if it does not fit to the last byte."""
    payloads: list[tuple[int, int]] = []
    at = 0
    while at < len(view):
        header = view[at : at + 8]
        length = int.from_bytes(header, order)
        end = at + 12 + length
        if end + 4 > len(view):
            return [] if whole else payloads
        stored = int.from_bytes(view[at + 8 : at + 12], order), int.from_bytes(view[end : end + 4], order)
        if stored != (checksum(header), checksum(view[at + 12 : end])):
            return []
        payloads.append((at + 12, length))
        at = end + 4
    return payloads


def _text_mode(view: memoryview, *, whole: bool) -> Diagnosis | None:
    data = view.obj if isinstance(view.obj, bytes) and len(view.obj) == len(view) else bytes(view)
    if b"\n" in data and data.count(b"\r\n") == data.count(b"\n"):
        undone, fault, _ = _core.scan(data.replace(b"\r\n", b"\n"), NO_LIMIT)
        torn = _FAULTS[fault][0] in ("torn_header", "torn_payload") and not whole
        if (not fault or torn) and len(undone):
            words = (
                f"every line feed has a carriage return before it: a transfer in text mode has changed the file; "
                f"its {'first ' * (not whole)}{len(undone)} records come back when each CR LF is made LF again"
            )
            return Diagnosis("lf_to_crlf", len(undone), words)
    if whole and b"\r\n" not in data and (records := _shrunk_records(data)):
        words = (
            f"{records} records are too short by as many bytes as carriage returns could have stood in them, no CR LF "
            f"is left in the file, and with them put back the checksums are right: a transfer in text mode has taken "
            f"them out; they have to be fetched again"
        )
        return Diagnosis("crlf_to_lf", records, words)
    return None


def _shrunk_records(data: bytes) -> int:
    """How many records end early by no more bytes than they have line feeds. 0 if any damage looks otherwise.

    Any record that is cut may look so by chance. What chance cannot give is a checksum that comes right.
    """
    if b"\n" not in data:
        return 0
    rescued = salvage(data)
    starts = sorted([record.offset for record in rescued.found] + [len(data)])
    shrunk, tries, proved = 0, _TRIES, False
    for lost in rescued.lost:
        end = next(start for start in starts if start > lost.offset)
        if lost.kind not in ("bad_payload", "torn") or end < lost.offset + 12:
            return 0
        body = data[lost.offset + 12 : end]
        length = int.from_bytes(data[lost.offset : lost.offset + 8], "little")
        missing = length + 4 - len(body)
        if not 0 < missing <= body.count(b"\n"):
            return 0
        shrunk += 1
        if (ways := comb(body.count(b"\n"), missing)) <= tries:
            tries -= ways
            if not _comes_right(body, length, missing):
                return 0
            proved = True
    return shrunk if proved else 0


def _comes_right(body: bytes, length: int, missing: int) -> bool:
    """Whether carriage returns before some of the line feeds make a payload that its checksum confirms."""
    lines = body.split(b"\n")
    for chosen in combinations(range(len(lines) - 1), missing):
        ends = [b"\r\n" if number in chosen else b"\n" for number in range(len(lines) - 1)]
        whole = b"".join(part for pair in zip(lines, [*ends, b""], strict=True) for part in pair)
        if _core.mask_crc(_core.crc32c(whole[:length])) == int.from_bytes(whole[length:], "little"):
            return True
    return False
