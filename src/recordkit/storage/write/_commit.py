"""Commit: publishes finished parts, from one writer or several, with their manifest."""

from __future__ import annotations

import errno
from collections import Counter
from dataclasses import replace
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Any, Final

import recordkit
from recordkit import _core, filesystems
from recordkit.errors import StorageError, TargetExistsError
from recordkit.filesystems import fitting
from recordkit.schema import Schema
from recordkit.storage.format import (
    SIDE,
    Fingerprint,
    Manifest,
    Shard,
    appended_name,
    inside,
    manifest_of,
    shard_name,
    side_of,
    staging_of,
    suffix,
    target_of,
)
from recordkit.storage.overlays import AFTER, overlays_over, schema_with
from recordkit.storage.publish import finish, moves_of, publish, publishing, take_back
from recordkit.storage.staging import ContentChecksum, Journal, claim_parts, part_folder, part_folders
from recordkit.wording import listed

from . import _append
from ._writer import Written

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from recordkit.storage.staging import StagedPart

    from ._append import AppendTarget
    from ._writer import Writer


RUN: Final = "run"  # makes each shard by itself: see _run.py


def commit(path: str | os.PathLike[str], *, sync: bool = True) -> Written:
    """Publish a dataset whose parts were written by several writers (`create(..., part=, parts=)`).

    Raises:
        StorageError: A part is missing, unfinished, or was written with another schema or other options.
        TargetBusyError: A part is still being written.
    """
    target, _ = target_of(path)
    staging = staging_of(target)
    if finish(target, resuming=True):
        # An earlier call did it, and was killed before it could return.
        manifest = Manifest.load(manifest_of(target, lone=False))
        assert manifest is not None
        return _written(target, manifest)
    journal = Journal.load(target)
    folders = part_folders(staging)
    if not folders:
        message = f"{target}: there are no parts to commit\n  Write them with create(..., part=, parts=)."
        raise StorageError(message, path=str(target), errno=errno.ENOENT)
    total, *others = sorted({int(folder.name.rpartition("-of-")[2]) for folder in folders})
    if others:
        message = (
            f"{target}: some parts say there are {total} parts, others say {others[0]}\n"
            f"  Remove them and write them again: recordkit.discard({str(target)!r})."
        )
        raise StorageError(message, path=str(target))
    begun = set(folders)
    lacking = [number for number in range(total) if part_folder(staging, number, total) not in begun]
    if lacking:
        message = f"{target}: expected {total} parts, found {len(folders)}\n  Missing: {listed(lacking, most=20)}."
        raise StorageError(message, path=str(target))
    claimed = claim_parts(target, range(total), total, sync=sync)
    try:
        if journal is not None:
            take_back(target, journal, sync=sync)
        if any((part.run or {}).get("kind") == RUN for part in claimed):
            message = (
                f"{target}: a change of a dataset was interrupted here\n  Call it again: it continues where it stopped."
            )
            raise StorageError(message, path=str(target))
        unfinished = [part.number for part in claimed if not part.done]
        if unfinished:
            message = (
                f"{target}: parts are unfinished: {listed(unfinished, most=20)}\n"
                "  Write them with resume=True, then commit."
            )
            raise StorageError(message, path=str(target))
        return publish_parts(target, claimed, sync=sync)
    finally:
        for part in claimed:
            part.release()


def leave(writer: Writer) -> None:
    """Leave a finished part for `commit`."""
    writer._part.done = True
    writer._part.release()


def publish_new(writer: Writer, *, lone: bool) -> None:
    # A resumed run keeps the order of the fields that it started with, which the writer may not have.
    schema = None if writer.committed else writer.schema
    if lone:
        publish_file(writer._part, schema)
    else:
        publish_parts(writer._part.target, [writer._part], schema, sync=writer._part.sync)


