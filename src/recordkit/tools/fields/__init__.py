"""New fields for existing records: computed, joined, or given as values."""

from ._add import Changed, add_fields, changing_dataset, layer_folder, named, names_given, origin_of, splits_of
from ._computed import words_of
from ._sources import Aligned, Computed, Joined
from ._tables import arrow_column

__all__ = [
    "Aligned",
    "Changed",
    "Computed",
    "Joined",
    "add_fields",
    "arrow_column",
    "changing_dataset",
    "layer_folder",
    "named",
    "names_given",
    "origin_of",
    "splits_of",
    "words_of",
]
