"""Diagnosis: the one cause of damage to every record of a file."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import TYPE_CHECKING, Literal

from recordkit import _core

from ._framing import NO_LIMIT, TORN, fault_kind
from ._salvage import salvage

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import Buffer


@dataclass(frozen=True)
class Diagnosis:
    """One cause of damage to every record.

    Attributes:
        kind: `"unmasked_crc"`, `"zlib_crc"`, `"zero_crc"`, `"big_endian"`, `"lf_to_crlf"` or `"crlf_to_lf"`.
        records: The number of records that it explains.
        words: A sentence for people.
        payloads: The (offset, length) of each payload, if the records can be read in spite of it.
    """

    kind: str
    records: int
    words: str
    payloads: tuple[tuple[int, int], ...] = ()


_TRIES = 1024  # too few for a 32-bit checksum to match by chance

# What other writers are known to store in place of the masked CRC-32C, and their byte order.
_FLAVOURS: tuple[tuple[str, Literal["little", "big"], Callable[[memoryview], int], str], ...] = (
    ("unmasked_crc", "little", _core.crc32c, "have unmasked CRCs"),
    ("zlib_crc", "little", zlib.crc32, "have zlib's CRC-32 in place of CRC-32C"),
    ("zero_crc", "little", lambda payload: 0, "have zeros in place of checksums"),
    ("big_endian", "big", lambda payload: _core.mask_crc(_core.crc32c(payload)), "are written big-endian"),
)


def diagnose(data: Buffer, *, whole: bool = True) -> Diagnosis | None:
    """Return the cause if every record is damaged in the same way.

    Writers that violate the format, and transfers in text mode, damage every record of a file; salvaging it byte by
    byte would hide the reason.

    Args:
        data: The bytes of an uncompressed file.
        whole: Whether these are all bytes of the file, not just the first.

    >>> import struct
    >>> payload = b"payload"
    >>> header = struct.pack("<Q", len(payload))
    >>> record = header + struct.pack("<I", _core.crc32c(header)) + payload + struct.pack("<I", _core.crc32c(payload))
    >>> print(diagnose(record * 5).words)
    all 5 records have unmasked CRCs: the program that wrote them does not follow the format
    """
    view = memoryview(data).cast("B")
    if not any(view):
        return None  # zeros would look like empty records with zeros in place of checksums
    for kind, order, checksum, words in _FLAVOURS:
        payloads = _frames(view, order, checksum, whole=whole)
        if payloads:
            count = len(payloads)
            which = f"{'all' if whole else 'the first'} {count} records"
            text = f"{which} {words}: the program that wrote them does not follow the format"
            return Diagnosis(kind, count, text, tuple(payloads))
    return _text_mode(view, whole=whole)


def _frames(
    view: memoryview, order: Literal["little", "big"], checksum: Callable[[memoryview], int], *, whole: bool
) -> list[tuple[int, int]]:
    """The payloads of the file with another reading of the frame; empty unless it fits to the last byte."""
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
        torn = fault_kind(fault) in TORN and not whole
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
    """How many records are too short by at most as many bytes as they have line feeds; 0 if any damage looks different.

    A truncated record may look like this by chance, so a checksum has to match as proof.
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
    """Whether adding carriage returns before some line feeds makes the checksum match."""
    lines = body.split(b"\n")
    for chosen in combinations(range(len(lines) - 1), missing):
        ends = [b"\r\n" if number in chosen else b"\n" for number in range(len(lines) - 1)]
        whole = b"".join(part for pair in zip(lines, [*ends, b""], strict=True) for part in pair)
        if _core.mask_crc(_core.crc32c(whole[:length])) == int.from_bytes(whole[length:], "little"):
            return True
    return False
