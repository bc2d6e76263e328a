"""What a check is: a class that compares one file with something, such as its manifest or a schema.

By default a check gets the lengths and checksums of all intact records, and the pass verifies payloads in place in the
page cache, without a copy. Only a check with `wants_payloads` gets the records themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, Self, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from recordkit.codecs import Compression
    from recordkit.filesystems import ByteFile
    from recordkit.records import Chunk
    from recordkit.schema import Schema
    from recordkit.storage.format import Shard
    from recordkit.storage.read import Damage

Level: TypeAlias = Literal["records", "examples", "images"]

IDENTITY = np.dtype([("length", "<u8"), ("crc", "<u4")])


@dataclass(frozen=True)
class FileToCheck:
    """A file to check, and what to compare it with.

    Attributes:
        file: Its bytes.
        compression: How it is compressed.
        level: How much to check.
        shard: Its entry in a manifest.
        expected: The number of records according to the file's name or an index, where there is no manifest.
        schema: The schema that its Examples must match; None if any Example will do.
    """

    file: ByteFile
    compression: Compression = None
    level: Level = "records"
    shard: Shard | None = None
    expected: int | None = None
    schema: Schema | None = None


class RecordFacts(NamedTuple):
    """The lengths and checksums of consecutive intact records.

    Attributes:
        size: The number of bytes of their frames.
        identity: The length and the checksum of each payload, as `Chunk.identity` returns them.
        first: The number of the first record in the file, if damaged records come before it.
    """

    size: int
    identity: bytes
    first: int | None = None

    @property
    def records(self) -> int:
        """The number of records."""
        return len(self.identity) // IDENTITY.itemsize

    @property
    def lengths(self) -> NDArray[np.uint64]:
        """The length of each payload."""
        return np.frombuffer(self.identity, IDENTITY)["length"]


class PassResult(NamedTuple):
    """The result of a pass over a file.

    Attributes:
        records: The number of intact records.
        size: The size of the file.
        crc: The checksum of all bytes of a compressed file, if it is known.
        damaged: Whether the pass found damage.
        differs: Whether the pass found damage, or a check listed earlier in `CHECKS` did.
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
        """Whether the check needs `chunk`. If none does, no record is copied."""

    @classmethod
    def begin(cls, file: FileToCheck) -> Self | None:
        """Start checking a file; None if there is nothing to check it against."""

    def records(self, facts: RecordFacts) -> None:
        """Take the next intact records, in the order of the file."""

    def chunk(self, chunk: Chunk) -> Iterable[Damage]:
        """Check the payloads of some intact records. Called by any thread, in any order."""

    def end(self, result: PassResult) -> Iterable[Damage | str]:
        """Return what is wrong with the file as `Damage`; text is a note, and leaves the file sound."""


class FactsCheck:
    """Base class of the checks that need no payloads."""

    wants_payloads = False

    def chunk(self, chunk: Chunk) -> Iterable[Damage]:
        """Return nothing: the facts are enough."""
        return ()
