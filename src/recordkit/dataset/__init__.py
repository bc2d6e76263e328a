"""Dataset: records of one or many files, at any place or from front to back, as columns.

Nothing here knows how files are laid out; that is `recordkit.storage`.
"""

from ._batching import Making, Part
from ._dataset import Dataset
from ._follow import follow
from ._layered import living, making_of, merged_chunk, physical, rewritten
from ._open import open  # noqa: A004 - the verb that a user would say
from ._records import Records

__all__ = [
    "Dataset",
    "Making",
    "Part",
    "Records",
    "follow",
    "living",
    "making_of",
    "merged_chunk",
    "open",
    "physical",
    "rewritten",
]
