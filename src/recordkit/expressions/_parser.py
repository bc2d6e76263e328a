"""Parser: the text of a filter to its tree, by recursive descent.

- condition   all ("or" all)*
- all         no ("and" no)*
- no          "not" no | comparison
- comparison  operand (sign operand | ["not"] "in" operand | "is" ["not"] "none")*
- operand     name | literal | "len" "(" name ")" | "[" literals "]" | "(" condition ")"
"""

from __future__ import annotations

import math
from typing import NoReturn

from ._nodes import And, Compare, Condition, Flag, Length, Literal, Missing, Name, Not, Operand, Or, Span, ValueList
from ._tokens import KEYWORDS, Token, arithmetic, syntax_error, tokens

LONGEST = 4096
DEEPEST = 64

_SIGNS = frozenset({"==", "!=", "<", "<=", ">", ">="})
_CONSTANTS = {"true": True, "True": True, "false": False, "False": False, "none": None, "None": None, "inf": math.inf}


def parse(text: str) -> Condition:
    """Return the tree of a filter.

    >>> parse("a < 3")
    Compare(left=Name(name='a', at=(0, 1)), op='<', right=Literal(value=3, at=(4, 5)))
    """
    if not isinstance(text, str):
        message = f"a filter is a text such as 'label > 3', not {type(text).__name__}"
        raise TypeError(message)
    if len(text) > LONGEST:
        message = f"filter: {len(text)} characters are too many\n  It may have {LONGEST}."
        raise ValueError(message)
    lost = next((place for place, letter in enumerate(text) if 0xD800 <= ord(letter) < 0xE000), None)
    if lost is not None:
        wrong = "half a character (a lone surrogate)"
        raise syntax_error(wrong, text, (lost, lost + 1), "The text was not valid UTF-8 where it came from.")
    return _Parser(text).whole()


