"""Commit: what becomes of finished parts, from one writer or several, and the manifest that goes with them."""

from __future__ import annotations

import errno
from collections import Counter
from typing import TYPE_CHECKING, Any

import recordkit
from recordkit.errors import StorageError
from recordkit.schema import Schema

from . import _disk, _layers, _names, _publish, _staging
from ._index import Fingerprint
from ._manifest import Manifest, Shard
from ._writer import Written

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping
    from pathlib import Path

    from ._existing import Existing
    from ._staging import Part
    from ._writer import Writer


def commit(path: str | os.PathLike[str], *, sync: bool = True) -> Written:
    """Publish a dataset whose parts were written by several writers (`create(..., part=, parts=)`).

    Raises:
        StorageError: A part is missing, unfinished, or was written with another schema or other options.
        TargetBusyError: A part is still being written.
    """
    return commit_with(path, None, sync=sync)


def commit_with(path: str | os.PathLike[str], metadata: Mapping[str, Any] | None, *, sync: bool) -> Written:
    """Do the same, with other metadata in the manifest than the parts were begun with."""
    target, _ = _names.target_of(path)
    staging = _names.staging_of(target)
    journal = _publish.Journal.load(staging)
    if journal is not None and _publish.is_beyond_return(target, journal):
        # Done by a call that did not live to say so.
        _publish.recover(target)
        manifest = Manifest.load(_names.manifest_of(target, lone=False))
        assert manifest is not None
        return _written(target, manifest)
    folders = _staging.part_folders(staging)
    if not folders:
        message = f"{target}: no parts of it are there\n  They are written by create(..., part=, parts=)."
        raise StorageError(message, path=str(target), errno=errno.ENOENT)
    total, *others = sorted({int(folder.name.rpartition("-of-")[2]) for folder in folders})
    if others:
        message = (
            f"{target}: some of its parts are of {total}, others of {others[0]}\n"
            f"  Remove them, and write it again: recordkit.discard({str(target)!r})."
        )
        raise StorageError(message, path=str(target))
    begun = set(folders)
    lacking = [number for number in range(total) if _staging.part_folder(staging, number, total) not in begun]
    if lacking:
        message = f"{target}: expected {total} parts, found {len(folders)}\n  Missing: {_numbers(lacking)}."
        raise StorageError(message, path=str(target))
    claimed = _staging.claim_parts(target, range(total), total, sync=sync)
    try:
        if journal is not None:
            _publish.take_back(target, journal, sync=sync)
        unfinished = [part.number for part in claimed if not part.done]
        if unfinished:
            message = (
                f"{target}: parts are unfinished: {_numbers(unfinished)}\n  Write them with resume=True, then commit."
            )
            raise StorageError(message, path=str(target))
        return _publish_parts(target, claimed, metadata, sync=sync)
    finally:
        for part in claimed:
            part.release()


def leave(writer: Writer) -> None:
    """Leave a finished part for `commit`."""
    writer._part.done = True
    writer._part.release()


def publish_new(writer: Writer, *, lone: bool) -> None:
    part = writer._part
    if not lone:
        _publish_parts(part.target, [part], None, sync=writer._options.sync)
        return
    if len(part.shards) > 1:
        message = (
            f"{part.target}: the run that broke off had come to its end, and now there are more rows\n"
            f"  Write the file again: recordkit.discard({str(part.target)!r}), then without resume."
        )
        raise StorageError(message, path=str(part.target))
    (shard,) = part.shards
    named = _renamed(shard, part.target.name)
    side = _names.side_of(part.target, lone=True)
    moves = _publish.moves_of(shard, part.data, part.target.name, part.target.parent, side)
    manifest = _manifest(part.run or {}, (named,))
    with _publish.publishing(part.target):
        run = part.run or {}
        _publish.publish(
            part.target, "file", moves, manifest, overwrite=bool(run.get("overwrite")), sync=writer._options.sync
        )
    part.release()


def _publish_parts(target: Path, parts: list[Part], metadata: Mapping[str, Any] | None, *, sync: bool) -> Written:
    """Put the shards of all parts into one folder, and that under its name."""
    run = _common_run(target, parts)
    if metadata is None and _layers.is_brief(run.get("metadata") or {}):
        message = f"{target}: fields that are being added\n  Call add_fields again: it goes on where it broke off."
        raise StorageError(message, path=str(target))
    if metadata is not None:
        run["metadata"] = metadata
    final = _names.staging_of(target) / "final"
    # Parts may have names of their own: the splits of one dataset.
    totals: Counter[str] = Counter()
    for part in parts:
        totals[_set_of(part)] += len(part.shards)
    numbers: Counter[str] = Counter()
    moves: list[tuple[Path, Path]] = []
    shards: list[Shard] = []
    for part in parts:
        of = _set_of(part)
        for shard in part.shards:
            name = _names.shard_name(of, numbers[of], totals[of], _names.suffix(shard.compression))
            numbers[of] += 1
            moves += _publish.moves_of(shard, part.data, name, final, final / _names.SIDE)
            shards.append(_renamed(shard, name))
    manifest = _manifest(run, tuple(shards))
    with _publish.publishing(target):
        _publish.publish(target, "folder", moves, manifest, overwrite=bool(run.get("overwrite")), sync=sync)
    for part in parts:
        part.release()
    return _written(target, manifest)


def _set_of(part: Part) -> str:
    run = part.run or {}
    return str(run.get("split") or run["name"])


