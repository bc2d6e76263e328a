"""Exercises for the shim: calls of every sort, made in a child process."""

from __future__ import annotations

import ctypes
import mmap
import os
import shutil
import threading
from pathlib import Path

from .toys import exchange


def everything(folder: str) -> None:
    """Change a folder in every way that the shim knows."""
    root = Path(folder)
    os.chdir(root)
    flags = os.O_RDWR | os.O_CREAT

    fd = os.open("written", flags)
    os.write(fd, b"one two three")
    os.pwrite(fd, b"TWO", 4)
    os.writev(fd, [b" four", b" five"])
    os.pwritev(fd, [b"O", b"N"], 0)
    twin = os.dup(fd)
    os.write(twin, b" six")
    os.fsync(twin)
    os.fdatasync(fd)
    os.ftruncate(fd, 20)
    os.posix_fallocate(fd, 0, 64)
    os.close(twin)
    os.close(fd)

    fd = os.open(root / "written", os.O_WRONLY | os.O_APPEND)
    os.write(fd, b"appended")
    os.close(fd)
    os.truncate("written", 70)
    with Path("written").open("r+b") as file:
        file.seek(100)
        file.write(b"after a hole")

    Path("folder").mkdir()
    inside = os.open("folder", os.O_RDONLY)
    fd = os.open("name with 100% odd \u00e9 bytes", flags, dir_fd=inside)
    source = os.open("written", os.O_RDONLY)
    os.sendfile(fd, source, 0, 30)
    os.copy_file_range(source, fd, 20, 10)
    os.close(source)
    os.close(fd)
    os.fsync(inside)
    os.mkdir("deeper", dir_fd=inside)
    os.rename("deeper", "./../moved//", src_dir_fd=inside, dst_dir_fd=inside)
    os.close(inside)

    Path("folder/linked").hardlink_to("written")
    Path("symbolic").symlink_to("folder/linked")
    shutil.copyfile("written", "copied")
    Path("copied").write_bytes(b"cut and written anew")
    Path("copied").replace("folder/replaced")
    Path("folder/replaced").rename("final")
    exchange(root / "final", root / "folder")
    with Path("final/linked").open("ab") as file:
        file.write(b"through the other name")
    os.sync()
    Path("removed").mkdir()
    Path("removed/file").write_bytes(b"x")
    shutil.rmtree("removed")
    Path("written").unlink()

    libc = ctypes.CDLL(None)
    fd = libc.creat(b"created", 0o666)
    libc.pwrite(fd, b"by the C library", 16, ctypes.c_long(3))
    Path("symbolic").unlink()
    os.close(fd)


def in_threads(folder: str) -> None:
    """Write many files from several threads."""

    def write(number: int) -> None:
        for part in range(20):
            Path(folder, f"{number}-{part}").write_bytes(bytes([number]) * 100)

    threads = [threading.Thread(target=write, args=[number]) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def elsewhere(folder: str) -> None:
    """Change things that are not in the folder, though beside it and with its name in theirs."""
    beside = Path(f"{folder}-beside")
    beside.mkdir()
    (beside / "file").write_bytes(b"x")
    shutil.rmtree(beside)


def read_only(folder: str) -> None:
    """Make a file, then open and close it for reading."""
    path = Path(folder, "file")
    path.write_bytes(b"x")
    path.read_bytes()


def fill(folder: str) -> int | None:
    """Write until there is an error, and return its number."""
    try:
        with Path(folder, "file").open("wb", buffering=0) as file:
            for _ in range(100):
                assert file.write(b"0123456789")
    except OSError as error:
        return error.errno
    return None


def through_a_map(folder: str) -> None:
    """Change a file in a way that the shim cannot see."""
    target = Path(folder, "train")
    target.mkdir()
    with (target / "file").open("w+b") as file:
        file.write(b"before")
        file.flush()
        with mmap.mmap(file.fileno(), 0) as mapped:
            mapped[:] = b"behind"
