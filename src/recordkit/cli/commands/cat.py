"""cat: print records as JSON lines."""

from __future__ import annotations

import json
from contextlib import nullcontext
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from .._dataset_argument import (
    add_reading,
    add_selection,
    known_total,
    matches,
    open_dataset,
    report_damage,
    rows,
    with_progress,
)
from .._parser import UsageError, given_paths, whole
from ..terminal.bar import working
from ..terminal.screen import clean_json

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from recordkit.dataset import Dataset

    from ..terminal.screen import Screen

DETAILS: Final = """\
Numbers are numbers; NaN and infinities, which JSON lacks, are "NaN", "Infinity" and "-Infinity"; bytes and
pictures are base64 (--bytes size prints their sizes instead); times are text, arrays are nested lists, and
missing values are null. `recordkit append` reads these lines."""
EXAMPLES: Final = (
    "recordkit cat train/ | jq .label | sort | uniq -c",
    "recordkit cat train/ --fields id,caption --where 'len(tokens) > 512' --take 10",
    "gsutil cat gs://bucket/a.tfrecord.gz | recordkit cat - --bytes size",
    "recordkit cat train/ --where 'label == 3' --tfrecord > three.tfrecord",
    "recordkit cat events.tfrecord --raw --take 1 | protoc --decode_raw",
)

_CHUNK = 512


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_reading(parser)
    add_selection(parser)
    parser.add_argument("--take", metavar="N", type=whole, help="stop after N records")
    parser.add_argument("--bytes", choices=["base64", "size"], default="base64", help="how byte strings are printed")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--raw", action="store_true", help="print the raw payloads, without framing")
    how.add_argument("--tfrecord", action="store_true", help="print raw records, as in a TFRecord file")


def run(args: argparse.Namespace, screen: Screen) -> int:
    """Print the records."""
    dataset = open_dataset(args)
    if args.raw or args.tfrecord:
        _check_binary(args, screen)
    elif dataset.schema is None:
        raise _no_fields(dataset)
    # Lines on a terminal show progress themselves, and a bar would get between them.
    with nullcontext() if screen.out.isatty() else working(screen):
        total = None if screen.out.isatty() else known_total(dataset, args, screen)
        if args.raw or args.tfrecord:
            _write(dataset, args, screen, total)
        else:
            _print(dataset, args, screen, total)
    return report_damage(dataset, screen)


def _print(dataset: Dataset, args: argparse.Namespace, screen: Screen, total: int | None) -> None:
    from .._values import line_of

    for _, row in rows(dataset, args, args.take, total):
        line = line_of(_sized(row) if args.bytes == "size" else row)
        screen.print(clean_json(json.dumps(line, ensure_ascii=False, allow_nan=False)))


def _no_fields(dataset: Dataset) -> UsageError:
    return UsageError(
        f"{dataset.shards[0].name}: these payloads are not Examples, so they have no fields\n"
        "  recordkit cat --raw prints them unchanged; recordkit info says what they look like."
    )


def _sized(value: Any) -> Any:
    from recordkit.columns import BytesColumn

    if isinstance(value, dict):
        return {name: _sized(each) for name, each in value.items()}
    if isinstance(value, bytes):
        return {"bytes": len(value)}
    return [_sized(each) for each in value] if isinstance(value, BytesColumn) else value


# --- Raw


def _check_binary(args: argparse.Namespace, screen: Screen) -> None:
    if args.fields is not None:
        message = (
            "--fields is for JSON lines only\n  recordkit drop DATA FIELD --out DIR writes records without a field."
        )
        raise UsageError(message)
    if screen.out.isatty():
        message = "binary output would garble the terminal\n  Redirect it to a file or a pipe."
        raise UsageError(message)


def _write(dataset: Dataset, args: argparse.Namespace, screen: Screen, total: int | None) -> None:
    out = screen.out.buffer
    for payload in _payloads(dataset, args, total):
        out.write(_framed(payload) if args.tfrecord else payload)
    out.flush()


def _framed(payload: bytes) -> bytes:
    from recordkit import records

    return records.pack(payload)


def _payloads(dataset: Dataset, args: argparse.Namespace, total: int | None) -> Iterator[bytes]:
    if args.where is None:
        dataset = dataset.skip(args.skip)
        yield from with_progress(
            (dataset if args.take is None else dataset.take(args.take)).records(), args.take or total
        )
        return
    if given_paths(args) == "-" or args.skip_damaged:
        message = "--where with raw output reads records twice\n  Save standard input to a file, or repair the dataset."
        raise UsageError(message)
    from recordkit.expressions import Expression

    payloads = open_dataset(args, raw=True)
    numbers = (
        first + number
        for first, _, mask in matches(dataset.select(*Expression(args.where).names), args.where, total)
        for number in mask.nonzero()[0].tolist()
    )
    chosen = islice(numbers, args.skip, None if args.take is None else args.skip + args.take)
    while some := list(islice(chosen, _CHUNK)):
        yield from payloads[some]
