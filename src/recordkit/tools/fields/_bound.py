"""Bound sources: sources of values that were checked for one dataset."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

import numpy as np

from recordkit.errors import SchemaError
from recordkit.schema import Array, Field, Schema, TensorProto

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from recordkit.columns import Batch
    from recordkit.tools._rewrite import Failure

AnyField: TypeAlias = Field | Array | TensorProto
OnError: TypeAlias = Literal["raise", "skip"]


@dataclass(frozen=True)
class RowSpan:
    """Consecutive records that need values.

    Attributes:
        first: The number of the first one in the dataset.
        count: The number of records.
        batch: Their fields. A source uses those in its `reads`, and needs no batch if there are none.
        on_error: What to do if a function fails: `"skip"` leaves the field missing, if it is optional.
        failures: Collects what was skipped.
    """

    first: int
    count: int
    batch: Batch | None = None
    on_error: OnError = "raise"
    failures: list[Failure] | None = None


class Bound(Protocol):
    """A source that was checked for one dataset. Can be pickled if the user's source can.

    Attributes:
        name: The new field's name.
        field: Its type.
        reads: The fields of the dataset that it needs.
    """

    @property
    def name(self) -> str: ...
    @property
    def field(self) -> AnyField: ...
    @property
    def reads(self) -> tuple[str, ...]: ...

    def values(self, rows: RowSpan) -> tuple[Any, NDArray[np.bool_] | None]:
        """Return a value for each record, and a mask that is False where one is missing; None if none is."""
        ...


def one_field(name: str, dtype: Any) -> AnyField:
    """Return the declared type of a new field; errors name the field."""
    fields = Schema({name: dtype}).fields
    if name not in fields:
        message = f"{name}: a new field has one type, found a dict\n  Add each of its fields with its own source."
        raise SchemaError(message, field=name)
    return fields[name]


def value_mask(column: Any, field: AnyField) -> NDArray[np.bool_] | None:
    """Return a mask of the values in a list that are not None; None if the field is not optional."""
    listed = isinstance(column, list | tuple) or (isinstance(column, np.ndarray) and column.dtype == np.object_)
    if not listed or not field.optional:
        return None
    valid = np.fromiter((value is not None for value in column), np.bool_, len(column))
    return None if valid.all() else valid
