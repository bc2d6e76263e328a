"""The dataset that a command reads or changes: its options, its rows, and the report of what was changed."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

import recordkit as rk
from recordkit import progress
from recordkit.wording import clean, counted

from ._parser import add_fields, add_paths, given_paths, whole

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator

    from recordkit.dataset import Dataset
    from recordkit.storage.read import RecordFile
    from recordkit.tools import Changed

    from .terminal.screen import Screen

__all__ = [
    "add_reading",
    "add_selection",
    "known_rows",
    "known_total",
    "matches",
    "open_dataset",
    "report_change",
    "report_damage",
    "rows",
    "with_progress",
]

T = TypeVar("T")

_ROWS = 256
_SHOWN = 5


def add_reading(parser: argparse.ArgumentParser) -> None:
    """Add the dataset, and how to read it."""
    add_paths(parser)
    parser.add_argument("--split", metavar="NAME", help="only this split of the folder")
    parser.add_argument("--skip-damaged", action="store_true", help="skip damaged records, and report them at the end")
    parser.add_argument("--no-overlays", dest="overlays", action="store_false", help="ignore overlays")


def add_selection(parser: argparse.ArgumentParser) -> None:
    """Add the selection of records and fields."""
    add_fields(parser)
    holds = "only matching records, for example 'label == 3 and height > 200'"
    parser.add_argument("--where", metavar="EXPR", help=holds)
    parser.add_argument("--skip", metavar="N", type=whole, default=0, help="skip the first N of them")


def open_dataset(args: argparse.Namespace, **options: Any) -> Dataset:
    """Return the dataset."""
    on_error: Any = (lambda damage: None) if args.skip_damaged else "raise"
    return rk.open(given_paths(args), split=args.split, overlays=args.overlays, on_error=on_error, **options)


def known_total(dataset: Dataset, args: argparse.Namespace, screen: Screen) -> int | None:
    """Return the number of records, if progress is drawn and the number is known or quickly counted."""

    def known(file: RecordFile) -> bool:
        by_headers = args.where is not None and file.compression is None  # fast, compared with reading all of it
        return file.shard is not None or (by_headers and file.local is not None)

    watched = screen.draws and not args.skip_damaged
    return len(dataset) if watched and all(map(known, dataset.shards)) else None


def with_progress(found: Iterable[T], total: int | None) -> Iterator[T]:
    """Yield items, one per record, and report progress."""
    for number, each in enumerate(found, 1):
        if number % _ROWS == 0:
            progress.step("reading", number, total, "records")
        yield each


def report_damage(dataset: Dataset, screen: Screen) -> int:
    """Report the skipped damage, and return the status."""
    if not dataset.damage:
        return 0
    first, more = dataset.damage[0], len(dataset.damage) - 1
    others = f" (and {counted(more, 'more place')})" if more else ""
    screen.error(f"{first}{others}\nrecordkit verify lists all damage.")
    return 1


def rows(
    dataset: Dataset, args: argparse.Namespace, take: int | None, total: int | None = None
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the number and the fields of each selected record.

    Args:
        dataset: The dataset.
        args: The options of `add_selection`.
        take: The most records to yield; None for all.
        total: The number of records of the dataset, for progress.
    """
    if args.where is not None:
        found = _matching(dataset, args.where, args.fields, total)
        yield from islice(found, args.skip, None if take is None else args.skip + take)
        return
    if args.fields is not None:
        dataset = dataset.select(*args.fields)
    dataset = dataset.skip(args.skip) if take is None else dataset.skip(args.skip).take(take)
    size = _ROWS if take is None else max(1, min(take, _ROWS))
    wanted = None if total is None else min(max(0, total - args.skip), total if take is None else take)
    yield from enumerate(
        with_progress((row for batch in dataset.batch(size) for row in batch.rows()), wanted), args.skip
    )


def matches(dataset: Dataset, where: str, total: int | None = None) -> Iterator[tuple[int, Any, Any]]:
    """Yield the number of the first record, the columns and the mask of each batch."""
    from recordkit.expressions import Expression

    expression = Expression(where)
    if dataset.schema is not None:
        expression.check(dataset.schema)
    first = 0
    for batch in dataset.batch(_ROWS):
        yield first, batch, expression.mask(batch)
        first += len(batch)
        progress.step("looking at records", first, total, "records")


def _matching(
    dataset: Dataset, where: str, fields: list[str] | None, total: int | None
) -> Iterator[tuple[int, dict[str, Any]]]:
    from recordkit.expressions import Expression

    shown = dataset.schema.names if fields is None and dataset.schema is not None else tuple(fields or ())
    needed = dict.fromkeys([*shown, *Expression(where).names])
    for first, batch, mask in matches(dataset.select(*needed), where, total):
        for number in mask.nonzero()[0].tolist():
            row = batch.row(number)
            yield first + number, {name: row[name] for name in shown}


# --- Changes


def known_rows(path: str, screen: Screen) -> int | None:
    """Return the number of records, if progress is drawn."""
    return len(rk.open(path)) if screen.draws else None


def report_change(changed: Changed, words: str, args: argparse.Namespace, screen: Screen, **facts: Any) -> int:
    """Print what was changed, and return the status: 1 if some values could not be made."""
    if args.json:
        failures = [{"record": each.record, "words": each.words} for each in changed.failures]
        made = {"path": changed.path, "records": changed.records, "fields": list(changed.fields)}
        screen.json({**made, "failures": failures, **facts})
    else:
        screen.print(screen.style(clean(words), "bold", "green"))
        screen.print(f"  {clean(changed.path)}")
        _print_failures(changed, screen)
    return 1 if changed.failures else 0


def _print_failures(changed: Changed, screen: Screen) -> None:
    if not changed.failures:
        return
    words = f"  {counted(len(changed.failures), 'value')} could not be computed and stayed missing:"
    screen.print(screen.style(words, "yellow"))
    for failure in changed.failures[:_SHOWN]:
        screen.print(f"    record {failure.record:,}: {clean(failure.words)}")
    if len(changed.failures) > _SHOWN:
        screen.print(f"    and {len(changed.failures) - _SHOWN:,} more")
