"""Requests to a file system, one at a time: an operation is a generator that yields each one and is sent its reply.

So one piece of code serves both to publish and to be tested with any failure between any two requests.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from recordkit.errors import NotFoundError, StorageError
from recordkit.filesystems import ALWAYS, FileSystem

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from recordkit.filesystems import Entry, When

T = TypeVar("T")
Request: TypeAlias = Callable[[FileSystem], Any]
Steps: TypeAlias = Generator[Request, Any, T]

TRIES: Final = 5


def perform(files: FileSystem, steps: Steps[T]) -> T:
    """Carry out the requests of an operation, and return its result."""
    reply, error = None, None
    while True:
        try:
            request = steps.send(reply) if error is None else steps.throw(error)
        except StopIteration as done:
            result: T = done.value
            return result
        reply, error = None, None
        try:
            reply = request(files)
        except StorageError as raised:
            error = raised


def _open(path: str, files: FileSystem) -> tuple[bytes, str] | None:
    try:
        file = files.open(path)
    except NotFoundError:
        return None
    try:
        return file.read_at(0, file.size), file.version or ""
    finally:
        file.close()


def put(path: str, data: Buffer, when: When = ALWAYS) -> Request:
    """Return the request to write a file."""
    return lambda files: files.put(path, data, when)


def remove(path: str) -> Request:
    """Return the request to remove a file."""
    return lambda files: files.remove(path)


def read(path: str) -> Steps[tuple[bytes, str] | None]:
    """Return a file's bytes and its version, None if there is none."""
    found: tuple[bytes, str] | None = yield from repeat(partial(_open, path))
    return found


def listing(folder: str) -> Steps[list[Entry]]:
    """Return the entries of a folder. They may be out of date."""
    found: list[Entry] = yield from repeat(lambda files: list(files.list(folder)))
    return found


def store(path: str, data: Buffer) -> Steps[None]:
    """Write a file whose name is used for these bytes alone: doing it twice does no harm."""
    yield from repeat(put(path, data))


def repeat(request: Request) -> Steps[Any]:
    """Try a request that may be carried out several times."""
    for left in reversed(range(TRIES)):
        try:
            return (yield request)
        except StorageError:
            if not left:
                raise
    return None
