"""Encode: rows and columns from users, checked and turned into the features of records."""

from ._columns import converter, encode_columns, encode_pieces, gather_columns
from ._rows import RowEncoder, flat_row

__all__ = [
    "RowEncoder",
    "converter",
    "encode_columns",
    "encode_pieces",
    "flat_row",
    "gather_columns",
]
