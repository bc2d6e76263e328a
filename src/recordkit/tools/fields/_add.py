"""Add fields to existing records: as an overlay, or baked into new files."""

from __future__ import annotations

import errno
import os
import pickle
import re
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from recordkit import _core
from recordkit.dataset import Dataset, RecordRange, baked_chunk, decoder_for, living, open, physical, rewritten_chunk  # noqa: A004
from recordkit.engines import AUTO, Engine, Workers
from recordkit.errors import SchemaError, StorageError, TargetExistsError, record_place
from recordkit.filesystems import given_path
from recordkit.schema import Schema
from recordkit.storage.format import is_lone_file
from recordkit.storage.overlays import Base, file_to_change, new_overlay, overlay_facts, settle
from recordkit.storage.publish import recover
from recordkit.storage.staging import changing
from recordkit.tools import _rewrite
from recordkit.tools._rewrite import Failure

from ._bound import RowSpan
from ._pieces import cut
from ._sources import bind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from recordkit.columns import Batch
    from recordkit.dataset import RecordSequence
    from recordkit.records import Chunk
    from recordkit.storage.overlays import Overlay

    from ._bound import Bound, OnError

_STEP = 8192  # records at a time, if the existing records are not read
_FEW = 1 << 16  # records in a file: with fewer, threads wait for each other longer than they work


@dataclass(frozen=True)
class Changed:
    """The report of a tool that changes a dataset.

    Attributes:
        path: The new dataset, or the overlay of the old one.
        records: The number of records in it.
        fields: The fields that were added, changed or dropped.
        failures: Records whose value is missing because a function failed.
    """

    path: str
    records: int
    fields: tuple[str, ...]
    failures: tuple[Failure, ...] = ()

    def __str__(self) -> str:
        text = f"{self.path}: {', '.join(self.fields) or 'records'}, {self.records:,} records"
        if self.failures:
            first = self.failures[0]
            text += f"; {len(self.failures):,} values are missing, the first in record {first.record}: {first.words}"
        return text


