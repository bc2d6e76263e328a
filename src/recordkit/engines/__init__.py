"""Engines: who does the work, and how many at once. Nothing here knows what the work is about."""

from ._engine import AUTO, Processes, Threads, Workers, count
from ._ordered_processes import map_in_processes
from ._ordered_threads import OrderedThreadPool, map_in_threads

__all__ = [
    "AUTO",
    "OrderedThreadPool",
    "Processes",
    "Threads",
    "Workers",
    "count",
    "map_in_processes",
    "map_in_threads",
]
