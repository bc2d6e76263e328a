"""add: add fields without rewriting the dataset."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import recordkit as rk
from recordkit.wording import counted

from .._dataset_argument import known_rows, report_change
from .._parser import UsageError, add_json, add_target, field, flat, names, natural, options
from ..terminal.bar import working
from ._functions import function

if TYPE_CHECKING:
    import argparse

    from ..terminal.screen import Screen

DETAILS: Final = """\
Each FIELD is NAME=FILE.py:FUNCTION or NAME=MODULE:FUNCTION, a function of a row; NAME=VALUES.npy, an array
with one value per record; or a NAME alone, with --join or --value.

Without --out, the new fields are stored next to the records and no file is rewritten; recordkit reads both as
one. If a run is interrupted, the same command resumes it."""
EXAMPLES: Final = (
    "recordkit add data/ height=features.py:height_of --reads image --type int64",
    "recordkit add data/ split --join splits.parquet --on id",
    "recordkit add data/ caption --join captions.csv --on image_id=file --default ''",
    "recordkit add data/ embedding=embeddings.npy --out data-v2/",
    "recordkit add data/ source --value '\"web\"'",
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("path", metavar="DATA", help="the dataset")
    parser.add_argument("field", metavar="FIELD", nargs="+", help="NAME=FILE.py:FUNCTION, NAME=VALUES.npy, or NAME")
    parser.add_argument("--type", metavar="TYPE", help="the type of the new fields: int64, float32[768], string?, ...")
    made = parser.add_argument_group("fields from a function")
    made.add_argument("--reads", metavar="A,B", type=names, action="append", help="the fields it needs (default: all)")
    made.add_argument("--batched", action="store_true", help="it takes a batch of records and returns a column")
    made.add_argument("--skip-errors", action="store_true", help="leave the field missing if the function fails")
    made.add_argument("--processes", metavar="N", type=natural, help="number of processes, for slow Python functions")
    joined = parser.add_argument_group("fields from a table")
    joined.add_argument("--join", metavar="TABLE", help="a Parquet, CSV or Arrow file, or a dataset")
    joined.add_argument("--on", metavar="KEY", type=field, help="the key field; FIELD=COLUMN if the names differ")
    joined.add_argument("--column", metavar="NAME", help="the column of the values, if it has another name")
    joined.add_argument("--default", metavar="VALUE", help="for keys not in the table: JSON or text")
    parser.add_argument("--value", metavar="VALUE", help="one value for all records: JSON or text")
    parser.add_argument("--replace", action="store_true", help="replace existing fields of this name")
    parser.add_argument("--overlay", metavar="DIR", help="store the new fields there, for read-only data")
    add_target(parser, needed=False)
    add_json(parser)


def run(args: argparse.Namespace, screen: Screen) -> int:
    """Add the fields."""
    fields = dict(_source(text, args) for text in args.field)
    workers = rk.Processes(args.processes) if args.processes is not None else args.workers
    with working(screen, rows=known_rows(args.path, screen)):
        changed = rk.add_fields(
            args.path,
            fields,
            out=args.out,
            overlay=args.overlay,
            replace=args.replace,
            on_error="skip" if args.skip_errors else "raise",
            **{**options(args), "workers": workers},
        )
    where = "in new files" if args.out is not None else "in an overlay; no file was rewritten"
    words = f"{', '.join(changed.fields)}: {counted(changed.records, 'record')}, {where}"
    return report_change(changed, words, args, screen)


def _source(text: str, args: argparse.Namespace) -> tuple[str, Any]:
    name, _, source = text.partition("=")
    if args.join is not None or args.value is not None:
        if source:
            message = f"{text}: --join and --value need the name of the field alone\n  Write {name}."
            raise UsageError(message)
        return name, _joined(args) if args.join is not None else _typed(_value(args.value), args)
    if not source:
        message = f"{name}: its values have no source\n  Write {name}=FILE.py:FUNCTION, or pass --join or --value."
        raise UsageError(message)
    if source.endswith(".npy"):
        return name, _typed(_array(source), args)
    if args.type is None:
        message = f"{name}: the type of the function's values is missing\n  Pass --type, for example --type int64."
        raise UsageError(message)
    return name, rk.Computed(args.type, function(source), flat(args.reads), batched=args.batched)


def _typed(values: Any, args: argparse.Namespace) -> Any:
    return values if args.type is None else (args.type, values)


def _array(path: str) -> Any:
    import numpy as np

    if not Path(path).is_file():
        message = f"{path}: there is no such file"
        raise UsageError(message)
    return np.load(path, mmap_mode="r", allow_pickle=False)


def _joined(args: argparse.Namespace) -> Any:
    if args.on is None:
        message = "--join needs the key field of the records and the table\n  Pass --on FIELD, or --on FIELD=COLUMN."
        raise UsageError(message)
    field, _, column = args.on.partition("=")
    path = Path(args.join)
    table = rk.open(path) if path.is_dir() or ".tfrec" in path.name else str(path)
    more = {} if args.default is None else {"default": _value(args.default)}
    return rk.Joined(table, on=(field, column or field), column=args.column, dtype=args.type, **more)


def _value(text: str) -> Any:
    """Return a value given as JSON or text.

    >>> _value("3"), _value("[1, 2]"), _value("web")
    (3, [1, 2], 'web')
    """
    try:
        return json.loads(text)
    except ValueError:
        return text