def add_fields(
    path: str | os.PathLike[str],
    fields: Mapping[str, Any],
    *,
    out: str | os.PathLike[str] | None = None,
    overlay: str | os.PathLike[str] | None = None,
    replace: bool = False,
    workers: Workers | Engine = AUTO,
    on_error: OnError = "raise",
    resume: bool = True,
    overwrite: bool = False,
    sync: bool = True,
) -> Changed:
    """Add fields to the records of a dataset.

    Without `out` nothing is rewritten: the new fields go into an overlay, files of their own that `recordkit.open`
    reads together with the records. With `out`, new files hold both, and everything else in a record is copied byte for
    byte. Either way the result appears complete or not at all. To resume an interrupted run, call it again.

    Args:
        path: The dataset, as `recordkit.open` takes it.
        fields: A source for each name: a `Computed` function, a `Joined` table, an array or list with a value for each
            record, a constant, or another dataset with its records in the same order. A pair of a type and one of the
            last three declares the type.
        out: The new dataset to write.
        overlay: A folder for the new fields, for data that is read-only: pass it to
            `recordkit.open(path, overlays=[...])`. By default the overlay is kept with the records.
        replace: Whether to replace existing fields.
        workers: The number of files to make at a time; `recordkit.Processes(n)` for slow Python functions. Or an engine
            that runs in this process or in its children.
        on_error: `"skip"` leaves the field missing where a function fails, if its type ends in `?`.
        resume: Whether to continue an interrupted run. False starts again.
        overwrite: Whether to replace an existing `out` or `overlay`.
        sync: Whether the result is on the disk when this returns.

    Raises:
        SchemaError: A field already exists, a value does not fit, or a function failed; with file, record and field.

    >>> import tempfile, recordkit as rk
    >>> path = tempfile.mkdtemp() + "/train"
    >>> _ = rk.write(path, [{"id": i, "side": float(i)} for i in range(4)])
    >>> _ = add_fields(path, {"area": rk.Computed("float32", lambda row: row["side"] ** 2, reads=["side"])})
    >>> rk.open(path).select("id", "area")[3]["area"]
    np.float32(9.0)
    """
    if out is not None and overlay is not None:
        message = "out= bakes the fields into new files, overlay= keeps them apart: pass one of them"
        raise ValueError(message)
    if not fields:
        message = "there are no fields to add: pass a source for each name"
        raise ValueError(message)
    if out is None and overlay is None:
        path = place_of(path)
    dataset = open(path)
    records, schema = dataset.sequence, dataset.needed_schema
    bound = [bind(name, source, schema, len(dataset)) for name, source in fields.items()]
    new = Schema({source.name: source.field for source in bound})
    values = {name: token for name, source in fields.items() if (token := _token(source)) is not None}
    replaced = _replaced(schema, new, replace=replace, path=str(path))
    change = Adding(tuple(bound), new, replaced, replace, on_error, bake=out is not None)
    if out is not None:
        whole = Schema({**schema.drop(*replaced).fields, **new.fields}, sequences=schema.sequences)
        arguments = {"fields": list(new.names), "replaced": list(replaced), "values": values}
        lineage = _rewrite.lineage_of(dataset, "add_fields", **arguments)
        origin = origin_of(path, dataset, out)
        target = _rewrite.Target(os.fspath(out), whole, {}, resume, overwrite, sync, lineage=lineage, origin=origin)
        written, failures = _rewrite.run(records, change, target, workers, splits=splits_of(dataset))
        return Changed(os.fspath(out), written, new.names, tuple(failures))
    folder = layer_folder(dataset, "+".join(new.names), sync=sync) if overlay is None else _as_folder(overlay)
    facts = overlay_facts([Base.of(file) for file in records.files], hides=replaced, values=values)
    origin = _rewrite.Origin.of(path, dataset, folder_of(dataset)) if overlay is None else None
    target = _rewrite.Target(str(folder), new, facts, resume, overwrite, sync, compress=False, origin=origin)

    def check(origin: _rewrite.Origin, now: Dataset) -> None:
        origin.check(now, layers=False)
        own, seen = records.stack.owners(records.own_schema), now.sequence.stack.owners(now.sequence.own_schema)
        for name in (*new.names, *replaced):
            if _path_of(own.get(name)) != _path_of(seen.get(name)) or (name in own) != (name in seen):
                raise _changed_meanwhile(name, path)
        _replaced(now.needed_schema, new, replace=replace, path=str(path))

    name = folder.name.partition("-")[2] or folder.name
    if workers == AUTO and not change.reads and len(dataset) < _FEW * len(records.files):
        workers = 1
    splits = {_rewrite.name_of(file): _shard_name(name) for file in records.files}
    try:
        written, failures = _rewrite.run(records, change, target, workers, splits=splits, check=check)
    except TargetExistsError as error:
        if overlay is not None:
            raise
        raise _changed_meanwhile(new.names[0], path) from error
    settle(folder)
    return Changed(str(folder), written, new.names, tuple(failures))


def _changed_meanwhile(name: str, path: Any) -> SchemaError:
    message = (
        f"{name}: another writer has added, changed or dropped this field in {path}\n"
        "  Nothing was added. Check the dataset as it is now; replace=True replaces a field."
    )
    return SchemaError(message, field=name, path=str(path))


def _path_of(layer: Overlay | None) -> Path | None:
    return None if layer is None else layer.path


def _token(source: Any) -> str | None:
    """Fingerprint the values, so that resuming with different ones is refused; None for values of other kinds."""
    if isinstance(source, tuple) and len(source) == 2:
        source = source[1]
    if isinstance(source, np.ndarray) and source.dtype != np.object_ and not isinstance(source, np.memmap):
        data = np.ascontiguousarray(source).reshape(-1).view(np.uint8)
        return f"{source.dtype.str}{list(source.shape)}:{_core.crc32c(data):08x}"
    if isinstance(source, list | str | bytes | int | float | bool):
        with suppress(Exception):
            return f"{type(source).__name__}:{_core.crc32c(pickle.dumps(source, protocol=4)):08x}"
    return None


def _shard_name(name: str) -> str:
    return name.replace("/", "_").lstrip("._") or "fields"


