"""Parser: the arguments of one command, and the words that are the same in all of them."""

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
    "WrongUse",
    "add_fields",
    "add_json",
    "add_paths",
    "add_target",
    "add_workers",
    "field",
    "flat",
    "leave_out",
    "names",
    "natural",
    "options",
    "parser_of",
    "port",
    "where",
    "whole",
]

_WIDEST = 100


class WrongUse(Exception):  # noqa: N818 - what it is, and no error of the program
    """The command was not called as it should be. Says what is wrong, and on a second line what to do."""


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in two lines."""

    def error(self, message: str) -> NoReturn:
        raise WrongUse(f"{message}\n  How it is used: {self.prog} --help")  # noqa: EM102


def parser_of(name: str, module: ModuleType) -> argparse.ArgumentParser:
    """Return the parser of a command."""
    examples = "\n".join(f"  {line}" for line in module.EXAMPLES)
    width = min(shutil.get_terminal_size().columns, _WIDEST)
    details = "\n\n".join(
        textwrap.fill(" ".join(paragraph.split()), width, break_long_words=False, break_on_hyphens=False)
        for paragraph in getattr(module, "DETAILS", "").split("\n\n")
    )
    parser = _Parser(
        prog=f"recordkit {name}",
        description=f"{SUMMARIES[name]}\n\n{details}".strip(),
        epilog=f"examples:\n{examples}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    module.arguments(parser)
    return parser


# --- What several commands take


def add_paths(parser: argparse.ArgumentParser, *, many: bool = True) -> None:
    """Take the dataset."""
    text = "a folder, a file, a glob, name@16 for a set of 16 shards, or - for the standard input"
    parser.add_argument("path", metavar="PATH", nargs="+" if many else None, help=text)


def where(args: argparse.Namespace) -> Any:
    """Return what the user named, as `recordkit.open` takes it."""
    return args.path[0] if len(args.path) == 1 else args.path


def leave_out(paths: list[str]) -> tuple[list[str], list[tuple[str, str]]]:
    """Return what of several paths is to be read; and those that hold no records for sure, each with the reason.

    A shell may have found them for an asterisk. What is not there is to be read: that is refused.
    """
    from recordkit.storage import SIDE, reason_left_out

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
    """Take `--json`."""
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")


def add_workers(parser: argparse.ArgumentParser) -> None:
    """Take `--workers`."""
    parser.add_argument(
        "--workers", metavar="N", type=_workers, default="auto", help="how many threads (one a processor)"
    )


def add_fields(parser: argparse.ArgumentParser) -> None:
    """Take `--fields`."""
    parser.add_argument("--fields", metavar="A,B", type=names, help="only these fields; the others are not decoded")


def add_target(parser: argparse.ArgumentParser, *, needed: bool) -> None:
    """Take `--out` and what goes with it."""
    more = "" if needed else "; without it the files stay as they are, and the change is kept beside them"
    parser.add_argument("--out", metavar="DIR", required=needed, help=f"write a new dataset{more}")
    parser.add_argument("--overwrite", action="store_true", help="replace what is there, once the new one is whole")
    parser.add_argument(
        "--no-resume", dest="resume", action="store_false", help="start again, even if a run that broke off is there"
    )
    add_workers(parser)


def options(args: argparse.Namespace) -> dict[str, Any]:
    """Return what `add_target` took, as the tools take it."""
    return {"workers": args.workers, "resume": args.resume, "overwrite": args.overwrite}


# --- Types


def natural(text: str) -> int:
    """Return a number from 1 up."""
    return _number(text, 1)


def _workers(text: str) -> Any:
    return text if text == "auto" else natural(text)


def whole(text: str) -> int:
    """Return a number from 0 up."""
    return _number(text, 0)


def port(text: str) -> int:
    """Return the number of a port."""
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
    """Return the name of a field. Arguments of this type, and of `names`, are completed with the dataset's fields."""
    return text


def names(text: str) -> list[str]:
    """Return the names of fields in a list separated by commas."""
    return [name for name in text.split(",") if name]


def flat(lists: Sequence[Sequence[str]] | None) -> list[str] | None:
    """Return the names of an option that may be given several times; None if it was not."""
    return None if lists is None else [name for each in lists for name in each]
