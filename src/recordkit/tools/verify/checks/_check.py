"""Checks: what `verify` holds the records of a file against, one after the other in the order of `CHECKS`.

A check sees every intact record in one of two ways. By default it gets sizes and identities, and payloads are checked
where they are in the page cache, without a copy. Only a check with `wants_payloads` gets the records themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, Self, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from recordkit.records import Chunk
    from recordkit.schema import Schema
    from recordkit.storage import ByteFile, Compression, Damage, Shard

Level: TypeAlias = Literal["records", "examples", "images"]

IDENTITY = np.dtype([("length", "<u8"), ("crc", "<u4")])


@dataclass(frozen=True)
class CheckedFile:
    """A file, and what it has to agree with.

    Attributes:
        file: Its bytes.
        compression: How it is compressed.
        level: How far to look.
        shard: Its entry in a manifest.
        expected: How many records it has according to anything but a manifest.
        schema: What its Examples have to agree with; None if any Example will do.
    """

    file: ByteFile
    compression: Compression = None
    level: Level = "records"
    shard: Shard | None = None
    expected: int | None = None
    schema: Schema | None = None


class RecordFacts(NamedTuple):
    """The sizes and identities of consecutive intact records.

    Attributes:
        size: How many bytes their frames take.
        identity: The length and the checksum of each payload, as `Chunk.identity` returns them.
        first: The number of the first one in the file, if damaged records come before it.
    """

    size: int
    identity: bytes
    first: int | None = None

    @property
    def records(self) -> int:
        """How many there are."""
        return len(self.identity) // IDENTITY.itemsize

    @property
    def lengths(self) -> NDArray[np.uint64]:
        """The length of each payload."""
        return np.frombuffer(self.identity, IDENTITY)["length"]


class PassResult(NamedTuple):
    """What a pass over a file found out.

    Attributes:
        records: How many intact records there are.
        size: The size of the file.
        crc: The checksum of all bytes of a compressed file, if it is known.
        damaged: Whether a record is damaged.
        differs: Whether that, or whether an earlier check found something.
    """

    records: int
    size: int
    crc: int | None
    damaged: bool
    differs: bool


class Check(Protocol):
    """One check of one file."""

    @property
    def wants_payloads(self) -> bool:
        """Whether `chunk` has to be called. Where no check wants it, no record is copied."""

    @classmethod
    def begin(cls, file: CheckedFile) -> Self | None:
        """Start checking a file; None if there is nothing to check it against."""

    def records(self, facts: RecordFacts) -> None:
        """Take the next intact records, in the order of the file."""

    def chunk(self, chunk: Chunk) -> Iterable[Damage]:
        """Return what is wrong with some intact records. Called by any thread, in any order."""

    def end(self, result: PassResult) -> Iterable[Damage | str]:
        """Return what is wrong with the file, and notes as text."""


class FactsCheck:
    """The part of `Check` that is the same for all checks that need no payloads."""

    wants_payloads = False

    def chunk(self, chunk: Chunk) -> Iterable[Damage]:
        """Return nothing: the facts are enough."""
        return ()
