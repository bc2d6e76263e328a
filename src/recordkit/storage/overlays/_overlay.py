"""Layers: what was changed about records without touching them. Fields added, fields hidden, records deleted.

A layer is a folder, `_recordkit/overlays/<number>-<name>`, with a manifest of its own; it appears whole or not at all.
Added fields are plain TFRecords of Examples that hold them alone: a file for each file of the base, and a record for
each of its records. A layer is bound to the base by digest, and refuses a base that has changed. It is written down in
docs/format/overlays.md.
"""

from __future__ import annotations

import base64
import errno
import os
import re
import time
import zlib
from collections.abc import Mapping
from contextlib import suppress
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
from recordkit.storage.read import RecordFile, find_beside
from recordkit.storage.staging import lone_manifest
from recordkit.wording import listed

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from recordkit.filesystems import ByteFile
    from recordkit.storage.format import Shard


KEY: Final = "recordkit.layer"  # of a manifest's metadata
AFTER: Final = "after"  # of an entry of a lineage: what a lone file held before more was appended
_NUMBERED: Final = re.compile(r"(\d+)-.+")
_FACTS: Final = declare.Declared(
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
    "Restore it, remove it to do without, or open without: overlays=False.",
)
_TICK: Final = 20_000_000  # nanoseconds, more than one of any clock that gives files their times
_SECOND: Final = 1_000_000_000
_PIECES, _PIECE = 16, 4096


@dataclass(frozen=True)
class Base:
    """What a layer knows of one file of its base.

    Attributes:
        name: The file's name.
        digest: Of its records.
        records: How many they were.
        size: Of the file.
        changed_at: When it was last changed, in nanoseconds; the same time saves a look at all its records.
        sample: The checksum of some of its bytes; None where an earlier version wrote the layer.
    """

    name: str
    digest: str
    records: int
    size: int
    changed_at: int
    sample: str | None = None

    @classmethod
    def of(cls, file: RecordFile) -> Base:
        """Return what binds a layer to a file."""
        local = file.local
        assert local is not None
        facts = local.path.stat()
        if file.shard is not None and facts.st_mtime_ns > _manifest_time(local.path):
            file = RecordFile(LocalFile(local.path))  # the manifest speaks of what was there before
        return cls(
            local.path.name, file.digest, file.count, facts.st_size, facts.st_mtime_ns, sample_of(LocalFile(local.path))
        )

    def is_start_of(self, path: Path) -> bool:
        """Tell whether a lone file is the one that this was, with more records that were appended to it."""
        manifest, shard = lone_shard(path)
        if manifest is None or shard is None:
            return False
        return {"records": self.records, "digest": self.digest} in [of.get(AFTER) for of in manifest.lineage]

    def is_gone(self, path: Path) -> bool:
        """Tell whether another lone file was written in the place of this one, with a manifest of its own."""
        facts = path.stat()
        if (facts.st_size, facts.st_mtime_ns) == (self.size, self.changed_at):
            return False
        _, shard = lone_shard(path)
        return shard is not None and shard.digest != self.digest and not self.is_start_of(path)


