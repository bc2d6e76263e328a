"""info: what a file contains."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .._dataset_argument import add_reading, open_dataset
from .._parser import add_json
from ..terminal.bar import working

if TYPE_CHECKING:
    import argparse

    from ..terminal.screen import Screen

DETAILS: Final = """\
Reads the first records of some of the files, whether they are compressed or not, Examples or not, damaged or
intact. `recordkit stats` reads every value, `recordkit verify` every byte. Exit status 1 if damage was found, or
if this is not a TFRecord file."""
EXAMPLES: Final = (
    "recordkit info unknown.tfrecord",
    "recordkit info train/",
    "gsutil cat gs://bucket/a.tfrecord | recordkit info -",
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_reading(parser)
    add_json(parser)


def run(args: argparse.Namespace, screen: Screen) -> int:
    """Print what the dataset contains."""
    from recordkit.tools import describe

    from ._advice import advice
    from ._overview import show

    with working(screen):
        found = describe(open_dataset(args))
        advised = list(advice(found))
    if args.json:
        screen.json({**found.to_dict(), "advice": advised})
    else:
        show(found, advised, screen)
    return 1 if found.damage else 0
