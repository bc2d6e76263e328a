"""Flow: batches out of many files, made by several threads, in the order of the records.

Threads take chunks of a file in turn and decode them while they are in the processor's cache. Plain files are read in
pieces of whole batches; where that cannot be, the records at the edges are put together by whoever asks for the batch.
"""

from __future__ import annotations

import threading
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

from ._batching import Part

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from recordkit.records import Chunk
    from recordkit.storage import RecordFile, Stream

    from ._batching import Making

_PIECE_BYTES = 1 << 20  # fits a processor's cache beside what is made of it
_SMALL_BYTES = 4 << 20  # less than this is done before threads have started


class Flow:
    """Batches of `size` records, the last one shorter.

    Args:
        files: In order.
        first: Where to start in the first file.
        count: How many records to give; None for all.
        size: How many records a batch has.
        making: What is made of them.
        open_stream: Opens a file from a record on.
        workers: How many threads.
    """

    def __init__(
        self,
        files: Sequence[RecordFile],
        first: int,
        count: int | None,
        size: int,
        making: Making,
        open_stream: Callable[[RecordFile, int], Stream],
        workers: int,
    ) -> None:
        self._files = files
        self._first = first
        self._count = count
        self._size = size
        self._making = making
        self._open_stream = open_stream
        self._workers = workers
        self._pieces = 1  # batches a chunk
        self._feed = _Feed(files, first, size, open_stream)

    def __iter__(self) -> Iterator[Any]:
        if self._count == 0:
            return iter(())
        threads = self._workers > 1 and _larger_than(self._files, _SMALL_BYTES)
        return self._assembled(self._by_threads() if threads else self._alone())

    def _alone(self) -> Iterator[list[Part | list[Any]]]:
        while (taken := self._feed.take(self._pieces)) is not None:
            yield self._made(*taken)

    def _made(self, file: int, chunk: Chunk, position: int) -> list[Part | list[Any]]:
        """Return what a chunk gives: whole batches, and at its two ends records for batches across chunks."""
        size, path = self._size, self._files[file].name
        self._pieces = max(1, _PIECE_BYTES * len(chunk) // max(1, chunk.nbytes) // size)
        count = len(chunk) if self._count is None else min(len(chunk), max(0, self._count - position))
        start = min(count, -position % size)
        stop = start + (count - start) // size * size
        made: list[Part | list[Any]] = []
        if start:
            made.append(Part(chunk.slice(0, start), path))
        if start < stop:
            made.append([self._making.batch(chunk, at, at + size, path) for at in range(start, stop, size)])
        if stop < count:
            made.append(Part(chunk.slice(stop, count), path))
        return made

    def _assembled(self, made: Iterator[list[Part | list[Any]]]) -> Iterator[Any]:
        """Yield whole batches, with those across chunks put together."""
        parts: list[Part] = []
        given = held = 0
        for items in made:
            for item in items:
                if isinstance(item, list):
                    yield from item
                    given += len(item) * self._size
                    continue
                parts.append(item)
                held += len(item.chunk)
                if held == self._size:
                    yield self._making.joined(parts)
                    given += held
                    parts, held = [], 0
            if given + held == self._count:
                break
        if parts:
            yield self._making.joined(parts)

    def _by_threads(self) -> Iterator[list[Part | list[Any]]]:
        crew = _Crew(self._workers, lambda: self._feed.take(self._pieces), self._made)
        try:
            yield from crew.results()
        finally:
            crew.stop()


def _larger_than(files: Sequence[RecordFile], size: int) -> bool:
    total = 0
    for file in files:
        total += file.file.size
        if total > size:
            return True
    return False


class _Feed:
    """Gives out the chunks of all files, one after the other, with where each stands in the order.

    The next file is opened when the last chunk of the one before has been given out: only then it is known which of its
    records begins a batch.
    """

    def __init__(
        self, files: Sequence[RecordFile], first: int, size: int, open_stream: Callable[[RecordFile, int], Stream]
    ) -> None:
        self._files = files
        self._size = size
        self._open_stream = open_stream
        self._lock = threading.Lock()
        self.file = -1
        self.starts: list[int] = []  # of each file opened so far: the position of its record 0 in the order
        self._firsts = [first]
        self._stream: Stream | None = None

    def take(self, pieces: int) -> tuple[int, Chunk, int] | None:
        """Return (file, chunk, position of its first record), or None at the end."""
        while True:
            file, stream = self.file, self._stream
            if stream is not None:
                chunk = stream.read(pieces * self._size)
                while chunk is not None and not len(chunk):  # of a gzip member without records
                    chunk = stream.read(pieces * self._size)
                if chunk is not None:
                    return file, chunk, self.starts[file] + chunk.first_record
            elif file >= len(self._files):
                return None
            with self._lock:
                if self.file == file:
                    taken = self._open_next(stream)
                    if taken is not None:
                        return taken

    def _open_next(self, ended: Stream | None) -> tuple[int, Chunk, int] | None:
        position = self.starts[self.file] + ended.next_record if ended is not None else 0
        number = self.file + 1
        if number == len(self._files):
            self._stream, self.file = None, number
            return None
        first = self._firsts[0] if number == 0 else 0
        stream = self._open_stream(self._files[number], first)
        self.starts.append(position - first)
        lead = -position % self._size
        try:
            # What is lacking to a whole batch comes first, so that the pieces behind it are whole batches.
            chunk = stream.read(lead) if lead else None
        finally:
            self._stream, self.file = stream, number
        return (number, chunk, position) if chunk is not None and len(chunk) else None


class _Crew:
    """Threads that make something of what a feed gives, and hand it over in order.

    Each holds at most one result that was not yet asked for, and there is room for as many more.
    """

    def __init__(self, workers: int, take: Callable[[], Any], make: Callable[..., Any]) -> None:
        self._take = take
        self._make = make
        self._room = threading.Semaphore(2 * workers)
        self._change = threading.Condition()
        self._done: dict[int, tuple[int, Any]] = {}  # by position: how many records, and what was made or went wrong
        self._running = workers
        self._failure: BaseException | None = None
        self._stopped = False
        self._threads = [
            threading.Thread(target=copy_context().run, args=(self._run,), name="recordkit-read", daemon=True)
            for _ in range(workers)
        ]
        for thread in self._threads:
            thread.start()

    def _run(self) -> None:
        try:
            while True:
                self._room.acquire()
                if self._stopped:
                    return
                taken = self._take()
                if taken is None:
                    return
                _, chunk, position = taken
                result: Any
                try:
                    result = self._make(*taken)
                except BaseException as error:
                    result = error
                with self._change:
                    self._done[position] = (len(chunk), result)
                    self._change.notify()
        except BaseException as error:
            with self._change:
                # The first in the order counts; a reader gives the sound records before a fault first, so that all
                # others are on their way.
                self._failure = self._failure or error
        finally:
            with self._change:
                self._running -= 1
                self._change.notify()

    def results(self) -> Iterator[Any]:
        """Yield what was made, in order; raise what went wrong where it did."""
        position = 0
        while True:
            with self._change:
                while position not in self._done and self._running:
                    self._change.wait()
                if position not in self._done:
                    if self._failure is not None:
                        raise self._failure
                    return
                count, result = self._done.pop(position)
            self._room.release()
            if isinstance(result, BaseException):
                raise result
            yield result
            position += count

    def stop(self) -> None:
        """Let the threads go; what they still hold is dropped."""
        self._stopped = True
        for _ in self._threads:
            self._room.release()
        for thread in self._threads:
            thread.join()
        self._done.clear()
