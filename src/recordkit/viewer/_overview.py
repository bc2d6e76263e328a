"""Overview: sizes, files, damage and history of a dataset, for the start of the page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from recordkit.errors import RecordKitError

if TYPE_CHECKING:
    from recordkit.storage.read import Damage

    from ._dataset_view import DatasetView
    from ._file_view import FileView

_MOST_BARS: Final = 400
_MOST_DAMAGE: Final = 200
_MOST_SPOTS: Final = 100


def overview(view: DatasetView) -> dict[str, Any]:
    """Return an overview of a dataset. It reads no records."""
    summary, shards = view.summary, view.shards
    sizes = [shard.size for shard in shards]
    firsts = [0, *view.ends]
    damage = [
        _damage(each, firsts[at] + shard.number(each) if at < len(firsts) else None)
        for at, shard in enumerate(shards)
        for each in sorted(shard.damage.values(), key=lambda each: each.offset)
    ]
    return {
        "name": summary.name,
        "title": Path(summary.name).name or summary.name,
        "records": view.count,
        "counted": (view.ends or [0])[-1],
        "bytes": sum(sizes),
        "files": summary.files,
        "compression": _compression(shards),
        "bars": _bars(view, sizes),
        "damage": damage[:_MOST_DAMAGE],
        "damaged": len(damage),
        "fields": len(view.schema.names) if view.schema is not None else None,
        "sequences": bool(view.schema is not None and view.schema.sequences),
        "problem": view.problem,
        "lineage": list(summary.lineage[:20]),
        "left_out": [{"name": path.name, "reason": reason} for path, reason in view.dataset.left_out[:20]],
        "splits": dict(summary.splits),
    }


def _compression(shards: list[FileView]) -> str:
    """Return the compression of the first file; the others are not opened for this."""
    try:
        return (shards[0].file.compression or "plain") if shards else "plain"
    except (RecordKitError, OSError):
        return "unreadable"


def _bars(view: DatasetView, sizes: list[int]) -> list[dict[str, Any]]:
    """Return the files as bars; if there are very many, several files share a bar."""
    shards, ends = view.shards, view.ends
    step = -(-len(shards) // _MOST_BARS) or 1
    bars = []
    for start in range(0, len(shards), step):
        stop = min(start + step, len(shards))
        first = ends[start - 1] if start and start <= len(ends) else 0
        known = stop <= len(ends)
        bars.append(
            {
                "name": Path(shards[start].file.name).name,
                "files": stop - start,
                "bytes": sum(sizes[start:stop]),
                "first": first,
                "records": ends[stop - 1] - first if known else None,
                "damage": sum(len(shard.damage) for shard in shards[start:stop]),
                "spots": _spots(shards[start], sizes[start]) if stop - start == 1 else [],
            }
        )
    return bars


def _spots(shard: FileView, size: int) -> list[float]:
    """Return where the damage is in a file, from 0 to 1."""
    found = {round(each.offset / max(1, size), 3) for each in list(shard.damage.values()) if not each.raw}
    return sorted(spot for spot in found if spot <= 1)[:_MOST_SPOTS]


def _damage(damage: Damage, number: int | None) -> dict[str, Any]:
    place = "uncompressed byte" if damage.raw else "byte"
    return {
        "file": Path(damage.path).name,
        "where": f"record {damage.record:,}, {place} {damage.offset:,}",
        "words": damage.words,
        "at": number,
    }


def files(view: DatasetView, at: int, count: int) -> dict[str, Any]:
    """Return one page of the files."""
    ends = view.ends
    shown = []
    for number, shard in enumerate(view.shards[at : at + count], at):
        first = ends[number - 1] if number and number <= len(ends) else 0
        shown.append(
            {
                "name": Path(shard.file.name).name,
                "bytes": shard.size,
                "records": shard.count,
                "first": first if number < len(ends) else None,
                "damage": len(shard.damage),
                "walked": shard.walked,
            }
        )
    return {"total": len(view.shards), "files": shown}
