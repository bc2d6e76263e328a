"""Create: the functions that start, resume and discard the writing of a dataset."""

from __future__ import annotations

import heapq
import os
from functools import partial
from typing import TYPE_CHECKING, Any

from recordkit import filesystems, log
from recordkit.engines import AUTO
from recordkit.errors import SchemaError, StorageError, TargetBusyError, TargetExistsError
from recordkit.filesystems import fitting
from recordkit.schema import Schema
from recordkit.storage.format import (
    Manifest,
    inside,
    manifest_of,
    read_quarantine,
    set_name,
    side_of,
    staging_of,
    target_of,
    targets_of,
)
from recordkit.storage.overlays import is_other
from recordkit.storage.publish import finish, take_back
from recordkit.storage.staging import Journal, StagedPart, claim_parts, is_foreign, load_run, part_folders, put_away

from . import _append, _commit, _input
from ._options import Options
from ._run import Run
from ._writer import Writer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from recordkit.codecs import Compression
    from recordkit.engines import Workers
    from recordkit.storage.format import BadRow

    from ._append import AppendTarget
    from ._options import OnError
    from ._writer import Written


def create(
    path: str | os.PathLike[str],
    schema: Schema | Mapping[str, Any] | None = None,
    *,
    shard_size: int | str | None = None,
    shards: int | None = None,
    records_per_shard: int | None = None,
    rows: int | None = None,
    compression: Compression = None,
    level: int = 6,
    name: str | None = None,
    on_error: OnError = "raise",
    resume: bool = False,
    overwrite: bool = False,
    workers: Workers = AUTO,
    metadata: Mapping[str, Any] | None = None,
    part: int | None = None,
    parts: int | None = None,
    split: str | None = None,
    lineage: Sequence[Mapping[str, Any]] = (),
    mode: int | None = None,
    sync: bool = True,
) -> Writer:
    """Return a writer of a new dataset, which appears under its name once it is complete.

    Args:
        path: A folder of shards, or one file if the name ends like one (`one.tfrecord`, `one.tfrecord.gz`).
        schema: The fields of every row. Without one, the first rows define it, and all later rows must agree.
        shard_size: How large a file may grow, in bytes or as text such as `"256MB"`, the default.
        shards: How many files to write. Rows are dealt to them in turn, unless `rows` gives the total: then each file
            gets consecutive rows, and the run can be resumed.
        records_per_shard: How many records go into each file.
        rows: How many rows there will be.
        compression: `"gzip"` or `"zlib"`.
        level: The compression level, 0 to 9.
        name: The name of the shards; by default that of the folder.
        on_error: What to do with a row that does not fit: `"raise"`, `"skip"` (quarantine it, see `quarantined`), or
            a function of the error, the row and its number that returns a row to write instead, or None to skip it.
        resume: Continue an interrupted run, if there is one: skip the first `writer.committed` rows of the source.
        overwrite: Replace an existing dataset, at the moment the new one is complete.
        workers: How many threads compress and write.
        metadata: Any JSON value to store in the manifest.
        part: Which part of the dataset this writer makes, counted from 0, if several processes or machines each make
            one. `commit` publishes them together.
        parts: How many parts there are.
        split: Which split the part belongs to, if the dataset has several; its shards are named after it.
        lineage: The operations that produced the source, oldest first, to store in the manifest.
        mode: The permissions of the files, such as `0o600`; by default those of any new file.
        sync: Sync everything to disk before `close` returns. Pass False for data that you can afford to lose in a
            power cut; a crash of the program still leaves no incomplete dataset.

    Raises:
        TargetExistsError: The target exists, and `overwrite` is False.
        TargetBusyError: Another writer is using it.
        StorageError: There is an interrupted run, and neither `resume` nor `overwrite` says what to do with it.

    >>> import os, recordkit as rk, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> with rk.create(f"{folder}/train", {"id": "int64", "note": "string?"}, records_per_shard=2) as writer:
    ...     for i in range(3):
    ...         writer.write({"id": i})
    >>> sorted(os.listdir(f"{folder}/train"))
    ['_recordkit', 'train-00000-of-00002.tfrecord', 'train-00001-of-00002.tfrecord']
    """
    target, lone = target_of(path)
    options = Options.of(
        lone=lone,
        shard_size=shard_size,
        shards=shards,
        records_per_shard=records_per_shard,
        rows=rows,
        compression=compression,
        level=level,
        on_error=on_error,
        workers=workers,
        sync=sync,
        metadata=metadata,
    )
    own_name = target.name if lone else set_name(name, target)
    number, total = _part_of(part, parts, lone=lone)
    if split is not None and parts is None:
        message = "split= is for parts of one dataset; name= names the shards of a whole one"
        raise ValueError(message)
    _recover(target, resume=resume)
    _refuse_existing(target, overwrite=overwrite, lone=lone)
    claimed = _claim(target, number, total, resume=resume, overwrite=overwrite, sync=sync, mode=mode)
    try:
        run: dict[str, Any] = {
            "kind": "file" if lone else "folder",
            "name": own_name,
            "overwrite": overwrite,
            "metadata": options.metadata,
        }
        if lineage:
            run["lineage"] = list(lineage)
        if mode is not None:
            run["mode"] = mode
        if split is not None:
            run["split"] = set_name(split, target)
        declared = _begin(claimed, run | options.to_dict(), _as_schema(schema), resume=resume)
        publish = partial(_commit.publish_new, lone=lone) if parts is None else _commit.leave
        return Writer(claimed, options, declared, split or own_name, publish)
    except BaseException:
        claimed.give_up()
        raise


