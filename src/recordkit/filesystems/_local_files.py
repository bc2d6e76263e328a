"""The files of this machine as a `FileSystem`."""

from __future__ import annotations

import errno
import fcntl
import os
import stat as modes
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from recordkit.errors import ConflictError, OutcomeUnknownError, StorageError

from ._local import LocalFile, version_of
from ._local_writes import NewFile, exchange, make_folder, remove_file, rename, rename_new, sync_folder
from ._paths import fitting, mode_of, refusing
from ._protocol import ALWAYS, IF_ABSENT, Capabilities, Entry, IfUnchanged, Stat

if TYPE_CHECKING:
    from collections.abc import Iterator

    from typing_extensions import Buffer

    from ._protocol import When

_OURS: Final = ".recordkit-"  # the names of locks and of files in the making: no listing shows them


class LocalFileSystem:
    """The files of this machine.

    Args:
        sync: Whether writes survive a loss of power: bytes and names are on the disk when a call returns.

    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> files = LocalFileSystem()
    >>> version = files.put(f"{folder}/train/a", b"one")
    >>> [entry.name for entry in files.list(f"{folder}/train")]
    ['a']
    """

    can = Capabilities(conditional_put=True, rename=True, exchange=True, fsync=True, lock=True)

    def __init__(self, *, sync: bool = True) -> None:
        self.sync = sync

    def open(self, path: str) -> LocalFile:
        """Open a file for reading."""
        file = LocalFile(Path(path))
        file.descriptor  # noqa: B018 - opens it
        return file

    def stat(self, path: str) -> Stat | None:
        """Return what is known about a name, None if nothing has it."""
        mode = mode_of(path)
        if not mode:
            return None
        with refusing(path, "be read"):
            found = Path(path).stat()
        is_folder = modes.S_ISDIR(mode)
        return Stat(0 if is_folder else found.st_size, version_of(found), is_folder)

    def list(self, folder: str) -> Iterator[Entry]:
        """Yield what is in a folder."""
        with (
            refusing(folder, "be listed"),
            suppress(FileNotFoundError, NotADirectoryError),
            os.scandir(folder) as found,
        ):
            for entry in found:
                if entry.name.startswith(_OURS):
                    continue
                is_folder = entry.is_dir()
                try:
                    size = 0 if is_folder else entry.stat().st_size
                except FileNotFoundError:  # removed meanwhile, or a link that leads nowhere
                    continue
                yield Entry(entry.name, size, is_folder)

    def create(self, path: str) -> LocalWriter:
        """Begin a file, which replaces any earlier one when it is closed."""
        return LocalWriter(self, path)

    def put(self, path: str, data: Buffer, when: When = ALWAYS) -> str:
        """Write a whole small file in one atomic step, and return its version."""
        writer = LocalWriter(self, path)
        try:
            writer.write(data)
            return writer.finish(when)
        except BaseException:
            writer.abort()
            raise

    def remove(self, path: str) -> None:
        """Remove a file, if it is there."""
        folder = Path(path).parent
        if not folder.is_dir():
            return
        with self.locked(path):
            remove_file(Path(path))
        self.make_last(folder)

    def rename(self, source: str, target: str, when: When = ALWAYS) -> None:
        """Rename a file or a folder in one atomic step.

        Raises:
            TargetExistsError: `when` is `IF_ABSENT`, and something has the new name.
        """
        (rename_new if when is IF_ABSENT else rename)(Path(source), Path(target))
        self.make_last(Path(source).parent, Path(target).parent)

    def exchange(self, a: str, b: str) -> bool:
        """Let two names change places in one atomic step; return False if the file system cannot."""
        is_done = exchange(Path(a), Path(b))
        self.make_last(Path(a).parent, Path(b).parent)
        return is_done

    @contextmanager
    def locked(self, path: str) -> Iterator[None]:
        """Wait for the lock of a name, and keep it inside the block. The system releases it if the process dies."""
        where = Path(path)
        lock = where.with_name(fitting(_OURS, where.name, ".lock"))
        while True:
            with refusing(path, "be locked"):
                descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
            try:
                with refusing(path, "be locked"):
                    fcntl.flock(descriptor, fcntl.LOCK_EX)
                # Its last holder may have removed it while we waited: then others lock a new file.
                if not _is_open_as(descriptor, lock):
                    continue
                try:
                    yield
                finally:
                    lock.unlink(missing_ok=True)
                return
            finally:
                os.close(descriptor)

    def make_last(self, *folders: Path) -> None:
        """Sync the folders of names that were changed, if this file system is to.

        Raises:
            OutcomeUnknownError: The change was made, and may not survive a loss of power.
        """
        for folder in dict.fromkeys(folders):
            try:
                sync_folder(folder, sync=self.sync)
            except StorageError as error:
                raise OutcomeUnknownError(str(error), path=str(folder), errno=error.errno) from error


class LocalWriter:
    """A new file of this machine, written under a hidden name in the same folder."""

    def __init__(self, files: LocalFileSystem, path: str) -> None:
        self._files = files
        self._path = Path(path)
        make_folder(self._path.parent, sync=files.sync)
        self._staged = self._path.with_name(f"{_OURS}{os.urandom(8).hex()}.new")
        self._file = NewFile(self._staged, early=files.sync)
        self._file.path = self._path  # as errors are to name it
        self._is_open = True

    def write(self, data: Buffer) -> None:
        """Append some bytes."""
        self._file.write([data])

    def close(self) -> None:
        """Finish the file: readers see all of it from now on."""
        if self._is_open:
            self.finish(ALWAYS)

    def finish(self, when: When) -> str:
        """Give the file its name if the condition holds, and return its version."""
        try:
            self._file.finish(sync=self._files.sync)
            with self._files.locked(str(self._path)):
                self._check(when)
                version = self._newer_than_old()
                rename(self._staged, self._path)
                self._is_open = False
        finally:
            self.abort()
        self._files.make_last(self._path.parent)
        return version

    def _check(self, when: When) -> None:
        path = str(self._path)
        there = self._files.stat(path)
        if when is IF_ABSENT and there is not None:
            message = f"{path}: there is a file of this name already\n  Read it."
            raise ConflictError(message, path=path, errno=errno.EEXIST)
        if isinstance(when, IfUnchanged) and (there is None or there.version != when.version):
            message = f"{path}: the file has changed\n  Read it again."
            raise ConflictError(message, path=path)

    def _newer_than_old(self) -> str:
        """Return the version, which no earlier file of this name has had: the clock of a file system is coarse."""
        with refusing(self._path, "be written"):
            new = self._staged.stat()
            with suppress(FileNotFoundError):
                old = self._path.stat()
                if new.st_mtime_ns <= old.st_mtime_ns:
                    os.utime(self._staged, ns=(new.st_atime_ns, old.st_mtime_ns + 1))
            return version_of(self._staged.stat())

    def abort(self) -> None:
        """Give the file up: whatever had the name before still has it."""
        if self._is_open:
            self._is_open = False
            self._file.close()
            remove_file(self._staged)


def _is_open_as(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(path.lstat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False
