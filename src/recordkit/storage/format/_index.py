"""Index: where every record of a shard starts, in at most about four bytes a record.

Blocks of 1,024 records hold what each frame is longer than the shortest one of the block, in as few bytes as that
takes. Every block has a checksum, and the whole is bound to its file by size and by checksums of its two ends.
The format is written down in docs/format/index.md.

Anybody can write an index with right checksums. So its numbers are checked too: frames follow each other without a gap
and without overlap, from the first byte of the records to the last.
"""

from __future__ import annotations

import io
import os
import struct
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Final

import numpy as np

from recordkit import _core
from recordkit.errors import StorageError
from recordkit.filesystems import LocalFile, open_regular

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path
    from typing import Self

    from numpy.typing import NDArray

    from recordkit.filesystems import ByteFile

BLOCK: Final = 1024
MAGIC: Final = b"RKINDEX1"
_HEADER: Final = struct.Struct("<8sIIQQQIIQII")
_DIRECTORY: Final = np.dtype([("start", "<u8"), ("at", "<u8"), ("least", "<u8"), ("width", "<u4"), ("crc", "<u4")])
_MEMBER: Final = np.dtype([("file", "<u8"), ("raw", "<u8"), ("record", "<u8")])
_ENDS: Final = 4096
_FRAME: Final = 16
_WIDTHS: Final = (0, 1, 2, 4, 8)
_MOST: Final = (1 << 63) - 1


@dataclass(frozen=True)
class Fingerprint:
    """Tells versions of a file apart, from its size and its two ends."""

    size: int
    first: int
    last: int

    @classmethod
    def of(cls, path: Path) -> Self:
        """Return the fingerprint of a file."""
        return cls.of_bytes(LocalFile(path))

    @classmethod
    def of_bytes(cls, file: ByteFile) -> Self:
        """Return the fingerprint of any file that can be read."""
        size = file.size
        first, last = file.read_at(0, _ENDS), file.read_at(max(0, size - _ENDS), _ENDS)
        return cls(size, _core.crc32c(first), _core.crc32c(last))

    @classmethod
    def of_joined(cls, path: Path, size: int, more: Path) -> Self:
        """Return the fingerprint of the first `size` bytes of a file followed by another file."""
        with path.open("rb") as file, more.open("rb") as other:
            added = other.seek(0, 2)
            other.seek(0)
            first = file.read(min(size, _ENDS)) + other.read(_ENDS)
            other.seek(max(0, added - _ENDS))
            last = other.read(_ENDS)
            file.seek(max(0, size - _ENDS))
            last = file.read(min(size, _ENDS)) + last
            return cls(size + added, _core.crc32c(first[:_ENDS]), _core.crc32c(last[-_ENDS:]))


