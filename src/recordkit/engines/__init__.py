"""Engines: they do jobs with several threads or processes. Nothing here knows what the jobs are about."""

from ._engine import AUTO, Engine, Processes, Threads, Workers, count
from ._ordered_processes import ProcessEngine
from ._ordered_threads import OrderedThreadPool, TaskQueue, Tasks, ThreadEngine

__all__ = [
    "AUTO",
    "Engine",
    "OrderedThreadPool",
    "ProcessEngine",
    "Processes",
    "TaskQueue",
    "Tasks",
    "ThreadEngine",
    "Threads",
    "Workers",
    "count",
]