def _replaced(schema: Schema, new: Schema, *, replace: bool, path: str) -> tuple[str, ...]:
    """Return the existing fields that the new ones replace."""
    taken = {feature: name for name in schema.names for feature in schema.wire_names(name)}
    clashes = {taken[feature]: name for name in new.names for feature in new.wire_names(name) if feature in taken}
    for old, name in clashes.items():
        if not replace or old in schema.sequences:
            way_out = (
                "a field with one value per step cannot be replaced" if old in schema.sequences else "replace=True"
            )
            message = f"{name}: {path} has a field {old} already\n  To replace it: {way_out}."
            raise SchemaError(message, field=name, path=path)
    return tuple(clashes)


def splits_of(dataset: Dataset) -> dict[str, str]:
    """Return the split of each file, by the file's name; nothing if there is only one split."""
    named = {path.name: split for split, paths in dataset.splits.items() for path in paths}
    names = {}
    for file in dataset.shards:
        if file.local is None:
            message = f"{file.name}: only local files can be changed\n  Save it to a file first."
            raise StorageError(message, path=file.name)
        name = file.local.path.name
        names[name] = file.shard.split if file.shard is not None else named.get(name, name)
    splits = {name: split.partition(".tf")[0] or split for name, split in names.items()}
    return splits if len(set(splits.values())) > 1 else {}


def layer_folder(dataset: Dataset, name: str, *, sync: bool = True) -> Path:
    """Return the folder for the next layer of a dataset.

    Raises:
        StorageError: Its files are in several folders, or not on this machine.
    """
    folder = folder_of(dataset)
    with _advising(folder):
        path = new_overlay(folder, name, sync=sync)
        if not os.access(path.parent, os.W_OK):
            message = f"{path.parent}: cannot write to this folder: {os.strerror(errno.EACCES)}"
            raise StorageError(message, path=str(folder), errno=errno.EACCES)
        return path


def folder_of(dataset: Dataset) -> Path:
    """Return the folder of the files of a dataset.

    Raises:
        StorageError: They are in several folders, or not on this machine.
    """
    folders = {file.local.path.parent for file in dataset.shards if file.local is not None}
    if len(folders) != 1:
        message = (
            f"{dataset.name}: its files are in {len(folders)} folders, and an overlay is kept with the files\n"
            "  Choose a folder with overlay=, or write new files with out=."
        )
        raise StorageError(message)
    return folders.pop()


@contextmanager
def _advising(folder: Path) -> Iterator[None]:
    """Add advice to an error about read-only data."""
    try:
        yield
    except StorageError as error:
        if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise
        advice = "For read-only data, choose a folder with overlay=."
        raise error.but(advice=advice, path=str(folder)) from error


def origin_of(path: Any, dataset: Dataset, out: Any) -> _rewrite.Origin | None:
    """Return the state of the source if the new dataset replaces it, so that it must not change meanwhile."""
    files = [file.local.path for file in dataset.shards if file.local is not None]
    places = {os.path.realpath(place) for file in files for place in (file, file.parent)}
    if os.path.realpath(given_path(out)) not in places:
        return None
    return _rewrite.Origin.of(path, dataset, folder_of(dataset))


def place_of(path: Any) -> Any:
    """Resolve a link to a lone file, since overlays are kept with the file itself. Return other paths unchanged."""
    return file_to_change(given_path(path, pattern=True)) if isinstance(path, str | os.PathLike) else path


@contextmanager
def changing_dataset(path: Any) -> Iterator[Dataset]:
    """Lock a dataset against changes inside the block, and open it.

    Raises:
        TargetBusyError: Another writer is changing it, and did not finish in time.
    """
    path = place_of(path)
    if isinstance(path, str | os.PathLike):
        recover(path)
    folder = folder_of(open(path))
    with changing(folder):
        yield open(path)


def _as_folder(overlay: str | os.PathLike[str]) -> Path:
    if is_lone_file(given_path(overlay)):
        message = f"{overlay}: an overlay is a folder, and this is the name of a record file\n  Choose another name."
        raise StorageError(message, path=os.fspath(overlay))
    return Path(overlay)


