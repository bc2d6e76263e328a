"""demo: the main job from end to end, in some seconds, with what it does on the screen."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from .._parser import WrongUse, natural

if TYPE_CHECKING:
    import argparse

    from ..terminal.screen import Screen

DETAILS: Final = """\
Makes a small dataset of pictures, kills the program that writes it, goes on, checks every byte, damages a copy
and repairs it, adds a field, and trains on it with a stop in the middle. What was made is kept, to look at."""
EXAMPLES: Final = ("recordkit demo", "recordkit demo my-demo --pictures 10000")

_MARK: Final = "made-by-recordkit-demo"  # a folder without it is nobody's to remove
_FEWEST: Final = 600  # to show anything


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.add_argument("folder", metavar="DIR", nargs="?", help="where to (a new folder for temporary files)")
    parser.add_argument("--pictures", metavar="N", type=natural, default=2400, help="how many to make (2400)")
    parser.set_defaults(quiet_log=True)


def run(args: argparse.Namespace, screen: Screen) -> int:
    """Tell the story."""
    from ._story import Story

    if args.pictures < _FEWEST:
        message = f"{args.pictures} pictures are too few to show anything\n  Ask for {_FEWEST} or more."
        raise WrongUse(message)
    Story(_folder(args.folder), args.pictures, screen).tell()
    return 0


def _folder(name: str | None) -> Path:
    if name is None:
        folder = Path(tempfile.mkdtemp(prefix="recordkit-demo-"))
    else:
        folder = Path(name)
        if folder.exists() and not (folder / _MARK).exists() and (not folder.is_dir() or any(folder.iterdir())):
            message = f"{folder}: is there, and not from an earlier demo\n  Name a folder that is new or empty."
            raise WrongUse(message)
        if folder.exists():
            shutil.rmtree(folder)
        folder.mkdir(parents=True)
    (folder / _MARK).write_text("recordkit demo made all of this, and may replace it.\n")
    return folder
