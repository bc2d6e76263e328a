"""Fails when the newest wheel in a folder is 3 MB or more, or lacks what a user needs."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

LIMIT = 3_000_000


def main(folder: str) -> int:
    """Check the newest wheel and say what it weighs."""
    wheel = max(Path(folder).glob("recordkit-*.whl"), key=lambda path: path.stat().st_mtime)
    names = zipfile.ZipFile(wheel).namelist()
    for needed in ("recordkit/py.typed", "recordkit/_core.pyi", "recordkit/records/__init__.py"):
        if needed not in names:
            print(f"{wheel.name} lacks {needed}")
            return 1
    size = wheel.stat().st_size
    print(f"{wheel.name}: {size:,} bytes, {len(names)} files; the limit is {LIMIT:,}")
    return int(size >= LIMIT)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
