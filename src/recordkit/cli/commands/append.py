"""append: more records, from JSON lines or another dataset."""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

import recordkit as rk
from recordkit.wording import clean, counted

from .._parser import WrongUse, add_json
from ..terminal.bar import working

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator

    from recordkit.storage import Writer

    from ..terminal.screen import Screen

DETAILS: Final = """\
SOURCE is JSON lines, written as `recordkit cat` writes them, or a dataset with the same fields; - is the
standard input. A folder gets new shards, a lone file is extended in place. All of it is appended, or nothing."""
EXAMPLES: Final = (
    "recordkit append data/ more.jsonl",
    "recordkit append data/ monday/ --split train",
    "curl -s https://example.org/rows | jq -c '{id, label}' | recordkit append data/ -",
)

_ROWS = 1024
_LONGEST = 1 << 20


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.add_argument("path", metavar="DATA", help="the dataset that grows")
    parser.add_argument("source", metavar="SOURCE", help="JSON lines, a dataset, or -")
    parser.add_argument("--split", metavar="NAME", help="the split that the records belong to, where there are several")
    parser.add_argument("--shard-size", metavar="SIZE", help="how large a new file may grow (256MB)")
    parser.add_argument("--compression", choices=["gzip", "zlib"], help="of new files; a lone file keeps its own")
    parser.add_argument("--cut-torn-tail", action="store_true", help="cut off the last record of a file if it is torn")
    parser.add_argument("--skip-errors", action="store_true", help="put rows that do not fit into quarantine")
    add_json(parser)


def run(args: argparse.Namespace, screen: Screen) -> int:
    """Append the records."""
    options = {"split": args.split, "compression": args.compression, "cut_torn_tail": args.cut_torn_tail}
    if args.shard_size is not None:
        options["shard_size"] = args.shard_size
    on_error: Any = "skip" if args.skip_errors else "raise"
    with _source(args.source) as (lines, dataset), working(screen, rows=_total(dataset, screen)):
        before = len(rk.open(args.path))
        with rk.append(args.path, on_error=on_error, **options) as writer:
            if lines is not None:
                _write_lines(writer, lines, args)
            else:
                _write_batches(writer, dataset)
    written = writer.close()
    facts = {"path": args.path, "appended": written.records, "skipped": written.skipped}
    total = before + written.records
    if args.json:
        screen.json({**facts, "records": total})
    else:
        words = f"{counted(written.records, 'record')} appended, {total:,} in all"
        screen.print(screen.style(words, "bold", "green"))
        screen.print(f"  {clean(args.path)}")
        if written.skipped:
            screen.print(
                f"  {counted(written.skipped, 'row')} did not fit: recordkit.quarantined({args.path!r}) has them"
            )
    return 1 if written.skipped else 0


@contextmanager
def _source(text: str) -> Iterator[tuple[Iterable[bytes] | None, Any]]:
    """Give lines, or a dataset."""
    if text == "-":
        data: IO[bytes] = sys.stdin.buffer
        first = data.readline(_LONGEST)
        if first.lstrip()[:1] in (b"{", b""):
            yield chain([first], data), None
            return
        message = "-: the standard input is no JSON lines\n  Save records to a file, and append that."
        raise WrongUse(message)
    path = Path(text)
    if path.is_file() and _starts_as_lines(path):
        with path.open("rb") as file:
            yield file, None
        return
    yield None, rk.open(text)


def _total(dataset: Any, screen: Screen) -> int | None:
    """Return how many records come, if someone watches and it is known: not of lines."""
    return len(dataset) if dataset is not None and screen.draws else None


def _starts_as_lines(path: Path) -> bool:
    with path.open("rb") as file:
        start = file.read(256).lstrip()
    return start.startswith(b"{") and start[1:].lstrip()[:1] in (b'"', b"}")


def _write_lines(writer: Writer, lines: Iterable[bytes], args: argparse.Namespace) -> None:
    if writer.schema is None:
        message = f"{args.path}: its payloads are no Examples, and rows would be\n  Append a dataset of such payloads."
        raise WrongUse(message)
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                writer.write(_row(line, writer))
            except rk.SchemaError as error:
                raise _in_line(error, args.source, number) from None


def _row(line: bytes, writer: Writer) -> Any:
    try:
        value = json.loads(line)
    except ValueError as error:
        message = f"this is no JSON: {error}"
        raise rk.SchemaError(message) from None
    if not isinstance(value, dict):
        message = f"expected an object, found {type(value).__name__}"
        raise rk.SchemaError(message)
    from .._values import row_of

    assert writer.schema is not None
    return row_of(value, writer.schema)


def _in_line(error: rk.SchemaError, source: str, number: int) -> rk.SchemaError:
    return rk.SchemaError(f"{source}, line {number}: {error}", field=error.field, record=number - 1)


def _write_batches(writer: Writer, dataset: Any) -> None:
    if dataset.schema is None:
        for payload in dataset.records():
            writer.write_raw(payload)
        return
    for batch in dataset.batch(_ROWS):
        writer.write_batch(batch)
