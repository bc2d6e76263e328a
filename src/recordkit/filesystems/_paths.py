"""Paths: what users name, checked before anything is looked for or made under it."""

from __future__ import annotations

import errno
import os
import re
import stat
from contextlib import contextmanager
from typing import TYPE_CHECKING

from recordkit import _core
from recordkit.errors import RecordKitError, StorageError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["fitting", "given_path", "is_folder", "mode_of", "not_of_this_machine", "refusing", "scheme_of"]

# As in s3://bucket; `pathlib` makes one slash of two. A letter alone is no scheme, but may be a drive of Windows.
_ADDRESS = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]+):(//|/(?=[^/]))")
_MOST_NAME, _MOST_PATH = 255, 4096
_MOST_BESIDE = _MOST_NAME - len("..new")  # what is replaced is staged under such a name


def fitting(prefix: str, name: str, ending: str) -> str:
    """Return the name of something kept beside a file or folder. One that would be too long is cut, with a checksum.

    >>> fitting(".", "train", ".recordkit"), len(fitting(".", "x" * 255, ".recordkit"))
    ('.train.recordkit', 250)
    """
    whole = f"{prefix}{name}{ending}"
    if len(os.fsencode(whole)) <= _MOST_BESIDE:
        return whole
    encoded = os.fsencode(name)
    ending = f"~{_core.crc32c(encoded):08x}{ending}"
    kept = encoded[: _MOST_BESIDE - len(os.fsencode(prefix + ending))]
    return f"{prefix}{kept.decode(errors='ignore')}{ending}"


def given_path(path: str | os.PathLike[str], *, pattern: bool = False) -> str:
    """Return a path that the user names, if it can be one of this machine.

    Args:
        path: As it was given.
        pattern: Whether it may be a glob, whose parts are no names.

    Raises:
        StorageError: It is empty, an address such as `s3://bucket/train`, or nothing that the system takes for a path.

    >>> given_path("train/a.tfrecord")
    'train/a.tfrecord'
    """
    text = os.fspath(path)
    if not isinstance(text, str):
        message = f"expected a path as text, found bytes: {text!r:.80}\n  os.fsdecode makes text of them."
        raise TypeError(message)
    if not text:
        message = "expected a path, found an empty text"
        raise StorageError(message, path="")
    if (scheme := scheme_of(text)) is not None:
        raise not_of_this_machine(text, scheme)
    try:
        encoded = os.fsencode(text)
    except UnicodeEncodeError as error:
        message = (
            f"{text!r}: character {error.start} cannot be part of a file's name\n  Give the name as it is on the disk."
        )
        raise StorageError(message, path=text) from None
    if b"\0" in encoded:
        message = f"{text!r}: a path cannot have a zero byte in it\n  Give the name as it is on the disk."
        raise StorageError(message, path=text)
    longest = 0 if pattern else max(map(len, encoded.split(b"/")))
    if longest > _MOST_NAME or len(encoded) >= _MOST_PATH:
        size, most = (longest, _MOST_NAME) if longest > _MOST_NAME else (len(encoded), _MOST_PATH - 1)
        what = "name" if longest > _MOST_NAME else "path"
        message = (
            f"{text}: the {what} has {size:,} bytes, and the system takes {most:,} at most\n  Choose a shorter one."
        )
        raise StorageError(message, path=text, errno=errno.ENAMETOOLONG)
    return text


def scheme_of(text: str) -> str | None:
    """Return the scheme of an address such as `s3://bucket/train`, None if this is a path of this machine.

    >>> scheme_of("s3://bucket/train"), scheme_of("train/a.tfrecord")
    ('s3', None)
    """
    found = _ADDRESS.match(text)
    if found is None or not (found[0].endswith("//") or not is_folder(found["scheme"] + ":")):
        return None
    return found["scheme"].lower()


def not_of_this_machine(text: str, scheme: str) -> StorageError:
    """Return the error for an address where only a path of this machine will do."""
    if scheme == "file":
        own = "/" + text[len("file:") :].lstrip("/")
        advice = f"Give the path itself: {own}"
    else:
        advice = (
            "Copy the data to this machine, or mount it as a folder. recordkit.open also reads open file objects, and "
            "addresses of registered file systems."
        )
    message = f"{text}: expected a path of this machine, found an address that begins with {scheme}:\n  {advice}"
    return StorageError(message, path=text)


def mode_of(path: str | os.PathLike[str]) -> int:
    """Return what is under a name, as `os.stat` has it; 0 for nothing.

    Raises:
        StorageError: The system does not say.
    """
    try:
        return os.stat(path).st_mode  # noqa: PTH116 - a name, as it was given
    except (FileNotFoundError, NotADirectoryError):
        return 0
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:  # a pattern; names were looked at
            return 0
        message = f"{os.fspath(path)}: cannot be read: {error.strerror}"
        raise StorageError(message, path=os.fspath(path), errno=error.errno) from error


def is_folder(path: str | os.PathLike[str]) -> bool:
    """Tell whether there is a folder under a name.

    Raises:
        StorageError: The system does not say.
    """
    return stat.S_ISDIR(mode_of(path))


@contextmanager
def refusing(path: str | os.PathLike[str], doing: str) -> Iterator[None]:
    """Turn the operating system's errors inside the block into a `StorageError` that says what was done to `path`.

    >>> with refusing("no.json", "be read"):
    ...     open("no.json")
    Traceback (most recent call last):
        ...
    recordkit.errors.NotFoundError: no.json: cannot be read: No such file or directory
    """
    try:
        yield
    except RecordKitError:
        raise
    except OSError as error:
        message = f"{os.fspath(path)}: cannot {doing}: {error.strerror or error}"
        raise StorageError(message, path=os.fspath(path), errno=error.errno) from error
