"""Disk: what is done to files and folders, so that it lasts or says why not.

Every change to the file system that writing makes goes through here. Errors of the operating system come out as
`StorageError`s that name the path, what was being done, and what to do next.
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
    errno.ENOSPC: "The disk is full. Free some space and go on with resume=True; what is finished is kept.",
    errno.EDQUOT: "Your quota on this disk is used up. Free some of it and go on with resume=True; "
    "what is finished is kept.",
    errno.EIO: "The device failed to do it. Look at the system's log (dmesg) and at the disk before going on with "
    "resume=True; what is finished is kept.",
    errno.EROFS: "The file system is mounted read-only. Choose a target elsewhere.",
    errno.EACCES: "You have no right to do that there. Choose a target elsewhere, or mend the rights.",
    errno.EPERM: "You have no right to do that there. Choose a target elsewhere, or mend the rights.",
    errno.ENAMETOOLONG: "Choose a shorter name.",
    errno.EFBIG: "The file would be larger than this process or file system allows. Choose a smaller shard_size.",
}


_NO_SUCH_CALL = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP)


@contextmanager
def os_errors_as_storage_errors(path: Path, doing: str) -> Iterator[None]:
    """Turn the operating system's errors inside the block into ones that say what was being done to `path`."""
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


class File:
    """A new file that is written from front to back.

    Args:
        path: Its name, which nothing has yet.
        early: Let the system begin to put it on the disk while it is being written, for a file that is to be synced.
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
        """Append the pieces, all of them."""
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
            # The disk works while we do, and fsync finds little left to wait for.
            _core.start_writeback(self._descriptor, self._on_its_way, self.size - self._on_its_way)
            self._on_its_way = self.size

    def _set_space_aside(self) -> None:
        # Space that is found for many megabytes at once makes writing them faster by a third (ext4). What cannot be
        # set aside is no error: if the disk is really full, writing will say so.
        start = max(self.size, self._set_aside)
        failed = _core.preallocate(self._descriptor, start, _SET_ASIDE_BYTES)
        self._set_aside = -1 if failed else start + _SET_ASIDE_BYTES

    def finish(self, *, sync: bool) -> None:
        """Close the file; with `sync`, its bytes are on the disk by then. Its name is, once its folder is synced."""
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
        """Let go of the file as it is."""
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            with os_errors_as_storage_errors(self.path, "closing"):
                os.close(descriptor)


def sync_folder(path: Path, *, sync: bool = True) -> None:
    """Make the names in a folder last."""
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
    """Warn of what a file system cannot do, once for each place."""
    if message not in _said:
        _said.add(message)
        log.warning("%s\n  %s", *message.split("\n  ", 1))


def write_new(path: Path, data: Buffer, *, sync: bool) -> None:
    """Write a file that nobody looks at yet. Its folder is not synced."""
    file = File(path)
    try:
        file.write([data])
        file.finish(sync=sync)
    finally:
        file.close()


def replace_file(path: Path, data: Buffer, *, sync: bool = True, sync_name: bool = True) -> None:
    """Write a file that is there whole, or as it was before.

    Args:
        path: The file.
        data: What is to be in it.
        sync: Whether it lasts.
        sync_name: Whether its name does; False where the folder is synced later for another file's sake.

    Raises:
        TargetExistsError: A folder, a pipe or a device is there.
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
    """Let a file end at byte `size`."""
    with os_errors_as_storage_errors(path, f"cutting back to {size:,} bytes"), path.open("r+b") as file:
        file.truncate(size)
        if sync:
            os.fsync(file.fileno())


