"""The journal: what a run is about to publish, written first, so that it can be completed after a crash.

It is in the staging folder next to the target, and is as untrusted as everything else there. So it may only name files
of its own staging folder, and the places where this kind of run puts its files. And it is bound to the target as it was
when the journal was written: if something else is there now, nobody follows it.
"""

from __future__ import annotations

import json
import os
import re
import stat
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from recordkit import _core, filesystems, log
from recordkit.errors import StorageError
from recordkit.filesystems import fitting
from recordkit.storage.format import SIDE, Manifest, manifest_of, staging_of
from recordkit.storage.format import side_json as declare

from ._parts import check_folder, is_foreign

if TYPE_CHECKING:
    from collections.abc import Iterator


Kind = Literal["folder", "file", "append", "extend"]
State = Literal["old", "between", "new", "other"]

FORMAT: Final = 2  # the first format had no number, and was bound to nothing
NAME: Final = "publish.json"
MANIFEST: Final = "manifest.json"
_RECORDS: Final = re.compile(r"(part-\d{5,}-of-\d{5,}/data/)(shard-\d{5,})(\.tfrecord(?:\.gz)?)")
_SHARD: Final = re.compile(r"[^._/\0][^/\0]*-\d{5,}-of-\d{5,}(\.tfrecord(?:\.gz)?)")
_PIECE: Final = 1 << 20
_SAMPLES: Final = 64
_SAMPLE: Final = 64 << 10

_FACTS: Final = declare.record(
    {"size": declare.number(), "crc32c": declare.text("[0-9a-f]{8}", "8 hexadecimal digits")}
)


def _move(value: Any) -> None:
    declare.array(declare.text())(value)
    if len(value) != 2:
        raise declare.FormatMismatch(declare.in_words(value), "two names, from where and to where")


DECLARED: Final = declare.JsonFormat(
    "journal",
    {
        FORMAT: declare.record(
            {
                "format": declare.number(),
                "kind": declare.one_of("folder", "file", "append", "extend"),
                "moves": declare.array(_move),
                "manifest": declare.text("[0-9a-f]{8}|", "8 hexadecimal digits or nothing"),
                "overwrite": declare.true_or_false,
                "swapping": declare.true_or_false,
                "old": declare.or_null(_FACTS),
                "new": declare.or_null(_FACTS),
            }
        )
    },
    "It is ignored. To remove what the run left: recordkit.discard.",
)


@dataclass(frozen=True)
class ContentChecksum:
    """A fingerprint of the content of a target: a size and a checksum."""

    size: int
    crc32c: str


