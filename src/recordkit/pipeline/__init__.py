"""Pipeline: what happens to elements between a dataset and a training loop.

Steps are plain data. Nothing here knows of files; what has records with numbers is a `Source`.
"""

from ._blocks import Piece, whole
from ._collate import collate
from ._crew import Crew
from ._head import Loaded, Source
from ._iterator import PipelineIterator
from ._pipeline import Pipeline, from_generator
from ._state import whole as whole_state
from ._steps import Section
from ._verbs import Steps

__all__ = [
    "Crew",
    "Loaded",
    "Piece",
    "Pipeline",
    "PipelineIterator",
    "Section",
    "Source",
    "Steps",
    "collate",
    "from_generator",
    "whole",
    "whole_state",
]
