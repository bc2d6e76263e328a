"""Steps that look at each element alone, so that any number of elements can be processed at once.

A step is plain data, and can be sent to another process if what it was given can.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from recordkit import images
from recordkit.columns import Batch, BytesColumn, Ragged
from recordkit.engines import AUTO, Workers
from recordkit.errors import CorruptRecordError, SchemaError

from ._collate import Fill, collate, padded_batches
from ._elements import ElementBlock, Place, TracedElements, Values, cut, elements, joined
from ._step import ElementStep, Step, failed, name_of

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from recordkit.expressions import Expression

    from ._elements import Mark, Upstream
    from ._source import RecordSource


@dataclass(frozen=True)
class Map(ElementStep):
    """A function's result for each element."""

    function: Callable[[Any], Any]
    workers: Workers = AUTO
    keeps = True

    def apply(self, inputs: TracedElements, place: Place) -> TracedElements:
        """Call the function with each element."""
        return inputs._replace(values=list(_called(self.function, inputs, place, "map")))

    def __str__(self) -> str:
        return f"Map({name_of(self.function)})"


@dataclass(frozen=True)
class MapBatches(ElementStep):
    """A function's result for columns: as many rows as it was given."""

    function: Callable[[Any], Any]
    workers: Workers = AUTO
    keeps = True

    def apply(self, inputs: TracedElements, place: Place) -> TracedElements:
        """Call the function with the columns."""
        if not len(inputs.values):
            return inputs
        try:
            made = self.function(collate(inputs.values))
        except Exception as error:
            first, last = place(int(inputs.ends[0]) - 1), place(int(inputs.ends[-1]) - 1)
            error = failed(error, f"map_batches({name_of(self.function)}) failed on the rows from {first} to {last}")
            raise error
        return inputs._replace(values=self._rows(made, len(inputs.values)))

    def _rows(self, made: Any, count: int) -> Values:
        batch = made if isinstance(made, Batch) else _as_batch(made)
        if batch is None or len(batch) != count:
            found = _found(made) if batch is None else f"{len(batch)} rows"
            message = (
                f"map_batches({name_of(self.function)}): expected columns of {count} rows, found {found}\n"
                "  Return a dict of columns, or the batch. To drop rows: filter. To return other rows: batch first."
            )
            raise SchemaError(message, expected=f"{count} rows", found=found)
        return batch

    def __str__(self) -> str:
        return f"MapBatches({name_of(self.function)})"


def _as_batch(columns: Any) -> Batch | None:
    if not isinstance(columns, Mapping):
        return None
    kept = {name: col if isinstance(col, BytesColumn | Ragged) else _column(col) for name, col in columns.items()}
    if not all(isinstance(column, BytesColumn | Ragged) or column.ndim for column in kept.values()):
        return None
    lengths = {len(column) for column in kept.values()}
    return Batch(kept, lengths.pop()) if len(lengths) == 1 else None


def _found(made: Any) -> str:
    if not isinstance(made, Mapping):
        return type(made).__name__
    sized = {name: hasattr(column, "__len__") and not isinstance(column, Mapping) for name, column in made.items()}
    each = (f"{name}: {f'{len(made[name])} rows' if sized[name] else type(made[name]).__name__}" for name in made)
    return ", ".join(each) or "no columns"


def _column(values: Any) -> Any:
    texts = isinstance(values, list) and values and isinstance(values[0], str | bytes)
    return BytesColumn.of(values) if texts else np.asarray(values)


@dataclass(frozen=True)
class Filter(ElementStep):
    """The elements for which a function returns true."""

    function: Callable[[Any], Any]
    workers: Workers = AUTO
    keeps = False

    def apply(self, inputs: TracedElements, place: Place) -> TracedElements:
        """Call the function with each element."""
        answers = _called(self.function, inputs, place, "filter")
        return _kept(inputs, np.fromiter(map(bool, answers), np.bool_, len(inputs.values)))

    def __str__(self) -> str:
        return f"Filter({name_of(self.function)})"


