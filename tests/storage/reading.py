"""Datasets read back with the standard library, and folders to compare.

Of `recordkit.storage` only the manifest is used, and that as plain JSON.
"""

from __future__ import annotations

import gzip
import json
import zlib
from typing import TYPE_CHECKING, Any

from recordkit import records
from recordkit.schema import Schema

if TYPE_CHECKING:
    from pathlib import Path

    from recordkit.columns import Batch


def manifest(target: Path) -> dict[str, Any]:
    """The manifest of a dataset or a lone file."""
    lone = target.parent / "_recordkit" / f"{target.name}.manifest.json"
    path = lone if target.is_file() else target / "_recordkit" / "manifest.json"
    loaded: dict[str, Any] = json.loads(path.read_bytes())
    return loaded


def files(target: Path) -> list[Path]:
    """The shards in the order of the manifest."""
    folder = target.parent if target.is_file() else target
    return [folder / shard["name"] for shard in manifest(target)["shards"]]


def raw(path: Path, compression: str | None) -> bytes:
    """The framed records of a file."""
    data = path.read_bytes()
    if compression == "zlib":
        return zlib.decompress(data)
    return gzip.decompress(data) if compression == "gzip" else data


def raws(target: Path) -> list[bytes]:
    """The framed records of every shard."""
    shards = manifest(target)["shards"]
    return [raw(path, shard["compression"]) for path, shard in zip(files(target), shards, strict=True)]


def payloads(target: Path) -> list[list[bytes]]:
    """The payloads of every shard."""
    return [list(records.chunk(data)) for data in raws(target)]


def batches(target: Path, schema: Schema | None = None) -> list[Batch]:
    """The decoded records of every shard."""
    found = Schema.from_json(manifest(target)["schema"]) if schema is None else schema
    return [found.decode(records.chunk(data)) for data in raws(target)]


def ids(target: Path) -> list[list[int]]:
    """The field `id` of every shard."""
    return [batch["id"].tolist() for batch in batches(target)]


def tree(folder: Path) -> dict[str, bytes]:
    """Every file in a folder, hidden ones and those in folders below included."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
