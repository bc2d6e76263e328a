"""Engines: who does the work, and how many at once. Nothing here knows what the work is about."""

from ._ordered_processes import in_processes
from ._ordered_threads import Crew, side_by_side

__all__ = ["Crew", "in_processes", "side_by_side"]
