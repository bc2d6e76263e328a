"""Append: examines the dataset or file that records will be added to."""

from __future__ import annotations

import errno
import os
import zlib
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any, Literal, cast

import numpy as np

from recordkit import _core, records
from recordkit.codecs import COMPRESSED, codec_of
from recordkit.errors import CorruptRecordError, StorageError, record_place
from recordkit.filesystems import LocalFile
from recordkit.schema import Schema
from recordkit.storage.format import SIDE, Fingerprint, IndexBuilder, Manifest, inside, manifest_of, new_digest
from recordkit.storage.overlays import overlays_over, schema_through
from recordkit.storage.read import RecordFile, starts_record

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from recordkit.codecs import Compression
    from recordkit.records import Chunk
    from recordkit.storage.format import Shard
    from recordkit.storage.overlays import Overlay

_PIECE = 1 << 20
_FRAME = np.uint64(16)


@dataclass
class AppendTarget:
    """The dataset or lone file to append to.

    Attributes:
        schema: The fields that a reader sees, with overlays applied; None if the records are not Examples.
        manifest: None for a file that other programs wrote.
        facts: Of a lone file.
        fingerprint: Of a lone file, to detect changes.
        layers: The overlays.
    """

    schema: Schema | None
    manifest: Manifest | None
    facts: RecordSums
    fingerprint: Fingerprint
    layers: Sequence[Overlay]

    @property
    def compression(self) -> Compression:
        """How a lone file is compressed."""
        return self.facts.compression

    @property
    def shards(self) -> tuple[Shard, ...]:
        """The shards of a dataset."""
        return self.manifest.shards if self.manifest is not None else ()


def of_folder(target: Path) -> AppendTarget:
    """Examine a dataset folder."""
    where = manifest_of(target, lone=False)
    manifest = Manifest.load(where)
    if manifest is None:
        message = f"{target}: not a dataset of recordkit\n  It has no {SIDE}/manifest.json to add shards to."
        raise StorageError(message, path=str(target), errno=None if os.path.lexists(target) else errno.ENOENT)
    layers = overlays_over([inside(target, shard.name, where) for shard in manifest.shards], manifest)
    return AppendTarget(_seen(layers, manifest.schema), manifest, RecordSums(None), Fingerprint(0, 0, 0), layers)


def _seen(layers: Sequence[Overlay], schema: Schema | None) -> Schema | None:
    return schema if schema is None else schema_through(layers, schema)


def of_file(target: Path, *, cut_torn_tail: bool) -> AppendTarget:
    """Read and check all of a lone file.

    Raises:
        StorageError: It does not exist, is damaged, or ends in a torn record that may not be cut off.
    """
    if not target.is_file():
        message = f"{target}: there is no such file\n  recordkit.create writes a new one."
        raise StorageError(message, path=str(target), errno=errno.ENOENT)
    fingerprint = Fingerprint.of(target)
    manifest = Manifest.load(manifest_of(target, lone=True))
    facts = RecordSums(compression_of(target))
    facts.read(target, cut_torn_tail=cut_torn_tail)
    if manifest is not None and [(shard.bytes, shard.crc32c) for shard in manifest.shards] != [
        (facts.bytes, f"{facts.crc:08x}")
    ]:
        manifest = None  # describes another file that had this name before
    layers = overlays_over([target])
    file = RecordFile(LocalFile(target))
    own = min((layer.covers(file) for layer in layers if layer.alters), default=facts.records)
    schema = manifest.schema if manifest is not None else None
    if schema is None and facts.first is not None:
        schema = _inferred_schema(facts.first.slice(0, own))
    return AppendTarget(_seen(layers, schema), manifest, facts, fingerprint, layers)


def _inferred_schema(first: Chunk) -> Schema | None:
    """Infer the schema from the first records; None if they are not Examples."""
    try:
        return Schema.infer(first)
    except ValueError:
        return None


