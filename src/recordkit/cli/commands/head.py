"""head: print the first records."""

from __future__ import annotations

import json
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from recordkit.wording import clean

from .._dataset_argument import add_reading, add_selection, known_total, open_dataset, report_damage, rows
from .._parser import add_json, whole
from ..terminal.bar import working
from ..terminal.screen import cells, clean_json, cut

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable

    from ..terminal.screen import Screen

EXAMPLES: Final = (
    "recordkit head train/",
    "recordkit head -n 1 --skip 4811 train-00007-of-00100.tfrecord",
    "recordkit head train/ --fields id,caption --where 'label == 3'",
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_reading(parser)
    parser.add_argument("-n", dest="count", metavar="N", type=whole, default=5, help="number of records (5)")
    add_selection(parser)
    add_json(parser)


def run(args: argparse.Namespace, screen: Screen) -> int:
    """Print the first records."""
    dataset = open_dataset(args)
    if dataset.schema is not None:
        found: Iterable[tuple[int, Any]] = rows(dataset, args, args.count)
        if args.where is not None:  # the matching records may be far down
            with working(screen):
                found = list(rows(dataset, args, args.count, known_total(dataset, args, screen)))
    else:
        found = enumerate(islice(dataset.skip(args.skip).records(), args.count), args.skip)
    if args.json:
        lines = [{"record": number, **_facts(value)} for number, value in found]
        screen.print(clean_json(json.dumps(lines, indent=2, ensure_ascii=False, allow_nan=False)))
    else:
        for number, value in found:
            _print(number, value, screen)
    return report_damage(dataset, screen)


def _facts(value: Any) -> dict[str, Any]:
    from .._values import line_of

    return {"fields": line_of(value)} if isinstance(value, dict) else line_of({"payload": value})


def _print(number: int, value: Any, screen: Screen) -> None:
    from ..terminal.cells import value_words

    screen.print(screen.style(f"record {number:,}", "bold"))
    row = value if isinstance(value, dict) else {"payload": value}
    names = {name: clean(name) for name in row}
    width = min(max(map(cells, names.values()), default=0), 32)
    for name, each in row.items():
        label = cut(names[name], width)
        room = None if screen.width is None else max(8, screen.width - width - 4)
        words = cut(value_words(each), room)
        label += " " * (width - cells(label))
        screen.print(f"  {screen.style(label, 'cyan')}  {screen.style(words, 'dim') if each is None else words}")
