"""drop: drop fields."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import recordkit as rk
from recordkit.wording import counted

from .._dataset_argument import known_rows, report_change
from .._parser import add_json, add_target, field, options
from ..terminal.bar import working

if TYPE_CHECKING:
    import argparse

    from ..terminal.screen import Screen

DETAILS: Final = """\
Without --out, no file is rewritten: an added field is removed, and a field of the records themselves is hidden
when they are read with recordkit."""
EXAMPLES: Final = ("recordkit drop data/ thumbnail", "recordkit drop data/ email phone --out public/")


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("path", metavar="DATA", help="the dataset")
    parser.add_argument("field", metavar="FIELD", type=field, nargs="+", help="the fields to drop")
    add_target(parser, needed=False)
    add_json(parser)


def run(args: argparse.Namespace, screen: Screen) -> int:
    """Drop the fields."""
    with working(screen, rows=known_rows(args.path, screen)):
        changed = rk.drop_fields(args.path, args.field, out=args.out, **options(args))
    names = ", ".join(changed.fields)
    how = "not in the new files" if args.out is not None else "hidden; no file was rewritten"
    return report_change(changed, f"{names}: {counted(changed.records, 'record')}, {how}", args, screen)
