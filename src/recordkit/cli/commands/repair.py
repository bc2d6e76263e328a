"""repair: recover the intact records of a damaged file."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import recordkit as rk
from recordkit.wording import clean

from .._errors import in_shell_words
from .._parser import UsageError, add_json
from ..terminal.bar import working

if TYPE_CHECKING:
    import argparse

    from recordkit.tools import Repaired

    from ..terminal.screen import Screen

DETAILS: Final = """\
The damaged file is not changed. The new file appears once it is complete; the list of losses is next to it, in
_recordkit/. If no record is intact, nothing is written. Exit status 1 if anything was lost."""
EXAMPLES: Final = (
    "recordkit repair train-00007-of-00100.tfrecord",
    "recordkit repair broken.tfrecord.gz -o mended.tfrecord.gz",
    "recordkit repair written-by-spark.tfrecord --accept unmasked_crc",
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("file", metavar="FILE", nargs="+", help="a damaged file: uncompressed, gzip or zlib")
    parser.add_argument("-o", "--out", metavar="OUT", help="the new file (FILE.repaired)")
    parser.add_argument("--overwrite", action="store_true", help="replace the new file if it exists")
    parser.add_argument(
        "--nested", action="store_true", help="also recover records inside the payload of a damaged record"
    )
    parser.add_argument(
        "--accept",
        metavar="WAY",
        choices=["unmasked_crc", "zlib_crc", "zero_crc", "big_endian", "lf_to_crlf"],
        help="accept records that all deviate from the format in one way: %(choices)s",
    )
    add_json(parser)


def run(args: argparse.Namespace, screen: Screen) -> int:
    """Repair the files one by one."""
    if args.out is not None and len(args.file) > 1:
        message = f"-o names one file, but {len(args.file)} are to be repaired\n  Omit -o, or repair them one by one."
        raise UsageError(message)
    reports = []
    for source in args.file:
        if not Path(source).exists():
            rk.open(source)  # raises, and suggests names
        target = args.out or f"{source}.repaired"
        with working(screen):
            report = rk.repair(source, target, nested=args.nested, overwrite=args.overwrite, accept=args.accept)
        reports.append(report)
        if not args.json:
            _print(report, screen)
    if args.json:
        screen.json([_plain(report) for report in reports] if len(reports) > 1 else _plain(reports[0]))
    return 0 if all(report.ok for report in reports) else 1


def _plain(report: Repaired) -> dict[str, Any]:
    return {"ok": report.ok, **asdict(report), "lost_bytes": report.lost_bytes}


def _print(report: Repaired, screen: Screen) -> None:
    headline, *lines = in_shell_words(str(report)).splitlines()
    screen.print(screen.style(clean(headline), "bold", "green" if report.ok else "yellow"))
    for line in lines:
        screen.print(clean(line))
