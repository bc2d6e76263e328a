"""Fenced: examples and drawings in docstrings, as blocks of code. Markdown would make quotations and prose of them."""

from __future__ import annotations

from typing import Any

from griffe import Extension


class Fenced(Extension):
    """Fences the examples of every docstring."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        """Change the docstring of what was found."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(text: str) -> str:
    """Return a text with fences around the examples, and around trees that are drawn with lines.

    Each ends at an empty line; an example may follow words, a tree has its paragraph for itself.
    """
    return "\n\n".join(map(_paragraph, text.split("\n\n")))


def _paragraph(text: str) -> str:
    lines = text.splitlines()
    first = next((at for at, line in enumerate(lines) if line.lstrip().startswith(">>>")), None)
    if first is not None:
        return "\n".join([*lines[:first], *_fence(lines[first:], "pycon")])
    if any("├──" in line for line in lines):
        return "\n".join(_fence(lines, "text"))
    return text


def _fence(lines: list[str], language: str) -> list[str]:
    room = " " * (len(lines[0]) - len(lines[0].lstrip()))
    return ["", f"{room}```{language}", *lines, f"{room}```"]
