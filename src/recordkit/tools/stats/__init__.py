"""Statistics of the fields of a dataset."""

from ._contents import cut
from ._fields import FieldStats
from ._stats import Accumulator, Stats, batch_rows, number, opened, stats, table_line

__all__ = ["Accumulator", "FieldStats", "Stats", "batch_rows", "cut", "number", "opened", "stats", "table_line"]
