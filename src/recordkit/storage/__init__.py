"""Storage: datasets on disk. A file under its final name is complete; everything else of ours is in `_recordkit/`.

The rooms, lowest first: `format`, `read`, `staging`, `overlays`, `publish`, `find`, `write`. What is on disk is written
down in docs/format.
"""

from recordkit.storage.format import BadRow, Lost, Manifest
from recordkit.storage.publish import recover
from recordkit.storage.read import Damage, read_text_index, write_text_index
from recordkit.storage.write import Writer, Written, append, commit, create, discard, quarantined

__all__ = [
    "BadRow",
    "Damage",
    "Lost",
    "Manifest",
    "Writer",
    "Written",
    "append",
    "commit",
    "create",
    "discard",
    "quarantined",
    "read_text_index",
    "recover",
    "write_text_index",
]
