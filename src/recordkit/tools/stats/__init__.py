"""Statistics of a dataset: what every field is like."""

from ._contents import cut
from ._fields import FieldStats
from ._stats import Accumulator, Stats, _line, batch_rows, number, opened, stats

__all__ = ["Accumulator", "FieldStats", "Stats", "_line", "batch_rows", "cut", "number", "opened", "stats"]
