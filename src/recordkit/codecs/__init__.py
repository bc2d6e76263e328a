"""Codecs: how shards are compressed, and how compressed bytes are read, sought in and salvaged.

Nothing here knows records.
"""

from ._gzip import Compression, ZlibStream, compress_member, library_name, looks_compressed
from ._gzip_members import Member, inflate_member, members_of
from ._gzip_salvage import Gap, segments
from ._inflate import Inflated, all_zeros, foreign_library_name, most_payload
from ._seek import Checkpoints

__all__ = [
    "Checkpoints",
    "Compression",
    "Gap",
    "Inflated",
    "Member",
    "ZlibStream",
    "all_zeros",
    "compress_member",
    "foreign_library_name",
    "inflate_member",
    "library_name",
    "looks_compressed",
    "members_of",
    "most_payload",
    "segments",
]
