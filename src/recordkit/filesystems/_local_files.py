"""The files of this machine as a `FileSystem`."""

from __future__ import annotations

import errno
import fcntl
import os
import stat as modes
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from recordkit import _core
from recordkit.errors import ConflictError, OutcomeUnknownError, StorageError

from ._local import LocalFile, version_of
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
        sync: Whether what is written survives a loss of power: bytes and names are on the disk when a call returns.

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
        with self.locked(path), refusing(path, "be removed"):
            Path(path).unlink(missing_ok=True)
        self._make_last(folder)

    def rename(self, source: str, target: str, when: When = ALWAYS) -> None:
        """Rename a file or a folder in one atomic step.

        Raises:
            ConflictError: `when` is `IF_ABSENT`, and something has the new name.
        """
        with refusing(source, f"be renamed to {target}"):
            if when is IF_ABSENT:
                code = _core.rename_new(os.fsencode(source), os.fsencode(target))
                if code in (errno.EEXIST, errno.ENOTEMPTY):
                    raise _exists(target)
                if code:
                    raise OSError(code, os.strerror(code))
            else:
                Path(source).rename(target)
        self._make_last(Path(source).parent, Path(target).parent)

    def exchange(self, a: str, b: str) -> None:
        """Let two names change places in one atomic step."""
        with refusing(a, f"be exchanged with {b}"):
            if code := _core.exchange(os.fsencode(a), os.fsencode(b)):
                raise OSError(code, os.strerror(code))
        self._make_last(Path(a).parent, Path(b).parent)

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

    def make_folder(self, folder: Path) -> None:
        """Make a folder and those above it."""
        if folder.is_dir():
            return
        self.make_folder(folder.parent)
        with refusing(folder, "be made"):
            folder.mkdir(exist_ok=True)
        self.sync_folder(folder.parent)

    def _make_last(self, *folders: Path) -> None:
        """Sync the folders of names that were changed.

        Raises:
            OutcomeUnknownError: The change was made, and may not survive a loss of power.
        """
        for folder in dict.fromkeys(folders):
            try:
                self.sync_folder(folder)
            except StorageError as error:
                raise OutcomeUnknownError(str(error), path=str(folder), errno=error.errno) from error

    def sync_folder(self, folder: Path) -> None:
        """Make the names in a folder last."""
        if not self.sync:
            return
        with refusing(folder, "be synced"):
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(descriptor)
            except OSError as error:
                if error.errno not in (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP):
                    raise
            finally:
                os.close(descriptor)


class LocalWriter:
    """A new file of this machine, written under a hidden name beside its own."""

    def __init__(self, files: LocalFileSystem, path: str) -> None:
        self._files = files
        self._path = Path(path)
        files.make_folder(self._path.parent)
        self._staged = self._path.with_name(f"{_OURS}{os.urandom(8).hex()}.new")
        with refusing(path, "be made"):
            self._descriptor = os.open(self._staged, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)

    def write(self, data: Buffer) -> None:
        """Append some bytes."""
        left = memoryview(data).cast("B")
        with refusing(self._path, "be written"):
            while left:
                left = left[os.write(self._descriptor, left) :]

    def close(self) -> None:
        """Finish the file: readers see all of it from now on."""
        if self._descriptor >= 0:
            self.finish(ALWAYS)

    def finish(self, when: When) -> str:
        """Give the file its name if the condition holds, and return its version."""
        if self._files.sync:
            with refusing(self._path, "be synced"):
                os.fsync(self._descriptor)
        with self._files.locked(str(self._path)):
            there = self._files.stat(str(self._path))
            if when is IF_ABSENT and there is not None:
                raise _exists(str(self._path))
            if isinstance(when, IfUnchanged) and (there is None or there.version != when.version):
                message = f"{self._path}: the file has changed\n  Read it again."
                raise ConflictError(message, path=str(self._path))
            with refusing(self._path, "be written"):
                version = self._newer_than_old()
                self._staged.rename(self._path)
            self._release()
        self._files._make_last(self._path.parent)
        return version

    def _newer_than_old(self) -> str:
        """Return the version, which no earlier file of this name has had: the clock of a file system is coarse."""
        new = os.fstat(self._descriptor)
        with suppress(FileNotFoundError):
            old = self._path.stat()
            if new.st_mtime_ns <= old.st_mtime_ns:
                os.utime(self._descriptor, ns=(new.st_atime_ns, old.st_mtime_ns + 1))
        return version_of(os.fstat(self._descriptor))

    def abort(self) -> None:
        """Give the file up: whatever had the name before still has it."""
        if self._descriptor >= 0:
            self._release()
            with suppress(FileNotFoundError):
                self._staged.unlink()

    def _release(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        os.close(descriptor)


def _is_open_as(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(path.lstat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _exists(path: str) -> ConflictError:
    return ConflictError(f"{path}: there is a file of this name already\n  Read it.", path=path, errno=errno.EEXIST)
