"""Manifest: describes what a dataset holds, in one JSON file that is replaced atomically.

The format is written down in docs/format/manifest.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from recordkit.codecs import CODECS
from recordkit.errors import SchemaError
from recordkit.schema import Schema

from . import side_json as declare

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

FORMAT: Final = 2
_FRAME: Final = 16  # bytes of a record whose payload is empty
MOST_INFLATED: Final = 1100  # times its size, of anything that deflate compresses; 1,032 and what containers add

_COUNT: Final = declare.number()
SHARD: Final = declare.record(
    {
        "name": declare.file_name,
        "records": _COUNT,
        "bytes": _COUNT,
        "raw_bytes": _COUNT,
        "crc32c": declare.text("[0-9a-f]{8}", "8 hexadecimal digits"),
        "digest": declare.text("[0-9a-f]{32}", "32 hexadecimal digits"),
        "compression": declare.one_of(*CODECS),
        "rows": _COUNT,
        "skipped": _COUNT,
        "split": declare.text(),
    },
)
_PARTS: Final = {
    "format": _COUNT,
    "schema": declare.or_null(declare.table(declare.anything)),
    "shards": declare.array(SHARD),
    "lineage": declare.array(declare.table(declare.anything)),
    "metadata": declare.table(declare.anything),
}
_EMPTY: Final = declare.array(declare.nothing)
DECLARED: Final = declare.JsonFormat(
    "manifest",
    {1: declare.record({**_PARTS, "overlays": _EMPTY, "tombstones": _EMPTY}), 2: declare.record(_PARTS)},
    "Restore it, or remove it to read the files without.",
)


def is_possible(records: int, raw_bytes: int) -> bool:
    """Tell whether this many bytes can hold this many records."""
    return records * _FRAME <= raw_bytes


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
        rows: How many rows of the source it covers, including skipped ones.
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
        """Return the shard as a JSON object."""
        return dict(vars(self))

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Shard:
        """Return the shard from the result of `to_dict`."""
        return cls(**value)

    def explain_impossible(self) -> str | None:
        """Explain why no file can be like this; None if one can."""
        if not is_possible(self.records, self.raw_bytes):
            return f"{self.records:,} records in {self.raw_bytes:,} bytes, where each takes {_FRAME} or more"
        if self.compression is None and self.raw_bytes != self.bytes:
            return f"{self.bytes:,} bytes of a plain file, and {self.raw_bytes:,} bytes of records"
        if self.raw_bytes > self.bytes * MOST_INFLATED:
            return f"{self.raw_bytes:,} bytes of records compressed to {self.bytes:,}, which is too few"
        if self.skipped > self.rows:
            return f"{self.skipped:,} rows skipped of {self.rows:,}"
        return None


@dataclass(frozen=True)
class Manifest:
    """What a dataset holds.

    Attributes:
        schema: None for payloads of the user's own.
        shards: In the order of their records.
        lineage: The operations that made the dataset, oldest first.
        metadata: What the user wanted to be remembered; JSON.
    """

    schema: Schema | None
    shards: tuple[Shard, ...]
    lineage: tuple[Mapping[str, Any], ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def records(self) -> int:
        """The total number of records."""
        return sum(shard.records for shard in self.shards)

    def with_shards(self, shards: tuple[Shard, ...], operation: Mapping[str, Any]) -> Manifest:
        """Return the manifest with additional shards and the operation that made them."""
        return replace(self, shards=self.shards + shards, lineage=(*self.lineage, operation))

    def with_only(self, shard: Shard) -> Manifest:
        """Return the manifest of a lone file, with this as its only shard."""
        return replace(self, shards=(shard,))

    def to_json(self) -> bytes:
        """Return the bytes of the manifest file; the same for the same content."""
        value = {
            "format": FORMAT,
            "schema": None if self.schema is None else self.schema.to_dict(),
            "shards": [shard.to_dict() for shard in self.shards],
            "lineage": list(self.lineage),
            "metadata": dict(self.metadata),
        }
        data = declare.to_bytes(value)
        DECLARED.parse(data, "the manifest")  # what could not be read again is not written
        return data

    @classmethod
    def load(cls, path: Path) -> Manifest | None:
        """Load a manifest; None if the file does not exist.

        Raises:
            StorageError: It cannot be read, or is of a newer format.
        """
        try:
            value = DECLARED.load(path)
        except FileNotFoundError:
            return None
        return cls._from_dict(value, str(path))

    @classmethod
    def parse(cls, data: bytes, where: str) -> Manifest:
        """Parse a manifest.

        Raises:
            StorageError: They are not a manifest, or are of a newer format.
        """
        return cls._from_dict(DECLARED.parse(data, where), where)

    @classmethod
    def _from_dict(cls, value: Mapping[str, Any], where: str) -> Manifest:
        shards = tuple(map(Shard.from_dict, value["shards"]))
        _check(where, shards)
        try:
            schema = None if value["schema"] is None else Schema.from_json(value["schema"])
        except SchemaError as error:
            raise DECLARED.error(where, f"schema: {error}") from None
        return cls(schema, shards, tuple(value["lineage"]), value["metadata"])


def _check(where: str, shards: tuple[Shard, ...]) -> None:
    """Raise if the numbers of a shard are impossible, or two shards have the same name."""
    seen: set[str] = set()
    for place, shard in enumerate(shards):
        words = f"the name {shard.name} twice" if shard.name in seen else shard.explain_impossible()
        if words is not None:
            raise DECLARED.error(where, f"shards[{place}]: found {words}")
        seen.add(shard.name)
