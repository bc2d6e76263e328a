"""
The C++ core of recordkit: facts and hot loops. Its users are records.py, examples.py, schema and storage.
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
    """Let two paths change places, at once. Return 0 or the errno."""

def rename_new(source: bytes, target: bytes) -> int:
    """Rename unless the target exists. Return 0 or the errno."""

def preallocate(descriptor: int, offset: int, size: int) -> int:
    """
    Set disk space aside for a part of a file that is yet to be written. Return 0 or the errno.
    """

def start_writeback(descriptor: int, offset: int, size: int) -> None:
    """
    Let the system begin to write this part of a file to the disk, without waiting for it.
    """

class FileMap:
    """A file as memory, which it may be cut short under."""

    def __len__(self) -> int: ...

    @property
    def is_whole(self) -> bool:
        """Whether all that was touched so far was there."""

def mapped_bytes() -> int:
    """Return how many bytes were taken from maps so far."""

def map_file(descriptor: int, most_bytes: int) -> FileMap | None:
    """
    Return a map of a file of this machine; None if there is none to be had, or maps would have more bytes.
    """

def crc32c(data: object, crc: int = 0) -> int:
    """
    Return the CRC-32C of `data`, going on from the CRC of what stood before it.
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
    """
    Consecutive framed records in memory, every checksum known to be right.
    """

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
    Return the sound records at the start of a buffer, the fault behind them (0: none) and its offset in the buffer.
    """

def pack(payloads: Iterable[Buffer], file_offset: int = 0, first_record: int = 0) -> Chunk:
    """Frame every payload."""

def join(chunks: Sequence[Chunk]) -> Chunk:
    """Return the records of all chunks in one, copied."""

class Reader:
    """Reads framed records from a descriptor or an object with readinto()."""

    def __init__(self, file: object, chunk_bytes: int, max_record_bytes: int, file_offset: int = 0, first_record: int = 0, most_mapped: int = 0, had: int = 0) -> None: ...

    @property
    def next_record(self) -> int:
        """The number of the first record that was not handed out."""

    @property
    def sizes(self) -> tuple[int, int]:
        """How many bytes the file had, and how many it has."""

    def next(self, records: int | None = None) -> tuple[Chunk, int, int]:
        """
        Return (chunk, fault, offset): exactly `records` records unless the file ends, or about `chunk_bytes` of them.
        """

    def pass_large(self) -> tuple[int, int, int]:
        """
        Check the record that `next` has called too large, a piece at a time, and go on behind it. Return (fault, length, crc).
        """

def salvage(data: object, beyond: int = 0) -> tuple[list[tuple[int, int, int, bool]], list[tuple[int, int, int, int]], int, int]:
    """
    Return what can be shown to be intact, (offset, length, how, nested), what is lost, (offset, length, what, records before), up to where that is decided, and up to where behind it no sound record starts. `beyond` is how many bytes of the file follow `data`.
    """

def salvage_at(read_at: Callable[[int, int], bytes], offset: int, size: int, beyond: int = 0) -> tuple[list[tuple[int, int, int, bool]], list[tuple[int, int, int, int]], int, int]:
    """
    Return what `salvage` does of the bytes that `read_at(offset, size)` gives, a small piece at a time.
    """

class FileSnapshot:
    """An open file as it is now, to ask later what has become of it."""

    def __init__(self, descriptor: int) -> None: ...

    @property
    def size(self) -> int:
        """How many bytes it had."""

    def had(self, size: int) -> None:
        """The file is known to have had so many bytes before."""

    def note(self, offset: int, length: int, payload_crc: int) -> None:
        """
        Take notice of a record that was read; the first, second, fourth and so on are kept.
        """

    def now(self, end: int) -> int:
        """
        Return the fault if, since then, the file has lost bytes or was written over; 0 where nothing shows.
        """

def check_mapped(descriptor: int, offset: int, most_bytes: int) -> tuple[int, bytes]:
    """
    Return the size of the next records, all of them sound, and their identities; none where the file has to be read instead.
    """

def may_repeat(identities: Sequence[bytes]) -> bool:
    """
    Return whether two neighbours have the CRCs of two others, and now and then although they have not.
    """

def scan_headers(descriptor: int, offset: int, max_records: int, most_mapped: int) -> tuple[numpy.typing.NDArray[numpy.uint64], numpy.typing.NDArray[numpy.uint32], int, int]:
    """
    Return lengths and stored CRCs of payloads by headers and footers alone, the fault behind them (0: none) and its offset.
    """

def fetch(descriptor: int, offsets: numpy.typing.NDArray[numpy.uint64], sizes: numpy.typing.NDArray[numpy.uint64], first_record: int = 0) -> tuple[Chunk, int]:
    """
    Return the records whose frames have these offsets and sizes, and the fault of the one behind the last (0: none).
    """

class PlaceTable:
    """Where the records of a file are, filled a block of records at a time."""

    def __init__(self, records: int, block_records: int) -> None: ...

    def __len__(self) -> int: ...

    def put(self, block: int, start: int, least: int, width: int, above: bytes) -> None:
        """
        Take a block as an index holds it: where its first frame starts, and what each is longer than the shortest.
        """

    def lacking(self, numbers: numpy.typing.NDArray[numpy.int64]) -> list[int]:
        """Return the blocks that have to be put in for these records."""

    def places(self, numbers: numpy.typing.NDArray[numpy.int64]) -> tuple[numpy.typing.NDArray[numpy.uint64], numpy.typing.NDArray[numpy.uint64]]:
        """
        Return where the frames of these records start, and how long they are; their blocks must be there.
        """

    def fetch(self, descriptor: int, number: int) -> Chunk | None:
        """Return one record; None if its block is not there, or it is not sound."""

    @property
    def nbytes(self) -> int:
        """The memory that it takes."""

class PlaceList:
    """Places of records in several files."""

    def __len__(self) -> int: ...

def split_numbers(ends: numpy.typing.NDArray[numpy.int64], numbers: numpy.typing.NDArray[numpy.int64]) -> tuple[numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.int64]]:
    """
    Return which of the files each number is in, going by where they end, its number there, and how many each file has.
    """

def find_places(tables: Sequence[PlaceTable], files: numpy.typing.NDArray[numpy.int64], numbers: numpy.typing.NDArray[numpy.int64]) -> tuple[PlaceList, list[tuple[int, int]]]:
    """
    Return where the records with these numbers in these of the files are, and which (file, block) the tables lack, in order: if any, the places say nothing.
    """

def fetch_listed(descriptors: Sequence[int], maps: Sequence[FileMap | None], places: PlaceList) -> tuple[Chunk, int, int]:
    """
    Return the records at these places, in this order, up to the first that is not sound, its fault (0: none), and how often files were read from.
    """

def block_gap() -> int:
    """Return how many values stand unused behind each field in a block."""

class Decoder:
    """Decodes payloads into columns; safe to use from many threads."""

    def __init__(self, specs: Sequence[tuple[str, int, int, bool, bool]], sequence: bool) -> None:
        """Specs are (name, kind, count or -1, required, steps)."""

    def decode(self, chunk: Chunk, start: int, stop: int) -> tuple[numpy.typing.NDArray[numpy.int64] | None, numpy.typing.NDArray[numpy.float32] | None, list[tuple[Any, ...] | None] | None] | tuple[int, int, int, int, int, int, int]:
        """
        Return blocks of integers and of floats, where numbers of a fixed count stand, one field behind the other, and a list of what else there is, an element a field; or the facts of a fault: (what, wire, record, byte, field, found kind, found count).
        """

    def decode_next(self, reader: Reader, records: int, few_fields: bool) -> tuple[int, tuple[numpy.typing.NDArray[numpy.int64] | None, numpy.typing.NDArray[numpy.float32] | None, list[tuple[Any, ...] | None] | None]] | tuple[Chunk, int, int]:
        """
        Return the number of the first of the next records and what `decode` returns for them, or what `Reader.next` returns where there are not so many, or one is not sound or not what is asked for.
        """

    def decode_mapped(self, maps: Sequence[FileMap | None], places: PlaceList, start: int, stop: int) -> tuple[numpy.typing.NDArray[numpy.int64] | None, numpy.typing.NDArray[numpy.float32] | None, list[tuple[Any, ...] | None] | None] | None:
        """
        Return what `decode` returns for the records at places [start, stop), taken from maps; None where some are in none, or one is not sound or not what is asked for.
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
    """Return facts of every feature."""

