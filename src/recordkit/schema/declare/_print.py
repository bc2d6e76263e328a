"""Printing: a schema as text that can be pasted into a program."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._fields import AnyField, Field

if TYPE_CHECKING:
    from collections.abc import Mapping


def as_table(fields: Mapping[str, AnyField], sequences: Mapping[str, AnyField]) -> str:
    """Return the schema with a line a field, types aligned.

    >>> print(as_table({"id": Field("int64"), "depth": Field("float32[?]", lossy=True)}, {}))
    rk.Schema({
        "id":    "int64",
        "depth": rk.Field('float32[?]', lossy=True),
    })
    """
    text = f"rk.Schema({_rows(fields)}"
    return f"{text}, sequences={_rows(sequences)})" if sequences else f"{text})"


def _rows(fields: Mapping[str, AnyField]) -> str:
    if not fields:
        return "{}"
    names = [_quoted(name) for name in fields]
    width = max(map(len, names)) + 1
    lines = (f"    {f'{name}:':<{width}} {_type(field)},\n" for name, field in zip(names, fields.values(), strict=True))
    return "{\n" + "".join(lines) + "}"


def _type(field: AnyField) -> str:
    # The language, where it says all; else the class that says the rest.
    return _quoted(str(field)) if field == _plain(field) else f"rk.{field!r}"


def _plain(field: AnyField) -> Field | None:
    return Field(str(field)) if isinstance(field, Field) else None


def _quoted(text: str) -> str:
    # Python's escapes, in double quotes: with one of those in the text, repr keeps to single quotes.
    body = repr('"' + text)[2:-1].replace("\\'", "'").replace('"', '\\"')
    return f'"{body}"'


def as_line(fields: Mapping[str, AnyField], sequences: Mapping[str, AnyField]) -> str:
    """Return the schema as one line that evaluates back to it.

    >>> as_line({"id": Field("int64")}, {"x": Field("float32")})
    "Schema({'id': 'int64'}, sequences={'x': 'float32'})"
    """
    text = f"Schema({_dict(fields)}"
    return f"{text}, sequences={_dict(sequences)})" if sequences else f"{text})"


def _dict(fields: Mapping[str, AnyField]) -> str:
    types = (repr(str(field)) if field == _plain(field) else repr(field) for field in fields.values())
    return "{" + ", ".join(f"{name!r}: {kind}" for name, kind in zip(fields, types, strict=True)) + "}"
