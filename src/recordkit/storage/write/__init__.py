"""Write: from rows to finished shards."""

from ._commit import commit
from ._create import append, begin_run, create, discard, quarantined, write
from ._run import Run
from ._writer import Writer, Written

__all__ = [
    "Run",
    "Writer",
    "Written",
    "append",
    "begin_run",
    "commit",
    "create",
    "discard",
    "quarantined",
    "write",
]
