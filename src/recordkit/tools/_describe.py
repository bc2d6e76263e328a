"""Describe: what is in a dataset, from what its files say and the first records of some of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from recordkit import _core, examples
from recordkit.dataset import summarize
from recordkit.errors import CorruptRecordError, RecordKitError, SchemaError
from recordkit.schema import Schema
from recordkit.storage.read import Damage

from .stats import Accumulator, opened

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from recordkit.columns import Batch
    from recordkit.dataset import Dataset, Summary
    from recordkit.examples import FeatureFacts, Survey
    from recordkit.records import Chunk
    from recordkit.storage.read import RecordFile

    from .stats import Stats

__all__ = ["Description", "describe"]

_FILES: Final = 8
_BYTES: Final = 32 << 20
_RECORDS: Final = 4096
_BATCH: Final = 64
_COUNTED: Final = 64 << 20  # bytes of compressed files that are decompressed only to count


@dataclass(frozen=True)
class Description:
    """What is in a dataset.

    Attributes:
        summary: Its name, files, splits and overlays.
        sizes: The sizes of its files, smallest first; empty for a pipe.
        records: How many records there are; None where counting would take long.
        compressions: The compressions of the sampled files: `"gzip"`, `"zlib"` or `"none"`.
        message: What the payloads are, such as `"Example"`.
        sampled_files: How many files were sampled.
        chunk: The sampled records: the first ones of those files.
        survey: The features of the sampled records on the wire.
        schema: The fields; None if the payloads are no Examples, or do not agree on their fields.
        declared: Whether the schema was written with the dataset, rather than inferred.
        stats: Statistics of the fields of the sampled records.
        damage: The damage met so far.
        problem: Why there is no schema, or no statistics.
    """

    summary: Summary
    sizes: tuple[int, ...]
    records: int | None
    compressions: tuple[str, ...]
    message: str
    sampled_files: int
    chunk: Chunk
    survey: Survey
    schema: Schema | None
    declared: bool
    stats: Stats | None
    damage: tuple[Damage, ...]
    problem: str | None
    dataset: Dataset

    @property
    def features(self) -> Mapping[str, FeatureFacts]:
        """The features of the sampled records on the wire, by name."""
        return {**self.survey.features, **self.survey.lists}

    @property
    def record_sizes(self) -> tuple[int, int, int] | None:
        """The smallest, the median and the largest payload of the sample; None if it is empty."""
        lengths = np.sort(self.chunk.lengths)
        return (int(lengths[0]), int(lengths[len(lengths) // 2]), int(lengths[-1])) if len(lengths) else None

    def sample(self, name: str, count: int) -> Sequence[Any]:
        """Return some values of a field."""
        assert self.schema is not None
        if self.summary.changes:
            batch = self.dataset.select(name)[:count]
        else:
            batch = self.schema.decode(self.chunk.slice(0, min(count, len(self.chunk))), select=[name])
        valid = batch.valid(name)
        return [row[name] for number, row in enumerate(batch.rows()) if valid[number]]

    def to_dict(self) -> dict[str, Any]:
        """Return the description as plain dicts, lists, texts and numbers, for JSON."""
        least, median, most = self.record_sizes or (None, None, None)
        return {
            "path": self.summary.name,
            "records": self.records,
            "bytes": self.summary.bytes,
            "files": self.summary.files,
            "splits": dict(self.summary.splits),
            "compression": list(self.compressions),
            "message": self.message,
            "looked_at": len(self.chunk),
            "record_bytes": {"min": least, "median": median, "max": most},
            "schema": self.schema.to_dict() if self.schema is not None else None,
            "fields": self.stats.to_dict()["fields"] if self.stats is not None else {},
            "features": {name: self._feature(each) for name, each in self.features.items()},
            "changes": list(self.summary.changes),
            "left_out": dict(self.summary.left_out),
            "damage": [str(damage) for damage in self.damage],
            "problem": self.problem,
        }

    def _feature(self, feature: FeatureFacts) -> dict[str, Any]:
        return {
            "kinds": sorted(feature.kinds),
            "records": feature.records,
            "missing": self.survey.rows - feature.records,
            "counts": [feature.min_count, feature.max_count],
        }


def describe(path: Any) -> Description:
    """Return what is in a dataset, whatever it is: plain or compressed, Examples or not, damaged or intact.

    Args:
        path: A dataset, or what `recordkit.open` takes.

    >>> import tempfile, recordkit as rk
    >>> path = tempfile.mkdtemp() + "/a.tfrecord"
    >>> _ = rk.write(path, [{"id": 1}, {"id": 2}])
    >>> found = describe(path)
    >>> found.records, found.message, found.schema
    (2, 'Example', Schema({'id': 'int64'}))
    """
    dataset: Dataset = opened(path)
    damage: list[Damage] = []
    files, summary, records = dataset.shards, summarize(dataset), dataset.sequence
    is_pipe = summary.bytes is None
    chosen = [files[len(files) * at // min(_FILES, len(files))] for at in range(min(_FILES, len(files)))]
    parts = [_start(file, _BYTES // len(chosen), -(-_RECORDS // len(chosen)), damage, whole=is_pipe) for file in chosen]
    chunk = _joined([part for part, _ in parts])
    survey = examples.survey(chunk)
    other = examples.other_message(chunk, survey)
    if other is not None:
        survey = replace(survey, message="other", features={}, lists={})
    schema, problem = _schema(records.known, survey, chunk)
    if records.stack:
        schema = dataset.schema  # with what was added, without what was hidden
        batches: Iterable[Batch] = _spread(dataset, chosen, -(-len(chunk) // len(chosen)))
    else:
        batches = (schema.decode(chunk) for chunk in [chunk] if schema is not None)
    stats, problem = _stats(schema, batches) if schema is not None else (None, problem)
    return Description(
        summary=summary,
        sizes=() if is_pipe else tuple(sorted(file.file.size for file in files)),
        records=sum(count for _, count in parts) if is_pipe else _count(dataset, damage),
        compressions=tuple(sorted({file.compression or "none" for file in chosen})),
        message=_message(survey, chunk, other, damaged=bool(damage), has_schema=schema is not None),
        sampled_files=len(chosen),
        chunk=chunk,
        survey=survey,
        schema=schema,
        declared=records.known is not None,
        stats=stats,
        damage=tuple(damage),
        problem=problem,
        dataset=dataset,
    )


def _start(file: RecordFile, size: int, count: int, damage: list[Damage], *, whole: bool) -> tuple[Chunk, int]:
    """Return the first records of a file, and how many records were read: of a pipe all, to count them."""
    stream = file.stream() if whole else file.stream(tell=damage.append)
    chunks, held, seen = [], 0, 0
    while (held < size and seen < count) or whole:
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
    """Yield the first records of some files, with their overlays."""
    ends = dataset.sequence.ends.tolist()
    starts = dict(zip(dataset.shards, [0, *ends], strict=False))
    stops = dict(zip(dataset.shards, ends, strict=True))
    for file in chosen:
        stop = min(stops[file], starts[file] + count)
        for first in range(starts[file], stop, _BATCH):
            yield dataset[np.arange(first, min(stop, first + _BATCH))]


def _schema(known: Schema | None, survey: Survey, chunk: Chunk) -> tuple[Schema | None, str | None]:
    """Return the schema, or why there is none."""
    if known is not None:
        return known, None
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
    """Return how many records there are, unless counting takes long."""
    unknown = [file for file in dataset.shards if file.shard is None and file.compression is not None]
    if sum(file.file.size for file in unknown) > _COUNTED or damage:
        return None
    try:
        return len(dataset)
    except CorruptRecordError as error:
        damage.append(Damage.from_error(error, dataset.shards[0].name))
        return None


def _message(survey: Survey, chunk: Chunk, other: str | None, *, damaged: bool, has_schema: bool) -> str:
    if not len(chunk):
        return "not known: no record is sound" if damaged else "none: there is no record"
    if other is not None and not has_schema:
        return other
    if not (has_schema or survey.features or survey.lists or chunk.lengths[:64].any()):
        return "none: the payloads are empty"
    return survey.message
