"""Damage: one thing that is wrong with a file, as facts and in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

from recordkit.errors import RecordKitError, headline_of

_FRAMED: Final = ("bad_payload_crc", "too_large")  # the header is sound, so these are records and count as such


@dataclass(frozen=True)
class Damage:
    """One thing that is wrong with a file.

    Attributes:
        path: The file.
        kind: One word, such as `"bad_payload_crc"`, `"zeros"` or `"gzip_torn"`.
        record: The number of the damaged record, counting damaged ones. For bytes that belong to no record, the number
            of the next record.
        offset: Where it starts.
        length: How many bytes it covers.
        words: What is wrong, for people.
        raw: Whether `offset` and `length` count uncompressed bytes.

    >>> print(Damage("a.tfrecord", "bad_payload_crc", 7, 189, 27, "the payload's checksum does not match"))
    a.tfrecord: record 7 at byte 189: the payload's checksum does not match
    """

    path: str
    kind: str
    record: int
    offset: int
    length: int
    words: str
    raw: bool = False

    @classmethod
    def from_error(
        cls,
        error: Exception,
        path: str,
        *,
        kind: str | None = None,
        record: int | None = None,
        offset: int | None = None,
        length: int = 0,
        raw: bool = False,
    ) -> Self:
        """Return the damage that an error is about. Arguments override what the error says.

        >>> from recordkit.errors import CorruptRecordError
        >>> error = CorruptRecordError("a.tfrecord: record 7: its length is wrong", path="a.tfrecord", record=7)
        >>> print(Damage.from_error(error, "a.tfrecord", offset=189))
        a.tfrecord: record 7 at byte 189: its length is wrong
        """
        facts = vars(error)
        record = facts.get("record") if record is None else record
        offset = facts.get("offset") if offset is None else offset
        words = headline_of(error)
        if isinstance(error, RecordKitError):
            field = facts.get("field")
            named = field is not None and f": {error.place}".endswith(f": {field}")
            words = f"{field}: {error.summary}" if named else error.summary
        return cls(path, kind or facts.get("kind") or "damaged", record or 0, offset or 0, length, words, raw)

    @property
    def next_record(self) -> int:
        """The number of the next record after it."""
        return self.record + (self.kind in _FRAMED)

    @property
    def line(self) -> str:
        """What is wrong and where, without the name of the file."""
        place = "uncompressed byte" if self.raw else "byte"
        return f"record {self.record} at {place} {self.offset}: {self.words}"

    def __str__(self) -> str:
        return f"{self.path}: {self.line}"
