"""Explain: reads a damaged record again, to say why it is damaged and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from recordkit import _core, records
from recordkit.errors import CorruptRecordError, record_place
from recordkit.records import NO_LIMIT

if TYPE_CHECKING:
    from recordkit.codecs import Compression
    from recordkit.filesystems import ByteFile

_DIAGNOSED_WHOLE: Final = 32 << 20
_DIAGNOSED: Final = 16 << 20
_FRAME: Final = 16
_PIECE: Final = 1 << 20
_TORN_PAYLOAD: Final = 3  # the core's answer to an intact header with nothing after it
ACCEPTED: Final = ("unmasked_crc", "zlib_crc", "zero_crc", "big_endian", "lf_to_crlf")  # what `repair` can take


def explain(
    file: ByteFile, error: CorruptRecordError, compression: Compression = None, *, checked: bool = True
) -> CorruptRecordError:
    """Return the error to raise for a damaged record, after reading it again.

    If the second reading is intact, its kind is `"unstable_read"`. If no record of the file is intact, for one reason,
    the error says so. Otherwise it is the same error with the next step as its advice.

    Args:
        file: The file.
        error: What the reader raised.
        compression: How the file is compressed.
        checked: Whether the payloads of all records before that one were checked.

    >>> import io
    >>> from recordkit.filesystems import ObjectFile
    >>> torn = ObjectFile(io.BytesIO(records.pack(b"one")[:-1]), "a.tfrecord")
    >>> error = CorruptRecordError("a.tfrecord: record 0 at byte 0: torn", record=0, offset=0, kind="torn_payload")
    >>> print(explain(torn, error))
    a.tfrecord: record 0 at byte 0: torn
      recordkit.repair('a.tfrecord', ...) writes every sound record to a new file.
    """
    if error.kind not in ("torn_header", "bad_length_crc", "torn_payload", "bad_payload_crc") or error.offset is None:
        return error
    plain = compression is None
    if plain and _is_sound(file, error.offset):
        place = record_place(file.name, error.record, error.offset)
        words = unstable_words(error, still_there=True).replace(", and kept", "")
        advice = "Read it again, and look at the system's log (dmesg) if that happens more than once."
        return error.but(place=place, summary=words, advice=advice, kind="unstable_read")
    if plain and (error.record, error.offset) == (0, 0) and (found := diagnosed(file)) is not None:
        return error.but(advice="\n".join(advice_of(found, file.name)))
    known = f"{records.before_it(error.record, checked=checked)}. " if error.record else ""
    return error.but(advice=f"{known}recordkit.repair({file.name!r}, ...) writes every sound record to a new file.")


def _is_sound(file: ByteFile, offset: int) -> bool:
    """Read a record once more and check it."""
    header = file.read_at(offset, 12)
    length = int.from_bytes(header[:8], "little")
    if len(header) < 12 or _core.scan(header, NO_LIMIT)[1] != _TORN_PAYLOAD or length + _FRAME > file.size - offset:
        return False
    crc, at, end = 0, offset + 12, offset + 12 + length
    while at < end and (piece := file.read_at(at, min(_PIECE, end - at))):
        crc, at = _core.crc32c(piece, crc), at + len(piece)
    return file.read_at(at, 4) == _core.mask_crc(crc).to_bytes(4, "little")


def diagnosed(file: ByteFile) -> records.Diagnosis | None:
    """Return the one reason why no record of a plain file is intact, if there is one."""
    whole = file.size <= _DIAGNOSED_WHOLE
    return records.diagnose(file.read_at(0, file.size if whole else _DIAGNOSED), whole=whole)


def advice_of(found: records.Diagnosis, path: str) -> list[str]:
    """Return what is wrong with every record of a file, and the next step, if there is one."""
    take = f"To accept them anyway: recordkit.repair({path!r}, ..., accept={found.kind!r})"
    return [found.words, take] if found.kind in ACCEPTED else [found.words]


def unstable_words(fault: CorruptRecordError, *, still_there: bool) -> str:
    """Describe a record that was damaged on the first reading and is intact on the second."""
    if not still_there:
        return "the file was truncated while it was read"
    if fault.kind in ("torn_header", "torn_payload"):
        return "the file ended inside this record at first, and no longer does: it is being written"
    return (
        "the first reading was damaged and the second is intact, and kept: the disk, the memory or the network "
        "returns changing bytes"
    )
