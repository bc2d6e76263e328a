"""Staging: the hidden sibling in which a target is made, and what a run that broke off has left there.

.train.recordkit/
part-00000-of-00001/     one writer's work; several writers may each do a part
lock                   held while the writer lives
run.json               what was asked for, so that resuming does the same
shard-00000.json       written last: the shard is finished and on the disk
data/shard-00000.*     the records, their index, their quarantine
done.json              the part is complete
publish.json, final/     while it is being published: see _publish.py
"""

from __future__ import annotations

import fcntl
import json
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from recordkit.errors import StorageError, TargetBusyError

from . import _disk, _names, _side_json
from ._manifest import Shard

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


class Lock:
    """A file that one process at a time can hold; the system lets go of it when the process ends, however it does."""

    def __init__(self, path: Path, target: Path) -> None:
        while True:
            with _disk.telling(path, "making the lock"):
                self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                owner = os.pread(self._descriptor, 200, 0).decode(errors="replace") or "another process"
                self.release()
                message = (
                    f"{target}: another writer is at work there: {owner}\n  Wait for it, or choose another target."
                )
                raise TargetBusyError(message, path=str(target)) from None
            # The holder before us may have removed the file while we waited for it.
            try:
                if path.stat().st_ino == os.fstat(self._descriptor).st_ino:
                    break
            except FileNotFoundError:
                pass
            self.release()
            _disk.make_folder(path.parent)
        with suppress(OSError):  # only words for others to read
            os.pwrite(self._descriptor, f"process {os.getpid()} on {os.uname().nodename}".encode(), 0)

    def release(self) -> None:
        """Let go."""
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            with suppress(OSError):  # nothing was written that could be lost
                os.close(descriptor)


class Part:
    """One writer's share of a target, and the right to work on it.

    Raises:
        TargetBusyError: Another writer has it.
    """

    def __init__(self, target: Path, number: int = 0, total: int = 1, *, sync: bool = True) -> None:
        self.target = target
        self.number = number
        self.total = total
        self._sync = sync
        self._lasts = False
        self.staging = _names.staging_of(target)
        self.folder = part_folder(self.staging, number, total)
        self.data = self.folder / "data"
        self._check_totals()
        # The names of these folders need not last before there is something in them that does: see `add`.
        _disk.make_folder(self.folder, sync=False)
        self._lock = Lock(self.folder / "lock", target)
        _disk.make_folder(self.data, sync=False)

    def _check_totals(self) -> None:
        # One of the others is enough, for it was held against the rest; all are too many for each to look at.
        total = _total_of_any(self.staging)
        if total not in (None, self.total):
            message = (
                f"{self.target}: an unfinished run has {total} parts, and this writer is one of {self.total}\n"
                f"  Go on with parts={total}, or remove what is there: recordkit.discard({str(self.target)!r})."
            )
            raise StorageError(message, path=str(self.target))

    @property
    def run(self) -> dict[str, Any] | None:
        """What was asked for when this part was begun; None if it was not."""
        return load_json(self.folder / "run.json")

    @run.setter
    def run(self, value: dict[str, Any]) -> None:
        _disk.replace_file(self.folder / "run.json", _json(value), sync=self._sync, sync_name=False)

    @property
    def shards(self) -> tuple[Shard, ...]:
        """The finished shards, in order."""
        return finished_shards(self.folder)

    def add(self, shard: Shard) -> None:
        """Say that a shard is finished. Its files are on the disk already."""
        if not self._lasts:
            for folder in (self.staging.parent, self.staging):
                _disk.sync_folder(folder, sync=self._sync)
            self._lasts = True
        path = self.folder / f"shard-{_number(shard.name):05d}.json"
        _disk.replace_file(path, _json(shard.to_dict()), sync=self._sync)

    @property
    def done(self) -> bool:
        """Whether every row of this part is in a finished shard."""
        return (self.folder / "done.json").exists()

    @done.setter
    def done(self, value: bool) -> None:
        if value:
            _disk.replace_file(self.folder / "done.json", b"{}\n", sync=self._sync)
        else:
            _disk.remove_file(self.folder / "done.json")

    def drop_unfinished(self) -> None:
        """Remove what belongs to no finished shard."""
        kept = {shard.name.split(".")[0] for shard in self.shards}
        for path in self.data.iterdir():
            if path.name.split(".")[0] not in kept:
                _disk.remove_file(path)

    def clear(self) -> None:
        """Remove all that an earlier run has left of this part."""
        # What says that a shard is finished goes first, the last shard's before all, so that at no moment there is one
        # without its shard, or without those before it, or without what was asked for.
        claims = sorted(self.folder.glob("*.json"), reverse=True)
        for path in claims:
            _disk.remove_file(path)
        _disk.sync_folder(self.folder, sync=self._sync and bool(claims))
        for path in self.data.iterdir():
            _disk.remove_file(path)

    def abandon(self) -> None:
        """Remove this part, and the staging folder with it if there is no other."""
        if self.total == 1:
            put_away(self.staging, sync=self._sync)
        else:
            # Another part may be beginning at this moment: what is not empty is not ours alone.
            _disk.remove_tree(self.folder)
            _disk.remove_empty(self.staging)

    def give_up(self) -> None:
        """Leave finished shards to whoever resumes, and nothing else."""
        # While it is being published, shards are elsewhere: whoever comes next takes them back or finishes it.
        publishing = (self.staging / "publish.json").exists()
        if not publishing and not finished_shards(self.folder) and self.staging.exists():
            self.abandon()
        self.release()

    def release(self) -> None:
        """Let others work on it."""
        self._lock.release()


