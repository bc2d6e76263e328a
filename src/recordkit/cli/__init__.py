"""The command line: parses, calls, prints, returns a status. One file a command, loaded when it is asked for.

It needs nothing that is not installed with recordkit itself. Nothing here knows how anything is done; that is
`recordkit.tools` and `recordkit.dataset`.

Statuses: 0 all is well, 1 something was found (damage, differences, no TFRecord file), 2 wrong use or no such file,
130 interrupted.
"""

from ._main import main

__all__ = ["main"]
