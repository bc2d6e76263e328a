"""Locate: from what the user passes to the files that hold the records, in reading order.

A folder, a file, a glob, `name@16`, or a list of those. No file is read here but manifests and the two that TFDS puts
beside its records. Whatever is left out is said with its reason; a set that lacks a shard is an error.
"""

from __future__ import annotations

import glob
import json
import os
import re
from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from recordkit.errors import StorageError
from recordkit.schema._words import counted, did_you_mean, listed

from . import _names
from ._manifest import Manifest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from ._manifest import Shard

__all__ = ["Located", "Where", "locate"]

Where: TypeAlias = "str | os.PathLike[str] | Sequence[str | os.PathLike[str]]"

_MOST_LISTED: Final = 10
_MAGIC: Final = re.compile(r"[*?[]")
_AT: Final = re.compile(r"(?P<name>.+)@(?P<total>\d+)(?P<ending>\.[^@]*)?")
_SUFFIX: Final = re.compile(r"\.(tf_?records?|tfrec|tfr|records?|recordio)(\.gz|\.gzip|\.zlib|\.z)?$", re.IGNORECASE)
_SHARD: Final = re.compile(r"(?P<name>.*?)[-_.]?(?P<number>\d+)[-_]of[-_](?P<total>\d+)(?P<ending>\.\D.*)?")
_KAGGLE: Final = re.compile(r"(?P<name>.*?)[-_.]?(?P<number>\d+)(-\d+x\d+)?-\d+\.tfrec", re.IGNORECASE)
_PART: Final = re.compile(r"part-(?P<number>(\w-)?\d+).*")
_NUMBERED: Final = re.compile(r"(?P<name>.+)[-_.](?P<number>\d+)")
_EVENTS: Final = re.compile(r"events\.out\.tfevents\.|.*\.tfevents$")
_APPENDED: Final = re.compile(r"(?P<name>.+)-append\d+")
_DIGITS: Final = re.compile(r"(\d+)")
_SPLIT_WORDS: Final = frozenset({"train", "training", "test", "testing", "validation", "valid", "val", "dev", "eval"})

# What stands beside records and holds none, by name; the first that fits is the reason.
_NO_RECORDS: Final = tuple(
    (re.compile(pattern, re.IGNORECASE), reason)
    for pattern, reason in (
        (rf"{_names.SIDE}$", "what recordkit keeps beside the records"),
        (r"\..*\.recordkit$", "the staging of a writer that has not finished"),
        (r"\.ds_store$", "the notes of macOS about a folder"),
        (r".*\.(crc|crc32c?|md5|sha\d+)$|(md5|sha\d+)sums?$|checksums?(\.txt)?$", "checksums"),
        (r"\.", "a hidden file"),
        (r"_", "a marker or hidden file of Spark, Hadoop or Beam"),
        (r".*\.(rki|idx|index)$", "an index"),
        (r".*\.jsonl?$", "JSON"),
        (r".*\.(tmp|temp|part|partial|incomplete|crdownload|aria2|lock)$", "a file that is not finished"),
        (r".*(ckpt|model|weights|variables).*\.data-\d+-of-\d+$|.*\.ckpt$|checkpoint$", "a TensorFlow checkpoint"),
        (r".*\.(txt|md|rst|csv|tsv|xml|html?|ya?ml|toml|pbtxt|log|py|ipynb|sh)$", "text"),
        (r".*\.(parquet|arrow|feather|avro|npy|npz|h5|hdf5|pkl|array_record|riegeli|lmdb|db)$", "another format"),
        (r".*\.(tar|tgz|zip|zst|bz2|xz|7z|tar\.gz)$", "an archive"),
        (r".*\.(jpe?g|png|gif|bmp|webp|mp4|wav|mp3|pdf)$", "a picture, sound or document"),
    )
)
_A_FOLDER = "a folder"
_UNNAMED = "not named like a record file"
_NOT_LISTED = "not in the manifest"


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
    if isinstance(where, str | os.PathLike):
        found = _one(os.fspath(where), load)
    else:
        found = _joined([_one(os.fspath(each), load) for each in where])
    return found if split is None else _only(found, split, where)


def _one(text: str, load: _Manifests) -> Located:
    if not text:
        message = "there is nothing to open: the name is empty"
        raise StorageError(message)
    path = Path(text)
    if path.is_dir():
        return _folder(path, load)
    if path.exists():
        return _with_manifest(_from_files([path]), load)
    if _MAGIC.search(text):
        return _glob(text, load)
    if at := _AT.fullmatch(path.name):
        return _with_manifest(_numbered(path, at), load)
    raise _nothing(path)


