"""Follow: the records of a file that is still being written."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from recordkit.errors import CorruptRecordError, StorageError
from recordkit.filesystems import LocalFile, given_path
from recordkit.records import Reader
from recordkit.storage.read import RecordFile

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

_TORN = ("torn_header", "torn_payload")


def follow(path: str | os.PathLike[str], *, poll: float = 0.5, timeout: float | None = None) -> Iterator[bytes]:
    """Yield the payloads of a file, and of every record that is added to it later.

    At the end of a growing file, an incomplete record is not damage: it waits for the rest.

    Args:
        path: A plain file; it may be empty.
        poll: How many seconds to wait before looking again.
        timeout: Stop if nothing was added for this many seconds; None never stops.

    Raises:
        CorruptRecordError: A record is damaged, and the file continues after it.
        StorageError: The file is compressed, or has become shorter.

    >>> import tempfile
    >>> from recordkit import records
    >>> path = Path(tempfile.mkdtemp(), "growing.tfrecord")
    >>> _ = path.write_bytes(records.pack(b"one") + records.pack(b"two")[:-1])
    >>> added = follow(path, poll=0.01, timeout=1)
    >>> next(added)
    b'one'
    >>> with path.open("ab") as file:
    ...     _ = file.write(records.pack(b"two")[-1:])
    >>> next(added)
    b'two'
    """
    file = LocalFile(Path(given_path(path)))
    offset = record = size = 0
    last_change = time.monotonic()
    while True:
        grown = file.size
        if grown < offset:
            message = f"{path}: the file shrank from {offset} to {grown} bytes\n  Its records are gone: open it again."
            raise StorageError(message, path=str(path))
        if grown != size:
            size, last_change = grown, time.monotonic()
            _refuse_compressed(file)
        fault = None
        try:
            reader = Reader(file.descriptor, path=str(path), offset=offset, first_record=record)
            for chunk in reader:
                yield from chunk
                offset, record = chunk.file_offset + chunk.nbytes, chunk.first_record + len(chunk)
                last_change = time.monotonic()
        except CorruptRecordError as error:
            fault = error
        if fault is not None and not _unfinished(fault, file, size):
            raise fault
        if timeout is not None and time.monotonic() - last_change >= timeout:
            return
        time.sleep(poll)


def _unfinished(fault: CorruptRecordError, file: LocalFile, size: int) -> bool:
    """Tell whether a damaged record may be one that is still being written."""
    if fault.kind in _TORN or file.size != size:
        return True
    # Space may be allocated before it is filled: a record that ends in zeros at the end of the file is not written yet.
    tail = file.read_at(max(fault.offset or 0, size - 16), 16)
    return not any(tail[-4:])


def _refuse_compressed(file: LocalFile) -> None:
    compression = RecordFile(file).compression if file.size >= 12 else None
    if compression is not None:
        message = (
            f"{file.name}: this is a {compression} file, whose new records cannot be read before it is closed\n"
            "  Write a plain file to follow it."
        )
        raise StorageError(message, path=file.name)
