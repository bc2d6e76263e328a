"""Staging: the hidden folder next to a target in which it is made, and what an interrupted run left there.

What it contains:

    .train.recordkit/
      parts.lock               shared by the writers of several parts; exclusive while all are published or removed
      part-00000-of-00001/     one writer's work; several writers may each do a part
        lock                   held while the writer lives
        helpers                shared by the processes that make shards for it
        run.json               the arguments, so that resuming does the same
        shard-00000.json       written last: the shard is finished and on disk
        data/shard-00000.*     the records, their index, their quarantine
        done.json              the part is complete
      publish.json, final/     while it is being published: see _journal.py
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
_RUN: Final = declare.JsonFormat("run of a writer", declare.table(declare.anything), _ADVICE)
_NAMES: Final = ("name", "split")  # in run.json: names of sets of shards
_SHARD: Final = declare.JsonFormat("entry of a finished shard", SHARD, _ADVICE)
_STAGED: Final = re.compile(r"shard-\d{5,}\.tfrecord(\.gz)?")
_PART: Final = re.compile(r"part-(\d{5,})-of-(\d{5,})")


def check_folder(staging: Path, *inner: Path) -> None:
    """Check that a staging folder, folders in it, and their locks are such as recordkit's writers make.

    Raises:
        StorageError: One of them is a link or something else, or belongs to another user.
    """
    for folder in (staging, *inner):
        try:
            is_folder = stat.S_ISDIR(folder.lstat().st_mode)
        except FileNotFoundError:
            continue
        if not is_folder:
            message = (
                f"{folder}: expected a folder, found a link or something else\n  recordkit did not make it. Remove it."
            )
            raise StorageError(message, path=str(folder))
        for path in (folder / "lock", folder / _ALL, folder / "helpers", folder / "run.json"):
            with suppress(FileNotFoundError):
                facts = path.lstat()
                if not stat.S_ISREG(facts.st_mode) or facts.st_nlink > 1:
                    message = f"{path}: expected a regular file, found a link or something else\n  {_ADVICE}"
                    raise StorageError(message, path=str(path))
    if is_foreign(staging):
        message = (
            f"{staging}: this unfinished run belongs to another user\n  Let that user finish it, or remove the folder."
        )
        raise StorageError(message, path=str(staging))


def _owner(path: Path) -> int | None:
    try:
        return path.lstat().st_uid
    except FileNotFoundError:
        return None


def is_foreign(staging: Path) -> bool:
    """Tell whether a staging folder belongs to another user. root is trusted: it can do anything else, too."""
    owner = _owner(staging)
    if owner in (None, os.geteuid(), 0):
        return False
    import tempfile  # here, because importing it takes long and this is rare

    # On some network file systems, all files belong to one user.
    with suppress(OSError), tempfile.TemporaryFile(dir=staging.parent) as file:
        return os.fstat(file.fileno()).st_uid != owner
    return True


class Lock:
    """A file that one process at a time can lock. The system releases it when the process ends in any way.

    Nothing depends on the content or times of the file, or on whether the process named in it is alive.

    Args:
        path: The file.
        target: What it protects, to name in errors.
        wait: How many seconds to wait for other processes.
        root: A folder above it that must exist; folders below that are created.
        shared: Whether several processes may hold it at the same time, if all of them share it.

    Raises:
        TargetBusyError: Another process holds it.
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
                message = f"{target}: another writer is using it: {owner}\n  Wait for it, or choose another target."
                raise TargetBusyError(message, path=str(target))
            time.sleep(pause)
            pause = min(2 * pause, 0.05)
        if shared:
            return
        with suppress(OSError):  # only for people to read
            facts = os.fstat(self._descriptor)
            if stat.S_ISREG(facts.st_mode) and facts.st_nlink == 1:
                os.pwrite(self._descriptor, f"process {os.getpid()} on {os.uname().nodename}".encode(), 0)

    def _taken_by(self) -> str | None:
        """Acquire the lock, or return who holds it."""
        while True:
            self._descriptor = self._opened()
            try:
                fcntl.flock(self._descriptor, self._how)
            except (BlockingIOError, PermissionError):
                owner = ""
                with suppress(OSError):  # a folder has no content
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
        """Continue without a lock."""
        filesystems.say_once(
            f"{self._path.parent}: this file system has no locks (flock: {os.strerror(error.errno or 0)})\n"
            "  Nothing prevents two programs from writing at once here: make sure that only one does."
        )

    def _opened(self) -> int:
        flags = os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        with filesystems.os_errors_as_storage_errors(self._path, "making the lock"):
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
        """Release the lock."""
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            with suppress(OSError):  # nothing was written, so nothing can be lost
                os.close(descriptor)

    def remove(self) -> None:
        """Release the lock and remove its file."""
        # Nobody else removes it while it is held. The whole folder may have been replaced, with another lock in it.
        if self.held and not self._path.is_dir():
            with suppress(OSError):
                self._path.unlink()
        self.release()


