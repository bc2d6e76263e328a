"""Columns: many values of one field, and batches of them, without a Python object a value.

A column is a NumPy array (every row of one shape), a `BytesColumn` (bytes or text), or a `Ragged` (rows of differing
shape). Nothing here knows where the values came from. All speak the Arrow C data interface, without pyarrow.
"""

from ._batch import Batch, arrow_stream
from ._bytes import BytesColumn, first_invalid_text, to_offsets
from ._ragged import Column, Ragged, join

__all__ = ["Batch", "BytesColumn", "Column", "Ragged", "arrow_stream", "first_invalid_text", "join", "to_offsets"]
