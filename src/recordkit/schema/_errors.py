"""Errors: the one place that words a schema's errors.

A check that finds a bad value seldom knows where it came from. It raises `Misfit`, which holds what was found and what
to do about it; a caller that knows the field and the row turns that into a `SchemaError`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from recordkit.errors import SchemaError
from recordkit.wording import did_you_mean, listed

if TYPE_CHECKING:
    from collections.abc import Iterable


class Misfit(Exception):  # noqa: N818  (a finding, on its way to becoming a SchemaError)
    """A value that does not fit, raised where field and row are not known.

    Attributes:
        found: What was found, worded to follow "found".
        advice: What to do about it: whole sentences, or empty.
        index: The flat index of the value among those checked together; None if it is about all of them.
    """

    def __init__(self, found: str, advice: str = "", *, index: int | None = None) -> None:
        super().__init__(found, advice)
        self.found = found
        self.advice = advice
        self.index = index


def unfit(name: str, expected: str, misfit: Misfit, *, row: int | None = None) -> SchemaError:
    """Return the error for a `misfit` in field `name` while writing.

    >>> print(unfit("age", "int8", Misfit("300", "int8 holds -128 to 127."), row=4))
    age: expected int8, found 300
      In row 4. int8 holds -128 to 127.
    """
    return SchemaError(
        f"expected {expected}, found {misfit.found}",
        place=name,
        where="" if row is None else f"In row {row}.",
        advice=misfit.advice,
        field=name,
        record=row,
        expected=expected,
        found=misfit.found,
    )


def unreadable(
    name: str, expected: str, found: str, *, record: int, path: str | None = None, advice: str = ""
) -> SchemaError:
    """Return the error for a stored value that is not what field `name` declares.

    >>> print(unreadable("age", "uint8", "300", record=7, path="a.tfrecord", advice="Declare it wider."))
    age: expected uint8, found 300
      In record 7 of a.tfrecord. Declare it wider.
    """
    return SchemaError(
        f"expected {expected}, found {found}",
        place=name,
        where=f"In record {record}" + (f" of {path}." if path else "."),
        advice=advice,
        field=name,
        record=record,
        path=path,
        expected=expected,
        found=found,
    )


def unknown_name(name: str, known: Iterable[str], *, what: str = "the schema") -> SchemaError:
    """Return the error for an unknown field.

    >>> print(unknown_name("lable", ["id", "label"]))
    lable: not in the schema
      Did you mean 'label'?
    """
    names = list(known)
    hint = did_you_mean(name, names) or (f"It has {listed(names)}." if names else "It has no fields.")
    return SchemaError(f"{name}: not in {what}\n  {hint}", field=name)