def lint(payload: object, sequence: bool) -> list[tuple[int, int, str]]:
    """Return (lint, byte, name) of what TensorFlow reads another way."""

class RowBuilder:
    """Gathers rows of dicts into columns, each row whole or not at all."""

    def __init__(self, specs: Sequence[tuple[str, str, int, int, bool, object]], explain: object) -> None:
        """Specs are (name, op, low, high, optional, convert)."""

    def append(self, row: object) -> None: ...

    def take(self) -> list[tuple[Any, ...]]:
        """Return the columns, and start again with none."""

    def __len__(self) -> int: ...

def arrow_array(node: tuple[Any, ...]) -> tuple[object, object]:
    """
    Return the capsules of the Arrow C data interface for (format, name, nullable, length, null_count, buffers, children).
    """

def arrow_stream(schema: tuple[Any, ...], nodes: Iterator[tuple[Any, ...]]) -> object:
    """
    Return the capsule of a stream of such nodes, all of the schema's format.
    """

def permute(indices: numpy.typing.NDArray[numpy.int64], count: int, seed: int, epoch: int, salt: int) -> numpy.typing.NDArray[numpy.int64]:
    """
    Return the images of indices under a keyed bijection of [0, count); seed, epoch and salt are less than 2**64.
    """

class JpegDecoder:
    """
    Decodes JPEGs straight to a size; for one thread at a time, as it keeps memory.
    """

    def __init__(self, is_portable: bool = False) -> None: ...

    def decode(self, picture: Buffer, target: numpy.typing.NDArray[Any], how: int, scale: numpy.typing.NDArray[numpy.float32], shift: numpy.typing.NDArray[numpy.float32]) -> bool:
        """
        Fill a picture [h,w,c] as `resize` would with the JPEG's pixels. False if it is another kind of JPEG than most, not a sound one, or smaller.
        """

