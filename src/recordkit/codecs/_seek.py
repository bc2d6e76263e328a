"""Checkpoints: read the uncompressed bytes of any gzip or zlib file at any offset.

Such a file can be decompressed only from its start, or from an offset where the state of the decompression was saved.
Our own shards need none of this: see `_gzip_members.py`.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from typing import TYPE_CHECKING, Final

from recordkit.filesystems import ByteFile

from ._inflate import InflateError, Inflater

if TYPE_CHECKING:
    from typing import Any

    from ._inflate import Zipped

_SPACING: Final = 1 << 22
_MOST_POINTS: Final = 256  # of about 45 KiB each
_MOST_RUNNING: Final = 4
_STEP: Final = 1 << 18
_FEED: Final = 1 << 14  # passed to zlib at once: a state includes the bytes that it has not used


class Checkpoints(ByteFile):
    """The uncompressed bytes of a gzip or zlib file, as a `ByteFile`.

    The first reading saves the state of the decompression about every 4 MiB, and further apart in files of more than
    1 GiB. A read starts from the nearest state before it, and a read that follows another continues from its end.
    Asking for the size reads the whole file once. Pickling drops the states.

    >>> import gzip, io
    >>> from recordkit.filesystems import ObjectFile
    >>> numbers = b"".join(b"%6d" % number for number in range(100_000))
    >>> file = Checkpoints(ObjectFile(io.BytesIO(gzip.compress(numbers))), "gzip")
    >>> file.read_at(6 * 77_777, 12), file.size
    (b' 77777 77778', 600000)
    """

    def __init__(self, file: ByteFile, compression: Zipped) -> None:
        self.name = file.name
        self._file = file
        self._compression: Zipped = compression
        self._spacing = _SPACING
        self._points = [Inflater(file, compression, feed=_FEED)]  # only copied, never run
        self._running: list[Inflater] = []  # each at the end of a read; the latest is the last
        self._size: int | None = None
        self._lock = threading.Lock()

    @property
    def size(self) -> int:
        """How many bytes there are when decompressed.

        Raises:
            CorruptRecordError: The file is damaged.
        """
        if self._size is None:
            with self._lock:
                last = self._points[-1].copy()
            self._run(last, None)
        assert self._size is not None
        return self._size

    def read_at(self, offset: int, size: int) -> bytes:
        """Return `size` bytes from `offset` on; fewer only at the end.

        Raises:
            CorruptRecordError: The file is damaged before the last of them.
        """
        inflater = self._nearest(offset)
        pieces = []
        if self._run(inflater, offset):
            while inflater.raw < offset + size and (piece := self._step(inflater, offset + size)):
                pieces.append(piece)
        with self._lock:
            self._running = [*self._running[1 - _MOST_RUNNING :], inflater]
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _nearest(self, offset: int) -> Inflater:
        """Return the nearest inflater at or before `offset`; nobody else uses it."""
        with self._lock:
            point = self._points[bisect_right(self._points, offset, key=lambda point: point.raw) - 1]
            near = [inflater for inflater in self._running if point.raw <= inflater.raw <= offset]
            if not near:
                return point.copy()
            nearest = max(near, key=lambda inflater: inflater.raw)
            self._running.remove(nearest)
            return nearest

    def _run(self, inflater: Inflater, end: int | None) -> bool:
        """Run up to `end`; return False if the content ends before it."""
        while end is None or inflater.raw < end:
            if not self._step(inflater, end):
                return False
        return True

    def _step(self, inflater: Inflater, end: int | None) -> bytes:
        try:
            piece = inflater.step(_STEP if end is None else min(_STEP, end - inflater.raw))
        except InflateError as error:
            self._file.check_not_truncated()
            raise error.error(self.name) from None
        if not piece:
            self._file.check_not_truncated()
            self._size = inflater.raw
        elif inflater.raw >= self._points[-1].raw + self._spacing:
            self._keep(inflater)
        return piece

    def _keep(self, inflater: Inflater) -> None:
        with self._lock:
            if inflater.raw < self._points[-1].raw + self._spacing:
                return  # another thread was faster
            self._points.append(inflater.copy())
            if len(self._points) > _MOST_POINTS:
                self._points = self._points[::2]
                self._spacing *= 2

    def __reduce__(self) -> tuple[Any, ...]:
        return Checkpoints, (self._file, self._compression)
