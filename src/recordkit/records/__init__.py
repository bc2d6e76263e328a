"""Records: the framing that turns a file's bytes into payloads and back.

Nothing here knows what a payload holds; that is `recordkit.examples`.
The format is written down in docs/format/records.md.
"""

from recordkit._core import Chunk

from ._framing import (
    CHANGED,
    CHUNK_BYTES,
    LARGE_BYTES,
    NO_LIMIT,
    Diagnosis,
    Found,
    Lost,
    Reader,
    Salvage,
    before_it,
    chunk,
    corrupt,
    cut_short,
    diagnose,
    pack,
    pack_many,
    read_piece,
    salvage,
    scan,
    written_over,
)

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
    "cut_short",
    "diagnose",
    "pack",
    "pack_many",
    "read_piece",
    "salvage",
    "scan",
    "written_over",
]
