"""Damage: one thing that is wrong with a file, as a fact and in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from recordkit.errors import CorruptRecordError

_FRAMED: Final = ("bad_payload_crc", "too_large")  # the header is sound, so these are records and count as such


@dataclass(frozen=True)
class Damage:
    """One thing that is wrong with a file.

    Attributes:
        path: The file.
        kind: One word, such as `"bad_payload_crc"`, `"zeros"` or `"gzip_torn"`.
        record: The number of the record it is about: its place in the file, damaged records included. Bytes that no
            header frames are no record; theirs is the number of the next one behind them.
        offset: Where it starts.
        length: How many bytes it covers.
        words: What is wrong, for people.
        raw: Whether `offset` and `length` count bytes of what a compressed file holds, rather than its own.

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
    def from_error(cls, error: CorruptRecordError, path: str) -> Self:
        """Return what an error of a reader says.

        >>> from recordkit.errors import CorruptRecordError
        >>> error = CorruptRecordError("a: record 7 at byte 189: torn", path="a", record=7, offset=189, kind="torn")
        >>> print(Damage.from_error(error, "a"))
        a: record 7 at byte 189: torn
        """
        words = error.summary if error.field is None else f"{error.field}: {error.summary}"
        return cls(path, error.kind or "damaged", error.record or 0, error.offset or 0, 0, words)

    @property
    def next_record(self) -> int:
        """The number of the next record behind it."""
        return self.record + (self.kind in _FRAMED)

    def __str__(self) -> str:
        place = "uncompressed byte" if self.raw else "byte"
        return f"{self.path}: record {self.record} at {place} {self.offset}: {self.words}"
