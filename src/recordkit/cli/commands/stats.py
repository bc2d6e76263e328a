"""stats: summarize each field."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import recordkit as rk
from recordkit.wording import clean, counted

from .._dataset_argument import add_reading, open_dataset, report_damage
from .._parser import add_fields, add_json, add_workers, natural
from ..terminal.bar import working
from ..terminal.screen import wrapped

if TYPE_CHECKING:
    import argparse

    from recordkit.tools import Stats

    from ..terminal.screen import Screen

DETAILS: Final = """\
One pass over the records, in bounded memory. For byte strings, the numbers are sizes in bytes; counts marked
with ~ are estimates. --json adds quantiles, histograms and top values."""
EXAMPLES: Final = (
    "recordkit stats train/",
    "recordkit stats train/ --fields label,tokens",
    "recordkit stats train/ --sample 10000        # the same ones each time",
)

_ROOM_FOR_MEAN, _ROOM_FOR_STD = 95, 110
_HEADS: Final = ("field", "type", "missing", "distinct", "min", "median", "max", "mean", "std", "histogram")


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_reading(parser)
    add_fields(parser)
    parser.add_argument("--sample", metavar="N", type=natural, help="use a random sample of N records")
    add_workers(parser)
    add_json(parser)


def run(args: argparse.Namespace, screen: Screen) -> int:
    """Print the statistics."""
    dataset = open_dataset(args)
    with working(screen):
        found = rk.stats(dataset, fields=args.fields, workers=args.workers, sample=args.sample)
    if args.json:
        screen.json(found.to_dict())
    else:
        _print(found, screen)
    return report_damage(dataset, screen)


def _print(found: Stats, screen: Screen) -> None:
    from recordkit.tools.stats import table_line

    from ..terminal.cells import histogram

    sample = f", a sample of {found.total:,}" if found.sampled else ""
    screen.print(screen.style(f"{counted(found.rows, 'record')}{sample}", "bold"))
    lines = [table_line(field, sampled=found.sampled) for field in found.fields.values()]
    rows = [
        [clean(line[0]), *line[1:9], histogram(field)] for line, field in zip(lines, found.fields.values(), strict=True)
    ]
    rows = [_narrowed(row, screen.width) for row in rows]
    screen.table(_HEADS, rows, right=_HEADS[2:9], shrink=("type", "field", "distinct"))
    noted = [(clean(line[0]), clean(line[9])) for line in lines if line[9]]
    if noted:
        screen.print()
    width = max((len(name) for name, _ in noted), default=0)
    for name, words in noted:
        room = None if screen.width is None else screen.width - width - 2
        for at, each in enumerate(wrapped(words, room)):
            screen.print(f"{screen.style(('' if at else name).ljust(width), 'cyan')}  {each}".rstrip())


def _narrowed(row: list[str], width: int | None) -> list[str]:
    """Return a row without its least important cells, if there is no room for them."""
    mean = row[7] if width is None or width >= _ROOM_FOR_MEAN else ""
    return [*row[:7], mean, row[8] if width is None or width >= _ROOM_FOR_STD else "", row[9]]
