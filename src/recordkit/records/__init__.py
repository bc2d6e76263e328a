"""Records: the framing that turns a file's bytes into payloads and back.

Nothing here knows what a payload holds; that is `recordkit.examples`.
The format is written down in docs/format/records.md.
"""

from recordkit._core import Chunk

from ._diagnose import Diagnosis, diagnose
from ._framing import (
    CHANGED,
    CHUNK_BYTES,
    LARGE_BYTES,
    NO_LIMIT,
    before_it,
    chunk,
    corrupt,
    pack,
    pack_many,
    scan,
)
from ._reader import Reader
from ._salvage import Found, Lost, Salvage, salvage

__all__ = [
    "CHANGED",
    "CHUNK_BYTES",
    "LARGE_BYTES",
    "NO_LIMIT",
    "Chunk",
    "Diagnosis",
    "Found",
    "Lost",
    "Reader",
    "Salvage",
    "before_it",
    "chunk",
    "corrupt",
    "diagnose",
    "pack",
    "pack_many",
    "salvage",
    "scan",
]
