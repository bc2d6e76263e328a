"""Tokens: the words, signs and literals that a filter's text is made of."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple, NoReturn

if TYPE_CHECKING:
    from ._nodes import Span, Value


# A longer line is shortened around the place.
_WIDTH = 96


def pointed(first: str, text: str, at: Span, hint: str = "") -> str:
    """Return a message: the mistake, the line of the filter, a caret, and advice.

    >>> print(pointed("filter: & is for numbers", "a & b", (2, 3), "Write and."))
    filter: & is for numbers
      a & b
        ^
      Write and.
    """
    line, start, width = _line_around(text, at)
    lines = [first, f"  {line}", f"  {' ' * start}{'^' * width}"]
    return "\n".join([*lines, f"  {hint}"] if hint else lines)


def _line_around(text: str, at: Span) -> tuple[str, int, int]:
    """Return the line around a place, safe to print, with the column and width of the place."""
    start, stop = at
    begin = text.rfind("\n", 0, start) + 1
    end = text.find("\n", start)
    end = len(text) if end < 0 else end
    before = after = ""
    if end - begin > _WIDTH:
        left = max(begin, start - _WIDTH // 2)
        before, begin = ("..." if left > begin else ""), left
        after, end = ("..." if end > left + _WIDTH else ""), min(end, left + _WIDTH)
    # Control characters are escaped.
    shown = "".join(letter if letter.isprintable() else "?" for letter in text[begin:end].replace("\t", " "))
    return before + shown + after, len(before) + start - begin, max(1, min(stop, end) - start)


def syntax_error(wrong: str, text: str, at: Span, hint: str = "") -> ValueError:
    """Return the error for a text that is not in the language."""
    return ValueError(pointed(f"filter: {wrong}", text, at, hint))


KEYWORDS = frozenset({"and", "or", "not", "in", "is", "true", "false", "True", "False", "none", "None", "inf", "nan"})

_TOKEN = re.compile(
    r"""
    (?P<space>\s+)
  | (?P<prefix>[^\W\d]\w*)?(?P<quote>["'])
  | (?P<word>[^\W\d]\w*)
  | `(?P<quoted>(?:[^`]|``)+)`
  | (?P<number>(?:[0-9](?:_?[0-9])*\.?(?:[0-9](?:_?[0-9])*)?|\.[0-9](?:_?[0-9])*)(?:[eE][+-]?[0-9]+)?)
  | (?P<sign>==|!=|<=|>=|<|>|[()\[\],+-])
    """,
    re.VERBOSE,
)
# A text literal without its quotes: no line ends in it, and a backslash takes the next character along.
_INSIDE = {quote: re.compile(rf"(?:[^{quote}\\\n]|\\[^\n])*") for quote in ("'", '"')}
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL)
_SIMPLE = {"\\": "\\", "'": "'", '"': '"', "n": "\n", "r": "\r", "t": "\t"}

# Operators of other languages, longest first, and what to write instead.
_ELSEWHERE = {
    "===": "Write ==.",
    "<>": "Write !=.",
    "=>": "Write >=.",
    "=<": "Write <=.",
    "≥": "Write >=.",
    "≤": "Write <=.",
    "≠": "Write !=.",
    "&&": "Write and.",
    "||": "Write or.",
    "**": "There is no arithmetic here.",
    "//": "There is no arithmetic here.",
    ":=": "Nothing can be named here.",
    "=": "Write ==.",
    "&": "Write and.",
    "|": "Write or.",
    "!": "Write not.",
    "~": "Write not.",
}
_ARITHMETIC = "/.*%@-+"


class Token(NamedTuple):
    """A piece of the text.

    Attributes:
        kind: "word", "name" (in backquotes), "literal", "sign" or "end".
        text: The word, the name or the sign.
        at: Where it is in the text.
        value: The value of a literal.
    """

    kind: str
    text: str
    at: Span
    value: Value = None


def tokens(text: str) -> list[Token]:
    """Return the tokens of a text, followed by one of kind "end".

    >>> [token.text for token in tokens("`a/b`>=3")]
    ['a/b', '>=', '3', '']
    """
    found: list[Token] = []
    place = 0
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            _refuse(text, place)
        if match["quote"]:
            found.append(_literal(text, match))
        elif not match["space"]:
            found.append(_plain(text, match))
        place = found[-1].at[1] if match["quote"] else match.end()
    return [*found, Token("end", "", (len(text), len(text)))]


def _plain(text: str, match: re.Match[str]) -> Token:
    at = match.span()
    if match["word"]:
        return Token("word", match[0], at)
    if match["quoted"]:
        return Token("name", match["quoted"].replace("``", "`"), at)
    if match["sign"]:
        if match[0] == "==" and text.startswith("===", at[0]):
            _refuse(text, at[0])
        if match[0] == "<" and text.startswith("<>", at[0]):
            _refuse(text, at[0])
        return Token("sign", match[0], at)
    return Token("literal", match[0], at, _number(text, match))


