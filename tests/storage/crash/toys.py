"""Toys: a small writer that keeps its promises, and ones that break one each, to see that the harness finds it."""

from __future__ import annotations

import ctypes
import os
import shutil
import threading
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

SHARDS = {f"train-{number:05d}": bytes([65 + number]) * (50 + number) for number in range(3)}
SYS_RENAMEAT2 = {"x86_64": 316, "aarch64": 276}
AT_FDCWD, RENAME_EXCHANGE = -100, 2


class ToyError(OSError):
    """An error with a path and advice."""

    def __str__(self) -> str:
        return str(self.strerror)


@contextmanager
def os_errors_as_storage_errors(path: Path) -> Iterator[None]:
    """Say where an error of the system was met, and what to do."""
    try:
        yield
    except OSError as error:
        advice = "Free some space, ask for more quota, or look at the device; then go on."
        raise ToyError(error.errno, f"{path}: {os.strerror(error.errno or 0)}\n  {advice}") from error


def put(path: Path, data: bytes, *, fsync: bool = True, loops: bool = True) -> None:
    """Write a file."""
    with os_errors_as_storage_errors(path):
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
        try:
            while data:
                count = os.write(fd, data)
                data = data[count:] if loops else b""
            if fsync:
                os.fsync(fd)
        finally:
            os.close(fd)


def sync(path: Path) -> None:
    """Make the bytes of a file, or the names in a folder, last."""
    with os_errors_as_storage_errors(path):
        fd = os.open(path, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def exchange(a: Path, b: Path) -> None:
    """Let two paths change places."""
    number = ctypes.c_long(SYS_RENAMEAT2[os.uname().machine])
    libc = ctypes.CDLL(None, use_errno=True)
    with os_errors_as_storage_errors(a):
        if libc.syscall(number, AT_FDCWD, bytes(a), ctypes.c_long(AT_FDCWD), bytes(b), ctypes.c_long(RENAME_EXCHANGE)):
            raise OSError(ctypes.get_errno(), "renameat2")


def remove(path: Path) -> None:
    """Remove a folder, if it is there."""
    with os_errors_as_storage_errors(path), suppress(FileNotFoundError):
        shutil.rmtree(path)


def write(
    folder: str,
    *,
    fsync: bool = True,
    fsync_late: bool = False,
    fsync_staging: bool = True,
    fsync_parent: bool = True,
    loops: bool = True,
    trusts: bool = False,
    overwrite: str = "",
) -> None:
    """Write a dataset of three shards; the flags break promises."""
    root = Path(folder)
    target, staging = root / "train", root / ".train.recordkit"
    if target.exists() and not overwrite:
        # Whoever wrote it may have died, or failed, before its name was made to last.
        sync(root)
        return
    if not trusts:
        remove(staging)
    with os_errors_as_storage_errors(staging):
        staging.mkdir(exist_ok=trusts)
    for name, data in SHARDS.items():
        if not (trusts and (staging / name).exists()):
            put(staging / name, data, fsync=fsync and not fsync_late, loops=loops)
    if fsync_staging:
        sync(staging)
    with os_errors_as_storage_errors(target):
        if overwrite == "exchange":
            exchange(staging, target)
        elif overwrite == "remove":
            remove(target)
            staging.rename(target)
        else:
            staging.rename(target)
    if fsync_late:
        for name in SHARDS:
            sync(target / name)
    if fsync_parent:
        sync(root)
    remove(staging)
    sync(root)


def sound(folder: str) -> None:
    """Keep all promises."""
    write(folder)


no_fsync = partial(write, fsync=False)
rename_before_fsync = partial(write, fsync_late=True)
no_fsync_of_staging = partial(write, fsync_staging=False)
ignores_short_writes = partial(write, loops=False)
trusts_what_is_staged = partial(write, trusts=True)
exchanges = partial(write, overwrite="exchange")
removes_first = partial(write, overwrite="remove")


def no_fsync_of_parent(folder: str) -> None:
    """Forget that the name of the target has to last."""
    staging = Path(folder, ".train.recordkit")
    staging.mkdir()
    for name, data in SHARDS.items():
        put(staging / name, data)
    sync(staging)
    staging.rename(Path(folder, "train"))


def in_place(folder: str) -> None:
    """Write under the final names."""
    target = Path(folder, "train")
    with os_errors_as_storage_errors(target):
        target.mkdir(exist_ok=True)
    for name, data in SHARDS.items():
        put(target / name, data)
    sync(target)
    sync(target.parent)


def deaf(folder: str) -> None:
    """Take a failed fsync for a success."""
    root = Path(folder)
    staging = root / ".train.recordkit"
    remove(staging)
    if (root / "train").exists():
        return
    with os_errors_as_storage_errors(staging):
        staging.mkdir()
    for name, data in SHARDS.items():
        put(staging / name, data, fsync=False)
        with suppress(OSError):
            sync(staging / name)
    sync(staging)
    with os_errors_as_storage_errors(staging):
        staging.rename(root / "train")
    sync(root)


def fsyncs_again(folder: str) -> None:
    """Believe that a second fsync brings back what the first one lost."""
    root = Path(folder)
    staging = root / ".train.recordkit"
    remove(staging)
    staging.mkdir()
    for name, data in SHARDS.items():
        put(staging / name, data, fsync=False)
        try:
            sync(staging / name)
        except OSError:
            sync(staging / name)
    sync(staging)
    staging.rename(root / "train")
    sync(root)


def mute(folder: str) -> None:
    """Raise errors that help nobody."""
    try:
        sound(folder)
    except ToyError as error:
        raise OSError(error.errno, "it did not work") from error


def old_dataset(folder: str) -> None:
    """Leave another dataset under the target's name."""
    target = Path(folder, "train")
    target.mkdir()
    put(target / "train-00000", b"old")


def hang(folder: str) -> None:
    """Never end."""
    threading.Event().wait()
