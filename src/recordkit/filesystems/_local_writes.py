"""Local writes: changes to files and folders that survive a loss of power, or raise an error that says why not.

All changes to the file system while writing go through here. Errors of the operating system become `StorageError`s
that name the path, the operation and what to do next.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from recordkit import _core, log
from recordkit.errors import StorageError, TargetExistsError

from ._paths import fitting, mode_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from typing_extensions import Buffer

TOO_MANY_CODES = (errno.EMFILE, errno.ENFILE)
TOO_MANY = "Too many files are open in this process: close some, or raise the limit (ulimit -n)."

_ADVICE = {
    **dict.fromkeys(TOO_MANY_CODES, TOO_MANY),
    errno.ENOSPC: "The disk is full. Free some space and continue with resume=True; finished shards are kept.",
    errno.EDQUOT: "Your quota on this disk is used up. Free some of it and continue with resume=True; "
    "finished shards are kept.",
    errno.EIO: "The device failed. Check the system's log (dmesg) and the disk before you continue with "
    "resume=True; finished shards are kept.",
    errno.EROFS: "The file system is mounted read-only. Choose a target elsewhere.",
    errno.EACCES: "You may not do that there. Choose another target, or change the permissions.",
    errno.EPERM: "You may not do that there. Choose another target, or change the permissions.",
    errno.ENAMETOOLONG: "Choose a shorter name.",
    errno.EFBIG: "The file would be larger than this process or file system allows. Choose a smaller shard_size.",
}


_NO_SUCH_CALL = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP)


@contextmanager
def os_errors_as_storage_errors(path: Path, doing: str) -> Iterator[None]:
    """Turn the operating system's errors inside the block into errors that say what was being done to `path`."""
    try:
        yield
    except StorageError:
        raise
    except OSError as error:
        words = os.strerror(error.errno) if error.errno else str(error)
        advice = _ADVICE.get(error.errno or 0, "Nothing is published; a run that finished shards can be resumed.")
        message = f"{path}: {doing} failed: {words}\n  {advice}"
        raise StorageError(message, path=str(path), errno=error.errno) from error


_EARLY_BYTES = 8 << 20
_LARGE_BYTES = 4 << 20
_SET_ASIDE_BYTES = 64 << 20


class NewFile:
    """A new file, written from front to back.

    Args:
        path: Its name; nothing may have it yet.
        early: Let the system write back early, for a file that will be synced.
    """

    def __init__(self, path: Path, *, early: bool = False) -> None:
        self.path = path
        self.size = 0
        self._early = early
        self._on_its_way = 0
        self._set_aside = 0
        with os_errors_as_storage_errors(path, "making the file"):
            self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)

    def write(self, pieces: Sequence[Buffer]) -> None:
        """Append all of the pieces."""
        if self.size >= _LARGE_BYTES and self.size + _LARGE_BYTES > self._set_aside >= 0:
            self._set_space_aside()
        for piece in pieces:
            left = memoryview(piece).cast("B")
            with os_errors_as_storage_errors(self.path, f"writing at byte {self.size:,}"):
                while left:
                    count = os.write(self._descriptor, left)
                    left = left[count:]
                    self.size += count
        if self._early and self.size - self._on_its_way >= _EARLY_BYTES:
            # The disk works meanwhile, and leaves little for fsync to wait for.
            _core.start_writeback(self._descriptor, self._on_its_way, self.size - self._on_its_way)
            self._on_its_way = self.size

    def _set_space_aside(self) -> None:
        # Allocating many megabytes at once makes writing them a third faster (ext4). Failing to is no error: if the
        # disk is really full, writing will say so.
        start = max(self.size, self._set_aside)
        failed = _core.preallocate(self._descriptor, start, _SET_ASIDE_BYTES)
        self._set_aside = -1 if failed else start + _SET_ASIDE_BYTES

    def finish(self, *, sync: bool) -> None:
        """Close the file, synced to disk if `sync`. Its name is on disk once its folder is synced."""
        try:
            if self._set_aside:
                with os_errors_as_storage_errors(self.path, "giving back the space that was set aside"):
                    os.ftruncate(self._descriptor, self.size)
            if sync:
                with os_errors_as_storage_errors(self.path, "fsync"):
                    os.fsync(self._descriptor)
        finally:
            self.close()

    def close(self) -> None:
        """Close the file as it is."""
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            with os_errors_as_storage_errors(self.path, "closing"):
                os.close(descriptor)


