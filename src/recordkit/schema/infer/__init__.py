"""Infer: the schema of existing records, and of rows or columns to be written."""

from ._from_records import fields_of_chunks
from ._from_rows import fields_of_columns, fields_of_rows

__all__ = [
    "fields_of_chunks",
    "fields_of_columns",
    "fields_of_rows",
]
