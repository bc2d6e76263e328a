"""Dataset: records of one or many files, at any place or from front to back, as columns.

Nothing here knows how files are laid out; that is `recordkit.storage`.
"""

from ._damage_log import DamageLog
from ._dataset import Dataset
from ._decoding import Columns, Making, Part, Payloads
from ._follow import follow
from ._open import open  # noqa: A004 - the verb that a user would say
from ._overlaid import Stack, living, making_of, merged_chunk, physical, rewritten
from ._sequence import Records

__all__ = [
    "Columns",
    "DamageLog",
    "Dataset",
    "Making",
    "Part",
    "Payloads",
    "Records",
    "Stack",
    "follow",
    "living",
    "making_of",
    "merged_chunk",
    "open",
    "physical",
    "rewritten",
]
