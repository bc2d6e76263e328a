"""rename: rename fields."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import recordkit as rk
from recordkit.wording import counted

from .._dataset_argument import known_rows, report_change
from .._parser import UsageError, add_json, add_target, options
from ..terminal.bar import working

if TYPE_CHECKING:
    import argparse

    from ..terminal.screen import Screen

EXAMPLES: Final = ("recordkit rename data/ image/encoded=image image/class/label=label --out data-v2/",)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("path", metavar="DATA", help="the dataset")
    parser.add_argument("names", metavar="OLD=NEW", nargs="+", help="the old name and the new one")
    add_target(parser, needed=True)
    add_json(parser)


def run(args: argparse.Namespace, screen: Screen) -> int:
    """Rename the fields."""
    names = dict(_pair(text) for text in args.names)
    with working(screen, rows=known_rows(args.path, screen)):
        changed = rk.rename_fields(args.path, names, out=args.out, **options(args))
    words = ", ".join(f"{old} is now {new}" for old, new in names.items())
    return report_change(changed, f"{words}: {counted(changed.records, 'record')} in new files", args, screen)


def _pair(text: str) -> tuple[str, str]:
    old, _, new = text.partition("=")
    if not old or not new:
        message = f"{text}: expected OLD=NEW\n  For example: image/encoded=image."
        raise UsageError(message)
    return old, new
