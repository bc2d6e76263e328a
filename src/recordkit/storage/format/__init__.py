"""Format: the files that lie next to the records, and the names of all files of a dataset."""

from ._facts import new_digest
from ._index import BLOCK, Fingerprint, Index, IndexBuilder, OtherFile
from ._manifest import MOST_INFLATED, SHARD, Manifest, Shard, is_possible
from ._names import (
    SIDE,
    appended_name,
    inside,
    is_lone_file,
    manifest_of,
    set_name,
    shard_name,
    side_of,
    staging_of,
    suffix,
    target_of,
    targets_of,
)
from ._quarantine import BadRow, Lost, read_quarantine, to_line
from .side_json import Unlike, anything, read_small, to_bytes

__all__ = [
    "BLOCK",
    "MOST_INFLATED",
    "SHARD",
    "SIDE",
    "BadRow",
    "Fingerprint",
    "Index",
    "IndexBuilder",
    "Lost",
    "Manifest",
    "OtherFile",
    "Shard",
    "Unlike",
    "anything",
    "appended_name",
    "inside",
    "is_lone_file",
    "is_possible",
    "manifest_of",
    "new_digest",
    "read_quarantine",
    "read_small",
    "set_name",
    "shard_name",
    "side_of",
    "staging_of",
    "suffix",
    "target_of",
    "targets_of",
    "to_bytes",
    "to_line",
]
