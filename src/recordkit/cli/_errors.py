"""Errors: messages in two lines, in terms of the command line."""

from __future__ import annotations

import re
import shlex
import traceback
from typing import TYPE_CHECKING, Any, Final

from recordkit.errors import CorruptRecordError, RecordKitError, SchemaError, WrongFileError

from ._parser import UsageError

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["as_dict", "in_shell_words", "message_of", "status_of"]

# Arguments in messages of the library, as command-line options. All patterns are replaced, in this order.
_WORDS: Final = (
    (
        re.compile(r"\brecordkit\.repair\((['\"])(.*?)\1, \.\.\.(?:, accept=(['\"])(\w+)\3)?\)"),
        lambda found: f"recordkit repair {shlex.quote(found[2])}" + (f" --accept {found[4]}" if found[4] else ""),
    ),
    (re.compile(r"\brecordkit\.repair\(src, dst\)"), "recordkit repair"),
    (re.compile(r"\boverlays=False\b"), "--no-overlays"),
    (re.compile(r"\bon_error=(['\"])skip\1"), "--skip-errors"),
    (re.compile(r"\b(accept|check|compression)=['\"](\w+)['\"]"), r"--\1 \2"),
    (re.compile(r"\b(overwrite|replace|cut_torn_tail|nested|batched)=True\b"), lambda found: _option(found[1])),
    (re.compile(r"\bresume=False\b"), "--no-resume"),
    (
        re.compile(r"(?<![-\w])(out|overlay|on|port|split|schema|reads|where|accept|workers)=(?![\w'\"\[])"),
        lambda found: _option(found[1]),
    ),
    (re.compile(r"\brecordkit\.(verify|repair|diff|stats|index)\b(?!\()"), r"recordkit \1"),
)


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")


def in_shell_words(message: str) -> str:
    r"""Return a message with function arguments replaced by command-line options.

    >>> in_shell_words("label: data has a field label already\n  To replace it: replace=True.")
    'label: data has a field label already\n  To replace it: --replace.'
    """
    for pattern, words in _WORDS:
        message = pattern.sub(words, message)
    return message


def message_of(error: BaseException) -> str:
    """Return the message for an error: what is wrong, and what to do."""
    if isinstance(error, UsageError):
        return str(error)
    if isinstance(error, RecordKitError):
        message = in_shell_words(str(error))
        return message.replace("Its traceback is above", _place_in_code(error.__cause__))
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename or 'the output cannot be written'}: {error.strerror}"
    if isinstance(error, ValueError | TypeError | MemoryError):
        return in_shell_words(str(error)) or type(error).__name__
    return f"{type(error).__name__}: {error}\n  This should not happen. RECORDKIT_TRACEBACK=1 shows where it did."


def _place_in_code(error: BaseException | None) -> str:
    """Return where a function of the user failed."""
    found = _last(error.__traceback__) if error is not None else None
    return f"In {found.filename}, line {found.lineno}: {found.line}" if found is not None else "It is one of yours"


def _last(where: TracebackType | None) -> traceback.FrameSummary | None:
    frames = traceback.extract_tb(where)
    return frames[-1] if frames else None


def status_of(error: BaseException) -> int:
    """Return the exit status: 1 for problems with the data, 2 for wrong usage."""
    if isinstance(error, CorruptRecordError | WrongFileError):
        return 1
    return 1 if isinstance(error, SchemaError) and error.record is not None else 2


def as_dict(error: BaseException) -> dict[str, Any]:
    """Return an error for JSON."""
    message, _, advice = message_of(error).partition("\n")
    facts = {name: getattr(error, name, None) for name in ("path", "kind", "record", "offset", "byte", "field")}
    known = {name: value for name, value in facts.items() if value is not None}
    return {"type": type(error).__name__, "message": message, "advice": advice.strip(), **known}
