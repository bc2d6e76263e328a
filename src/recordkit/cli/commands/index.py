"""index: indexes beside the files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import recordkit as rk
from recordkit.wording import clean

from .._parser import add_json, add_paths, where
from ..terminal.bar import working

if TYPE_CHECKING:
    import argparse

    from ..terminal.screen import Screen

DETAILS: Final = """\
Reading needs none: one is made when records are first asked for by number, and kept in a cache folder. Beside
the data it serves everyone."""
EXAMPLES: Final = (
    "recordkit index train/",
    "recordkit index train/ --text       # .idx files, for DALI and vahidk/tfrecord",
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    add_paths(parser)
    parser.add_argument("--text", action="store_true", help="the text index of DALI and vahidk/tfrecord, FILE.idx")
    parser.add_argument("--overwrite", action="store_true", help="replace text indexes that are there")
    add_json(parser)


def run(args: argparse.Namespace, screen: Screen) -> int:
    """Write the indexes, and print where they are."""
    with working(screen):
        written = rk.index(where(args), text=args.text, overwrite=args.overwrite)
    if args.json:
        screen.json({"indexes": [str(path) for path in written]})
    else:
        for path in written:
            screen.print(clean(str(path)))
    return 0