def _joined(found: list[Located]) -> Located:
    """Several places as one: in the order given, under one manifest if all have the same."""
    if not found:
        message = "there is nothing to open: the list of files is empty"
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
    """Manifests by their path, each read once: a list may hold ten thousand shards of one folder."""

    def __init__(self) -> None:
        self._known: dict[Path, tuple[Manifest | None, dict[str, tuple[int, Shard]]]] = {}

    def __call__(self, path: Path) -> tuple[Manifest | None, dict[str, tuple[int, Shard]]]:
        """Return the manifest, None if there is none, and each shard of it with its place, by name."""
        if path not in self._known:
            manifest = Manifest.load(path)
            shards = enumerate(manifest.shards) if manifest else ()
            self._known[path] = manifest, {shard.name: (place, shard) for place, shard in shards}
        return self._known[path]


def _folder(path: Path, load: _Manifests) -> Located:
    entries = _entries(path)
    manifest_path = _names.manifest_of(path, lone=False)
    if _names.SIDE in entries:
        manifest, _ = load(manifest_path)
        if manifest is not None:
            return _by_manifest(path, entries, manifest, manifest_path)
    left_out, files = [], []
    for name in sorted(entries):
        reason = _A_FOLDER if entries[name].is_dir() and name != _names.SIDE else _reason(name)
        reason = reason or (None if _is_named_so(name) else _UNNAMED)
        if reason:
            left_out.append((path / name, reason))
        else:
            files.append(path / name)
    if not files:
        raise _no_records(path, left_out)
    tfds = _tfds(path) if "dataset_info.json" in entries or "features.json" in entries else None
    return replace(_from_files(_complete(files)), left_out=tuple(left_out), tfds=tfds)


def _entries(path: Path) -> dict[str, os.DirEntry[str]]:
    try:
        with os.scandir(path) as listing:
            return {entry.name: entry for entry in listing}
    except OSError as error:
        message = f"{path}: the folder cannot be listed: {os.strerror(error.errno or 0)}"
        raise StorageError(message, path=str(path), errno=error.errno) from error


def _by_manifest(path: Path, entries: Mapping[str, os.DirEntry[str]], manifest: Manifest, where: Path) -> Located:
    """A folder with a manifest: exactly its shards, in its order."""
    missing = [shard.name for shard in manifest.shards if shard.name not in entries]
    if missing:
        message = (
            f"{path}: {counted(len(missing), 'shard')} of {len(manifest.shards)} in the manifest "
            f"{'is' if len(missing) == 1 else 'are'} not there: {listed(missing, most=_MOST_LISTED)}\n"
            "  Bring them back, or pass the other files as a list to read what is left."
        )
        raise StorageError(message, path=str(path / missing[0]))
    splits: dict[str, list[Path]] = defaultdict(list)
    files, changed = [], []
    for shard in manifest.shards:
        file = path / shard.name
        files.append(file)
        splits[shard.split].append(file)
        if entries[shard.name].stat().st_size != shard.bytes:
            changed.append(file)
    others = sorted(entries.keys() - {shard.name for shard in manifest.shards})
    return Located(
        files=tuple(files),
        splits={name: tuple(of) for name, of in splits.items()},
        left_out=tuple((path / name, _reason(name) or _other_reason(entries[name])) for name in others),
        folder=path,
        manifest=manifest,
        manifest_path=where,
        changed=tuple(changed),
    )


def _other_reason(entry: os.DirEntry[str]) -> str:
    if entry.is_dir():
        return _A_FOLDER
    return _NOT_LISTED if _is_named_so(entry.name) else _UNNAMED


def _reason(name: str) -> str | None:
    """Return why a file of this name holds no records, None if it may."""
    return next((reason for pattern, reason in _NO_RECORDS if pattern.match(name)), None)


def _is_named_so(name: str) -> bool:
    """Whether a file is named like one of records."""
    return bool(_SUFFIX.search(name) or _SHARD.fullmatch(name) or _PART.fullmatch(name) or _EVENTS.match(name))


