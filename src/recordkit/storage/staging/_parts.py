"""Staging: the hidden sibling in which a target is made, and what a run that broke off has left there.

.train.recordkit/
parts.lock               shared by the writers of several parts; held by whoever publishes or removes all of them
part-00000-of-00001/     one writer's work; several writers may each do a part
lock                   held while the writer lives
helpers                shared by processes that make shards for it
run.json               what was asked for, so that resuming does the same
shard-00000.json       written last: the shard is finished and on the disk
data/shard-00000.*     the records, their index, their quarantine
done.json              the part is complete
publish.json, final/     while it is being published: see _publish.py
"""

from __future__ import annotations

import fcntl
import os
import re
import stat
import time
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from recordkit import filesystems
from recordkit.errors import StorageError, TargetBusyError
from recordkit.storage.format import SHARD, Shard, side_json, staging_of
from recordkit.storage.format import side_json as declare

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


_ALL: Final = "parts.lock"
_ADVICE: Final = "Remove the unfinished run with recordkit.discard."
_RUN: Final = declare.Declared("run of a writer", declare.table(declare.anything), _ADVICE)
_NAMES: Final = ("name", "split")  # in a run, of sets of shards
_SHARD: Final = declare.Declared("entry of a finished shard", SHARD, _ADVICE)
_STAGED: Final = re.compile(r"shard-\d{5,}\.tfrecord(\.gz)?")
_PART: Final = re.compile(r"part-(\d{5,})-of-(\d{5,})")


def check_folder(staging: Path, *inner: Path) -> None:
    """Raise if a staging folder, one in it, or the lock there, is not what a writer of ours makes.

    Raises:
        StorageError: There is a link or something else in its place, or it belongs to another user.
    """
    for folder in (staging, *inner):
        try:
            is_folder = stat.S_ISDIR(folder.lstat().st_mode)
        except FileNotFoundError:
            continue
        if not is_folder:
            message = f"{folder}: expected a folder, found a link or something else\n  It is not ours. Take it away."
            raise StorageError(message, path=str(folder))
        for path in (folder / "lock", folder / _ALL, folder / "helpers", folder / "run.json"):
            with suppress(FileNotFoundError):
                facts = path.lstat()
                if not stat.S_ISREG(facts.st_mode) or facts.st_nlink > 1:
                    message = f"{path}: expected a file of ours, found a link or something else\n  {_ADVICE}"
                    raise StorageError(message, path=str(path))
    if is_foreign(staging):
        message = (
            f"{staging}: an unfinished run of another user is here, and what it says is not obeyed\n"
            "  Let that user finish it, or remove the folder."
        )
        raise StorageError(message, path=str(staging))


def _owner(path: Path) -> int | None:
    try:
        return path.lstat().st_uid
    except FileNotFoundError:
        return None


def is_foreign(staging: Path) -> bool:
    """Tell whether a staging folder belongs to another user. The system's own one is trusted with all else, too."""
    owner = _owner(staging)
    if owner in (None, os.geteuid(), 0):
        return False
    import tempfile  # here, because importing it takes long and this is rare

    # Some network file systems give all files to one user, whoever makes them.
    with suppress(OSError), tempfile.TemporaryFile(dir=staging.parent) as file:
        return os.fstat(file.fileno()).st_uid != owner
    return True


