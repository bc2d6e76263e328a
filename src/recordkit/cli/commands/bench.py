"""bench: measure how fast a dataset is read, compared with the raw disk."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Final

from recordkit import progress
from recordkit.engines import count

from .._dataset_argument import add_reading, open_dataset
from .._parser import UsageError, add_fields, add_json, add_workers
from ..terminal.bar import working

if TYPE_CHECKING:
    import argparse

    from ..terminal.screen import Screen
    from ._measure import Measured

DETAILS: Final = """\
Reads the dataset in several ways, for a few seconds each. Repeated reads come from memory, which separates the
cost of recordkit from the cost of the disk. The sizes of records and columns are uncompressed. On a shared
machine, run it twice."""
EXAMPLES: Final = ("recordkit bench train/", "recordkit bench train/ --fields label,tokens --seconds 5")

_WIDTH: Final = 24


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_reading(parser)
    add_fields(parser)
    parser.add_argument("--seconds", metavar="S", type=float, default=2.0, help="seconds per measurement (2)")
    add_workers(parser)
    add_json(parser)


def run(args: argparse.Namespace, screen: Screen) -> int:
    """Print the speeds."""
    from ._measure import measurements

    dataset = open_dataset(args)
    if any(file.local is None for file in dataset.shards):
        message = "-: a pipe cannot be measured: it can be read only once\n  Pass a file or a folder."
        raise UsageError(message)
    if args.fields is not None:
        dataset = dataset.select(*args.fields)
    measured = []
    with working(screen):
        for number, one in enumerate(measurements(dataset, args.seconds, args.workers), 1):
            measured.append(one)
            progress.step("measuring", number, 6, "ways")
    if args.json:
        screen.json({"measured": [asdict(one) for one in measured], "workers": count(args.workers)})
    else:
        _print(measured, screen)
    return 0


def _print(measured: list[Measured], screen: Screen) -> None:
    from recordkit.wording import format_size

    most = max(one.bytes_per_second or 0.0 for one in measured)
    rows = []
    for one in measured:
        speed, rate = one.bytes_per_second, one.records_per_second
        bar = "━" * max(1, round(speed / most * _WIDTH)) if speed else ""
        rows.append(
            [
                one.what,
                f"{format_size(round(speed))}/s" if speed else "",
                f"{_rounded(rate):,}" if rate else "",
                screen.style(bar, "cyan"),
            ]
        )
    screen.table(("way", "speed", "records/s", ""), rows, right=("speed", "records/s"))


def _rounded(rate: float) -> int:
    """Return a rate, rounded to three digits."""
    return int(float(f"{rate:.3g}"))
