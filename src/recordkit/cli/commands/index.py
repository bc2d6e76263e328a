"""index: write indexes next to the files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import recordkit as rk
from recordkit.wording import clean

from .._parser import add_json, add_paths, given_paths
from ..terminal.bar import working

if TYPE_CHECKING:
    import argparse

    from ..terminal.screen import Screen

DETAILS: Final = """\
Indexes are optional: the first lookup by number builds one and keeps it in a cache folder. Next to the data,
an index serves all users."""
EXAMPLES: Final = (
    "recordkit index train/",
    "recordkit index train/ --text       # .idx files, for DALI and vahidk/tfrecord",
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_paths(parser)
    parser.add_argument("--text", action="store_true", help="write FILE.idx, as DALI and vahidk/tfrecord use it")
    parser.add_argument("--overwrite", action="store_true", help="replace existing text indexes")
    add_json(parser)


def run(args: argparse.Namespace, screen: Screen) -> int:
    """Write the indexes, and print their paths."""
    with working(screen):
        written = rk.index(given_paths(args), text=args.text, overwrite=args.overwrite)
    if args.json:
        screen.json({"indexes": [str(path) for path in written]})
    else:
        for path in written:
            screen.print(clean(str(path)))
    return 0