def _number(text: str, match: re.Match[str]) -> int | float:
    after = re.compile(r"[\w.]+").match(text, match.end())
    if after:
        at = (match.start(), after.end())
        hint = f"A name that starts with a digit is written in backquotes: `{text[slice(*at)]}`."
        wrong = "a number runs into what follows"
        raise syntax_error(wrong, text, at, hint)
    try:
        return int(match[0])
    except ValueError:
        return float(match[0])


def _literal(text: str, match: re.Match[str]) -> Token:
    """Return a text or bytes literal; the match ends after the opening quote."""
    prefix, quote, start = match["prefix"] or "", match["quote"], match.start()
    if prefix not in ("", "b", "B"):
        wrong, hint = f"{prefix}{quote} starts no text", 'Text is written "so", bytes b"so".'
        raise syntax_error(wrong, text, (start, match.end()), hint)
    inside = _INSIDE[quote].match(text, match.end())
    assert inside is not None  # it matches nothing, too
    at = (start, inside.end() + 1)
    if text[inside.end() : at[1]] != quote:
        wrong = "the text has no end"
        raise syntax_error(wrong, text, (start, match.end()), f"Close it with another {quote}, in the same line.")
    value = _unescaped(inside[0], text, inside.start(), wide=not prefix)
    return Token("literal", text[slice(*at)], at, _bytes(value, text, at) if prefix else value)


def _bytes(value: str, text: str, at: Span) -> bytes:
    try:
        return value.encode("latin-1")
    except UnicodeEncodeError:
        wrong = "bytes are written in ASCII"
        raise syntax_error(wrong, text, at, r"Write other bytes as \x and two digits: b'\xe9'.") from None


def _unescaped(raw: str, text: str, start: int, *, wide: bool) -> str:
    def letter(match: re.Match[str]) -> str:
        digits = match[1] or (wide and (match[2] or match[3]))
        code = int(digits, 16) if digits else -1
        if digits and code < 0x110000 and not 0xD800 <= code < 0xE000:
            return chr(code)
        if match[4] in _SIMPLE:
            return _SIMPLE[match[4]]
        wrong, at = f"{match[0]} is not a valid escape", (start + match.start(), start + match.end())
        raise syntax_error(wrong, text, at, r"Write a backslash itself as \\.")

    if not wide and not raw.isascii():
        _bytes("\u0100", text, (start, start + len(raw)))
    return _ESCAPE.sub(letter, raw)


def _refuse(text: str, place: int) -> NoReturn:
    """Raise the error for a character that cannot start a token."""
    found = next((sign for sign in _ELSEWHERE if text.startswith(sign, place)), text[place])
    at = (place, place + len(found))
    if found in _ELSEWHERE:
        verb = "does not compare" if "=" in _ELSEWHERE[found] else "is not part of the language"
        wrong = f"{found} {verb}"
        raise syntax_error(wrong, text, at, _ELSEWHERE[found])
    if found in _ARITHMETIC:
        raise arithmetic(text, at)
    if found == "`":
        wrong = "the name has no end" if text[place + 1 : place + 2] != "`" else "there is no name in the backquotes"
        raise syntax_error(wrong, text, at, "A name in backquotes: `image/height`.")
    wrong = f"{found if found.isprintable() else ascii(found)} has no meaning here"
    raise syntax_error(wrong, text, at, "Names that are not one plain word are written in backquotes, text in quotes.")


def arithmetic(text: str, at: Span) -> ValueError:
    """Return the error for an arithmetic sign, which is most often part of a name."""
    name = next(m for m in re.compile(r"[\w/.*%@+-]+").finditer(text) if m.start() <= at[0] < m.end())[0]
    example = f"`{name}`" if len(name) > 1 and not name.isdigit() else "`image/height`"
    hint = f"A name with this character in it is written in backquotes: {example}."
    return syntax_error(f"there is no arithmetic here ({text[slice(*at)]})", text, at, hint)
