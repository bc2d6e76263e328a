"""Locate: from what the user passes to the files that hold the records, in reading order.

A folder, a file, a glob, `name@16`, or a list of those. Only manifests and TFDS's two JSON files are read here.
Everything left out is reported with a reason; a set that lacks a shard is an error.
"""

from __future__ import annotations

import errno
import glob
import json
import os
import re
import stat
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from recordkit import filesystems
from recordkit.errors import StorageError
from recordkit.filesystems import given_path, is_folder, kind_of, mode_of, unreadable
from recordkit.storage.format import SIDE, Manifest, inside, manifest_of, staging_of, targets_of
from recordkit.storage.publish import pending
from recordkit.storage.staging import lone_manifest
from recordkit.wording import counted, did_you_mean, listed

from ._shard_names import (
    MOST_LISTED,
    SHARD,
    complete,
    is_named_so,
    natural,
    natural_path,
    parse_name,
    reading_order,
    reason_left_out,
    split_names,
    without_suffix,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from recordkit.storage.format import Shard

__all__ = ["Located", "Where", "locate"]

Where: TypeAlias = "str | os.PathLike[str] | Sequence[str | os.PathLike[str]]"

_MAGIC: Final = re.compile(r"[*?[]")
_DEEP: Final = re.compile(r"(?:^|(?<=/))\*\*(?:/+|$)")
_AT: Final = re.compile(r"(?P<name>.+)@(?P<total>\d+)(?P<ending>\.[^@]*)?")

_A_FOLDER = "a folder"
_UNNAMED = "not named like a record file"
_NOT_LISTED = "not in the manifest"
_UNFINISHED = "of a run that was interrupted while it was being published"


@dataclass(frozen=True)
class Located:
    """The files that hold the records, and what is known of them without reading any.

    Attributes:
        files: In reading order.
        splits: The files of each split; together they are `files`.
        left_out: Files and folders that hold no records or were not asked for, each with the reason.
        folder: The dataset, where a manifest of a folder rules these files.
        manifest: What is known of the files; of a shard alone, the manifest of its whole dataset.
        manifest_path: Where that stands.
        changed: Files whose size is not the one in the manifest.
        tfds: What TFDS says of its folder: `name`, `version`, `splits` (name → records of each shard), `features`.
    """

    files: tuple[Path, ...]
    splits: Mapping[str, tuple[Path, ...]]
    left_out: tuple[tuple[Path, str], ...] = ()
    folder: Path | None = None
    manifest: Manifest | None = None
    manifest_path: Path | None = None
    changed: tuple[Path, ...] = ()
    tfds: Mapping[str, Any] | None = None


def locate(where: Where, *, split: str | None = None) -> Located:
    """Return the files that `where` means.

    Args:
        where: A folder, a file, a glob, `name@16` for a set of 16 shards, or a list of those.
        split: Only the files of this one.

    Raises:
        StorageError: Nothing is there, a set lacks a shard, one name has two totals, or there is no such split.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> for name in ("train-00001-of-00002.tfrecord", "train-00000-of-00002.tfrecord", "test.tfrecord", "_SUCCESS"):
    ...     (folder / name).touch()
    >>> found = locate(folder)
    >>> {split: [file.name for file in files] for split, files in found.splits.items()}
    {'test': ['test.tfrecord'], 'train': ['train-00000-of-00002.tfrecord', 'train-00001-of-00002.tfrecord']}
    >>> [(file.name, reason) for file, reason in found.left_out]
    [('_SUCCESS', 'a marker or hidden file of Spark, Hadoop or Beam')]
    """
    load = _Manifests()
    if not isinstance(where, str | os.PathLike):
        found = _joined([_one(each, load) for each in where])
    else:
        found = _one(where, load)
    return found if split is None else _only(found, split, where)


def _one(given: str | os.PathLike[str], load: _Manifests) -> Located:
    text = given_path(given, pattern=_MAGIC.search(os.fspath(given)) is not None)
    path = Path(text)
    for target in targets_of(text):
        pending(target)
    mode = mode_of(path)
    if stat.S_ISDIR(mode):
        return _folder(path, load)
    if mode:
        return _with_manifest(_from_files([path]), load)
    if _MAGIC.search(text):
        return _glob(text, load)
    if at := _AT.fullmatch(path.name):
        return _with_manifest(_numbered(path, at), load)
    raise _nothing(path)


def _joined(found: list[Located]) -> Located:
    """Join several places in the order given, with a manifest if all have the same one."""
    if not found:
        message = "nothing to open: the list of files is empty"
        raise StorageError(message)
    splits: dict[str, list[Path]] = defaultdict(list)
    for each in found:
        for name, files in each.splits.items():
            splits[name] += files
    one = len({each.manifest_path for each in found}) == 1
    return Located(
        files=tuple(file for each in found for file in each.files),
        splits={name: tuple(files) for name, files in splits.items()},
        left_out=tuple(pair for each in found for pair in each.left_out),
        folder=found[0].folder if one else None,
        manifest=found[0].manifest if one else None,
        manifest_path=found[0].manifest_path if one else None,
        changed=tuple(file for each in found for file in each.changed),
        tfds=found[0].tfds if len(found) == 1 else None,
    )


def _only(found: Located, split: str, where: Where) -> Located:
    files = found.splits.get(split)
    if files is None:
        place = os.fspath(where) if isinstance(where, str | os.PathLike) else "the files"
        advice = f"{did_you_mean(split, found.splits)} There are: {listed(found.splits)}.".strip()
        message = f"{place}: there is no split {split!r}\n  {advice}"
        raise StorageError(message, path=place)
    changed = set(found.changed).intersection(files)
    return replace(found, files=files, splits={split: files}, changed=tuple(f for f in files if f in changed))


class _Manifests:
    """Manifests by path, each read once: a list may contain ten thousand shards of one folder."""

    def __init__(self) -> None:
        self._known: dict[Path, tuple[Manifest | None, dict[str, tuple[int, Shard]]]] = {}

    def __call__(self, path: Path) -> tuple[Manifest | None, dict[str, tuple[int, Shard]]]:
        """Return the manifest, or None, and its shards with their positions, by name."""
        if path not in self._known:
            manifest = Manifest.load(path)
            shards = enumerate(manifest.shards) if manifest else ()
            self._known[path] = manifest, {shard.name: (place, shard) for place, shard in shards}
        return self._known[path]


def _folder(path: Path, load: _Manifests) -> Located:
    entries = _entries(path)
    manifest_path = manifest_of(path, lone=False)
    if SIDE in entries:
        manifest, _ = load(manifest_path)
        if manifest is not None:
            return _by_manifest(path, entries, manifest, manifest_path)
    left_out, files = [], []
    for name in sorted(entries):
        reason = _A_FOLDER if _is_folder(entries[name]) and name != SIDE else reason_left_out(name)
        reason = reason or (_kind_of(entries[name]) if is_named_so(name) else _UNNAMED)
        if reason:
            left_out.append((path / name, reason))
        else:
            files.append(path / name)
    if not files:
        raise _no_records(path, left_out)
    for file in files:
        if staging_of(file).name in entries:
            pending(*targets_of(file)[:1])
    tfds = _tfds(path) if "dataset_info.json" in entries or "features.json" in entries else None
    return replace(_from_files(complete(files)), left_out=tuple(left_out), tfds=tfds)


def _kind_of(entry: os.DirEntry[str] | Path) -> str | None:
    """Return what an entry is if it is neither a file nor a folder."""
    try:
        return None if entry.is_file() else kind_of(entry.stat().st_mode)
    except OSError:
        return None  # a broken link: reading reports it, because records are missing


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False  # a circular link


def _entries(path: Path) -> dict[str, os.DirEntry[str]]:
    try:
        with os.scandir(path) as listing:
            return {entry.name: entry for entry in listing}
    except OSError as error:
        raise unreadable(path, error) from error


def _by_manifest(path: Path, entries: Mapping[str, os.DirEntry[str]], manifest: Manifest, where: Path) -> Located:
    """Locate the files of a folder with a manifest: exactly its shards, in its order."""
    missing = [shard.name for shard in manifest.shards if shard.name not in entries]
    if missing:
        message = (
            f"{path}: {counted(len(missing), 'shard')} of {len(manifest.shards)} in the manifest "
            f"{'is' if len(missing) == 1 else 'are'} missing: {listed(missing, most=MOST_LISTED)}\n"
            "  Restore them, or pass the other files as a list to read those."
        )
        raise StorageError(message, path=str(path / missing[0]))
    splits: dict[str, list[Path]] = defaultdict(list)
    files, changed = [], []
    for shard in manifest.shards:
        file = inside(path, shard.name, where)
        files.append(file)
        splits[shard.split].append(file)
        if _size(file) != shard.bytes:
            changed.append(file)
    others = sorted(entries.keys() - {shard.name for shard in manifest.shards})
    return Located(
        files=tuple(files),
        splits={name: tuple(of) for name, of in splits.items()},
        left_out=tuple((path / name, reason_left_out(name) or _other_reason(entries[name])) for name in others),
        folder=path,
        manifest=manifest,
        manifest_path=where,
        changed=tuple(changed),
    )


def _size(path: Path) -> int | None:
    """Return the size of a file; None if it cannot be read, such as a broken link: reading reports that."""
    try:
        return path.stat().st_size
    except OSError:
        return None


def _other_reason(entry: os.DirEntry[str]) -> str:
    if _is_folder(entry):
        return _A_FOLDER
    return _NOT_LISTED if is_named_so(entry.name) else _UNNAMED


def _glob(text: str, load: _Manifests) -> Located:
    matches = [Path(match) for match in _matches(text)]
    left_out: list[tuple[Path, str]] = []
    files: list[Path] = []
    folders: list[Path] = []
    for path in sorted(matches):
        side = SIDE in path.parts
        reason = reason_left_out(SIDE) if side else reason_left_out(path.name) or _kind_of(path)
        if reason is None and path.is_dir():
            folders.append(path)
        elif reason is None:
            files.append(path)
        elif not (side and path.name != SIDE):  # its content is reported once, with the folder
            left_out.append((path, reason))
    if not files and folders:
        found = _joined([_folder(folder, load) for folder in sorted(folders, key=natural_path)])
        return replace(found, left_out=(*left_out, *found.left_out))
    if not files:
        raise _no_match(text, left_out)
    if "**" not in text:  # which goes into every folder
        left_out += [(folder, _A_FOLDER) for folder in folders]
    files, unfinished = _finished(files)
    left_out += unfinished
    return replace(_with_manifest(_from_files(complete(files)), load), left_out=tuple(left_out))


def _matches(pattern: str) -> list[str]:
    """Return what matches a pattern. With `**`, each folder is listed once, even if several links lead to it."""
    head, *rest = _DEEP.split(pattern, maxsplit=1)
    tops = glob.glob(head) if head else [""]  # noqa: PTH207 (Path.glob takes no full path)
    if not rest:
        return tops
    folders = [folder for top in tops for folder in _folders(top)]
    below = [os.path.join(glob.escape(folder), rest[0] or "*") for folder in folders]  # noqa: PTH118 (may be empty)
    return list(dict.fromkeys(match for each in below for match in _matches(each)))


def _folders(top: str) -> Iterator[str]:
    """Yield a folder and those below it; folders that links lead to come last."""
    seen: set[str] = set()
    real, linked = [top], list[str]()
    while real or linked:
        folder = real.pop() if real else linked.pop()
        place = os.path.realpath(folder)
        if place in seen:
            continue
        seen.add(place)
        yield folder
        with suppress(OSError), os.scandir(folder or ".") as listing:
            for entry in listing:
                if not entry.name.startswith(".") and _is_folder(entry):
                    (linked if entry.is_symlink() else real).append(entry.path if folder else entry.name)


def _finished(files: list[Path]) -> tuple[list[Path], list[tuple[Path, str]]]:
    """Return files without those that an interrupted append has put into a folder whose manifest lacks them."""
    left_out = []
    for folder in {file.parent for file in files}:
        hidden = {name for name in os.listdir(folder) if name.startswith(".")}  # noqa: PTH208 (names, not paths)
        for file in files if hidden else ():
            if file.parent == folder and staging_of(file).name in hidden:
                pending(*targets_of(file)[:1])
        for target in targets_of(folder):
            journal = pending(target)
            if journal is not None and journal.kind == "append" and not journal.is_published(target):
                new = journal.shards()
                left_out += [(file, _UNFINISHED) for file in files if file.parent == folder and file.name in new]
    gone = {file for file, _ in left_out}
    return [file for file in files if file not in gone], left_out


def _numbered(path: Path, at: re.Match[str]) -> Located:
    """Locate the set that `name@16` means, with any suffix."""
    name, suffix = without_suffix(at["name"])
    wanted = name, int(at["total"])
    suffix += at["ending"] or ""
    files = []
    for each in (child.name for child in filesystems.children(path.parent)) if is_folder(path.parent) else ():
        shard = SHARD.fullmatch(each)
        if shard and not reason_left_out(each):
            own, ending = without_suffix(shard["name"])
            if (own, int(shard["total"])) == wanted and (ending + (shard["ending"] or "")).startswith(suffix):
                files.append(path.with_name(each))
    if not files:
        shown = path.with_name(f"{at['name']}-?????-of-{wanted[1]:05d}{at['ending'] or ''}")
        raise _nothing(path, f" (no file is called {shown.name})")
    files, unfinished = _finished(files)
    return replace(_from_files(complete(files)), left_out=tuple(unfinished))


def _with_manifest(found: Located, load: _Manifests) -> Located:
    """Add the manifest that covers these files: that of a lone file, or of the folder that lists them all."""
    if len(found.files) == 1 and (own := _with_own_manifest(found, load)):
        return own
    folders = {file.parent for file in found.files}
    if len(folders) != 1:
        return found
    (folder,) = folders
    where = manifest_of(folder, lone=False)
    manifest, known = load(where)
    if manifest is None or not all(file.name in known for file in found.files):
        return found
    files = sorted(found.files, key=lambda file: known[file.name][0])
    return replace(
        found,
        files=tuple(files),
        splits=_grouped(files, lambda file: known[file.name][1].split),
        folder=folder,
        manifest=manifest,
        manifest_path=where,
        changed=tuple(file for file in files if _size(file) != known[file.name][1].bytes),
    )


def _with_own_manifest(found: Located, load: _Manifests) -> Located | None:
    """Add the manifest of a lone file, unless it belongs to an earlier file with this name."""
    (file,) = found.files
    where = lone_manifest(file)
    manifest, _ = load(where)
    if manifest is None or [shard.bytes for shard in manifest.shards] != [_size(file)]:
        return None
    return replace(found, manifest=manifest, manifest_path=where)


def _grouped(files: Iterable[Path], name_of: Callable[[Path], str]) -> dict[str, tuple[Path, ...]]:
    groups: dict[str, list[Path]] = defaultdict(list)
    for file in files:
        groups[name_of(file)].append(file)
    return {name: tuple(of) for name, of in groups.items()}


def _from_files(files: Sequence[Path]) -> Located:
    """Sort files by split and number."""
    parsed = [parse_name(file) for file in files]
    splits = split_names(parsed)
    ordered = sorted(parsed, key=lambda each: reading_order(each, splits[each.file.parent, each.name]))
    of = {each.file: splits[each.file.parent, each.name] for each in ordered}
    return Located(tuple(of), _grouped(of, of.__getitem__))


def _nothing(path: Path, more: str = "") -> StorageError:
    """Return the error for a path at which there is nothing."""
    parent = path.parent
    if path.is_symlink():
        message = f"{path}: broken link to {path.readlink()}\n  Restore that file, or pass its new path."
        return StorageError(message, path=str(path), errno=errno.ENOENT)
    if not is_folder(parent):
        there = next(folder for folder in [*parent.parents, Path()] if is_folder(folder))
        words = "is not a folder" if os.path.lexists(parent) else "does not exist either"
        message = f"{path}: no such file or folder\n  {parent} {words}; {there} exists."
        return StorageError(message, path=str(path), errno=errno.ENOENT)
    hint = did_you_mean(path.name, _shown(parent)) or _what_is_in(parent)
    message = f"{path}: no such file or folder{more}\n  {hint}"
    return StorageError(message, path=str(path), errno=errno.ENOENT)


def _no_match(text: str, left_out: list[tuple[Path, str]]) -> StorageError:
    if left_out:
        words = f"the pattern matches no record file, only {_told(left_out)}"
        message = f"{text}: {words}\n  Pass a file by its own name to open it anyway."
        return StorageError(message, path=text, errno=errno.ENOENT)
    parent = next(folder for folder in Path(text).parents if not _MAGIC.search(str(folder)))
    advice = _what_is_in(parent) if is_folder(parent) else f"{parent} is not a folder."
    return StorageError(f"{text}: the pattern matches nothing\n  {advice}", path=text, errno=errno.ENOENT)


def _what_is_in(folder: Path) -> str:
    names = _shown(folder)
    return f"{folder} contains {listed(names)}." if names else f"{folder} is empty."


def _shown(folder: Path) -> list[str]:
    try:
        names = os.listdir(folder)  # noqa: PTH208 (names, not paths)
    except OSError:
        return []
    return sorted((name for name in names if not name.startswith((".", "_"))), key=natural)


def _told(left_out: list[tuple[Path, str]]) -> str:
    return listed([f"{path.name} ({reason})" for path, reason in left_out], most=5)


def _no_records(path: Path, left_out: list[tuple[Path, str]]) -> StorageError:
    """Return the error for a folder without record files; it names folders below that have some."""
    if not left_out:
        return StorageError(f"{path}: the folder is empty\n  Pass the folder that holds the records.", path=str(path))
    below = [folder for folder, reason in left_out if reason == _A_FOLDER and _has_records(folder)]
    if below:
        one = f"Open {below[0]}." if len(below) == 1 else f"Open one of {listed(map(str, below))}."
        has = "has" if len(below) == 1 else "have"
        message = (
            f"{path}: this folder has no record files, but {counted(len(below), 'folder')} below it {has}\n  {one}"
        )
    else:
        message = (
            f"{path}: this folder has no record files, only {_told(left_out)}\n"
            "  To open files with other names, pass a file, a list or a glob."
        )
    return StorageError(message, path=str(path))


def _has_records(folder: Path) -> bool:
    try:
        with os.scandir(folder) as entries:
            return any(
                is_named_so(entry.name) and not reason_left_out(entry.name) and entry.is_file() for entry in entries
            )
    except OSError:
        return False


def _tfds(folder: Path) -> Mapping[str, Any] | None:
    """Return what TFDS's JSON files say, as far as they can be read."""
    info, features = _json(folder / "dataset_info.json"), _json(folder / "features.json")
    if not isinstance(info, dict):
        info = {}
    splits = info.get("splits")
    return {
        "name": info.get("name"),
        "version": info.get("version"),
        "splits": dict(filter(None, map(_tfds_split, splits if isinstance(splits, list) else []))),
        "features": features,
    }


def _tfds_split(value: object) -> tuple[str, tuple[int, ...]] | None:
    """Return a split's name and the record count of each of its shards, which TFDS writes as strings."""
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        return None
    try:
        return value["name"], tuple(int(length) for length in value.get("shardLengths", ()))
    except (TypeError, ValueError):
        return value["name"], ()


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
