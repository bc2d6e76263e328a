"""Files in memory, with the failures of a network if you want them.

Without faults this is a small, correct file system. With faults it does what object stores and their clients do at
their worst, in one thread, so that a failure can be repeated.
"""

from __future__ import annotations

import errno
import hashlib
import threading
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from recordkit.errors import ConflictError, OutcomeUnknownError, StorageError

from ._protocol import ALWAYS, IF_ABSENT, ByteFile, Capabilities, Entry, IfUnchanged, Stat

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Collection, Iterator, Mapping

    from typing_extensions import Buffer

    from ._protocol import When

Operation: TypeAlias = Literal["open", "stat", "list", "put", "remove"]
_LISTINGS_KEPT: Final = 8


class RequestFault(Enum):
    """What can go wrong with one request."""

    FAILED = "failed"
    """It is not carried out, and the caller gets an error. For every kind of request."""
    LOST = "lost"
    """It is carried out, and the caller gets `OutcomeUnknownError`. For `put` and `remove`."""
    LATE = "late"
    """The caller gets `OutcomeUnknownError`, and a call of `deliver` carries it out later. For `put` and `remove`."""
    REPEATED = "repeated"
    """The client sends it twice in a row and returns the second reply. For `put` and `remove`."""
    ECHOED = "echoed"
    """It is carried out now, and once more by a call of `deliver`. For `put` and `remove`."""
    STALE = "stale"
    """A listing shows an earlier state. For `list`."""


_WRITES: Final = (RequestFault.FAILED, RequestFault.LOST, RequestFault.LATE, RequestFault.REPEATED, RequestFault.ECHOED)
_POSSIBLE: Final[Mapping[str, tuple[RequestFault, ...]]] = {
    "open": (RequestFault.FAILED,),
    "stat": (RequestFault.FAILED,),
    "list": (RequestFault.FAILED, RequestFault.STALE),
    "put": _WRITES,
    "remove": _WRITES,
}


@dataclass
class RandomFaults:
    """Faults drawn at random.

    Args:
        chance: Where they are drawn from; the same seed gives the same faults.
        rate: The share of requests that go wrong, as far as one of the kinds can happen to them.
        kinds: What may go wrong.
    """

    chance: random.Random
    rate: float
    kinds: Collection[RequestFault] = tuple(RequestFault)

    def __call__(self, operation: Operation, path: str) -> RequestFault | None:
        """Return what goes wrong with a request, None if nothing does."""
        if self.chance.random() >= self.rate:
            return None
        possible = [fault for fault in _POSSIBLE[operation] if fault in self.kinds]
        return self.chance.choice(possible) if possible else None


