"""Summary: what is known of a dataset without reading its records."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from recordkit.storage.format import SIDE
from recordkit.wording import counted, format_size

if TYPE_CHECKING:
    from collections.abc import Mapping

    from recordkit.storage.overlays import Overlay

    from ._dataset import Dataset

__all__ = ["Summary", "summarize"]


@dataclass(frozen=True)
class Summary:
    """What is known of a dataset without reading its records.

    Attributes:
        name: What was opened.
        files: How many files it has.
        bytes: Their size; None for a pipe.
        records: How many records there are; None where no manifest says so.
        splits: How many files each split has.
        changes: What overlays change, in words: one text each.
        lineage: The operations that made the dataset, the first one first.
        left_out: The other files and folders in its folder, and why each was not read.

    >>> print(Summary("data/train", 2, 790_123_456, 1200, {}))
    data/train: 1,200 records, 2 files, 790 MB
    """

    name: str
    files: int
    bytes: int | None
    records: int | None
    splits: Mapping[str, int]
    changes: tuple[str, ...] = ()
    lineage: tuple[str, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        parts = [counted(self.records, "record")] if self.records is not None else []
        parts.append(counted(self.files, "file"))
        parts += [format_size(self.bytes)] if self.bytes is not None else []
        return f"{self.name}: {', '.join(parts)}"


def summarize(dataset: Dataset) -> Summary:
    """Return what is known of a dataset without reading its records."""
    files = dataset.shards
    is_pipe = any(not file.file.seekable for file in files)  # its size is known only at its end
    return Summary(
        name=dataset.name,
        files=len(files),
        bytes=None if is_pipe else sum(file.file.size for file in files),
        records=len(dataset) if all(file.shard is not None for file in files) else None,
        splits={name: len(paths) for name, paths in dataset.splits.items()},
        changes=tuple(map(_changes, dataset.sequence.stack.layers)),
        lineage=tuple(str(step.get("operation", "")) for step in dataset.lineage),
        left_out={path.name: reason for path, reason in dataset.left_out if path.name != SIDE},
    )


def _changes(layer: Overlay) -> str:
    """Return what one overlay changes."""
    words = []
    if layer.schema.names:
        words.append(f"added {', '.join(layer.schema.names)}")
    if layer.hides:
        words.append(f"hidden {', '.join(sorted(layer.hides))}")
    if deleted := sum(map(len, layer.deleted.values())):
        words.append(f"{counted(deleted, 'record')} deleted")
    return ", ".join(words)
