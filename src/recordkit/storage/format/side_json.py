"""Side JSON: recordkit's own JSON files next to records, accepted only if they are as declared.

They come from strangers as the records do. So each is declared: its keys, their types and ranges. Whatever is not so is
one error, a `StorageError` that names the file, the key, what was expected and what was found.
"""

from __future__ import annotations

import json
import math
import os
import re
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from recordkit.errors import StorageError
from recordkit.filesystems import TOO_MANY, TOO_MANY_CODES, open_regular

from . import _names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

MOST_BYTES: Final = 64 << 20  # of one file, and of one line of a quarantine file
MOST_DEPTH: Final = 64  # lists and objects within each other, where anything may stand
MOST: Final = (1 << 63) - 1
_FORMAT: Final = "format"
_SHOWN: Final = 40  # characters of text that an error shows

Rule: TypeAlias = "Callable[[Any], None]"


class FormatMismatch(Exception):  # noqa: N818 - no error of its own: `JsonFormat` makes one of it
    """A value does not match its declaration.

    Args:
        found: What is there.
        expected: What should be.
    """

    def __init__(self, found: str, expected: str) -> None:
        super().__init__(found, expected)
        self.found = found
        self.expected = expected
        self._keys: list[int | str] = []

    def within(self, key: int | str) -> FormatMismatch:
        """Return the error as seen from the enclosing list or object."""
        self._keys.insert(0, key)
        return self

    def __str__(self) -> str:
        where = "".join(f"[{key}]" if isinstance(key, int) else f".{_short(key)}" for key in self._keys)
        return f"{where.removeprefix('.')}{': ' if where else ''}expected {self.expected}, found {self.found}"


# --- What can be declared


def number(least: int = 0, most: int = MOST) -> Rule:
    """Declare a whole number."""

    def check(value: Any) -> None:
        if type(value) is not int or not least <= value <= most:
            top = " up" if most == MOST else f" to {most:,}"
            raise FormatMismatch(in_words(value), f"a whole number from {least:,}{top}")

    return check


def text(pattern: str = ".*", words: str = "text") -> Rule:
    """Declare text that matches a pattern."""
    like = re.compile(pattern, re.DOTALL)

    def check(value: Any) -> None:
        if not isinstance(value, str) or not like.fullmatch(value):
            raise FormatMismatch(in_words(value), words)

    return check


def file_name(value: Any) -> None:
    """Declare the plain name of a file, which cannot lead elsewhere."""
    if not isinstance(value, str) or not _names.is_plain(value):
        raise FormatMismatch(in_words(value), "the plain name of a file")


def true_or_false(value: Any) -> None:
    """Declare a truth value."""
    if not isinstance(value, bool):
        raise FormatMismatch(in_words(value), "true or false")


def one_of(*values: str | None) -> Rule:
    """Declare one of a few values."""
    words = " or ".join("null" if value is None else f'"{value}"' for value in values)

    def check(value: Any) -> None:
        if not isinstance(value, str | None) or value not in values:
            raise FormatMismatch(in_words(value), words)

    return check


def or_null(rule: Rule) -> Rule:
    """Declare a value that may be null."""

    def check(value: Any) -> None:
        if value is not None:
            rule(value)

    return check


def array(rule: Rule, size: int | None = None) -> Rule:
    """Declare a list of values of one kind, of any size or a given one."""

    def check(value: Any) -> None:
        if not isinstance(value, list) or size not in (None, len(value)):
            raise FormatMismatch(in_words(value), "a list" if size is None else f"a list of {size}")
        for place, each in enumerate(value):
            try:
                rule(each)
            except FormatMismatch as mismatch:
                raise mismatch.within(place) from None

    return check


def table(rule: Rule, keys: Rule | None = None) -> Rule:
    """Declare an object with any keys and values of one kind."""

    def check(value: Any) -> None:
        if not isinstance(value, dict):
            raise FormatMismatch(in_words(value), "an object")
        for key, each in value.items():
            try:
                if keys is not None:
                    keys(key)
                rule(each)
            except FormatMismatch as mismatch:
                raise mismatch.within(key) from None

    return check


def record(required: Mapping[str, Rule], optional: Mapping[str, Rule] | None = None) -> Rule:
    """Declare an object with these keys, and no others."""
    rules = {**required, **(optional or {})}

    def check(value: Any) -> None:
        if not isinstance(value, dict):
            raise FormatMismatch(in_words(value), "an object")
        for key in required:
            if key not in value:
                raise FormatMismatch(", ".join(map(_short, list(value)[:20])) or "no keys", f"the key {key}")
        for key, each in value.items():
            rule = rules.get(key)
            if rule is None:
                raise FormatMismatch(_short(key), f"no keys but {', '.join(rules)}")
            try:
                rule(each)
            except FormatMismatch as mismatch:
                raise mismatch.within(key) from None

    return check


def nothing(value: Any) -> None:
    """Declare that there is no value: for the items of empty lists."""
    raise FormatMismatch(in_words(value), "an empty list")


