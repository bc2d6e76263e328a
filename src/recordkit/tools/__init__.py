"""Tools: functions that take paths and return frozen reports. They print nothing, and never modify what they read."""

from ._describe import Description, describe
from ._edit import bake, cast_fields, delete, drop_fields, filter, rename_fields  # noqa: A004
from ._index import index
from ._repair import Repaired, repair
from .diff import Diff, diff
from .fields import Aligned, Changed, Computed, Joined, add_fields
from .stats import FieldStats, Stats, stats
from .verify import FileReport, Problem, Verified, verify

__all__ = [
    "Aligned",
    "Changed",
    "Computed",
    "Description",
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
    "describe",
    "diff",
    "drop_fields",
    "filter",
    "index",
    "rename_fields",
    "repair",
    "stats",
    "verify",
]
