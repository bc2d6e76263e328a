"""Storage: datasets on disk. Files under a final name are whole; everything of ours beside them is in `_recordkit/`.

What is on disk is written down in docs/format.
"""

from ._bytes import ByteFile, LocalFile, ObjectFile, OpenFiles, PipeFile, files_at_once, given_file
from ._changes import changing
from ._commit import commit
from ._create import append, begin_run, create, discard, quarantined, write
from ._damage import Damage
from ._fetch import InMemory, fetch, fetch_later
from ._index import Fingerprint, Index
from ._layers import (
    Base,
    Layer,
    layer_facts,
    layers_of,
    layers_over,
    new_layer,
    remove_layer,
    schema_through,
    settle,
    write_layer,
)
from ._locate import Located, locate
from ._manifest import Manifest, Shard
from ._names import inside, is_lone_file, manifest_of
from ._publish import recover
from ._quarantine import BadRow, Lost
from ._record_file import RecordFile
from ._run import Run
from ._streams import Stream
from ._text_index import read_text_index, write_text_index
from ._walk import walk
from ._writer import Writer, Written

__all__ = [
    "BadRow",
    "Base",
    "ByteFile",
    "Damage",
    "Fingerprint",
    "InMemory",
    "Index",
    "Layer",
    "LocalFile",
    "Located",
    "Lost",
    "Manifest",
    "ObjectFile",
    "OpenFiles",
    "PipeFile",
    "RecordFile",
    "Run",
    "Shard",
    "Stream",
    "Writer",
    "Written",
    "append",
    "begin_run",
    "changing",
    "commit",
    "create",
    "discard",
    "fetch",
    "fetch_later",
    "files_at_once",
    "given_file",
    "inside",
    "is_lone_file",
    "layer_facts",
    "layers_of",
    "layers_over",
    "locate",
    "manifest_of",
    "new_layer",
    "quarantined",
    "read_text_index",
    "recover",
    "remove_layer",
    "schema_through",
    "settle",
    "walk",
    "write",
    "write_layer",
    "write_text_index",
]
