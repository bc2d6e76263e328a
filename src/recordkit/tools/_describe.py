"""Inspect: what an unknown file is like, told from the first records of some of its files."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from recordkit import _core, examples
from recordkit.errors import CorruptRecordError, RecordKitError, SchemaError
from recordkit.examples import other_message
from recordkit.schema import Schema
from recordkit.storage import Damage, LocalFile, PipeFile
from recordkit.wording import counted

from .stats import Accumulator

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from recordkit.columns import Batch
    from recordkit.dataset import Dataset
    from recordkit.examples import FeatureFacts, Survey
    from recordkit.records import Chunk
    from recordkit.storage import RecordFile

    from .stats import Stats

__all__ = ["Facts", "inspect"]

_SIDE: Final = "_recordkit"  # a folder of ours: not worth a word
_FILES: Final = 8
_BYTES: Final = 32 << 20
_RECORDS: Final = 4096
_BATCH: Final = 64
_COUNTED: Final = 64 << 20  # bytes of compressed files that are decompressed only to count


@dataclass(frozen=True)
class Facts:
    """What was found.

    Attributes:
        name: What was opened.
        files: The files of it.
        bytes: How large they are together; None for a pipe.
        records: How many records there are; None where it would take long to say.
        compressions: How the files are compressed that were looked at: `"gzip"`, `"zlib"` or `"none"`.
        message: What the payloads are.
        looked_at: How many files were.
        chunk: The records that were looked at, the first of those files.
        survey: What the wire says of them.
        schema: The fields; None for payloads that are no Examples, or if they do not agree on them.
        declared: Whether the schema is the one that they were written with.
        stats: What the values are like.
        layers: What was changed beside the records, in words.
        damage: What is wrong, as far as was looked.
        problem: Why the fields cannot be told.
        splits: How many files each split has.
        left_out: Other files and folders there that were not read, each with the reason.
        changed: The dataset, if something was changed beside its records: they alone do not hold what it shows.
    """

    name: str
    files: tuple[RecordFile, ...]
    bytes: int | None
    records: int | None
    compressions: tuple[str, ...]
    message: str
    looked_at: int
    chunk: Chunk
    survey: Survey
    schema: Schema | None
    declared: bool
    stats: Stats | None
    layers: tuple[str, ...] = ()
    damage: tuple[Damage, ...] = ()
    problem: str | None = None
    splits: Mapping[str, int] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)
    changed: Dataset | None = None

    @property
    def features(self) -> Mapping[str, FeatureFacts]:
        """What the wire says of every feature."""
        return {**self.survey.features, **self.survey.lists}


def inspect(dataset: Dataset) -> Facts:
    """Return what a dataset is like."""
    damage: list[Damage] = []
    files = dataset.shards
    chosen = [files[len(files) * at // min(_FILES, len(files))] for at in range(min(_FILES, len(files)))]
    parts = [_start(file, _BYTES // len(chosen), -(-_RECORDS // len(chosen)), damage) for file in chosen]
    chunk = _joined([part for part, _ in parts])
    survey = examples.survey(chunk)
    other = other_message(chunk, survey)
    if other is not None:
        survey = replace(survey, message="other", features={}, lists={})
    schema, problem = _schema(dataset, survey, chunk)
    if dataset.sequence.stack:
        schema = dataset.schema  # with what was added, without what was hidden
        batches: Iterable[Batch] = _spread(dataset, chosen, -(-len(chunk) // len(chosen)))
    else:
        batches = (schema.decode(chunk) for chunk in [chunk] if schema is not None)
    stats, problem = _stats(schema, batches) if schema is not None else (None, problem)
    pipe = any(isinstance(file.file, PipeFile) for file in files)
    total = sum(count for _, count in parts if count is not None) if pipe else _count(dataset, damage)
    return Facts(
        name=dataset.name,
        files=files,
        bytes=None if pipe else sum(file.file.size for file in files),
        records=total,
        compressions=tuple(sorted({file.compression or "none" for file in chosen})),
        message=_message(survey, chunk, other, damaged=bool(damage), told=schema is not None),
        looked_at=len(chosen),
        chunk=chunk,
        survey=survey,
        schema=schema,
        declared=dataset.sequence.known is not None,
        stats=stats,
        layers=tuple(_layer_words(layer) for layer in dataset.sequence.stack.layers),
        damage=tuple(damage),
        problem=problem,
        splits={name: len(paths) for name, paths in dataset.splits.items()},
        left_out={path.name: reason for path, reason in dataset.left_out if path.name != _SIDE},
        changed=dataset if dataset.sequence.stack else None,
    )


def _start(file: RecordFile, size: int, count: int, damage: list[Damage]) -> tuple[Chunk, int | None]:
    """Return the first records of a file; of a pipe, also how many come in all."""
    stream = file.stream(tell=damage.append) if isinstance(file.file, LocalFile) else file.stream()
    chunks, held, seen = [], 0, 0
    while (held < size and seen < count) or isinstance(file.file, PipeFile):
        try:
            chunk = stream.read()
        except CorruptRecordError as error:
            damage.append(Damage.from_error(error, file.name))
            break
        if chunk is None:
            break
        if held < size and seen < count:
            chunks.append(chunk.slice(0, min(len(chunk), count - seen)))
            held += chunk.nbytes
        seen += len(chunk)
    return _joined(chunks), seen


def _joined(chunks: list[Chunk]) -> Chunk:
    """Return all records in one chunk; a single one as it is, for it may be large."""
    return chunks[0] if len(chunks) == 1 else _core.join(chunks)


def _spread(dataset: Dataset, chosen: Sequence[RecordFile], count: int) -> Iterator[Batch]:
    """Yield the first records of some files, with what was changed beside them."""
    ends = dataset.sequence.ends.tolist()
    starts = dict(zip(dataset.shards, [0, *ends], strict=False))
    stops = dict(zip(dataset.shards, ends, strict=True))
    for file in chosen:
        stop = min(stops[file], starts[file] + count)
        for first in range(starts[file], stop, _BATCH):
            yield dataset[np.arange(first, min(stop, first + _BATCH))]


def _schema(dataset: Dataset, survey: Survey, chunk: Chunk) -> tuple[Schema | None, str | None]:
    if dataset.sequence.known is not None:
        return dataset.sequence.known, None
    if survey.message == "other" or not (survey.features or survey.lists):
        return None, None
    try:
        return Schema.infer(chunk), None
    except SchemaError as error:
        return None, error.headline


def _stats(schema: Schema, batches: Iterable[Batch]) -> tuple[Stats | None, str | None]:
    accumulator = Accumulator(schema)
    try:
        for batch in batches:
            accumulator.add(batch)
    except RecordKitError as error:
        return None, error.headline
    return accumulator.result(), None


def _count(dataset: Dataset, damage: list[Damage]) -> int | None:
    """Return how many records there are, if that is known or soon found out."""
    unknown = [file for file in dataset.shards if file.shard is None and file.compression is not None]
    if sum(file.file.size for file in unknown) > _COUNTED or damage:
        return None
    try:
        return len(dataset)
    except CorruptRecordError as error:
        damage.append(Damage.from_error(error, dataset.shards[0].name))
        return None


def _layer_words(layer: Any) -> str:
    words = []
    if layer.schema.names:
        words.append(f"added {', '.join(layer.schema.names)}")
    if layer.hides:
        words.append(f"hidden {', '.join(sorted(layer.hides))}")
    if deleted := sum(map(len, layer.deleted.values())):
        words.append(f"{counted(deleted, 'record')} deleted")
    return ", ".join(words)


def _message(survey: Survey, chunk: Chunk, other: str | None, *, damaged: bool, told: bool) -> str:
    if not len(chunk):
        return "not known: no record is sound" if damaged else "none: there is no record"
    if other is not None and not told:
        return other
    if not (told or survey.features or survey.lists or chunk.lengths[:64].any()):
        return "none: the payloads are empty"
    return survey.message


def sizes_of(chunk: Chunk) -> tuple[int, int, int]:
    """Return the least, the median and the greatest length of a payload."""
    lengths = np.sort(chunk.lengths)
    return int(lengths[0]), int(lengths[len(lengths) // 2]), int(lengths[-1])


def sampled(facts: Facts, name: str, count: int) -> Sequence[Any]:
    """Return some values of a field."""
    assert facts.schema is not None
    if facts.changed is not None:
        batch = facts.changed.select(name)[:count]
    else:
        batch = facts.schema.decode(facts.chunk.slice(0, min(count, len(facts.chunk))), select=[name])
    valid = batch.valid(name)
    return [row[name] for number, row in enumerate(batch.rows()) if valid[number]]