def sync_folder(path: Path, *, sync: bool = True) -> None:
    """Sync the names in a folder to disk."""
    if not sync:
        return
    with os_errors_as_storage_errors(path, "fsync of the folder"):
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        except OSError as error:
            if error.errno not in _NO_SUCH_CALL:
                raise
            say_once(
                f"{path}: this file system has no fsync of folders ({os.strerror(error.errno or 0)})\n"
                "  What is written is whole after a crash of the program; a loss of power may take it, or part of it."
            )
        finally:
            os.close(descriptor)


_said: set[str] = set()


def say_once(message: str) -> None:
    """Warn about what a file system cannot do, once for each message."""
    if message not in _said:
        _said.add(message)
        log.warning("%s\n  %s", *message.split("\n  ", 1))


def write_new(path: Path, data: Buffer, *, sync: bool) -> None:
    """Write a file that nobody reads yet. Its folder is not synced."""
    file = NewFile(path)
    try:
        file.write([data])
        file.finish(sync=sync)
    finally:
        file.close()


def replace_file(path: Path, data: Buffer, *, sync: bool = True, sync_name: bool = True) -> None:
    """Replace a file in one atomic step.

    Args:
        path: The file.
        data: Its new content.
        sync: Whether to sync it to disk.
        sync_name: Whether to sync its folder, too; False if the caller does that later.

    Raises:
        TargetExistsError: The name belongs to a folder, a pipe or a device.
    """
    mode = mode_of(path)
    if mode and not stat.S_ISREG(mode):
        message = f"{path}: already exists, and is not a file\n  Choose another name."
        raise TargetExistsError(message, path=str(path), errno=errno.EEXIST)
    staged = path.with_name(fitting(".", path.name, ".new"))
    remove_file(staged)
    write_new(staged, data, sync=sync)
    rename(staged, path)
    sync_folder(path.parent, sync=sync and sync_name)


def cut_file(path: Path, size: int, *, sync: bool = True) -> None:
    """Truncate a file to `size` bytes."""
    with os_errors_as_storage_errors(path, f"cutting back to {size:,} bytes"), path.open("r+b") as file:
        file.truncate(size)
        if sync:
            os.fsync(file.fileno())


def extend_file(path: Path, size: int, source: Path, *, sync: bool) -> None:
    """Truncate a file to `size` bytes and append the bytes of `source`."""
    with (
        os_errors_as_storage_errors(path, f"writing after byte {size:,}"),
        path.open("r+b", buffering=0) as file,
        source.open("rb") as more,
    ):
        file.truncate(size)
        file.seek(size)
        while piece := more.read(1 << 20):
            left = memoryview(piece)
            while left:
                left = left[file.write(left) :]
        if sync:
            os.fsync(file.fileno())


def children(folder: Path) -> list[Path]:
    """Return what is in a folder, sorted by name; an empty list if there is no folder."""
    with os_errors_as_storage_errors(folder, "listing the folder"):
        return sorted(folder.iterdir()) if folder.is_dir() else []


def make_folder(path: Path, *, sync: bool = True, mode: int | None = None) -> None:
    """Create a folder and any missing parents.

    Args:
        path: The folder.
        sync: Whether to sync each of them to disk.
        mode: The permissions of the files it is for; users who may not read those may not enter it.
    """
    if path.is_dir():
        return
    make_folder(path.parent, sync=sync, mode=mode)
    allowed = 0o777 if mode is None else mode | (mode & 0o444) >> 2
    with os_errors_as_storage_errors(path, "making the folder"):
        try:
            path.mkdir(allowed, exist_ok=True)
        except FileNotFoundError:
            # Somebody has removed the parent since, because it was empty.
            path.parent.mkdir(allowed, exist_ok=True)
            path.mkdir(allowed, exist_ok=True)
    sync_folder(path.parent, sync=sync)


