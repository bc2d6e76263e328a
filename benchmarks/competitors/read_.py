"""read(), write() and cp: the file's bytes from or to the disk, and nothing done with them."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from worker import Request, Work, serve, sync

if TYPE_CHECKING:
    from columns import Digest

PIECE = 1 << 20


def scan(request: Request) -> Work:
    """Read the file through a buffer of `buffer` bytes."""
    buffer = bytearray(request["buffer"])

    def work(digest: Digest | None) -> int:
        size = 0
        with Path(request["file"]).open("rb", buffering=0) as file:
            while count := file.readinto(buffer):
                size += count
        if digest and request["job"] != "decode":
            # What the file holds besides payloads is 16 bytes a record.
            digest.add("records and bytes", np.array([request["records"], size - 16 * request["records"]]))
        return int(request["records"])

    return work


def write(request: Request) -> Work:
    """Write the bytes that the file holds to another one, PIECE at a time."""
    data = memoryview(Path(request["file"]).read_bytes())
    pieces = [data[start : start + PIECE] for start in range(0, len(data), PIECE)]

    def work(digest: Digest | None) -> int:
        with Path(request["output"]).open("wb", buffering=0) as file:
            for piece in pieces:
                file.write(piece)
        if request.get("sync"):
            sync(request["output"])
        return int(request["records"])

    return work


def copy(request: Request) -> Work:
    """Copy a file, or the files of a folder, with cp."""
    source, out = Path(request["file"]), Path(request["output"])
    target = out if source.is_file() else out.with_suffix("")
    command = ["cp", "--reflink=never", "-r", str(source), str(target)]

    def work(digest: Digest | None) -> int:
        subprocess.run(command, check=True)
        if request.get("sync"):
            for path in [target] if target.is_file() else target.rglob("*"):
                sync(path)
        return int(request["records"])

    return work


if __name__ == "__main__":
    jobs = {"scan": scan, "verify": scan, "decode": scan, "write": write, "bake": copy, "overlay": copy}
    serve({"python": platform.python_version()}, jobs)
