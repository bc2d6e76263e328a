"""Statistics of all fields of a dataset, in one pass and bounded memory."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, is_dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from recordkit import progress
from recordkit.columns import Batch
from recordkit.engines import AUTO, count
from recordkit.errors import SchemaError
from recordkit.pipeline import Pipeline
from recordkit.schema import Schema
from recordkit.wording import counted, format_size

from ._contents import Top
from ._fields import Gatherer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from recordkit.engines import Workers

    from ._contents import ValueSummary
    from ._fields import FieldStats

_ROWS: Final = 4096
_BATCH_BYTES: Final = 32 << 20
_IN_RUNS: Final = 0.5  # below this, consecutive records are alike
_ENOUGH: Final = 100  # records, to say so


@dataclass(frozen=True)
class Stats:
    """The statistics of the fields of a dataset. Prints as a table.

    Attributes:
        rows: The number of records read.
        total: The number of records; more than `rows` for a sample.
        fields: The statistics of each field, by name.
    """

    rows: int
    total: int
    fields: Mapping[str, FieldStats]

    def __getitem__(self, name: str) -> FieldStats:
        return self.fields[name]

    def to_dict(self) -> dict[str, Any]:
        """Return the statistics as dicts, lists, strings and numbers, for JSON."""
        plain: dict[str, Any] = _plain({"rows": self.rows, "total": self.total, "fields": dict(self.fields)})
        return plain

    @property
    def sampled(self) -> bool:
        """Whether only some of the records were read."""
        return self.total > self.rows

    def __str__(self) -> str:
        head = counted(self.rows, "record")
        if self.sampled:
            head += f", a sample of {self.total:,}"
        return "\n".join(
            [head, *_table([_HEADS, *(table_line(each, sampled=self.sampled) for each in self.fields.values())])]
        )


class Accumulator:
    """Computes statistics batch by batch. Several can be merged, for shards that were read separately.

    >>> from recordkit.schema import Schema
    >>> schema = Schema({"label": "int64", "note": "string?"})
    >>> accumulator = Accumulator(schema)
    >>> accumulator.add(schema.decode(schema.encode({"label": [1, 2, 2], "note": ["a", None, "bb"]})))
    >>> print(accumulator.result())
    3 records
    field  type     missing  distinct  min  median  max   mean     std
    label  int64    0        2         1    2       2     1.667    0.4714      most: 2 (66.7%), 1 (33.3%)
    note   string?  1        2         1 B  1 B     2 B   1.5 B    0.5 B       most: a (50.0%), bb (50.0%)
    """

    def __init__(self, schema: Schema) -> None:
        self._rows = 0
        self._fields = {name: Gatherer(name, _type(schema, name)) for name in schema.names}

    def add(self, batch: Batch, *, each: Callable[..., Iterable[object]] = map) -> None:
        """Add a batch.

        Args:
            batch: Columns; those in the schema are used.
            each: The `map` of a thread pool, to do several fields at a time.
        """
        self._rows += len(batch)
        for _ in each(lambda name: self._fields[name].add(batch[name], batch.valid(name)), self._fields):
            pass

    def merge(self, other: Accumulator) -> None:
        """Add the statistics of another part with the same schema."""
        self._rows += other._rows
        for name, gatherer in self._fields.items():
            gatherer.merge(other._fields[name])

    def result(self, total: int | None = None) -> Stats:
        """Return the statistics so far, of a dataset with `total` records."""
        found = {name: gatherer.result() for name, gatherer in self._fields.items()}
        return Stats(self._rows, self._rows if total is None else total, found)


def stats_of(batches: Iterable[Batch], schema: Schema) -> Stats:
    """Return the statistics of batches with the schema's fields."""
    accumulator = Accumulator(schema)
    for batch in batches:
        accumulator.add(batch)
    return accumulator.result()


def stats(
    path: Any, *, fields: Sequence[str] | None = None, workers: Workers = AUTO, sample: int | None = None
) -> Stats:
    """Return statistics of every field: counts, extremes, quantiles, top values, lengths, picture sizes.

    This takes one pass, and memory for one batch and a few hundred KB for each field. Up to about 16,000 values in a
    field, everything is exact; beyond that, `rank_error`, `top_exact` and `distinct_exact` say how exact it is.

    Args:
        path: What `rk.open` takes, a dataset, or a pipeline of rows, such as `ds.shuffle(7)`, for which `neighbours`
            shows how well it is shuffled.
        fields: The fields to read; others are not decoded.
        workers: The number of threads; each does one field at a time.
        sample: Read only this many records, drawn at random but always the same ones.

    Raises:
        SchemaError: The records have no fields, or no field of this name.

    >>> import tempfile, recordkit as rk
    >>> path = tempfile.mkdtemp() + "/numbers.tfrecord"
    >>> _ = rk.write(path, [{"id": i, "square": i * i} for i in range(10)])
    >>> stats(path)["square"].quantiles[0.5], stats(path, fields=["id"])["id"].max
    (16, 9)
    """
    threads = count(workers)
    if isinstance(path, Pipeline):
        return _stats_of_rows(path, fields, sample)
    dataset = opened(path)
    names = fields if fields is not None else () if dataset.schema is None else dataset.schema.names
    dataset = dataset.select(*names)  # whose error says if the records have no fields
    total = len(dataset)
    accumulator = Accumulator(dataset.schema)
    done, wanted = 0, total if sample is None else min(sample, total)
    # Threads share fields rather than batches, so that the result does not depend on their number.
    with ThreadPoolExecutor(threads) as pool:
        for batch in _batches(dataset, total, wanted):
            accumulator.add(batch, each=pool.map)
            done += len(batch)
            progress.step("looking at values", done, wanted, "records")
    return accumulator.result(total)