@dataclass(frozen=True)
class Journal:
    """The renames to do, in this order.

    Attributes:
        kind: What is published.
        moves: Pairs of a path in the staging folder and its goal: in `final/` for a folder, else next to the target.
        manifest: The CRC of the new manifest, which identifies a published target.
        overwrite: Whether an old target may be replaced.
        old: The target before; None if there is none.
        new: A lone file afterwards.
        swapping: Whether the old target is being replaced with two renames.
    """

    kind: Kind
    moves: tuple[tuple[str, str], ...]
    manifest: str
    overwrite: bool
    old: ContentChecksum | None
    new: ContentChecksum | None = None
    swapping: bool = False

    @classmethod
    def load(cls, target: Path, *, reading: bool = False) -> Journal | None:
        """Load the journal in a target's staging folder; None if nothing was being published.

        Args:
            target: The folder or file.
            reading: Ignore a journal that belongs to another user, with a warning.

        Raises:
            StorageError: It was not written by recordkit, or names files that such a run does not touch.
        """
        staging = staging_of(target)
        path = staging / NAME
        if not os.path.lexists(path):
            return None
        if reading and not staging.is_symlink() and is_foreign(staging):
            log.warning(
                "%s: ignored, because it belongs to another user, who is publishing this or was interrupted", staging
            )
            return None
        check_folder(staging)
        if path.is_symlink():
            raise DECLARED.error(str(path), "expected a file, found a link")
        value = DECLARED.load(path)
        moves = tuple((source, goal) for source, goal in value["moves"])
        old, new = (None if value[name] is None else ContentChecksum(**value[name]) for name in ("old", "new"))
        journal = cls(value["kind"], moves, value["manifest"], value["overwrite"], old, new, value["swapping"])
        wrong = journal._explain_names(target)
        if wrong is None:
            check_folder(staging, *{staging / source.partition("/")[0] for source, _ in moves if "/" in source})
            wrong = journal._explain_links(target)
        if wrong is not None:
            raise DECLARED.error(str(path), wrong)
        return journal

    def save(self, target: Path, *, sync: bool) -> None:
        """Write the journal."""
        value = {"format": FORMAT, **asdict(self)}
        filesystems.replace_file(staging_of(target) / NAME, json.dumps(value, indent=1).encode(), sync=sync)

    @property
    def lone(self) -> bool:
        """Whether the target is one file."""
        return self.kind in ("file", "extend")

    def paths(self, target: Path) -> list[tuple[Path, Path]]:
        """Return the moves as full paths."""
        staging = staging_of(target)
        base = staging if self.kind == "folder" else target.parent
        return [(staging / source, base / goal) for source, goal in self.moves]

    def shards(self) -> set[str]:
        """Return the names of the record files it publishes."""
        return {goal.rpartition("/")[2] for source, goal in self.moves if _RECORDS.fullmatch(source)}

    def _explain_names(self, target: Path) -> str | None:
        """Return what is wrong with its names; None if this kind of run makes exactly these moves."""
        root = {"folder": "final/", "append": f"{target.name}/"}.get(self.kind, "")
        side = f"{root}{SIDE}/"
        allowed: dict[str, str] = {}
        for place, (source, goal) in enumerate(self.moves):
            if not (found := _RECORDS.fullmatch(source)):
                continue
            name = goal.removeprefix(root)
            shard = _SHARD.fullmatch(name)
            is_right = place == 0 and goal == target.name if self.lone else shard and shard[1] == found[3]
            if not is_right or goal != f"{root}{name}":
                return f"moves[{place}][1]: expected the name of a record file of the target, found {goal[:200]!r}"
            stem = found[1] + ("whole" if self.kind == "extend" else found[2])
            allowed |= {source: goal, f"{stem}.rki": side + fitting("", name, ".rki")}
            allowed[f"{stem}.jsonl"] = f"{side}quarantine/" + fitting("", name, ".jsonl")
        if self.manifest:
            allowed[MANIFEST] = side + manifest_of(target, lone=self.lone).name
        for place, (source, goal) in enumerate(self.moves):
            if source not in allowed:
                return f"moves[{place}][0]: expected the name of a file that a writer stages, found {source[:200]!r}"
            if goal != allowed[source]:
                return f"moves[{place}][1]: expected {allowed[source]!r}, found {goal[:200]!r}"
        if len({source for source, _ in self.moves}) < len(self.moves) or len(set(allowed.values())) < len(allowed):
            return "moves: found one name twice"
        sources = [source for source, _ in self.moves]
        if self.lone and not (sources and _RECORDS.fullmatch(sources[0])):
            return "moves: expected the file first, found none"
        if not sources or (self.manifest and sources[-1] != MANIFEST):
            return "moves: expected record files, and then the manifest"
        return self._explain_facts()

    def _explain_facts(self) -> str | None:
        if not self.manifest and self.kind != "extend":
            return "manifest: expected 8 hexadecimal digits, found none"
        if self.lone and self.new is None:
            return "new: expected a size and a checksum, found null"
        if self.kind in ("append", "extend") and self.old is None:
            return "old: expected a size and a checksum, found null"
        return "swapping: expected false, found true" if self.swapping and self.kind != "folder" else None

    def _explain_links(self, target: Path) -> str | None:
        """Return what is in the way of the moves other than files and folders; None if nothing is."""
        staging = staging_of(target)
        outer = {staging, target.parent}
        folders = {folder for pair in self.paths(target) for path in pair for folder in up_to(path.parent, outer)}
        for path in [staging / "final", *sorted(folders)]:
            if _is_not(path, stat.S_ISDIR):
                return f"expected a folder, found a link or something else: {path}"
        files = [source for source, _ in self.paths(target)]
        if self.kind == "folder":
            files += [goal for _, goal in self.paths(target)]
        for path in [*files, *([target] if self.kind == "extend" else [])]:
            if _is_not(path, stat.S_ISREG):
                return f"expected a file, found a link or something else: {path}"
        return None

    # --- The state of the target

    def is_published(self, target: Path) -> bool:
        """Tell whether the manifest of the target is the new one."""
        return self.is_in(manifest_of(target, lone=self.lone))

    def is_in(self, path: Path) -> bool:
        """Tell whether the new manifest is in a file."""
        try:
            data = declare.read_small(path)
        except (OSError, StorageError, declare.FormatMismatch):
            return False
        return f"{_core.crc32c(data):08x}" == self.manifest

    def state(self, target: Path) -> State:
        """Return the state of its target: `other` if something else is there."""
        try:
            return self._lone_state(target) if self.lone else self._folder_state(target)
        except OSError:
            return "other"

    def _folder_state(self, target: Path) -> State:
        if self.is_published(target):
            return "new"
        if self.kind == "folder" and is_free(target):
            staged = (staging_of(target) / "final").is_dir()
            return "between" if self.swapping and staged else "old" if self._is_staged(target) else "other"
        if self.old is None or folder_facts(target) != self.old:
            return "other"
        return "old" if self.kind == "folder" or not self._is_in_the_way(target) else "other"

    def _is_staged(self, target: Path) -> bool:
        return all(source.exists() or goal.exists() for source, goal in self.paths(target))

    def _is_in_the_way(self, target: Path) -> bool:
        """Tell whether there are files that do not belong to the append."""
        manifest = Manifest.load(manifest_of(target, lone=False))
        known = {shard.name for shard in manifest.shards} if manifest is not None else set()
        records = [goal for goal in self.shards() if (target / goal).exists()]
        pairs = self.paths(target)[:-1]
        return bool(
            known & set(records)
            or not self._is_staged(target)
            or any(source.exists() and goal.exists() for source, goal in pairs)
        )

    def _lone_state(self, target: Path) -> State:
        assert self.new is not None
        source, *rest = [source for source, _ in self.paths(target)]
        if source.exists():
            if self.kind == "file":
                is_old = not os.path.lexists(target) or (self.old is not None and sampled_facts(target) == self.old)
                return "old" if is_old else "other"
            assert self.old is not None
            if file_facts(target, self.old.size) != self.old or not _is_begun(target, self.old.size, source):
                return "other"
            return "old" if target.stat().st_size == self.old.size else "between"
        if file_facts(target, self.new.size) != self.new or target.stat().st_size != self.new.size:
            return "other"
        if self.manifest:
            return "new" if self.is_published(target) else "between"
        return "between" if any(path.exists() for path in rest) else "new"

    def stale(self, target: Path) -> StorageError:
        """Return the error for a target that has changed since the journal was written."""
        message = (
            f"{target}: publishing it was interrupted, and it has changed since then\n"
            f"  Nothing was changed. To remove what the interrupted run left: recordkit.discard({str(target)!r})."
        )
        return StorageError(message, path=str(target))

    def swap(self) -> Journal:
        """Return the journal of a folder between two renames."""
        return replace(self, swapping=True)


