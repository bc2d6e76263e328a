"""Bound: what a source of values becomes once it is known which dataset it is for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeAlias

import numpy as np

from recordkit.errors import SchemaError
from recordkit.schema import Array, Field, Schema, TensorProto

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from recordkit.columns import Batch

AnyField: TypeAlias = Field | Array | TensorProto
OnError: TypeAlias = Literal["raise", "skip"]


class Failure(NamedTuple):
    """A record for which a field could not be made, and why."""

    record: int
    words: str


class Bound(Protocol):
    """A source made ready for one dataset. Can be pickled if what the user gave can.

    Attributes:
        name: The new field's name.
        field: Its type.
        reads: The fields of the dataset that its values are made of.
    """

    @property
    def name(self) -> str: ...
    @property
    def field(self) -> AnyField: ...
    @property
    def reads(self) -> tuple[str, ...]: ...

    def values(
        self,
        first: int,
        count: int,
        batch: Batch | None,
        *,
        on_error: OnError = "raise",
        failures: list[Failure] | None = None,
    ) -> tuple[Any, NDArray[np.bool_] | None]:
        """Return the values of records [first, first + count), and a mask that is False where one is missing.

        Args:
            first: The number of the first record in the dataset.
            count: How many records.
            batch: Their fields, of which those in `reads` are looked at; None will do if there are none.
            on_error: What to do if a function fails: `"skip"` leaves the field missing, if it may be.
            failures: Is given what was skipped.
        """
        ...


def one_field(name: str, dtype: Any) -> AnyField:
    """Return the type that was declared for a new field; errors name the field."""
    fields = Schema({name: dtype}).fields
    if name not in fields:
        message = f"{name}: a new field has one type, found a dict\n  Give each of its fields a source of its own."
        raise SchemaError(message, field=name)
    return fields[name]


def value_mask(column: Any, field: AnyField) -> NDArray[np.bool_] | None:
    """Return where a list has a value; None stays for the schema to refuse, if none may be missing."""
    listed = isinstance(column, list | tuple) or (isinstance(column, np.ndarray) and column.dtype == np.object_)
    if not listed or not field.optional:
        return None
    valid = np.fromiter((value is not None for value in column), np.bool_, len(column))
    return None if valid.all() else valid
