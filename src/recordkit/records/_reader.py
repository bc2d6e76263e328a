"""Reader: the records of an open file, a chunk at a time."""

from __future__ import annotations

import io
import threading
from typing import IO, TYPE_CHECKING, Any, Final, cast

from recordkit import _core
from recordkit.filesystems import cut_short, mapped_at_most, name_of, read_piece

from ._framing import CHUNK_BYTES, NO_LIMIT, corrupt

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recordkit._core import Chunk
    from recordkit.errors import CorruptRecordError

_FRAME: Final = 16  # bytes around a payload
_CUT_SHORT: Final = 6  # the fault, as the core numbers it
_MOST: Final = (1 << 63) - 1  # records; the core counts in 64 bits


class Reader:
    """Reads the records of an open file, a chunk at a time, and reuses memory.

    Takes a file descriptor, a file opened with `open(path, "rb")`, or any object with `read` or `readinto`. A real
    file is read from `offset` on without moving its position. Several threads may share one reader; each call returns
    the next records.

    Args:
        file: The file. The reader does not close it.
        path: The name to give in errors; by default the file's own.
        chunk_bytes: About how many bytes of records a chunk holds.
        max_record_bytes: Longer payloads are refused. Whatever the limit, memory grows only with the bytes that
            really arrive.
        offset: Where to start; must be the start of a record.
        first_record: The number of the record that starts there, to name in errors.
        had: The size that the file is known to have had. If it ends earlier, or is shorter than when this reader was
            made, it was truncated while it was read, which is an error.

    >>> import io
    >>> from recordkit.records import pack
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
        self._fault: tuple[int, int, int] | None = None  # the first one: fault, record, offset
        self._lock = threading.Lock()

    def read(self, records: int | None = None) -> Chunk | None:
        """Return the next chunk, or None at the end of the file.

        Args:
            records: How many records, fewer only at the end of the file; by default about `chunk_bytes` of them.

        Raises:
            CorruptRecordError: The next record is damaged. The intact ones before it were returned first.
        """
        self._expect(records)
        return self._found(*self._core.next(None if records is None else min(records, _MOST)))

    def decoded(
        self, decoder: _core.Decoder, records: int, *, few_fields: bool
    ) -> tuple[int, tuple[Any, ...]] | Chunk | None:
        """Return the next records decoded, and the number of the first; for `examples.Decoder.read`.

        If there are fewer records, or not all have what the decoder wants, return what `read` returns.
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
                # Threads may find several faults; the first in the file counts.
                if self._fault is None or offset < self._fault[2]:
                    self._fault = fault, found.first_record + len(found), offset
            if not len(found):
                self._raise_fault()
        return found if len(found) else None

    @property
    def failure(self) -> CorruptRecordError | None:
        """The error that the next call raises."""
        if self._fault is None:
            return None
        fault, record, offset = self._fault
        if fault == _CUT_SHORT:
            return cut_short(self._path, *self._core.sizes, record=record, offset=offset)
        return corrupt(fault, path=self._path, record=record, offset=offset, checked=self._from_start)

    def _raise_fault(self) -> None:
        # A new error each time, without a name: its traceback would keep everything on the stack alive.
        if self._fault is not None:
            raise cast("CorruptRecordError", self.failure)

    def pass_large(self) -> tuple[int, bytes]:
        """Check the record that `read` refused as too large, without keeping it, and continue after it.

        Return the size of its frame, and its length and CRC as in `Chunk.identity`. No other thread may read
        meanwhile.

        Raises:
            CorruptRecordError: It is damaged.

        >>> import io
        >>> from recordkit.errors import CorruptRecordError
        >>> from recordkit.records import pack
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
        """The number of the next record; at the end, the number of all records."""
        return self._core.next_record

    def __iter__(self) -> Iterator[Chunk]:
        while (found := self.read()) is not None:
            yield found


def _descriptor_of(file: int | IO[bytes]) -> int | IO[bytes]:
    """The descriptor of a plain file; buffered and wrapping objects are read through their own methods."""
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
    """Adds `readinto` to an object that only has `read`."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def readinto(self, buffer: memoryview) -> int:
        piece = read_piece(self._file, len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)
