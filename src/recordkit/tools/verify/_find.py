"""Find the files to verify. Unlike `open`, this continues if a set of shards is incomplete."""

from __future__ import annotations

import glob
import os
import re
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, TypeAlias, cast

from recordkit import filesystems
from recordkit.errors import StorageError
from recordkit.filesystems import LocalFile, as_open_file, given_path, is_folder, mode_of
from recordkit.storage.find import is_named_so, locate, reason_left_out
from recordkit.storage.format import SIDE, Manifest, inside, manifest_of, staging_of, targets_of
from recordkit.storage.publish import pending
from recordkit.storage.staging import lone_manifest

from ._report import Problem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recordkit.filesystems import ByteFile
    from recordkit.schema import Schema
    from recordkit.storage.find import Located
    from recordkit.storage.format import Shard

Where: TypeAlias = "str | os.PathLike[str] | IO[bytes] | Sequence[str | os.PathLike[str]]"

_AT: Final = re.compile(r"(?P<name>.+)@(?P<total>\d+)(?P<ending>\.[^@]*)?")


@dataclass(frozen=True)
class Candidate:
    """A file to verify, and what is known about it.

    Attributes:
        file: Its bytes.
        shard: Its entry in a manifest.
        known: Whether it has a manifest; the manifest may have no schema.
        schema: The schema in the manifest.
        expected: The number of records according to anything but a manifest.
        missing: Why the file is known to be missing.
    """

    file: ByteFile
    shard: Shard | None = None
    known: bool = False
    schema: Schema | None = None
    expected: int | None = None
    missing: str | None = None

    @property
    def holds_no_examples(self) -> bool:
        """Whether its manifest says that it holds no Examples."""
        return self.known and self.schema is None


@dataclass
class Findings:
    """The files to verify, and the problems found so far."""

    candidates: list[Candidate] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def find(where: Where) -> Findings:
    """Find the files that `where` names.

    Raises:
        StorageError: There are no files.
    """
    given = as_open_file(where)
    if given is not None:
        return Findings([Candidate(given)])
    finder = _Finder()
    if isinstance(where, str | os.PathLike):
        finder.one(os.fspath(where))
    else:
        finder.many([os.fspath(each) for each in cast("Sequence[str]", where)])
    return finder.found


class _Finder:
    """Collects files, each with its manifest."""

    def __init__(self) -> None:
        self.found = Findings()
        self._manifests: dict[Path, Manifest | None] = {}

    def one(self, text: str) -> None:
        """Add the files that one path or pattern names."""
        path = Path(given_path(text, pattern=True))
        if is_folder(path):
            manifest = self._load(manifest_of(path, lone=False))
            if manifest is not None:
                self._by_manifest(path, manifest)
                return
        try:
            self._take(locate(text))
        except StorageError as error:
            there = _there(text)
            if not there:
                raise
            self._problem(error, text)
            for each in there:
                self._add(each)
        self._note_staging(path)

    def many(self, texts: list[str]) -> None:
        """Add the files that several paths or patterns name."""
        for text in texts:
            given_path(text, pattern=True)
        try:
            self._take(locate(texts))
            return
        except StorageError as error:
            first = error
        for text in texts:
            try:
                self.one(text)
            except StorageError as error:
                self.found.candidates.append(Candidate(LocalFile(Path(text)), missing=error.summary))
        if all(candidate.missing for candidate in self.found.candidates):
            raise first

    def _take(self, located: Located) -> None:
        counts = _tfds_counts(located)
        for path in located.files:
            self._add(path, counts.get(path))

    def _add(self, path: Path, expected: int | None = None) -> None:
        """Add a file, with its own manifest or that of its folder."""
        for where in (lone_manifest(path), manifest_of(path.parent, lone=False)):
            manifest = self._load(where)
            shard = next((each for each in manifest.shards if each.name == path.name), None) if manifest else None
            if manifest is not None and shard is not None:
                self.found.candidates.append(Candidate(LocalFile(path), shard, True, manifest.schema))
                return
        self.found.candidates.append(Candidate(LocalFile(path), expected=expected))

    def _by_manifest(self, folder: Path, manifest: Manifest) -> None:
        names = {path.name for path in filesystems.children(folder)}
        where = manifest_of(folder, lone=False)
        for shard in manifest.shards:
            missing = None if shard.name in names else "the manifest lists it, but it is missing"
            file = LocalFile(inside(folder, shard.name, where))
            self.found.candidates.append(Candidate(file, shard, True, manifest.schema, None, missing))
        journals = [pending(target) for target in targets_of(folder)]
        unfinished = {name for journal in journals if journal is not None for name in journal.shards()}
        for name in sorted(names - {shard.name for shard in manifest.shards} - unfinished):
            if is_named_so(name) and reason_left_out(name) is None:
                words = "not in the manifest: it is not part of the dataset, but a glob would read it"
                self.found.problems.append(Problem(str(folder / name), "not_in_manifest", words))
        self._note_staging(folder)

    def _note_staging(self, target: Path) -> None:
        staging = staging_of(Path(os.path.abspath(target)))  # noqa: PTH100 - links keep their names
        if mode_of(staging):
            self.found.notes.append(f"{staging}: a writer is at work here, or was interrupted; this is not checked")

    def _load(self, path: Path) -> Manifest | None:
        if path not in self._manifests:
            try:
                self._manifests[path] = Manifest.load(path)
            except StorageError as error:
                self._manifests[path] = None
                self._problem(error, str(path), "manifest")
        return self._manifests[path]

    def _problem(self, error: StorageError, text: str, kind: str = "incomplete") -> None:
        if error.errno in filesystems.TOO_MANY_CODES:
            raise error  # the process is at fault, not the dataset
        path = error.path or text
        if any(problem.path == path for problem in self.found.problems):
            return  # a manifest that cannot be read is reported once
        self.found.problems.append(Problem(path, kind, error.summary))


def _there(text: str) -> list[Path]:
    """List the record files that exist, whether or not their sets are complete."""
    path = Path(text)
    mode = mode_of(path)
    if stat.S_ISDIR(mode):
        files = [file for file in filesystems.children(path) if is_named_so(file.name) and file.is_file()]
        return [file for file in files if reason_left_out(file.name) is None]
    at = _AT.fullmatch(path.name)
    if stat.S_ISREG(mode):
        return [path]
    if at is not None:
        stem = glob.escape(str(path.with_name(at["name"])))
        text = f"{stem}*-of-{int(at['total']):05d}{glob.escape(at['ending'] or '')}*"
    matches = sorted(map(Path, glob.glob(text, recursive=True)))  # noqa: PTH207 (Path.glob takes no full path)
    return [
        each for each in matches if each.is_file() and SIDE not in each.parts and reason_left_out(each.name) is None
    ]


def _tfds_counts(located: Located) -> dict[Path, int]:
    """Return the number of records in each file according to TFDS."""
    counts: dict[Path, int] = {}
    for split, lengths in (located.tfds or {}).get("splits", {}).items():
        files = located.splits.get(split, ())
        if len(files) == len(lengths):
            counts.update(zip(files, lengths, strict=True))
    return counts
