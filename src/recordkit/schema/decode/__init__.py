"""Decode: features of records, checked and returned as the columns that the fields declare."""

from ._plan import Plan
from ._shapes import unlike

__all__ = [
    "Plan",
    "unlike",
]
