"""Pipeline: what happens to elements between a dataset and a training loop.

Steps are plain data. Nothing here knows of files: elements come from a `Source`, records with numbers from a
`RecordSource`.
"""

from ._cache import CacheSource
from ._collate import collate
from ._element_steps import BatchStep, Filter, Map, Section
from ._elements import (
    ElementBlock,
    LazyMarks,
    Mark,
    Place,
    TracedElements,
    Upstream,
    cut_block,
    each,
    gathered,
    traced,
    wrapped,
)
from ._generator import GeneratorSource, begun
from ._iteration import PipelineIterator
from ._order_steps import RepeatStep, SkipStep, TakeStep
from ._pipeline import CombinedSource, Pipeline, from_generator
from ._sequential_steps import BufferShuffle, EveryOne, Prefetch
from ._source import LoadedRecords, RecordSource, Source
from ._state import whole_state
from ._step import ElementStep, Step, failed, name_of
from ._verbs import Steps

__all__ = [
    "BatchStep",
    "BufferShuffle",
    "CacheSource",
    "CombinedSource",
    "ElementBlock",
    "ElementStep",
    "EveryOne",
    "Filter",
    "GeneratorSource",
    "LazyMarks",
    "LoadedRecords",
    "Map",
    "Mark",
    "Pipeline",
    "PipelineIterator",
    "Place",
    "Prefetch",
    "RecordSource",
    "RepeatStep",
    "Section",
    "SkipStep",
    "Source",
    "Step",
    "Steps",
    "TakeStep",
    "TracedElements",
    "Upstream",
    "begun",
    "collate",
    "cut_block",
    "each",
    "failed",
    "from_generator",
    "gathered",
    "name_of",
    "traced",
    "whole_state",
    "wrapped",
]
