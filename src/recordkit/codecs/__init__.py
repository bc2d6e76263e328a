"""Codecs: how shards are compressed, and how compressed bytes are read, sought in and salvaged.

Nothing here knows records.
"""

from ._codec import CODECS as CODECS
from ._codec import COMPRESSED as COMPRESSED
from ._codec import Codec as Codec
from ._codec import codec_of as codec_of
from ._gzip import Compression as Compression
from ._gzip import ZlibStream as ZlibStream
from ._gzip import compress_member as compress_member
from ._gzip import library_name as library_name
from ._gzip import looks_compressed as looks_compressed
from ._gzip_members import Member as Member
from ._gzip_members import inflate_member as inflate_member
from ._gzip_members import members_of as members_of
from ._gzip_salvage import Gap as Gap
from ._gzip_salvage import segments as segments
from ._inflate import Inflated as Inflated
from ._inflate import Zipped as Zipped
from ._inflate import all_zeros as all_zeros
from ._inflate import foreign_library_name as foreign_library_name
from ._inflate import most_payload as most_payload
from ._seek import Checkpoints as Checkpoints
