"""Find: from what the user names to the files of a dataset."""

from ._address import DatasetFiles as DatasetFiles
from ._address import find_published as find_published
from ._locate import Located as Located
from ._locate import locate as locate
from ._shard_names import is_named_so as is_named_so
from ._shard_names import reason_left_out as reason_left_out
