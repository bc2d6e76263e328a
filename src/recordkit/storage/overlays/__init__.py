"""Overlays: added fields, hidden fields and deletions, kept next to the records they change."""

from ._lone_file import file_to_change, file_with_overlays, merge_shared
from ._overlay import (
    AFTER,
    Base,
    Layer,
    forget,
    is_other,
    layer_facts,
    layers_of,
    layers_over,
    new_layer,
    remove_layer,
    schema_through,
    schema_with,
    settle,
    write_layer,
)

__all__ = [
    "AFTER",
    "Base",
    "Layer",
    "file_to_change",
    "file_with_overlays",
    "forget",
    "is_other",
    "layer_facts",
    "layers_of",
    "layers_over",
    "merge_shared",
    "new_layer",
    "remove_layer",
    "schema_through",
    "schema_with",
    "settle",
    "write_layer",
]
