"""Tools: functions from paths to frozen reports. They do not print, and never touch what they are given to look at."""

from recordkit.tools.diff import Diff, diff
from recordkit.tools.fields import Aligned, Changed, Computed, Joined, add_fields
from recordkit.tools.stats import FieldStats, Stats, stats
from recordkit.tools.verify import FileReport, Problem, Verified, verify

from ._edits import bake, cast_fields, delete, drop_fields, filter, rename_fields  # noqa: A004
from ._index import index
from ._repair import Repaired, repair

__all__ = [
    "Aligned",
    "Changed",
    "Computed",
    "Diff",
    "FieldStats",
    "FileReport",
    "Joined",
    "Problem",
    "Repaired",
    "Stats",
    "Verified",
    "add_fields",
    "bake",
    "cast_fields",
    "delete",
    "diff",
    "drop_fields",
    "filter",
    "index",
    "rename_fields",
    "repair",
    "stats",
    "verify",
]
