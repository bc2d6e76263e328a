"""Memory: how much of this machine's may be used for what only saves time."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from recordkit.errors import StorageError
from recordkit.wording import parse_size

_SHARE = 4  # a quarter: what is mapped is shared with the page cache, yet counts as a process's own in many a table
_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


@cache
def mapped_at_most() -> int:
    """Return how many bytes of files the process may map; `RECORDKIT_MAPPED` ("2GB", or 0 for none) says otherwise."""
    asked = os.environ.get("RECORDKIT_MAPPED")
    if asked == "0":
        return 0
    try:
        return parse_size(asked) if asked else memory() // _SHARE
    except ValueError as error:
        message = f"RECORDKIT_MAPPED in the environment: {error}\n  Say how much, such as 2GB, or 0 for none."
        raise StorageError(message) from None


def memory() -> int:
    """Return the bytes of memory that there are, or that a container may use."""
    whole = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min([whole, *(limit for path in _LIMITS if (limit := _limit(Path(path))))])


def _limit(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):  # there is none: not a container, or "max"
        return None