# --- Readers


def lacks_side_files(path: Path) -> Journal | None:
    """Return the journal of a lone file that is in place already, while its side files are still staged."""
    target = Path(os.path.abspath(path))  # noqa: PTH100 - links keep their names
    journal = Journal.load(target, reading=True)
    if journal is None or not journal.lone or journal.paths(target)[0][0].exists():
        return None
    return journal


def lone_manifest(path: Path) -> Path:
    """Return where the manifest of a lone file is: in the staging folder, if it has not been moved yet."""
    staged = staging_of(path) / MANIFEST
    if staged.is_file() and (journal := lacks_side_files(path)) is not None and journal.is_in(staged):
        return staged
    return manifest_of(path, lone=True)


# --- Checksums


def is_free(target: Path) -> bool:
    """Tell whether there is nothing, or only an empty folder, at a path."""
    if not os.path.lexists(target):
        return True
    return target.is_dir() and not target.is_symlink() and not any(target.iterdir())


def folder_facts(target: Path) -> ContentChecksum | None:
    """Fingerprint a dataset by its manifest and those of its overlays."""
    where = manifest_of(target, lone=False)
    overlays = where.parent / "overlays"
    size = crc = 0
    layers = sorted(path for path in overlays.iterdir() if path.name[0].isdigit()) if overlays.is_dir() else []
    for path in [where, *(manifest_of(layer, lone=False) for layer in layers)]:
        try:
            data = declare.read_small(path)
        except (OSError, StorageError, declare.FormatMismatch):
            if path == where:
                return None
            continue
        size, crc = size + len(data), _core.crc32c(data, crc)
    return ContentChecksum(size, f"{crc:08x}")


def file_facts(path: Path, size: int) -> ContentChecksum | None:
    """Fingerprint the first `size` bytes of a file; None if there are fewer."""
    crc, left = 0, size
    with path.open("rb", buffering=0) as file:
        while left and (piece := file.read(min(left, _PIECE))):
            crc, left = _core.crc32c(piece, crc), left - len(piece)
    return ContentChecksum(size, f"{crc:08x}") if not left else None


def sampled_facts(path: Path) -> ContentChecksum:
    """Fingerprint a file that is to be replaced; a large one by many pieces from all over it."""
    size, crc = path.stat().st_size, 0
    with path.open("rb", buffering=0) as file:
        if size <= _SAMPLES * _SAMPLE:
            starts = list(range(0, size, _SAMPLE))
        else:
            starts = [(size - _SAMPLE) * number // (_SAMPLES - 1) for number in range(_SAMPLES)]
        for start in starts:
            file.seek(start)
            crc = _core.crc32c(file.read(_SAMPLE), crc)
    return ContentChecksum(size, f"{crc:08x}")


def _is_begun(target: Path, size: int, source: Path) -> bool:
    """Tell whether the bytes after the first `size` are an unfinished copy of `source`.

    After a power failure, it may contain zeros.
    """
    with target.open("rb", buffering=0) as file, source.open("rb", buffering=0) as more:
        file.seek(size)
        while piece := file.read(_PIECE):
            there, wanted = np.frombuffer(piece, np.uint8), np.frombuffer(more.read(len(piece)), np.uint8)
            if len(wanted) < len(there) or not ((there == wanted) | (there == 0)).all():
                return False
    return True


def up_to(folder: Path, outer: set[Path]) -> Iterator[Path]:
    """Yield a folder and its parents, up to one of the outer folders."""
    while folder not in outer:
        yield folder
        folder = folder.parent


def _is_not(path: Path, test: Any) -> bool:
    try:
        return not test(path.lstat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False
