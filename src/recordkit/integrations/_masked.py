"""Masks: what a framework without missing values is told about them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from recordkit.errors import SchemaError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from recordkit.columns import Batch
    from recordkit.pipeline import Pipeline
    from recordkit.schema import Schema

SUFFIX = "/valid"


def masked(batch: Batch, optional: Iterable[str] = ()) -> dict[str, Any]:
    """Return the columns of a batch, and behind each that may lack values a mask called `<name>/valid`.

    Args:
        batch: The columns.
        optional: Fields that have a mask although no value is missing in this batch, so that all batches are alike.

    >>> import numpy as np
    >>> from recordkit.columns import Batch
    >>> batch = Batch({"age": np.array([41, 0])}, 2, {"age": np.array([True, False])})
    >>> {name: column.tolist() for name, column in masked(batch).items()}
    {'age': [41, 0], 'age/valid': [True, False]}
    """
    columns: dict[str, Any] = {}
    optional = set(optional) | set(batch.masks)
    for name in batch.names:
        columns[name] = batch[name]
        if name not in optional:
            continue
        if name + SUFFIX in batch:
            message = f"{name + SUFFIX}: this name is needed for the mask of {name!r}\n  Leave one of the two out."
            raise SchemaError(message, field=name + SUFFIX)
        columns[name + SUFFIX] = batch.valid(name)
    return columns


def optional_names(schema: Schema | None) -> tuple[str, ...]:
    """Return the fields that may be missing."""
    if schema is None:
        return ()
    return tuple(name for name, field in {**schema.fields, **schema.sequences}.items() if field.optional)


def schema_of(pipe: Pipeline) -> Schema | None:
    """Return what the records hold that a pipeline begins with, if they are of a dataset."""
    schema: Schema | None = getattr(getattr(pipe.source, "records", None), "schema", None)
    return schema
