"""Dataset: the records of one or many files, to select, count, look up and iterate."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from recordkit.columns import arrow_stream
from recordkit.engines import AUTO, Workers
from recordkit.errors import MissingExtraError, SchemaError
from recordkit.pipeline import Pipeline, Steps
from recordkit.wording import whole_number

from . import _repr
from ._decoding import PayloadDecoder
from ._source import DatasetSource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from recordkit.schema import Schema
    from recordkit.storage.read import Damage, RecordFile

    from ._decoding import BatchDecoder
    from ._sequence import RecordSequence

_ARROW_BYTES = 4 << 20


@dataclass(frozen=True, repr=False, eq=False)
class Dataset(Steps):
    """The records of one or many files. `recordkit.open` makes one.

    Immutable: every method returns a new dataset and leaves this one unchanged. Threads can share it, and it can be
    pickled.

    >>> import tempfile, recordkit as rk
    >>> path = tempfile.mkdtemp() + "/numbers.tfrecord"
    >>> _ = rk.write(path, [{"id": i, "square": i * i} for i in range(10)])
    >>> ds = rk.open(path)
    >>> len(ds), int(ds[7]["square"]), ds[[9, 2]]["square"].tolist()
    (10, 49, [81, 4])
    >>> [batch["id"].tolist() for batch in ds.select("id").skip(3).batch(4)]
    [[3, 4, 5, 6], [7, 8, 9]]
    """

    sequence: RecordSequence
    name: str
    _names: tuple[str, ...] | None = None
    _parse: Callable[[bytes], Any] | None = None
    _start: int = 0
    _stop: int | None = None
    _threads: Workers = AUTO
    _splits: Mapping[str, tuple[Path, ...]] = field(default_factory=dict)
    left_out: tuple[tuple[Path, str], ...] = ()
    lineage: tuple[Mapping[str, Any], ...] = ()

    # --- What it is

    @property
    def schema(self) -> Schema | None:
        """The names and types of the fields; None if the payloads are no Examples."""
        schema = self.sequence.schema
        return schema if schema is None or self._names is None else schema.select(*self._names)

    @property
    def splits(self) -> Mapping[str, tuple[Path, ...]]:
        """The files of each split."""
        return MappingProxyType(dict(self._splits))

    @property
    def shards(self) -> tuple[RecordFile, ...]:
        """The files."""
        return self.sequence.files

    @property
    def damage(self) -> tuple[Damage, ...]:
        """What was skipped so far, with `on_error="skip"` or a function."""
        return self.sequence.log.damage

    def __len__(self) -> int:
        if any(not file.file.seekable for file in self.shards):
            message = f"{self.name}: a pipe is read once, and has no length before its end"
            raise TypeError(message)  # `list` expects a TypeError
        start, stop = self._range()
        return stop - start

    def _range(self) -> tuple[int, int]:
        count = self.sequence.count
        stop = count if self._stop is None else min(self._stop, count)
        return min(self._start, stop), stop

    @cached_property
    def _decoder(self) -> BatchDecoder:
        decoder = self.sequence.decoder(self._names) if self._parse is None else None
        return decoder or PayloadDecoder(self._parse)

    # --- Selecting

    def select(self, *names: str) -> Dataset:
        """Return the dataset with these fields only, in this order; the others are not decoded.

        Raises:
            SchemaError: There is no such field.
        """
        schema = self.needed_schema
        schema.select(*names)
        return replace(self, _names=names)

    def drop(self, *names: str) -> Dataset:
        """Return the dataset without these fields."""
        return replace(self, _names=self.needed_schema.drop(*names).names)

    @property
    def needed_schema(self) -> Schema:
        """The schema. Internal to recordkit, like `sequence` and `name`.

        Raises:
            SchemaError: There is none: the records are read as payloads.
        """
        schema = self.schema if self._parse is None else None
        if schema is None:
            message = f"{self.name}: these records have no fields: they are read as payloads{self._looks_like()}"
            raise SchemaError(message)
        return schema

    def _looks_like(self) -> str:
        other = None if self._parse is not None else self.sequence.other_message
        advice = "With the class of a message: recordkit.open(path, parse=Message.FromString)."
        return "" if other is None else f", and look like {other}\n  {advice}"

    def take(self, count: int) -> Dataset:
        """Return the dataset of the first `count` records."""
        stop = self._start + whole_number(count, "count")
        return replace(self, _stop=stop if self._stop is None else min(stop, self._stop))

    def skip(self, count: int) -> Dataset:
        """Return the dataset without the first `count` records."""
        start = self._start + whole_number(count, "count")
        return replace(self, _start=start if self._stop is None else min(start, self._stop))

    # --- Looking up

    def __getitem__(self, index: Any) -> Any:
        """Return a row for a number, and a batch of columns for a slice, a list or an array of numbers or a mask."""
        if isinstance(index, int | np.integer) and not isinstance(index, bool):
            index, (start, stop) = int(index), self._range()
            number = index + start if index >= 0 else index + stop
            if not start <= number < stop:
                message = f"{self.name}: record {index} of {stop - start}"
                raise IndexError(message)
            return self.sequence.row(number, self._decoder)
        return self.sequence.many(self._numbers(index), self._decoder)

    def _numbers(self, index: Any) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Return the record numbers that an index selects."""
        start, stop = self._range()
        count = stop - start
        if isinstance(index, slice):
            return np.arange(*index.indices(count), dtype=np.int64) + start
        if isinstance(index, str):
            message = f"{self.name}: a dataset is indexed by numbers; ds.select({index!r}) gives one of its fields"
            raise TypeError(message)
        numbers = np.asarray(index)
        if numbers.dtype == np.bool_ and numbers.ndim == 1:
            if len(numbers) != count:
                message = f"{self.name}: a mask of {len(numbers)} for {count} records"
                raise IndexError(message)
            return np.flatnonzero(numbers).astype(np.int64) + start
        if not numbers.size:
            numbers = numbers.astype(np.int64)
        if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
            message = f"{self.name}: expected a number, a slice, or a list or array of numbers, found {index!r:.80}"
            raise TypeError(message)
        wrong = np.flatnonzero((numbers >= count) | (numbers < -count))
        if len(wrong):
            message = f"{self.name}: record {numbers[wrong[0]]} of {count}"
            raise IndexError(message)
        numbers = numbers.astype(np.int64)
        return np.where(numbers < 0, numbers + stop, numbers + start)

    def head(self, count: int = 5) -> Any:
        """Return the first records as a batch; no index is needed."""
        decoder = self._decoder
        first = next(iter(self.take(count).batch(max(1, count), workers=1)), None)
        return decoder.joined([]) if first is None else first

    def sample(self, count: int, *, seed: int = 0) -> Any:
        """Return `count` different records, drawn at random, as a batch in the order of the files."""
        numbers = np.random.default_rng(seed).choice(len(self), size=min(count, len(self)), replace=False)
        return self[np.sort(numbers)]

    # --- In order

    def __iter__(self) -> Iterator[Any]:
        return iter(self.as_pipeline())

    @property
    def source(self) -> DatasetSource:
        """The records as pipelines read them. Internal to recordkit."""
        return DatasetSource(self.sequence, self._decoder, self.name, self._start, self._stop)

    def as_pipeline(self) -> Pipeline:
        """Return a pipeline of these records, without steps yet. Internal to recordkit."""
        return Pipeline(self.source, workers=self._threads)

    def records(self) -> Iterator[bytes]:
        """Yield the payloads, undecoded."""
        return iter(Pipeline(replace(self.source, decoder=PayloadDecoder()), workers=self._threads))

    # --- Exporting

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Export the dataset to Arrow as a stream of record batches: pyarrow, polars, pandas and duckdb accept it."""
        schema = self.needed_schema
        fields = {**schema.fields, **schema.sequences}
        optional = {name for name, declared in fields.items() if declared.optional}
        return arrow_stream(self._decoder.joined([]), self.batch(self.sequence.rows_in(_ARROW_BYTES)), optional)

    def to_arrow(self) -> Any:
        """Return a `pyarrow.Table`."""
        return _library("pyarrow", "arrow").table(self)

    def to_pandas(self) -> Any:
        """Return a `pandas.DataFrame`."""
        _library("pandas", "pandas")
        return self.to_arrow().to_pandas()

    def __repr__(self) -> str:
        return _repr.text(self)

    def _repr_html_(self) -> str:
        return _repr.html(self)


def _library(name: str, extra: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        what = "Dataset.to_arrow" if name == "pyarrow" else "Dataset.to_pandas"
        raise MissingExtraError(what, name, extra) from None
