"""filter: write the matching records to a new dataset."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import recordkit as rk
from recordkit.wording import counted

from .._dataset_argument import report_change
from .._parser import add_json, add_target, options
from ..terminal.bar import working

if TYPE_CHECKING:
    import argparse

    from ..terminal.screen import Screen

DETAILS: Final = """\
Expressions have field names, numbers, texts, comparisons, and, or, not, in, is none, and len(). Records are
copied byte for byte."""
EXAMPLES: Final = (
    "recordkit filter data/ --where 'label == 3 and len(tokens) > 8' --out three/",
    "recordkit filter data/ --where 'caption is not none' --out captioned/",
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("path", metavar="DATA", help="the dataset")
    parser.add_argument("--where", metavar="EXPR", required=True, help="keep the matching records")
    add_target(parser, needed=True)
    add_json(parser)


def run(args: argparse.Namespace, screen: Screen) -> int:
    """Write the matching records."""
    with working(screen):
        before = len(rk.open(args.path))
        changed = rk.filter(args.path, args.where, out=args.out, **options(args))
    share = f" ({changed.records / before:.1%})" if before else ""
    words = f"{counted(changed.records, 'record')} of {before:,}{share} in new files"
    return report_change(changed, words, args, screen, of=before)
