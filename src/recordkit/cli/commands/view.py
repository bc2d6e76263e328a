"""view: browse the dataset in your browser."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .._parser import add_paths, given_paths, port

if TYPE_CHECKING:
    import argparse

    from ..terminal.screen import Screen

DETAILS: Final = """\
Serves a page to this machine only, under a URL with a secret token, and opens it in the browser. It reads only
what it shows, writes nothing, and stops with Ctrl-C. Needs recordkit[viewer]."""
EXAMPLES: Final = (
    "recordkit view train/",
    "recordkit view damaged.tfrecord",
    "recordkit view train/ --no-browser --port 8000   # through: ssh -L 8000:localhost:8000 HOST",
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_paths(parser)
    parser.add_argument("--split", metavar="NAME", help="only this split of the folder")
    parser.add_argument("--port", type=port, default=0, metavar="N", help="the port (default: any free port)")
    parser.add_argument("--no-browser", action="store_true", help="print the URL without opening it")


def run(args: argparse.Namespace, screen: Screen) -> int:
    """Serve the page until Ctrl-C."""
    from recordkit.viewer import serve

    def ready(address: str) -> None:
        screen.print(f"{screen.style(address, 'bold')}  Press Ctrl-C to stop.")
        screen.out.flush()

    serve(given_paths(args), port=args.port, split=args.split, open_browser=not args.no_browser, ready=ready)
    return 0