@dataclass(frozen=True)
class Where(ElementStep):
    """The rows that match an expression."""

    expression: Expression
    keeps = False

    def apply(self, inputs: TracedElements, place: Place) -> TracedElements:
        """Evaluate the expression on the columns."""
        if not isinstance(inputs.values, Batch):
            message = (
                f"filter({str(self.expression)!r}): expected rows of a dataset, found results of map\n"
                "  Put it before map, or give a function."
            )
            raise SchemaError(message)
        return _kept(inputs, self.expression.mask(inputs.values))

    def __str__(self) -> str:
        return f"Filter({str(self.expression)!r})"


def _kept(inputs: TracedElements, mask: NDArray[np.bool_]) -> TracedElements:
    if mask.all():
        return inputs
    kept = np.flatnonzero(mask)
    values, ends = inputs.values, inputs.ends
    picked = values.take(kept) if isinstance(values, Batch) else [values[i] for i in kept.tolist()]
    return TracedElements(picked, [ends[i] for i in kept.tolist()], inputs.taken)


def _called(function: Callable[[Any], Any], inputs: TracedElements, place: Place, what: str) -> Iterator[Any]:
    for i, element in enumerate(elements(inputs.values)):
        try:
            yield function(element)
        except Exception as error:
            error = failed(error, f"{place(int(inputs.ends[i]) - 1)}: {what}({name_of(function)}) failed")
            raise error


@dataclass(frozen=True)
class DecodeImages(ElementStep):
    """Decoded pictures in place of their bytes."""

    field: str
    size: tuple[int, int] | None = None
    options: tuple[tuple[str, Any], ...] = ()
    keeps = True

    def apply(self, inputs: TracedElements, place: Place) -> TracedElements:
        """Decode the pictures of each row."""
        if isinstance(inputs.values, Batch):
            column = self._decoded(inputs.values, inputs, place)
            columns = {
                name: column if name == self.field else inputs.values.lazy_columns[name] for name in inputs.values
            }
            return inputs._replace(values=Batch(columns, len(inputs.values), inputs.values.masks))
        batches = inputs.values and isinstance(inputs.values[0], Batch)
        return inputs._replace(values=[self._in_batch(v) if batches else self._in_row(v) for v in inputs.values])

    def _decoded(self, batch: Batch, inputs: TracedElements, place: Place) -> Any:
        column = batch[self.field] if self.field in batch else None  # noqa: SIM401 - a batch is no dict
        if not isinstance(column, BytesColumn) or column.text:
            raise self._no_pictures(batch, column)
        try:
            return _pixels(images.decode_batch(_encoded(column), self.size, **dict(self.options)))
        except CorruptRecordError as error:
            where = [] if error.record is None else [place(int(inputs.ends[error.record]) - 1)]
            inside = ": ".join([*where, self.field, error.place])
            raise CorruptRecordError(error.summary, place=inside, advice=error.advice, record=error.record) from error

    def _in_batch(self, batch: Batch) -> Batch:
        alone = TracedElements(batch, range(1, len(batch) + 1), len(batch))
        values = self.apply(alone, lambda i: f"row {i} of a batch").values
        assert isinstance(values, Batch)
        return values

    def _in_row(self, row: Any) -> Any:
        if not isinstance(row, Mapping) or not isinstance(row.get(self.field), bytes | bytearray | memoryview):
            raise self._no_pictures(row if isinstance(row, Mapping) else (), None)
        pixels = images.decode_batch([row[self.field]], self.size, **dict(self.options))
        return {**row, self.field: pixels[0]}

    def _no_pictures(self, names: Iterable[str], column: Any) -> SchemaError:
        found = f"the fields {', '.join(names) or 'none'}" if column is None else type(column).__name__
        message = f"decode_images({self.field!r}): expected a field of encoded pictures, found {found}"
        return SchemaError(message, expected="encoded pictures", found=found)

    def __str__(self) -> str:
        size = f", size={self.size}" if self.size else ""
        options = "".join(f", {name}={value!r}" for name, value in self.options)
        return f"DecodeImages({self.field!r}{size}{options})"


def _encoded(column: BytesColumn) -> Sequence[Any]:
    """Return the pictures of a column without copying them: they are large."""
    if len(column.shape) > 1:
        return column.to_list()
    data = column.data.data
    return [data[start:stop] for start, stop in pairwise(column.offsets.tolist())]