def extend_file(path: Path, size: int, source: Path, *, sync: bool) -> None:
    """Let the bytes of `source` follow the first `size` bytes of a file, in place of what follows them now."""
    with (
        os_errors_as_storage_errors(path, f"writing behind byte {size:,}"),
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
    """Return what is in a folder, sorted by name; nothing where there is no folder."""
    with os_errors_as_storage_errors(folder, "listing the folder"):
        return sorted(folder.iterdir()) if folder.is_dir() else []


def make_folder(path: Path, *, sync: bool = True, mode: int | None = None) -> None:
    """Make a folder and those above it that are not there, each of which lasts.

    Args:
        path: The folder.
        sync: Whether they last.
        mode: The permissions of the files that are to be in it; who may not read these may not enter it.
    """
    if path.is_dir():
        return
    make_folder(path.parent, sync=sync, mode=mode)
    allowed = 0o777 if mode is None else mode | (mode & 0o444) >> 2
    with os_errors_as_storage_errors(path, "making the folder"):
        try:
            path.mkdir(allowed, exist_ok=True)
        except FileNotFoundError:
            # Somebody has removed the one above since: they found it empty.
            path.parent.mkdir(allowed, exist_ok=True)
            path.mkdir(allowed, exist_ok=True)
    sync_folder(path.parent, sync=sync)


def permissions_of(*paths: Path) -> int:
    """Return the permissions of files made of these: what all of them allow, and their owner may write."""
    mode = 0o777
    for path in paths:
        mode &= path.stat().st_mode
    return mode & 0o666 | 0o600


def set_mode(path: Path, mode: int | None) -> None:
    """Give a file of ours these permissions; None leaves it as it is."""
    if mode is not None:
        with os_errors_as_storage_errors(path, "setting the permissions"):
            path.chmod(mode, follow_symlinks=False) if os.chmod in os.supports_follow_symlinks else path.chmod(mode)


def refuse_links(*folders: Path) -> None:
    """Raise if a folder that is about to be written into is a link.

    Raises:
        StorageError: It is: nothing is written through links that lie beside data.
    """
    for folder in folders:
        if folder.is_symlink():
            message = (
                f"{folder}: expected a folder, found a link, and nothing is written through one\n"
                "  Put the folder itself in its place, or remove the link."
            )
            raise StorageError(message, path=str(folder))


def rename(source: Path, target: Path) -> None:
    """Rename; an old target goes."""
    with os_errors_as_storage_errors(source, f"renaming to {target.name}"):
        source.rename(target)


def rename_new(source: Path, target: Path) -> None:
    """Rename, and refuse if there is a target."""
    code = _core.rename_new(os.fsencode(source), os.fsencode(target))
    if code in (errno.ENOSYS, errno.EINVAL):
        # No such call here. What comes between the look and the rename is lost, as with any other tool.
        code = errno.EEXIST if os.path.lexists(target) else 0
        if code == 0:
            rename(source, target)
    # A folder of ours may take the place of an empty one.
    if code in (errno.EEXIST, errno.ENOTEMPTY):
        if source.is_dir() and target.is_dir() and not any(target.iterdir()):
            rename(source, target)
            return
        message = f"{target}: already exists\n  It came while this was being written."
        raise TargetExistsError(message, path=str(target), errno=code)
    if code:
        with os_errors_as_storage_errors(source, f"renaming to {target.name}"):
            raise OSError(code, os.strerror(code))


def rename_for_good(source: Path, target: Path, *, sync: bool = True) -> None:
    """Rename, and refuse if there is a target. Rename back if it cannot be made to last: another try does it again."""
    rename_new(source, target)
    try:
        sync_folder(target.parent, sync=sync)
    except StorageError:
        with suppress(StorageError):  # what made it fail is what the caller is to hear of
            rename(target, source)
        raise


def exchange(a: Path, b: Path) -> bool:
    """Let two paths change places at once; False where the file system cannot."""
    code = _core.exchange(os.fsencode(a), os.fsencode(b))
    if code in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP):
        return False
    if code:
        with os_errors_as_storage_errors(a, f"exchanging with {b.name}"):
            raise OSError(code, os.strerror(code))
    return True


def remove_file(path: Path) -> None:
    """Remove a file, if it is there."""
    with os_errors_as_storage_errors(path, "removing"):
        path.unlink(missing_ok=True)


def remove_empty(path: Path) -> None:
    """Remove a folder, if there is nothing in it."""
    with suppress(OSError):
        path.rmdir()


def remove_tree(path: Path) -> None:
    """Remove a folder and all in it, if it is there."""
    with os_errors_as_storage_errors(path, "removing"):
        if not path.is_dir() or path.is_symlink():
            path.unlink(missing_ok=True)
            return
        while path.is_dir():
            # Parts of one target that give up together remove the same things.
            with suppress(FileNotFoundError):
                shutil.rmtree(path)
