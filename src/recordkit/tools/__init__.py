"""Tools: functions from paths to frozen reports. They do not print, and never touch what they are given to look at."""

from ._diff import Diff, diff
from ._field_stats import FieldStats
from ._index import index
from ._repair import Repaired, repair
from ._stats import Stats, stats

__all__ = ["Diff", "FieldStats", "Repaired", "Stats", "diff", "index", "repair", "stats"]
