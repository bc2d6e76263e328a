"""Check that the index next to a file fits its records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np

from recordkit.filesystems import TOO_MANY_CODES
from recordkit.storage.format import BLOCK, Fingerprint, Index
from recordkit.storage.read import Damage, check_fits, index_path
from recordkit.storage.staging import lacks_side_files

from ._check import FactsCheck

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ._check import FileToCheck, PassResult, RecordFacts

_FRAME: Final = 16
_COMPARED: Final = 1 << 16
_REMADE: Final = "remove it: recordkit makes a new one when it needs one"


class IndexCheck(FactsCheck):
    """Compares the index next to a file with the lengths of its records.

    Args:
        path: The index file.
        data: Its bytes.
        index: The parsed index; None if it is damaged or belongs to another file.
        words: What is wrong in that case.
    """

    def __init__(self, path: str, data: bytes, index: Index | None, words: str = "") -> None:
        self._path = path
        self._data = data
        self._index = index
        self._words = words
        self._block = 0  # the next one to compare
        self._offset = 0  # of its first record
        self._held: list[NDArray[np.uint64]] = []
        self._count = 0

    @classmethod
    def begin(cls, file: FileToCheck) -> Self | None:
        """Start if there is an index."""
        local = file.file.local
        if local is None:
            return None
        path = index_path(local.path)
        try:
            fingerprint = Fingerprint.of_bytes(file.file)
            check_fits(Index(path, fingerprint), fingerprint.size, file.compression)
            data = path.read_bytes()  # bounded: its size was checked above
            return cls(str(path), data, Index(data, fingerprint, name=str(path)))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except ValueError as error:
            words = str(error)
        except OSError as error:
            if error.errno in TOO_MANY_CODES:
                raise
            words = f"{path}: {Damage.from_error(error, file.file.name).words}"
        # While a dataset is published, an index may still belong to the state before, and is about to be replaced.
        return None if lacks_side_files(local.path) is not None else cls(str(path), b"", None, words)

    def records(self, facts: RecordFacts) -> None:
        """Take the lengths of the next records."""
        lengths = facts.lengths
        self._held.append(lengths)
        self._count += len(lengths)
        if self._count >= _COMPARED:
            self._compare(self._count // BLOCK)

    def end(self, result: PassResult) -> list[Damage | str]:
        """Return what is wrong with the index; nothing for a damaged file, since no index could fit it."""
        if result.damaged:
            return []
        if self._index is not None:
            self._finish(self._index, result.records)
        return [Damage(self._path, "index", 0, 0, len(self._data), f"{self._words}; {_REMADE}")] if self._words else []

    def _compare(self, blocks: int) -> None:
        """Compare this many blocks with the records seen, and drop those."""
        lengths = np.concatenate(self._held)
        self._held = [lengths[blocks * BLOCK :]]
        self._count = len(self._held[0])
        lengths = lengths[: blocks * BLOCK]
        try:
            if self._index is not None and not self._is_equal(self._index, lengths, blocks):
                self._fail(f"{self._path}: its offsets do not match the records")
        except ValueError as error:
            self._fail(str(error))
        self._block += blocks
        self._offset += int(lengths.sum()) + _FRAME * len(lengths)

    def _is_equal(self, index: Index, lengths: NDArray[np.uint64], blocks: int) -> bool:
        entries = index.directory[self._block : self._block + blocks]
        if len(entries) < blocks:
            return False
        if len(lengths) == blocks * BLOCK and (entries["width"] == entries["width"][0]).all():
            return self._are_equal(entries, lengths.reshape(blocks, BLOCK))
        offset = self._offset
        for number in range(blocks):
            own = lengths[number * BLOCK : (number + 1) * BLOCK]
            starts, frames = index.block(self._block + number)
            if int(starts[0]) != offset or not np.array_equal(frames, own + np.uint64(_FRAME)):
                return False
            offset += int(frames.sum())
        return True

    def _are_equal(self, entries: NDArray[np.void], lengths: NDArray[np.uint64]) -> bool:
        """Compare consecutive blocks of one width, many at a time."""
        sizes = lengths.sum(1, dtype=np.uint64) + np.uint64(_FRAME * BLOCK)
        starts = np.cumsum(sizes, dtype=np.uint64) - sizes + np.uint64(self._offset)
        above = lengths - (entries["least"] - np.uint64(_FRAME))[:, None]
        width = int(entries["width"][0])
        packed: Any = 0
        if width:
            packed = np.frombuffer(self._data, f"<u{width}", lengths.size, int(entries["at"][0])).reshape(lengths.shape)
        return np.array_equal(entries["start"], starts) and bool((above == packed).all())

    def _fail(self, words: str) -> None:
        self._index, self._words = None, words

    def _finish(self, index: Index, records: int) -> None:
        if len(index) != records:
            self._fail(f"{self._path}: it has {len(index):,} records, but the file has {records:,}")
            return
        if self._count:
            self._compare(-(-self._count // BLOCK))
        try:
            index.members()
        except ValueError as error:
            self._fail(str(error))
