"""diff: compare two datasets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import recordkit as rk
from recordkit.wording import clean

from .._parser import add_json, names
from ..terminal.bar import working

if TYPE_CHECKING:
    import argparse

    from ..terminal.screen import Screen

DETAILS: Final = """\
Compares the bytes of the records in order. With --on, matches records by a key and compares them field by
field. Exit status 1 if there are differences."""
EXAMPLES: Final = ("recordkit diff before/ after/", "recordkit diff before/ after/ --on id")


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("a", metavar="A", help="a dataset")
    parser.add_argument("b", metavar="B", help="the other")
    parser.add_argument("--on", metavar="FIELD", type=names, help="the key: one or more fields that identify a record")
    add_json(parser)


def run(args: argparse.Namespace, screen: Screen) -> int:
    """Print the differences."""
    with working(screen):
        found = rk.diff(args.a, args.b, on=args.on)
    if args.json:
        from .._values import plain

        screen.json({"same": found.same, **plain(found)})
    else:
        headline, *lines = str(found).splitlines()
        screen.print(screen.style(clean(headline), "bold", "green" if found.same else "yellow"))
        for line in lines:
            screen.print(clean(line))
    return 0 if found.same else 1