def anything(value: Any) -> None:
    """Declare any JSON value with finite numbers and limited nesting."""
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > MOST_DEPTH:
            words = "more lists and objects within each other"
            raise FormatMismatch(words, f"at most {MOST_DEPTH}")
        inner: list[Any] = []
        for each in level:
            if isinstance(each, float) and not math.isfinite(each):
                raise FormatMismatch(str(each), "finite numbers")
            if isinstance(each, dict):
                inner += each.values()
            elif isinstance(each, list):
                inner += each
        level = inner


def in_words(value: Any) -> str:
    """Describe a value in a few words, without long text from the file."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value) if value.bit_length() < 128 else f"a number of {value.bit_length():,} bits"
    if isinstance(value, float):
        return str(value)
    if isinstance(value, str):
        return json.dumps(value) if len(value) <= _SHOWN else f"text of {len(value):,} characters"
    return f"a list of {len(value):,}" if isinstance(value, list) else "an object"


def _short(key: str) -> str:
    shown = key if key.isprintable() else repr(key)
    return shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"


# --- Reading


class JsonFormat:
    """A kind of JSON file, and what it holds.

    Args:
        what: What errors call it.
        rule: What its value is, or what that is in each version that its key `format` tells.
        advice: What to do about one that is not so.
    """

    def __init__(self, what: str, rule: Rule | Mapping[int, Rule], advice: str) -> None:
        self._what = what
        self._rule = rule
        self._advice = advice

    def load(self, path: Path) -> Any:
        """Load and check a file.

        Raises:
            FileNotFoundError: There is none.
            StorageError: It is not as declared.
        """
        try:
            return self.parse(read_small(path), str(path))
        except FormatMismatch as mismatch:
            raise self.error(str(path), str(mismatch)) from None
        except (FileNotFoundError, NotADirectoryError):
            raise FileNotFoundError(str(path)) from None
        except StorageError:
            raise
        except OSError as error:
            words = f"it cannot be read: {os.strerror(error.errno or 0)}"
            message = str(self.error(str(path), words))
            if error.errno in TOO_MANY_CODES:
                message = f"{path}: {words.removeprefix('it ')}\n  {TOO_MANY}"
            raise StorageError(message, path=str(path), errno=error.errno) from None

    def parse(self, data: bytes, where: str) -> Any:
        """Parse and check some bytes.

        Raises:
            StorageError: They are not as declared.
        """
        try:
            value = json.loads(
                data.decode("utf-8", "surrogatepass"), object_pairs_hook=_object, parse_constant=_no_constant
            )
            self._check(value, where)
        except FormatMismatch as mismatch:
            raise self.error(where, str(mismatch)) from None
        except RecursionError:
            raise self.error(where, "expected JSON, found lists and objects too deep within each other") from None
        except ValueError as error:
            raise self.error(where, f"expected JSON: {error}") from None
        return value

    def check(self, value: Any, where: str) -> None:
        """Check that a value that is about to be written can be read again.

        Raises:
            StorageError: It is not as declared.
        """
        try:
            self._check(value, where)
        except FormatMismatch as mismatch:
            raise self.error(where, str(mismatch)) from None

    def _check(self, value: Any, where: str) -> None:
        rule = self._rule
        if not callable(rule):
            newest = max(rule)
            version = value.get(_FORMAT) if isinstance(value, dict) else None
            if type(version) is int and version > newest:
                message = (
                    f"{where}: the {self._what} has format {in_words(version)}, and this recordkit knows {newest}\n"
                    "  Install a newer recordkit."
                )
                raise StorageError(message, path=where)
            _versioned(value)
            rule = rule[value[_FORMAT]]
        rule(value)

    def error(self, where: str, words: str) -> StorageError:
        """Return the error for a file that is not as declared."""
        return StorageError(f"{where}: this is no sound {self._what}: {words}\n  {self._advice}", path=where)


def to_bytes(value: Any) -> bytes:
    r"""Return the JSON of a value. Bytes of file names that are not text are written as escapes.

    >>> to_bytes({"name": "caf\udce9"})
    b'{\n "name": "caf\\udce9"\n}\n'
    """
    text = json.dumps(value, indent=1, ensure_ascii=False) + "\n"
    return re.sub("[\ud800-\udfff]", lambda found: f"\\u{ord(found[0]):04x}", text).encode()


def _versioned(value: Any) -> None:
    if not isinstance(value, dict):
        raise FormatMismatch(in_words(value), "an object")
    if _FORMAT not in value:
        raise FormatMismatch(", ".join(map(_short, list(value)[:20])) or "no keys", "the key format")
    try:
        number(least=1)(value[_FORMAT])
    except FormatMismatch as mismatch:
        raise mismatch.within(_FORMAT) from None


def _object(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    pairs = list(pairs)
    value = dict(pairs)
    if len(value) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise FormatMismatch(_short(twice) + " twice", "every key once")
    return value


def _no_constant(word: str) -> None:
    raise FormatMismatch(word, "finite numbers")


def read_small(path: Path, most: int = MOST_BYTES) -> bytes:
    """Return the bytes of a small file.

    Raises:
        OSError: It cannot be read.
        FormatMismatch: It is larger than it may be.
    """
    with os.fdopen(open_regular(path), "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size > most:
            raise FormatMismatch(str(size), f"at most {most:,} bytes")
        return file.read(most + 1)  # one that grows meanwhile is cut, and so no JSON
