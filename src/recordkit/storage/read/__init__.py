"""Read: one file of records, sound or damaged."""

from ._damage import Damage as Damage
from ._explain import advice_of as advice_of
from ._explain import diagnosed as diagnosed
from ._explain import unstable_words as unstable_words
from ._fetch import MappedRecords as MappedRecords
from ._fetch import fetch as fetch
from ._fetch import fetch_later as fetch_later
from ._file_kind import compression_of as compression_of
from ._file_kind import starts_record as starts_record
from ._record_file import RecordFile as RecordFile
from ._record_index import check_fits as check_fits
from ._record_index import find_adjacent_index as find_adjacent_index
from ._record_index import index_path as index_path
from ._salvage import SkippedRecords as SkippedRecords
from ._salvage import walk as walk
from ._salvage import walk_checking as walk_checking
from ._streams import MemberStream as MemberStream
from ._streams import Sequential as Sequential
from ._streams import Stream as Stream
from ._text_index import read_text_index as read_text_index
from ._text_index import write_text_index as write_text_index
