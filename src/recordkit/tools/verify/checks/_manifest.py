"""What a pass over a file sums up, held against its manifest and its index."""

from __future__ import annotations

from bisect import bisect_right
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from recordkit import filesystems
from recordkit.storage import (
    BLOCK,
    Damage,
    Fingerprint,
    Index,
    LocalFile,
    beside,
    check_fits,
    lacks_side_files,
    new_digest,
)

from ._repeats import IDENTITY, Repeats

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from recordkit.storage import ByteFile, Compression, Shard
    from recordkit.tools.verify._find import Candidate

_FRAME: Final = 16
_COMPARED: Final = 1 << 16
_REMADE: Final = "remove it, and it is made again when it is needed"


class Part(NamedTuple):
    """What consecutive records tell, had by any thread at any time: the size of their frames, and who they are."""

    size: int
    identity: bytes


class Sums:
    """What the records of a file tell together.

    Args:
        shard: What a manifest says of it; without, no digest is needed.
        index: What the lengths are held against.

    Attributes:
        records: How many there are.
        raw_bytes: The size of the framed records.
    """

    def __init__(self, shard: Shard | None, index: IndexCheck | None) -> None:
        self.records = self.raw_bytes = 0
        self.repeats = Repeats()
        self.index = index
        self._numbers = [(0, 0)]  # of records: how many sound ones stand before it, and its number in the file
        self._digest = new_digest() if shard is not None else None

    def add(self, part: Part, first: int | None = None) -> None:
        """Take the next records.

        Args:
            part: What they tell.
            first: The number of the first of them, where damaged ones stand before it.
        """
        if first is not None:
            self._numbers.append((self.records, first))
        if self._digest is not None:
            self._digest.update(part.identity)
        if self.index is not None:
            self.index.add(np.frombuffer(part.identity, IDENTITY)["length"])
        records = len(part.identity) // IDENTITY.itemsize
        self.repeats.add(part.identity, records)
        self.records += records
        self.raw_bytes += part.size

    def number(self, sound: int) -> int:
        """Return the number in the file of the record that has so many sound ones before it."""
        before, number = self._numbers[bisect_right(self._numbers, sound, key=itemgetter(0)) - 1]
        return number + sound - before

    @property
    def digest(self) -> str | None:
        """Of the records, if there is something to hold it against."""
        return self._digest.hexdigest() if self._digest is not None else None


def against_manifest(
    candidate: Candidate, sums: Sums, size: int, crc: int | None, compression: Compression, damaged: bool
) -> tuple[list[Damage], list[str]]:
    """Return what is not as a manifest or an index says, and notes.

    Args:
        candidate: The file and its manifest.
        sums: What its records tell.
        size: The size of the file.
        crc: The checksum of all bytes of a compressed file, if it is known. That of a plain one follows from what its
            digest is made of, lengths and checksums, and would tell nothing more.
        compression: How it is compressed.
        damaged: Whether it is known to be damaged; then it is no wonder that the manifest says something else.
    """
    found = [] if damaged else _differences(candidate, sums, size, crc, compression)
    notes = []
    wanted, who = _wanted(candidate)
    if damaged and wanted is not None and wanted != sums.records:
        notes.append(f"{who} says {wanted:,} records, and {sums.records:,} are sound")
    if sums.index is not None:
        found += sums.index.result(sums.records, broken=damaged)
    return found, notes


def _wanted(candidate: Candidate) -> tuple[int | None, str]:
    """Return how many records there should be, and who says so."""
    shard = candidate.shard
    return (shard.records, "the manifest") if shard is not None else (candidate.expected, "dataset_info.json")


def _differences(
    candidate: Candidate, sums: Sums, size: int, crc: int | None, compression: Compression
) -> list[Damage]:
    path, shard = candidate.file.name, candidate.shard
    wanted, who = _wanted(candidate)
    found = []
    if wanted is not None and wanted != sums.records:
        reason = ": it may have been cut between two records" if sums.records < wanted else ""
        words = f"the file has {sums.records:,} records, and {who} says {wanted:,}{reason}"
        found.append(Damage(path, "record_count", sums.records, size, 0, words))
    if shard is None:
        return found
    same = sums.digest == shard.digest
    if compression != shard.compression:
        words = f"the file is {compression or 'plain'}, and the manifest says {shard.compression or 'plain'}"
        found.append(Damage(path, "compression", 0, 0, 0, words))
    elif size != shard.bytes:
        kept = "; its records are the same" if same else ""
        words = f"the file has {size:,} bytes, and the manifest says {shard.bytes:,}{kept}"
        found.append(Damage(path, "file_size", sums.records, min(size, shard.bytes), 0, words))
    elif crc is not None and f"{crc:08x}" != shard.crc32c:
        kept = "; its records are the same" if same else ""
        words = f"the file's bytes are not those that were written: another checksum than in the manifest{kept}"
        found.append(Damage(path, "file_crc", 0, 0, size, words))
    if not same and wanted == sums.records:
        words = "the records are sound, and not those that were written: another digest than in the manifest"
        found.append(Damage(path, "record_digest", 0, 0, size, words))
    return found