def publish_file(part: StagedPart, schema: Schema | None = None) -> None:
    """Publish the only shard of a part as a lone file."""
    shard = _only_shard(part)
    named = _renamed(shard, part.target.name)
    side = side_of(part.target, lone=True)
    moves = moves_of(shard, part.data, part.target.name, part.target.parent, side)
    run = part.run or {}
    with publishing(part.target):
        part.check_held()
        publish(
            part.target,
            "file",
            _like(moves, run.get("mode")),
            _manifest(run, (named,), schema),
            overwrite=bool(run.get("overwrite")),
            sync=part.sync,
            new=ContentChecksum(shard.bytes, shard.crc32c),
            mode=run.get("mode"),
        )
    part.release()


def publish_parts(target: Path, parts: list[StagedPart], schema: Schema | None = None, *, sync: bool) -> Written:
    """Put the shards of all parts into one folder, and publish it; without a schema, with that of their runs."""
    run = _common_run(target, parts)
    final = staging_of(target) / "final"
    # Shards are numbered by split: a dataset may have several.
    totals = Counter(shard.split for part in parts for shard in part.shards)
    numbers: Counter[str] = Counter()
    moves: list[tuple[Path, Path]] = []
    shards: list[Shard] = []
    for part in parts:
        mode = (part.run or {}).get("mode")
        for shard in part.shards:
            of = shard.split
            name = shard_name(of, numbers[of], totals[of], suffix(shard.compression))
            numbers[of] += 1
            new = moves_of(shard, part.data, name, final, final / SIDE)
            moves += _like(new, mode)
            shards.append(_renamed(shard, name))
    manifest = _manifest(run, tuple(shards), schema)
    modes = [mode for part in parts if (mode := (part.run or {}).get("mode")) is not None]
    with publishing(target):
        for part in parts:
            part.check_held()
        publish(
            target,
            "folder",
            moves,
            manifest,
            overwrite=bool(run.get("overwrite")),
            sync=sync,
            mode=reduce(and_, modes) if modes else None,
        )
    for part in parts:
        part.release()
    return _written(target, manifest)


def _like(moves: list[tuple[Path, Path]], mode: int | None) -> list[tuple[Path, Path]]:
    """Set the permissions of the files to be moved; return the moves."""
    for source, _ in moves:
        filesystems.set_mode(source, mode)
    return moves


def _common_run(target: Path, parts: list[StagedPart]) -> dict[str, Any]:
    """Return the arguments that all parts share."""
    runs = [part.run or {} for part in parts]
    # A part without rows may have no schema.
    first = next((number for number, run in enumerate(runs) if run.get("schema") is not None), 0)
    for number, (run, part) in enumerate(zip(runs, parts, strict=True)):
        bare = run.get("schema") is None and not any(shard.records for shard in part.shards)
        for name in dict.fromkeys([*runs[first], *run]):
            if name in ("overwrite", "rows", "split", "mode") or (name == "schema" and bare):
                continue
            if run.get(name) != runs[first].get(name):
                message = (
                    f"{target}: part {number} was written with another {name} than part {first}\n  Write it again."
                )
                raise StorageError(message, path=str(target))
    # The row count of a part is not that of the dataset.
    return runs[first] if len(runs) == 1 else {**runs[first], "rows": None}


def _written(target: Path, manifest: Manifest) -> Written:
    return Written(
        str(target),
        manifest.records,
        len(manifest.shards),
        sum(shard.bytes for shard in manifest.shards),
        sum(shard.skipped for shard in manifest.shards),
    )