@dataclass(frozen=True)
class Adding:
    """A change that makes new fields, alone or together with the existing records.

    Attributes:
        replaced: Existing fields to drop.
        replace: Whether to also drop features of the same names that no schema lists.
        bake: Whether to write the whole records.
    """

    bound: tuple[Bound, ...]
    schema: Schema
    replaced: tuple[str, ...]
    replace: bool
    on_error: OnError
    bake: bool

    @property
    def reads(self) -> tuple[str, ...]:
        """The fields of the records that the sources read."""
        return tuple(dict.fromkeys(name for source in self.bound for name in source.reads))

    def chunks(self, records: RecordSequence, at: int, failures: list[Failure]) -> Iterator[Chunk]:
        """Yield the new records of one file."""
        if self.bake:
            return self._baked(records, at, failures)
        return self._beside(records, at, failures) if self.reads else self._unread(records, at, failures)

    def _first_of(self, records: RecordSequence, at: int) -> int:
        return int(records.ends[at - 1]) if at else 0

    def _baked(self, records: RecordSequence, at: int, failures: list[Failure]) -> Iterator[Chunk]:
        base = records.own_schema or Schema({})
        drop = {feature for name in self.replaced for feature in (records.schema or base).wire_names(name)}
        decoder = decoder_for(base, records.stack, self.reads) if self.reads else None
        sure = records.known is not None
        new = frozenset(feature for name in self.schema.names for feature in self.schema.wire_names(name))
        if self.replace and not sure:
            drop |= new
        absent = frozenset[str]() if sure else new - drop
        first = self._first_of(records, at)
        unread = _Slices(self._living(records, at, failures))
        for part in _rewrite.parts_of(records, at):
            count = len(part.chunk)
            batch = decoder.decode(part, 0, count) if decoder is not None else None
            if batch is None:
                tail = unread.take(count)
            else:
                tail = self._encoded(first, part.record_numbers(0, count), part.path, batch, failures)
            chunk = baked_chunk(part, base, records.stack, sure=sure) if records.stack else part.chunk
            yield rewritten_chunk(part, chunk, drop, sequence=bool(base.sequences), tail=tail, absent=absent)
            first += count

    def _living(self, records: RecordSequence, at: int, failures: list[Failure]) -> Iterator[Chunk]:
        """Yield the new fields of all visible records, in large chunks, if the values do not depend on the records."""
        file, first = records.files[at], self._first_of(records, at)
        deleted = records.stack.deleted(file)
        count = living(deleted, file.count)
        for start in range(0, count, _STEP):
            numbers = physical(deleted, np.arange(start, min(start + _STEP, count)))
            yield self._encoded(first + start, numbers, file.name, None, failures)

    def _beside(self, records: RecordSequence, at: int, failures: list[Failure]) -> Iterator[Chunk]:
        """Yield the new fields of all records in the file; those of deleted records are empty."""
        decoder = decoder_for(records.own_schema or Schema({}), records.stack, self.reads)
        file, first = records.files[at], self._first_of(records, at)
        stream = records.open_stream(file, 0, chunk_bytes=_rewrite.CHUNK_BYTES)
        while (chunk := stream.read()) is not None:
            part = records.part(file, chunk)
            count = len(part.chunk)
            batch = decoder.decode(part, 0, count) if count else None
            made = self._encoded(first, part.record_numbers(0, count), part.path, batch, failures)
            yield _spread(made, part, chunk.first_record, len(chunk))
            first += count

    def _unread(self, records: RecordSequence, at: int, failures: list[Failure]) -> Iterator[Chunk]:
        """Yield the same without reading the records, if the values do not depend on them."""
        file, first = records.files[at], self._first_of(records, at)
        deleted = records.stack.deleted(file)
        for start in range(0, file.count, _STEP):
            stop = min(start + _STEP, file.count)
            kept = np.setdiff1d(np.arange(start, stop), deleted, assume_unique=True)
            made = self._encoded(first + living(deleted, start), kept, file.name, None, failures)
            yield _spread(made, RecordRange(made, None, None, kept), start, stop - start)

    def _encoded(
        self, first: int, numbers: NDArray[np.int64], path: str | None, batch: Batch | None, failures: list[Failure]
    ) -> Chunk:
        """Encode the new fields of consecutive records of the dataset.

        Args:
            first: The number of the first record in the dataset.
            numbers: Their numbers in their file.
            path: Their file.
            batch: Their existing fields.
            failures: Collects what was skipped.
        """
        count = len(numbers)
        if not count:
            return _core.join([])
        rows = RowSpan(first, count, batch, self.on_error, failures)
        columns, masks = {}, {}
        try:
            for source in self.bound:
                column, valid = source.values(rows)
                if self.on_error == "skip" and source.field.optional:
                    column, valid = fitting(source, first, column, valid, failures)
                columns[source.name] = column
                if valid is not None:
                    masks[source.name] = valid
        except SchemaError as error:
            raise named(
                error, path, numbers, None if error.record is None else error.record - first
            ) from error.__cause__
        try:
            return self.schema.encode(columns, count, valid=masks)
        except SchemaError as error:
            raise named(error, path, numbers, error.record) from None