def claim_parts(target: Path, numbers: Iterable[int], total: int, *, sync: bool = True) -> list[Part]:
    """Return parts, all of them or none.

    Raises:
        TargetBusyError: Another writer has one of them.
    """
    claimed: list[Part] = []
    try:
        for number in numbers:
            claimed.append(Part(target, number, total, sync=sync))
    except BaseException:
        for part in claimed:
            part.release()
        raise
    return claimed


def part_folder(staging: Path, number: int, total: int) -> Path:
    """Return the folder of one part."""
    return staging / f"part-{number:05d}-of-{total:05d}"


def part_folders(staging: Path) -> list[Path]:
    """Return the folders of the parts that were begun."""
    return sorted(staging.glob("part-*-of-*"))


def _total_of_any(staging: Path) -> int | None:
    """Return of how many parts one that was begun is; None if there is none."""
    try:
        with os.scandir(staging) as entries:
            name = next((entry.name for entry in entries if entry.name.startswith("part-")), None)
    except FileNotFoundError:
        return None
    return None if name is None else int(name.rpartition("-of-")[2])


def finished_shards(folder: Path) -> tuple[Shard, ...]:
    """Return the finished shards of a part, in order: those before the first that is not there as it should be."""
    shards: list[Shard] = []
    while (value := load_json(folder / f"shard-{len(shards):05d}.json")) is not None:
        shard = Shard.from_dict(value)
        if not _is_there(folder / "data", shard):
            break
        shards.append(shard)
    return tuple(shards)


def _is_there(data: Path, shard: Shard) -> bool:
    stem = shard.name.split(".")[0]
    beside = [f"{stem}.rki"] + ([f"{stem}.jsonl"] if shard.skipped else [])
    path = data / shard.name
    return path.exists() and path.stat().st_size == shard.bytes and all((data / name).exists() for name in beside)


def put_away(staging: Path, *, sync: bool = True) -> None:
    """Remove a staging folder, at once as far as anyone can see."""
    away = staging.with_name(f"{staging.name}.old")
    _disk.remove_tree(away)
    if staging.exists():
        _disk.rename(staging, away)
        # Before anything in it goes: half of it must not come back under the old name.
        _disk.sync_folder(staging.parent, sync=sync)
        _disk.remove_tree(away)


def _number(stem: str) -> int:
    return int(stem.split(".")[0].removeprefix("shard-"))


def _json(value: Any) -> bytes:
    return _side_json.to_bytes(value)


def load_json(path: Path) -> dict[str, Any] | None:
    """Return what is in one of our JSON files, None if it is not there."""
    try:
        loaded: dict[str, Any] = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValueError as error:
        message = f"{path}: not what recordkit wrote: {error}\n  Remove the unfinished run with recordkit.discard."
        raise StorageError(message, path=str(path)) from error
    return loaded