def _glob(text: str, load: _Manifests) -> Located:
    matches = [Path(match) for match in glob.glob(text, recursive=True)]  # noqa: PTH207 (Path.glob takes no full path)
    left_out: list[tuple[Path, str]] = []
    files: list[Path] = []
    folders: list[Path] = []
    for path in sorted(matches):
        side = _names.SIDE in path.parts
        reason = _reason(_names.SIDE) if side else _reason(path.name)
        if reason is None and path.is_dir():
            folders.append(path)
        elif reason is None:
            files.append(path)
        elif not (side and path.name != _names.SIDE):  # what lies inside is said once, with its folder
            left_out.append((path, reason))
    if not files and folders:
        found = _joined([_folder(folder, load) for folder in sorted(folders, key=_natural_path)])
        return replace(found, left_out=(*left_out, *found.left_out))
    if not files:
        raise _no_match(text, left_out)
    if "**" not in text:  # which looks into every folder
        left_out += [(folder, _A_FOLDER) for folder in folders]
    return replace(_with_manifest(_from_files(_complete(files)), load), left_out=tuple(left_out))


def _numbered(path: Path, at: re.Match[str]) -> Located:
    """The set that `name@16` means, with whatever suffix it has."""
    name, suffix = _without_suffix(at["name"])
    wanted = name, int(at["total"])
    suffix += at["ending"] or ""
    files = []
    for each in sorted(os.listdir(path.parent)) if path.parent.is_dir() else ():  # noqa: PTH208 (names, not paths)
        shard = _SHARD.fullmatch(each)
        if shard and not _reason(each):
            own, ending = _without_suffix(shard["name"])
            if (own, int(shard["total"])) == wanted and (ending + (shard["ending"] or "")).startswith(suffix):
                files.append(path.with_name(each))
    if not files:
        shown = path.with_name(f"{at['name']}-?????-of-{wanted[1]:05d}{at['ending'] or ''}")
        raise _nothing(path, f" (no file is called {shown.name})")
    return _from_files(_complete(files))


def _without_suffix(name: str) -> tuple[str, str]:
    found = _SUFFIX.search(name)
    return (name[: found.start()], found[0]) if found else (name, "")


def _with_manifest(found: Located, load: _Manifests) -> Located:
    """The same with the manifest that rules these files: that of a lone file, or of the folder that lists them all."""
    if len(found.files) == 1 and (own := _with_own_manifest(found, load)):
        return own
    folders = {file.parent for file in found.files}
    if len(folders) != 1:
        return found
    (folder,) = folders
    where = _names.manifest_of(folder, lone=False)
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
        changed=tuple(file for file in files if file.stat().st_size != known[file.name][1].bytes),
    )


def _with_own_manifest(found: Located, load: _Manifests) -> Located | None:
    """A lone file with its manifest, unless that is of an earlier file of this name."""
    (file,) = found.files
    where = _names.manifest_of(file, lone=True)
    manifest, _ = load(where)
    if manifest is None or [shard.bytes for shard in manifest.shards] != [file.stat().st_size]:
        return None
    return replace(found, manifest=manifest, manifest_path=where)


def _grouped(files: Iterable[Path], name_of: Callable[[Path], str]) -> dict[str, tuple[Path, ...]]:
    groups: dict[str, list[Path]] = defaultdict(list)
    for file in files:
        groups[name_of(file)].append(file)
    return {name: tuple(of) for name, of in groups.items()}


class _Parsed(NamedTuple):
    """What a file's name says: the set it is of, its number there, the total, and whether TFDS names files so."""

    file: Path
    name: str
    number: str
    total: str | None
    tfds: bool


def _parsed(file: Path) -> _Parsed:
    """Return what a file's name says.

    >>> _parsed(Path("mnist-train.tfrecord-00003-of-00010"))[1:]
    ('mnist-train', '00003', '00010', True)
    >>> _parsed(Path("train00-687.tfrec"))[1:], _parsed(Path("cifar10.tfrecord"))[1:]
    (('train', '00', None, False), ('cifar10', '', None, False))
    """
    if shard := _SHARD.fullmatch(file.name):
        name, suffix = _without_suffix(shard["name"])
        return _Parsed(file, name, shard["number"], shard["total"], bool(suffix))
    if _EVENTS.match(file.name):
        return _Parsed(file, "events", file.name, None, False)
    if found := _KAGGLE.fullmatch(file.name):
        return _Parsed(file, found["name"], found["number"], None, False)
    stem, _ = _without_suffix(file.name)
    if found := _PART.fullmatch(stem):
        return _Parsed(file, "part", found["number"], None, False)
    if found := _NUMBERED.fullmatch(stem):
        return _Parsed(file, found["name"], found["number"], None, False)
    return _Parsed(file, stem, "", None, False)


