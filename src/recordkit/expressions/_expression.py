"""Expression: a filter, parsed and ready to apply to batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._check import Checker, kind_of_column, kinds_of_schema
from ._evaluate import truth
from ._parser import names_in, parse

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from recordkit.columns import Batch

    from ._nodes import Condition


class Expression:
    """A filter for rows, in a small language.

    By example:

        label == 3                      == != < <= > >=, and chains: 0 < score <= 0.5
        name == "cat"                   text in quotes; b"cat" for a field of bytes
        `image/height` >= 200           a name that is not one plain word, in backquotes
        split in ["train", "val"]       one of these values
        "cat" in caption                inside a text; with a field of many values, among them
        flag and not hidden             a field of bool needs no comparison
        note is none                    the value is missing; also is not none, == none, != none
        len(tokens) > 512               values of a row, characters of a text, bytes of bytes
        taken < "2024-05-01"            dates and times as ISO text, spans of time as "90s" or "1.5h"

    As in SQL, comparisons with a missing value are unknown, and so is their `not`: such a row matches neither
    `label == 3` nor `not label == 3`, only `label is none`.

    Numbers are compared exactly, whatever their dtypes, with one exception: a literal with a decimal point means the
    nearest value of a narrow float, so that `score == 0.1` finds the float32 that was written as 0.1. NaN is as
    in Python: it equals nothing, so `score != score` finds it.

    Immutable, safe to share between threads and to send to other processes. Filters with equal text are equal.

    Args:
        text: The filter, at most 4096 characters.

    Raises:
        ValueError: The text has a syntax error; the message shows where.

    >>> wanted = Expression("0 < label < 5 and `image/height` > 200")
    >>> wanted.names
    ('label', 'image/height')
    >>> Expression("label = 3")
    Traceback (most recent call last):
        ...
    ValueError: filter: = does not compare
      label = 3
            ^
      Write ==.
    """

    __slots__ = ("_names", "_text", "_tree")

    _names: tuple[str, ...]
    _text: str
    _tree: Condition

    def __init__(self, text: str) -> None:
        tree = parse(text)
        object.__setattr__(self, "_text", text)
        object.__setattr__(self, "_tree", tree)
        object.__setattr__(self, "_names", names_in(tree))

    @property
    def names(self) -> tuple[str, ...]:
        """The fields it uses, in order of appearance."""
        return self._names

    def check(self, schema: Any) -> None:
        """Raise `SchemaError` if the filter does not fit these fields, and show where.

        Args:
            schema: A `Schema`, or a mapping from names to types such as `"int64[?]"`.

        >>> Expression('lable == "cat"').check({"label": "int64"})
        Traceback (most recent call last):
            ...
        recordkit.errors.SchemaError: lable: there is no such field
          lable == "cat"
          ^^^^^
          Did you mean 'label'?
        """
        kinds = kinds_of_schema(schema)
        Checker(self._text, kinds, kinds.__getitem__).check(self._tree)

    def mask(self, batch: Batch) -> NDArray[np.bool_]:
        """Return which rows of a batch match the filter.

        Lazy columns that are only tested with `is none` are not made.

        Raises:
            SchemaError: The filter does not fit the columns.
        """
        Checker(self._text, batch.names, lambda name: kind_of_column(batch[name])).check(self._tree)
        return truth(self._tree, batch).yes

    def __setattr__(self, name: str, value: object) -> None:
        message = f"an Expression cannot be changed: {name}\n  Make another: Expression(text)."
        raise AttributeError(message)

    def __delattr__(self, name: str) -> None:
        self.__setattr__(name, None)

    def __reduce__(self) -> tuple[Any, ...]:
        return Expression, (self._text,)

    def __eq__(self, other: object) -> bool:
        return self._text == other._text if isinstance(other, Expression) else NotImplemented

    def __hash__(self) -> int:
        return hash((Expression, self._text))

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"Expression({self._text!r})"
