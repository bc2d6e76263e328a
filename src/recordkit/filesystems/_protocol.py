"""What a file system offers: bytes by name, and one write that can be conditional.

`recordkit.testing.FileSystemContract` tests that a class keeps what is promised here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from typing_extensions import Buffer

    from ._local import LocalFile


class Range(NamedTuple):
    """A range of bytes in a file."""

    offset: int
    size: int


class ByteFile(ABC):
    """A file to read at any offset, from any number of threads. Classes inherit what is the same for most of them.

    Attributes:
        name: What errors call the file.
        version: Changes whenever the content does; None if nobody knows.
        seekable: False for a pipe, which can only be read from front to back.
    """

    name: str
    version: str | None = None
    seekable: bool = True

    @property
    def local(self) -> LocalFile | None:
        """The file on this machine, whose descriptor and map the core reads; None if it is elsewhere."""
        return None

    @property
    @abstractmethod
    def size(self) -> int:
        """The number of bytes; `UNKNOWN_SIZE` for a pipe that has not ended."""

    @abstractmethod
    def read_at(self, offset: int, size: int) -> bytes:
        """Return `size` bytes from `offset` on, or fewer at the end of the file.

        Raises:
            NotFoundError: The file was removed.
            StorageError: It cannot be read, or was replaced since it was opened.
        """

    def read_many(self, ranges: Sequence[Range]) -> list[bytes]:
        """Return several ranges, in their order. The file decides which ones to read together."""
        return [self.read_at(offset, size) for offset, size in ranges]

    def reopened(self) -> ByteFile:
        """Return the same file with resources of its own, for one job that closes it."""
        return self

    def check_not_truncated(  # noqa: B027 - most files cannot tell
        self, record: int | None = None, offset: int | None = None
    ) -> None:
        """Raise if the file has become shorter than it was.

        Args:
            record: The number of the record that a reader has reached.
            offset: Where that record starts.

        Raises:
            CorruptRecordError: It has.
        """

    def close(self) -> None:  # noqa: B027 - most files hold nothing
        """Release the file."""


UNKNOWN_SIZE: Final = 1 << 62  # of a pipe that has not ended


@dataclass(frozen=True, slots=True)
class Stat:
    """What a file system knows about one name.

    Attributes:
        size: Bytes; 0 for a folder.
        version: Changes whenever the content does. Pass it to `IfUnchanged`.
        is_folder: Whether it is a folder.
    """

    size: int
    version: str
    is_folder: bool = False


@dataclass(frozen=True, slots=True)
class Entry:
    """One name in a folder.

    Attributes:
        name: The plain name, without the folder.
        size: Bytes; 0 for a folder.
        is_folder: Whether it is a folder.
    """

    name: str
    size: int
    is_folder: bool = False


class Existence(Enum):
    """The conditions for `FileSystem.put` that need no version."""

    ALWAYS = "always"
    IF_ABSENT = "if absent"


@dataclass(frozen=True, slots=True)
class IfUnchanged:
    """The condition that a file still has this version."""

    version: str


When: TypeAlias = Existence | IfUnchanged
ALWAYS: Final = Existence.ALWAYS
IF_ABSENT: Final = Existence.IF_ABSENT


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a file system can do beyond reading and writing whole files.

    Attributes:
        conditional_put: `put` checks its condition and writes in one atomic step.
        rename: Files and folders can be renamed atomically.
        exchange: Two names can be exchanged atomically.
        fsync: Bytes can be forced to the disk before a call returns.
        lock: A name can be locked, and the lock ends with the process.
    """

    conditional_put: bool = False
    rename: bool = False
    exchange: bool = False
    fsync: bool = False
    lock: bool = False


class FileWriter(Protocol):
    """A new file, written from front to back. It appears under its name when it is closed, or never."""

    def write(self, data: Buffer) -> None:
        """Append some bytes."""
        ...

    def close(self) -> None:
        """Finish the file: readers see all of it from now on."""
        ...

    def abort(self) -> None:
        """Give the file up: whatever had the name before still has it."""
        ...


class FileSystem(Protocol):
    """Files by name.

    Paths are text with `/` between the parts. Folders need no creation: writing `a/b` makes `a`.

    Writers have to distinguish three kinds of errors:

    - `ConflictError`: the condition of a `put` did not hold, and this request has written nothing. The reason may be
      an earlier try of the same request, because clients repeat requests on their own.
    - `OutcomeUnknownError`: the reply was lost. The request was carried out, will be later, or never.
    - Any other `StorageError`: the request was not carried out, and will not be.

    Once a request succeeds, every later `open` and `stat` sees its effect. A `list` may be out of date.
    """

    @property
    def can(self) -> Capabilities:
        """What this file system can do."""
        ...

    def open(self, path: str) -> ByteFile:
        """Open a file for reading.

        Raises:
            NotFoundError: There is no such file.
        """
        ...

    def stat(self, path: str) -> Stat | None:
        """Return what is known about a name, None if nothing has it."""
        ...

    def list(self, folder: str) -> Iterator[Entry]:
        """Yield what is in a folder, in no particular order; nothing if there is no such folder."""
        ...

    def create(self, path: str) -> FileWriter:
        """Begin a file, which replaces any earlier one when it is closed."""
        ...

    def put(self, path: str, data: Buffer, when: When = ALWAYS) -> str:
        """Write a whole small file in one atomic step: readers see the old bytes or the new ones.

        Args:
            path: The file.
            data: Its bytes.
            when: The condition. It is checked in the same step, so of several writers with one condition one wins.

        Returns:
            The version of the new file.

        Raises:
            ConflictError: The condition did not hold.
            OutcomeUnknownError: The reply was lost.
        """
        ...

    def remove(self, path: str) -> None:
        """Remove a file, if it is there.

        Raises:
            OutcomeUnknownError: The reply was lost.
        """
        ...
