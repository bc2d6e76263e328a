"""
The C++ core of recordkit: facts and hot loops, without the sentences of errors.
"""

from collections.abc import (
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
    Set
)
from typing import Any

import numpy
import numpy.typing
from typing_extensions import Buffer


def exchange(a: bytes, b: bytes) -> int:
    """Swap two paths atomically. Return 0 or the errno."""

def rename_new(source: bytes, target: bytes) -> int:
    """Rename unless the target exists. Return 0 or the errno."""

def preallocate(descriptor: int, offset: int, size: int) -> int:
    """
    Reserve disk space for a range of a file that will be written. Return 0 or the errno.
    """

def start_writeback(descriptor: int, offset: int, size: int) -> None:
    """Start writing this range of a file to the disk, without waiting."""

class FileMap:
    """A memory-mapped file, safe even if the file is truncated."""

    def __len__(self) -> int: ...

    @property
    def is_whole(self) -> bool:
        """Whether every access so far succeeded."""

def mapped_bytes() -> int:
    """Return how many bytes were read from maps so far."""

def map_file(descriptor: int, most_bytes: int) -> FileMap | None:
    """
    Map a local file. Return None if it cannot be mapped, or if all maps would exceed `most_bytes`.
    """

def crc32c(data: object, crc: int = 0) -> int:
    """
    Return the CRC-32C of `data`, continued from the CRC of the bytes before it.
    """

def crc32c_combine(crc_a: int, crc_b: int, size_b: int) -> int:
    """Return the CRC of a + b from the CRCs of both and the length of b."""

def mask_crc(crc: int) -> int:
    """Return a CRC as the format stores it."""

def crc32c_paths() -> list[str]:
    """Return the names of the CRC paths this processor can run, best first."""

def crc32c_path() -> str:
    """Return the name of the CRC path in use."""

def crc32c_use_path(name: str) -> bool:
    """
    Choose the CRC path of the whole process; False if this processor cannot run it.
    """

