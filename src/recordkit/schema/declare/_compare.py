"""Comparing: the differences between two schemas, in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from recordkit.schema.values import shape_text
from recordkit.wording import did_you_mean

from ._fields import AnyField, Field

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


@dataclass(frozen=True)
class Difference:
    """One difference between two schemas.

    Attributes:
        field: The name of the field.
        what: The aspect that differs; "storage" stands for anything the other words do not name.
        expected: The value in the first schema; None if it has no such field.
        found: The value in the second; None if it has no such field.
        words: The difference as a sentence.
    """

    field: str
    what: Literal["missing", "extra", "dtype", "shape", "optional", "storage"]
    expected: str | None
    found: str | None
    words: str

    def __str__(self) -> str:
        return self.words


def differences(
    fields: Mapping[str, AnyField],
    sequences: Mapping[str, AnyField],
    other_fields: Mapping[str, AnyField],
    other_sequences: Mapping[str, AnyField],
) -> tuple[Difference, ...]:
    """Return how the other schema's fields differ from the first's.

    The quality of a jpeg does not count: it changes nothing for readers.
    """
    expected = _named(fields, sequences)
    found = _named(other_fields, other_sequences)
    missing = [name for name in expected if name not in found]
    extra = [name for name in found if name not in expected]
    return (
        *(d for name in expected if name in found for d in _of_field(name, expected[name], found[name])),
        *(_missing(name, expected[name], extra) for name in missing),
        *(_extra(name, found[name], missing) for name in extra),
    )


def _named(fields: Mapping[str, AnyField], sequences: Mapping[str, AnyField]) -> dict[str, tuple[AnyField, bool]]:
    return {name: (field, False) for name, field in fields.items()} | {
        name: (field, True) for name, field in sequences.items()
    }


def _text(declared: tuple[AnyField, bool]) -> str:
    field, steps = declared
    return f"a sequence of {field}" if steps else str(field)


def _missing(name: str, expected: tuple[AnyField, bool], extra: list[str]) -> Difference:
    hint = did_you_mean(name, extra)
    words = f"{name}: missing; {hint[0].lower()}{hint[1:]}" if hint else f"{name}: missing, expected {_text(expected)}"
    return Difference(name, "missing", _text(expected), None, words)


def _extra(name: str, found: tuple[AnyField, bool], missing: list[str]) -> Difference:
    hint = did_you_mean(name, missing)
    words = f"{name}: not expected, found {_text(found)}"
    if hint:
        words = f"{name}: not expected; {hint[0].lower()}{hint[1:]}"
    return Difference(name, "extra", None, _text(found), words)


def _of_field(name: str, expected: tuple[AnyField, bool], found: tuple[AnyField, bool]) -> Iterator[Difference]:
    if expected == found:
        return
    one, other = expected[0], found[0]
    if expected[1] != found[1] or not (isinstance(one, Field) and isinstance(other, Field)):
        texts = _text(expected), _text(found)
        yield Difference(name, "storage", *texts, f"{name}: expected {texts[0]}, found {texts[1]}")
        return
    if one.dtype != other.dtype:
        yield Difference(name, "dtype", one.dtype, other.dtype, f"{name}: expected {one.dtype}, found {other.dtype}")
    if one.shape != other.shape:
        shapes = _shape(one), _shape(other)
        yield Difference(name, "shape", *shapes, f"{name}: expected {shapes[0]}, found {shapes[1]}")
    if one.optional != other.optional:
        words = ("may be missing", "is never missing") if one.optional else ("is never missing", "may be missing")
        yield Difference(name, "optional", *words, f"{name}: expected one that {words[0]}, found one that {words[1]}")
    if (one.lossy, repr(one.default)) != (other.lossy, repr(other.default)):
        yield Difference(name, "storage", repr(one), repr(other), f"{name}: expected {one!r}, found {other!r}")


def _shape(field: Field) -> str:
    return f"shape {shape_text(field.shape)}" if field.shape else "a scalar"
