"""Files of records in every way that they come, without a manifest unless said."""

from __future__ import annotations

import gzip
import zlib
from typing import TYPE_CHECKING, Any

from recordkit import records
from recordkit.codecs._gzip import compress_member
from recordkit.schema import Schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

WAYS = ("plain", "ours", "foreign", "zlib")
SCHEMA = Schema({"id": "int64", "name": "string"})


def rows(start: int, stop: int) -> list[dict[str, Any]]:
    """Rows whose lengths differ, so that no two records of a file are alike."""
    return [{"id": number, "name": "n" * (number % 13) + str(number)} for number in range(start, stop)]


def payloads(start: int, stop: int) -> list[bytes]:
    """The same rows as Examples."""
    return list(SCHEMA.encode_rows(rows(start, stop))) if stop > start else []


def stored(frames: Sequence[bytes], way: str, *, members_of: int = 7) -> bytes:
    """The bytes of a file of these records, `members_of` of them in each gzip member of ours."""
    raw = b"".join(frames)
    if way == "foreign":
        return gzip.compress(raw, 1)
    if way == "zlib":
        return zlib.compress(raw, 1)
    if way == "plain":
        return raw
    groups = [frames[at : at + members_of] for at in range(0, len(frames), members_of)] or [[]]
    return b"".join(compress_member(list(group), len(group), 1) for group in groups)


def save(path: Path, some: Iterable[bytes], way: str = "plain") -> Path:
    """Write payloads to a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(stored([records.pack(payload) for payload in some], way))
    return path


def save_many(folder: Path, counts: Sequence[int], ways: Sequence[str] = ("plain",)) -> list[Path]:
    """Write a file of rows for each count, with numbers that go on from one file to the next."""
    paths, start = [], 0
    for number, count in enumerate(counts):
        path = folder / f"data-{number:03d}.tfrecord"
        paths.append(save(path, payloads(start, start + count), ways[number % len(ways)]))
        start += count
    return paths


def flip(path: Path, offset: int, bit: int = 1) -> None:
    """Damage one byte."""
    data = bytearray(path.read_bytes())
    data[offset] ^= bit
    path.write_bytes(data)


def offset_of(path: Path, record: int) -> int:
    """Where a record of a plain file starts."""
    return int(records.scan(path.read_bytes())[record])
