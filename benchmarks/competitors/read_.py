"""read(): the file's bytes into one buffer that is used again, and nothing done with them."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from worker import Request, Work, serve

if TYPE_CHECKING:
    from columns import Digest


def scan(request: Request) -> Work:
    """Read the file through a buffer of `buffer` bytes."""
    buffer = bytearray(request["buffer"])

    def work(digest: Digest | None) -> int:
        size = 0
        with Path(request["file"]).open("rb", buffering=0) as file:
            while count := file.readinto(buffer):
                size += count
        if digest:
            # What the file holds besides payloads is 16 bytes a record.
            digest.add("records and bytes", np.array([request["records"], size - 16 * request["records"]]))
        return int(request["records"])

    return work


if __name__ == "__main__":
    serve({"python": platform.python_version()}, {"scan": scan})
