"""Framing: the bytes of a file as payloads and back, and the sentences of its faults.

Nothing here knows what a payload holds; that is `recordkit.examples`.
The format is written down in docs/format/records.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from recordkit import _core
from recordkit.errors import CorruptRecordError, record_place
from recordkit.filesystems import REPLACE_BY_RENAMING

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np
    from numpy.typing import NDArray
    from typing_extensions import Buffer

    from recordkit._core import Chunk


NO_LIMIT = 2**64 - 1
LARGE_BYTES = 16 << 20  # longer payloads that are only checked are read in pieces
CHUNK_BYTES = 1 << 20  # the fastest of those measured: the system is slower at copying less at a time

# A kind and a sentence for each fault, in the order of the core's enum. Kinds become `CorruptRecordError.kind`.
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
TORN = ("torn_header", "torn_payload")  # kinds: the bytes end inside a record
CHANGED = ("cut_short", "written_over")  # kinds: not damage, but a file that changed while it was read


def corrupt(fault: int, *, path: str | None, record: int, offset: int, checked: bool = True) -> CorruptRecordError:
    """Return the error for a fault found by the core.

    Args:
        fault: The fault, as the core numbers it.
        path: The file, to name in the error.
        record: The number of the record.
        offset: Where it starts.
        checked: Whether the payloads of all earlier records were checked.
    """
    kind, words = _FAULTS[fault]
    advice = ""
    if kind in CHANGED:
        advice = REPLACE_BY_RENAMING
    elif kind == "too_large":
        advice = "If you trust the file, open it with a larger max_record_bytes."
    elif record:
        more = "." if kind == "torn_header" else "; recordkit.repair also finds those after it."
        advice = f"{before_it(record, checked=checked)}{more}"
    elif kind == "bad_length_crc" and offset == 0:
        advice = "This may not be an uncompressed TFRecord file at all."
    place = record_place(path, record, offset)
    return CorruptRecordError(words, place=place, advice=advice, path=path, record=record, offset=offset, kind=kind)


def fault_kind(fault: int) -> str:
    """Return the `CorruptRecordError.kind` of a fault of the core."""
    return _FAULTS[fault][0]


def before_it(records: int, *, checked: bool) -> str:
    """Return what is known about the records before a damaged one, as a sentence without a full stop.

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
    """Return the payloads as framed records in one chunk, ready to write to a file.

    >>> packed = pack_many([b"one", b"two"])
    >>> len(packed), packed.nbytes, packed[1]
    (2, 38, b'two')
    """
    return _core.pack(payloads)


def chunk(data: Buffer, *, path: str | None = None, max_record_bytes: int = NO_LIMIT) -> Chunk:
    """Return the records of `data`, the bytes of a whole uncompressed file, without copying them.

    Raises:
        CorruptRecordError: At the first damaged record.

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
        max_record_bytes: Longer payloads are refused.

    Raises:
        CorruptRecordError: At the first damaged record.

    >>> scan(pack(b"one") + pack(b"two")).tolist()
    [0, 19]
    >>> scan(pack(b"one")[:-1])
    Traceback (most recent call last):
        ...
    recordkit.errors.CorruptRecordError: record 0 at byte 0: the file ends inside the payload
    """
    return chunk(data, path=path, max_record_bytes=max_record_bytes).offsets
