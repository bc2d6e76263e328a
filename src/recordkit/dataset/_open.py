"""Open: from what the user names to a dataset."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from recordkit import log
from recordkit.engines import AUTO, Workers
from recordkit.filesystems import LocalFile, OpenFiles, as_open_file, given_path, is_handled
from recordkit.schema import Schema
from recordkit.storage.find import find_published, locate
from recordkit.storage.overlays import Overlay, file_with_overlays, merge_shared, overlays_over
from recordkit.storage.read import RecordFile
from recordkit.wording import listed

from ._dataset import Dataset
from ._overlaid import Stack
from ._sequence import RecordSequence
from ._tolerant import DamageLog

if TYPE_CHECKING:
    from collections.abc import Callable

    from recordkit.filesystems import ByteFile
    from recordkit.storage.find import DatasetFiles, Located

    from ._tolerant import OnError


def open(  # noqa: A001 - the verb that a user would say
    where: str | os.PathLike[str] | IO[bytes] | Sequence[str | os.PathLike[str]],
    *,
    schema: Schema | Mapping[Any, Any] | None = None,
    split: str | None = None,
    raw: bool = False,
    parse: Callable[[bytes], Any] | None = None,
    on_error: OnError = "raise",
    max_bad: int | None = None,
    overlays: bool | Sequence[str | os.PathLike[str]] = True,
    workers: Workers = AUTO,
    max_record_bytes: int | None = None,
) -> Dataset:
    """Return the dataset in a folder, a file, or many of them.

    Files are recognized by their content, not by their names: plain, gzip and zlib files are read alike, and an error
    says what a file is that is not TFRecord. Every record's checksums are verified whenever it is read.

    Args:
        where: A folder, a file, a glob, `name@16` for a set of 16 shards, a list of those, an open file, `"-"` for
            the standard input, or an address of a file system that was registered.
        schema: What you expect the records to hold; it is checked. By default the schema that they were written with,
            or one inferred from them. A dict names every field, or ends with `...: ...` to keep the others as they are;
            a `Schema` may have fewer fields, and only those are read.
        split: Only this split of a folder that has several.
        raw: Return payloads as bytes, whatever they are.
        parse: Return `parse(payload)` for each record, such as with the `FromString` of a protobuf class.
        on_error: What to do about damage: `"raise"`; `"skip"` to skip it, list it in `Dataset.damage` and log a warning
            at the end; or a function to call with each `Damage`.
        max_bad: With `on_error`, raise if more places than this are damaged.
        overlays: Apply overlays: added fields, hidden fields, deletions. A list of folders that
            `add_fields(..., overlay=)` has made applies those, too.
        workers: How many threads decode.
        max_record_bytes: Refuse payloads longer than this. By default plain files have no limit. For gzip and ZLIB
            files, where a few MB can claim to hold many GB, it is 256 MiB or 64 times the size of the file, whichever
            is more, and 2 GiB at most.

    Raises:
        StorageError: Nothing is there, or shards are missing.
        WrongFileError: A file is not TFRecord.
        SchemaError: The records do not match `schema`.
        CorruptRecordError: The first record is damaged.

    >>> import tempfile, recordkit as rk
    >>> folder = tempfile.mkdtemp() + "/train"
    >>> with rk.create(folder, rk.Schema({"id": "int64", "name": "string"})) as writer:
    ...     writer.write_batch({"id": [1, 2, 3], "name": ["ada", "grace", "emmy"]})
    >>> rk.open(folder)
    Dataset(...train: 3 records, 1 file, 147 bytes)
      id    int64
      name  string
    >>> rk.open(folder, schema={"id": "uint8", ...: ...}).schema
    Schema({'id': 'uint8', 'name': 'string'})
    >>> rk.open(folder, schema={"id": "int64", "nmae": "string"})
    Traceback (most recent call last):
        ...
    recordkit.errors.SchemaError: nmae: declared as string, and not in the first 3 records of ...
      Did you mean 'name'?
    """
    declared = schema if isinstance(schema, Schema) else None
    if schema is not None and (raw or parse is not None):
        message = f"schema= decodes Examples, but {'raw' if raw else 'parse'}= reads payloads as something else"
        raise ValueError(message)
    log = DamageLog(on_error, max_bad)
    given = as_open_file(where)
    if isinstance(where, str) and is_handled(where):
        published, located = _published(where, split, overlays), None
    else:
        published, located = None, None if given is not None else locate(cast("Any", where), split=split)
    if located is not None and located.folder is None and overlays is not False:
        located = _at_their_places(located)
    if published is not None:
        files = [RecordFile(file, shard, max_record_bytes=max_record_bytes) for file, shard in published.files]
    elif given is not None:
        files = [RecordFile(given, max_record_bytes=max_record_bytes)]
    else:
        files = _files(located, max_record_bytes)
    found = published or located
    manifest = found.manifest if found is not None else None
    known = manifest.schema if manifest is not None else None
    examples = not raw and parse is None
    stack = Stack(_layers(located, overlays) if located is not None and overlays is not False else ())
    records = RecordSequence(files, known, declared, log, examples=examples, stack=stack)
    if isinstance(schema, Mapping):
        records = records.with_declared(schema)
    dataset = Dataset(
        records,
        _name(where, given),
        _parse=parse,
        _threads=workers,
        _splits=found.splits if found is not None else {},
        left_out=located.left_out if located is not None else (),
        lineage=manifest.lineage if manifest is not None else (),
    )
    _say_left_out(dataset)
    if declared is not None and examples:
        records.schema  # noqa: B018 - checked now, not at the first batch
    elif files and given is None:
        files[0].compression  # noqa: B018 - what is no TFRecord file is refused here
    return dataset


def _published(address: str, split: str | None, overlays: bool | Sequence[str | os.PathLike[str]]) -> DatasetFiles:
    if not isinstance(overlays, bool):
        message = f"{address}: overlays= is for files of this machine, and this is an address"
        raise ValueError(message)
    return find_published(address, split=split)


def _files(located: Located | None, max_record_bytes: int | None) -> list[RecordFile]:
    assert located is not None
    open_files = OpenFiles.of(len(located.files))
    manifest = located.manifest
    changed = set(located.changed)
    shards = {shard.name: shard for shard in manifest.shards} if manifest is not None else {}
    return [
        RecordFile(
            LocalFile(path),
            shards.get(path.name) if path not in changed else None,
            open_files,
            max_record_bytes=max_record_bytes,
        )
        for path in located.files
    ]


def _at_their_places(located: Located) -> Located:
    """Return lone files under the paths that links lead to, where overlays are kept there."""
    linked = {file: file_with_overlays(file) for file in located.files}
    if all(file == real for file, real in linked.items()):
        return located

    def followed(files: Sequence[Path]) -> tuple[Path, ...]:
        return tuple(linked.get(file, file) for file in files)

    splits = {name: followed(files) for name, files in located.splits.items()}
    return replace(located, files=followed(located.files), splits=splits, changed=followed(located.changed))


def _layers(located: Located, overlays: bool | Sequence[str | os.PathLike[str]]) -> list[Overlay]:
    """Return the overlays on these files, oldest first: those kept with them, then those named."""
    if located.folder is not None:
        found = overlays_over(located.files, located.manifest)
    else:
        found = merge_shared(overlays_over(located.files), located.files)
    return found + [
        Overlay.load(Path(given_path(path))) for path in (overlays if not isinstance(overlays, bool) else ())
    ]


def _name(where: Any, given: ByteFile | None) -> str:
    if given is not None:
        return given.name
    if isinstance(where, str) and is_handled(where):
        return where
    if isinstance(where, str | os.PathLike):
        return str(Path(where))
    return f"{len(where)} paths"


def _say_left_out(dataset: Dataset) -> None:
    if not dataset.left_out:
        return
    shown = listed((f"{path.name} ({reason})" for path, reason in dataset.left_out), most=5)
    log.info("left out: %s", shown)