def sample_of(file: ByteFile) -> str:
    """Return the checksum of 16 pieces of a file that lie evenly over it; of all of it up to 64 KiB."""
    last = max(0, file.size - _PIECE)
    pieces = [file.read_at(last * part // (_PIECES - 1), _PIECE) for part in range(_PIECES)]
    return f"{_core.crc32c(b''.join(pieces)):08x}"


def lone_shard(path: Path) -> tuple[Manifest | None, Shard | None]:
    """Return the manifest of a lone file and what it says of it, None twice if it is not of the file that is there."""
    where = lone_manifest(path)
    manifest = Manifest.load(where)
    if manifest is None or len(manifest.shards) != 1 or manifest.shards[0].bytes != path.stat().st_size:
        return None, None
    (shard,) = manifest.shards
    # The manifest gets its name after the file has got its bytes.
    if path.stat().st_mtime_ns > where.stat().st_ctime_ns and RecordFile(LocalFile(path)).digest != shard.digest:
        return None, None
    return manifest, shard


def _manifest_time(path: Path) -> int:
    """Return when the manifest that rules a file was last changed."""
    manifests = manifest_of(path.parent, lone=False), manifest_of(path, lone=True)
    return max((manifest.stat().st_mtime_ns for manifest in manifests if manifest.is_file()), default=0)


@dataclass(frozen=True)
class Layer:
    """One change to records that are not touched by it.

    Attributes:
        path: Its folder.
        schema: The fields it adds.
        base: What it is bound to, by file name.
        files: The files with the added fields, by name of the base's file.
        hides: The fields that are not seen through it, those that it replaces included.
        deleted: The numbers of deleted records, in rising order, by name of the base's file.
        home: The folder of the base, for a layer that is kept there; None for one that is kept elsewhere.
    """

    path: Path
    schema: Schema
    base: Mapping[str, Base]
    files: Mapping[str, RecordFile]
    hides: frozenset[str]
    deleted: Mapping[str, NDArray[np.int64]]
    home: Path | None = None

    @classmethod
    def load(cls, path: Path, home: Path | None = None) -> Layer:
        """Return the layer in a folder, which is kept with the files of `home` or elsewhere.

        Raises:
            StorageError: It is none.
        """
        where = manifest_of(path, lone=False)
        manifest = Manifest.load(where)
        facts = manifest.metadata.get(KEY) if manifest is not None else None
        if manifest is None or facts is None:
            message = f"{path}: this is no overlay\n  One is made by recordkit.add_fields(..., overlay={str(path)!r})."
            raise StorageError(message, path=str(path), errno=None if path.exists() else errno.ENOENT)
        _FACTS.check(facts, str(where))
        base = {entry["name"]: Base(**entry) for entry in facts["base"]}
        open_files = OpenFiles.of(len(manifest.shards))
        layer = cls(
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
        layer._check_fits(where, facts, manifest)
        return layer

    def _check_fits(self, where: Path, facts: Mapping[str, Any], manifest: Manifest) -> None:
        """Raise if the parts of the manifest do not belong together."""
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
        """Raise if a file of this layer is not the one that was written, cut or changed places with another."""
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
        # Whatever happened to it behind our back happened after the manifest was written, or before all was copied:
        # then the index beside it is not of this file.
        written = manifest_of(self.path, lone=False).stat().st_ctime_ns
        untouched = facts.st_ctime_ns < written and find_beside(local, file.compression) is not None  # see `settle`
        if not untouched and RecordFile(LocalFile(local.path)).digest != shard.digest:
            raise self._damaged(file, "these are not the records that were written")

    def check(self, file: RecordFile) -> None:
        """Raise if a file of the base is not what this layer was made for.

        Raises:
            StorageError: The file has changed, or is none of those.
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
            return  # it rotted where it lies: reading tells of the damage, or skips it where that was asked for
        if changed:
            message = (
                f"{file.name}: the file has changed since the overlay {self.path.name} was made for it\n"
                f"  Its fields would no longer belong to the records: add them again, or open without: overlays=False."
            )
            raise StorageError(message, path=file.name)

    def unknown(self, name: str) -> StorageError:
        """Return the error for a file that this layer is not for."""
        added, hidden = listed(self.schema.names), listed(sorted(self.hides))
        todo = f"add {added} to" if added else f"drop {hidden} from"
        message = (
            f"{name}: the overlay {self.path.name} knows nothing of this file\n"
            f"  Other files were changed, and this one was not: {todo} it, too, or open without: overlays=False."
        )
        return StorageError(message, path=name)

    def knows(self, path: Path) -> bool:
        """Tell whether this layer is for the file of this name."""
        return self._bound(path) is not None

    @property
    def paths(self) -> tuple[Path, ...]:
        """All its folders; those that are several lone files' have one for each file."""
        return (self.path,)

    def _bound(self, path: Path) -> Base | None:
        """Return what this layer knows of a file, None if it is not for it."""
        return self.base.get(path.name) if self.home in (None, path.parent) else None

    def covers(self, file: RecordFile) -> int:
        """Return how many records of a file, from its first on, this layer is for.

        Those behind them were appended when the layer was there: they hold themselves what is seen of them.

        Raises:
            StorageError: The file has changed otherwise, or is none of those.
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
        """Whether other fields are seen through it than without."""
        return bool(self.schema.names or self.hides)

    def _is_surely(self, bound: Base, file: LocalFile, placed_at: int) -> bool:
        """Tell whether a file of the base's size and time need not be looked at further.

        Args:
            bound: What is known of it.
            file: The file.
            placed_at: When the system says that it was put there or changed, which no program can set.
        """
        # A file that changed twice within a tick of the clock has one time, before the layer was made and after.
        written = manifest_of(self.path, lone=False).stat().st_ctime_ns - _TICK
        if max(placed_at, bound.changed_at) < written:
            return True
        # It was copied together with its time, or replaced. A whole second was set by a tool, on many files alike.
        kept = bound.changed_at < written and bound.changed_at % _SECOND != 0
        return kept and bound.sample in (None, sample_of(file))

    @property
    def name(self) -> str:
        """What it adds, hides or deletes, in a word."""
        return self.path.name.partition("-")[2] or self.path.name

    def is_for(self, paths: Iterable[Path], shards: Container[str] = ()) -> bool:
        """Tell whether this layer is for one of some files, or for others of the dataset that has these shards.

        It is not for a lone file that was written over the one it was made for.
        """
        if any(name in shards for name in self.base):
            return True
        known = [(path, bound) for path in paths if (bound := self._bound(path)) is not None]
        gone = [path for path, bound in known if not shards and bound.is_gone(path)]
        if gone:
            log.info("%s: left out, for %s was written anew", self.path, gone[0])
        return len(known) > len(gone)

    @cached_property
    def empty(self) -> bool:
        """Whether it changes nothing."""
        return not (self.schema.names or self.hides or self.deleted)


class Tombstones(Mapping[str, "NDArray[np.int64]"]):
    """The numbers of deleted records, by file.

    They are unpacked when they are asked for, and never to more than the file has records.

    Args:
        where: The manifest that has them.
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


def layers_of(folder: Path) -> tuple[Layer, ...]:
    """Return the layers that are kept with the files of a folder, oldest first."""
    return tuple(Layer.load(path, folder) for _, path in sorted(_numbered(folder)))


def layers_over(paths: Sequence[Path], manifest: Manifest | None = None) -> list[Layer]:
    """Return the layers that are kept with some files and are for them, oldest first.

    Args:
        paths: The files.
        manifest: That of their folder, where it rules them.

    Raises:
        StorageError: Files of several folders are seen differently through them.
    """
    folders = list(dict.fromkeys(path.parent for path in paths))
    shards = {shard.name for shard in manifest.shards} if manifest is not None else set()
    found = [layer for folder in folders for layer in layers_of(folder) if layer.is_for(paths, shards)]
    fields = [layer for layer in found if layer.alters]
    if fields and len(folders) > 1:
        message = (
            f"{fields[0].path}: this was changed about the files of one folder, and {len(folders)} are opened together"
            "\n  Open them one by one, or without: overlays=False."
        )
        raise StorageError(message, path=str(fields[0].path))
    return found


def schema_through(layers: Sequence[Layer], base: Schema) -> Schema:
    """Return the fields that are seen of records that have those of `base`."""
    fields: dict[str, Any] = dict(base.fields)
    sequences: dict[str, Any] = dict(base.sequences)
    for layer in layers:
        for name in layer.hides:
            fields.pop(name, None)
            sequences.pop(name, None)
        fields.update(layer.schema.fields)
    return Schema(fields, sequences=sequences)


def schema_with(base: Schema, seen: Schema) -> Schema:
    """Return what a file's old records hold and also those that were appended with the fields that are seen.

    A field that they lack may be missing. One that they have with another type is in none.
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


def _numbered(folder: Path) -> Iterable[tuple[int, Path]]:
    overlays = folder / SIDE / "overlays"
    for path in filesystems.children(overlays):
        if found := _NUMBERED.fullmatch(path.name):
            yield int(found[1]), path


def new_layer(folder: Path, name: str, *, sync: bool = True) -> Path:
    """Return where the next layer of a folder goes: where one of this name was begun, or behind all others.

    The folder for layers is made, and lasts.
    """
    slug = re.sub(r"[^A-Za-z0-9._+-]+", "_", name)[:80].strip("._-") or "layer"
    overlays = folder / SIDE / "overlays"
    filesystems.refuse_links(overlays.parent, overlays)
    filesystems.make_folder(overlays, sync=sync)
    # Whoever made it may not have lived to see it on the disk.
    for parent in (overlays.parent, folder):
        filesystems.sync_folder(parent, sync=sync)
    last = max((number for number, _ in _numbered(folder)), default=0)
    for staging in sorted(overlays.glob(f".[0-9]*-{slug}.recordkit")):
        target = overlays / staging.name[1 : -len(".recordkit")]
        number, _, begun = target.name.partition("-")
        if begun == slug and int(number) > last:
            return target
    return overlays / f"{last + 1:04d}-{slug}"


def settle(path: Path) -> None:
    """See to it that the manifest of a new layer is younger than its files: so they are known to be untouched.

    The system's clock for files moves in steps of some milliseconds.
    """
    manifest = manifest_of(path, lone=False)
    with suppress(FileNotFoundError):  # somebody has removed it since
        youngest = max((file.stat().st_ctime_ns for file in path.iterdir() if file.is_file()), default=0)
        for _ in range(100):
            if manifest.stat().st_ctime_ns > youngest:
                return
            time.sleep(0.001)
            os.utime(manifest)


def write_layer(path: Path, facts: Mapping[str, Any], *, sync: bool = True, mode: int | None = None) -> Path:
    """Write a layer that has no records of its own, whole or not at all, and return its folder.

    Args:
        path: Its folder.
        facts: What is changed.
        sync: Whether it lasts.
        mode: The permissions of its files.
    """
    staged = path.with_name(f".{path.name}.recordkit")
    filesystems.remove_tree(staged)
    manifest = manifest_of(staged, lone=False)
    filesystems.make_folder(manifest.parent, sync=sync, mode=mode)
    filesystems.write_new(manifest, Manifest(schema=None, shards=(), metadata=facts).to_json(), sync=sync)
    filesystems.set_mode(manifest, mode)
    filesystems.sync_folder(manifest.parent, sync=sync)
    filesystems.sync_folder(staged, sync=sync)
    filesystems.rename_for_good(staged, path, sync=sync)
    return path


def remove_layer(path: Path, *, sync: bool = True) -> None:
    """Take a layer away, at once as far as anyone can see."""
    filesystems.refuse_links(path.parent.parent, path.parent)
    aside = path.with_name(f".{path.name}.removed")
    filesystems.remove_tree(aside)
    # It lasts before anything in it goes: half of it must not come back under the old name.
    filesystems.rename_for_good(path, aside, sync=sync)
    try:
        filesystems.remove_tree(aside)
    except StorageError as error:
        log.warning("%s: it is gone, and what was in it could not be removed: %s", path, error)


def forget(path: Path) -> None:
    """Remove what is kept beside the lone file that was there before under this name."""
    overlays = path.parent / SIDE / "overlays"
    gone = list(overlays.glob(".[0-9]*.removed"))  # by a run that did not live to finish
    for _, layer in sorted(_numbered(path.parent)):
        try:
            if Layer.load(layer, path.parent).base.keys() == {path.name}:
                remove_layer(layer)
        except StorageError as error:
            log.warning("%s: it was for a file that was written anew, and could not be removed: %s", layer, error)
    with suppress(StorageError):  # what is left of them is in nobody's way
        for aside in gone:
            filesystems.remove_tree(aside)


def layer_facts(
    base: Sequence[Base],
    *,
    hides: Iterable[str] = (),
    deleted: Mapping[str, NDArray[np.int64]] | None = None,
    values: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Return what the manifest of a layer says of it, as metadata.

    Args:
        base: What it is bound to.
        hides: The fields that are not seen through it.
        deleted: The numbers of deleted records, by file name.
        values: What tells the values it was made of from others, by field.
    """
    return {
        KEY: {
            "base": [vars(of) for of in base],
            "hides": sorted(hides),
            "deleted": {name: _text(numbers) for name, numbers in (deleted or {}).items()},
            **({"values": dict(values)} if values else {}),
        }
    }


def is_other(begun: Mapping[str, Any], facts: Mapping[str, Any]) -> bool:
    """Tell whether two layers, by their metadata, are not for the same records."""
    return KEY in begun and KEY in facts and begun[KEY] != facts[KEY]


def _text(numbers: NDArray[np.int64]) -> str:
    """Return a bitmap of the numbers, compressed, as text."""
    bits = np.zeros(int(numbers[-1]) + 1 if len(numbers) else 0, np.bool_)
    bits[numbers] = True
    return base64.b64encode(zlib.compress(np.packbits(bits, bitorder="little").tobytes())).decode()


def _numbers(text: str, records: int) -> NDArray[np.int64]:
    """Return the numbers that a bitmap has, of so many records.

    Raises:
        ValueError: It is no bitmap, or has numbers of records that are not there.
    """
    most = -(-records // 8)
    stream = zlib.decompressobj()
    try:
        data = stream.decompress(base64.b64decode(text, validate=True), most + 1)
    except (ValueError, zlib.error):
        message = "expected a bitmap, compressed, found other bytes"
        raise ValueError(message) from None
    if len(data) <= most and (not stream.eof or stream.unused_data):
        message = "expected a bitmap, compressed, found one that is cut or has bytes behind it"
        raise ValueError(message)
    numbers = np.flatnonzero(np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little")).astype(np.int64)
    if len(data) > most or (len(numbers) and numbers[-1] >= records):
        message = f"expected numbers below {records:,}, as many as there are records, found larger ones"
        raise ValueError(message)
    return numbers