class StagedPart:
    """One writer's share of a target, and the right to work on it.

    Args:
        target: The folder or file.
        number: Which of the parts it is.
        total: How many there are.
        sync: Whether to sync finished shards to disk.
        mode: The permissions of the files it is made of; None for the default.
        gaps: Whether shards are made in any order, so that one may be finished before those with lower numbers.
        lock: A lock that already covers this part.

    Raises:
        TargetBusyError: Another writer has this part.
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
        # Files made from private ones must be private while they are made, too.
        filesystems.make_folder(self.staging, sync=False, mode=mode)
        # These folders need not be synced before they contain something that is: see `add`.
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
        # One other part is enough, because it was compared with the rest; looking at all of them would take too long.
        total = _total_of_any(self.staging)
        if total not in (None, self.total):
            message = (
                f"{self.target}: an unfinished run has {total} parts, and this writer is one of {self.total}\n"
                f"  Continue with parts={total}, or remove that run: recordkit.discard({str(self.target)!r})."
            )
            raise StorageError(message, path=str(self.target))

    @property
    def run(self) -> dict[str, Any] | None:
        """The arguments that this part was started with; None if it was not started."""
        return load_run(self.folder)

    @run.setter
    def run(self, value: dict[str, Any]) -> None:
        filesystems.replace_file(self.folder / "run.json", _json(value), sync=self.sync, sync_name=False)

    @property
    def shards(self) -> tuple[Shard, ...]:
        """The finished shards, in order."""
        # Nobody else can finish or remove shards, so they are read once.
        if self._finished is None:
            self._finished = finished_shards(self.folder, gaps=self.gaps)
        numbers = sorted(self._finished)
        if not self.gaps:
            numbers = [number for place, number in enumerate(numbers) if number == place]
        return tuple(self._finished[number] for number in numbers)

    def look_again(self) -> None:
        """Forget which shards are finished: helpers may have finished more."""
        self._finished = None

    def check_held(self) -> None:
        """Check that the staging folder still belongs to this writer.

        Raises:
            TargetBusyError: Somebody else has removed it.
        """
        if not all(lock.held for lock in self._locks):
            message = (
                f"{self.target}: another program has removed what was being written here\n"
                "  Nothing was published. Make sure that nothing else writes or discards it, and write it again."
            )
            raise TargetBusyError(message, path=str(self.target))

    def add(self, shard: Shard) -> None:
        """Record that a shard is finished. Its files are on disk already."""
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
        """Remove files that belong to no finished shard."""
        kept = {shard.name.split(".")[0] for shard in self.shards}
        for path in filesystems.children(self.data):
            if path.name.split(".")[0] not in kept:
                filesystems.remove_file(path)

    def clear(self) -> None:
        """Remove everything that an earlier run left in this part."""
        self._finished = None
        # Remove the JSON files first, from the last shard down to run.json, so that at no moment an entry exists
        # without its shard, without the entries before it, or without run.json.
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
            # Another part may be starting at this moment: a folder that is not empty has other users.
            filesystems.remove_tree(self.folder)
            filesystems.remove_empty(self.staging)

    def give_up(self) -> None:
        """Keep finished shards for resuming, and remove everything else."""
        try:
            # While it is being published, shards are elsewhere: the next writer takes them back or finishes.
            publishing = (self.staging / "publish.json").exists()
            if not publishing and not finished_shards(self.folder, gaps=self.gaps) and self.staging.exists():
                self.abandon()
        finally:
            self.release()

    def release(self) -> None:
        """Release the locks."""
        for lock in self._locks:
            lock.release()


def claim_parts(target: Path, numbers: Iterable[int], total: int, *, sync: bool = True) -> list[StagedPart]:
    """Claim parts, all of them or none, with a single lock.

    Raises:
        TargetBusyError: Another writer has one of them.
    """
    if total <= 1:
        return [StagedPart(target, number, total, sync=sync) for number in numbers]
    lock = Lock(staging_of(target) / _ALL, target)
    try:
        return [StagedPart(target, number, total, sync=sync, lock=lock) for number in numbers]
    except BaseException:
        lock.release()
        raise


def part_folder(staging: Path, number: int, total: int) -> Path:
    """Return the folder of one part."""
    return staging / f"part-{number:05d}-of-{total:05d}"


def part_folders(staging: Path) -> list[Path]:
    """Return the folders of the parts that were started."""
    return [path for path in filesystems.children(staging) if _PART.fullmatch(path.name)]


def _total_of_any(staging: Path) -> int | None:
    """Return the total number of parts, from the name of any part; None if there is none."""
    if not staging.is_dir():
        return None
    # There may be thousands; the first one found is enough.
    with filesystems.os_errors_as_storage_errors(staging, "listing the folder"), os.scandir(staging) as entries:
        name = next((entry.name for entry in entries if _PART.fullmatch(entry.name)), None)
    return None if name is None else int(name.rpartition("-of-")[2])


def finished_shards(folder: Path, *, gaps: bool = False) -> dict[int, Shard]:
    """Return the finished shards of a part by their numbers.

    Args:
        folder: The folder of the part.
        gaps: Whether to return all of them; otherwise only those before the first gap.
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
    side_files = [f"{stem}.rki"] + ([f"{stem}.jsonl"] if shard.skipped else [])
    paths = [data / name for name in (shard.name, *side_files)]
    if not all(path.exists() for path in paths):
        return False
    for path in paths:
        if not stat.S_ISREG(path.lstat().st_mode):
            message = f"{path}: expected a regular file, found a link or something else\n  {_ADVICE}"
            raise StorageError(message, path=str(path))
    return paths[0].stat().st_size == shard.bytes