def names_in(tree: Condition) -> tuple[str, ...]:
    """Return the fields of a tree, each once, in order of appearance.

    >>> names_in(parse("b < 3 or a in [1] or b is none"))
    ('b', 'a')
    """
    if isinstance(tree, And | Or):
        found = [name for part in tree.parts for name in names_in(part)]
    elif isinstance(tree, Not):
        found = list(names_in(tree.part))
    elif isinstance(tree, Missing):
        found = [tree.name]
    else:
        operands = (tree.operand,) if isinstance(tree, Flag) else (tree.left, tree.right)
        found = [operand.name for operand in operands if isinstance(operand, Name | Length)]
    return tuple(dict.fromkeys(found))


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = tokens(text)
        self._next = 0
        self._depth = 0

    @property
    def _token(self) -> Token:
        return self._tokens[self._next]

    def _take(self) -> Token:
        token = self._token
        self._next += 1
        return token

    def _is(self, *words: str) -> bool:
        return self._token.kind in ("word", "sign") and self._token.text in words

    def _took(self, *words: str) -> bool:
        found = self._is(*words)
        self._next += found
        return found

    def _fail(self, wrong: str, at: Span, hint: str = "") -> NoReturn:
        raise syntax_error(wrong, self._text, at, hint)

    def _deeper(self, token: Token) -> None:
        self._depth += 1
        if self._depth > DEEPEST:
            self._fail(f"nested more than {DEEPEST} deep", token.at, "Use fewer parentheses, or fewer nots.")

    def whole(self) -> Condition:
        if self._token.kind == "end":
            self._fail("there is nothing in it", (0, 0), "Such as: label > 3")
        tree = self._condition(self._any())
        if self._token.kind != "end":
            self._unexpected("and, or, or the end")
        return tree

    def _condition(self, node: Condition | Operand) -> Condition:
        """Return a node as a condition; an operand is one only if it can be true or false."""
        if isinstance(node, Name) or (isinstance(node, Literal) and isinstance(node.value, bool)):
            return Flag(node)
        if isinstance(node, Length | Literal | ValueList):
            self._fail("this is a value, and no condition", node.at, "Compare it with something: label > 3")
        return node

    def _any(self) -> Condition | Operand:
        first = self._all()
        if not self._is("or"):
            return first
        parts = [self._condition(first)]
        while self._took("or"):
            parts.append(self._condition(self._all()))
        return Or(tuple(parts))

    def _all(self) -> Condition | Operand:
        first = self._no()
        if not self._is("and"):
            return first
        parts = [self._condition(first)]
        while self._took("and"):
            parts.append(self._condition(self._no()))
        return And(tuple(parts))

    def _no(self) -> Condition | Operand:
        token = self._token
        if not self._took("not"):
            return self._comparison()
        self._deeper(token)
        part = self._condition(self._no())
        self._depth -= 1
        return Not(part)

    def _comparison(self) -> Condition | Operand:
        left = self._operand()
        parts: list[Condition] = []
        while self._is(*_SIGNS, "in", "is", "not"):
            sign = self._take()
            op = self._operator(sign)
            at = self._token.at
            right = self._operand()
            parts.append(self._pair(self._side(left, sign), op, self._side(right, sign), (sign.at, at)))
            left = right
        if not parts:
            return left
        return parts[0] if len(parts) == 1 else And(tuple(parts))

    def _operator(self, sign: Token) -> str:
        """Return an operator that starts with this token: a sign, "in", "not in", "is" or "is not"."""
        if sign.text == "not":
            if not self._took("in"):
                self._unexpected("in", "As in: label not in [1, 2]")
            return "not in"
        return "is not" if sign.text == "is" and self._took("not") else sign.text

    def _side(self, node: Condition | Operand, sign: Token) -> Operand:
        if isinstance(node, Name | Length | Literal | ValueList):
            return node
        self._fail("a condition cannot be compared", sign.at, "Join conditions with and, or, not.")

    def _pair(self, left: Operand, op: str, right: Operand, at: tuple[Span, Span]) -> Condition:
        if op in ("is", "is not") and not (isinstance(right, Literal) and right.value is None):
            self._fail("is goes with none only", at[0], "Write == or !=.")
        if op in ("in", "not in"):
            return self._member(left, op, right)
        nones = [isinstance(side, Literal) and side.value is None for side in (left, right)]
        if any(nones):
            return self._none(left if nones[1] else right, op, at[0])
        for side in (left, right):
            if isinstance(side, ValueList):
                self._fail("a list is for in only", side.at, "As in: label in [1, 2]")
        return Compare(left, op, right)

    def _none(self, other: Operand, op: str, sign: Span) -> Condition:
        if op in ("<", "<=", ">", ">="):
            self._fail("none is neither small nor great", sign, "Write: is none, or is not none.")
        if not isinstance(other, Name):
            self._fail("only a field can be none", other.at, "As in: note is none")
        missing = Missing(other.name, other.at)
        return missing if op in ("is", "==") else Not(missing)

    def _member(self, left: Operand, op: str, right: Operand) -> Condition:
        if isinstance(right, Literal | Length):
            self._fail("in needs a list or a field to look in", right.at, 'As in: label in [1, 2], "cat" in caption')
        if isinstance(left, ValueList):
            self._fail("a list belongs to the right of in", left.at, "As in: label in [1, 2]")
        if isinstance(left, Literal) and left.value is None:
            self._fail("none is never in anything", left.at, "Write: is none, or is not none.")
        found = Compare(left, "in", right)
        return found if op == "in" else Not(found)

    def _operand(self) -> Condition | Operand:
        token = self._take()
        if token.kind == "literal":
            return self._checked(token.value, token.at)
        if token.kind == "name":
            return self._named(token)
        if token.kind == "word" and (token.text not in KEYWORDS or token.text in _CONSTANTS or token.text == "nan"):
            return self._word(token)
        if token.kind == "sign" and token.text in "+-":
            return self._signed(token)
        if token.kind == "sign" and token.text in "([":
            self._deeper(token)
            node = self._list(token) if token.text == "[" else self._parentheses(token)
            self._depth -= 1
            return node
        self._next -= 1
        self._unexpected("a name or a value")

    def _word(self, token: Token) -> Operand:
        if token.text in _CONSTANTS:
            return Literal(_CONSTANTS[token.text], token.at)
        if token.text == "nan":
            self._fail("nan equals nothing, not even itself", token.at, "To find it, write score != score")
        if self._is("(") and token.text == "len":
            return self._length(token)
        return self._named(token)

    def _named(self, token: Token) -> Name:
        if self._is("("):
            at = (token.at[0], self._token.at[1])
            self._fail("there is no function but len", at, "As in: len(tokens) > 512")
        if self._is("["):
            hint = "To test whether it contains a value, write 3 in tokens"
            self._fail("filters cannot index a field", self._token.at, hint)
        return Name(token.text, token.at)

    def _length(self, token: Token) -> Length:
        self._take()
        name = self._take()
        if name.kind not in ("word", "name") or (name.kind == "word" and name.text in KEYWORDS):
            self._fail("len takes the name of a field", name.at, "As in: len(tokens) > 512")
        if not self._took(")"):
            self._unexpected(")", "len takes the name of a field: len(tokens)")
        return Length(name.text, (token.at[0], self._tokens[self._next - 1].at[1]))

    def _signed(self, sign: Token) -> Literal:
        token = self._token
        value = token.value if token.kind == "literal" else _CONSTANTS.get(token.text) if token.kind == "word" else None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise arithmetic(self._text, sign.at)
        self._take()
        return self._checked(-value if sign.text == "-" else value, (sign.at[0], token.at[1]))

    def _checked(self, value: object, at: Span) -> Literal:
        if isinstance(value, int) and not -(2**63) <= value < 2**64:
            self._fail("an integer of more than 64 bits", at, "Write it with an exponent: 1e30")
        assert isinstance(value, bool | int | float | str | bytes)
        return Literal(value, at)

    def _list(self, start: Token) -> ValueList:
        items = []
        while not self._is("]"):
            items.append(self._item(self._operand()))
            if not self._took(",") and not self._is("]"):
                self._unexpected(", or ]")
        return ValueList(tuple(items), (start.at[0], self._take().at[1]))

    def _item(self, node: Condition | Operand) -> Literal:
        if not isinstance(node, Literal):
            at = node.at if isinstance(node, Name | Length | ValueList) else self._tokens[self._next - 1].at
            self._fail("a list holds values only", at, 'As in: [1, 2] or ["cat", "dog"]')
        if node.value is None:
            self._fail("none cannot be in a list", node.at, "Write: label in [1, 2] or label is none")
        return node

    def _parentheses(self, start: Token) -> Condition | Operand:
        """Return the contents of parentheses: a condition, one operand, or a list."""
        if self._is(")"):
            return ValueList((), (start.at[0], self._take().at[1]))
        node = self._any()
        if self._is(","):
            items = [self._item(node)]
            while self._took(",") and not self._is(")"):
                items.append(self._item(self._operand()))
            node = ValueList(tuple(items), (start.at[0], self._token.at[1]))
        if not self._took(")"):
            self._unexpected(")", f"It closes the ( at character {start.at[0] + 1}.")
        return node

    def _unexpected(self, expected: str, hint: str = "") -> NoReturn:
        """Raise the error for an unexpected token."""
        token = self._token
        before = self._tokens[self._next - 1] if self._next else token
        for near in (token, before):
            if near.kind == "word" and near.text not in KEYWORDS and near.text.lower() in KEYWORDS:
                self._fail(f"{near.text} is not a word of the language", near.at, f"Write {near.text.lower()}.")
        if token.kind == "sign" and token.text in "+-":
            raise arithmetic(self._text, token.at)
        found = f"found {token.text[:40]}" if token.kind in ("word", "sign") else "found a value"
        if token.kind in ("end", "name"):
            found = "the filter ends" if token.kind == "end" else "found a name"
        if token.kind == "word" and before.kind == "word" and before.text not in KEYWORDS:
            hint = hint or "A name that is not one plain word is written in backquotes, text in quotes."
        self._fail(f"expected {expected}; {found}", token.at, hint)