def _common_run(target: Path, parts: list[Part]) -> dict[str, Any]:
    """Return what was asked for in all parts alike."""
    runs = [part.run or {} for part in parts]
    # A part without rows may have no schema: nothing has defined one.
    first = next((number for number, run in enumerate(runs) if run.get("schema") is not None), 0)
    for number, (run, part) in enumerate(zip(runs, parts, strict=True)):
        bare = run.get("schema") is None and not any(shard.records for shard in part.shards)
        for name in dict.fromkeys([*runs[first], *run]):
            if name in ("overwrite", "rows", "split") or (name == "schema" and bare):
                continue
            if run.get(name) != runs[first].get(name):
                message = (
                    f"{target}: part {number} was written with another {name} than part {first}\n  Write it again."
                )
                raise StorageError(message, path=str(target))
    # How many rows a part has says nothing of the whole.
    return runs[first] if len(runs) == 1 else {**runs[first], "rows": None}


def _written(target: Path, manifest: Manifest) -> Written:
    return Written(
        str(target),
        manifest.records,
        len(manifest.shards),
        sum(shard.bytes for shard in manifest.shards),
        sum(shard.skipped for shard in manifest.shards),
    )


def publish_appended(writer: Writer) -> None:
    part = writer._part
    target = part.target
    with _publish.publishing(target):
        manifest = Manifest.load(_names.manifest_of(target, lone=False))
        if manifest is None or manifest.schema != writer.schema:
            message = f"{target}: the dataset has changed while rows were being appended to it\n  Nothing was added."
            raise StorageError(message, path=str(target))
        run = part.run or {}
        taken = {path.name.rpartition("-of-")[0].rpartition("-")[0] for path in target.iterdir()}
        name = _names.appended_name(run["name"], taken)
        moves: list[tuple[Path, Path]] = []
        shards: list[Shard] = []
        total = len(part.shards)
        for shard in part.shards:
            shard_name = _names.shard_name(name, len(shards), total, _names.suffix(shard.compression))
            moves += _publish.moves_of(shard, part.data, shard_name, target, target / _names.SIDE)
            shards.append(_renamed(shard, shard_name))
        new = manifest.with_shards(tuple(shards), _operation("append", run))
        _publish.publish(target, "append", moves, new, overwrite=True, sync=writer._options.sync)
    part.release()


def publish_extended(writer: Writer, *, existing: Existing) -> None:
    """Put the records of a writer behind those of a lone file."""
    part = writer._part
    target = part.target
    (shard,) = part.shards
    facts = existing.facts
    old_size = facts.bytes
    staged = part.data / shard.name
    with _publish.publishing(target):
        if Fingerprint.of(target) != existing.fingerprint:
            message = f"{target}: the file has changed while rows were being appended to it\n  Nothing was added."
            raise StorageError(message, path=str(target))
        moves = [(staged, target)]
        manifest = None
        side = _names.side_of(target, lone=True)
        kept = side / _names.fitting("", target.name, ".rki")
        if existing.manifest is not None or kept.exists():
            facts.read(staged)
            index = part.data / "whole.rki"
            _disk.write_new(index, facts.index.to_bytes(Fingerprint.of_joined(target, old_size, staged)), sync=True)
            moves.append((index, kept))
        if existing.manifest is not None:
            (before,) = existing.manifest.shards
            whole = Shard(
                name=target.name,
                records=facts.records,
                bytes=facts.bytes,
                raw_bytes=facts.raw_bytes,
                crc32c=f"{facts.crc:08x}",
                digest=facts.digest.hexdigest(),
                compression=facts.compression,
                rows=before.rows + shard.rows,
                skipped=before.skipped + shard.skipped,
                split=before.split,
            )
            operation = _operation("append", part.run or {})
            manifest = existing.manifest.with_shards((), operation).with_only(whole)
            if shard.skipped:
                path = side / "quarantine" / _names.fitting("", target.name, ".jsonl")
                moves.append(_joined_quarantine(part, path, more=before.skipped > 0))
        _disk.sync_folder(part.data, sync=writer._options.sync)
        _publish.publish(
            target, "extend", moves, manifest, overwrite=True, sync=writer._options.sync, old_size=old_size
        )
    part.release()


def _joined_quarantine(part: Part, path: Path, *, more: bool) -> tuple[Path, Path]:
    joined = part.data / "whole.jsonl"
    # A file that was overwritten may have left its own there.
    before = path.read_bytes() if more else b""
    _disk.write_new(joined, before + (part.data / "shard-00000.jsonl").read_bytes(), sync=True)
    return joined, path


def _renamed(shard: Shard, name: str) -> Shard:
    return type(shard)(**{**vars(shard), "name": name})


def _manifest(run: Mapping[str, Any], shards: tuple[Shard, ...]) -> Manifest:
    schema = run.get("schema")
    return Manifest(
        schema=None if schema is None else Schema.from_json(schema),
        shards=shards,
        lineage=(*run.get("lineage", ()), _operation("create", run)),
        metadata=run.get("metadata") or {},
    )


def _operation(operation: str, run: Mapping[str, Any]) -> dict[str, Any]:
    # No time and no host: the same rows give the same bytes.
    arguments = {
        name: value
        for name, value in run.items()
        if value is not None and name not in ("kind", "overwrite", "metadata", "schema", "lineage")
    }
    return {"operation": operation, "recordkit": recordkit.__version__, "arguments": arguments}


def _numbers(numbers: list[int]) -> str:
    text = ", ".join(map(str, numbers[:20]))
    return f"{text} and {len(numbers) - 20} more" if len(numbers) > 20 else text