def append(
    path: str | os.PathLike[str],
    schema: Schema | Mapping[str, Any] | None = None,
    *,
    shard_size: int | str | None = None,
    shards: int | None = None,
    records_per_shard: int | None = None,
    rows: int | None = None,
    compression: Compression = None,
    level: int = 6,
    split: str | None = None,
    on_error: OnError = "raise",
    resume: bool = False,
    cut_torn_tail: bool = False,
    workers: Workers = AUTO,
    sync: bool = True,
) -> Writer:
    """Return a writer that adds rows to an existing dataset or file.

    A dataset folder gets a new set of shards, named like `train-append1-00000-of-00002.tfrecord`. They belong to the
    dataset from the moment the manifest lists all of them. A lone file, plain or gzip, is extended in place when the
    writer is closed; this is the only case in which recordkit changes a file under its final name. If that fails, the
    file is cut back to its old length. If the machine goes down meanwhile, the next writer or `recover` finishes the
    job. Until then `open` refuses the file, and other readers may see a torn record at its end.

    Rows have the fields that `open` shows, with fields that were added as overlays and without dropped ones. Leave out
    a field if its type ends in `?`. New records are never deleted ones.

    Args:
        path: The folder or the file.
        schema: The fields of the rows. By default those that `open` shows: from the manifest, or inferred from the
            first records of a file without one, with overlays applied.
        split: Which split of the dataset the rows belong to, if there are several.
        compression: As for `create`; it may differ from that of existing shards. A file keeps its own.
        cut_torn_tail: Whether the last record of a file may be cut off if it is torn.
        shard_size: As for `create`, as are all others.
        shards: As for `create`.
        records_per_shard: As for `create`.
        rows: As for `create`.
        level: As for `create`.
        on_error: As for `create`.
        resume: As for `create`. If the earlier run had already added all its rows, because it was killed right
            afterwards, they are not added again: see `TargetExistsError`.
        workers: As for `create`.
        sync: As for `create`.

    Raises:
        StorageError: There is nothing to append to, it is damaged, or it was changed meanwhile.
        TargetBusyError: Another writer is using it.
        TargetExistsError: With `resume`, when the writer is closed: the last append has added the same rows.

    >>> import os, recordkit as rk, tempfile
    >>> path = f"{tempfile.mkdtemp()}/train"
    >>> _ = rk.write(path, [{"id": 0}, {"id": 1}])
    >>> with rk.append(path) as writer:
    ...     writer.write({"id": 2})
    >>> sorted(os.listdir(path))[1:]
    ['train-00000-of-00001.tfrecord', 'train-append1-00000-of-00001.tfrecord']
    >>> _ = rk.add_fields(path, {"name": ["ada", "grace", "emmy"]})
    >>> with rk.append(path) as writer:
    ...     writer.write({"id": 3, "name": "mary"})
    >>> rk.open(path)[2:]["name"].to_list()
    ['emmy', 'mary']
    """
    # Follow a link, and change the real dataset with everything that belongs to it.
    target, lone = target_of(targets_of(path)[-1])
    _recover(target, resume=resume)
    existing = _append.of_file(target, cut_torn_tail=cut_torn_tail) if lone else _append.of_folder(target)
    if lone and existing.manifest is None and on_error != "raise":
        message = (
            f"{target}: skipped rows are stored with the manifest, and this file has none\n"
            "  Leave out on_error=, or write a dataset folder."
        )
        raise ValueError(message)
    options = Options.of(
        lone=lone,
        shard_size=shard_size,
        shards=shards,
        records_per_shard=records_per_shard,
        rows=rows,
        compression=existing.compression if lone else compression,
        level=level,
        on_error=on_error,
        workers=workers,
        sync=sync,
    )
    declared = _same_schema(target, _as_schema(schema), existing.schema)
    claimed = _claim(target, 0, 1, resume=resume, overwrite=lone, sync=sync)
    try:
        name = target.name if lone else _split_of(target, split, existing)
        run = {"kind": "append", "name": name, "overwrite": False, "metadata": {}}
        _begin(claimed, run | options.to_dict(), declared, resume=resume)
        publish = (
            partial(_commit.publish_extended, existing=existing, resume=resume)
            if lone
            else partial(_commit.publish_appended, resume=resume)
        )
        return Writer(claimed, options, declared, name, publish)
    except BaseException:
        claimed.give_up()
        raise


