"""delete: records taken away."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import recordkit as rk
from recordkit.wording import counted

from .._dataset_argument import tell_change
from .._parser import add_json
from ..terminal.bar import working

if TYPE_CHECKING:
    import argparse

    from ..terminal.screen import Screen

DETAILS: Final = """\
No file is rewritten: whoever reads with recordkit no longer sees the records. `recordkit bake` writes a
dataset without them; TensorFlow sees them until then. `recordkit count --where` tells beforehand how many
they are."""
EXAMPLES: Final = ("recordkit delete data/ --where 'label < 0'", "recordkit delete data/ --where 'id in [17, 4811]'")


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.add_argument("path", metavar="DATA", help="the dataset")
    parser.add_argument("--where", metavar="EXPR", required=True, help="the records for which this holds are deleted")
    add_json(parser)


def run(args: argparse.Namespace, screen: Screen) -> int:
    """Delete the records."""
    with working(screen):
        changed = rk.delete(args.path, where=args.where)
        left = len(rk.open(args.path))
    words = f"{counted(changed.records, 'record')} deleted, {left:,} left; the files were not touched"
    if not changed.records:
        words = f"no record is so: all {left:,} are left"
    return tell_change(changed, words, args, screen, left=left)
