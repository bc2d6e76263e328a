"""Computed fields: the user's function makes the values from existing fields."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from recordkit import progress
from recordkit.columns import Batch
from recordkit.errors import SchemaError, headline_of
from recordkit.tools._rewrite import Failure

from ._bound import one_field, value_mask
from ._pieces import cut_batch, only, or_optional

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from recordkit.schema import Array, Field, Schema, TensorProto

    from ._bound import AnyField, Bound, OnError, RowSpan

_REPORT_EVERY = 0.1  # seconds, of what a function takes for many rows


@dataclass(frozen=True, eq=False)
class Computed:
    """Values for a new field, computed by a function from existing fields.

    Args:
        dtype: The type of the new field: text of the schema language, a `Field`, an `Array` or a `TensorProto`.
        fn: Takes a row, a dict of the fields in `reads`, and returns a value, or None if it is missing.
        reads: The fields that the function needs; the others are not decoded. None for all.
        batched: `fn` takes a `Batch` of records instead, and returns a column with as many rows: an array, a list, a
            `Ragged` or a `BytesColumn`. Its value for a record must not depend on the other records.

    >>> Computed("int64", lambda row: len(row["text"]), reads=["text"]).reads
    ('text',)
    >>> area = Computed("float32", lambda batch: batch["width"] * batch["height"], ["width", "height"], batched=True)
    """

    dtype: str | Field | Array | TensorProto
    fn: Callable[[Any], Any]
    reads: Sequence[str] | None = None
    batched: bool = False

    def __post_init__(self) -> None:
        reads = (self.reads,) if isinstance(self.reads, str) else self.reads
        object.__setattr__(self, "reads", None if reads is None else tuple(reads))


def bind_computed(name: str, source: Computed, schema: Schema | None) -> Bound:
    """Check a `Computed` for one dataset."""
    field = one_field(name, source.dtype)
    if not callable(source.fn):
        message = f"{name}: expected a function, found {type(source.fn).__name__}\n  Computed(dtype, fn, reads=[...])."
        raise SchemaError(message, field=name)
    reads = source.reads
    if reads is None:
        reads = () if schema is None else schema.names
    elif schema is None and reads:
        message = f"{name}: reads {reads[0]!r}, and the records have no fields"
        raise SchemaError(message, field=name)
    elif schema is not None:
        _check_reads(name, reads, schema)
    return _OfFunction(name, field, tuple(dict.fromkeys(reads)), source.fn, source.batched)


def _check_reads(name: str, reads: Sequence[str], schema: Schema) -> None:
    for read in reads:
        try:
            schema.select(read)
        except SchemaError as error:
            message = f"{name}: reads {read!r}, which is not in the dataset"
            raise SchemaError(message, advice=error.advice, field=name) from None


@dataclass(frozen=True, eq=False)
class _OfFunction:
    """The values that a function returns for each row, or for a batch."""

    name: str
    field: AnyField
    reads: tuple[str, ...]
    fn: Callable[[Any], Any]
    batched: bool

    def values(self, rows: RowSpan) -> tuple[Any, NDArray[np.bool_] | None]:
        if not rows.count:
            return [], None  # so that the user's function never gets an empty batch
        batch = Batch({}, rows.count) if rows.batch is None else only(rows.batch, self.reads)
        make = self._of_batch if self.batched else self._of_rows
        column = make(rows.first, batch, rows.on_error, [] if rows.failures is None else rows.failures)
        return column, value_mask(column, self.field)

    def _of_rows(self, first: int, batch: Batch, on_error: OnError, failures: list[Failure]) -> list[Any]:
        values, reported = [], time.monotonic()
        for number in range(len(batch)):
            if (now := time.monotonic()) - reported > _REPORT_EVERY:
                reported = now
                progress.step(f"computing {self.name}", number, len(batch), "values")
            row = batch.row(number)  # outside `try`: damaged data is not the function's fault
            try:
                value = self.fn(row)
            except Exception as error:
                self._raise_unless_skipped(error, first + number, 1, on_error)
                failures.append(Failure(first + number, words_of(error)))
                value = None
            values.append(value)
        return values

    def _of_batch(self, first: int, batch: Batch, on_error: OnError, failures: list[Failure]) -> Any:
        for name in batch.names:
            batch[name]
        try:
            column = self.fn(batch)
        except Exception as error:
            self._raise_unless_skipped(error, first, len(batch), on_error)
            if len(batch) <= 1:
                failures.append(Failure(first, words_of(error)))
                return [None] * len(batch)
        else:
            return self._checked(column, len(batch))
        # Leave out only the records that fail by themselves. Few do, so halve the batch to find them.
        half = len(batch) // 2
        values = list(self._of_batch(first, cut_batch(batch, 0, half), on_error, failures))
        rest = cut_batch(batch, half, len(batch) - half)
        return [*values, *self._of_batch(first + half, rest, on_error, failures)]

    def _checked(self, column: Any, count: int) -> Any:
        found = "a single value"
        if isinstance(column, str | bytes | Mapping | Batch) or not hasattr(column, "__len__"):
            found = f"a {type(column).__name__}"
        elif getattr(column, "shape", None) != ():
            if len(column) == count:
                return column
            found = f"{len(column):,}"
        message = (
            f"{self.name}: expected {count:,} rows for a batch of {count:,} records, found {found}\n"
            f"  With batched=True the function returns a column: an array, a list, a Ragged or a BytesColumn."
        )
        raise SchemaError(message, field=self.name, expected=f"{count} rows", found=found)

    def _raise_unless_skipped(self, error: Exception, first: int, count: int, on_error: OnError) -> None:
        """Raise an error that says where the function failed, caused by its exception."""
        if on_error == "skip" and self.field.optional:
            return
        where = f"record {first}" if count == 1 else f"records {first} to {first + count - 1}"
        advice = 'on_error="skip" leaves the field missing if its type ends in ?'
        if on_error == "skip":
            advice = f'on_error="skip" needs a type that ends in ?, such as {or_optional(self.field)}'
        message = f"{self.name}: the function failed on {where}: {words_of(error)}\n  Its traceback is above; {advice}"
        raise SchemaError(message, field=self.name, record=first) from error


def words_of(error: Exception) -> str:
    """Return an exception in one line, too short to print a payload."""
    text = headline_of(error)
    text = text if len(text) <= 200 else f"{text[:200]}..."
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
