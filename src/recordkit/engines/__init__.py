"""Engines: who does the work, and how many at once. Nothing here knows what the work is about."""

from ._engine import AUTO, Processes, Threads, Workers, count
from ._ordered_processes import in_processes
from ._ordered_threads import Crew, side_by_side

__all__ = ["AUTO", "Crew", "Processes", "Threads", "Workers", "count", "in_processes", "side_by_side"]
