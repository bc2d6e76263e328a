"""`python -m recordkit.cli`, for where the command is not on the path."""

import sys

from ._main import main

if __name__ == "__main__":
    sys.exit(main())
