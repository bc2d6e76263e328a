"""FileView: the records of one file by number, even if the file is damaged.

A file with intact framing is read with its index. A file with broken framing is scanned once, and the offsets of its
records are kept. Damaged records have numbers too.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from recordkit import _core
from recordkit.dataset import RecordRange, living, physical
from recordkit.errors import CorruptRecordError, RecordKitError
from recordkit.storage.read import Damage, walk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from recordkit.dataset import Stack
    from recordkit.records import Chunk
    from recordkit.storage.read import RecordFile

_CHUNKS_KEPT: Final = 4
_WORTH_AN_INDEX: Final = 32 << 20
_MOST_DAMAGED: Final = 1 << 20  # bytes of a damaged record that are shown
_MOST_DAMAGE: Final = 1000  # in one file, which are kept
_BLOCKED: Final = 64  # attempts in a row to get past damage


class FileView:
    """The records of one file by number.

    Attributes:
        file: The file.
        count: How many records can be shown; None until they are counted.
        damage: The damage found so far.
    """

    def __init__(self, file: RecordFile, stack: Stack) -> None:
        self.file = file
        self.count: int | None = None
        self.damage: dict[tuple[str, int], Damage] = {}
        self._stack = stack
        self._walked: _Walked | None = None
        self._lock = threading.Lock()
        if file.shard is not None:
            self.count = living(self._deleted, file.shard.records)

    @property
    def _deleted(self) -> NDArray[np.int64]:
        return self._stack.deleted(self.file)

    def number(self, damage: Damage) -> int:
        """Return the number that the record of a damage is shown under."""
        return living(self._deleted, damage.record)

    @cached_property
    def size(self) -> int:
        """The size of the file; 0 if it is gone."""
        try:
            return self.file.file.size
        except (RecordKitError, OSError):
            return 0

    @property
    def walked(self) -> bool:
        """Whether the framing is broken, so that records were found by scanning the file."""
        return self._walked is not None

    def tell(self, damage: Damage) -> None:
        """Keep a damage."""
        with self._lock:
            if len(self.damage) < _MOST_DAMAGE:
                self.damage.setdefault((damage.kind, damage.offset), damage)

    def prepare(self, step: Callable[[], object] = lambda: None) -> None:
        """Count the records, and find their offsets.

        Args:
            step: Called now and then while a damaged file is scanned; may raise to stop.
        """
        if self.count is not None:
            return
        try:
            count = self.file.count
        except CorruptRecordError:
            walked = _Walked(self.file)
            walked.go(self.tell, step)
            self._walked, self.count = walked, walked.count
            return
        if count and self.size >= _WORTH_AN_INDEX:
            with suppress(CorruptRecordError):
                self.file.fetch_one(0)  # builds the index now, rather than at the first lookup
        self.count = living(self._deleted, count)

    def part(self, numbers: NDArray[np.int64]) -> RecordRange:
        """Return records by number.

        Raises:
            CorruptRecordError: One of them is damaged.
        """
        if self._walked is not None:
            return RecordRange(self._walked.fetch(numbers.tolist()), self.file.name, None, numbers)
        inside = physical(self._deleted, numbers)
        return RecordRange(self.file.fetch(inside), self.file.name, self.file, inside)

    def one(self, number: int) -> RecordRange:
        """Return one record, in a chunk that knows its offset in the file."""
        if self._walked is not None:
            return RecordRange(self._walked.fetch([number]), self.file.name, None, np.array([number]))
        inside = int(physical(self._deleted, number))
        return RecordRange(self.file.fetch_one(inside), self.file.name, self.file, np.array([inside]))

    def damaged_frame(self, number: int, error: CorruptRecordError) -> tuple[int, bytes]:
        """Return the offset and the bytes of a damaged record of an uncompressed file.

        Raises:
            CorruptRecordError: It cannot be located.
        """
        if self.walked or self.file.compression is not None or error.offset is None:
            raise error
        end = self.size
        with suppress(CorruptRecordError, IndexError):
            if number + 1 < (self.count or 0):
                end = self.one(number + 1).chunk.file_offset
        return error.offset, self.file.file.read_at(error.offset, min(end - error.offset, _MOST_DAMAGED))

    def first(self, count: int) -> RecordRange | None:
        """Return the first records of a file that is not counted yet; None if they have overlays."""
        if self._stack:
            return None
        stream, chunks, found = self.file.stream(tell=self.tell), [], 0
        while found < count and (chunk := stream.read(count - found)) is not None:
            chunks.append(chunk.slice(0, min(len(chunk), count - found)))
            found += len(chunks[-1])
        return RecordRange(_core.join(chunks), self.file.name, None, np.arange(found)) if chunks else None

    def parts(self, first: int) -> Iterator[tuple[RecordRange, NDArray[np.int64]]]:
        """Yield the records from number `first` on, with their numbers, skipping damage."""
        if self._walked is not None:
            for chunk in self._walked.chunks(first):
                numbers = np.arange(chunk.first_record, chunk.first_record + len(chunk))
                yield RecordRange(chunk, self.file.name, None, numbers), numbers
            return
        deleted = self._deleted
        for chunk in self._sound(int(physical(deleted, first))):
            part = RecordRange(chunk, self.file.name, self.file)
            numbers = part.record_numbers(0, len(chunk))
            if len(deleted):
                kept = np.flatnonzero(~np.isin(numbers, deleted))
                part = part if len(kept) == len(chunk) else part.pick(kept.astype(np.uint64))
                numbers = part.record_numbers(0, len(part.chunk))
                numbers = numbers - np.searchsorted(deleted, numbers)
            yield part, numbers

    def _sound(self, at: int) -> Iterator[Chunk]:
        """Yield the records of the file from `at` on; after a damaged record, continue with the help of the index."""
        blocked, total = 0, self.file.count
        while at < total and blocked < _BLOCKED:
            began = at
            try:
                stream = self.file.stream(at)
                while (chunk := stream.read()) is not None:
                    yield chunk
                    at, blocked, began = chunk.first_record + len(chunk), 0, -1
                return
            except CorruptRecordError as error:
                self.tell(Damage.from_error(error, self.file.name))
                if (error.record or 0) < began:  # the index does not lead past the damage
                    return
                # A damaged gzip member has many records, which would all report the same damage.
                at = max(at, error.record or 0) + (1 << blocked if self.file.compression else 1)
                blocked += 1


class _SoundRun(NamedTuple):
    """Consecutive intact records: the number and the offset of the first."""

    first: int
    offset: int


class _Walked:
    """The records of a file with broken framing, found by scanning it.

    Attributes:
        count: How many there are, including damaged ones.
    """

    def __init__(self, file: RecordFile) -> None:
        self._file = file.file.reopened()
        self._compression = file.compression
        self._spans: list[_SoundRun] = []
        self._damaged: dict[int, Damage] = {}  # by record number
        self._recent: OrderedDict[int, Chunk] = OrderedDict()
        self._lock = threading.Lock()
        self.count = 0

    def go(self, tell: Callable[[Damage], object], step: Callable[[], object]) -> None:
        """Scan the file once."""
        for item in walk(self._file, self._compression):
            step()
            if isinstance(item, Damage):
                tell(item)
                if len(self._damaged) < _MOST_DAMAGE:
                    self._damaged.setdefault(item.record, item)
                self.count = max(self.count, item.next_record)
            else:
                self._spans.append(_SoundRun(item.first_record, item.file_offset))
                self.count = item.first_record + len(item)

    def chunks(self, first: int) -> Iterator[Chunk]:
        """Yield the records from number `first` on."""
        at = int(np.searchsorted([span.first for span in self._spans], first, side="right")) - 1
        # A compressed file can only be scanned from its start.
        span = self._spans[at] if self._compression is None and at >= 0 else _SoundRun(0, 0)
        for item in walk(self._file, self._compression, offset=span.offset, record=span.first):
            if not isinstance(item, Damage) and item.first_record + len(item) > first:
                yield item.slice(max(0, first - item.first_record), len(item))

    def fetch(self, numbers: list[int]) -> Chunk:
        """Return records by number."""
        picked = [self._one(number) for number in numbers]
        return picked[0] if len(picked) == 1 else _core.join(picked)

    def _one(self, number: int) -> Chunk:
        with self._lock:
            for chunk in self._recent.values():
                if chunk.first_record <= number < chunk.first_record + len(chunk):
                    return chunk.slice(number - chunk.first_record, number - chunk.first_record + 1)
            found = next(self.chunks(number), None)
            if found is None or found.first_record > number:
                raise self._lost(number)
            self._recent[found.first_record] = found
            if len(self._recent) > _CHUNKS_KEPT:
                self._recent.popitem(last=False)
        return found.slice(0, 1)

    def _lost(self, number: int) -> CorruptRecordError:
        """Return the error for a damaged record."""
        path, damage = self._file.name, self._damaged.get(number)
        if damage is None:
            return CorruptRecordError(f"{path}: record {number}: damaged", path=path, record=number, kind="damaged")
        return CorruptRecordError(str(damage), path=path, record=number, offset=damage.offset, kind=damage.kind)
