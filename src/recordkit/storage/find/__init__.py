"""Find: from what the user names to the files of a dataset."""

from ._locate import Located, locate
from ._shard_names import is_named_so, reason_left_out

__all__ = [
    "Located",
    "is_named_so",
    "locate",
    "reason_left_out",
]
