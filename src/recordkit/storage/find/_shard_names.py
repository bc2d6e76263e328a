"""Shard names: whether a file holds records, which set it belongs to, and its number, all from its name.

Only names are read here. The patterns below cover the naming schemes of other tools.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from recordkit import filesystems
from recordkit.errors import StorageError
from recordkit.storage.format import SIDE
from recordkit.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterable

MOST_LISTED: Final = 10
_SUFFIX: Final = re.compile(r"\.(tf_?records?|tfrec|tfr|records?|recordio)(\.gz|\.gzip|\.zlib|\.z)?$", re.IGNORECASE)
SHARD: Final = re.compile(r"(?P<name>.*?)[-_.]?(?P<number>\d+)[-_]of[-_](?P<total>\d+)(?P<ending>\.\D.*)?")
_KAGGLE: Final = re.compile(r"(?P<name>.*?)[-_.]?(?P<number>\d+)(-\d+x\d+)?-\d+\.tfrec", re.IGNORECASE)
_PART: Final = re.compile(r"part-(?P<number>(\w-)?\d+).*")
_NUMBERED: Final = re.compile(r"(?P<name>.+)[-_.](?P<number>\d+)")
_EVENTS: Final = re.compile(r"events\.out\.tfevents\.|.*\.tfevents$")
_APPENDED: Final = re.compile(r"(?P<name>.+)-append\d+")
_DIGITS: Final = re.compile(r"(\d+)")
_SPLIT_WORDS: Final = frozenset({"train", "training", "test", "testing", "validation", "valid", "val", "dev", "eval"})
# Files that are often next to records but hold none, by name; the first match gives the reason.
_NO_RECORDS: Final = tuple(
    (re.compile(pattern, re.IGNORECASE), reason)
    for pattern, reason in (
        (rf"{SIDE}$", "what recordkit keeps beside the records"),
        (r"\..*\.recordkit$", "the staging of a writer that has not finished"),
        (r"\.ds_store$", "the notes of macOS about a folder"),
        (r".*\.(crc|crc32c?|md5|sha\d+)$|(md5|sha\d+)sums?$|checksums?(\.txt)?$", "checksums"),
        (r"\.", "a hidden file"),
        (r".*\.repaired$", "what repair has made of a damaged file"),
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


def reason_left_out(name: str) -> str | None:
    """Return why a file with this name holds no records; None if it may hold some."""
    return next((reason for pattern, reason in _NO_RECORDS if pattern.match(name)), None)


def is_named_so(name: str) -> bool:
    """Tell whether a file is named like a record file."""
    return bool(_SUFFIX.search(name) or SHARD.fullmatch(name) or _PART.fullmatch(name) or _EVENTS.match(name))


def without_suffix(name: str) -> tuple[str, str]:
    found = _SUFFIX.search(name)
    return (name[: found.start()], found[0]) if found else (name, "")


class _Parsed(NamedTuple):
    """The parts of a file's name: its set, its number, the total, and whether this is TFDS's naming scheme."""

    file: Path
    name: str
    number: str
    total: str | None
    tfds: bool


def parse_name(file: Path) -> _Parsed:
    """Parse a file's name.

    >>> parse_name(Path("mnist-train.tfrecord-00003-of-00010"))[1:]
    ('mnist-train', '00003', '00010', True)
    >>> parse_name(Path("train00-687.tfrec"))[1:], parse_name(Path("cifar10.tfrecord"))[1:]
    (('train', '00', None, False), ('cifar10', '', None, False))
    """
    if shard := SHARD.fullmatch(file.name):
        name, suffix = without_suffix(shard["name"])
        return _Parsed(file, name, shard["number"], shard["total"], bool(suffix))
    if _EVENTS.match(file.name):
        return _Parsed(file, "events", file.name, None, False)
    if found := _KAGGLE.fullmatch(file.name):
        return _Parsed(file, found["name"], found["number"], None, False)
    stem, _ = without_suffix(file.name)
    if found := _PART.fullmatch(stem):
        return _Parsed(file, "part", found["number"], None, False)
    if found := _NUMBERED.fullmatch(stem):
        return _Parsed(file, found["name"], found["number"], None, False)
    return _Parsed(file, stem, "", None, False)


def reading_order(each: _Parsed, split: str) -> tuple[Any, ...]:
    return natural(split), natural_path(each.file.parent), natural(each.name), natural(each.number), each.file.name


def natural_path(path: Path) -> list[tuple[int, str]]:
    return natural(str(path))


def natural(text: str) -> list[tuple[int, str]]:
    """Return a key that sorts `a2` before `a10`."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in _DIGITS.split(text)]


def split_names(parsed: Iterable[_Parsed]) -> dict[tuple[Path, str], str]:
    """Return the split of each set: the part of its name that says the split if that is unique, else its whole name."""
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


def complete(files: list[Path]) -> list[Path]:
    """Return the files if every set among them is complete.

    Raises:
        StorageError: A set lacks a number or has one twice, or one name has two totals.
    """
    sets: dict[tuple[Path, str], list[_Parsed]] = defaultdict(list)
    for each in map(parse_name, files):
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
        message = f"{pattern}: two files for one shard: {names}\n  Remove one, or pass the files as a list."
        raise StorageError(message, path=str(folder / twice[0]))
    first = 1 if total in by_number and 0 not in by_number else 0
    beyond = [number for number in by_number if not first <= number < first + total]
    if beyond:
        message = f"{pattern}: shard {max(beyond)} cannot be one of {total}\n  Rename it, or pass the files as a list."
        raise StorageError(message, path=str(folder / by_number[max(beyond)][0]))
    if len(by_number) == total:
        return
    # Only the first missing ones are searched for: a name may claim any number of shards.
    lost = _first_missing(range(first, first + total), by_number.keys() | _also_there(folder, shards[0]))
    if lost:
        raise _missing(pattern, lost, total, len(shards), len(shards[0].number))


def _pattern(shard: _Parsed) -> str:
    """Return the glob that matches a shard's set."""
    found = SHARD.fullmatch(shard.file.name)
    if found is None:
        return shard.file.name
    name = shard.file.name
    return name[: found.start("number")] + "?" * len(shard.number) + name[found.end("number") :]


def _also_there(folder: Path, shard: _Parsed) -> set[int]:
    """Return the numbers of a set that are in its folder, even if a glob selects only some of them."""
    there = set()
    for name in (path.name for path in filesystems.children(folder)):
        found = SHARD.fullmatch(name)
        if found and found["total"] == shard.total and without_suffix(found["name"])[0] == shard.name:
            there.add(int(found["number"]))
    return there


def _first_missing(wanted: range, there: set[int]) -> list[int]:
    """Return the first missing numbers, one more than are listed."""
    missing: list[int] = []
    for number in wanted:
        if number not in there:
            missing.append(number)
            if len(missing) > MOST_LISTED:
                break
    return missing


def _missing(pattern: Path, lost: list[int], total: int, there: int, width: int) -> StorageError:
    shown = [f"{number:0{width}d}" for number in lost[:MOST_LISTED]]
    more = total - there - len(shown)
    names = ", ".join(shown) + (f" and {more} more" if more > 0 else "")
    verb = "is" if len(shown) + max(more, 0) == 1 else "are"
    message = (
        f"{pattern}: {names} {verb} missing; found {there} of {total} shards\n"
        "  Restore them, or pass the other files as a list to read those."
    )
    return StorageError(message, path=str(pattern))
