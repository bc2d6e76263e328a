"""Storage: datasets on disk. Files under a final name are whole; everything of ours beside them is in `_recordkit/`.

What is on disk is written down in docs/format.
"""

from ._commit import commit
from ._create import append, create, discard, quarantined, write
from ._index import Fingerprint, Index
from ._manifest import Manifest, Shard
from ._publish import recover
from ._quarantine import BadRow, Lost
from ._writer import Writer, Written

__all__ = [
    "BadRow",
    "Fingerprint",
    "Index",
    "Lost",
    "Manifest",
    "Shard",
    "Writer",
    "Written",
    "append",
    "commit",
    "create",
    "discard",
    "quarantined",
    "recover",
    "write",
]