def publish_appended(writer: Writer, *, resume: bool) -> None:
    part = writer._part
    target = part.target
    with publishing(target):
        part.check_held()
        where = manifest_of(target, lone=False)
        existing = _append.of_folder(target)
        manifest = existing.manifest
        if manifest is None or existing.schema != writer.schema:
            raise _changed(target)
        if resume and _is_last(manifest, part.shards):
            raise _is_there(part)
        run = part.run or {}
        last = [inside(target, shard.name, where) for shard in manifest.shards[-1:]]
        mode = filesystems.permissions_of(*last, where)
        taken = {path.name.rpartition("-of-")[0].rpartition("-")[0] for path in filesystems.children(target)}
        name = appended_name(run["name"], taken)
        moves: list[tuple[Path, Path]] = []
        shards: list[Shard] = []
        total = len(part.shards)
        for shard in part.shards:
            new_name = shard_name(name, len(shards), total, suffix(shard.compression))
            moves += _like(moves_of(shard, part.data, new_name, target, target / SIDE), mode)
            shards.append(_renamed(shard, new_name))
        new = _seen_so(manifest, existing).with_shards(tuple(shards), _operation("append", run))
        publish(target, "append", moves, new, overwrite=True, sync=writer._options.sync, mode=mode)
    part.release()


def _is_last(manifest: Manifest, shards: Sequence[Shard]) -> bool:
    """Tell whether these are exactly the shards that the last append added."""
    if not _ends_with_append(manifest) or not any(shard.records for shard in shards):
        return False
    last = [shard for shard in manifest.shards if _set_name(shard) == _set_name(manifest.shards[-1])]
    return [(shard.records, shard.digest) for shard in last] == [(shard.records, shard.digest) for shard in shards]


def _set_name(shard: Shard) -> str:
    return shard.name.rpartition("-of-")[0].rpartition("-")[0]


def _ends_with_append(manifest: Manifest) -> bool:
    return bool(manifest.lineage) and manifest.lineage[-1].get("operation") == "append"


def _is_there(part: StagedPart) -> TargetExistsError:
    """Remove the staged shards, and return the error for rows that an earlier run had already added."""
    part.clear()
    message = (
        f"{part.target}: the interrupted run was complete: the last append has added the same rows\n"
        "  Nothing was added. To add them again: resume=False."
    )
    return TargetExistsError(message, path=str(part.target))


def _seen_so(manifest: Manifest, existing: AppendTarget) -> Manifest:
    """Return the manifest with the schema that covers both the old records and the new ones."""
    if manifest.schema is None or existing.schema is None or not existing.layers:
        return manifest
    return replace(manifest, schema=schema_with(manifest.schema, existing.schema))


def _changed(target: Path, what: str = "dataset") -> StorageError:
    message = (
        f"{target}: the {what} has changed while rows were being appended to it\n"
        f"  Nothing was added. To start again with the changed {what}: recordkit.discard({str(target)!r}), then append."
    )
    return StorageError(message, path=str(target))


def _only_shard(part: StagedPart) -> Shard:
    """Return the one shard that was written for a lone file.

    Raises:
        StorageError: The resumed run was complete, and there are more rows now.
    """
    shard, *more = part.shards
    if more:
        message = (
            f"{part.target}: the interrupted run was complete, and now there are more rows\n"
            f"  Write them all again: recordkit.discard({str(part.target)!r}), then start without resume."
        )
        raise StorageError(message, path=str(part.target))
    return shard


