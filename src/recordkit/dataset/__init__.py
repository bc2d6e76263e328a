"""Dataset: the records of one or many files, by number or in order, as columns.

Nothing here knows how files are laid out; that is `recordkit.storage`.
"""

from ._dataset import Dataset
from ._decoding import BatchDecoder, ColumnDecoder, PayloadDecoder, RecordRange
from ._follow import follow
from ._open import open  # noqa: A004 - the verb that a user would say
from ._overlaid import Stack, baked_chunk, decoder_for, living, physical, rewritten_chunk
from ._sequence import RecordSequence
from ._source import DatasetSource
from ._summary import Summary, summarize
from ._tolerant import DamageLog

__all__ = [
    "BatchDecoder",
    "ColumnDecoder",
    "DamageLog",
    "Dataset",
    "DatasetSource",
    "PayloadDecoder",
    "RecordRange",
    "RecordSequence",
    "Stack",
    "Summary",
    "baked_chunk",
    "decoder_for",
    "follow",
    "living",
    "open",
    "physical",
    "rewritten_chunk",
    "summarize",
]