def _from_files(files: Sequence[Path]) -> Located:
    """The files sorted by split and number."""
    parsed = [_parsed(file) for file in files]
    splits = _split_names(parsed)
    ordered = sorted(parsed, key=lambda each: _order(each, splits[each.file.parent, each.name]))
    of = {each.file: splits[each.file.parent, each.name] for each in ordered}
    return Located(tuple(of), _grouped(of, of.__getitem__))


def _order(each: _Parsed, split: str) -> tuple[Any, ...]:
    return _natural(split), _natural_path(each.file.parent), _natural(each.name), _natural(each.number), each.file.name


def _natural_path(path: Path) -> list[tuple[int, str]]:
    return _natural(str(path))


def _natural(text: str) -> list[tuple[int, str]]:
    """Return a key that sorts `a2` before `a10`."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in _DIGITS.split(text)]


def _split_names(parsed: Iterable[_Parsed]) -> dict[tuple[Path, str], str]:
    """Return the split of each set: its own name, or what of it tells the split where no other set has the same."""
    sets = {(each.file.parent, each.name): each.tfds for each in parsed}
    short = {key: _short_name(*key, tfds=tfds) for key, tfds in sets.items()}
    claims: dict[tuple[Path, str], set[str]] = defaultdict(set)
    for (folder, name), split in short.items():
        claims[folder, split].add(_base(name))
    return {
        (folder, name): split if len(claims[folder, split]) == 1 else _base(name)
        for (folder, name), split in short.items()
    }


def _base(name: str) -> str:
    found = _APPENDED.fullmatch(name)
    return found["name"] if found else name


def _short_name(folder: Path, name: str, *, tfds: bool) -> str:
    if name in ("", "part"):
        return Path(os.path.abspath(folder)).name  # noqa: PTH100 (links keep their names)
    base = _base(name)
    last = base.rpartition("-")[2]
    return last if last and (tfds or last.lower() in _SPLIT_WORDS) else base


def _complete(files: list[Path]) -> list[Path]:
    """Return the files if every set among them is whole.

    Raises:
        StorageError: A set lacks a number or has one twice, or one name has two totals.
    """
    sets: dict[tuple[Path, str], list[_Parsed]] = defaultdict(list)
    for each in map(_parsed, files):
        if each.total is not None:
            sets[each.file.parent, each.name].append(each)
    for (folder, name), shards in sets.items():
        _check_totals(folder, name, shards)
        _check_numbers(folder, shards)
    return files


def _check_totals(folder: Path, name: str, shards: list[_Parsed]) -> None:
    totals: dict[str, int] = defaultdict(int)
    for shard in shards:
        totals[shard.total or ""] += 1
    if len(totals) > 1:
        parts = " and ".join(f"{counted(count, 'file')} of {total}" for total, count in sorted(totals.items()))
        message = (
            f"{folder}: {name!r} has shards of {len(totals)} sets: {parts}\n"
            f"  One may be left from an earlier run. Remove it, or pass a glob such as {_pattern(shards[0])!r}."
        )
        raise StorageError(message, path=str(folder))


def _check_numbers(folder: Path, shards: list[_Parsed]) -> None:
    total, by_number = int(shards[0].total or 0), defaultdict(list)
    for shard in shards:
        by_number[int(shard.number)].append(shard.file.name)
    twice = next((names for names in by_number.values() if len(names) > 1), None)
    pattern = folder / _pattern(shards[0])
    if twice:
        names = " and ".join(twice)
        message = f"{pattern}: one shard is there twice: {names}\n  Remove one, or pass the files as a list."
        raise StorageError(message, path=str(folder / twice[0]))
    first = 1 if total in by_number and 0 not in by_number else 0
    beyond = [number for number in by_number if not first <= number < first + total]
    if beyond:
        message = f"{pattern}: shard {max(beyond)} cannot be one of {total}\n  Rename it, or pass the files as a list."
        raise StorageError(message, path=str(folder / by_number[max(beyond)][0]))
    if len(by_number) == total:
        return
    # Only the first are looked for: a name may claim any number of shards.
    lost = _first_missing(range(first, first + total), by_number.keys() | _also_there(folder, shards[0]))
    if lost:
        raise _missing(pattern, lost, total, len(shards), len(shards[0].number))


def _pattern(shard: _Parsed) -> str:
    """Return the glob that stands for a shard's set."""
    found = _SHARD.fullmatch(shard.file.name)
    if found is None:
        return shard.file.name
    name = shard.file.name
    return name[: found.start("number")] + "?" * len(shard.number) + name[found.end("number") :]


