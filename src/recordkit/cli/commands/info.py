"""info: what is in this file?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .._dataset_argument import add_reading, opened
from .._parser import add_json
from ..terminal.bar import working

if TYPE_CHECKING:
    import argparse

    from ..terminal.screen import Screen

DETAILS: Final = """\
Reads the first records of some of the files, whatever they are: plain or compressed, Examples or not, damaged
or sound. `recordkit stats` looks at every value, `recordkit verify` at every byte. Status 1 if damage was
met, or if this is no TFRecord file."""
EXAMPLES: Final = (
    "recordkit info unknown.tfrecord",
    "recordkit info train/",
    "gsutil cat gs://bucket/a.tfrecord | recordkit info -",
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    add_reading(parser)
    add_json(parser)


def run(args: argparse.Namespace, screen: Screen) -> int:
    """Print what is in there."""
    from recordkit.tools import describe

    from ._advice import advice
    from ._overview import show

    with working(screen):
        found = describe(opened(args))
        advised = list(advice(found))
    if args.json:
        screen.json({**found.to_dict(), "advice": advised})
    else:
        show(found, advised, screen)
    return 1 if found.damage else 0
