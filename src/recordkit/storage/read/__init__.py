"""Read: one file of records, sound or damaged."""

from ._damage import Damage
from ._explain import advice_of, diagnosed, unstable_words
from ._fetch import InMemory, fetch, fetch_later
from ._file_kind import compression_of
from ._record_file import RecordFile
from ._record_index import beside, check_fits, find_beside
from ._salvage import Passed, walk, walk_checking
from ._streams import MemberStream, Sequential, Stream
from ._text_index import read_text_index, write_text_index

__all__ = [
    "Damage",
    "InMemory",
    "MemberStream",
    "Passed",
    "RecordFile",
    "Sequential",
    "Stream",
    "advice_of",
    "beside",
    "check_fits",
    "compression_of",
    "diagnosed",
    "fetch",
    "fetch_later",
    "find_beside",
    "read_text_index",
    "unstable_words",
    "walk",
    "walk_checking",
    "write_text_index",
]
