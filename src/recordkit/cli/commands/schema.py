"""schema: print the schema."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from recordkit.wording import clean, counted

from .._dataset_argument import add_reading, open_dataset
from .._parser import UsageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from recordkit.schema import Schema

    from ..terminal.screen import Screen

EXAMPLES: Final = (
    "recordkit schema train/",
    "recordkit schema train/ --as python >> dataset.py",
    "recordkit schema train/ --as tf       # for tf.io.parse_example; needs no TensorFlow",
    "recordkit schema train/ --as json > schema.json",
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_reading(parser)
    parser.add_argument(
        "--as", dest="form", choices=["table", "python", "json", "tf"], default="table", help="the output format"
    )
    parser.add_argument("--json", dest="form", action="store_const", const="json", help="the same as --as json")


def run(args: argparse.Namespace, screen: Screen) -> int:
    """Print the schema."""
    dataset = open_dataset(args)
    schema = dataset.schema
    if schema is None:
        message = (
            f"{dataset.shards[0].name}: these payloads are not Examples, so they have no fields\n"
            "  recordkit info says what they look like."
        )
        raise UsageError(message)
    if args.form == "python":
        screen.print(f"import recordkit as rk\n\nschema = {schema}")
    elif args.form == "json":
        screen.print(schema.to_json().rstrip())
    elif args.form == "tf":
        screen.print(_tensorflow(schema))
    else:
        _table(schema, screen, inferred=dataset.sequence.known is None)
    return 0


def _table(schema: Schema, screen: Screen, *, inferred: bool) -> None:
    fields = {**schema.fields, **schema.sequences}
    rows = [
        [screen.style(clean(name), "bold"), str(field), "per step" if name in schema.sequences else ""]
        for name, field in fields.items()
    ]
    screen.table(["field", "type", " "], rows)
    how = "inferred from the first records of some files" if inferred else "written with the dataset"
    screen.print(screen.style(f"{counted(len(fields), 'field')}, {how}", "dim"))


# --- For TensorFlow


class _Code:
    """A stand-in for the module `tensorflow`: attributes and calls give their source code."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __getattr__(self, name: str) -> _Code:
        return _Code(f"{self._text}.{name}")

    def __call__(self, *values: Any, **named: Any) -> _Code:
        given = [repr(value) for value in values]
        given += [f"{name}={value!r}" for name, value in named.items()]
        while given and given[-1] in ("None", "allow_missing=False"):  # the defaults
            del given[-1]
        return _Code(f"{self._text}({', '.join(given)})")

    def __repr__(self) -> str:
        return self._text


def _tensorflow(schema: Schema) -> str:
    description = schema.to_feature_description(_Code("tf"))
    context, sequences = description if schema.sequences else (description, {})
    text = f"import tensorflow as tf\n\nfeatures = {_lines(context)}"
    return text if not sequences else f"{text}\n\nsequence_features = {_lines(sequences)}"


def _lines(description: Mapping[str, Any]) -> str:
    return "\n".join(["{", *(f"    {name!r}: {source!r}," for name, source in description.items()), "}"])
