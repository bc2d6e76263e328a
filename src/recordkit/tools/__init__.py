"""Tools: functions from paths to frozen reports. They do not print, and never touch what they are given to look at."""

from ._diff import Diff, diff
from ._field_stats import FieldStats
from ._index import index
from ._repair import Repaired, repair
from ._sources import Aligned, Computed, Joined
from ._stats import Stats, stats
from ._verify import verify
from ._verify_report import FileReport, Problem, Verified

__all__ = [
    "Aligned",
    "Computed",
    "Diff",
    "FieldStats",
    "FileReport",
    "Joined",
    "Problem",
    "Repaired",
    "Stats",
    "Verified",
    "diff",
    "index",
    "repair",
    "stats",
    "verify",
]