@dataclass
class RecordSums:
    """Sums over the records of a file, once all of them were read.

    Attributes:
        compression: How the file is compressed.
        bytes: Where the last intact record ends in the file.
    """

    compression: Compression
    bytes: int = 0
    raw_bytes: int = 0
    records: int = 0
    crc: int = 0
    digest: Any = field(default_factory=new_digest)
    index: IndexBuilder = field(default_factory=IndexBuilder)
    first: Chunk | None = None  # to infer the schema from

    def read(self, path: Path, *, cut_torn_tail: bool = False) -> None:
        """Add the records of a file.

        Raises:
            StorageError: The file is damaged, or its last record is torn and `cut_torn_tail` is False.
        """
        if codec_of(self.compression).in_members:
            self._read_gzip(path, cut_torn_tail=cut_torn_tail)
        else:
            self._read_plain(path, cut_torn_tail=cut_torn_tail)

    def _read_plain(self, path: Path, *, cut_torn_tail: bool) -> None:
        with path.open("rb") as file:
            try:
                for chunk in records.Reader(file):
                    self._take(chunk)
                    self.crc = _core.crc32c_combine(self.crc, chunk.crc32c(), chunk.nbytes)
                    self.bytes += chunk.nbytes
            except CorruptRecordError as error:
                if error.kind in ("torn_header", "torn_payload") and cut_torn_tail:
                    return
                raise _unsound(path, error) from None

    def _read_gzip(self, path: Path, *, cut_torn_tail: bool) -> None:
        members, file_end, raw_end, ending = _members(path)
        if ending == "damaged" or (ending == "torn" and not (cut_torn_tail and file_end)):
            if ending == "damaged":
                words = f"the gzip member at byte {file_end:,} is damaged"
                advice = "Appending would lose the records after the damage: repair the file first (recordkit.repair)."
            elif file_end:
                words = f"the last gzip member is torn; {file_end:,} bytes before it are intact"
                advice = "Pass cut_torn_tail=True to cut it off and append after them."
            else:
                words = "the only gzip member is torn"
                advice = "Cutting it off would leave nothing: recover its records, and write a new file."
            message = f"{path}: {words}\n  {advice}"
            raise StorageError(message, path=str(path))
        with path.open("rb") as file:
            before = self.records, self.raw_bytes
            lengths = [np.empty(0, np.uint64)]
            try:
                for chunk in records.Reader(cast("IO[bytes]", _Unzipped(file, raw_end))):
                    self._take(chunk)
                    lengths.append(chunk.lengths)
            except CorruptRecordError as error:
                raise _unsound(path, error) from None
        ends = np.cumsum(np.concatenate(lengths) + _FRAME)
        for file_start, raw_start in members:
            record = int(np.searchsorted(ends, np.uint64(raw_start), side="right"))
            self.index.add_member(self.bytes + file_start, before[1] + raw_start, before[0] + record)
        with path.open("rb") as file:
            left = file_end
            while left:
                piece = file.read(min(left, _PIECE))
                self.crc = _core.crc32c(piece, self.crc)
                left -= len(piece)
        self.bytes += file_end

    def _take(self, chunk: Chunk) -> None:
        if self.first is None:
            self.first = chunk
        self.digest.update(chunk.identity())
        self.index.add(chunk.lengths)
        self.records += len(chunk)
        self.raw_bytes += chunk.nbytes


def compression_of(path: Path) -> Compression:
    """Return how a file is compressed, from its bytes.

    Raises:
        StorageError: It is a ZLIB file, which cannot be appended to.
    """
    with path.open("rb") as file:
        start = file.read(12)
    if starts_record(start):
        return None
    for codec in COMPRESSED:
        if not codec.recognises(start):
            continue
        if not codec.appendable:
            message = (
                f"{path}: a ZLIB file is one stream, and TensorFlow would not see a second one\n"
                "  Write a new file instead, or use gzip."
            )
            raise StorageError(message, path=str(path))
        return codec.name
    return None


class _Unzipped:
    """The first `size` uncompressed bytes of a gzip file."""

    def __init__(self, file: IO[bytes], size: int) -> None:
        self._file = file
        self._left = size
        self._stream = zlib.decompressobj(31)
        self._data = b""

    def readinto(self, buffer: Any) -> int:
        """Put the next bytes into the buffer, and return how many."""
        view = memoryview(buffer).cast("B")
        while self._left:
            piece = self._stream.decompress(self._data, min(len(view), self._left))
            self._data = self._stream.unconsumed_tail
            if self._stream.eof:
                self._data = self._stream.unused_data
                self._stream = zlib.decompressobj(31)
            if piece:
                view[: len(piece)] = piece
                self._left -= len(piece)
                return len(piece)
            if not self._data:
                self._data = self._file.read(_PIECE)
                if not self._data:
                    break
        return 0


def _members(path: Path) -> tuple[list[tuple[int, int]], int, int, Literal["whole", "torn", "damaged"]]:
    """Return where members start and the last complete one ends, in the file and raw, and what follows it.

    A file that ends inside a member is torn. Bytes that are not gzip are damage, since more members may follow them.
    """
    starts: list[tuple[int, int]] = []
    file_end, raw_end = 0, 0
    with path.open("rb") as file:
        stream, data, raw, read = zlib.decompressobj(31), b"", 0, 0
        while True:
            if not data:
                data = file.read(_PIECE)
                read += len(data)
                if not data:
                    return starts, file_end, raw_end, "whole" if read == file_end else "torn"
            try:
                raw += len(stream.decompress(data, _PIECE))
            except zlib.error:
                return starts, file_end, raw_end, "damaged"
            data = stream.unconsumed_tail
            if stream.eof:
                data = stream.unused_data
                starts.append((file_end, raw_end))
                file_end, raw_end = read - len(data), raw
                stream = zlib.decompressobj(31)


def _unsound(path: Path, error: CorruptRecordError) -> StorageError:
    # The reader names a plain file itself; of a gzip file it sees only the uncompressed bytes.
    torn = error.kind in ("torn_header", "torn_payload")
    advice = (
        "Pass cut_torn_tail=True to cut it off and append after the records before it."
        if torn
        else "Appending would lose the records after the damage: repair the file first (recordkit.repair)."
    )
    place = record_place(str(path), error.record, error.offset)
    return StorageError(error.summary, place=place, advice=advice, path=str(path))
