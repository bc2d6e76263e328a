"""Nodes: the tree of a filter. A long chain of `and` is one node, so that only nesting adds depth."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

Span: TypeAlias = "tuple[int, int]"
Value: TypeAlias = "bool | int | float | str | bytes | None"


class Name(NamedTuple):
    """A field."""

    name: str
    at: Span


class Length(NamedTuple):
    """`len(name)`."""

    name: str
    at: Span


class Literal(NamedTuple):
    """One value; None stands for `none`."""

    value: Value
    at: Span


class ValueList(NamedTuple):
    """A list of values, to the right of `in`."""

    items: tuple[Literal, ...]
    at: Span


Operand: TypeAlias = "Name | Length | Literal | ValueList"


class Flag(NamedTuple):
    """An operand that is a condition by itself: a field of bool, `true` or `false`."""

    operand: Name | Literal


class Missing(NamedTuple):
    """`name is none`."""

    name: str
    at: Span


class Compare(NamedTuple):
    """Two operands and one of == != < <= > >= in."""

    left: Operand
    op: str
    right: Operand


class Not(NamedTuple):
    """A negated condition."""

    part: Condition


class And(NamedTuple):
    """Conditions joined by `and`."""

    parts: tuple[Condition, ...]


class Or(NamedTuple):
    """Conditions joined by `or`."""

    parts: tuple[Condition, ...]


Condition: TypeAlias = "Flag | Missing | Compare | Not | And | Or"
