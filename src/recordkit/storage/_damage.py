"""Damage: one thing that is wrong with a file, as a fact and in words."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Damage:
    """One thing that is wrong with a file.

    Attributes:
        path: The file.
        kind: One word, such as `"bad_payload_crc"`, `"zeros"` or `"gzip_torn"`.
        record: How many records of the file stand before it.
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

    def __str__(self) -> str:
        place = "uncompressed byte" if self.raw else "byte"
        return f"{self.path}: record {self.record} at {place} {self.offset}: {self.words}"
