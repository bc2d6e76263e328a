"""Check: whether a filter fits the fields, before any row is read."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from recordkit.columns import BytesColumn, Ragged
from recordkit.dtypes import BYTES, COMPLEXES
from recordkit.errors import SchemaError
from recordkit.wording import listed, nearest

from ._nodes import And, Compare, Flag, Length, Literal, Missing, Name, Not, Or, ValueList
from ._times import comparable_units, instant, span
from ._tokens import pointed, syntax_error

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from recordkit.columns import Column

    from ._nodes import Condition, Operand, Span, Value


_TYPE = re.compile(r"\s*([^\[\]?\s]+)\s*(\[[^\]]*\])?\s*\??\s*")
_GROUPS = dict.fromkeys(BYTES, "bytes") | {"string": "text"} | dict.fromkeys(COMPLEXES, "complex")
_GROUPS |= {"datetime64": "time", "timedelta64": "span"}


class Kind(NamedTuple):
    """The kind of a value, which decides what it can be compared with.

    Attributes:
        group: "number" (bool is one), "complex", "text", "bytes", "time", "span" or "unknown".
        many: Whether a row holds more than one value; None if not known yet.
        words: The type, to name in errors.
        dtype: Its dtype, of a field.
    """

    group: str
    many: bool | None
    words: str
    dtype: str = ""

    @property
    def unit(self) -> str:
        """The unit of a time or a span."""
        return self.dtype.partition(":")[2]


def kind_of_value(value: Value) -> Kind:
    """Return the kind of a literal.

    >>> kind_of_value(b"x").group, kind_of_value(True).group
    ('bytes', 'number')
    """
    if isinstance(value, str | bytes):
        group = "text" if isinstance(value, str) else "bytes"
        return Kind(group, False, group)
    return Kind("number", False, "a number")


def kinds_of_schema(schema: Any) -> dict[str, Kind]:
    """Return the kind of every field of a schema, or of a mapping from names to types or fields."""
    if not hasattr(schema, "fields"):
        return {name: _kind_of_type(declared, 0) for name, declared in schema.items()}
    kinds = {name: _kind_of_type(field, 0) for name, field in schema.fields.items()}
    sequences: Mapping[str, Any] = getattr(schema, "sequences", {})
    return kinds | {name: _kind_of_type(field, 1) for name, field in sequences.items()}


def _kind_of_type(declared: Any, steps: int) -> Kind:
    if isinstance(declared, str):
        match = _TYPE.fullmatch(declared)
        if match is None:
            message = f"{declared!r} is not a type\n  Such as 'int64' or 'float32[?,3]'."
            raise ValueError(message)
        return _kind(match[1], steps > 0 or match[2] is not None, declared)
    # The dtype and shape of an array stored by other tools may be known only when it is read.
    many = True if steps else None if declared.shape is None else len(declared.shape) > 0
    return _kind(declared.dtype, many, str(declared))


def kind_of_column(column: Column) -> Kind:
    """Return the kind of a column.

    >>> kind_of_column(np.zeros((2, 3), "float32"))
    Kind(group='number', many=True, words='float32[3]', dtype='float32')
    >>> kind_of_column(BytesColumn.of(["a"])).group
    'text'
    """
    values = column.values if isinstance(column, Ragged) else column
    inner = ["?"] if isinstance(column, Ragged) else []
    inner += [str(size) for size in values.shape[1:]]
    dtype = ("string" if values.text else "bytes") if isinstance(values, BytesColumn) else _dtype_name(values.dtype)
    return _kind(dtype, bool(inner), f"{dtype}[{','.join(inner)}]" if inner else dtype)


def _dtype_name(dtype: np.dtype[Any]) -> str:
    if dtype.kind in "mM":
        unit, count = np.datetime_data(dtype)
        return f"{'datetime64' if dtype.kind == 'M' else 'timedelta64'}:{count if count > 1 else ''}{unit}"
    return dtype.name


def _kind(dtype: str | None, many: bool | None, words: str) -> Kind:
    if dtype is None:
        return Kind("unknown", many, words)
    return Kind(_GROUPS.get(dtype.partition(":")[0], "number"), many, words, dtype)


_LENGTH = Kind("number", False, "a length")
_OTHER_WORDS = {"null": "none", "nil": "none", "nul": "none", "na": "none", "true": "true", "false": "false"}


class Checker:
    """Checks filters against fields.

    Args:
        text: The filter, to show in errors.
        names: The existing fields.
        kind_of: Returns the kind of a field. Not called for a field only tested for `none`, whose column may be costly.
    """

    def __init__(self, text: str, names: Collection[str], kind_of: Callable[[str], Kind]) -> None:
        self._text = text
        self._names = names
        self._kind_of = kind_of

    def check(self, tree: Condition) -> None:
        """Raise `SchemaError` at the first mistake."""
        if isinstance(tree, And | Or):
            for part in tree.parts:
                self.check(part)
        elif isinstance(tree, Not):
            self.check(tree.part)
        elif isinstance(tree, Missing):
            self._known(tree.name, tree.at)
        elif isinstance(tree, Flag):
            self._flag(tree.operand)
        else:
            self._compare(tree)

    def _fail(self, name: str, wrong: str, at: Span, hint: str, *, expected: str = "", found: str = "") -> SchemaError:
        message = pointed(f"{name}: {wrong}", self._text, at, hint)
        return SchemaError(message, field=name, expected=expected or None, found=found or None)

    def _known(self, name: str, at: Span) -> None:
        if name not in self._names:
            raise self._fail(name, "there is no such field", at, self._unknown_hint(name, at))

    def _unknown_hint(self, name: str, at: Span) -> str:
        inside = [known for known in self._names if self._text.startswith(f"{name} ", at[0]) and known.startswith(name)]
        if name.lower() in _OTHER_WORDS:
            return f"Write {_OTHER_WORDS[name.lower()]}."
        if near := nearest(name, self._names) or next(iter(inside), None):
            return f"Did you mean {near!r}?"
        fields = f"There are {listed(self._names)}." if self._names else "There are no fields."
        return f"{fields} Text is written in quotes."

    def _flag(self, operand: Name | Literal) -> None:
        if isinstance(operand, Literal):
            return
        name = operand.name
        kind = self._one(operand)
        if kind.dtype != "bool" and kind.group != "unknown":
            hint = f"Compare it: {_shown(name)} {'!= 0' if kind.group == 'number' else 'is not none'}"
            wrong = f"{kind.words} is not a condition by itself"
            raise self._fail(name, wrong, operand.at, hint, expected="bool", found=kind.words)

    def _kind(self, operand: Operand) -> Kind:
        if isinstance(operand, Literal):
            return kind_of_value(operand.value)
        assert not isinstance(operand, ValueList)
        self._known(operand.name, operand.at)
        kind = self._kind_of(operand.name)
        if isinstance(operand, Name):
            return kind
        if kind.many is False and kind.group not in ("text", "bytes", "unknown"):
            raise self._fail(operand.name, f"{kind.words} has no length", operand.at, "Compare the value itself.")
        return _LENGTH

    def _one(self, operand: Operand) -> Kind:
        """Return the kind of an operand that must be one value a row."""
        kind = self._kind(operand)
        if kind.many and isinstance(operand, Name):
            name = _shown(operand.name)
            value = {"text": '"cat"', "bytes": 'b"cat"'}.get(kind.group, "3")
            hint = f"Compare len({name}), or look for a value: {value} in {name}"
            raise self._fail(operand.name, f"{kind.words} holds many values a row", operand.at, hint)
        return kind

    def _compare(self, tree: Compare) -> None:
        left = self._one(tree.left)
        if isinstance(tree.right, ValueList):
            for item in tree.right.items:
                self._pair(tree.left, left, "==", item, kind_of_value(item.value))
        elif tree.op == "in":
            self._inside(tree, left)
        else:
            self._pair(tree.left, left, tree.op, tree.right, self._one(tree.right))

    def _inside(self, tree: Compare, left: Kind) -> None:
        right = self._kind(tree.right)
        assert isinstance(tree.right, Name)
        if right.many is False and right.group not in ("text", "bytes", "unknown"):
            hint = f"Write: {_shown(tree.right.name)} == value"
            raise self._fail(tree.right.name, f"{right.words} has nothing in it", tree.right.at, hint)
        if right.many is not None:
            self._pair(tree.left, left, "==", tree.right, right)

    def _pair(self, left: Operand, left_kind: Kind, op: str, right: Operand, right_kind: Kind) -> None:
        """Raise an error if two kinds cannot be compared."""
        groups = {left_kind.group, right_kind.group}
        if "unknown" in groups:
            return
        field, kind, other, other_kind = left, left_kind, right, right_kind
        if isinstance(left, Literal) and not isinstance(right, Literal):
            field, kind, other, other_kind = right, right_kind, left, left_kind
        if isinstance(other, Literal) and isinstance(other.value, str) and kind.group in ("time", "span"):
            self._time(field, kind, other)
        elif groups == {"number", "complex"} or len(groups) == 1:
            self._same(field, kind, op, other, other_kind)
        else:
            self._incomparable(field, kind, other, other_kind)

    def _incomparable(self, field: Operand, kind: Kind, other: Operand, other_kind: Kind) -> None:
        wrong, hint = f"{kind.words} cannot be compared with {other_kind.words}", _hint(kind, other, other_kind)
        at = other.at
        if isinstance(field, Name | Length):
            raise self._fail(field.name, wrong, at, hint, expected=kind.words, found=other_kind.words)
        raise syntax_error(wrong, self._text, at, hint)

    def _same(self, field: Operand, kind: Kind, op: str, other: Operand, other_kind: Kind) -> None:
        if "complex" in (kind.group, other_kind.group) and op not in ("==", "!="):
            named, words = (field, kind.words) if kind.group == "complex" else (other, other_kind.words)
            assert isinstance(named, Name)
            raise self._fail(named.name, f"{words} has no order", named.at, "Compare it with == or !=.")
        if kind.group in ("time", "span") and not comparable_units(kind.unit, other_kind.unit):
            assert isinstance(field, Name)
            wrong = f"{kind.words} cannot be compared with {other_kind.words}"
            hint = "Months and years differ in length. Compare each with a literal."
            raise self._fail(field.name, wrong, other.at, hint, expected=kind.words, found=other_kind.words)

    def _time(self, field: Operand, kind: Kind, other: Literal) -> None:
        assert isinstance(field, Name)
        assert isinstance(other.value, str)
        try:
            if kind.group == "time":
                instant(other.value)
            else:
                span(other.value, kind.unit)
        except ValueError as error:
            raise self._fail(field.name, f"this is no {kind.words}", other.at, str(error)) from None


def _shown(name: str) -> str:
    """Return a name as it is written in a filter."""
    return name if name.isidentifier() else f"`{name.replace('`', '``')}`"


def _hint(kind: Kind, other: Operand, other_kind: Kind) -> str:
    literal = isinstance(other, Literal)
    if (kind.group, other_kind.group) == ("bytes", "text") and literal:
        return 'Bytes are written with a b before the quotes: b"cat".'
    if (kind.group, other_kind.group) == ("text", "bytes") and literal:
        return "Text is written without the b."
    if kind.group == "number" and other_kind.group == "text" and literal:
        return "Write the number without quotes."
    if kind.group == "text" and other_kind.group == "number" and literal:
        return 'Write text in quotes: "3".'
    if kind.group in ("time", "span") and literal:
        return 'Write "2024-05-01", or "2024-05-01T12:30".' if kind.group == "time" else 'Write "90s", or "1.5h".'
    return "Only values of one kind compare."