class MemoryFileSystem:
    """A file system in memory.

    The version of a file is a digest of its bytes, as on many object stores: the same bytes have the same version.

    Args:
        faults: Called for every request with its name and path; returns what goes wrong, None if nothing does.

    Attributes:
        faults: As above; may be changed at any time.

    >>> files = MemoryFileSystem()
    >>> version = files.put("train/a", b"one")
    >>> files.open("train/a").read_at(0, 10)
    b'one'
    >>> files.put("train/a", b"two", IF_ABSENT)
    Traceback (most recent call last):
        ...
    recordkit.errors.ConflictError: train/a: there is a file of this name already
    """

    can = Capabilities(conditional_put=True)

    def __init__(self, faults: Callable[[Operation, str], RequestFault | None] | None = None) -> None:
        self.faults = faults
        self._files: dict[str, bytes] = {}
        self._lock = threading.Lock()
        self._late: list[Callable[[], object]] = []
        self._listings: deque[dict[str, int]] = deque(maxlen=_LISTINGS_KEPT)

    @property
    def files(self) -> Mapping[str, bytes]:
        """All files as they are now, by path. No request is made for it."""
        return self._files

    @property
    def late(self) -> int:
        """The number of requests that are still to be carried out."""
        return len(self._late)

    def deliver(self, number: int = 0) -> None:
        """Carry out one of the late requests. Nobody gets its reply."""
        request = self._late.pop(number)
        with suppress(StorageError):
            request()

    def open(self, path: str) -> MemoryFile:
        """Open a file for reading."""
        self._begin("open", path)
        data = self._files.get(path)
        if data is None:
            message = f"{path}: there is no such file"
            raise StorageError(message, path=path, errno=errno.ENOENT)
        return MemoryFile(path, data)

    def stat(self, path: str) -> Stat | None:
        """Return what is known about a name, None if nothing has it."""
        self._begin("stat", path)
        if (data := self._files.get(path)) is not None:
            return Stat(len(data), _version(data))
        is_folder = any(name.startswith(f"{path}/") for name in self._sizes())
        return Stat(0, "", is_folder=True) if is_folder else None

    def list(self, folder: str) -> Iterator[Entry]:
        """Yield what is in a folder."""
        fault = self._begin("list", folder)
        sizes = self._listings[0] if fault is RequestFault.STALE and self._listings else self._sizes()
        prefix, folders = f"{folder}/", set[str]()
        for path, size in sizes.items():
            name, _, below = path.removeprefix(prefix).partition("/")
            if not path.startswith(prefix):
                continue
            if not below:
                yield Entry(name, size)
            elif name not in folders:
                folders.add(name)
                yield Entry(name, 0, is_folder=True)

    def create(self, path: str) -> MemoryWriter:
        """Begin a file, which replaces any earlier one when it is closed."""
        return MemoryWriter(self, path)

    def put(self, path: str, data: Buffer, when: When = ALWAYS) -> str:
        """Write a whole small file in one atomic step, and return its version."""
        data = bytes(data)
        self._write("put", path, partial(self._put, path, data, when))
        return _version(data)

    def remove(self, path: str) -> None:
        """Remove a file, if it is there."""
        self._write("remove", path, partial(self._remove, path))

    def _sizes(self) -> dict[str, int]:
        with self._lock:
            return {path: len(data) for path, data in self._files.items()}

    def _begin(self, operation: Operation, path: str) -> RequestFault | None:
        fault = self.faults(operation, path) if self.faults is not None else None
        if fault is RequestFault.FAILED:
            message = f"{path}: {operation} failed\n  Try again."
            raise StorageError(message, path=path, errno=errno.EIO)
        return fault

    def _write(self, operation: Operation, path: str, request: Callable[[], None]) -> None:
        fault = self._begin(operation, path)
        if fault in (RequestFault.LATE, RequestFault.ECHOED):
            self._late.append(request)
        if fault is not RequestFault.LATE:
            if self.faults is not None:
                self._listings.append(self._sizes())
            request()
        if fault is RequestFault.REPEATED:
            request()
        if fault in (RequestFault.LATE, RequestFault.LOST):
            message = f"{path}: {operation} got no reply\n  Check whether it was carried out."
            raise OutcomeUnknownError(message, path=path)

    def _put(self, path: str, data: bytes, when: When) -> None:
        with self._lock:
            there = self._files.get(path)
            if when is IF_ABSENT and there is not None:
                message = f"{path}: there is a file of this name already\n  Read it."
                raise ConflictError(message, path=path, errno=errno.EEXIST)
            if isinstance(when, IfUnchanged) and (there is None or _version(there) != when.version):
                message = f"{path}: the file has changed\n  Read it again."
                raise ConflictError(message, path=path)
            self._files[path] = data

    def _remove(self, path: str) -> None:
        with self._lock:
            self._files.pop(path, None)


class MemoryFile(ByteFile):
    """A file of a `MemoryFileSystem`, as it was when it was opened."""

    def __init__(self, name: str, data: bytes) -> None:
        self.name = name
        self.version = _version(data)
        self._data = data

    @property
    def size(self) -> int:
        """The number of bytes."""
        return len(self._data)

    def read_at(self, offset: int, size: int) -> bytes:
        """Return `size` bytes from `offset` on, or fewer at the end of the file."""
        return self._data[offset : offset + size]


class MemoryWriter:
    """A new file of a `MemoryFileSystem`."""

    def __init__(self, files: MemoryFileSystem, path: str) -> None:
        self._files = files
        self._path = path
        self._pieces: list[bytes] = []

    def write(self, data: Buffer) -> None:
        """Append some bytes."""
        self._pieces.append(bytes(data))

    def close(self) -> None:
        """Finish the file."""
        self._files.put(self._path, b"".join(self._pieces))

    def abort(self) -> None:
        """Give the file up."""
        self._pieces.clear()


def _version(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()
