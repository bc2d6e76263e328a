"""Datasets in every shape that fields are added to, and what their rows are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from hypothesis import strategies as st

import recordkit as rk
from recordkit.columns import BytesColumn, Ragged
from tests.dataset.files import payloads, rows, save

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

SHAPES = ("folder", "splits", "foreign", "lone", "foreign lone")
_WAYS = {None: "plain", "gzip": "ours", "zlib": "zlib"}
_SCHEMA = {"id": "int64", "name": "string"}

shapes = st.sampled_from(SHAPES)
compressions = st.sampled_from([None, None, "gzip", "zlib"])
counts = st.lists(st.integers(0, 9), min_size=1, max_size=4).filter(any)


def build(root: Path, shape: str, sizes: Sequence[int], compression: Any = None) -> Path:
    """Write a dataset with the rows of `files.rows`, and return what to open."""
    total = sum(sizes)
    suffix = {None: "", "gzip": ".gz", "zlib": ".zlib"}[compression]
    if shape == "lone":
        path = root / "one.tfrecord"
        rk.write(path, rows(0, total), _SCHEMA, compression=compression, sync=False)
        return path
    if shape == "foreign lone":
        return save(root / f"theirs.tfrecord{suffix}", payloads(0, total), _WAYS[compression])
    folder, start = root / "base", 0
    for number, size in enumerate(sizes):
        some, start = (start, start + size), start + size
        if shape == "foreign":
            save(folder / f"data-{number:03d}.tfrecord{suffix}", payloads(*some), _WAYS[compression])
            continue
        split = None if shape == "folder" else ("train", "val")[number % 2]
        parts: dict[str, Any] = {"part": number, "parts": len(sizes)}
        with rk.create(folder, _SCHEMA, compression=compression, split=split, sync=False, **parts) as writer:
            for row in rows(*some):
                writer.write(row)
    if shape != "foreign":
        rk.commit(folder, sync=False)
    return folder


def plain(value: Any) -> Any:
    """A value as Python's own."""
    if isinstance(value, BytesColumn | Ragged):
        return value.to_list()
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def plain_rows(some: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows whose values are Python's own."""
    return [{name: plain(value) for name, value in row.items()} for row in some]


def read(path: Any, **options: Any) -> list[dict[str, Any]]:
    """All rows of a dataset."""
    return plain_rows(rk.open(path, **options))


def raw(path: Any) -> list[bytes]:
    """The payloads that stand in the files, whatever was changed beside them."""
    return list(rk.open(path, raw=True, overlays=False))


def listing(folder: Path) -> dict[str, bytes]:
    """Every file under a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
