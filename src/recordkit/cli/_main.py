"""Main: runs a command, and turns the outcome into a message and an exit status."""

from __future__ import annotations

import io
import os
import sys
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, TextIO

import recordkit
from recordkit.wording import clean, nearest

from ._commands import GROUPS, SUMMARIES
from ._errors import as_dict, message_of, status_of
from ._parser import UsageError, parser_of, without_side_files
from .terminal.screen import Screen

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["main"]

_GO_ON = "\n  Run the same command again to resume."
_FINE, _INTERRUPTED, _BROKEN_PIPE = 0, 130, 141


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command, and return its exit status.

    >>> main(["--version"])
    recordkit 0.1.0
    0
    """
    words = list(sys.argv[1:] if argv is None else argv)
    screen = Screen()
    _be_lenient(screen.out)
    _be_lenient(screen.err)
    try:
        return _run(words, screen)
    except BrokenPipeError:
        _hush(screen)
        return _BROKEN_PIPE
    except KeyboardInterrupt:
        return _interrupted(screen, resumable=False)


def _run(words: list[str], screen: Screen) -> int:
    try:
        status = _command(words, screen)
        screen.out.flush()
        return status
    except (BrokenPipeError, KeyboardInterrupt):
        raise
    except SystemExit as error:  # of argparse, after --help
        return int(error.code or 0)
    except Exception as error:
        if os.environ.get("RECORDKIT_TRACEBACK") and not isinstance(error, UsageError):
            raise
        _take_back(screen)
        if "--json" in words:
            screen.json({"error": as_dict(error)})
        screen.error(message_of(error))
        return status_of(error)


def _command(words: list[str], screen: Screen) -> int:
    if not words or words[0] in ("-h", "--help", "help"):
        return _help(words[1:], screen)
    if words[0] in ("-V", "--version"):
        screen.print(f"recordkit {recordkit.__version__}")
        return _FINE
    name, rest = words[0], words[1:]
    if name == "__complete":
        from .commands.completion import candidates

        screen.print("\n".join(candidates(rest)))
        return _FINE
    if name not in SUMMARIES:
        raise _unknown(name)
    module = import_module(f"recordkit.cli.commands.{name}")
    args = parser_of(name, module).parse_intermixed_args(rest)
    if isinstance(getattr(args, "path", None), list):
        args.path, left_out = without_side_files(args.path)
        for path, reason in left_out:
            screen.note(f"left out: {clean(path)} ({reason})")
    quiet = any(getattr(args, option, False) for option in ("skip_damaged", "skip_errors", "quiet_log"))
    with _log(screen, quiet=quiet):
        try:
            status: int = module.run(args, screen)
        except KeyboardInterrupt:
            return _interrupted(screen, resumable=getattr(args, "resume", False))
    return status


def _interrupted(screen: Screen, *, resumable: bool) -> int:
    screen.note("interrupted; nothing is half-written" + _GO_ON * resumable)
    return _INTERRUPTED


@contextmanager
def _log(screen: Screen, *, quiet: bool) -> Iterator[None]:
    """Show what the log has to say; if quiet, only what the command does not tell itself."""
    import logging

    log, handler = logging.getLogger("recordkit"), logging.StreamHandler(screen.err)
    handler.setLevel(logging.ERROR if quiet else logging.WARNING)
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)


def _unknown(name: str) -> UsageError:
    near = nearest(name, SUMMARIES)
    advice = f"Did you mean recordkit {near}?" if near else "recordkit --help lists all commands."
    return UsageError(f"there is no command {name!r}\n  {advice}")


def _help(words: list[str], screen: Screen) -> int:
    if words and words[0] in SUMMARIES:
        return _command([words[0], "--help"], screen)
    screen.print("TFRecord as a dataset format you can trust.\n")
    screen.print(f"usage: {screen.style('recordkit COMMAND PATH ...', 'bold')}\n")
    for title, commands in GROUPS.items():
        screen.print(screen.style(title, "bold"))
        for name, line in commands.items():
            screen.print(f"  {screen.style(f'{name:<11}', 'cyan')} {line}")
        screen.print()
    screen.print("recordkit COMMAND --help explains a command, with examples.")
    screen.print("Exit status: 0 all is well, 1 something was found, 2 wrong usage.")
    screen.print("NO_COLOR=1 turns colours off.")
    return _FINE


def _be_lenient(file: TextIO) -> None:
    """Print characters that the output cannot encode as escapes, rather than fail."""
    if isinstance(file, io.TextIOWrapper) and not file.encoding.lower().startswith("utf"):
        file.reconfigure(errors="backslashreplace")


def _take_back(screen: Screen) -> None:
    """Drop output that cannot be written, for example to a full disk: it would fail again at exit."""
    try:
        screen.out.flush()
    except OSError:
        _hush(screen)


def _hush(screen: Screen) -> None:
    """Redirect output to a closed pipe to nowhere: Python would complain at exit."""
    try:
        descriptor = screen.out.fileno()
    except (OSError, ValueError):
        return
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, descriptor)
    os.close(null)
