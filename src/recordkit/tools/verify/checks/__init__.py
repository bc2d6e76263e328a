"""The checks of verify, one file each. To add one, write its class in a new file, and list it in `CHECKS`."""

from typing import Final

from ._check import Check, FileToCheck, Level, PassResult, RecordFacts
from ._examples import ExamplesCheck
from ._index import IndexCheck
from ._manifest import ManifestCheck
from ._pictures import PicturesCheck
from ._repeats import RepeatsCheck

# Notes appear in this order. A check that asks for `PassResult.differs` comes after those whose damage it depends on.
CHECKS: Final[tuple[type[Check], ...]] = (
    ManifestCheck,
    IndexCheck,
    RepeatsCheck,
    ExamplesCheck,
    PicturesCheck,
)

__all__ = ["CHECKS", "Check", "FileToCheck", "Level", "PassResult", "RecordFacts"]
