"""The checks of verify, one file each. A new one is a class in a file of its own, and a line in `CHECKS`."""

from typing import Final

from ._check import Check, CheckedFile, Level, PassResult, RecordFacts
from ._examples import ExamplesCheck
from ._index import IndexCheck
from ._manifest import ManifestCheck
from ._pictures import PicturesCheck
from ._repeats import RepeatsCheck

# In the order of their findings in a report.
CHECKS: Final[tuple[type[Check], ...]] = (
    ManifestCheck,
    IndexCheck,
    RepeatsCheck,
    ExamplesCheck,
    PicturesCheck,
)

__all__ = ["CHECKS", "Check", "CheckedFile", "Level", "PassResult", "RecordFacts"]
