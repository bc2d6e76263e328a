"""Parser: the arguments of a command, and those that several commands share."""

from __future__ import annotations

import argparse
import shutil
import stat
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from recordkit.filesystems import mode_of

from ._commands import SUMMARIES

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

__all__ = [
    "UsageError",
    "add_fields",
    "add_json",
    "add_paths",
    "add_target",
    "add_workers",
    "field",
    "flat",
    "given_paths",
    "names",
    "natural",
    "options",
    "parser_of",
    "port",
    "whole",
    "without_side_files",
]

_WIDEST = 100


class UsageError(Exception):
    """Wrong usage. The message says what is wrong, and on a second line what to do."""


class _CommandParser(argparse.ArgumentParser):
    """A parser that reports errors in two lines."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}\n  Usage: {self.prog} --help")  # noqa: EM102


def parser_of(name: str, module: ModuleType) -> argparse.ArgumentParser:
    """Return the parser of a command."""
    examples = "\n".join(f"  {line}" for line in module.EXAMPLES)
    width = min(shutil.get_terminal_size().columns, _WIDEST)
    details = "\n\n".join(
        textwrap.fill(" ".join(paragraph.split()), width, break_long_words=False, break_on_hyphens=False)
        for paragraph in getattr(module, "DETAILS", "").split("\n\n")
    )
    parser = _CommandParser(
        prog=f"recordkit {name}",
        description=f"{SUMMARIES[name]}\n\n{details}".strip(),
        epilog=f"examples:\n{examples}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    module.arguments(parser)
    return parser


# --- Shared arguments


def add_paths(parser: argparse.ArgumentParser, *, many: bool = True) -> None:
    """Add the argument PATH."""
    text = "a folder, a file, a glob, name@16 for 16 shards, or - for standard input"
    parser.add_argument("path", metavar="PATH", nargs="+" if many else None, help=text)


def given_paths(args: argparse.Namespace) -> Any:
    """Return PATH as `recordkit.open` takes it."""
    return args.path[0] if len(args.path) == 1 else args.path


def without_side_files(paths: list[str]) -> tuple[list[str], list[tuple[str, str]]]:
    """Return the paths to read, and those that cannot hold records, each with the reason.

    The shell may have added these for an asterisk. Missing paths are kept, so that opening them fails.
    """
    from recordkit.storage.find import reason_left_out
    from recordkit.storage.format import SIDE

    left_out = []
    for path in paths if len(paths) > 1 else ():
        reason = reason_left_out(Path(path).name)
        mode = mode_of(path)
        if reason is not None and (stat.S_ISREG(mode) or (mode and Path(path).name == SIDE)):
            left_out.append((path, reason))
    names = {path for path, _ in left_out}
    held = [path for path in paths if path not in names]
    return (held, left_out) if held else (paths, [])


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add `--json`."""
    parser.add_argument("--json", action="store_true", help="print JSON")


def add_workers(parser: argparse.ArgumentParser) -> None:
    """Add `--workers`."""
    parser.add_argument(
        "--workers", metavar="N", type=_workers, default="auto", help="number of threads (default: one per processor)"
    )


def add_fields(parser: argparse.ArgumentParser) -> None:
    """Add `--fields`."""
    parser.add_argument("--fields", metavar="A,B", type=names, help="decode only these fields")


def add_target(parser: argparse.ArgumentParser, *, needed: bool) -> None:
    """Add `--out` and its options."""
    more = "" if needed else "; without it, the change is kept in an overlay and no file is rewritten"
    parser.add_argument("--out", metavar="DIR", required=needed, help=f"write a new dataset{more}")
    parser.add_argument("--overwrite", action="store_true", help="replace DIR, once the new dataset is complete")
    parser.add_argument(
        "--no-resume", dest="resume", action="store_false", help="start over, even if an interrupted run can be resumed"
    )
    add_workers(parser)


def options(args: argparse.Namespace) -> dict[str, Any]:
    """Return the options of `add_target` for the tools."""
    return {"workers": args.workers, "resume": args.resume, "overwrite": args.overwrite}


# --- Types


def natural(text: str) -> int:
    """Parse an integer of at least 1."""
    return _number(text, 1)


def _workers(text: str) -> Any:
    return text if text == "auto" else natural(text)


def whole(text: str) -> int:
    """Parse an integer of at least 0."""
    return _number(text, 0)


def port(text: str) -> int:
    """Parse a port number."""
    return _number(text, 0, 65535)


def _number(text: str, least: int, most: int | None = None) -> int:
    try:
        number = int(text)
    except ValueError:
        number = -1
    if number < least or (most is not None and number > most):
        message = f"expected a number from {least} {f'to {most}' if most is not None else 'up'}, found {text!r}"
        raise argparse.ArgumentTypeError(message)
    return number


def field(text: str) -> str:
    """Parse the name of a field. The shell completes arguments of this type, and of `names`, with fields."""
    return text


def names(text: str) -> list[str]:
    """Parse names of fields separated by commas."""
    return [name for name in text.split(",") if name]


def flat(lists: Sequence[Sequence[str]] | None) -> list[str] | None:
    """Return all names of an option that may be repeated; None if it was not used."""
    return None if lists is None else [name for each in lists for name in each]