def fitting(
    source: Bound, first: int, column: Any, valid: NDArray[np.bool_] | None, failures: list[Failure]
) -> tuple[Any, NDArray[np.bool_] | None]:
    """Leave out the values that do not fit the declared type."""
    schema, count = Schema({source.name: source.field}), len(column)
    masks = {} if valid is None else {source.name: valid}
    try:
        schema.encode({source.name: column}, count, valid=masks)
    except SchemaError as error:
        if error.record is None:
            raise
    else:
        return column, valid
    good = np.ones(count, np.bool_) if valid is None else valid.copy()
    for row in np.flatnonzero(good).tolist():
        try:
            schema.encode({source.name: cut(column, row, 1)}, 1)
        except SchemaError as error:
            good[row] = False
            failures.append(Failure(first + row, error.headline))
    return [column[row] if good[row] else None for row in range(count)], good


def named(error: SchemaError, path: str | None, numbers: NDArray[np.int64], row: int | None) -> SchemaError:
    """Return an error about one of these records with its file, and its number there."""
    words, record, where = error.summary, None if row is None else int(numbers[row]), error.where
    place = record_place(path, record)
    if row is not None:
        words = words.replace(f" failed on record {error.record}:", " failed:")
        if of_many := re.search(r" failed on records (\d+) to (\d+):", words):
            last = row + int(of_many[2]) - int(of_many[1])
            place = record_place(path)
            words = words.replace(of_many[0], f" failed on records {numbers[row]} to {numbers[last]}:")
        words, where = words.replace(f"record {error.record} ", "it "), ""
    place = ": ".join(part for part in (place, error.place) if part)
    return error.but(place=place, summary=words, where=where, record=record, path=path)


class _Slices:
    """Regroups records from chunks of one size into others."""

    def __init__(self, chunks: Iterator[Chunk]) -> None:
        self._chunks = chunks
        self._chunk = _core.join([])
        self._at = 0

    def take(self, count: int) -> Chunk:
        """Return the next `count` records."""
        pieces = []
        while count:
            if self._at == len(self._chunk):
                self._chunk, self._at = next(self._chunks), 0
            piece = self._chunk.slice(self._at, self._at + count)
            self._at += len(piece)
            count -= len(piece)
            pieces.append(piece)
        return pieces[0] if len(pieces) == 1 else _core.join(pieces)


def _spread(made: Chunk, part: RecordRange, first: int, count: int) -> Chunk:
    """Return a record for each record in the file, with empty ones in place of deleted records."""
    if len(made) == count:
        return made
    places = np.full(count, len(made), np.uint64)
    places[part.record_numbers(0, len(made)) - first] = np.arange(len(made), dtype=np.uint64)
    return _core.join([made, _core.pack([b""])]).pick(places)


def names_given(names: Sequence[str] | str) -> tuple[str, ...]:
    """Return the names as a tuple; a single string is one name."""
    return (names,) if isinstance(names, str) else tuple(names)
