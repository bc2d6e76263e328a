"""Pipeline: what happens to elements between a dataset and a training loop.

Steps are plain data. Nothing here knows of files; what has records with numbers is a `Source`.
"""

from ._cache import Cached
from ._collate import collate
from ._element_steps import Filter, Group, Map, Section, failed, name_of
from ._elements import Block, Mark, Piece, Place, Told, Upstream, cut_block, each, gathered, whole
from ._generator import Generated, begun
from ._iteration import PipelineIterator
from ._order import Said
from ._pipeline import Pipeline, from_generator
from ._reading import Loaded, Source
from ._sequential_steps import BufferShuffle, EveryOne, Prefetch, Repeat, Skip, Take, wrapped
from ._state import whole as whole_state
from ._verbs import Steps

__all__ = [
    "Block",
    "BufferShuffle",
    "Cached",
    "EveryOne",
    "Filter",
    "Generated",
    "Group",
    "Loaded",
    "Map",
    "Mark",
    "Piece",
    "Pipeline",
    "PipelineIterator",
    "Place",
    "Prefetch",
    "Repeat",
    "Said",
    "Section",
    "Skip",
    "Source",
    "Steps",
    "Take",
    "Told",
    "Upstream",
    "begun",
    "collate",
    "cut_block",
    "each",
    "failed",
    "from_generator",
    "gathered",
    "name_of",
    "whole",
    "whole_state",
    "wrapped",
]
