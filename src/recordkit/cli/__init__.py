"""The command line: parses arguments, calls the library, prints, and returns an exit status.

It needs no optional package. The work itself is done by `recordkit.tools` and `recordkit.dataset`.

Exit status: 0 if all is well, 1 if something was found (damage, differences, not a TFRecord file), 2 for wrong usage or
a missing file, 130 if interrupted.
"""

from ._main import main

__all__ = ["main"]