def _split_of(target: Path, split: str | None, existing: AppendTarget) -> str:
    splits = list(dict.fromkeys(shard.split for shard in existing.shards))
    if split is None and len(splits) > 1:
        message = f"{target}: there are several splits: {', '.join(splits)}; choose one with split="
        raise ValueError(message)
    return splits[0] if split is None else set_name(split, target)


def _same_schema(target: Path, declared: Schema | None, there: Schema | None) -> Schema | None:
    if declared is not None and there is not None and declared != there:
        message = (
            f"{target}: the existing records have another schema\n  {there.explain_difference(declared)}\n"
            "  Leave schema= out to write rows of the same kind."
        )
        raise SchemaError(message, path=str(target))
    return there if declared is None else declared


def write(
    path: str | os.PathLike[str],
    data: Any,
    schema: Schema | Mapping[str, Any] | None = None,
    **options: Any,
) -> Written:
    """Write a whole dataset in one call.

    Args:
        path: As for `create`.
        data: Rows (dicts), columns (a dict of arrays and lists, or a `Batch`), one array (a record for each element
            of its first dimension), or a list of arrays (a record for each). Bare arrays are stored in a field called
            `array`.
        schema: As for `create`; by default inferred from the data.
        options: As for `create`.

    Returns:
        A summary of what was written.

    >>> import numpy as np, recordkit as rk, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> rk.write(f"{folder}/arrays.tfrecord", [np.zeros((2, 3)), np.ones((4, 3))]).records
    2
    """
    columns = {_input.ARRAY: data} if _input.is_array(data) else data
    if _input.is_columns(columns):
        if schema is None:
            schema = _input.schema_of_columns(columns)
        with create(path, schema, **{"rows": _input.row_count(columns), **options}) as writer:
            rest, valid = _input.columns_behind(columns, writer.committed) if writer.committed else (columns, None)
            writer.write_batch(rest, valid=valid)
    else:
        rows, count = _input.rows_of(data)
        with create(path, schema, **{"rows": count, **options}) as writer:
            for row in _behind(rows, writer.committed):
                writer.write(row)
    return writer.close()


def _behind(rows: Any, count: int) -> Iterator[Any]:
    iterator: Iterator[Any] = iter(rows)
    for _ in range(count):
        next(iterator, None)
    return iterator


