"""Publishing by renames: from finished shards in staging to a target under its final name.

A new folder is assembled in staging and renamed once; overwriting exchanges the two. A lone file and appended shards
are renamed into place one by one, and the file that makes them count comes first or last. A journal lists the renames
before they are done, so that after a crash the next writer can finish them or take them back.
"""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from recordkit import _core, filesystems, log
from recordkit.errors import StorageError, TargetBusyError
from recordkit.filesystems import fitting
from recordkit.storage.format import manifest_of, staging_of, targets_of
from recordkit.storage.overlays import forget
from recordkit.storage.staging import (
    MANIFEST,
    NAME,
    WAIT,
    ContentChecksum,
    Journal,
    Lock,
    changing_target,
    check_folder,
    folder_facts,
    is_free,
    put_away,
    sampled_facts,
    up_to,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from recordkit.storage.format import Manifest, Shard
    from recordkit.storage.staging import Kind


def moves_of(shard: Shard, source: Path, name: str, target_folder: Path, side: Path) -> list[tuple[Path, Path]]:
    """Return where the files of one shard go when it gets its final name."""
    stem = shard.name.split(".")[0]
    moves = [
        (source / shard.name, target_folder / name),
        (source / f"{stem}.rki", side / fitting("", name, ".rki")),
    ]
    if shard.skipped:
        moves.append((source / f"{stem}.jsonl", side / "quarantine" / fitting("", name, ".jsonl")))
    return moves


def publish(
    target: Path,
    kind: Kind,
    moves: Sequence[tuple[Path, Path]],
    manifest: Manifest | None,
    *,
    overwrite: bool,
    sync: bool,
    old: ContentChecksum | None = None,
    new: ContentChecksum | None = None,
    mode: int | None = None,
) -> None:
    """Give shards their final names.

    Args:
        target: The folder or file.
        kind: A new folder, a lone file, a folder that gets more shards, or a file that is extended.
        moves: The files to rename; for a new folder into `final/` in the staging folder. The manifest is added.
        manifest: The new manifest; None for a file without one.
        overwrite: Whether an old target may be replaced.
        sync: Whether everything is synced to disk when this returns.
        old: The facts of a file that is extended. For other kinds they are determined here.
        new: The facts of a lone file afterwards.
        mode: The permissions of the manifest; None for the default.
    """
    staging = staging_of(target)
    base = staging if kind == "folder" else target.parent
    ordered = list(moves)
    for _, path in ordered:
        filesystems.refuse_links(*up_to(path.parent, {staging, target.parent}))
    crc = ""
    if manifest is not None:
        data, staged = manifest.to_json(), staging / MANIFEST
        crc = f"{_core.crc32c(data):08x}"
        filesystems.remove_file(staged)
        filesystems.write_new(staged, data, sync=sync)
        filesystems.set_mode(staged, mode)
        lone = kind in ("file", "extend")
        ordered.append((staged, manifest_of(staging / "final" if kind == "folder" else target, lone=lone)))
    for folder in sorted({path.parent for _, path in ordered}):
        filesystems.make_folder(folder, sync=sync, mode=mode if kind == "folder" else None)
    if old is None:
        old = _facts_before(target, kind)
    named = tuple((str(source.relative_to(staging)), str(path.relative_to(base))) for source, path in ordered)
    Journal(kind, named, crc, overwrite, old, new).save(target, sync=sync)
    # Load it as a writer after a crash would: this finds anything that others have put in the way.
    try:
        journal = Journal.load(target)
    except StorageError:
        filesystems.remove_file(staging / NAME)
        raise
    assert journal is not None
    try:
        _complete(target, journal, sync=sync)
    except BaseException:
        with suppress(StorageError):  # the caller should see the original error
            saved = Journal.load(target)
            if kind == "extend" and (staging / journal.moves[0][0]).exists():
                assert old is not None
                filesystems.cut_file(target, old.size, sync=sync)
                filesystems.remove_file(staging / NAME)
            elif saved is not None and not _is_beyond_return(target, saved):
                _take_back(target, saved, sync=sync)
        raise


def _facts_before(target: Path, kind: Kind) -> ContentChecksum | None:
    if kind != "file":
        return folder_facts(target)
    return sampled_facts(target) if target.is_file() else None


def _complete(target: Path, journal: Journal, *, sync: bool) -> None:
    if journal.is_published(target):
        # The process that did it may have died before syncing.
        places = [target] if journal.kind == "folder" else [path for _, path in journal.paths(target)]
        _sync_folders(places, sync=sync)
    else:
        _do_moves(target, journal, sync=sync)
        if journal.kind == "folder":
            _place_folder(target, journal, sync=sync)
    if journal.kind == "file":
        forget(target)
    try:
        put_away(staging_of(target), sync=sync)
    except StorageError as error:
        log.warning("%s: published, but its staging folder could not be removed: %s", target, error)


def _do_moves(target: Path, journal: Journal, *, sync: bool) -> None:
    moves = journal.paths(target)
    for number, (source, path) in enumerate(moves):
        if number == len(moves) - 1 and journal.kind != "folder":
            # The manifest comes last: everything it lists is in place before.
            _sync_folders([path for _, path in moves[:-1]], sync=sync)
        if not source.exists():
            continue
        if number == 0 and journal.kind == "extend":
            assert journal.old is not None
            filesystems.extend_file(path, journal.old.size, source, sync=sync)
            filesystems.remove_file(source)
        elif number == 0 and journal.kind == "file" and not journal.overwrite:
            filesystems.rename_new(source, path)
        else:
            filesystems.rename(source, path)
        if number == 0 and journal.kind == "file":
            _sync_folders([path], sync=sync)
    _sync_folders([path for _, path in moves], sync=sync)


def _sync_folders(paths: Sequence[Path], *, sync: bool) -> None:
    # Deepest first, so that a folder is on disk before the folder that contains its name.
    for folder in sorted({path.parent for path in paths}, key=lambda folder: len(folder.parts), reverse=True):
        filesystems.sync_folder(folder, sync=sync)


def _place_folder(target: Path, journal: Journal, *, sync: bool) -> None:
    staging = staging_of(target)
    final = staging / "final"
    if not journal.overwrite or not target.exists():
        if final.exists():
            filesystems.rename_for_good(final, target, sync=sync)
            return
    elif journal.swapping or not filesystems.exchange(final, target):
        # This file system cannot exchange. The journal records the two renames, so that a later call can finish them.
        old = staging / "old"
        if not journal.swapping:
            filesystems.remove_tree(old)
            journal.swap().save(target, sync=sync)
        if not old.exists():
            filesystems.rename(target, old)
        try:
            filesystems.sync_folder(staging, sync=sync)
            filesystems.rename(final, target)
        except StorageError:
            with suppress(StorageError):
                filesystems.rename(old, target)
            raise
    filesystems.sync_folder(target.parent, sync=sync)


def take_back(target: Path, journal: Journal, *, sync: bool) -> None:
    """Undo the renames for a target that is not published, so that its run can be resumed.

    Raises:
        StorageError: The target has changed since the journal was written.
    """
    if journal.state(target) == "other":
        raise journal.stale(target)
    _take_back(target, journal, sync=sync)


def _take_back(target: Path, journal: Journal, *, sync: bool) -> None:
    staging = staging_of(target)
    moves = journal.paths(target)
    for source, path in reversed(moves):
        if path.exists() and not source.exists():
            filesystems.rename(path, source)
    _sync_folders([source for source, _ in moves], sync=sync)
    filesystems.remove_file(staging / NAME)
    filesystems.sync_folder(staging, sync=sync)
    filesystems.remove_tree(staging / "final")


def _is_beyond_return(target: Path, journal: Journal) -> bool:
    """Tell whether the old target is already gone, so that publishing cannot be undone."""
    if journal.swapping or journal.kind == "extend" or journal.is_published(target):
        return True
    return journal.kind == "file" and not journal.paths(target)[0][0].exists()


def finish(target: Path, *, resuming: bool = False) -> bool:
    """Finish publishing for a writer that died. A run that was still writing is left as it is.

    Every writer calls this first. Nothing happens while another writer is active.

    Args:
        target: The folder or file.
        resuming: Leave what can still be undone: the caller is about to do that.

    Returns:
        Whether something was finished.

    Raises:
        StorageError: The journal cannot be followed.
    """
    return _finish(target, lambda journal: not (resuming or journal.kind == "folder"))


def _finish(target: Path, wanted: Callable[[Journal], bool]) -> bool:
    staging = staging_of(target)
    with suppress(TargetBusyError):
        leftover = staging.with_name(f"{staging.name}.old")
        if os.path.lexists(leftover):
            filesystems.remove_tree(leftover)
        if not os.path.lexists(staging / NAME):
            return False
        with publishing(target, wait=0):
            journal = Journal.load(target)
            if journal is None:
                return False
            if journal.state(target) == "other":
                raise journal.stale(target)
            if _is_beyond_return(target, journal) or wanted(journal):
                _complete(target, journal, sync=True)
                return True
    return False


def recover(path: str | os.PathLike[str]) -> bool:
    """Finish publishing for a run that was interrupted, and return whether there was anything to finish.

    Readers never do this, because they change nothing. The next writer does, so you rarely need to call it: when `open`
    says so, or before other programs look at the files. A run that was interrupted while it was still writing is left
    as it is, for `resume=True` or `discard`.

    Raises:
        StorageError: What the run left is damaged, belongs to another user, or belongs to an earlier state of the
            dataset. Nothing was changed.

    >>> import recordkit as rk, tempfile
    >>> path = f"{tempfile.mkdtemp()}/train"
    >>> _ = rk.write(path, [{"id": 1}])
    >>> rk.recover(path)
    False
    """
    finished = [_finish(target, lambda _: True) for target in targets_of(path)]
    return any(finished)


@contextmanager
def publishing(target: Path, *, wait: float = WAIT) -> Iterator[None]:
    """Keep others from publishing or changing the same target inside the block.

    Raises:
        TargetBusyError: Another process is doing that, and did not finish in time.
        StorageError: The staging folder was not made by recordkit.
    """
    staging = staging_of(target)
    with changing_target(target, wait=wait):
        if not os.path.lexists(staging):
            yield
            return
        check_folder(staging)
        lock = Lock(staging / "lock", target, wait=wait, root=target.parent)
        try:
            yield
        finally:
            lock.release()


# --- Readers


def pending(target: Path) -> Journal | None:
    """Return the journal of a run that is publishing a target, or was interrupted. This changes nothing.

    Raises:
        StorageError: The target is in neither the old state nor the new one until the run is finished.
    """
    journal = Journal.load(target, reading=True)
    if journal is None:
        return None
    is_torn = is_gone = is_free(target)
    if not is_gone and journal.kind == "extend" and journal.paths(target)[0][0].exists():
        assert journal.old is not None
        is_torn = target.stat().st_size != journal.old.size
    state = journal.state(target) if is_torn else None
    advice = f"recordkit.recover({str(target)!r}) completes it, and so does the next writer."
    if state == "between" or (state == "old" and is_gone):
        message = f"{target}: publishing it was interrupted, or is in progress\n  {advice}"
        raise StorageError(message, path=str(target))
    log.warning("%s: publishing it was interrupted, or is in progress; %s", target, advice)
    return journal
