"""Overlays: changes to records that do not touch them. Fields added, fields hidden, records deleted.

An overlay is a folder, `_recordkit/overlays/<number>-<name>`, with its own manifest. It is complete or absent. Added
fields are plain TFRecords of Examples that hold nothing else: one file per file of the base, one record per record. An
overlay is bound to its base by digests, and refuses a changed base. docs/format/overlays.md defines the format.
"""

from __future__ import annotations

import base64
import errno
import os
import re
import zlib
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from recordkit import _core, filesystems, log
from recordkit.errors import CorruptRecordError, StorageError
from recordkit.filesystems import LocalFile, OpenFiles
from recordkit.schema import Schema
from recordkit.storage.format import MOST_INFLATED, SIDE, Manifest, inside, is_possible, manifest_of
from recordkit.storage.format import side_json as declare
from recordkit.storage.read import RecordFile, find_adjacent_index
from recordkit.storage.staging import lone_manifest
from recordkit.wording import listed

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from recordkit.filesystems import ByteFile
    from recordkit.storage.format import Shard


KEY: Final = "recordkit.layer"  # of a manifest's metadata
AFTER: Final = "after"  # in an entry of a lineage: what a lone file held before records were appended
_NUMBERED: Final = re.compile(r"(\d+)-.+")
_FACTS: Final = declare.JsonFormat(
    "overlay",
    declare.record(
        {
            "base": declare.array(
                declare.record(
                    {
                        "name": declare.file_name,
                        "digest": declare.text("[0-9a-f]{32}", "32 hexadecimal digits"),
                        "records": declare.number(),
                        "size": declare.number(),
                        "changed_at": declare.number(-declare.MOST),
                    },
                    {"sample": declare.or_null(declare.text("[0-9a-f]{8}", "8 hexadecimal digits"))},
                )
            ),
            "hides": declare.array(declare.text()),
            "deleted": declare.table(declare.text("[A-Za-z0-9+/]*=*", "Base64")),
        },
        {"values": declare.table(declare.text())},
    ),
    "Restore it, remove it, or open the dataset without overlays: overlays=False.",
)
_TICK: Final = 20_000_000  # nanoseconds; longer than a tick of any clock used for file times
_SECOND: Final = 1_000_000_000
_PIECES, _PIECE = 16, 4096


@dataclass(frozen=True)
class Base:
    """What an overlay knows of one file of its base.

    Attributes:
        name: The file's name.
        digest: Of its records.
        records: Their number.
        size: Of the file.
        changed_at: Its modification time in nanoseconds; if that is unchanged, its records need not be read.
        sample: The checksum of some of its bytes; None if an earlier version wrote the overlay.
    """

    name: str
    digest: str
    records: int
    size: int
    changed_at: int
    sample: str | None = None

    @classmethod
    def of(cls, file: RecordFile) -> Base:
        """Return the facts that bind an overlay to a file."""
        local = file.local
        assert local is not None
        facts = local.path.stat()
        if file.shard is not None and facts.st_mtime_ns > _manifest_time(local.path):
            file = RecordFile(LocalFile(local.path))  # the manifest describes an earlier file
        return cls(
            local.path.name, file.digest, file.count, facts.st_size, facts.st_mtime_ns, sample_of(LocalFile(local.path))
        )

    def is_start_of(self, path: Path) -> bool:
        """Tell whether a lone file is this one with more records appended."""
        manifest, shard = lone_shard(path)
        if manifest is None or shard is None:
            return False
        return {"records": self.records, "digest": self.digest} in [of.get(AFTER) for of in manifest.lineage]

    def is_gone(self, path: Path) -> bool:
        """Tell whether this lone file was replaced with another one that has a manifest of its own."""
        facts = path.stat()
        if (facts.st_size, facts.st_mtime_ns) == (self.size, self.changed_at):
            return False
        _, shard = lone_shard(path)
        return shard is not None and shard.digest != self.digest and not self.is_start_of(path)


