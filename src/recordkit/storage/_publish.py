"""Publish: from finished shards in staging to a target under its final name.

A new folder is put together in staging and renamed once; overwriting exchanges the two. A lone file and appended
shards are renamed one by one into place, the file that makes them count first or last; what is to be renamed is
written down before, so that whoever comes after a crash can finish it or take it back.
"""

from __future__ import annotations

import json
import logging
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal

from recordkit import _core
from recordkit.errors import StorageError, TargetBusyError

from . import _disk, _names
from ._staging import Lock, load_json, put_away

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from ._manifest import Manifest, Shard

log = logging.getLogger("recordkit")

Kind = Literal["folder", "file", "append", "extend"]


@dataclass(frozen=True)
class Journal:
    """What is to be renamed, in this order.

    Attributes:
        kind: What is published.
        moves: From where in the staging folder to where: in `final/` for a folder, else beside the target.
        manifest: The CRC of the new manifest, by which a target that was published is known.
        overwrite: Whether an old target may go.
        swapping: That the old target is being moved away by two renames.
        old_size: Of a lone file that gets more records at its end.
    """

    kind: Kind
    moves: tuple[tuple[str, str], ...]
    manifest: str
    overwrite: bool
    swapping: bool = False
    old_size: int = 0

    @classmethod
    def load(cls, staging: Path) -> Journal | None:
        """Return the journal in a staging folder, None if nothing was being published."""
        value = load_json(staging / "publish.json")
        if value is None:
            return None
        return cls(**{**value, "moves": tuple((source, target) for source, target in value["moves"])})

    def save(self, staging: Path, *, sync: bool) -> None:
        """Write the journal, so that it lasts."""
        _disk.replace_file(staging / "publish.json", json.dumps(asdict(self), indent=1).encode(), sync=sync)


def moves_of(shard: Shard, source: Path, name: str, target_folder: Path, side: Path) -> list[tuple[Path, Path]]:
    """Return where the files of one shard go when it gets its name."""
    stem = shard.name.split(".")[0]
    moves = [
        (source / shard.name, target_folder / name),
        (source / f"{stem}.rki", side / _names.fitting("", name, ".rki")),
    ]
    if shard.skipped:
        moves.append((source / f"{stem}.jsonl", side / "quarantine" / _names.fitting("", name, ".jsonl")))
    return moves


def publish(
    target: Path,
    kind: Kind,
    moves: Sequence[tuple[Path, Path]],
    manifest: Manifest | None,
    *,
    overwrite: bool,
    sync: bool,
    old_size: int = 0,
) -> None:
    """Give shards their final names.

    Args:
        target: The folder or file.
        kind: Whether that is a new folder, a lone file, a folder that gets more shards, or a file that is extended.
        moves: What to rename; for a new folder into `final/` of the staging folder. The manifest is added.
        manifest: The new one; None for a file that has none.
        overwrite: Whether an old target may go.
        sync: Whether all of it is to be on the disk when this returns.
        old_size: Where the file that is extended ends.
    """
    staging = _names.staging_of(target)
    base = staging if kind == "folder" else target.parent
    ordered = list(moves)
    crc = ""
    if manifest is not None:
        data, staged = manifest.to_json(), staging / "manifest.json"
        crc = f"{_core.crc32c(data):08x}"
        _disk.remove_file(staged)
        _disk.write_new(staged, data, sync=sync)
        lone = kind in ("file", "extend")
        ordered.append((staged, _names.manifest_of(staging / "final" if kind == "folder" else target, lone=lone)))
    for folder in sorted({path.parent for _, path in ordered}):
        _disk.make_folder(folder, sync=sync)
    named = tuple((str(source.relative_to(staging)), str(path.relative_to(base))) for source, path in ordered)
    journal = Journal(kind, named, crc, overwrite, old_size=old_size)
    journal.save(staging, sync=sync)
    try:
        complete(target, journal, sync=sync)
    except BaseException:
        with suppress(StorageError):  # what made it fail is what the caller is to hear of
            saved = Journal.load(staging)
            if kind == "extend" and (staging / journal.moves[0][0]).exists():
                _disk.cut_file(target, old_size, sync=sync)
                _disk.remove_file(staging / "publish.json")
            elif saved is not None and not is_beyond_return(target, saved):
                take_back(target, saved, sync=sync)
        raise


def complete(target: Path, journal: Journal, *, sync: bool = True) -> None:
    """Do what the journal says and is not done yet, and remove the staging folder."""
    if is_published(target, journal):
        # Whoever did it may not have lived to see it on the disk.
        places = [target] if journal.kind == "folder" else [target.parent / path for _, path in journal.moves]
        _sync_folders(places, sync=sync)
    else:
        _do_moves(target, journal, sync=sync)
        if journal.kind == "folder":
            _place_folder(target, journal, sync=sync)
    try:
        put_away(_names.staging_of(target), sync=sync)
    except StorageError as error:
        log.warning("%s: it is whole, and what it was made from could not be removed: %s", target, error)


