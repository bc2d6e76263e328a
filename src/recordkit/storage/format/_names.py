"""Names: of shards, and of the files and folders that belong to a target.

Shard sets are named `name-00000-of-00016.tfrecord`, with `.gz` appended for gzip.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from pathlib import Path

from recordkit.codecs import codec_of
from recordkit.errors import StorageError
from recordkit.filesystems import fitting, given_path, is_folder, mode_of

SIDE = "_recordkit"  # our folder, which globs such as `*.tfrecord*` and `train-*` do not match
_RECORD_FILE = re.compile(
    r"\.(tfrecords?|tfrec|tfr|records?)(\.gz|\.gzip|\.zlib|\.z)?(-\d+-of-\d+)?(\.repaired)?$", re.IGNORECASE
)
_MOST_SET = 200  # bytes, so that the names of shards and of their side files fit
_NOT_IN_NAMES = re.compile(r"[/\0]|-\d+-of-\d+")


def is_lone_file(path: str | os.PathLike[str]) -> bool:
    """Tell by its name whether a target is one file rather than a folder of shards.

    >>> is_lone_file("one.tfrecord"), is_lone_file("one.tfrecord.gz"), is_lone_file("train/"), is_lone_file("data.v2")
    (True, True, False, False)
    """
    text = str(path)
    mode = mode_of(path)
    if text.endswith("/") or stat.S_ISDIR(mode):
        return False
    return stat.S_ISREG(mode) or _RECORD_FILE.search(text) is not None


def target_of(path: str | os.PathLike[str]) -> tuple[Path, bool]:
    """Return a target's full path, and whether it is a lone file.

    Raises:
        StorageError: It cannot be the path of a file or folder here.
    """
    text = given_path(path)
    # Not resolved: a link to a folder is a name that can be replaced like any other.
    target = Path(os.path.abspath(text))  # noqa: PTH100
    above = next((folder for folder in target.parents if os.path.lexists(folder)), None)
    if above is not None and not is_folder(above):
        message = f"{text}: cannot be written: {above} is no folder\n  Choose a target elsewhere."
        raise StorageError(message, path=text, errno=errno.ENOTDIR)
    return target, is_lone_file(text)


def targets_of(path: str | os.PathLike[str]) -> list[Path]:
    """Return the full path of a target and, if it is a link, that of what it leads to.

    Raises:
        StorageError: It cannot be the path of a file or folder here.
    """
    own = Path(os.path.abspath(given_path(path)))  # noqa: PTH100 - links keep their names
    return [own, Path(os.path.realpath(own))] if os.path.islink(own) else [own]  # noqa: PTH114 - for it never raises


def suffix(compression: str | None) -> str:
    """Return how a shard's name ends.

    >>> suffix(None), suffix("gzip")
    ('.tfrecord', '.tfrecord.gz')
    """
    return f".tfrecord{codec_of(compression).suffix}"


def shard_name(name: str, number: int, total: int, ending: str) -> str:
    """Return the name of a shard of a set.

    >>> shard_name("train", 3, 16, ".tfrecord")
    'train-00003-of-00016.tfrecord'
    """
    return f"{name}-{number:05d}-of-{total:05d}{ending}"


def set_name(name: str | None, target: Path) -> str:
    """Return the name of a shard set: the one given, or the folder's own.

    Raises:
        ValueError: It would not make good file names.
        StorageError: It is too long for that.
    """
    name = target.name if name is None else name
    if not name or name.startswith((".", "_")) or _NOT_IN_NAMES.search(name):
        message = f"{name!r} cannot name shards: use letters, digits, dots and dashes; pass name="
        raise ValueError(message)
    if len(os.fsencode(name)) > _MOST_SET:
        message = f"{name}: cannot name shards: it has more than {_MOST_SET} bytes\n  Pass a shorter name=."
        raise StorageError(message, path=str(target), errno=errno.ENAMETOOLONG)
    return name


def appended_name(name: str, taken: set[str]) -> str:
    """Return the name of a set that is appended to the set `name`.

    >>> appended_name("train", {"train", "train-append1"})
    'train-append2'
    """
    number = 1
    while f"{name}-append{number}" in taken:
        number += 1
    return f"{name}-append{number}"


def staging_of(target: Path) -> Path:
    """Return the hidden folder next to a target, in which it is made."""
    return target.with_name(fitting(".", target.name, ".recordkit"))


def side_of(target: Path, *, lone: bool) -> Path:
    """Return the folder that holds the side files of a target."""
    return target.parent / SIDE if lone else target / SIDE


def manifest_of(target: Path, *, lone: bool) -> Path:
    """Return where the manifest of a target is."""
    return side_of(target, lone=lone) / (fitting("", target.name, ".manifest.json") if lone else "manifest.json")


def is_plain(name: str) -> bool:
    r"""Tell whether a name can be that of something in a folder, and cannot lead out of it.

    >>> [name for name in ("a.tfrecord", "", ".", "..", "../a", "/a", "a/b", "a\0b", "\ud800") if is_plain(name)]
    ['a.tfrecord']
    """
    try:
        os.fsencode(name)
    except UnicodeEncodeError:
        return False
    return name not in ("", ".", "..") and not {"/", "\0", os.sep, os.altsep} & set(name)


def inside(folder: Path, name: str, said_by: Path) -> Path:
    """Return the path of a name that a side file gives, which cannot lead out of the folder.

    Every name from a manifest, overlay, journal or any other side file is joined here. A
    link is followed to places in the folder, and to the folder where the side file itself really is: in the cache of
    Hugging Face all files of a dataset are links into one folder.

    Args:
        folder: Where the named file is.
        name: Its name, as the side file has it.
        said_by: The side file, to name in errors.

    Raises:
        StorageError: The name has separators or means another folder, or there is a link under it that leads out.
    """
    if not is_plain(name):
        words = f"expected the name of a file in {folder}, found {name[:200]!r}"
        message = (
            f"{said_by}: {words}\n  Names in it must not lead elsewhere. Do not use this dataset, or remove the file."
        )
        raise StorageError(message, path=str(said_by))
    path = folder / name
    if path.is_symlink():
        real = Path(os.path.realpath(path))
        home = Path(os.path.realpath(folder))
        if home not in real.parents and real.parent != Path(os.path.realpath(said_by)).parent:
            message = (
                f"{path}: expected a file in this folder, found a link that leads out of it\n"
                f"  It is named by {said_by}. Put the file itself in its place, or pass its own path."
            )
            raise StorageError(message, path=str(path))
    return path
