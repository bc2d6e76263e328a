"""view: a page on this machine to look at a dataset with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .._parser import add_paths, port, where

if TYPE_CHECKING:
    import argparse

    from ..terminal.screen import Screen

DETAILS: Final = """\
Serves a page to this machine only, under an address with a secret in it, and opens it in the browser. It reads
what it shows and nothing else, writes nothing, and ends with Ctrl-C. Needs recordkit[viewer]."""
EXAMPLES: Final = (
    "recordkit view train/",
    "recordkit view damaged.tfrecord",
    "recordkit view train/ --no-browser --port 8000   # through: ssh -L 8000:localhost:8000 HOST",
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    add_paths(parser)
    parser.add_argument("--split", metavar="NAME", help="the files of one split only")
    parser.add_argument(
        "--port", type=port, default=0, metavar="N", help="where to listen; by default any that is free"
    )
    parser.add_argument("--no-browser", action="store_true", help="print the address, and open nothing")


def run(args: argparse.Namespace, screen: Screen) -> int:
    """Serve the page until Ctrl-C."""
    from recordkit.viewer import serve

    def ready(address: str) -> None:
        screen.print(f"{screen.style(address, 'bold')}  Ctrl-C ends it.")
        screen.out.flush()

    serve(where(args), port=args.port, split=args.split, open_browser=not args.no_browser, ready=ready)
    return 0