class IndexBuilder:
    """Collects the lengths of records as they are written."""

    def __init__(self) -> None:
        self._lengths: list[NDArray[np.uint64]] = []
        self._members: list[tuple[int, int, int]] = []

    def add(self, lengths: NDArray[np.uint64]) -> None:
        """Add the lengths of the next payloads."""
        self._lengths.append(lengths)

    def add_member(self, file: int, raw: int, record: int) -> None:
        """Note that a gzip member starts at byte `file`, with byte `raw` of the records and record `record`."""
        self._members.append((file, raw, record))

    def to_bytes(self, fingerprint: Fingerprint) -> bytes:
        """Return the index file."""
        lengths = np.concatenate(self._lengths) if self._lengths else np.empty(0, np.uint64)
        frames = lengths + np.uint64(_FRAME)
        members = np.array(self._members, dtype=_MEMBER).tobytes()
        directory = np.zeros(-(-len(frames) // BLOCK), _DIRECTORY)
        starts = np.concatenate([np.zeros(1, np.uint64), np.cumsum(frames)])
        blocks = []
        at = _HEADER.size + directory.nbytes
        for b in range(len(directory)):
            block = frames[b * BLOCK : (b + 1) * BLOCK]
            least = block.min()
            above = block - least
            width = _width(int(above.max()))
            packed = above.astype(f"<u{width}").tobytes() if width else b""
            directory[b] = (starts[b * BLOCK], at, least, width, _core.crc32c(packed))
            blocks.append(packed)
            at += len(packed)
        table = directory.tobytes()
        header = _HEADER.pack(
            MAGIC,
            BLOCK,
            fingerprint.first,
            len(frames),
            int(starts[-1]),
            fingerprint.size,
            fingerprint.last,
            _core.crc32c(table),
            len(self._members),
            _core.crc32c(members),
            0,
        )
        header = header[:-4] + struct.pack("<I", _core.crc32c(header[:-4]))
        return b"".join([header, table, *blocks, members])


def _width(largest: int) -> int:
    """Return how many bytes numbers up to `largest` take: 0, 1, 2, 4 or 8."""
    return next(width for width in _WIDTHS if largest < 1 << (8 * width))


_BUFFER_BYTES = 1 << 20
_NEAR = 4  # blocks to one that is wanted, on average


class OtherFile(ValueError):  # noqa: N818 - the index is sound
    """The index belongs to another file, or to this one before it changed."""


class Index:
    """The index of one shard, read a block at a time. No file stays open.

    Args:
        source: The index file, or its bytes.
        fingerprint: That of the shard as it is now.
        name: What to call it in errors; by default the path, or "the index".

    Attributes:
        directory: Where each block starts, in the file of records and in the index, and how it is packed.

    Raises:
        OtherFile: It belongs to another file.
        ValueError: It is damaged, or its numbers cannot be true.
    """

    def __init__(self, source: Path | bytes, fingerprint: Fingerprint, *, name: str | None = None) -> None:
        self._source = source
        self.path = name or ("the index" if isinstance(source, bytes) else str(source))
        with self._opened() as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(0)
            data = file.read(_HEADER.size)
            if (
                len(data) < _HEADER.size
                or data[:8] != MAGIC
                or _core.crc32c(data[:-4]) != int.from_bytes(data[-4:], "little")
            ):
                message = f"{self.path}: not a valid index"
                raise ValueError(message)
            _, block, first, self.records, self.raw_bytes, of, last, table_crc, members, members_crc, _ = (
                _HEADER.unpack(data)
            )
            if Fingerprint(of, first, last) != fingerprint:
                message = f"{self.path}: the index of another file, or of this one before it changed"
                raise OtherFile(message)
            table_bytes = -(-self.records // BLOCK) * _DIRECTORY.itemsize
            members_at = size - members * _MEMBER.itemsize
            # Before anything is made that is as large as they say.
            words = None
            if block != BLOCK or self.records * _FRAME > self.raw_bytes or self.raw_bytes > _MOST:
                words = f"{self.records:,} records in {self.raw_bytes:,} bytes, {block:,} a block"
            elif _HEADER.size + table_bytes > members_at:
                words = f"{self.records:,} records and {members:,} members in {size:,} bytes of index"
            if words is not None:
                raise self._impossible(words)
            table = file.read(table_bytes)
        if _core.crc32c(table) != table_crc:
            message = f"{self.path}: the directory of the index is damaged"
            raise ValueError(message)
        self.directory = np.frombuffer(table, _DIRECTORY)
        self._spans = self._checked_spans(members_at)
        self._members = (members, members_crc)

    def _impossible(self, words: str) -> ValueError:
        return ValueError(f"{self.path}: the numbers of the index cannot be true: {words}")

    def _checked_spans(self, members_at: int) -> NDArray[np.uint64]:
        """Return how many bytes of records each block covers; together they cover all bytes exactly."""
        table = self.directory
        starts, least, widths = table["start"], table["least"], table["width"].astype(np.uint64)
        edges = np.append(starts, np.uint64(self.raw_bytes))
        counts = np.full(len(table), BLOCK, np.uint64)
        counts[-1:] = self.records - (len(table) - 1) * BLOCK
        spans: NDArray[np.uint64] = edges[1:] - edges[:-1]
        sizes = widths * counts
        kept = np.cumsum(sizes) + np.uint64(_HEADER.size + table.nbytes)
        kept_to = int(kept[-1]) if len(kept) else _HEADER.size
        words = None
        if edges[0] or (edges[1:] < edges[:-1]).any():
            words = "its blocks do not follow each other"
        elif not np.isin(widths, _WIDTHS).all() or (least < _FRAME).any() or (least > spans // counts).any():
            words = "the lengths of its records"
        elif not np.array_equal(table["at"], kept - sizes) or kept_to != members_at:
            words = "where it keeps them"
        if words is not None:
            raise self._impossible(words)
        return spans

    def __len__(self) -> int:
        return int(self.records)

    def equals(self, other: Index) -> bool:
        """Tell whether two indexes are the same, by the checksums of their blocks."""
        return self.records == other.records and np.array_equal(self.directory, other.directory)

    def _opened(self, buffering: int = 0) -> IO[bytes]:
        if isinstance(self._source, bytes):
            return io.BytesIO(self._source)
        try:
            return os.fdopen(open_regular(self._source), "rb", buffering)
        except StorageError as error:
            raise ValueError(error.headline) from None

    def block(self, number: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Return where the records of a block start, and how long their frames are.

        Raises:
            ValueError: The block is damaged.
        """
        start, least, width, above = next(self.packed([number]))
        frames = np.full(self._count(number), least, np.uint64)
        if width:
            frames += np.frombuffer(above, f"<u{width}")
        return np.cumsum(frames) - frames + np.uint64(start), frames

    def packed(self, numbers: Sequence[int]) -> Iterator[tuple[int, int, int, bytes]]:
        """Yield blocks as they are stored: first start, smallest size, and how far each size exceeds it.

        The index is opened once, and read in large pieces if they are near.
        """
        near = len(numbers) > 1 and numbers[-1] - numbers[0] < _NEAR * len(numbers)
        with self._opened(_BUFFER_BYTES if near else 0) as file:
            for number in numbers:
                start, at, least, width, crc = self.directory[number].item()
                above = b""
                if width:
                    file.seek(at)
                    above = file.read(self._count(number) * width)
                if _core.crc32c(above) != crc:
                    message = f"{self.path}: block {number} of the index is damaged"
                    raise ValueError(message)
                if not self._adds_up(number, least, width, above):
                    words = f"the lengths of its records in block {number}"
                    raise self._impossible(words)
                yield start, least, width, above

    def _adds_up(self, number: int, least: int, width: int, above: bytes) -> bool:
        """Whether the records of a block take exactly the bytes that the block covers."""
        count = self._count(number)
        rest = int(self._spans[number]) - least * count
        if not width or len(above) != count * width:
            return not width and not rest
        more = np.frombuffer(above, f"<u{width}")
        # The sum of wide ones could be too large for its type.
        return (width < 8 or int(more.max()) <= rest) and int(more.sum(dtype=np.uint64)) == rest

    def _count(self, number: int) -> int:
        return int(min(BLOCK, self.records - number * BLOCK))

    def members(self) -> NDArray[np.void]:
        """Return where the gzip members start: fields `file`, `raw` and `record`."""
        count, crc = self._members
        size = count * _MEMBER.itemsize
        with self._opened() as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - size))
            data = file.read(size)
        if len(data) != size or _core.crc32c(data) != crc:
            message = f"{self.path}: the member table of the index is damaged"
            raise ValueError(message)
        return np.frombuffer(data, _MEMBER)
