"""What a user hands to an integration, looked at before anything is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recordkit.dataset import Dataset


def with_rows(dataset: Dataset, what: str, instead: str) -> Dataset:
    """Return a dataset, and raise TypeError for what has no rows by number, such as a pipeline."""
    if not hasattr(type(dataset), "__getitem__"):
        message = (
            f"{what}: expected a dataset, whose rows have numbers, found {type(dataset).__name__}\n"
            f"  Give it what recordkit.open returns, or write {instead}."
        )
        raise TypeError(message)
    return dataset