def put_away(staging: Path, *, sync: bool = True) -> None:
    """Remove a staging folder, in one step as far as others can see."""
    away = staging.with_name(f"{staging.name}.old")
    filesystems.remove_tree(away)
    if os.path.lexists(staging):
        filesystems.rename(staging, away)
        # Sync before removing anything in it: half of it must not reappear under the old name.
        filesystems.sync_folder(staging.parent, sync=sync)
        filesystems.remove_tree(away)


def number_of(shard: Shard) -> int:
    """Return the number of a staged shard."""
    return int(shard.name.split(".")[0].removeprefix("shard-"))


def _json(value: Any) -> bytes:
    return side_json.to_bytes(value)


def load_run(folder: Path) -> dict[str, Any] | None:
    """Return the arguments that the part in a folder was started with; None if it was not started."""
    run = _load(_RUN, folder / "run.json")
    for name in _NAMES:
        if run is not None and run.get(name) is not None:
            try:
                declare.file_name(run[name])
            except declare.FormatMismatch as unlike:
                raise _RUN.error(str(folder / "run.json"), str(unlike.within(name))) from None
    return run


def _load(declared: declare.JsonFormat, path: Path) -> dict[str, Any] | None:
    try:
        value: dict[str, Any] = declared.load(path)
    except FileNotFoundError:
        return None
    return value
