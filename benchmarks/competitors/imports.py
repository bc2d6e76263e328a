"""Imports: how long a fresh interpreter takes to import a package."""

from __future__ import annotations

import platform
import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np
from worker import Done, Request, Work, serve

if TYPE_CHECKING:
    from columns import Digest

CODE = "import time; start = time.perf_counter(); {}; print(time.perf_counter() - start)"


def import_(request: Request) -> Work:
    """Run an import in a process of its own, which has its own clock: starting Python is not counted."""
    command = [sys.executable, "-c", CODE.format(request["statement"])]

    def work(digest: Digest | None) -> Done:
        said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        return Done(1, float(said))

    return work


if __name__ == "__main__":
    serve({"python": platform.python_version(), "numpy": np.__version__}, {"import": import_})
