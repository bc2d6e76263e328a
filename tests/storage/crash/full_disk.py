"""A disk that is really full: a small file system in memory, mounted where nobody else sees it."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Any

import recordkit as rk

from .replay import snapshot

SIZE = 4 << 20
FILLER = 2 << 20
ROWS = [{"id": number, "text": chr(97 + number % 26) * 50_000} for number in range(60)]
CLONE_NEWNS, CLONE_NEWUSER = 0x20000, 0x10000000
MS_REC, MS_PRIVATE = 0x4000, 0x40000


def mount(folder: Path) -> bool:
    """Mount a small file system for this process alone; say whether that is allowed here."""
    libc = ctypes.CDLL(None)
    user, group = os.getuid(), os.getgid()
    if libc.unshare(CLONE_NEWNS):
        if libc.unshare(CLONE_NEWUSER | CLONE_NEWNS):
            return False
        try:
            Path("/proc/self/setgroups").write_text("deny")
            Path("/proc/self/uid_map").write_text(f"0 {user} 1")
            Path("/proc/self/gid_map").write_text(f"0 {group} 1")
        except OSError:
            return False
    if libc.mount(b"none", b"/", None, ctypes.c_ulong(MS_REC | MS_PRIVATE), None):
        return False
    options = f"size={SIZE}".encode()
    return not libc.mount(b"tmpfs", bytes(folder), b"tmpfs", ctypes.c_ulong(0), options)


def limit(room: int | None) -> None:
    """Let the shim say that the disk is full after so many bytes, or no longer."""
    os.environ["RK_SHIM_ROOM"] = "" if room is None else str(room)
    ctypes.CDLL(None).rk_shim_reload()


def write(target: Path, **options: Any) -> int:
    """Write the rows that are not written yet, and return how many were."""
    with rk.create(target, {"id": "int64", "text": "string"}, records_per_shard=10, **options) as writer:
        for row in ROWS[writer.committed :]:
            writer.write(row)
    return writer.committed


def run_out_of_room(folder: str, *, may_mount: bool, overwrite: bool) -> dict[str, Any]:
    """Write until the disk is full, make room, go on; return what happened."""
    disk, elsewhere = Path(folder, "disk"), Path(folder, "elsewhere")
    disk.mkdir()
    mounted = may_mount and mount(disk)
    target = disk / "train"
    if overwrite:
        rk.write(target, ROWS[:3])
    before = snapshot(target)
    if mounted:
        (disk / "filler").write_bytes(bytes(FILLER))
    else:
        limit(FILLER)
    facts: dict[str, Any] = {"mounted": mounted}
    try:
        write(target, overwrite=overwrite)
    except OSError as error:
        facts |= {"error": str(error), "errno": error.errno}
    facts["unchanged"] = snapshot(target) == before
    facts["seen"] = sorted(path.name for path in disk.iterdir() if path.name[0] not in ".f")
    (disk / "filler").unlink(missing_ok=True)
    if not mounted:
        limit(None)
    facts["committed"] = write(target, overwrite=overwrite, resume=True)
    write(elsewhere / "train", overwrite=overwrite)
    facts["equal"] = snapshot(target) == snapshot(elsewhere / "train")
    return facts
