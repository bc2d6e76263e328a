"""Pipeline: what happens to elements between a dataset and a training loop.

Steps are plain data. Nothing here knows of files; what has records with numbers is a `Source`.
"""

from ._cache import CacheSource
from ._collate import collate
from ._element_steps import BatchStep, Filter, Map, Section, failed, name_of
from ._elements import ElementBlock, LazyMarks, Mark, Place, TracedElements, Upstream, cut_block, each, gathered, traced
from ._generator import GeneratorSource, begun
from ._iteration import PipelineIterator
from ._order import StepRepr
from ._pipeline import CombinedSource, Pipeline, from_generator
from ._reading import LoadedRecords, Source
from ._sequential_steps import BufferShuffle, EveryOne, Prefetch, RepeatStep, SkipStep, TakeStep, wrapped
from ._state import whole_state
from ._verbs import Steps

__all__ = [
    "BatchStep",
    "BufferShuffle",
    "CacheSource",
    "CombinedSource",
    "ElementBlock",
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
    "RepeatStep",
    "Section",
    "SkipStep",
    "Source",
    "StepRepr",
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
