"""append: append records from JSON lines or another dataset."""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

import recordkit as rk
from recordkit.wording import clean, counted

from .._parser import UsageError, add_json
from ..terminal.bar import working

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator

    from recordkit.storage.write import Writer

    from ..terminal.screen import Screen

DETAILS: Final = """\
SOURCE is JSON lines, as printed by `recordkit cat`, or a dataset with the same fields; - is standard input. A
folder gets new shards, a single file is extended in place. Either everything is appended or nothing."""
EXAMPLES: Final = (
    "recordkit append data/ more.jsonl",
    "recordkit append data/ monday/ --split train",
    "curl -s https://example.org/rows | jq -c '{id, label}' | recordkit append data/ -",
)

_ROWS = 1024
_LONGEST = 1 << 20


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("path", metavar="DATA", help="the dataset to extend")
    parser.add_argument("source", metavar="SOURCE", help="JSON lines, a dataset, or -")
    parser.add_argument("--split", metavar="NAME", help="the split of the records, if there are several")
    parser.add_argument("--shard-size", metavar="SIZE", help="maximum size of a new file (256MB)")
    parser.add_argument("--compression", choices=["gzip", "zlib"], help="of new files; a single file keeps its own")
    parser.add_argument("--cut-torn-tail", action="store_true", help="remove a truncated record at the end of a file")
    parser.add_argument("--skip-errors", action="store_true", help="put invalid rows into quarantine")
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
        words = f"{counted(written.records, 'record')} appended, {total:,} in total"
        screen.print(screen.style(words, "bold", "green"))
        screen.print(f"  {clean(args.path)}")
        if written.skipped:
            rows = counted(written.skipped, "row")
            screen.print(f"  {rows} did not match the schema: see recordkit.quarantined({args.path!r})")
    return 1 if written.skipped else 0


@contextmanager
def _source(text: str) -> Iterator[tuple[Iterable[bytes] | None, Any]]:
    """Yield the lines, or else the dataset."""
    if text == "-":
        data: IO[bytes] = sys.stdin.buffer
        first = data.readline(_LONGEST)
        if first.lstrip()[:1] in (b"{", b""):
            yield chain([first], data), None
            return
        message = "-: standard input is not JSON lines\n  Save the records to a file and append that."
        raise UsageError(message)
    path = Path(text)
    if path.is_file() and _starts_as_lines(path):
        with path.open("rb") as file:
            yield file, None
        return
    yield None, rk.open(text)


def _total(dataset: Any, screen: Screen) -> int | None:
    """Return the number of records to append, if progress is drawn and the number is known: not for lines."""
    return len(dataset) if dataset is not None and screen.draws else None


def _starts_as_lines(path: Path) -> bool:
    with path.open("rb") as file:
        start = file.read(256).lstrip()
    return start.startswith(b"{") and start[1:].lstrip()[:1] in (b'"', b"}")


def _write_lines(writer: Writer, lines: Iterable[bytes], args: argparse.Namespace) -> None:
    if writer.schema is None:
        message = f"{args.path}: its payloads are not Examples\n  Append a dataset with such payloads."
        raise UsageError(message)
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
        message = f"invalid JSON: {error}"
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
