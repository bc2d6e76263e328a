"""Write: from rows to finished shards."""

from ._commit import commit as commit
from ._create import append as append
from ._create import begin_run as begin_run
from ._create import create as create
from ._create import discard as discard
from ._create import quarantined as quarantined
from ._create import write as write
from ._run import Run as Run
from ._writer import Writer as Writer
from ._writer import Written as Written
