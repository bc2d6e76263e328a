"""Every exception this package raises on purpose.

RecordKitError
├── DataLossError        TensorFlow's name for damage
│   ├── CorruptRecordError   the bytes are not a sound record
│   │   └── MalformedPayloadError   the record is sound, but its payload is not a sound Example
│   └── WrongFileError       the file is something else, not a TFRecord file
├── InvalidArgumentError   TensorFlow's name for a value that does not fit; MalformedPayloadError is one, too
│   └── SchemaError          the bytes are sound but do not match the schema, or a value does not fit its field
├── StorageError         the file system refused, or its contents are not as expected
│   ├── NotFoundError        there is no such file; TensorFlow's name, too
│   ├── PermissionDeniedError   this user may not read or write it; TensorFlow's name, too
│   ├── TargetExistsError    the target already exists
│   ├── TargetBusyError      another writer is using the target
│   ├── ConflictError        a file is not in the state that a write depends on
│   └── OutcomeUnknownError  the reply was lost: the write may or may not have happened
├── StateError           a pipeline cannot resume from a state, or its steps cannot follow each other
└── MissingExtraError    an optional dependency is not installed

Each has a built-in parent, so `except ValueError` still works; has its facts as attributes; and survives pickling, so
it can come from a worker process. Four have TensorFlow's names, for scripts that catch `tf.errors.DataLossError`,
`InvalidArgumentError`, `NotFoundError` and `PermissionDeniedError`.
"""

from __future__ import annotations

import errno as _errno
from typing import Any, Self

__all__ = [
    "ConflictError",
    "CorruptRecordError",
    "DataLossError",
    "InvalidArgumentError",
    "MalformedPayloadError",
    "MissingExtraError",
    "NotFoundError",
    "OutcomeUnknownError",
    "PermissionDeniedError",
    "RecordKitError",
    "SchemaError",
    "StateError",
    "StorageError",
    "TargetBusyError",
    "TargetExistsError",
    "WrongFileError",
]


class _Text:
    """The text of an error, as `message`: the name that TensorFlow's errors use.

    Only instances have it: if a class has `message`, PyTorch passes an argument of that name to it.
    """

    def __get__(self, error: Exception | None, kind: type[Exception]) -> str:
        if error is None:
            message = "message"
            raise AttributeError(message)
        return str(error)


class RecordKitError(Exception):
    r"""The parent of all exceptions of this package.

    The message has three parts: `place: summary`, and the advice on the lines below. Raise an error with these parts,
    or with the whole message as `summary`.

    Attributes:
        place: The file, record and field, as far as they are known. May be empty.
        summary: What is wrong, in one line.
        advice: What to do about it, in any number of lines. May be empty.

    >>> error = StorageError("a.tfrecord: the disk is full\n  Free some space.", path="a.tfrecord")
    >>> error.place, error.summary, error.advice
    ('a.tfrecord', 'the disk is full', 'Free some space.')
    >>> print(RecordKitError("the disk is full", place="a.tfrecord", advice="Free some space."))
    a.tfrecord: the disk is full
      Free some space.
    """

    message = _Text()
    place: str
    summary: str
    advice: str

    def __init__(self, summary: str = "", *, place: str = "", advice: str = "") -> None:
        first, _, rest = summary.partition("\n")
        self.place, self.summary = (place, first) if place else self._split(first)
        self.advice = advice or "\n".join(line.removeprefix("  ") for line in rest.split("\n"))
        is_whole = not advice and self.headline == first  # keep it to the character
        message = summary if is_whole else self._joined()
        super().__init__(message)
        self.args = (message,)  # OSError sets them in __new__ only

    @property
    def headline(self) -> str:
        """The first line of the message: the place and the summary."""
        return f"{self.place}: {self.summary}" if self.place else self.summary

    def but(self, **changes: Any) -> Self:
        """Return a copy with other parts or facts.

        >>> print(SchemaError("age: expected int8, found 300", field="age").but(advice="Declare int16."))
        age: expected int8, found 300
          Declare int16.
        """
        rebuild, (kind, args, facts) = self.__reduce__()
        error: Self = rebuild(kind, args, {**facts, **changes})
        error.args = (error._joined(),)
        return error

    def _joined(self) -> str:
        return "\n  ".join([self.headline, *self.advice.split("\n")]) if self.advice else self.headline

    def _split(self, line: str) -> tuple[str, str]:
        """Split a line into the place it starts with, if that agrees with the facts of this error, and the rest."""
        path, record, offset, field = (getattr(self, name, None) for name in ("path", "record", "offset", "field"))
        at = 0
        for part in (*_places(path, record, offset), *([field] if field else [])):
            if line.startswith(f"{part}: ", at):
                at += len(part) + 2
        return line[: max(0, at - 2)], line[at:]

    def __reduce__(self) -> tuple[Any, ...]:
        # The default passes `args` to __init__ and would lose, or trip over, keyword arguments.
        return _rebuild, (type(self), self.args, self.__dict__)