def _also_there(folder: Path, shard: _Parsed) -> set[int]:
    """Return the numbers of a set that are in its folder: a glob may ask for some only."""
    there = set()
    for name in os.listdir(folder):  # noqa: PTH208 (names, not paths)
        found = _SHARD.fullmatch(name)
        if found and found["total"] == shard.total and _without_suffix(found["name"])[0] == shard.name:
            there.add(int(found["number"]))
    return there


def _first_missing(wanted: range, there: set[int]) -> list[int]:
    """Return the first numbers that are not there, one more than are listed."""
    missing: list[int] = []
    for number in wanted:
        if number not in there:
            missing.append(number)
            if len(missing) > _MOST_LISTED:
                break
    return missing


def _missing(pattern: Path, lost: list[int], total: int, there: int, width: int) -> StorageError:
    shown = [f"{number:0{width}d}" for number in lost[:_MOST_LISTED]]
    more = total - there - len(shown)
    names = ", ".join(shown) + (f" and {more} more" if more > 0 else "")
    verb = "is" if len(shown) + max(more, 0) == 1 else "are"
    message = (
        f"{pattern}: {there} of {total} shards are there; {names} {verb} missing\n"
        "  Bring them back, or pass the files as a list to read what is left."
    )
    return StorageError(message, path=str(pattern))


def _nothing(path: Path, more: str = "") -> StorageError:
    """The error for a name under which nothing is."""
    parent = path.parent
    if not parent.is_dir():
        there = next(folder for folder in [*parent.parents, Path()] if folder.is_dir())
        message = f"{path}: there is no such file or folder\n  {parent} is not there either; {there} is."
        return StorageError(message, path=str(path))
    hint = did_you_mean(path.name, _shown(parent)) or _what_is_in(parent)
    return StorageError(f"{path}: there is no such file or folder{more}\n  {hint}", path=str(path))


def _no_match(text: str, left_out: list[tuple[Path, str]]) -> StorageError:
    if left_out:
        words = f"the pattern matches no record file, only {_told(left_out)}"
        return StorageError(f"{text}: {words}\n  Pass a file by its own name to open it all the same.", path=text)
    parent = next(folder for folder in Path(text).parents if not _MAGIC.search(str(folder)))
    advice = f"{parent} is no folder." if not parent.is_dir() else _what_is_in(parent)
    return StorageError(f"{text}: the pattern matches nothing\n  {advice}", path=text)


def _what_is_in(folder: Path) -> str:
    names = _shown(folder)
    return f"{folder} has {listed(names)}." if names else f"{folder} is empty."


def _shown(folder: Path) -> list[str]:
    names = os.listdir(folder)  # noqa: PTH208 (names, not paths)
    return sorted((name for name in names if not name.startswith((".", "_"))), key=_natural)


def _told(left_out: list[tuple[Path, str]]) -> str:
    return listed([f"{path.name} ({reason})" for path, reason in left_out], most=5)


def _no_records(path: Path, left_out: list[tuple[Path, str]]) -> StorageError:
    """The error for a folder without record files, with the folder below that has some."""
    if not left_out:
        return StorageError(f"{path}: the folder is empty\n  Pass the folder that holds the records.", path=str(path))
    below = [folder for folder, reason in left_out if reason == _A_FOLDER and _has_records(folder)]
    if below:
        one = f"Open {below[0]}." if len(below) == 1 else f"Open one of {listed(map(str, below))}."
        message = f"{path}: no record file is in this folder, but in {counted(len(below), 'folder')} below it\n  {one}"
    else:
        message = (
            f"{path}: no record file is in this folder, only {_told(left_out)}\n"
            "  Pass a file, a list or a glob to open files of other names."
        )
    return StorageError(message, path=str(path))


def _has_records(folder: Path) -> bool:
    try:
        with os.scandir(folder) as entries:
            return any(_is_named_so(entry.name) and not _reason(entry.name) and entry.is_file() for entry in entries)
    except OSError:
        return False


def _tfds(folder: Path) -> Mapping[str, Any] | None:
    """Return what the files of TFDS say, as far as they can be read."""
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
    """Return a split's name and the records of each of its shards, which TFDS writes as strings."""
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