def sample_of(file: ByteFile) -> str:
    """Return the checksum of 16 evenly spaced pieces of a file; they cover all of it up to 64 KiB."""
    last = max(0, file.size - _PIECE)
    pieces = [file.read_at(last * part // (_PIECES - 1), _PIECE) for part in range(_PIECES)]
    return f"{_core.crc32c(b''.join(pieces)):08x}"


def lone_shard(path: Path) -> tuple[Manifest | None, Shard | None]:
    """Return a lone file's manifest and its entry there; None twice if the manifest is for an earlier file."""
    where = lone_manifest(path)
    manifest = Manifest.load(where)
    if manifest is None or len(manifest.shards) != 1 or manifest.shards[0].bytes != path.stat().st_size:
        return None, None
    (shard,) = manifest.shards
    # The manifest is renamed into place after the file has its bytes.
    if path.stat().st_mtime_ns > where.stat().st_ctime_ns and RecordFile(LocalFile(path)).digest != shard.digest:
        return None, None
    return manifest, shard


def _manifest_time(path: Path) -> int:
    """Return when the manifest that covers a file was last changed."""
    manifests = manifest_of(path.parent, lone=False), manifest_of(path, lone=True)
    return max((manifest.stat().st_mtime_ns for manifest in manifests if manifest.is_file()), default=0)


@dataclass(frozen=True)
class Overlay:
    """One change that leaves the records themselves alone.

    Attributes:
        path: Its folder.
        schema: The fields it adds.
        base: What it is bound to, by file name.
        files: The files with the added fields, by name of the base's file.
        hides: The fields that readers no longer see, including those that it replaces.
        deleted: The numbers of deleted records in ascending order, by name of the base's file.
        home: The folder of the base, if the overlay is kept there; None if it is kept elsewhere.
    """

    path: Path
    schema: Schema
    base: Mapping[str, Base]
    files: Mapping[str, RecordFile]
    hides: frozenset[str]
    deleted: Mapping[str, NDArray[np.int64]]
    home: Path | None = None

    @classmethod
    def load(cls, path: Path, home: Path | None = None) -> Overlay:
        """Load the overlay in a folder. `home` is the folder of its base, or None if the overlay is kept elsewhere.

        Raises:
            StorageError: There is no overlay in this folder, or it is damaged.
        """
        where = manifest_of(path, lone=False)
        manifest = Manifest.load(where)
        facts = manifest.metadata.get(KEY) if manifest is not None else None
        if manifest is None or facts is None:
            message = f"{path}: not an overlay\n  To write one: recordkit.add_fields(..., overlay={str(path)!r})."
            raise StorageError(message, path=str(path), errno=None if path.exists() else errno.ENOENT)
        _FACTS.check(facts, str(where))
        base = {entry["name"]: Base(**entry) for entry in facts["base"]}
        open_files = OpenFiles.of(len(manifest.shards))
        overlay = cls(
            path=path,
            schema=manifest.schema or Schema({}),
            base=base,
            files={
                name: RecordFile(LocalFile(inside(path, shard.name, where)), shard, open_files)
                for name, shard in zip(base, manifest.shards, strict=False)
            },
            hides=frozenset(facts["hides"]),
            deleted=Tombstones(where, base, facts["deleted"]),
            home=home,
        )
        overlay._check_fits(where, facts, manifest)
        return overlay

    def _check_fits(self, where: Path, facts: Mapping[str, Any], manifest: Manifest) -> None:
        """Raise if the parts of the manifest contradict each other."""
        words = None
        if len(self.base) < len(facts["base"]):
            words = "base: expected every file once, found one twice"
        elif len(manifest.shards) != (len(self.base) if manifest.schema is not None else 0):
            words = f"shards: expected a file for each of {len(self.base)}, found {len(manifest.shards)}"
        elif unknown := facts["deleted"].keys() - self.base.keys():
            words = f"deleted: expected names of the base, found {min(unknown)[:200]!r}"
        elif lying := [of.name for of in self.base.values() if not is_possible(of.records, of.size * MOST_INFLATED)]:
            words = f"base: found more records of {lying[0]} than its bytes can hold"
        if words is not None:
            raise _FACTS.error(str(where), words)
        for name, file in self.files.items():
            if file.count != self.base[name].records:
                expected = self.base[name].records
                raise self._damaged(file, f"expected {expected} records, one for each of {name}, found {file.count}")

    def _damaged(self, file: RecordFile, words: str) -> StorageError:
        message = f"{file.name}: {words}\n  The overlay is damaged: remove {self.path} and add its fields again."
        return StorageError(message, path=file.name)

    def _check_own(self, file: RecordFile) -> None:
        """Raise if a file of this overlay was changed, truncated or swapped with another."""
        local, shard = file.local, file.shard
        assert local is not None
        assert shard is not None
        try:
            facts = local.path.stat()
        except OSError as error:
            missing = isinstance(error, FileNotFoundError)
            words = "the file is missing" if missing else f"it cannot be read: {os.strerror(error.errno or 0)}"
            raise self._damaged(file, words) from None
        if facts.st_size != shard.bytes:
            raise self._damaged(file, f"expected {shard.bytes} bytes, found {facts.st_size}")
        # Others can have changed it only after the manifest was written, or before everything was copied; in that case
        # the index next to it is not for this file.
        written = manifest_of(self.path, lone=False).stat().st_ctime_ns
        untouched = (
            facts.st_ctime_ns < written and find_adjacent_index(local, file.compression) is not None
        )  # see `settle`
        if not untouched and RecordFile(LocalFile(local.path)).digest != shard.digest:
            raise self._damaged(file, "these are not the records that were written")

    def check(self, file: RecordFile) -> None:
        """Check that a file of the base is what this overlay was made for.

        Raises:
            StorageError: The file has changed, or does not belong to the base.
        """
        local = file.local
        assert local is not None
        bound = self._bound(local.path)
        if bound is None:
            raise self.unknown(file.name)
        if bound.name in self.files:
            self._check_own(self.files[bound.name])
        facts = local.stat()
        same = (facts.st_size, facts.st_mtime_ns) == (bound.size, bound.changed_at)
        if same and self._is_surely(bound, local, facts.st_ctime_ns):
            return
        try:
            changed = facts.st_size != bound.size or RecordFile(LocalFile(local.path)).digest != bound.digest
        except CorruptRecordError:
            if not same:
                raise
            return  # damaged in place: reading reports the damage, or skips it if asked to
        if changed:
            message = (
                f"{file.name}: the file has changed since the overlay {self.path.name} was written\n"
                f"  The overlay no longer matches the records: add its fields again, or pass overlays=False."
            )
            raise StorageError(message, path=file.name)

    def unknown(self, name: str) -> StorageError:
        """Return the error for a file that this overlay does not apply to."""
        added, hidden = listed(self.schema.names), listed(sorted(self.hides))
        todo = f"add {added} to" if added else f"drop {hidden} from"
        message = (
            f"{name}: the overlay {self.path.name} changes other files, but not this one\n"
            f"  To make the same change, {todo} it; or open without overlays: overlays=False."
        )
        return StorageError(message, path=name)

    def knows(self, path: Path) -> bool:
        """Tell whether this overlay applies to a file."""
        return self._bound(path) is not None

    @property
    def paths(self) -> tuple[Path, ...]:
        """Its folder; if it is the same change to several lone files, one folder per file."""
        return (self.path,)

    def _bound(self, path: Path) -> Base | None:
        """Return what this overlay knows of a file; None if it does not apply to it."""
        return self.base.get(path.name) if self.home in (None, path.parent) else None

    def covers(self, file: RecordFile) -> int:
        """Return to how many records at the start of a file this overlay applies.

        The others were appended after the overlay was made, and contain everything that readers see.

        Raises:
            StorageError: The file has changed in another way, or does not belong to the base.
        """
        local = file.local
        assert local is not None
        bound = self._bound(local.path)
        if bound is None and self.home is not None:
            if not self.alters or (file.shard is not None and local.path.parent == self.home):
                return 0
        elif bound is not None and local.path.stat().st_size > bound.size and bound.is_start_of(local.path):
            if bound.name in self.files:
                self._check_own(self.files[bound.name])
            return bound.records
        self.check(file)
        assert bound is not None
        return bound.records

    @property
    def alters(self) -> bool:
        """Whether it changes which fields readers see."""
        return bool(self.schema.names or self.hides)

    def _is_surely(self, bound: Base, file: LocalFile, placed_at: int) -> bool:
        """Tell whether a file with the base's size and time is certainly the same.

        Args:
            bound: What is known of it.
            file: The file.
            placed_at: Its last status change (`st_ctime`), which no program can set.
        """
        # A file that changed twice within a tick of the clock, before and after the overlay was made, has one time.
        written = manifest_of(self.path, lone=False).stat().st_ctime_ns - _TICK
        if max(placed_at, bound.changed_at) < written:
            return True
        # It was copied together with its time, or replaced. Tools that set times set whole seconds on many files alike.
        kept = bound.changed_at < written and bound.changed_at % _SECOND != 0
        return kept and bound.sample in (None, sample_of(file))

    @property
    def name(self) -> str:
        """What it adds, hides or deletes, in short."""
        return self.path.name.partition("-")[2] or self.path.name

    def is_for(self, paths: Iterable[Path], shards: Container[str] = ()) -> bool:
        """Tell whether this overlay applies to one of these files, or to other files of the dataset with these shards.

        It does not apply to a lone file that replaced the one it was made for.
        """
        if any(name in shards for name in self.base):
            return True
        known = [(path, bound) for path in paths if (bound := self._bound(path)) is not None]
        gone = [path for path, bound in known if not shards and bound.is_gone(path)]
        if gone:
            log.info("%s: not applied, because %s was overwritten", self.path, gone[0])
        return len(known) > len(gone)

    @cached_property
    def empty(self) -> bool:
        """Whether it changes nothing."""
        return not (self.schema.names or self.hides or self.deleted)


class Tombstones(Mapping[str, "NDArray[np.int64]"]):
    """The numbers of deleted records, by file.

    They are unpacked on demand, and never to more bits than the file has records.

    Args:
        where: The manifest that contains them.
        base: The files.
        texts: Their bitmaps.
    """

    def __init__(self, where: Path, base: Mapping[str, Base], texts: Mapping[str, str]) -> None:
        self._where = where
        self._base = base
        self._texts = texts
        self._known: dict[str, NDArray[np.int64]] = {}

    def __len__(self) -> int:
        return len(self._texts)

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __getitem__(self, name: str) -> NDArray[np.int64]:
        if name not in self._known:
            try:
                self._known[name] = _numbers(self._texts[name], self._base[name].records)
            except ValueError as error:
                raise _FACTS.error(str(self._where), f"deleted.{name}: {error}") from None
        return self._known[name]


def overlays_of(folder: Path) -> tuple[Overlay, ...]:
    """Load the overlays that are kept in a folder, oldest first."""
    return tuple(Overlay.load(path, folder) for _, path in sorted(numbered_overlays(folder)))


def overlays_over(paths: Sequence[Path], manifest: Manifest | None = None) -> list[Overlay]:
    """Load the overlays that are kept next to these files and apply to them, oldest first.

    Args:
        paths: The files.
        manifest: The manifest of their folder, if it lists them.

    Raises:
        StorageError: The files are in several folders, and an overlay changes which fields readers see.
    """
    folders = list(dict.fromkeys(path.parent for path in paths))
    shards = {shard.name for shard in manifest.shards} if manifest is not None else set()
    found = [overlay for folder in folders for overlay in overlays_of(folder) if overlay.is_for(paths, shards)]
    fields = [overlay for overlay in found if overlay.alters]
    if fields and len(folders) > 1:
        message = (
            f"{fields[0].path}: this overlay belongs to one folder, but files of {len(folders)} folders were opened\n"
            "  Open the folders one at a time, or pass overlays=False."
        )
        raise StorageError(message, path=str(fields[0].path))
    return found


def schema_through(overlays: Sequence[Overlay], base: Schema) -> Schema:
    """Return the fields that readers see of records that contain those of `base`."""
    fields: dict[str, Any] = dict(base.fields)
    sequences: dict[str, Any] = dict(base.sequences)
    for overlay in overlays:
        for name in overlay.hides:
            fields.pop(name, None)
            sequences.pop(name, None)
        fields.update(overlay.schema.fields)
    return Schema(fields, sequences=sequences)


def schema_with(base: Schema, seen: Schema) -> Schema:
    """Return what a file's old records and its appended records, which contain the fields `seen`, have in common.

    A field that appended records lack becomes optional. A field that they have with another type is left out.
    """

    def common(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
        fields = {}
        for name, declared in old.items():
            if name not in new:
                fields[name] = _optional(declared)
            elif declared == new[name]:
                fields[name] = declared
            elif _optional(declared) == _optional(new[name]):
                fields[name] = _optional(declared)
        return fields

    return Schema(common(base.fields, seen.fields), sequences=common(base.sequences, seen.sequences))


def _optional(declared: Any) -> Any:
    changed = copy(declared)
    object.__setattr__(changed, "optional", True)
    return changed


def numbered_overlays(folder: Path) -> Iterable[tuple[int, Path]]:
    overlays = folder / SIDE / "overlays"
    for path in filesystems.children(overlays):
        if found := _NUMBERED.fullmatch(path.name):
            yield int(found[1]), path


def _numbers(text: str, records: int) -> NDArray[np.int64]:
    """Return the numbers in a bitmap for a file with this many records.

    Raises:
        ValueError: It is not a bitmap, or contains numbers of records that do not exist.
    """
    most = -(-records // 8)
    stream = zlib.decompressobj()
    try:
        data = stream.decompress(base64.b64decode(text, validate=True), most + 1)
    except (ValueError, zlib.error):
        message = "expected a compressed bitmap, found other bytes"
        raise ValueError(message) from None
    if len(data) <= most and (not stream.eof or stream.unused_data):
        message = "expected a compressed bitmap, found one that is truncated or followed by other bytes"
        raise ValueError(message)
    numbers = np.flatnonzero(np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little")).astype(np.int64)
    if len(data) > most or (len(numbers) and numbers[-1] >= records):
        message = f"expected numbers below {records:,}, the number of records, found larger ones"
        raise ValueError(message)
    return numbers
