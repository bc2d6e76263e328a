"""Manifest: what a dataset holds, in one JSON file that is replaced whole.

The format is written down in docs/format/manifest.md.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from recordkit.errors import StorageError
from recordkit.schema import Schema

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

FORMAT: Final = 1


@dataclass(frozen=True)
class Shard:
    """One file of records.

    Attributes:
        name: The file's name, in the folder of the dataset.
        records: How many there are.
        bytes: The size of the file.
        raw_bytes: The size of the framed records, before compression.
        crc32c: Of all bytes of the file, in hexadecimal.
        digest: Of the records, whatever the compression: see docs/format/manifest.md.
        compression: `"gzip"`, `"zlib"` or None.
        rows: How many rows of the source it stands for, those that were skipped included.
        skipped: How many of them are in quarantine.
        split: The name of the set it belongs to, appended sets included.
    """

    name: str
    records: int
    bytes: int
    raw_bytes: int
    crc32c: str
    digest: str
    compression: str | None
    rows: int
    skipped: int
    split: str

    def to_dict(self) -> dict[str, Any]:
        """Return the shard as JSON has it."""
        return dict(vars(self))

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Shard:
        """Return the shard that `to_dict` gave; what newer versions have added is left out."""
        return cls(**{name: value[name] for name in cls.__dataclass_fields__})


@dataclass(frozen=True)
class Manifest:
    """What a dataset holds.

    Attributes:
        schema: None for payloads of the user's own.
        shards: In the order of their records.
        lineage: The operations that made the dataset, oldest first.
        metadata: What the user wanted to be remembered; JSON.
        overlays: Fields that were added beside the records.
        tombstones: Records that were deleted.
    """

    schema: Schema | None
    shards: tuple[Shard, ...]
    lineage: tuple[Mapping[str, Any], ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    overlays: tuple[Mapping[str, Any], ...] = ()
    tombstones: tuple[Mapping[str, Any], ...] = ()

    @property
    def records(self) -> int:
        """How many records there are in all."""
        return sum(shard.records for shard in self.shards)

    def with_shards(self, shards: tuple[Shard, ...], operation: Mapping[str, Any]) -> Manifest:
        """Return the manifest with more shards, and the operation that made them."""
        return replace(self, shards=self.shards + shards, lineage=(*self.lineage, operation))

    def with_only(self, shard: Shard) -> Manifest:
        """Return the manifest of a lone file that is now this one."""
        return replace(self, shards=(shard,))

    def to_json(self) -> bytes:
        """Return the bytes of the manifest file; the same for the same content."""
        value = {
            "format": FORMAT,
            "schema": None if self.schema is None else self.schema.to_dict(),
            "shards": [shard.to_dict() for shard in self.shards],
            "overlays": list(self.overlays),
            "tombstones": list(self.tombstones),
            "lineage": list(self.lineage),
            "metadata": dict(self.metadata),
        }
        return (json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode()

    @classmethod
    def load(cls, path: Path) -> Manifest | None:
        """Return the manifest in a file, None if there is none.

        Raises:
            StorageError: It cannot be read, or is of a newer format.
        """
        try:
            value = json.loads(path.read_bytes())
            if value["format"] > FORMAT:
                message = (
                    f"{path}: the manifest has format {value['format']}, and this recordkit knows {FORMAT}\n"
                    "  Install a newer recordkit."
                )
                raise StorageError(message, path=str(path))
            return cls(
                schema=None if value["schema"] is None else Schema.from_json(value["schema"]),
                shards=tuple(map(Shard.from_dict, value["shards"])),
                lineage=tuple(value["lineage"]),
                metadata=value["metadata"],
                overlays=tuple(value["overlays"]),
                tombstones=tuple(value["tombstones"]),
            )
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (ValueError, KeyError, TypeError) as error:
            message = f"{path}: this is no manifest of recordkit: {error}\n  Restore it, or remove it to do without."
            raise StorageError(message, path=str(path)) from error
