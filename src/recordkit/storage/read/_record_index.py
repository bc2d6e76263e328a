"""Record index: where the records of a file are. If a file has no index, one is built.

The index of a file that another program wrote is kept in a cache folder, and next to the data only on request.
"""

from __future__ import annotations

import hashlib
import os
import threading
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from recordkit import _core, log, progress
from recordkit.filesystems import TOO_MANY_CODES, LocalFile, fitting, mapped_at_most
from recordkit.records import corrupt
from recordkit.storage.format import BLOCK, MOST_INFLATED, SIDE, Fingerprint, Index, IndexBuilder, OtherFile

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from recordkit.codecs import Compression
    from recordkit.filesystems import ByteFile

    from ._streams import Stream

_TABLE_BYTES = 256 << 20  # memory for one file's table
_RECORD_BYTES = 4  # of it for one record, about
_MOST_BLOCKS = 4  # with this many lookups per block, nearly every block is needed
_STEP = 1 << 20
_HEADER, _FRAME = 12, 16
_BAD_PAYLOAD = 4  # a fault, as the core numbers it
_IDENTITY = np.dtype([("length", "<u8"), ("crc", "<u4")])


class RecordIndex:
    """Looks up where records are, reading blocks of the index as they are needed."""

    def __init__(self, index: Index) -> None:
        self.index = index
        self._table = _core.PlaceTable(len(index), BLOCK)
        self._loading = threading.Lock()

    def __len__(self) -> int:
        return len(self.index)

    @property
    def table(self) -> _core.PlaceTable:
        """The blocks read so far; `load` adds to them."""
        if self._table.nbytes > _TABLE_BYTES:
            self._table = _core.PlaceTable(len(self.index), BLOCK)
        return self._table

    def load(self, table: _core.PlaceTable, blocks: Sequence[int]) -> None:
        """Read blocks of the index into a table.

        Raises:
            ValueError: One is damaged.
        """
        with self._loading:
            # Threads that start together want the same blocks.
            lacking = table.lacking(np.array(blocks, np.int64) * BLOCK)
            for number, packed in zip(lacking, self.index.packed(lacking), strict=True):
                table.put(number, *packed)

    def expect(self, records: int) -> None:
        """Hint that about `records` random lookups follow; read all blocks now if that pays.

        Raises:
            ValueError: One is damaged.
        """
        blocks = -(-len(self) // BLOCK)
        if records > _MOST_BLOCKS * blocks and len(self) * _RECORD_BYTES < _TABLE_BYTES:
            self.load(self.table, range(blocks))

    def one(self, number: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Return where the frame of a record starts and how long it is, as arrays of one."""
        return self.many(np.array([number]))

    def many(self, numbers: NDArray[np.int64]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Return where the frames of these records start, and how long they are."""
        table = self.table
        lacking = table.lacking(numbers)
        if lacking:
            self.load(table, lacking)
        return table.places(numbers)


def find_index(file: ByteFile, compression: Compression, records: int | None = None) -> RecordIndex | None:
    """Return the index of a file, from next to it or from the cache; None if no index fits.

    Args:
        file: The file.
        compression: How it is compressed.
        records: How many records it has, if that is known.
    """
    local = file.local
    if local is None:
        return None
    found = find_adjacent_index(local, compression, records)
    if found is None and (cache := cached_index_path(local.path)) is not None:
        found = _found(local, cache, compression, records)
    return found


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # in the cache of another user
        return False


def find_adjacent_index(file: LocalFile, compression: Compression, records: int | None = None) -> RecordIndex | None:
    """Return the index next to a file; None if it does not fit the file."""
    return _found(file, index_path(file.path), compression, records)


def _found(file: LocalFile, path: Path, compression: Compression, records: int | None) -> RecordIndex | None:
    if not _is_there(path):
        return None
    try:
        fingerprint = Fingerprint.of(file.path)  # opens the file on its own, and closes it
        index = Index(path, fingerprint)
        check_fits(index, fingerprint.size, compression, records)
        return RecordIndex(index)
    except OtherFile:
        pass  # it belongs to an earlier file of this name
    except ValueError as error:
        warn_of_index(file.name, str(error))
    except OSError as error:
        if error.errno in TOO_MANY_CODES:
            raise
        warn_of_index(file.name, f"{path}: it cannot be read: {os.strerror(error.errno or 0)}")
    return None


def check_fits(index: Index, size: int, compression: Compression, records: int | None = None) -> None:
    """Check that an index lists as many records as its file can hold, or does.

    Raises:
        ValueError: It does not.
    """
    words = None
    if compression is None and index.raw_bytes != size:
        words = f"{index.raw_bytes:,} bytes of records, and the file has {size:,}"
    elif index.raw_bytes > size * MOST_INFLATED:
        words = f"{index.raw_bytes:,} bytes of records, more than {size:,} bytes can hold"
    elif records is not None and len(index) != records:
        words = f"{len(index):,} records, but the manifest says {records:,}"
    if words is not None:
        message = f"{index.path}: the index lists {words}"
        raise ValueError(message)


@lru_cache(maxsize=4096)  # once for each file
def warn_of_index(name: str, words: str) -> None:
    """Warn that an index is ignored."""
    log.warning(
        "%s: ignoring its index and building another: %s\n"
        "  Remove it; recordkit.index writes a new one next to the file.",
        name,
        words,
    )


def index_path(path: Path) -> Path:
    """Return the path of the index next to a file."""
    return path.parent / SIDE / fitting("", path.name, ".rki")


def cached_index_path(path: Path) -> Path | None:
    """Return the path of a file's index in the cache; None if there is no cache folder."""
    try:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:  # a user without a home, as in many containers
        return None
    name = hashlib.blake2b(os.fsencode(path.absolute()), digest_size=16).hexdigest()
    return cache / "recordkit" / "index" / f"{name}.rki"


def build_index(file: ByteFile, stream: Stream | None) -> RecordIndex:
    """Build the index of a file.

    Args:
        file: The file; of a plain local one, only the headers are read.
        stream: The records of any other file.

    Raises:
        CorruptRecordError: The start of a record cannot be found.
    """
    fingerprint = Fingerprint.of_bytes(file)
    builder = IndexBuilder()
    lengths = _hops(file.local) if stream is None and file.local is not None else _lengths(stream)
    for some in lengths:
        builder.add(some)
    data = builder.to_bytes(fingerprint)
    cache = None if file.local is None else cached_index_path(file.local.path)
    if cache is not None and _kept(cache, data):
        with suppress(ValueError, OSError):  # another process may have replaced it
            return RecordIndex(Index(cache, fingerprint))
    return RecordIndex(Index(data, fingerprint))


def _hops(file: LocalFile) -> Iterator[NDArray[np.uint64]]:
    return (lengths for lengths, _ in _hops_and_crcs(file))


def identities(file: LocalFile) -> Iterator[bytes]:
    """Yield the lengths and CRCs of a plain file's records, as `Chunk.identity` does, without reading payloads."""
    for lengths, crcs in _hops_and_crcs(file):
        facts = np.empty(len(lengths), _IDENTITY)
        facts["length"], facts["crc"] = lengths, crcs
        yield facts.tobytes()


def _hops_and_crcs(file: LocalFile) -> Iterator[tuple[NDArray[np.uint64], NDArray[np.uint32]]]:
    offset, record, last = 0, 0, 0
    snapshot = _core.FileSnapshot(file.descriptor)
    while True:
        start = offset
        lengths, crcs, fault, offset = _core.scan_headers(file.descriptor, offset, _STEP, mapped_at_most())
        if len(lengths):
            snapshot.note(start, int(lengths[0]), int(crcs[0]))
        record += len(lengths)
        last = int(lengths[-1]) if len(lengths) else last
        if fault or len(lengths) < _STEP:
            file.check_not_truncated(record, offset)
            if changed := snapshot.now(offset):
                raise corrupt(changed, path=file.name, record=record, offset=offset)
        if fault:
            before = offset - last - _FRAME
            if record and not _payload_is_sound(file, before, last):
                # The payload has too few or too many bytes, so the next record is not where the header says.
                fault, record, offset = _BAD_PAYLOAD, record - 1, before
            raise corrupt(fault, path=file.name, record=record, offset=offset, checked=False)
        yield lengths, crcs
        if len(lengths) < _STEP:
            return
        progress.step(f"indexing {file.name}", offset, snapshot.size, "bytes")


def _payload_is_sound(file: LocalFile, offset: int, length: int) -> bool:
    """Return whether the checksum of one payload is right; the payload may be larger than memory."""
    crc, start, end = 0, offset + _HEADER, offset + _HEADER + length
    for at in range(start, end, _STEP):
        piece = file.read_at(at, min(_STEP, end - at))
        crc = _core.crc32c_combine(crc, _core.crc32c(piece), len(piece))
    return file.read_at(end, 4) == _core.mask_crc(crc).to_bytes(4, "little")


def _lengths(stream: Stream | None) -> Iterator[NDArray[np.uint64]]:
    assert stream is not None
    while (chunk := stream.read()) is not None:
        yield chunk.lengths


def _kept(path: Path, data: bytes) -> bool:
    """Save an index in the cache; return whether that worked."""
    beginning = path.with_name(fitting(".", path.name, f".{os.getpid()}.{threading.get_ident()}"))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        beginning.write_bytes(data)
        beginning.replace(path)
    except OSError:
        return False
    return True