def discard(path: str | os.PathLike[str]) -> bool:
    """Remove the remains of an interrupted run; return whether there were any.

    Raises:
        TargetBusyError: The run is still active.
    """
    found = [_discard(target) for target in targets_of(path)]
    return any(found)


def _discard(target: Path) -> bool:
    staging = staging_of(target)
    claimed: list[StagedPart] = []
    try:
        finish(target)
        folders = part_folders(staging)
        total = int(folders[0].name.rpartition("-of-")[2]) if folders else 0
        claimed = claim_parts(target, [int(folder.name.split("-")[1]) for folder in folders], total)
    except TargetBusyError:
        raise
    except StorageError as error:
        if is_foreign(staging):
            raise
        # A staging folder that cannot be trusted can still be removed: that follows no link.
        log.warning("%s: removing an unfinished run that cannot be used: %s", target, error)
    there = os.path.lexists(staging)
    put_away(staging)
    for part in claimed:
        part.release()
    return there


def begin_run(
    path: str | os.PathLike[str],
    schema: Schema | None,
    *,
    metadata: Mapping[str, Any],
    lineage: Sequence[Mapping[str, Any]],
    resume: bool,
    overwrite: bool,
    mode: int | None,
    sync: bool,
) -> Run:
    """Return a run that makes each shard of a target by itself, or resume an interrupted one.

    The remains of an interrupted run are removed if `resume` is False, or if they are an overlay for other files.

    Raises:
        TargetExistsError: The run is complete, or the target exists and `overwrite` is False.
    """
    target, lone = target_of(path)
    _recover(target, resume=resume)
    _refuse_existing(target, overwrite=overwrite, lone=lone)
    run: dict[str, Any] = {
        "kind": _commit.RUN,
        "name": target.name if lone else set_name(None, target),
        "overwrite": overwrite,
        "metadata": dict(metadata),
    }
    if lineage:
        run["lineage"] = list(lineage)
    if mode is not None:
        run["mode"] = mode
    folders = part_folders(staging_of(target))
    begun = [load_run(folder) or {} for folder in folders]
    if not resume or any(is_other(each.get("metadata") or {}, metadata) for each in begun):
        discard(target)
    part = _claim(target, 0, 1, resume=resume, overwrite=overwrite, sync=sync, mode=mode, gaps=True)
    try:
        _begin(part, run, schema, resume=resume)
        return Run(part, lone=lone)
    except BaseException:
        part.give_up()
        raise


def quarantined(path: str | os.PathLike[str]) -> Iterator[BadRow]:
    """Yield the rows that were skipped when a dataset was written, in order, each with the reason.

    >>> import recordkit as rk, tempfile
    >>> path = f"{tempfile.mkdtemp()}/train"
    >>> rk.write(path, [{"id": 1}, {"id": "two"}], {"id": "int64"}, on_error="skip").skipped
    1
    >>> [(bad.number, bad.field, bad.row) for bad in rk.quarantined(path)]
    [(1, 'id', {'id': 'two'})]
    """
    target, lone = target_of(path)
    where = manifest_of(target, lone=lone)
    manifest = Manifest.load(where)
    folder = side_of(target, lone=lone) / "quarantine"
    shards = [shard for shard in manifest.shards if shard.skipped] if manifest is not None else []
    # Merged, since rows may have been dealt to several shards.
    rows = [read_quarantine(inside(folder, fitting("", shard.name, ".jsonl"), where)) for shard in shards]
    yield from heapq.merge(*rows, key=lambda bad: bad.number)


# --- Starting


def _recover(target: Path, *, resume: bool) -> None:
    """Finish what a dead run was publishing.

    Raises:
        TargetExistsError: That was the run to be resumed.
    """
    if finish(target, resuming=resume) and resume:
        message = f"{target}: the interrupted run is complete now: all its rows are there"
        raise TargetExistsError(message, path=str(target))


def _part_of(part: int | None, parts: int | None, *, lone: bool) -> tuple[int, int]:
    if parts is None and part is None:
        return 0, 1
    if parts is None or part is None or not 0 <= part < parts:
        message = f"part is a number below parts, both given; found part={part!r}, parts={parts!r}"
        raise ValueError(message)
    if lone:
        message = "a lone file has no parts: pass a folder as the target"
        raise ValueError(message)
    return part, parts


