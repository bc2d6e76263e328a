"""Repair: write the intact records of a damaged file to a new file.

docs/format/lost.md describes the list of what was lost.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from recordkit import filesystems, progress, records
from recordkit.codecs import Gap, segments
from recordkit.errors import CorruptRecordError, StorageError, TargetExistsError, WrongFileError
from recordkit.filesystems import LocalFile, fitting, given_path, is_folder, mode_of
from recordkit.storage.format import Manifest, is_lone_file, manifest_of, side_of, targets_of, to_bytes
from recordkit.storage.publish import pending
from recordkit.storage.read import Damage, advice_of, compression_of, diagnosed, walk
from recordkit.storage.write import create
from recordkit.wording import counted, format_size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recordkit.codecs import Compression
    from recordkit.records import Chunk
    from recordkit.schema import Schema

Accept = Literal["unmasked_crc", "zlib_crc", "zero_crc", "big_endian", "lf_to_crlf"]

_KEPT: Final = ("bad_length_crc", "unstable_read", "nested")  # damage that costs no record of this file
_SHOWN: Final = 10
_CHUNK: Final = 1 << 20


@dataclass(frozen=True)
class Repaired:
    """The report of `repair`.

    Attributes:
        src: The damaged file.
        dst: The new file.
        recovered: The number of records in it.
        lost: Ranges of bytes that belong to no record in it, and why.
        notes: Other findings: records that were kept although some of their bytes are wrong, and nested ones.
        advice: What the file seems to be, if that explains the damage, and what to do about it.
    """

    src: str
    dst: str
    recovered: int
    lost: tuple[Damage, ...]
    notes: tuple[Damage, ...] = ()
    advice: str | None = None

    @property
    def lost_bytes(self) -> int:
        """The number of bytes lost: of the file, or of its decompressed content if the damage is there."""
        return sum(damage.length for damage in self.lost)

    @property
    def ok(self) -> bool:
        """Whether nothing was wrong with the source."""
        return not self.lost and not self.notes

    def __str__(self) -> str:
        lines = [f"{self.src}: {counted(self.recovered, 'record')} recovered, now in {self.dst}"]
        if not self.ok and not self.recovered:
            lines = [f"{self.src}: no record is intact; {self.dst} was not written"]
        lines += self.advice.splitlines() if self.advice is not None else []
        if self.ok:
            lines.append("nothing was wrong")
        elif self.lost:
            lines.append(f"{format_size(self.lost_bytes)} lost in {counted(len(self.lost), 'place')}")
        damages = sorted((*self.lost, *self.notes), key=lambda damage: (damage.record, damage.offset))
        lines += [damage.line for damage in damages[:_SHOWN]]
        if damages[_SHOWN:]:
            lines.append(f"and {len(damages) - _SHOWN:,} more")
        return "\n  ".join(line.strip() for line in lines)


def repair(
    src: str | os.PathLike[str],
    dst: str | os.PathLike[str],
    *,
    nested: bool = False,
    overwrite: bool = False,
    accept: Accept | None = None,
    compression: Compression | Literal["same"] = "same",
) -> Repaired:
    """Write every record of a damaged file that is provably intact to a new file.

    The source is not modified. The new file appears under its name once it is complete, and
    `_recordkit/<name>.lost.json` next to it lists what was lost. If no record is intact, nothing is written, and the
    report says why, if the reason is known.

    Args:
        src: One file: plain, gzip or zlib. Repair a dataset one file at a time.
        dst: The new file.
        nested: Whether to keep records found inside the payload of a damaged one. They may be part of its content
            rather than records of this file.
        overwrite: Whether to replace an existing `dst`.
        accept: The way in which all records of the file break the format, as the error about it says: read them as they
            were meant, and write them correctly.
        compression: How to compress `dst`; by default like `src`.

    Raises:
        CorruptRecordError: The file does not break the format in the way that `accept` names.
        WrongFileError: The source is not a TFRecord file, and has no records in it.
        TargetExistsError: `dst` exists, and `overwrite` is False.

    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> data = bytearray(b"".join(records.pack(b"payload-%03d" % i) for i in range(5)))
    >>> data[60] ^= 1
    >>> _ = (folder / "a.tfrecord").write_bytes(data)
    >>> print(repair(folder / "a.tfrecord", folder / "b.tfrecord"))
    /.../a.tfrecord: 4 records recovered, now in /.../b.tfrecord
      27 bytes lost in 1 place
      record 2 at byte 54: the length of a record is damaged, or bytes were inserted or removed
    """
    source, target = _checked(Path(given_path(src)), Path(given_path(dst)))
    file = LocalFile(source)
    try:
        own, wrong = _compression_of(file)
        items = walk(file, own, nested=nested) if accept is None else _accepted(file, own, accept)
        items = _watched(items, file, file.size if own is None else None)
        damages, first = _up_to_a_chunk(items)
        if first is None and damages and own is not None and _has_records(file):
            own, items, damages = None, _watched(walk(file, None, nested=nested), file, file.size), []
        elif first is None and wrong is not None:
            raise wrong
        elif first is None and damages:
            reason = _reason(file) if own is None else None
            return Repaired(str(source), str(target), 0, *_sorted(damages), reason)
        mode = filesystems.permissions_of(source)
        wanted = own if compression == "same" else compression
        with create(target, _schema_of(source), compression=wanted, overwrite=overwrite, mode=mode) as writer:
            for item in items if first is None else chain([first], items):
                if isinstance(item, Damage):
                    damages.append(item)
                else:
                    with progress.silent():
                        writer.write_chunk(item)
    finally:
        file.close()
    advice = None if wrong is None else f"{wrong.summary}\n  {wrong.advice}"
    repaired = Repaired(str(source), str(target), writer.close().records, *_sorted(damages), advice)
    _write_list(target, repaired)
    return repaired


def _compression_of(file: LocalFile) -> tuple[Compression, WrongFileError | None]:
    """Return how a file is compressed, and the error if it looks like something else.

    Only its first bytes may look so, and records may follow them.
    """
    try:
        return compression_of(file), None
    except WrongFileError as error:
        return None, error


def _watched(items: Iterator[Chunk | Damage], file: LocalFile, size: int | None) -> Iterator[Chunk | Damage]:
    """Yield the items, and report how much of the file was read."""
    for item in items:
        done = item.offset + item.length if isinstance(item, Damage) else item.file_offset + item.nbytes
        progress.step(f"repairing {file.name}", done, size, "bytes")
        yield item


def _up_to_a_chunk(items: Iterator[Chunk | Damage]) -> tuple[list[Damage], Chunk | None]:
    """Return the damage before the first records, and those records; None if there are none."""
    damages: list[Damage] = []
    for item in items:
        if not isinstance(item, Damage):
            return damages, item
        damages.append(item)
    return damages, None


def _has_records(file: LocalFile) -> bool:
    """Whether a file that starts like a compressed one holds plain records."""
    return not all(isinstance(item, Damage) for item in walk(file, None))


def _sorted(damages: list[Damage]) -> tuple[tuple[Damage, ...], tuple[Damage, ...]]:
    """Split damage into what was lost and what is only noted."""
    lost = tuple(damage for damage in damages if damage.kind not in _KEPT)
    return lost, tuple(damage for damage in damages if damage.kind in _KEPT)


def _checked(source: Path, target: Path) -> tuple[Path, Path]:
    """Return both paths, after checking that each is one file and that they differ."""
    if is_folder(source):
        message = (
            f"{source}: this is a folder, and repair takes one file at a time\n  Repair each of its damaged files."
        )
        raise StorageError(message, path=str(source))
    if os.path.realpath(source) == os.path.realpath(target) or _is_same(source, target):
        message = (
            f"{target}: this is the damaged file itself, which repair never changes\n"
            "  Choose another name for the new file."
        )
        raise TargetExistsError(message, path=str(target))
    if not is_lone_file(target):
        message = f"{target}: not the name of a record file\n  Give the new file a name such as {target.name}.tfrecord."
        raise StorageError(message, path=str(target))
    pending(*targets_of(source)[-1:])
    return source, target


def _is_same(source: Path, target: Path) -> bool:
    return bool(mode_of(source) and mode_of(target)) and source.samefile(target)


def _schema_of(source: Path) -> Schema | None:
    """The schema of the file, from its own manifest or that of its dataset."""
    for path, lone in ((source, True), (source.parent, False)):
        manifest = Manifest.load(manifest_of(path.absolute(), lone=lone))
        if manifest is not None and any(shard.name == source.name for shard in manifest.shards):
            return manifest.schema
    return None


# --- Files in which all records are wrong


def _reason(file: LocalFile) -> str | None:
    """Return the one reason why all records are damaged and what to do about it; None if there is no such reason."""
    found = diagnosed(file)
    return None if found is None else "\n  ".join(advice_of(found, file.name))


def _accepted(file: LocalFile, compression: Compression, accept: Accept) -> Iterator[Chunk]:
    """Yield the payloads as they were meant. Holds the whole file in memory."""
    data = _content(file, compression)
    found = records.diagnose(data)
    if found is None or found.kind != accept:
        reason = found.words if found is not None else "no single reason explains the damage"
        message = f"{file.name}: accept={accept!r} does not fit this file: {reason}"
        raise CorruptRecordError(message, path=file.name, kind=found.kind if found is not None else None)
    if accept == "lf_to_crlf":
        yield records.chunk(data.replace(b"\r\n", b"\n"), path=file.name)
        return
    view, taken, size = memoryview(data), [], 0
    for offset, length in found.payloads:
        taken.append(view[offset : offset + length])
        size += length
        if size >= _CHUNK:
            yield records.pack_many(taken)
            taken, size = [], 0
    yield records.pack_many(taken)


def _content(file: LocalFile, compression: Compression) -> bytes:
    if compression is None:
        return file.read_at(0, file.size)
    pieces = list(segments(file, compression))
    if any(isinstance(piece, Gap) for piece in pieces):
        message = f"{file.name}: accept= needs the whole file, and this one cannot be decompressed completely"
        raise CorruptRecordError(message, path=file.name)
    return b"".join(piece for piece in pieces if isinstance(piece, bytes))


# --- The list


def _write_list(target: Path, repaired: Repaired) -> None:
    path = side_of(target.absolute(), lone=True) / fitting("", target.name, ".lost.json")
    if repaired.ok:
        filesystems.remove_file(path)  # of an old file of this name
        return
    value: dict[str, Any] = {
        "format": 1,
        "source": os.path.basename(repaired.src),  # noqa: PTH119 - a text
        "recovered": repaired.recovered,
        "lost_bytes": repaired.lost_bytes,
        "lost": [_entry(damage) for damage in repaired.lost],
        "notes": [_entry(damage) for damage in repaired.notes],
    }
    filesystems.refuse_links(path.parent)
    filesystems.replace_file(path, to_bytes(value))
    filesystems.set_mode(path, filesystems.permissions_of(target))


def _entry(damage: Damage) -> dict[str, Any]:
    return {name: value for name, value in asdict(damage).items() if name != "path"}