class Chunk:
    """Consecutive framed records in memory, every checksum verified."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int) -> bytes: ...

    def __iter__(self) -> Iterator[bytes]: ...

    def slice(self, start: int, stop: int) -> Chunk:
        """Return records [start, stop), over the same memory."""

    @property
    def offsets(self) -> numpy.typing.NDArray[numpy.uint64]:
        """The byte offset of every record in its file."""

    @property
    def lengths(self) -> numpy.typing.NDArray[numpy.uint64]:
        """The length of every payload."""

    def identity(self) -> bytes:
        """
        Return the length (uint64) and the payload's CRC (uint32) of every record, little-endian.
        """

    def crc32c(self) -> int:
        """Return the CRC-32C of the framed records."""

    def pick(self, indices: numpy.typing.NDArray[numpy.uint64]) -> Chunk:
        """Return copies of these records, in this order."""

    @property
    def nbytes(self) -> int:
        """The size of the framed records."""

    @property
    def first_record(self) -> int:
        """The number of the first record in its file."""

    @property
    def file_offset(self) -> int:
        """Where the chunk starts in its file."""

    def __buffer__(self, flags: int, /) -> memoryview: ...

def scan(data: object, max_record_bytes: int, file_offset: int = 0, first_record: int = 0) -> tuple[Chunk, int, int]:
    """
    Return the intact records at the start of a buffer, the fault after them (0: none) and its offset in the buffer.
    """

def pack(payloads: Iterable[Buffer], file_offset: int = 0, first_record: int = 0) -> Chunk:
    """Frame every payload."""

def join(chunks: Sequence[Chunk]) -> Chunk:
    """Copy the records of all chunks into one."""

class Reader:
    """Reads framed records from a descriptor or an object with readinto()."""

    def __init__(self, file: object, chunk_bytes: int, max_record_bytes: int, file_offset: int = 0, first_record: int = 0, most_mapped: int = 0, had: int = 0) -> None: ...

    @property
    def next_record(self) -> int:
        """The number of the next record."""

    @property
    def sizes(self) -> tuple[int, int]:
        """The size of the file when reading began, and its current size."""

    def next(self, records: int | None = None) -> tuple[Chunk, int, int]:
        """
        Return (chunk, fault, offset): exactly `records` records unless the file ends, or about `chunk_bytes` of them.
        """

    def pass_large(self) -> tuple[int, int, int]:
        """
        Check the record that `next` called too large, a piece at a time, and continue after it. Return (fault, length, crc).
        """

def salvage(data: object, beyond: int = 0) -> tuple[list[tuple[int, int, int, bool]], list[tuple[int, int, int, int]], int, int]:
    """
    Return the intact records (offset, length, how, nested), the lost ranges (offset, length, what, records before), the offset up to which this is decided, and the one up to which no further intact record starts. `beyond` is how many bytes of the file follow `data`.
    """

def salvage_at(read_at: Callable[[int, int], bytes], offset: int, size: int, beyond: int = 0) -> tuple[list[tuple[int, int, int, bool]], list[tuple[int, int, int, int]], int, int]:
    """
    Like `salvage`, for bytes that `read_at(offset, size)` returns a small piece at a time.
    """

class FileSnapshot:
    """The state of an open file, to detect later whether it has changed."""

    def __init__(self, descriptor: int) -> None: ...

    @property
    def size(self) -> int:
        """The size of the file when the snapshot was made."""

    def had(self, size: int) -> None:
        """Note that the file is known to have had this size earlier."""

    def note(self, offset: int, length: int, payload_crc: int) -> None:
        """
        Note a record that was read. The first, second, fourth, and so on are kept.
        """

    def now(self, end: int) -> int:
        """
        Return the fault if the file was truncated or overwritten since then, or 0 if no change is visible.
        """

def check_mapped(descriptor: int, offset: int, most_bytes: int) -> tuple[int, bytes]:
    """
    Check the next records in the page cache. Return their size and identities; nothing if the file has to be read instead.
    """

def may_repeat(identities: Sequence[bytes]) -> bool:
    """
    Return whether a pair of neighbours may occur twice, going by their CRCs. Has false positives.
    """

def scan_headers(descriptor: int, offset: int, max_records: int, most_mapped: int) -> tuple[numpy.typing.NDArray[numpy.uint64], numpy.typing.NDArray[numpy.uint32], int, int]:
    """
    Return lengths and stored CRCs of payloads, from headers and footers alone, the fault that ended the scan (0: none) and its offset.
    """

def fetch(descriptor: int, offsets: numpy.typing.NDArray[numpy.uint64], sizes: numpy.typing.NDArray[numpy.uint64], first_record: int = 0) -> tuple[Chunk, int]:
    """
    Return the records whose frames have these offsets and sizes, up to the first damaged one, and its fault (0: none).
    """

class PlaceTable:
    """Where the records of a file are; filled in blocks on demand."""

    def __init__(self, records: int, block_records: int) -> None: ...

    def __len__(self) -> int: ...

    def put(self, block: int, start: int, least: int, width: int, above: bytes) -> None:
        """
        Store a block as an index has it: where its first frame starts, the smallest frame, and how much larger each one is.
        """

    def lacking(self, numbers: numpy.typing.NDArray[numpy.int64]) -> list[int]:
        """
        Return the blocks that must be stored before these records can be looked up.
        """

    def places(self, numbers: numpy.typing.NDArray[numpy.int64]) -> tuple[numpy.typing.NDArray[numpy.uint64], numpy.typing.NDArray[numpy.uint64]]:
        """
        Return offsets and sizes of the frames of these records. Their blocks must be stored.
        """

    def fetch(self, descriptor: int, number: int) -> Chunk | None:
        """
        Return one record; None if its block is not stored, or if it is damaged.
        """

    @property
    def nbytes(self) -> int:
        """The memory used, in bytes."""

class PlaceList:
    """Places of records in several files."""

    def __len__(self) -> int: ...

def split_numbers(ends: numpy.typing.NDArray[numpy.int64], numbers: numpy.typing.NDArray[numpy.int64]) -> tuple[numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.int64]]:
    """
    Return for each number which file it is in and its number there, given where the files end, and how many are in each file.
    """

def find_places(tables: Sequence[PlaceTable], files: numpy.typing.NDArray[numpy.int64], numbers: numpy.typing.NDArray[numpy.int64]) -> tuple[PlaceList, list[tuple[int, int]]]:
    """
    Return where these records are, given file and number of each, and which (file, block) pairs the tables lack. If any are lacking, the places are incomplete.
    """

def fetch_listed(descriptors: Sequence[int], maps: Sequence[FileMap | None], places: PlaceList) -> tuple[Chunk, int, int]:
    """
    Return the records at these places, in order, up to the first damaged one, its fault (0: none), and the number of read calls.
    """

def block_gap() -> int:
    """Return how many values are left unused after each field of a block."""

class Decoder:
    """Decodes payloads to columns. Thread-safe."""

    def __init__(self, specs: Sequence[tuple[str, int, int, bool, bool]], sequence: bool) -> None:
        """Specs are (name, kind, count or -1, required, steps)."""

    def decode(self, chunk: Chunk, start: int, stop: int) -> tuple[numpy.typing.NDArray[numpy.int64] | None, numpy.typing.NDArray[numpy.float32] | None, list[tuple[Any, ...] | None] | None] | tuple[int, int, int, int, int, int, int]:
        """
        Return a block of integers and one of floats, with the fixed-count numbers one field after the other, and a list of everything else, with one element per field. On a fault, return (what, wire, record, byte, field, found kind, found count).
        """

    def decode_next(self, reader: Reader, records: int, few_fields: bool) -> tuple[int, tuple[numpy.typing.NDArray[numpy.int64] | None, numpy.typing.NDArray[numpy.float32] | None, list[tuple[Any, ...] | None] | None]] | tuple[Chunk, int, int]:
        """
        Read and decode the next records. Return the number of the first and the result of `decode`; or that of `Reader.next` if there are fewer, or if one is damaged or does not match the fields.
        """

    def decode_mapped(self, maps: Sequence[FileMap | None], places: PlaceList, start: int, stop: int) -> tuple[numpy.typing.NDArray[numpy.int64] | None, numpy.typing.NDArray[numpy.float32] | None, list[tuple[Any, ...] | None] | None] | None:
        """
        Return the result of `decode` for the records at places [start, stop), read from maps; None if one is in no map, is damaged or does not match the fields.
        """

def encode(columns: list[tuple[Any, ...]], rows: int, sequence: bool) -> tuple[int, int, Chunk]:
    """
    Return (fault, where, chunk) of columns (name, kind, steps, count or -1, values, byte_offsets, value_offsets, step_offsets, states).
    """

def rewrite(chunk: Chunk, drop: Set[str], rename: Mapping[str, str], replace: Set[str], absent: Set[str], sequence: bool, tail: Chunk | None) -> tuple[int, int, int, int, str, Chunk]:
    """
    Return (fault, wire fault, record, byte, name, chunk) of an edit on the wire.
    """

def survey(chunk: Chunk, start: int, stop: int) -> dict[str, Any]:
    """Return facts about every feature."""

def lint(payload: object, sequence: bool) -> list[tuple[int, int, str]]:
    """Return (lint, byte, name) of everything TensorFlow reads differently."""

class RowBuilder:
    """Collects dicts into columns; a row is added completely or not at all."""

    def __init__(self, specs: Sequence[tuple[str, str, int, int, bool, object]], explain: object) -> None:
        """Specs are (name, op, low, high, optional, convert)."""

    def append(self, row: object) -> None: ...

    def take(self) -> list[tuple[Any, ...]]:
        """Return the columns, and start again with no rows."""

    def __len__(self) -> int: ...

def arrow_array(node: tuple[Any, ...]) -> tuple[object, object]:
    """
    Return the Arrow C data interface capsules of a node (format, name, nullable, length, null_count, buffers, children).
    """

def arrow_stream(schema: tuple[Any, ...], nodes: Iterator[tuple[Any, ...]]) -> object:
    """Return the capsule of a stream of such nodes, all with this schema."""

def permute(indices: numpy.typing.NDArray[numpy.int64], count: int, seed: int, epoch: int, salt: int) -> numpy.typing.NDArray[numpy.int64]:
    """
    Return the images of the indices under a keyed permutation of [0, count). seed, epoch and salt are below 2**64.
    """

class JpegDecoder:
    """
    Decodes JPEGs straight to a given size. Keeps memory between calls; for one thread at a time.
    """

    def __init__(self, is_portable: bool = False) -> None: ...

    def decode(self, picture: Buffer, target: numpy.typing.NDArray[Any], how: int, scale: numpy.typing.NDArray[numpy.float32], shift: numpy.typing.NDArray[numpy.float32]) -> bool:
        """
        Decode a JPEG into a picture [h,w,c], resized as by `resize`. Return False if it is of an unusual kind, damaged, or would have to be enlarged.
        """

def resize(source: numpy.typing.NDArray[Any], target: numpy.typing.NDArray[Any], how: int, scale: numpy.typing.NDArray[numpy.float32], shift: numpy.typing.NDArray[numpy.float32]) -> None:
    """
    Resize one picture [h,w,c] into another (0 nearest, 1 bilinear, 2 area), then apply `scale` and `shift` per channel.
    """

def pad(values: numpy.typing.NDArray[numpy.uint8], starts: numpy.typing.NDArray[numpy.int64], fill: numpy.typing.NDArray[numpy.uint8], rows: int) -> list[numpy.typing.NDArray[numpy.uint8]]:
    """
    Pad ragged rows to rectangles of at most `rows` rows, each as wide as its longest row. `starts` counts values, whose size is that of `fill`.
    """

def swap_rows(buffers: numpy.typing.NDArray[numpy.uint8], rows: numpy.typing.NDArray[numpy.uint8], width: int, slots: numpy.typing.NDArray[numpy.int64]) -> None:
    """
    Swap rows of `width` bytes with their slots of a buffer, in order. `buffers` and `rows` have one line per column.
    """

def pick_runs(values: numpy.typing.NDArray[numpy.uint8], starts: numpy.typing.NDArray[numpy.int64], offsets: numpy.typing.NDArray[numpy.int64], item: int, out: numpy.typing.NDArray[numpy.uint8]) -> None:
    """
    Copy runs of values of `item` bytes that begin at `starts` to `out`, at `offsets`.
    """
