"""Check that a file has the size, records and checksums that its manifest lists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from recordkit.storage.format import new_digest
from recordkit.storage.read import Damage

from ._check import FactsCheck

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ._check import FileToCheck, PassResult, RecordFacts


class ManifestCheck(FactsCheck):
    """Compares a file with its entry in a manifest, or with the number of records that TFDS gives."""

    def __init__(self, file: FileToCheck) -> None:
        self._file = file
        self._digest = new_digest() if file.shard is not None else None
        shard = file.shard
        self._wanted, self._who = (shard.records, "the manifest") if shard else (file.expected, "dataset_info.json")

    @classmethod
    def begin(cls, file: FileToCheck) -> Self | None:
        """Start if there is such an entry or number."""
        return None if file.shard is None and file.expected is None else cls(file)

    def records(self, facts: RecordFacts) -> None:
        """Take the identities of the next records."""
        if self._digest is not None:
            self._digest.update(facts.identity)

    def end(self, result: PassResult) -> Iterator[Damage | str]:
        """Yield the differences. In a damaged file they follow from the damage, so only the count is noted."""
        wanted, records = self._wanted, result.records
        if not result.damaged:
            yield from self._differences(result)
        elif wanted is not None and wanted != records:
            yield f"{self._who} says {wanted:,} records, but {records:,} are sound"

    def _differences(self, result: PassResult) -> Iterator[Damage]:
        path, shard, wanted = self._file.file.name, self._file.shard, self._wanted
        records, size, compression = result.records, result.size, self._file.compression
        if wanted is not None and wanted != records:
            reason = ": it may have been cut between two records" if records < wanted else ""
            words = f"the file has {records:,} records, but {self._who} says {wanted:,}{reason}"
            yield Damage(path, "record_count", records, size, 0, words)
        if shard is None or self._digest is None:
            return
        same = self._digest.hexdigest() == shard.digest
        kept = "; its records are the same" if same else ""
        # The checksum of a plain file follows from its digest, and would add nothing.
        if compression != shard.compression:
            words = f"the file is {compression or 'plain'}, but the manifest says {shard.compression or 'plain'}"
            yield Damage(path, "compression", 0, 0, 0, words)
        elif size != shard.bytes:
            words = f"the file has {size:,} bytes, but the manifest says {shard.bytes:,}{kept}"
            yield Damage(path, "file_size", records, min(size, shard.bytes), 0, words)
        elif result.crc is not None and f"{result.crc:08x}" != shard.crc32c:
            words = (
                f"the file's bytes are not the ones that were written: their checksum differs from the manifest{kept}"
            )
            yield Damage(path, "file_crc", 0, 0, size, words)
        if not same and wanted == records:
            words = "the records are sound, but not the ones that were written: their digest differs from the manifest"
            yield Damage(path, "record_digest", 0, 0, size, words)