def _pixels(pictures: Any) -> Any:
    """Pictures of one size as an array, of several as Ragged."""
    return pictures if isinstance(pictures, np.ndarray) else collate(list(pictures))


@dataclass(frozen=True)
class BatchStep(Step):
    """Batches of `size` elements, the last one shorter.

    If every record gives one element, it is known which records a batch holds, and batches can be made in parallel.

    Attributes:
        pad: Pad ragged columns with this.
        lists: Whether a batch is a plain list.
    """

    size: int
    drop_last: bool = False
    pad: Fill = None
    lists: bool = False

    def apply(self, inputs: TracedElements, place: Place) -> TracedElements:
        """Return the batches of elements; the first element begins a batch."""
        values, ends, count = inputs.values, inputs.ends, len(inputs.values)
        if count == self.size:
            return TracedElements([self._batch(values)], [ends[count - 1]], inputs.taken)
        stops = list(range(self.size, count + 1, self.size))
        if count % self.size and not self.drop_last:
            stops.append(count)
        batches = self._batches(cut(values, 0, stops[-1])) if stops else []
        return TracedElements(batches, [ends[stop - 1] for stop in stops], inputs.taken)

    def _batches(self, values: Values) -> list[Any]:
        if self.pads and isinstance(values, Batch):
            return padded_batches(values, self.size, self.pad)
        return [self._batch(cut(values, start, start + self.size)) for start in range(0, len(values), self.size)]

    def count(self, before: int) -> int:
        """Return how many batches there are."""
        return before // self.size if self.drop_last else -(-before // self.size)

    def is_decoded(self, source: RecordSource) -> bool:
        """Return whether `size` records, as a source gives them, are a batch already."""
        return self.lists or (source.gives_columns and not self.pads)

    @property
    def pads(self) -> bool:
        """Whether ragged lists are padded, which is done for many batches at once."""
        return self.pad is not None and not self.lists

    def _batch(self, values: Values) -> Any:
        return values if self.lists else collate(values, self.pad)

    def run(self, upstream: Upstream, mark: Mark, epoch: int) -> Generator[ElementBlock, None, None]:
        """Yield the batches of elements that come in blocks."""
        held: list[Values] = []
        size, last = 0, mark
        for block in upstream(mark, epoch):
            start, count = 0, len(block.values)
            made, marks = [], []
            while size + count - start >= self.size:
                stop = start + self.size - size
                made.append(self._batch(joined([*held, cut(block.values, start, stop)])))
                marks.append(block.marks[stop - 1])
                held, size, start = [], 0, stop
            if start < count:
                held.append(cut(block.values, start, count))
                size += count - start
                last = block.marks[count - 1]
            if made:
                yield ElementBlock(made, marks)
        if held and not self.drop_last:
            yield ElementBlock([self._batch(joined(held))], [last])

    def __str__(self) -> str:
        rest = (", drop_last=True" if self.drop_last else "") + (f", pad={self.pad!r}" if self.pad is not None else "")
        return f"Batch({self.size}{rest})"


@dataclass(frozen=True)
class Section:
    """Consecutive steps that look at each element alone: applied together, while the elements are in the cache."""

    steps: tuple[Any, ...] = ()  # element steps, and the batch step if it is aligned
    numbers: tuple[int, ...] = ()  # which steps of the pipeline they are

    def run(self, inputs: TracedElements, place: Place) -> tuple[TracedElements, list[float]]:
        """Return the result of the steps, and how many seconds each took."""
        seconds, begun = [], time.perf_counter()
        for step in self.steps:
            inputs = step.apply(inputs, place)
            now = time.perf_counter()
            seconds.append(now - begun)
            begun = now
        return inputs, seconds

    @property
    def keeps(self) -> bool:
        """Whether it makes one element of each."""
        return all(step.keeps for step in self.steps)

    @property
    def pads(self) -> bool:
        """Whether it makes padded batches, and nothing else."""
        return len(self.steps) == 1 and isinstance(self.steps[0], BatchStep) and self.steps[0].pads


def aligned(steps: Sequence[Step]) -> BatchStep | None:
    """Return the step that makes batches, if the element steps before it keep one element for each record."""
    for step in steps:
        if isinstance(step, BatchStep):
            return step
        if isinstance(step, ElementStep) and not step.keeps:
            return None
    return None