def _stats_of_rows(pipe: Pipeline, fields: Sequence[str] | None, sample: int | None) -> Stats:
    batches = iter((pipe if sample is None else pipe.take(sample)).batch(_ROWS))
    first = next(batches, None)
    if not isinstance(first, Batch):
        message = f"{pipe!r}: expected rows of a dataset, found {'nothing' if first is None else type(first).__name__}"
        raise SchemaError(message)
    schema = Schema.of_columns({name: first[name] for name in fields or first.names})
    return stats_of(chain([first], batches), schema)


def opened(path: Any) -> Any:
    """Open a dataset; return one that is open already."""
    if hasattr(path, "records") and hasattr(path, "schema"):
        return path
    from recordkit.dataset import open as open_dataset

    return open_dataset(path)


def batch_rows(dataset: Any, total: int) -> int:
    """Return the number of records to read at a time: fewer if they are large."""
    known = [file.shard for file in dataset.shards if file.shard is not None]
    if known:
        held, records = sum(shard.raw_bytes for shard in known), sum(shard.records for shard in known)
    else:
        held, records = sum(file.file.size for file in dataset.shards), total
    record: int = max(1, held // max(1, records))
    return max(16, min(_ROWS, _BATCH_BYTES // record))


def _batches(dataset: Any, total: int, wanted: int) -> Iterator[Batch]:
    rows = batch_rows(dataset, total)
    if wanted == total:
        yield from dataset.batch(rows)
        return
    places = np.sort(np.random.default_rng(0).choice(total, wanted, replace=False))
    for start in range(0, wanted, rows):
        yield dataset[places[start : start + rows]]


def _type(schema: Schema, name: str) -> str:
    return str(schema.fields[name]) if name in schema.fields else f"sequence of {schema.sequences[name]}"


# --- For JSON


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: _plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return _plain(value._asdict())
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, bytes):
        return value.decode(errors="backslashreplace")
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


# --- For people

_HEADS: Final = ["field", "type", "missing", "distinct", "min", "median", "max", "mean", "std", ""]


def _table(lines: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]


def table_line(stats: FieldStats, *, sampled: bool) -> list[str]:
    sign = "~" if not stats.distinct_exact else "≥" if sampled else ""
    distinct = "" if stats.distinct is None else f"{sign}{stats.distinct:,}"
    numbers = _bytes_cells(stats.sizes) if stats.sizes is not None else _cells(stats)
    return [
        stats.name,
        stats.type,
        f"{stats.missing:,}",
        distinct,
        *numbers,
        "; ".join(["of a sample"] * sampled + [*_notes(stats)]),
    ]


def _cells(summary: ValueSummary) -> list[str]:
    values = (summary.min, summary.quantiles.get(0.5), summary.max, summary.mean, summary.std)
    return [number(value) for value in values]


def _bytes_cells(sizes: ValueSummary) -> list[str]:
    values = (sizes.min, sizes.quantiles.get(0.5), sizes.max, sizes.mean, sizes.std)
    return ["" if value is None else _size(value) for value in values]


def _size(value: float) -> str:
    return format_size(round(value)) if value >= 1000 else f"{value:.4g} B"


def number(value: Any) -> str:
    """Format a number.

    >>> number(1234567), number(0.123456), number(None)
    ('1,234,567', '0.1235', '')
    """
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.0f}" if 1e4 <= abs(value) < 1e12 else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _notes(stats: FieldStats) -> Iterator[str]:
    if stats.lengths is not None:
        median = stats.lengths.quantiles[0.5]
        yield f"length {number(stats.lengths.min)} to {number(stats.lengths.max)}, median {number(median)}"
    if stats.shapes:
        shapes = [Top("x".join(map(str, shape.value)), shape.count) for shape in stats.shapes]
        # Those of pictures are counted once a value, those of arrays once a record.
        of_pictures = stats.type.removeprefix("sequence of ").startswith(("jpeg", "png"))
        of = stats.values if of_pictures else stats.records - stats.missing
        yield f"shapes: {_shares(shapes, of, exact=stats.shapes_exact)}"
    if stats.neighbours is not None and stats.neighbours < _IN_RUNS and stats.records >= _ENOUGH:
        yield f"sorted or in runs (neighbours {stats.neighbours:.2g}, 1 where shuffled)"
    for times, what in ((stats.nan, "NaN"), (stats.inf, "infinite"), (stats.bad_pictures, "no picture")):
        if times:
            yield f"{times:,} {what}"
    # If hardly any value is repeated, the most common ones mean nothing.
    if stats.top and (stats.top[0].count > 1 or stats.values <= 3) and stats.top[0].count * 1000 >= stats.values:
        yield f"most: {_shares(stats.top, stats.values, exact=stats.top_exact)}"
    elif stats.samples:
        yield "such as " + ", ".join(map(repr, stats.samples))


def _shares(top: Sequence[Top], of: int, *, exact: bool) -> str:
    words = [f"{_word(each.value)} ({'' if exact else '≥'}{each.count / of:.1%})" for each in top[:3]]
    return ", ".join(words) + (", …" if len(top) > 3 else "")


def _word(value: Any) -> str:
    if isinstance(value, str) and value.strip() == value != "" and value.isprintable():
        return value
    return repr(value) if isinstance(value, str | bytes) else number(value)
