r"""Screen: text output, on a terminal or piped. Only a terminal gets colours and cut lines.

Text from data goes through `clean`, so that no record can send control characters to the terminal.

>>> clean("red: \x1b[31m"), cut("a long text", 6), spark([0, 1, 4, 8])
('red: \\x1b[31m', 'a lon…', ' ▁▄█')
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import unicodedata
from typing import TYPE_CHECKING, Any, Final, TextIO

from recordkit.wording import clean

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["Screen", "cells", "cut", "spark", "wrapped"]

_STYLES: Final = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36"}
_SGR: Final = re.compile(r"\x1b\[[\d;]*m")
_BARS: Final = " ▁▂▃▄▅▆▇█"
_LEAST: Final = 8  # characters that every column keeps


def cells(text: str) -> int:
    r"""Return the width of a text on a terminal, without its styles.

    >>> cells("abc"), cells("日本"), cells("\x1b[1mbold\x1b[0m")
    (3, 4, 4)
    """
    text = _SGR.sub("", text) if "\x1b" in text else text
    return len(text) if text.isascii() else sum(map(_cell, text))


def _cell(letter: str) -> int:
    if unicodedata.combining(letter) or unicodedata.category(letter) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def cut(text: str, width: int | None) -> str:
    """Cut a text without styles to a width, with an ellipsis."""
    if width is None or cells(text) <= width:
        return text
    taken, used = [], 1
    for letter in text:
        used += _cell(letter)
        if used > width:
            break
        taken.append(letter)
    return "".join(taken) + "…"


def wrapped(text: str, width: int | None, indent: str = "") -> list[str]:
    """Wrap a text to a width; lines after the first are indented."""
    lines, line = [], ""
    for word in text.split(" "):
        if line and width is not None and cells(line) + 1 + cells(word) > width:
            lines.append(line)
            line = indent + word
        else:
            line = f"{line} {word}" if line else word
    return [*lines, line]


def spark(counts: Sequence[float]) -> str:
    """Return numbers as a row of bars; every positive number is visible."""
    most = max(counts, default=0)
    if not most:
        return " " * len(counts)
    return "".join(_BARS[max(1, round(count / most * 8))] if count else " " for count in counts)


class Screen:
    """The output of a command.

    Args:
        out: Default: the current stdout.
        err: Default: the current stderr.

    Attributes:
        width: The width of the terminal; None if the output is not a terminal, and nothing is cut.
    """

    def __init__(self, out: TextIO | None = None, err: TextIO | None = None) -> None:
        self.out = out or sys.stdout
        self.err = err or sys.stderr
        self._colours = _has_colours(self.out)
        self._err_colours = _has_colours(self.err)
        self.width = shutil.get_terminal_size().columns if _is_terminal(self.out) else None

    @property
    def draws(self) -> bool:
        """Whether progress may be drawn."""
        return _is_terminal(self.err) and os.environ.get("TERM") != "dumb"

    def style(self, text: str, *styles: str) -> str:
        """Return a text in colours, if the output has any."""
        return _styled(text, styles) if self._colours and text else text

    def print(self, text: str = "") -> None:
        """Print a line."""
        self.out.write(text + "\n")

    def note(self, text: str) -> None:
        """Print a line on stderr."""
        self.err.write(text + "\n")

    def error(self, message: str) -> None:
        """Print an error message."""
        first, *rest = (clean(line) for line in message.splitlines() or [""])
        word = _styled("error:", ("bold", "red")) if self._err_colours else "error:"
        self.out.flush()
        self.note("\n".join([f"{word} {first}", *(line if line.startswith("  ") else f"  {line}" for line in rest)]))

    def json(self, value: Any) -> None:
        """Print a value as JSON."""
        self.print(clean_json(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)))

    def table(
        self,
        heads: Sequence[str],
        rows: Iterable[Sequence[str]],
        *,
        right: Sequence[str] = (),
        shrink: Sequence[str] = (),
        indent: str = "",
    ) -> None:
        """Print a table, without its empty columns.

        Args:
            heads: The column names, all different.
            rows: The cells, with styles only in columns that do not shrink.
            right: The columns to align right.
            shrink: The columns to cut if the table is too wide, in this order.
            indent: The start of each line.
        """
        rows = [list(row) for row in rows]
        used = [number for number in range(len(heads)) if any(row[number] for row in rows)]
        names = [heads[number] for number in used]
        rows = [[row[number] for number in used] for row in rows]
        widths = [max(map(cells, [name, *(row[at] for row in rows)])) for at, name in enumerate(names)]
        if self.width is not None:
            _fit(widths, [names.index(name) for name in shrink if name in names], self.width - len(indent))
        if any(names):
            self.print(indent + self.style(_line(names, names, widths, right), "dim"))
        for row in rows:
            self.print(indent + _line(row, names, widths, right))


def clean_json(text: str) -> str:
    r"""Return equivalent JSON text with control characters escaped.

    >>> clean_json('"\x9b31m"')
    '"\\u009b31m"'
    """
    return re.sub("[\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]", lambda found: f"\\u{ord(found[0]):04x}", text)


def _line(row: Sequence[str], names: Sequence[str], widths: Sequence[int], right: Sequence[str]) -> str:
    shown = []
    for cell, name, width in zip(row, names, widths, strict=True):
        text = cell if cells(cell) <= width else cut(cell, width)
        room = " " * (width - cells(text))
        shown.append(room + text if name in right else text + room)
    return "  ".join(shown).rstrip()


def _fit(widths: list[int], shrink: Sequence[int], most: int) -> None:
    """Make columns narrower until a line fits, or none can shrink further."""
    for at in shrink:
        over = sum(widths) + 2 * (len(widths) - 1) - most
        if over <= 0:
            return
        widths[at] = max(min(_LEAST, widths[at]), widths[at] - over)


def _styled(text: str, styles: Iterable[str]) -> str:
    return f"\x1b[{';'.join(_STYLES[style] for style in styles)}m{text}\x1b[0m"


def _is_terminal(file: TextIO) -> bool:
    return bool(getattr(file, "isatty", lambda: False)())


def _has_colours(file: TextIO) -> bool:
    """Tell whether to use colours, according to NO_COLOR, FORCE_COLOR and the terminal."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return _is_terminal(file) and os.environ.get("TERM") != "dumb"