def resize(source: numpy.typing.NDArray[Any], target: numpy.typing.NDArray[Any], how: int, scale: numpy.typing.NDArray[numpy.float32], shift: numpy.typing.NDArray[numpy.float32]) -> None:
    """
    Fill one picture [h,w,c] with another, resized (0 nearest, 1 bilinear, 2 area), times `scale` plus `shift` of each channel.
    """

def pad(values: numpy.typing.NDArray[numpy.uint8], starts: numpy.typing.NDArray[numpy.int64], fill: numpy.typing.NDArray[numpy.uint8], rows: int) -> list[numpy.typing.NDArray[numpy.uint8]]:
    """
    Lay the bytes of rows, which begin at `starts` in values of as many bytes as `fill`, into rectangles of so many rows, each as wide as its longest row.
    """

def swap_rows(buffers: numpy.typing.NDArray[numpy.uint8], rows: numpy.typing.NDArray[numpy.uint8], width: int, slots: numpy.typing.NDArray[numpy.int64]) -> None:
    """
    Swap rows of `width` bytes with those in slots of a buffer, one after the other; for every column, each of which is a line of `buffers` and of `rows`.
    """

def pick_runs(values: numpy.typing.NDArray[numpy.uint8], starts: numpy.typing.NDArray[numpy.int64], offsets: numpy.typing.NDArray[numpy.int64], item: int, out: numpy.typing.NDArray[numpy.uint8]) -> None:
    """
    Copy runs of values of `item` bytes, which begin at `starts`, to where `offsets` say.
    """
