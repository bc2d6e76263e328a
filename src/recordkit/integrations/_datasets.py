"""Datasets and batches as frameworks take them: rows by number, and masks where values may be missing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from recordkit.dataset import DatasetSource
from recordkit.errors import SchemaError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from recordkit.columns import Batch
    from recordkit.dataset import Dataset
    from recordkit.pipeline import Pipeline
    from recordkit.schema import Schema

SUFFIX = "/valid"


def with_rows(dataset: Dataset, what: str, instead: str) -> Dataset:
    """Return the dataset; raise TypeError for anything whose rows have no numbers, such as a pipeline."""
    if not hasattr(type(dataset), "__getitem__"):
        message = (
            f"{what}: expected a dataset, whose rows have numbers, found {type(dataset).__name__}\n"
            f"  Pass what recordkit.open returns, or write {instead}."
        )
        raise TypeError(message)
    return dataset


def masked(batch: Batch, optional: Iterable[str] = ()) -> dict[str, Any]:
    """Return the columns of a batch; each that may have missing values is followed by a mask called `<name>/valid`.

    Args:
        batch: The columns.
        optional: Fields that get a mask even if no value is missing in this batch, so that all batches are alike.

    >>> import numpy as np
    >>> from recordkit.columns import Batch
    >>> batch = Batch({"age": np.array([41, 0])}, 2, {"age": np.array([True, False])})
    >>> {name: column.tolist() for name, column in masked(batch).items()}
    {'age': [41, 0], 'age/valid': [True, False]}
    """
    columns: dict[str, Any] = {}
    optional = {*optional, *batch.masks}
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
    """Return the schema of the dataset that a pipeline reads; None if it does not read one directly."""
    return pipe.source.records.schema if isinstance(pipe.source, DatasetSource) else None
