"""Decode: the features of records as the columns that fields declare, checked."""

from ._plan import Plan
from ._shapes import unlike

__all__ = [
    "Plan",
    "unlike",
]
