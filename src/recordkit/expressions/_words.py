"""Words: how the errors of a filter are put together, with a caret under the place."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._nodes import Span

# A longer line is cut around the place.
_WIDTH = 96


def pointed(first: str, text: str, at: Span, hint: str = "") -> str:
    """Return a message: what is wrong, the line of the filter, a caret, and what to do.

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
    """Return the line that holds a place, fit to print, and where in it the place starts and how wide it is."""
    start, stop = at
    begin = text.rfind("\n", 0, start) + 1
    end = text.find("\n", start)
    end = len(text) if end < 0 else end
    before = after = ""
    if end - begin > _WIDTH:
        left = max(begin, start - _WIDTH // 2)
        before, begin = ("..." if left > begin else ""), left
        after, end = ("..." if end > left + _WIDTH else ""), min(end, left + _WIDTH)
    # What a terminal would act on is not shown as it is.
    shown = "".join(letter if letter.isprintable() else "?" for letter in text[begin:end].replace("\t", " "))
    return before + shown + after, len(before) + start - begin, max(1, min(stop, end) - start)


def syntax_error(wrong: str, text: str, at: Span, hint: str = "") -> ValueError:
    """Return the error for a text that is not in the language."""
    return ValueError(pointed(f"filter: {wrong}", text, at, hint))
