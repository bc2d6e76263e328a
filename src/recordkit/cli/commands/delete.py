"""delete: delete records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import recordkit as rk
from recordkit.wording import counted

from .._dataset_argument import report_change
from .._parser import add_json
from ..terminal.bar import working

if TYPE_CHECKING:
    import argparse

    from ..terminal.screen import Screen

DETAILS: Final = """\
No file is rewritten: recordkit no longer returns the records, but TensorFlow sees them until `recordkit bake`
writes a dataset without them. `recordkit count --where` tells how many records match."""
EXAMPLES: Final = ("recordkit delete data/ --where 'label < 0'", "recordkit delete data/ --where 'id in [17, 4811]'")


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("path", metavar="DATA", help="the dataset")
    parser.add_argument("--where", metavar="EXPR", required=True, help="delete the matching records")
    add_json(parser)


def run(args: argparse.Namespace, screen: Screen) -> int:
    """Delete the records."""
    with working(screen):
        changed = rk.delete(args.path, where=args.where)
        left = len(rk.open(args.path))
    words = f"{counted(changed.records, 'record')} deleted, {left:,} left; no file was rewritten"
    if not changed.records:
        words = f"no record matches: all {left:,} are left"
    return report_change(changed, words, args, screen, left=left)