def publish_extended(writer: Writer, *, existing: AppendTarget, resume: bool) -> None:
    """Append the records of a writer to a lone file."""
    part = writer._part
    target = part.target
    shard = _only_shard(part)
    facts = existing.facts
    old_size = facts.bytes
    staged = part.data / shard.name
    with publishing(target):
        part.check_held()
        layers = overlays_over([target])
        same = [layer.path for layer in layers] == [layer.path for layer in existing.layers]
        if not same or Fingerprint.of(target) != existing.fingerprint:
            raise _changed(target, "file")
        if resume and shard.records and _ends_like(target, old_size, staged, existing.manifest):
            raise _is_there(part)
        if target.stat().st_size > old_size:  # a torn record, which may be cut off
            filesystems.cut_file(target, old_size, sync=writer._options.sync)
        old, new_size = ContentChecksum(old_size, f"{facts.crc:08x}"), old_size + shard.bytes
        new_crc = _core.crc32c_combine(facts.crc, int(shard.crc32c, 16), shard.bytes)
        mode = filesystems.permissions_of(target)
        moves = [(staged, target)]
        manifest = None
        side = side_of(target, lone=True)
        kept = side / fitting("", target.name, ".rki")
        after = {"records": facts.records, "digest": facts.digest.hexdigest()}
        # An overlay needs to know which records it was made for.
        before = existing.manifest or (Manifest(schema=None, shards=()) if layers else None)
        if before is not None or kept.exists():
            facts.read(staged)
            index = part.data / "whole.rki"
            fingerprint = Fingerprint.of_joined(target, old_size, staged)
            filesystems.write_new(index, facts.index.to_bytes(fingerprint), sync=True)
            moves.append((index, kept))
        if before is not None:
            earlier = before.shards[0] if before.shards else None
            whole = Shard(
                name=target.name,
                records=facts.records,
                bytes=facts.bytes,
                raw_bytes=facts.raw_bytes,
                crc32c=f"{facts.crc:08x}",
                digest=facts.digest.hexdigest(),
                compression=facts.compression,
                rows=(earlier.rows if earlier is not None else after["records"]) + shard.rows,
                skipped=(earlier.skipped if earlier is not None else 0) + shard.skipped,
                split=earlier.split if earlier is not None else target.name,
            )
            operation = _operation("append", part.run or {}) | ({AFTER: after} if layers else {})
            manifest = _seen_so(before, existing).with_shards((), operation).with_only(whole)
            if shard.skipped:
                path = side / "quarantine" / fitting("", target.name, ".jsonl")
                moves.append(_joined_quarantine(part, path, more=earlier is not None and earlier.skipped > 0))
        filesystems.sync_folder(part.data, sync=writer._options.sync)
        publish(
            target,
            "extend",
            _like(moves, mode),
            manifest,
            overwrite=True,
            sync=writer._options.sync,
            old=old,
            new=ContentChecksum(new_size, f"{new_crc:08x}"),
            mode=mode,
        )
    part.release()


def _ends_like(target: Path, size: int, staged: Path, manifest: Manifest | None) -> bool:
    """Tell whether a file already ends with the records that are about to be appended."""
    more = staged.stat().st_size
    if more > size or (manifest is not None and not _ends_with_append(manifest)):
        return False
    with target.open("rb") as file, staged.open("rb") as other:
        file.seek(size - more)
        while piece := other.read(1 << 20):
            if file.read(len(piece)) != piece:
                return False
    return True


def _joined_quarantine(part: StagedPart, path: Path, *, more: bool) -> tuple[Path, Path]:
    joined = part.data / "whole.jsonl"
    # A file that was overwritten may have left its quarantine there.
    before = path.read_bytes() if more else b""
    filesystems.write_new(joined, before + (part.data / "shard-00000.jsonl").read_bytes(), sync=True)
    return joined, path


def _renamed(shard: Shard, name: str) -> Shard:
    return type(shard)(**{**vars(shard), "name": name})


def _manifest(run: Mapping[str, Any], shards: tuple[Shard, ...], schema: Schema | None) -> Manifest:
    if schema is None and run.get("schema") is not None:
        schema = Schema.from_json(run["schema"])
    return Manifest(
        schema=schema,
        shards=shards,
        lineage=(*run.get("lineage", ()), _operation("create", run)),
        metadata=run.get("metadata") or {},
    )


def _operation(operation: str, run: Mapping[str, Any]) -> dict[str, Any]:
    # No time and no host: the same rows give the same bytes.
    arguments = {
        name: value
        for name, value in run.items()
        if value is not None and name not in ("kind", "overwrite", "metadata", "schema", "lineage", "mode")
    }
    return {"operation": operation, "recordkit": recordkit.__version__, "arguments": arguments}
