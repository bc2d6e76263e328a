"""`python -m recordkit`, for where the command is not on the path."""

import sys

from recordkit.cli import main

if __name__ == "__main__":
    sys.exit(main())