def _do_moves(target: Path, journal: Journal, *, sync: bool) -> None:
    staging = _names.staging_of(target)
    base = staging if journal.kind == "folder" else target.parent
    moves = [(staging / source, base / path) for source, path in journal.moves]
    for number, (source, path) in enumerate(moves):
        if number == len(moves) - 1 and journal.kind != "folder":
            # The manifest is last: all that it speaks of is there before it is.
            _sync_folders([path for _, path in moves[:-1]], sync=sync)
        if not source.exists():
            continue
        if number == 0 and journal.kind == "extend":
            _disk.extend_file(path, journal.old_size, source, sync=sync)
            _disk.remove_file(source)
        elif number == 0 and journal.kind == "file" and not journal.overwrite:
            _disk.rename_new(source, path)
        else:
            _disk.rename(source, path)
        if number == 0 and journal.kind == "file":
            _sync_folders([path], sync=sync)
    _sync_folders([path for _, path in moves], sync=sync)


def _sync_folders(paths: Sequence[Path], *, sync: bool) -> None:
    # Deepest first, so that a folder is on the disk before the folder that names it.
    for folder in sorted({path.parent for path in paths}, key=lambda folder: len(folder.parts), reverse=True):
        _disk.sync_folder(folder, sync=sync)


def _place_folder(target: Path, journal: Journal, *, sync: bool) -> None:
    staging = _names.staging_of(target)
    final = staging / "final"
    if not journal.overwrite or not target.exists():
        if final.exists():
            _disk.rename_for_good(final, target, sync=sync)
            return
    elif journal.swapping or not _disk.exchange(final, target):
        # No exchange here. The journal says that we are between two renames, so that a later call can finish.
        old = staging / "old"
        if not journal.swapping:
            _disk.remove_tree(old)
            Journal(**{**vars(journal), "swapping": True}).save(staging, sync=sync)
        if not old.exists():
            _disk.rename(target, old)
        try:
            _disk.sync_folder(staging, sync=sync)
            _disk.rename(final, target)
        except StorageError:
            with suppress(StorageError):
                _disk.rename(old, target)
            raise
    _disk.sync_folder(target.parent, sync=sync)


def is_published(target: Path, journal: Journal) -> bool:
    """Tell whether the target is already the one the journal speaks of."""
    path = _names.manifest_of(target, lone=journal.kind in ("file", "extend"))
    try:
        return f"{_core.crc32c(path.read_bytes()):08x}" == journal.manifest
    except OSError:
        return False


def take_back(target: Path, journal: Journal, *, sync: bool) -> None:
    """Undo what was renamed for a target that is not published, so that its run can go on."""
    staging = _names.staging_of(target)
    base = staging if journal.kind == "folder" else target.parent
    for source, path in reversed(journal.moves):
        if (base / path).exists() and not (staging / source).exists():
            _disk.rename(base / path, staging / source)
    _sync_folders([staging / source for source, _ in journal.moves], sync=sync)
    _disk.remove_file(staging / "publish.json")
    _disk.sync_folder(staging, sync=sync)
    _disk.remove_tree(staging / "final")


def is_beyond_return(target: Path, journal: Journal) -> bool:
    """Tell whether the old target is gone already, so that publishing can only be finished."""
    if journal.swapping or journal.kind == "extend" or is_published(target, journal):
        return True
    return journal.kind == "file" and not (_names.staging_of(target) / journal.moves[0][0]).exists()


def recover(target: Path, *, resuming: bool = False) -> bool:
    """Finish what a writer that died was publishing. A run that was still being written is left as it is.

    Whoever opens a target calls this first. Nothing happens while a writer is at work, or where we may not write.

    Args:
        target: The folder or file.
        resuming: Leave alone what can still be taken back, for it is about to be.

    Returns:
        Whether something was finished.
    """
    staging = _names.staging_of(target)
    leftover = staging.with_name(f"{staging.name}.old")
    if not staging.exists() and not leftover.exists():
        return False
    with suppress(TargetBusyError, PermissionError):
        _disk.remove_tree(leftover)
        with publishing(target):
            journal = Journal.load(staging)
            if journal is None:
                return False
            if is_beyond_return(target, journal) or not (resuming or journal.kind == "folder"):
                complete(target, journal)
                return True
    return False


@contextmanager
def publishing(target: Path) -> Iterator[None]:
    """Keep others from publishing the same target inside the block.

    Raises:
        TargetBusyError: Another process is at it.
    """
    staging = _names.staging_of(target)
    if not staging.exists():
        yield
        return
    lock = Lock(staging / "lock", target)
    try:
        yield
    finally:
        lock.release()