class Lock:
    """A file that one process at a time can hold; the system lets go of it when the process ends, however it does.

    Nothing depends on what is in the file, on its times, or on whether the process that it names is alive.

    Args:
        path: The file.
        target: What it is for, to name in errors.
        wait: How many seconds to wait for somebody else.
        root: A folder above it that is not made if it has gone; all below are.
        shared: Whether others that share it too may hold it at the same time.

    Raises:
        TargetBusyError: Somebody else has it.
    """

    def __init__(
        self, path: Path, target: Path, *, wait: float = 0.0, root: Path | None = None, shared: bool = False
    ) -> None:
        self._path = path
        self._how = fcntl.LOCK_NB | (fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
        self._root = root
        end, pause = time.monotonic() + wait, 0.001
        while (owner := self._taken_by()) is not None:
            if time.monotonic() >= end:
                message = (
                    f"{target}: another writer is at work there: {owner}\n  Wait for it, or choose another target."
                )
                raise TargetBusyError(message, path=str(target))
            time.sleep(pause)
            pause = min(2 * pause, 0.05)
        if shared:
            return
        with suppress(OSError):  # only words for others to read
            facts = os.fstat(self._descriptor)
            if stat.S_ISREG(facts.st_mode) and facts.st_nlink == 1:
                os.pwrite(self._descriptor, f"process {os.getpid()} on {os.uname().nodename}".encode(), 0)

    def _taken_by(self) -> str | None:
        """Take the lock, or return who has it."""
        while True:
            self._descriptor = self._opened()
            try:
                fcntl.flock(self._descriptor, self._how)
            except (BlockingIOError, PermissionError):
                owner = ""
                with suppress(OSError):  # a folder has no words in it
                    owner = os.pread(self._descriptor, 200, 0).decode(errors="replace")
                self.release()
                return owner or "another process"
            except OSError as error:
                self._refused(error)
            # The holder before us may have removed the file while we waited for it.
            if self._is_in_place():
                return None
            self.release()

    def _refused(self, error: OSError) -> None:
        """Go on without a lock."""
        filesystems.say_once(
            f"{self._path.parent}: this file system has no locks (flock: {os.strerror(error.errno or 0)})\n"
            "  Two that write at once are not kept from each other here: see to it that only one does."
        )

    def _opened(self) -> int:
        flags = os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        with filesystems.telling(self._path, "making the lock"):
            while True:
                try:
                    return os.open(self._path, os.O_RDWR | flags, 0o666)
                except PermissionError:
                    return os.open(self._path, os.O_RDONLY | flags, 0o666)  # left by another user who may write here
                except FileNotFoundError:
                    if self._root is not None and not self._root.is_dir():
                        raise
                    filesystems.make_folder(self._path.parent)

    @property
    def held(self) -> bool:
        """Whether it is held, and its file is still under its name."""
        return self._descriptor >= 0 and self._is_in_place()

    def _is_in_place(self) -> bool:
        try:
            return os.path.samestat(self._path.lstat(), os.fstat(self._descriptor))
        except OSError:
            return False

    def release(self) -> None:
        """Let go."""
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            with suppress(OSError):  # nothing was written that could be lost
                os.close(descriptor)

    def remove(self) -> None:
        """Let go, and leave no file."""
        # While it is held nobody else removes it. Another one may be in its place, with all around it.
        if self.held and not self._path.is_dir():
            with suppress(OSError):
                self._path.unlink()
        self.release()


class Part:
    """One writer's share of a target, and the right to work on it.

    Args:
        target: The folder or file.
        number: Which of the parts it is.
        total: How many there are.
        sync: Whether what is finished lasts.
        mode: The permissions of the files that it is made of; None for new ones.
        gaps: Whether shards are made in any order, so that one may be finished before those with lower numbers.
        lock: One that covers this part already.

    Raises:
        TargetBusyError: Another writer has it.
    """

    def __init__(
        self,
        target: Path,
        number: int = 0,
        total: int = 1,
        *,
        sync: bool = True,
        mode: int | None = None,
        gaps: bool = False,
        lock: Lock | None = None,
    ) -> None:
        self.target = target
        self.number = number
        self.total = total
        self.sync = sync
        self.gaps = gaps
        self._lasts = False
        self._finished: dict[int, Shard] | None = None
        self.staging = staging_of(target)
        self.folder = part_folder(self.staging, number, total)
        self.data = self.folder / "data"
        check_folder(self.staging, self.folder, self.data)
        self._check_totals()
        # What is made of files that others may not read is not theirs to read while it is made.
        filesystems.make_folder(self.staging, sync=False, mode=mode)
        # The names of these folders need not last before there is something in them that does: see `add`.
        filesystems.make_folder(self.folder, sync=False)
        self._locks = [lock] if lock is not None else self._own_locks()
        filesystems.make_folder(self.data, sync=False)

    def _own_locks(self) -> list[Lock]:
        locks = [Lock(self.folder / "lock", self.target)]
        try:
            if self.total > 1:
                locks.append(Lock(self.staging / _ALL, self.target, shared=True))
        except BaseException:
            locks[0].release()
            raise
        return locks

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
        return load_run(self.folder)

    @run.setter
    def run(self, value: dict[str, Any]) -> None:
        filesystems.replace_file(self.folder / "run.json", _json(value), sync=self.sync, sync_name=False)

    @property
    def shards(self) -> tuple[Shard, ...]:
        """The finished shards, in order."""
        # Nobody else can finish or remove one: what was read is remembered.
        if self._finished is None:
            self._finished = finished_shards(self.folder, gaps=self.gaps)
        numbers = sorted(self._finished)
        if not self.gaps:
            numbers = [number for place, number in enumerate(numbers) if number == place]
        return tuple(self._finished[number] for number in numbers)

    def look_again(self) -> None:
        """Take notice that others may have finished shards of this part."""
        self._finished = None

    def check_held(self) -> None:
        """Raise if somebody has taken the staging folder away from under this writer.

        Raises:
            TargetBusyError: They have.
        """
        if not all(lock.held for lock in self._locks):
            message = (
                f"{self.target}: somebody else has removed what was being written here\n"
                "  Nothing was published. See to it that nobody else writes or discards it, and write it again."
            )
            raise TargetBusyError(message, path=str(self.target))

    def add(self, shard: Shard) -> None:
        """Say that a shard is finished. Its files are on the disk already."""
        self.check_held()
        if not self._lasts:
            for folder in (self.staging.parent, self.staging):
                filesystems.sync_folder(folder, sync=self.sync)
            self._lasts = True
        number = number_of(shard)
        filesystems.replace_file(self.folder / f"shard-{number:05d}.json", _json(shard.to_dict()), sync=self.sync)
        if self._finished is not None:
            self._finished[number] = shard

    @property
    def done(self) -> bool:
        """Whether every row of this part is in a finished shard."""
        return (self.folder / "done.json").exists()

    @done.setter
    def done(self, value: bool) -> None:
        if value:
            filesystems.replace_file(self.folder / "done.json", b"{}\n", sync=self.sync)
        else:
            filesystems.remove_file(self.folder / "done.json")

    def drop_unfinished(self) -> None:
        """Remove what belongs to no finished shard."""
        kept = {shard.name.split(".")[0] for shard in self.shards}
        for path in filesystems.children(self.data):
            if path.name.split(".")[0] not in kept:
                filesystems.remove_file(path)

    def clear(self) -> None:
        """Remove all that an earlier run has left of this part."""
        self._finished = None
        # What says that a shard is finished goes first, the last shard's before all, so that at no moment there is one
        # without its shard, or without those before it, or without what was asked for.
        claims = [path for path in reversed(filesystems.children(self.folder)) if path.suffix == ".json"]
        for path in claims:
            filesystems.remove_file(path)
        filesystems.sync_folder(self.folder, sync=self.sync and bool(claims))
        for path in filesystems.children(self.data):
            filesystems.remove_file(path)

    def abandon(self) -> None:
        """Remove this part, and the staging folder with it if there is no other."""
        if self.total == 1:
            put_away(self.staging, sync=self.sync)
        else:
            # Another part may be beginning at this moment: what is not empty is not ours alone.
            filesystems.remove_tree(self.folder)
            filesystems.remove_empty(self.staging)

    def give_up(self) -> None:
        """Leave finished shards to whoever resumes, and nothing else."""
        try:
            # While it is being published, shards are elsewhere: whoever comes next takes them back or finishes it.
            publishing = (self.staging / "publish.json").exists()
            if not publishing and not finished_shards(self.folder, gaps=self.gaps) and self.staging.exists():
                self.abandon()
        finally:
            self.release()

    def release(self) -> None:
        """Let others work on it."""
        for lock in self._locks:
            lock.release()


def claim_parts(target: Path, numbers: Iterable[int], total: int, *, sync: bool = True) -> list[Part]:
    """Return parts, all of them or none. One lock covers them, however many there are.

    Raises:
        TargetBusyError: Another writer has one of them.
    """
    if total <= 1:
        return [Part(target, number, total, sync=sync) for number in numbers]
    lock = Lock(staging_of(target) / _ALL, target)
    try:
        return [Part(target, number, total, sync=sync, lock=lock) for number in numbers]
    except BaseException:
        lock.release()
        raise


def part_folder(staging: Path, number: int, total: int) -> Path:
    """Return the folder of one part."""
    return staging / f"part-{number:05d}-of-{total:05d}"


def part_folders(staging: Path) -> list[Path]:
    """Return the folders of the parts that were begun."""
    return [path for path in filesystems.children(staging) if _PART.fullmatch(path.name)]


def _total_of_any(staging: Path) -> int | None:
    """Return of how many parts one that was begun is; None if there is none."""
    if not staging.is_dir():
        return None
    # Of thousands the first that comes is enough.
    with filesystems.telling(staging, "listing the folder"), os.scandir(staging) as entries:
        name = next((entry.name for entry in entries if _PART.fullmatch(entry.name)), None)
    return None if name is None else int(name.rpartition("-of-")[2])


def finished_shards(folder: Path, *, gaps: bool = False) -> dict[int, Shard]:
    """Return the finished shards of a part by their numbers.

    Args:
        folder: The part's.
        gaps: Whether to return all of them; else those before the first that is not there as it should be.
    """
    shards: dict[int, Shard] = {}
    listed = (path for path in filesystems.children(folder) if path.match("shard-*.json"))
    for path in listed if gaps else (folder / f"shard-{number:05d}.json" for number in count()):
        value = _load(_SHARD, path)
        shard = None if value is None else Shard.from_dict(value)
        if shard is not None and not _STAGED.fullmatch(shard.name):
            raise _SHARD.error(str(path), f"name: expected that of a staged shard, found {shard.name!r}")
        if shard is not None and _is_there(folder / "data", shard):
            shards[number_of(shard)] = shard
        elif not gaps:
            break
    return shards


def _is_there(data: Path, shard: Shard) -> bool:
    stem = shard.name.split(".")[0]
    beside = [f"{stem}.rki"] + ([f"{stem}.jsonl"] if shard.skipped else [])
    paths = [data / name for name in (shard.name, *beside)]
    if not all(path.exists() for path in paths):
        return False
    for path in paths:
        if not stat.S_ISREG(path.lstat().st_mode):
            message = f"{path}: expected a file of ours, found a link or something else\n  {_ADVICE}"
            raise StorageError(message, path=str(path))
    return paths[0].stat().st_size == shard.bytes


def put_away(staging: Path, *, sync: bool = True) -> None:
    """Remove a staging folder, at once as far as anyone can see."""
    away = staging.with_name(f"{staging.name}.old")
    filesystems.remove_tree(away)
    if os.path.lexists(staging):
        filesystems.rename(staging, away)
        # Before anything in it goes: half of it must not come back under the old name.
        filesystems.sync_folder(staging.parent, sync=sync)
        filesystems.remove_tree(away)


def number_of(shard: Shard) -> int:
    """Return the number that a shard has until all are there."""
    return int(shard.name.split(".")[0].removeprefix("shard-"))


def _json(value: Any) -> bytes:
    return side_json.to_bytes(value)


def load_run(folder: Path) -> dict[str, Any] | None:
    """Return what was asked for when the part in a folder was begun; None if it was not."""
    run = _load(_RUN, folder / "run.json")
    for name in _NAMES:
        if run is not None and run.get(name) is not None:
            try:
                declare.file_name(run[name])
            except declare.Unlike as unlike:
                raise _RUN.error(str(folder / "run.json"), str(unlike.within(name))) from None
    return run


def _load(declared: declare.Declared, path: Path) -> dict[str, Any] | None:
    try:
        value: dict[str, Any] = declared.load(path)
    except FileNotFoundError:
        return None
    return value
