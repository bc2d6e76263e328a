"""Pages: files in the page cache as reading leaves them there.

What was just written is cached in small pages, and some of it is thrown out again when memory runs low. Whoever trains
reads files that came from elsewhere: they are read from the disk once, one behind the other, and cached in large pages,
which cost less to read and far less to map. So every competitor gets the files of a task in that state.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

PIECE = 1 << 20
KEPT = ("derived", "written")  # for other tasks; requests name what is theirs


def read_anew(requests: Iterable[dict[str, Any]]) -> None:
    """Throw the files that requests name out of the page cache and read them from the disk."""
    for file in sorted({file for request in requests for file in files_in(request)}):
        with file.open("rb", buffering=0) as opened:
            if hasattr(os, "posix_fadvise"):
                os.fsync(opened)  # what is not on the disk yet cannot be thrown out
                os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            piece = bytearray(PIECE)
            while opened.readinto(piece):
                pass


def files_in(request: dict[str, Any]) -> Iterator[Path]:
    """Yield the files that a request is about: those it names, and what competitors have made of the workload."""
    texts = [text for value in request.values() for text in (value if isinstance(value, list) else [value])]
    named = [Path(text) for text in texts if isinstance(text, str) and os.sep in text and text != request["folder"]]
    made = [path for path in Path(request["folder"]).iterdir() if path.name not in KEPT and path.suffix != ".npy"]
    for path in named + made:
        yield from (file for file in (path.rglob("*") if path.is_dir() else [path]) if file.is_file())
