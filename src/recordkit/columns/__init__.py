"""Columns: many values of one field, and batches of columns, without a Python object for each value.

A column is a NumPy array (all rows have one shape), a `BytesColumn` (bytes or text), or a `Ragged` (rows of different
shapes). Nothing here knows where the values came from. All support the Arrow C data interface, without pyarrow.
"""

from ._batch import Batch, arrow_stream
from ._bytes import BytesColumn, check_empty_lists, first_invalid_text, to_offsets
from ._ragged import Column, Ragged, join

__all__ = [
    "Batch",
    "BytesColumn",
    "Column",
    "Ragged",
    "arrow_stream",
    "check_empty_lists",
    "first_invalid_text",
    "join",
    "to_offsets",
]
