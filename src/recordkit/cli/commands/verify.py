"""verify: check every byte against its checksums."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import recordkit as rk
from recordkit.wording import clean, counted

from .._parser import add_json, add_paths, add_workers, given_paths
from ..terminal.bar import working
from ..terminal.screen import wrapped

if TYPE_CHECKING:
    import argparse

    from recordkit.tools import Verified

    from ..terminal.screen import Screen

DETAILS: Final = """\
Reads every byte once, and checks the framing and both checksums of every record, the checksums of gzip and
zlib, the manifest and the indexes. The files are not changed. Exit status 1 if anything is wrong."""
EXAMPLES: Final = (
    "recordkit verify train/",
    "recordkit verify train/ --check examples        # are they all Examples that fit the schema?",
    "recordkit verify train/ --check images          # can every picture be decoded to its end?",
    "recordkit verify 'gs-mirror/*.tfrecord' --json | jq '.files[] | select(.ok | not) | .path'",
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_paths(parser)
    parser.add_argument("--check", choices=["records", "examples", "images"], default="records", help="what to check")
    parser.add_argument("--schema", metavar="FILE", help="a schema.json that the Examples have to match")
    add_workers(parser)
    add_json(parser)


def run(args: argparse.Namespace, screen: Screen) -> int:
    """Print the findings."""
    schema = rk.Schema.load(args.schema) if args.schema is not None else None
    with working(screen):
        report = rk.verify(given_paths(args), check=args.check, workers=args.workers, schema=schema)
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
        screen.print(f"Recover the intact records: {screen.style(f'recordkit repair {damaged[0].path}', 'cyan')}{more}")
