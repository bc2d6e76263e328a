"""count: count the records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from .._dataset_argument import add_reading, known_total, matches, open_dataset, report_damage, with_progress
from .._parser import add_json
from ..terminal.bar import working

if TYPE_CHECKING:
    import argparse

    from ..terminal.screen import Screen

DETAILS: Final = """\
Files are counted by their record headers; with a manifest, they are not even opened. `recordkit verify` reads
every byte."""
EXAMPLES: Final = (
    "recordkit count train/",
    "recordkit count --files 'train-*.tfrecord.gz'",
    "recordkit count train/ --where 'label == 3'",
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_reading(parser)
    parser.add_argument("--where", metavar="EXPR", help="only matching records")
    parser.add_argument("--files", action="store_true", help="also print the count of each file")
    add_json(parser)


def run(args: argparse.Namespace, screen: Screen) -> int:
    """Print the count."""
    dataset = open_dataset(args)
    with working(screen):
        records = _count(dataset, args, screen)
        files = {file.name: file.count for file in dataset.shards} if args.files else {}
    if args.json:
        screen.json({"records": records, **({"files": files} if args.files else {})})
    elif args.files:
        screen.table(["records", "file"], [[f"{count:,}", name] for name, count in files.items()], right=["records"])
        screen.print(f"{records:,} in total")
    else:
        screen.print(str(records))
    return report_damage(dataset, screen)


def _count(dataset: Any, args: argparse.Namespace, screen: Screen) -> int:
    if args.where is not None:
        from recordkit.expressions import Expression

        selected = dataset.select(*Expression(args.where).names)
        total = known_total(dataset, args, screen)
        return sum(int(mask.sum()) for _, _, mask in matches(selected, args.where, total))
    from recordkit.dataset import summarize

    if args.skip_damaged or summarize(dataset).bytes is None:  # a pipe has no length
        return sum(1 for _ in with_progress(dataset.records(), None))
    return len(dataset)
