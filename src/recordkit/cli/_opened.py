"""Opened: the dataset that a command is about, with the options that say how to read it."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

import recordkit as rk

from ._parser import add_fields, add_paths, where, whole
from ._screen import counted

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from recordkit.dataset import Dataset

    from ._screen import Screen

__all__ = ["add_reading", "add_selection", "opened", "rows", "tell_damage"]

_ROWS = 256


def add_reading(parser: argparse.ArgumentParser) -> None:
    """Take the dataset, and how to read it."""
    add_paths(parser)
    parser.add_argument("--split", metavar="NAME", help="only this split of a folder that has several")
    parser.add_argument("--skip-damaged", action="store_true", help="pass over damaged records, and say so at the end")
    parser.add_argument(
        "--no-overlays", dest="overlays", action="store_false", help="without what was changed beside the records"
    )


def add_selection(parser: argparse.ArgumentParser) -> None:
    """Take which records and fields are wanted."""
    add_fields(parser)
    holds = "only records for which this holds, as 'label == 3 and height > 200'"
    parser.add_argument("--where", metavar="EXPR", help=holds)
    parser.add_argument("--skip", metavar="N", type=whole, default=0, help="pass over the first N of them")


def opened(args: argparse.Namespace, **options: Any) -> Dataset:
    """Return the dataset."""
    on_error: Any = (lambda damage: None) if args.skip_damaged else "raise"
    return rk.open(where(args), split=args.split, overlays=args.overlays, on_error=on_error, **options)


def tell_damage(dataset: Dataset, screen: Screen) -> int:
    """Say what was passed over, and return the status."""
    if not dataset.damage:
        return 0
    first, more = dataset.damage[0], len(dataset.damage) - 1
    others = f" (and {counted(more, 'more place')})" if more else ""
    screen.error(f"{first}{others}\nrecordkit verify lists all damage.")
    return 1


def rows(dataset: Dataset, args: argparse.Namespace, take: int | None) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the number and the fields of each record that is wanted."""
    if args.where is not None:
        found = _matching(dataset, args.where, args.fields)
        yield from islice(found, args.skip, None if take is None else args.skip + take)
        return
    if args.fields is not None:
        dataset = dataset.select(*args.fields)
    dataset = dataset.skip(args.skip) if take is None else dataset.skip(args.skip).take(take)
    size = _ROWS if take is None else max(1, min(take, _ROWS))
    number = args.skip
    for batch in dataset.batch(size):
        for row in batch.rows():
            yield number, row
            number += 1


def matches(dataset: Dataset, where: str) -> Iterator[tuple[int, Any, Any]]:
    """Yield the number of the first record, the columns and the mask of each batch."""
    from recordkit.expressions import Expression

    expression = Expression(where)
    if dataset.schema is not None:
        expression.check(dataset.schema)
    first = 0
    for batch in dataset.batch(_ROWS):
        yield first, batch, expression.mask(batch)
        first += len(batch)


def _matching(dataset: Dataset, where: str, fields: list[str] | None) -> Iterator[tuple[int, dict[str, Any]]]:
    from recordkit.expressions import Expression

    shown = dataset.schema.names if fields is None and dataset.schema is not None else tuple(fields or ())
    needed = dict.fromkeys([*shown, *Expression(where).names])
    for first, batch, mask in matches(dataset.select(*needed), where):
        for number in mask.nonzero()[0].tolist():
            row = batch.row(number)
            yield first + number, {name: row[name] for name in shown}