def headline_of(error: BaseException) -> str:
    """Return the first line of the message of any error."""
    return error.headline if isinstance(error, RecordKitError) else str(error).split("\n", 1)[0]


def record_place(path: str | None, record: int | None = None, offset: int | None = None) -> str:
    """Return the place of a record, as messages print it.

    >>> record_place("a.tfrecord", 3, 81)
    'a.tfrecord: record 3 at byte 81'
    """
    return ": ".join(_places(path, record, offset))


def _places(path: str | None, record: int | None, offset: int | None) -> list[str]:
    at = "" if offset is None else f" at byte {offset}"
    return [str(part) for part in (path, None if record is None else f"record {record}{at}") if part]


def _rebuild(kind: type[RecordKitError], args: tuple[Any, ...], facts: dict[str, Any]) -> RecordKitError:
    error = kind.__new__(kind)
    error.args = args
    for name, value in facts.items():
        setattr(error, name, value)
    return error


class DataLossError(RecordKitError, ValueError):
    """Bytes are damaged or lost, in TensorFlow's words.

    >>> issubclass(CorruptRecordError, DataLossError)
    True
    """


class InvalidArgumentError(RecordKitError, ValueError):
    """A value does not fit, in TensorFlow's words.

    >>> issubclass(SchemaError, InvalidArgumentError)
    True
    """


class CorruptRecordError(DataLossError):
    """The bytes are not a sound record, or its payload is not a sound message.

    Attributes:
        path: The file, if it is known.
        record: The number of the record in its file.
        offset: Where the record starts in its file.
        byte: Where the problem is inside the payload, if its checksum is right.
        kind: One word for what is wrong, such as `"bad_payload_crc"`.
        field: The feature, if the problem is inside one.
    """

    def __init__(
        self,
        summary: str,
        *,
        place: str = "",
        advice: str = "",
        path: str | None = None,
        record: int | None = None,
        offset: int | None = None,
        byte: int | None = None,
        kind: str | None = None,
        field: str | None = None,
    ) -> None:
        self.path = path
        self.record = record
        self.offset = offset
        self.byte = byte
        self.kind = kind
        self.field = field
        super().__init__(summary, place=place, advice=advice)


class MalformedPayloadError(CorruptRecordError, InvalidArgumentError):
    """The record is sound, but its payload is not a valid message."""


class WrongFileError(DataLossError):
    """The file is something else, not a TFRecord file.

    Attributes:
        path: The file.
        kind: One word for what it is, such as `"git_lfs"` or `"html"`.
    """

    def __init__(
        self, summary: str, *, place: str = "", advice: str = "", path: str | None = None, kind: str | None = None
    ) -> None:
        self.path = path
        self.kind = kind
        super().__init__(summary, place=place, advice=advice)


