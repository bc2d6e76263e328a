"""Edit a dataset: drop, rename and cast fields, filter and delete records, bake overlays into new files."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from recordkit import examples, log, progress
from recordkit.dataset import Dataset, baked_chunk, decoder_for, open, rewritten_chunk  # noqa: A004
from recordkit.errors import SchemaError, StorageError
from recordkit.expressions import Expression
from recordkit.filesystems import permissions_of
from recordkit.schema import Schema
from recordkit.storage.overlays import Base, overlay_facts, remove_overlay, write_overlay
from recordkit.tools.fields import (
    Changed,
    Computed,
    add_fields,
    changing_dataset,
    layer_folder,
    named,
    names_given,
    origin_of,
    splits_of,
    words_of,
)

from . import _rewrite

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from recordkit.columns import Batch
    from recordkit.dataset import BatchDecoder, RecordRange, RecordSequence
    from recordkit.records import Chunk
    from recordkit.storage.overlays import Overlay

    from ._rewrite import Failure, RewriteOptions

    AnyPath = str | os.PathLike[str]


@dataclass(frozen=True)
class Editing:
    """A change that drops or renames features, and keeps some of the records.

    Attributes:
        drop: Features to drop.
        rename: Old and new names of features.
        keep: Returns which records of a batch to keep; None for all.
        reads: The fields that `keep` needs.
    """

    drop: frozenset[str] = frozenset()
    rename: Mapping[str, str] = field(default_factory=dict)
    keep: Callable[[Batch], NDArray[np.bool_]] | None = None
    reads: tuple[str, ...] = ()

    def chunks(self, records: RecordSequence, at: int, failures: list[Failure]) -> Iterator[Chunk]:
        """Yield the new records of one file."""
        base, sure = records.own_schema or Schema({}), records.known is not None
        for part in _rewrite.parts_of(records, at):
            kept = self._kept(part, base, records) if self.keep is not None else part
            if not len(kept.chunk):
                continue
            chunk = baked_chunk(kept, base, records.stack, sure=sure) if records.stack else kept.chunk
            if self.rename:
                chunk = examples.edit(chunk, rename=self.rename, sequence=bool(base.sequences), path=part.path)
            yield rewritten_chunk(kept, chunk, set(self.drop), sequence=bool(base.sequences)) if self.drop else chunk

    def _kept(self, part: RecordRange, base: Schema, records: RecordSequence) -> RecordRange:
        assert self.keep is not None
        wanted = _wanted(self.keep, part, decoder_for(base, records.stack, self.reads))
        return part.pick(np.flatnonzero(wanted).astype(np.uint64))


def _rewritten(
    path: AnyPath,
    dataset: Dataset,
    change: Editing,
    schema: Schema,
    out: AnyPath,
    fields: Sequence[str],
    operation: tuple[str, dict[str, Any]],
    options: RewriteOptions,
) -> Changed:
    """Write a new dataset, and return its report."""
    name, arguments = operation
    lineage = _rewrite.lineage_of(dataset, name, **arguments)
    chosen = _rewrite.chosen(options)
    target = _rewrite.Target(
        os.fspath(out),
        schema,
        {},
        chosen["resume"],
        chosen["overwrite"],
        chosen["sync"],
        lineage=lineage,
        origin=origin_of(path, dataset, out),
    )
    written, _ = _rewrite.run(dataset.sequence, change, target, chosen["workers"], splits=splits_of(dataset))
    return Changed(os.fspath(out), written, tuple(fields))


def bake(path: AnyPath, out: AnyPath, **options: Unpack[RewriteOptions]) -> Changed:
    """Write a new dataset with all overlays applied to the records themselves.

    >>> import tempfile, recordkit as rk
    >>> folder = tempfile.mkdtemp()
    >>> _ = rk.write(folder + "/a", [{"id": i} for i in range(4)])
    >>> _ = rk.add_fields(folder + "/a", {"double": [0, 2, 4, 6]})
    >>> _ = rk.delete(folder + "/a", where="id == 1")
    >>> _ = bake(folder + "/a", folder + "/b")
    >>> rk.open(folder + "/b", overlays=False)[:]["double"].tolist()
    [0, 4, 6]
    """
    dataset = open(path)
    return _rewritten(path, dataset, Editing(), dataset.needed_schema, out, (), ("bake", {}), options)


def drop_fields(
    path: AnyPath,
    names: Sequence[str] | str,
    *,
    out: AnyPath | None = None,
    **options: Unpack[RewriteOptions],
) -> Changed:
    """Drop fields of a dataset.

    Without `out` nothing is rewritten: a field that was added as an overlay is removed, and a field of the records is
    hidden from readers that use recordkit.

    >>> import tempfile, recordkit as rk
    >>> path = tempfile.mkdtemp() + "/a"
    >>> _ = rk.write(path, [{"id": 1, "note": "x"}])
    >>> _ = drop_fields(path, ["note"])
    >>> rk.open(path).schema.names
    ('id',)
    """
    gone = names_given(names)
    if out is None:
        with changing_dataset(path) as dataset:
            return _hidden(dataset, gone, sync=_rewrite.chosen(options)["sync"])
    dataset = open(path)
    schema = dataset.needed_schema
    left = schema.drop(*gone)
    drop = frozenset(feature for name in gone for feature in schema.wire_names(name))
    operation = ("drop_fields", {"names": list(gone)})
    return _rewritten(path, dataset, Editing(drop=drop), left, out, gone, operation, options)


def _hidden(dataset: Dataset, gone: Sequence[str], *, sync: bool) -> Changed:
    """Drop fields without rewriting records."""
    dataset.needed_schema.drop(*gone)
    layers = _made_of(gone, dataset.sequence)
    folders = [path for layer in layers for path in layer.paths]
    where, count = dataset.name, len(dataset)  # count before anything is hidden
    # The change must be one rename. Removing one layer is; to remove several, first hide all their fields.
    alone = len(folders) == 1 and set(gone) <= set(layers[0].schema.names)
    if not alone:
        folder = layer_folder(dataset, "hidden", sync=sync)
        where = str(write_overlay(folder, _facts(dataset, hides=gone), sync=sync, mode=_mode_of(dataset)))
    for path in folders:
        try:
            remove_overlay(path, sync=sync)
        except StorageError as error:
            if alone:
                raise
            log.warning("%s: hidden, but could not be removed: %s", path, error)
    return Changed(where, count, tuple(gone))


def _made_of(names: Sequence[str], records: RecordSequence) -> list[Overlay]:
    """Return the layers that hold only these fields, and whose removal does not bring older values back."""
    left, found = set(names), []
    for layer in reversed(records.stack.layers):
        added = set(layer.schema.names)
        # Records appended later hold these fields themselves.
        whole = all(records.stack.covers(layer, file) >= file.count for file in records.files)
        if added and added <= left and not layer.hides and not layer.deleted and whole:
            found.append(layer)
        # Lower layers with the same name are not visible.
        left -= added
    return found


def _facts(dataset: Dataset, **changes: Any) -> dict[str, Any]:
    return overlay_facts([Base.of(file) for file in dataset.shards], **changes)


def _mode_of(dataset: Dataset) -> int:
    return permissions_of(*(file.local.path for file in dataset.shards if file.local is not None))


def rename_fields(
    path: AnyPath,
    names: Mapping[str, str],
    *,
    out: AnyPath,
    **options: Unpack[RewriteOptions],
) -> Changed:
    """Write a new dataset with some fields renamed.

    Args:
        path: The dataset.
        names: Old and new names.
        out: The new dataset.
        **options: `workers`, `resume`, `overwrite` and `sync`, as for `add_fields`.

    >>> import tempfile, recordkit as rk
    >>> folder = tempfile.mkdtemp()
    >>> _ = rk.write(folder + "/a", [{"label": 1}])
    >>> _ = rename_fields(folder + "/a", {"label": "y"}, out=folder + "/b")
    >>> rk.open(folder + "/b").schema.names
    ('y',)
    """
    dataset = open(path)
    schema = dataset.needed_schema
    schema.select(*names)
    fields = {names.get(name, name): declared for name, declared in schema.fields.items()}
    sequences = {names.get(name, name): declared for name, declared in schema.sequences.items()}
    if len(fields) + len(sequences) < len(schema.names):
        twice = next(new for new in names.values() if new in schema.names or list(names.values()).count(new) > 1)
        message = f"{twice}: two fields would have this name\n  Drop the other one first."
        raise SchemaError(message, field=twice)
    renamed = Schema(fields, sequences=sequences)
    features = {
        old: new
        for name, to in names.items()
        for old, new in zip(schema.wire_names(name), renamed.wire_names(to), strict=True)
    }
    operation, new = ("rename_fields", {"names": dict(names)}), tuple(names.values())
    return _rewritten(path, dataset, Editing(rename=features), renamed, out, new, operation, options)


def cast_fields(path: AnyPath, types: Mapping[str, Any], *, out: AnyPath | None = None, **options: Any) -> Changed:
    """Change the types of fields. A value that does not fit is an error that names file, record and field.

    Args:
        path: The dataset.
        types: Names and new types.
        out: As for `add_fields`.
        **options: As for `add_fields`.

    >>> import tempfile, recordkit as rk
    >>> path = tempfile.mkdtemp() + "/a"
    >>> _ = rk.write(path, [{"x": 3}, {"x": 200}])
    >>> _ = cast_fields(path, {"x": "uint8"})
    >>> rk.open(path)[:]["x"].dtype
    dtype('uint8')
    """
    sources = {name: Computed(dtype, _Same(name), reads=[name], batched=True) for name, dtype in types.items()}
    return add_fields(path, sources, out=out, replace=True, **options)


@dataclass(frozen=True)
class _Same:
    """Returns a field unchanged."""

    name: str

    def __call__(self, batch: Batch) -> Any:
        valid = batch.valid(self.name)
        if valid.all():
            return batch[self.name]
        return [row[self.name] for row in batch.rows()]


def filter(  # noqa: A001 - the verb that a user would say
    path: AnyPath,
    where: str | Callable[[dict[str, Any]], Any],
    *,
    out: AnyPath,
    reads: Sequence[str] | None = None,
    **options: Unpack[RewriteOptions],
) -> Changed:
    """Write a new dataset with the records that match a condition.

    Args:
        path: The dataset.
        where: A filter such as `"label == 3 and len(tokens) > 8"`, or a function of a row.
        out: The new dataset.
        reads: The fields that a function needs; by default all.
        **options: `workers`, `resume`, `overwrite` and `sync`, as for `add_fields`.

    >>> import tempfile, recordkit as rk
    >>> folder = tempfile.mkdtemp()
    >>> _ = rk.write(folder + "/a", [{"id": i} for i in range(10)])
    >>> filter(folder + "/a", "id >= 7", out=folder + "/b").records
    3
    """
    dataset = open(path)
    schema = dataset.needed_schema
    keep, needed = _condition(where, schema, reads)
    operation = ("filter", {"where": where if isinstance(where, str) else _called(where)})
    return _rewritten(path, dataset, Editing(keep=keep, reads=needed), schema, out, (), operation, options)


def _called(fn: Callable[..., Any]) -> str:
    """Return the name of a function, without its address: another run has to get the same."""
    return str(getattr(fn, "__qualname__", type(fn).__qualname__))


def _condition(
    where: str | Callable[[dict[str, Any]], Any], schema: Schema, reads: Sequence[str] | None
) -> tuple[Callable[[Batch], NDArray[np.bool_]], tuple[str, ...]]:
    if callable(where):
        needed = schema.names if reads is None else tuple(reads)
        schema.select(*needed)
        return _EachRow(where), needed
    expression = Expression(where)
    expression.check(schema)
    return expression.mask, expression.names


@dataclass(frozen=True)
class _EachRow:
    """Applies a function of a row to a batch."""

    fn: Callable[[dict[str, Any]], Any]

    def __call__(self, batch: Batch) -> NDArray[np.bool_]:
        return np.fromiter((self._of(batch.row(number), number) for number in range(len(batch))), np.bool_, len(batch))

    def _of(self, row: dict[str, Any], number: int) -> bool:
        try:
            return bool(self.fn(row))
        except Exception as error:
            message = f"the function failed: {words_of(error)}\n  Its traceback is above."
            raise SchemaError(message, record=number) from error


def _wanted(keep: Callable[[Batch], NDArray[np.bool_]], part: RecordRange, decoder: BatchDecoder) -> NDArray[np.bool_]:
    """Return which records of a part match a condition; errors name the record."""
    batch = decoder.decode(part, 0, len(part.chunk))
    try:
        return keep(batch)
    except SchemaError as error:
        if error.record is None or error.path is not None:
            raise
        raise named(error, part.path, part.record_numbers(0, len(part.chunk)), error.record) from error.__cause__


def delete(
    path: AnyPath,
    *,
    where: str | Callable[[dict[str, Any]], Any],
    reads: Sequence[str] | None = None,
    sync: bool = True,
) -> Changed:
    """Delete records without rewriting files: readers that use recordkit no longer see them.

    Other readers, such as TensorFlow, still do. `bake` writes a dataset without the deleted records.

    Args:
        path: The dataset.
        where: As for `filter`.
        reads: As for `filter`.
        sync: Whether the change is on the disk when this returns.

    >>> import tempfile, recordkit as rk
    >>> path = tempfile.mkdtemp() + "/a"
    >>> _ = rk.write(path, [{"label": i - 2} for i in range(5)])
    >>> delete(path, where="label < 0").records, len(rk.open(path))
    (2, 3)
    """
    with changing_dataset(path) as dataset:
        return _deleted(dataset, where, reads, sync=sync)


def _deleted(
    dataset: Dataset, where: str | Callable[[dict[str, Any]], Any], reads: Sequence[str] | None, *, sync: bool
) -> Changed:
    """Write an overlay that deletes records."""
    records, schema = dataset.sequence, dataset.needed_schema
    keep, needed = _condition(where, schema, reads)
    decoder = decoder_for(records.own_schema or Schema({}), records.stack, needed)
    deleted: dict[str, NDArray[np.int64]] = {}
    done, total = 0, len(dataset)
    for at, file in enumerate(records.files):
        assert file.local is not None
        found = [np.empty(0, np.int64)]
        for part in _rewrite.parts_of(records, at):
            found.append(part.record_numbers(0, len(part.chunk))[_wanted(keep, part, decoder)])
            done += len(part.chunk)
            progress.step("looking at records", done, total, "records")
        numbers = np.concatenate(found)
        if len(numbers):
            deleted[file.local.path.name] = numbers
    count = sum(map(len, deleted.values()))
    if not count:
        return Changed(dataset.name, 0, ())
    folder = layer_folder(dataset, "deleted", sync=sync)
    written = write_overlay(folder, _facts(dataset, deleted=deleted), sync=sync, mode=_mode_of(dataset))
    return Changed(str(written), count, ())
