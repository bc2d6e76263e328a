"""Storage: datasets on disk. Files under a final name are whole; everything of ours beside them is in `_recordkit/`.

What is on disk is written down in docs/format.
"""

from ._bytes import ByteFile, LocalFile, ObjectFile, OpenFiles, PipeFile, check_uncut, files_at_once, given_file
from ._changes import changing
from ._checkpoints import Checkpoints
from ._commit import commit
from ._compression import Compression, library_name
from ._create import append, begin_run, create, discard, quarantined, write
from ._damage import Damage
from ._disk import permissions_of
from ._explain import advice_of, diagnosed, unstable_words
from ._facts import new_digest
from ._fetch import InMemory, fetch, fetch_later
from ._index import BLOCK, Fingerprint, Index
from ._inflate import Inflated, foreign_library_name
from ._journal import lacks_side_files, lone_manifest
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
from ._lone import file_to_change, file_with_overlays, merge_shared
from ._manifest import Manifest, Shard
from ._members import members_of
from ._names import SIDE, inside, is_lone_file, manifest_of
from ._places import beside, check_fits
from ._publish import pending, recover
from ._quarantine import BadRow, Lost
from ._record_file import RecordFile
from ._run import Run
from ._shard_names import is_named_so, reason_left_out
from ._sniff import compression_of
from ._streams import MemberStream, Sequential, Stream
from ._text_index import read_text_index, write_text_index
from ._walk import Passed, walk, walk_checking
from ._writer import Writer, Written

__all__ = [
    "BLOCK",
    "SIDE",
    "BadRow",
    "Base",
    "ByteFile",
    "Checkpoints",
    "Compression",
    "Damage",
    "Fingerprint",
    "InMemory",
    "Index",
    "Inflated",
    "Layer",
    "LocalFile",
    "Located",
    "Lost",
    "Manifest",
    "MemberStream",
    "ObjectFile",
    "OpenFiles",
    "Passed",
    "PipeFile",
    "RecordFile",
    "Run",
    "Sequential",
    "Shard",
    "Stream",
    "Writer",
    "Written",
    "advice_of",
    "append",
    "begin_run",
    "beside",
    "changing",
    "check_fits",
    "check_uncut",
    "commit",
    "compression_of",
    "create",
    "diagnosed",
    "discard",
    "fetch",
    "fetch_later",
    "file_to_change",
    "file_with_overlays",
    "files_at_once",
    "foreign_library_name",
    "given_file",
    "inside",
    "is_lone_file",
    "is_named_so",
    "lacks_side_files",
    "layer_facts",
    "layers_of",
    "layers_over",
    "library_name",
    "locate",
    "lone_manifest",
    "manifest_of",
    "members_of",
    "merge_shared",
    "new_digest",
    "new_layer",
    "pending",
    "permissions_of",
    "quarantined",
    "read_text_index",
    "reason_left_out",
    "recover",
    "remove_layer",
    "schema_through",
    "settle",
    "unstable_words",
    "walk",
    "walk_checking",
    "write",
    "write_layer",
    "write_text_index",
]