class SchemaError(InvalidArgumentError):
    """Sound bytes or values that do not match what was declared or asked for.

    Attributes:
        field: The field's name.
        record: The number of the record or row.
        path: The file, if there is one.
        expected: What was declared.
        found: What is there.
        where: A sentence that names the row or record, such as `"In row 4."`. The message has it before the advice.

    >>> error = SchemaError("age: expected int8, found 300", field="age", record=4, where="In row 4.")
    >>> print(error.but(advice="Declare int16."))
    age: expected int8, found 300
      In row 4. Declare int16.
    """

    def __init__(
        self,
        summary: str,
        *,
        place: str = "",
        where: str = "",
        advice: str = "",
        field: str | None = None,
        record: int | None = None,
        path: str | None = None,
        expected: str | None = None,
        found: str | None = None,
    ) -> None:
        self.field = field
        self.record = record
        self.path = path
        self.expected = expected
        self.found = found
        self.where = where
        super().__init__(summary, place=place, advice=advice)
        self.args = (self._joined(),) if where else self.args

    def _joined(self) -> str:
        lines = f"{self.where} {self.advice}".strip()
        return "\n  ".join([self.headline, *lines.split("\n")]) if lines else self.headline


class StorageError(RecordKitError, OSError):
    """The file system refused, or its contents are not as expected.

    Attributes:
        path: The file or folder.
        errno: The error code of the operating system, such as `errno.ENOSPC` for a full disk.

    As for `OSError`, `errno` decides the class:

    >>> type(StorageError("a.tfrecord: there is no such file", errno=_errno.ENOENT)).__name__
    'NotFoundError'
    """

    def __new__(cls, summary: str = "", *, errno: int | None = None, **parts: str | None) -> StorageError:
        """Return an error of the class that belongs to `errno`."""
        return super().__new__(_BY_ERRNO.get(errno, cls) if cls is StorageError else cls, summary)

    def __init__(
        self, summary: str = "", *, place: str = "", advice: str = "", path: str | None = None, errno: int | None = None
    ) -> None:
        self.path = path
        self.errno = errno
        super().__init__(summary, place=place, advice=advice)

    def __reduce__(self) -> tuple[Any, ...]:
        rebuild, (kind, args, facts) = super().__reduce__()
        return rebuild, (kind, args, {**facts, "errno": self.errno})  # not in __dict__


class NotFoundError(StorageError, FileNotFoundError):
    """There is no such file or folder."""


class PermissionDeniedError(StorageError, PermissionError):
    """This user may not read or write it."""


_BY_ERRNO: dict[int | None, type[StorageError]] = {
    _errno.ENOENT: NotFoundError,
    _errno.EACCES: PermissionDeniedError,
    _errno.EPERM: PermissionDeniedError,
}


class TargetExistsError(StorageError, FileExistsError):
    """The target already exists."""


class TargetBusyError(StorageError, BlockingIOError):
    """Another writer is writing the target."""


class ConflictError(StorageError):
    """A file is not in the state that a write depends on; nothing was written."""


class OutcomeUnknownError(StorageError):
    """The reply of a file system was lost: the write has happened, will happen later, or never will."""


class StateError(RecordKitError, ValueError):
    """A pipeline cannot resume from a state, or its steps cannot follow each other.

    >>> raise StateError("the state is of another dataset")
    Traceback (most recent call last):
        ...
    recordkit.errors.StateError: the state is of another dataset
    """


class MissingExtraError(RecordKitError, ImportError):
    """An optional dependency is not installed.

    >>> str(MissingExtraError("bfloat16", "ml_dtypes", "ml_dtypes"))
    "bfloat16 needs ml_dtypes: pip install 'recordkit[ml_dtypes]'"
    """

    def __init__(self, what: str, package: str, extra: str) -> None:
        super().__init__(f"{what} needs {package}: pip install 'recordkit[{extra}]'")
        self.package = package
        self.extra = extra
