"""demo: a five-second tour on a small image dataset."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from .._parser import UsageError, natural

if TYPE_CHECKING:
    import argparse

    from ..terminal.screen import Screen

DETAILS: Final = """\
Writes a small dataset of pictures, kills the writer and resumes it, checks every byte, damages a copy and
repairs it, adds a field, and trains on the dataset with a stop in the middle. The result is kept for you to
inspect."""
EXAMPLES: Final = ("recordkit demo", "recordkit demo my-demo --pictures 10000")

_MARK: Final = "made-by-recordkit-demo"  # folders without it are never removed
_FEWEST: Final = 600  # for a meaningful demo


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("folder", metavar="DIR", nargs="?", help="the folder (default: a new temporary folder)")
    parser.add_argument("--pictures", metavar="N", type=natural, default=2400, help="number of pictures (2400)")
    parser.set_defaults(quiet_log=True)


def run(args: argparse.Namespace, screen: Screen) -> int:
    """Run the demo."""
    from ._story import Story

    if args.pictures < _FEWEST:
        message = f"{args.pictures} pictures are too few for the demo\n  Use {_FEWEST} or more."
        raise UsageError(message)
    Story(_folder(args.folder), args.pictures, screen).tell()
    return 0


def _folder(name: str | None) -> Path:
    if name is None:
        folder = Path(tempfile.mkdtemp(prefix="recordkit-demo-"))
    else:
        folder = Path(name)
        if folder.exists() and not (folder / _MARK).exists() and (not folder.is_dir() or any(folder.iterdir())):
            message = f"{folder}: already exists, and is not from an earlier demo\n  Choose a new or empty folder."
            raise UsageError(message)
        if folder.exists():
            shutil.rmtree(folder)
        folder.mkdir(parents=True)
    (folder / _MARK).write_text("Made by recordkit demo, which may replace it.\n")
    return folder
