"""The change lock: only one process at a time changes the files of a folder and their side files.

The lock is on the folder itself, so that it needs no file and leaves none; if a file system cannot lock folders, it is
on a file in the side folder, which exists only during a change. Reading needs no lock. A dataset that is replaced as a
whole takes its lock with it: a process that waited for it checks the path again.
"""

from __future__ import annotations

import errno
import os
import threading
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from recordkit import filesystems
from recordkit.errors import StorageError
from recordkit.storage.format import SIDE

from ._parts import Lock

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

WAIT = 30.0  # seconds; publishing takes much less
_held = threading.local()


class _CannotLockError(Exception):
    """The file system has no locks for folders."""


class _FolderLock(Lock):
    """A folder that one process at a time can hold."""

    def _opened(self) -> int:
        with filesystems.os_errors_as_storage_errors(self._path, "locking the folder"):
            return os.open(self._path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def _is_in_place(self) -> bool:
        try:
            return os.path.samestat(self._path.stat(), os.fstat(self._descriptor))
        except OSError:
            return False

    def _refused(self, error: OSError) -> None:
        self.release()
        raise _CannotLockError from error


@contextmanager
def changing(folder: Path, *, wait: float = WAIT) -> Iterator[None]:
    """Keep others from changing the files of a folder and their side files inside the block.

    Blocks for the same folder may be nested.

    Raises:
        TargetBusyError: Another process is changing them, and did not finish in time.
        StorageError: The folder cannot be written to.
    """
    held: set[Path] = _held.__dict__.setdefault("folders", set())
    if folder in held:
        yield
        return
    if not os.access(folder, os.W_OK):
        message = (
            f"{folder}: nothing can be changed in this folder: {os.strerror(errno.EACCES)}\n"
            "  Change a copy, or write the result elsewhere: out= of bake, drop_fields and filter."
        )
        raise StorageError(message, path=str(folder), errno=errno.EACCES)
    lock = _lock(folder, wait)
    held.add(folder)
    try:
        yield
    finally:
        held.discard(folder)
        lock.remove()


def _lock(folder: Path, wait: float) -> Lock:
    try:
        return _FolderLock(folder, folder, wait=wait)
    except _CannotLockError:
        pass
    side = folder / SIDE  # NFS locks only files that are open for writing
    if side.is_symlink():
        advice = "recordkit does not write through links. Put the folder itself there."
        message = f"{side}: expected a folder, found a link\n  {advice}"
        raise StorageError(message, path=str(side))
    return Lock(side / "lock", folder, wait=wait, root=folder)


def changing_target(target: Path, *, wait: float = WAIT) -> AbstractContextManager[None]:
    """Do the same for the folder of a target if the target exists; nobody else uses a new one yet."""
    if target.is_dir():
        return changing(target, wait=wait)
    return changing(target.parent, wait=wait) if target.is_file() else nullcontext()
