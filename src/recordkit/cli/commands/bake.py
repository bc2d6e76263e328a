"""bake: write added, hidden and deleted changes into a new dataset."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import recordkit as rk
from recordkit.wording import counted

from .._dataset_argument import known_rows, report_change
from .._parser import add_json, add_target, options
from ..terminal.bar import working

if TYPE_CHECKING:
    import argparse

    from ..terminal.screen import Screen

DETAILS: Final = """\
Added fields are written into the records; dropped fields and deleted records are left out. After that, any
TFRecord reader sees what recordkit sees."""
EXAMPLES: Final = ("recordkit bake data/ --out data-v2/",)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("path", metavar="DATA", help="the dataset")
    add_target(parser, needed=True)
    add_json(parser)


def run(args: argparse.Namespace, screen: Screen) -> int:
    """Write the new dataset."""
    with working(screen, rows=known_rows(args.path, screen)):
        changed = rk.bake(args.path, args.out, **options(args))
    return report_change(changed, f"{counted(changed.records, 'record')} in new files", args, screen)
