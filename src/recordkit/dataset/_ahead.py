"""Ahead: what a layer has beside records that are read from front to back.

A layer's records are small. To read and decode only those that stand beside one batch costs more in calls, and in
threads that wait for each other, than in work: they are read in pieces of many batches.
"""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from recordkit.columns import Batch
from recordkit.errors import CorruptRecordError, SchemaError

from ._decoding import RecordRange

if TYPE_CHECKING:
    from collections.abc import Mapping

    from recordkit.records import Chunk
    from recordkit.storage import RecordFile, Stream

    from ._decoding import ColumnDecoder

_PIECE_RECORDS, _PIECE_BYTES, _PIECES_KEPT = 8192, 1 << 20, 4


class OverlayReader:
    """Columns of a layer's file, for batches that are asked for one after the other.

    Args:
        file: The layer's.
        columns: What to read of it.
    """

    def __init__(self, file: RecordFile, columns: ColumnDecoder) -> None:
        assert file.shard is not None
        self._file = file
        self._columns = columns
        made = columns.joined([]).lazy_columns.values()
        arrays = [column for column in made if isinstance(column, np.ndarray)]
        # What is more than an array is decoded a batch at a time: to cut it takes as long.
        self._arrays = len(arrays) == len(made)
        width = sum(array.itemsize * math.prod(array.shape[1:]) for array in arrays)
        fit = _PIECE_BYTES // max(1, width, file.shard.raw_bytes // max(1, file.count))
        self._size = 1 << max(0, min(fit, _PIECE_RECORDS).bit_length() - 1)  # so that batches seldom lie across
        self._last = (file.count - 1) // self._size
        self._pieces: OrderedDict[int, _OverlayPiece | None] = OrderedDict()
        self._stream: Stream | None = None
        self._turn = threading.Lock()

    def batch(self, start: int, stop: int) -> Batch:
        """Return records [start, stop) of the file as columns.

        Raises:
            SchemaError: One of them is not as declared.
            CorruptRecordError: One of them is not sound.
        """
        number, begin = divmod(start, self._size)
        end = begin + stop - start
        if begin < end <= self._size:
            piece = self._piece(number)
            if piece is not None:
                if 2 * end > self._size and number < self._last:
                    self._piece(number + 1)  # before it is needed, while others still have enough of this one
                return piece.cut(self._columns, begin, end)
        elif end > self._size >= stop - start:
            head, tail = self._piece(number), self._piece(number + 1)
            if head is not None and tail is not None:
                cuts = head.cut(self._columns, begin, self._size), tail.cut(self._columns, 0, end - self._size)
                return Batch.joined(cuts)
        return self._columns.decode(self._part(self._file.span(start, stop - start)), 0, stop - start)

    def _part(self, chunk: Chunk) -> RecordRange:
        return RecordRange(chunk, self._file.name, self._file)

    def _piece(self, number: int) -> _OverlayPiece | None:
        """Return a piece; None where it is not sound as a whole, or another thread is reading one."""
        if number in self._pieces:
            return self._pieces.get(number)
        if not self._turn.acquire(blocking=False):
            return None  # to read what is asked for is done sooner
        try:
            if number not in self._pieces:
                self._pieces[number] = self._read(number * self._size)
                if len(self._pieces) > _PIECES_KEPT:
                    self._pieces.popitem(last=False)
            return self._pieces[number]
        finally:
            self._turn.release()

    def _read(self, first: int) -> _OverlayPiece | None:
        count = min(self._size, self._file.count - first)
        try:
            part = self._part(self._chunk(first, count))
            batch = self._columns.decode(part, 0, count) if self._arrays else None
        except (SchemaError, CorruptRecordError):
            return None  # which is for the batch that has the record
        return _OverlayPiece(part, None) if batch is None or batch.masks else _OverlayPiece(None, batch.lazy_columns)

    def _chunk(self, first: int, count: int) -> Chunk:
        """Return records, from the file as it was left open by the piece before where that can be."""
        if self._file.compression is None:
            stream, self._stream = self._stream, None
            if stream is None or stream.next_record != first:
                stream = self._file.stream(first)
            chunk = stream.read(count)
            if chunk is not None and len(chunk) == count:
                if first + count < self._file.count:
                    self._stream = stream
                return chunk
        return self._file.span(first, count)


class _OverlayPiece(NamedTuple):
    """Records that follow each other: as arrays, or as they stand in the file."""

    part: RecordRange | None
    arrays: Mapping[str, Any] | None

    def cut(self, columns: ColumnDecoder, start: int, stop: int) -> Batch:
        """Return records [start, stop) of the piece, and nothing that others are given too: it may be changed."""
        if self.arrays is not None:
            return Batch({name: array[start:stop].copy() for name, array in self.arrays.items()}, stop - start)
        assert self.part is not None
        return columns.decode(self.part, start, stop)