def _as_schema(schema: Schema | Mapping[str, Any] | None) -> Schema | None:
    return schema if schema is None or isinstance(schema, Schema) else Schema(schema)


def _refuse_existing(target: Path, *, overwrite: bool, lone: bool) -> None:
    if not os.path.lexists(target) or (not lone and target.is_dir() and not filesystems.children(target)):
        return
    if not overwrite:
        message = f"{target}: already exists\n  Pass overwrite=True to replace it."
        raise TargetExistsError(message, path=str(target))
    if lone and not target.is_file():
        message = f"{target}: expected a file to overwrite, found a folder"
        raise TargetExistsError(message, path=str(target))
    if not lone and Manifest.load(manifest_of(target, lone=False)) is None:
        # A typo must not delete somebody's home folder.
        message = (
            f"{target}: not overwritten, because it is not a dataset of recordkit\n"
            "  Remove it yourself if you mean to, or choose another name."
        )
        raise TargetExistsError(message, path=str(target))


def _claim(
    target: Path,
    number: int,
    total: int,
    *,
    resume: bool,
    overwrite: bool,
    sync: bool,
    mode: int | None = None,
    gaps: bool = False,
) -> StagedPart:
    """Claim a part, and keep or remove what an earlier run left of it."""
    filesystems.make_folder(target.parent, sync=sync)
    part = StagedPart(target, number, total, sync=sync, mode=mode, gaps=gaps)
    try:
        journal = Journal.load(target)
        if journal is not None:
            take_back(target, journal, sync=sync)
        kept = part.shards
        if kept and not resume and not overwrite:
            rows = sum(shard.rows for shard in kept)
            message = (
                f"{target}: an interrupted run left {rows:,} rows in {len(kept):,} finished shards\n"
                f"  Continue it: resume=True. Remove it: recordkit.discard({str(target)!r})."
            )
            raise StorageError(message, path=str(target))
        if not resume or _is_dealt(part.run or {}):
            part.clear()
            kept = ()
        part.done = False
        part.drop_unfinished()
    except BaseException:
        part.give_up()
        raise
    if kept and resume:
        done = f"{len(kept):,} finished shards" if gaps else f"row {sum(shard.rows for shard in kept):,}"
        log.info("%s: continuing after %s", target, done)
    return part


def _is_dealt(run: Mapping[str, Any]) -> bool:
    """Tell whether rows were dealt to all shards, so that a finished shard is useless without the others."""
    return run.get("shards") is not None and run.get("rows") is None


def _begin(part: StagedPart, run: dict[str, Any], schema: Schema | None, *, resume: bool) -> Schema | None:
    """Save the arguments of a run, or check that they are the same as before; return the schema."""
    before = part.run if part.shards else None
    if before is None:
        part.run = run | ({"schema": schema.to_dict()} if schema is not None else {})
        return schema
    known = Schema.from_json(before["schema"]) if before.get("schema") is not None else None
    if schema is not None and known is not None and schema != known:
        message = (
            f"{part.target}: the interrupted run has another schema\n  {known.explain_difference(schema)}\n"
            f"  Resume with the same schema, or remove the run: recordkit.discard({str(part.target)!r})."
        )
        raise SchemaError(message, path=str(part.target))
    for name, value in run.items():
        if name not in ("metadata", "overwrite", "mode") and before.get(name) != value:
            if name == "lineage":
                message = (
                    f"{part.target}: the interrupted run was another one, or its source has changed since\n"
                    f"  Start again: resume=False. Or remove the run: recordkit.discard({str(part.target)!r})."
                )
                raise StorageError(message, path=str(part.target))
            message = (
                f"{part.target}: the interrupted run had {name}={before.get(name)!r}, and now it is {value!r}\n"
                f"  Resume with the same value, or remove the run: recordkit.discard({str(part.target)!r})."
            )
            raise StorageError(message, path=str(part.target))
    return known if schema is None else schema