class IndexCheck:
    """An index beside a file, held against where the records are.

    Args:
        path: Where it stands.
        data: What is in it.
        index: The same, read; None if it is not sound, or of another file.
        words: What is wrong then.
    """

    def __init__(self, path: str, data: bytes, index: Index | None, words: str = "") -> None:
        self._path = path
        self._data = data
        self._index = index
        self._words = words
        self._block = 0  # the first one that is not compared
        self._offset = 0  # of its first record
        self._held: list[NDArray[np.uint64]] = []
        self._count = 0

    @classmethod
    def of(cls, file: ByteFile, compression: Compression) -> IndexCheck | None:
        """Return the check of a file's index, None if there is none beside it."""
        if not isinstance(file, LocalFile):
            return None
        path = beside(file.path)
        try:
            fingerprint = Fingerprint.of_bytes(file)
            check_fits(Index(path, fingerprint), fingerprint.size, compression)
            data = path.read_bytes()  # which is as large as its numbers say
            return cls(str(path), data, Index(data, fingerprint))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (ValueError, OSError) as error:
            if getattr(error, "errno", None) in filesystems.TOO_MANY_CODES:
                raise
            if lacks_side_files(file.path) is not None:
                return None  # of the state before, and about to be replaced
            return cls(str(path), b"", None, str(error).removeprefix(f"{path}: "))

    def add(self, lengths: NDArray[np.uint64]) -> None:
        """Take how long the next records are."""
        self._held.append(lengths)
        self._count += len(lengths)
        if self._count >= _COMPARED:
            self._compare(self._count // BLOCK)

    def _compare(self, blocks: int) -> None:
        """Hold so many blocks against the records, and forget these."""
        lengths = np.concatenate(self._held)
        self._held = [lengths[blocks * BLOCK :]]
        self._count = len(self._held[0])
        lengths = lengths[: blocks * BLOCK]
        try:
            if self._index is not None and not self._is_equal(self._index, lengths, blocks):
                self._fail("its offsets are not those of the records")
        except ValueError as error:
            self._fail(str(error).removeprefix("the index: "))
        self._block += blocks
        self._offset += int(lengths.sum()) + _FRAME * len(lengths)

    def _is_equal(self, index: Index, lengths: NDArray[np.uint64], blocks: int) -> bool:
        entries = index._directory[self._block : self._block + blocks]
        if len(entries) < blocks:
            return False
        if len(lengths) == blocks * BLOCK and (entries["width"] == entries["width"][0]).all():
            return self._are_equal(entries, lengths.reshape(blocks, BLOCK))
        offset = self._offset
        for number in range(blocks):
            own = lengths[number * BLOCK : (number + 1) * BLOCK]
            starts, frames = index.block(self._block + number)
            if int(starts[0]) != offset or not np.array_equal(frames, own + np.uint64(_FRAME)):
                return False
            offset += int(frames.sum())
        return True

    def _are_equal(self, entries: NDArray[np.void], lengths: NDArray[np.uint64]) -> bool:
        """Whether blocks of one width, which stand one after the other, are equal: many of them at a time."""
        sizes = lengths.sum(1, dtype=np.uint64) + np.uint64(_FRAME * BLOCK)
        starts = np.cumsum(sizes, dtype=np.uint64) - sizes + np.uint64(self._offset)
        above = lengths - (entries["least"] - np.uint64(_FRAME))[:, None]
        width = int(entries["width"][0])
        told: Any = 0
        if width:
            told = np.frombuffer(self._data, f"<u{width}", lengths.size, int(entries["at"][0])).reshape(lengths.shape)
        return np.array_equal(entries["start"], starts) and bool((above == told).all())

    def _fail(self, words: str) -> None:
        self._index, self._words = None, words

    def result(self, records: int, *, broken: bool) -> list[Damage]:
        """Return what is wrong with the index."""
        if broken:
            return []  # of a damaged file, no index can be right
        if self._index is not None:
            self._finish(self._index, records)
        if not self._words:
            return []
        words = f"{self._path}: {self._words}; {_REMADE}"
        return [Damage(self._path, "index", 0, 0, len(self._data), words)]

    def _finish(self, index: Index, records: int) -> None:
        if len(index) != records:
            self._fail(f"it has {len(index):,} records, and the file {records:,}")
            return
        if self._count:
            self._compare(-(-self._count // BLOCK))
        try:
            index.members()
        except ValueError as error:
            self._fail(str(error).removeprefix("the index: "))
