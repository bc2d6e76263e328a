"""verify: is every byte as it was written?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import recordkit as rk
from recordkit.wording import clean, counted

from .._parser import add_json, add_paths, add_workers, where
from ..terminal.bar import working
from ..terminal.screen import wrapped

if TYPE_CHECKING:
    import argparse

    from recordkit.tools import Verified

    from ..terminal.screen import Screen

DETAILS: Final = """\
Reads every byte once: the framing and both checksums of every record, those of gzip and zlib, and what the
manifest and the indexes say. The files are left as they are. Status 1 if anything is wrong."""
EXAMPLES: Final = (
    "recordkit verify train/",
    "recordkit verify train/ --check examples        # are they all Examples that fit the schema?",
    "recordkit verify train/ --check images          # can every picture be decoded to its end?",
    "recordkit verify 'gs-mirror/*.tfrecord' --json | jq '.files[] | select(.ok | not) | .path'",
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    add_paths(parser)
    parser.add_argument("--check", choices=["records", "examples", "images"], default="records", help="how far to look")
    parser.add_argument("--schema", metavar="FILE", help="a schema.json that the Examples have to agree with")
    add_workers(parser)
    add_json(parser)


def run(args: argparse.Namespace, screen: Screen) -> int:
    """Print what is wrong."""
    schema = rk.Schema.load(args.schema) if args.schema is not None else None
    with working(screen):
        report = rk.verify(where(args), check=args.check, workers=args.workers, schema=schema)
    if args.json:
        screen.json(report.to_dict())
    else:
        _print(report, screen)
    return 0 if report.ok else 1


def _print(report: Verified, screen: Screen) -> None:
    headline, *lines = str(report).splitlines()
    screen.print(screen.style(headline, "bold", "green" if report.ok else "red"))
    for line in lines:
        room = " " * (len(line) - len(line.lstrip()))
        for each in wrapped(clean(line.lstrip()), screen.width and screen.width - len(room), "  "):
            screen.print(room + each)
    damaged = [file for file in report.files if file.verdict == "damaged"]
    if damaged:
        more = f"  # and {counted(len(damaged) - 1, 'more file')}" * (len(damaged) > 1)
        screen.print(f"To keep what is sound: {screen.style(f'recordkit repair {damaged[0].path}', 'cyan')}{more}")
