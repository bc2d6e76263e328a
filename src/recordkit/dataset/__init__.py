"""Dataset: records of one or many files, at any place or from front to back, as columns.

Nothing here knows how files are laid out; that is `recordkit.storage`.
"""

from ._dataset import Batches, Dataset
from ._follow import follow
from ._open import open  # noqa: A004 - the verb that a user would say

__all__ = ["Batches", "Dataset", "follow", "open"]