def permissions_of(*paths: Path) -> int:
    """Return the permissions for files derived from these: what all of them allow, plus writing by the owner."""
    mode = 0o777
    for path in paths:
        mode &= path.stat().st_mode
    return mode & 0o666 | 0o600


def set_mode(path: Path, mode: int | None) -> None:
    """Set the permissions of a file; None leaves them as they are."""
    if mode is not None:
        with os_errors_as_storage_errors(path, "setting the permissions"):
            path.chmod(mode, follow_symlinks=False) if os.chmod in os.supports_follow_symlinks else path.chmod(mode)


def refuse_links(*folders: Path) -> None:
    """Check that folders that are about to be written into are not links.

    Raises:
        StorageError: One is a link; recordkit never writes through links next to data.
    """
    for folder in folders:
        if folder.is_symlink():
            message = (
                f"{folder}: expected a folder, found a link; recordkit does not write through links\n"
                "  Put the folder itself in its place, or remove the link."
            )
            raise StorageError(message, path=str(folder))


def rename(source: Path, target: Path) -> None:
    """Rename, replacing any old target."""
    with os_errors_as_storage_errors(source, f"renaming to {target.name}"):
        source.rename(target)


def rename_new(source: Path, target: Path) -> None:
    """Rename; raise if the target exists."""
    code = _core.rename_new(os.fsencode(source), os.fsencode(target))
    if code in (errno.ENOSYS, errno.EINVAL):
        # No such call here. A target created between the check and the rename is lost, as with any other tool.
        code = errno.EEXIST if os.path.lexists(target) else 0
        if code == 0:
            rename(source, target)
    # A folder may replace an empty one.
    if code in (errno.EEXIST, errno.ENOTEMPTY):
        if source.is_dir() and target.is_dir() and not any(target.iterdir()):
            rename(source, target)
            return
        message = f"{target}: already exists\n  It was created while this was being written."
        raise TargetExistsError(message, path=str(target), errno=code)
    if code:
        with os_errors_as_storage_errors(source, f"renaming to {target.name}"):
            raise OSError(code, os.strerror(code))


def rename_for_good(source: Path, target: Path, *, sync: bool = True) -> None:
    """Rename and sync; raise if the target exists. If the sync fails, rename back, so that the caller can retry."""
    rename_new(source, target)
    try:
        sync_folder(target.parent, sync=sync)
    except StorageError:
        with suppress(StorageError):  # report the first failure
            rename(target, source)
        raise


def exchange(a: Path, b: Path) -> bool:
    """Exchange two paths in one atomic step; return False if the file system cannot."""
    code = _core.exchange(os.fsencode(a), os.fsencode(b))
    if code in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP):
        return False
    if code:
        with os_errors_as_storage_errors(a, f"exchanging with {b.name}"):
            raise OSError(code, os.strerror(code))
    return True


def remove_file(path: Path) -> None:
    """Remove a file if it exists."""
    with os_errors_as_storage_errors(path, "removing"):
        path.unlink(missing_ok=True)


def remove_empty(path: Path) -> None:
    """Remove a folder if it is empty."""
    with suppress(OSError):
        path.rmdir()


def remove_tree(path: Path) -> None:
    """Remove a folder and all it contains, if it exists."""
    with os_errors_as_storage_errors(path, "removing"):
        if not path.is_dir() or path.is_symlink():
            path.unlink(missing_ok=True)
            return
        while path.is_dir():
            # Parts of one target that give up at the same time remove the same files.
            with suppress(FileNotFoundError):
                shutil.rmtree(path)
