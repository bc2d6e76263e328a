"""Flow: batches out of many files, made by several threads, in the order of the records.

Threads take chunks of a file in turn and decode them while they are in the processor's cache. Plain files are read in
pieces of whole batches; where that cannot be, the records at the edges are put together by whoever asks for the batch.
"""

from __future__ import annotations

import threading
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, TypeAlias

from ._batching import Part

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from recordkit.records import Chunk
    from recordkit.storage import RecordFile, Stream

    from ._batching import Making

_Made: TypeAlias = "Part | list[Any] | BaseException"

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

    def _alone(self) -> Iterator[list[_Made]]:
        while (taken := self._feed.take(self._pieces)) is not None:
            yield self._made(*taken)

    def _made(self, file: int, chunk: Chunk, position: int) -> list[_Made]:
        """Return what a chunk gives: whole batches, and at its two ends records for batches across chunks."""
        size, path = self._size, self._files[file].name
        self._pieces = max(1, _PIECE_BYTES * len(chunk) // max(1, chunk.nbytes) // size)
        count = len(chunk) if self._count is None else min(len(chunk), max(0, self._count - position))
        start = min(count, -position % size)
        stop = start + (count - start) // size * size
        made: list[_Made] = []
        if start:
            made.append(Part(chunk.slice(0, start), path))
        batches: list[Any] = []
        made.append(batches)
        for at in range(start, stop, size):
            try:
                batches.append(self._making.batch(chunk, at, at + size, path))
            except BaseException as error:
                made.append(error)  # behind the batches before it, however many share a chunk with them
                return made
        if stop < count:
            made.append(Part(chunk.slice(stop, count), path))
        return made

    def _assembled(self, made: Iterator[list[_Made]]) -> Iterator[Any]:
        """Yield whole batches, with those across chunks put together."""
        parts: list[Part] = []
        given = held = 0
        for items in made:
            for item in items:
                if isinstance(item, list):
                    yield from item
                    given += len(item) * self._size
                    continue
                if isinstance(item, BaseException):
                    raise item
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

    def _by_threads(self) -> Iterator[list[_Made]]:
        crew = _Crew(self._workers, self._feed, lambda: self._feed.take(self._pieces), self._made)
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
    records begins a batch. That one may still be in work then, and turn out to be damaged: nothing is given out when a
    failure is known, for what stands before it has been.

    Attributes:
        failure: The first in the order of those that are known.
    """

    def __init__(
        self, files: Sequence[RecordFile], first: int, size: int, open_stream: Callable[[RecordFile, int], Stream]
    ) -> None:
        self._files = files
        self._size = size
        self._open_stream = open_stream
        self._lock = threading.Lock()
        self._turn = threading.Lock()  # to open the next file
        self.failure: BaseException | None = None
        self._failed_at = (0, 0)
        self._starts: list[int] = []  # of each file opened so far: the position of its record 0 in the order
        self._first = first
        self._open: tuple[int, Stream | None] = (-1, None)  # one object: it is looked at without the lock

    def take(self, pieces: int) -> tuple[int, Chunk, int] | None:
        """Return (file, chunk, position of its first record), or None at the end."""
        while True:
            if self.failure is not None:
                raise self.failure
            file, stream = self._open
            try:
                chunk = None if stream is None else _some(stream, pieces * self._size)
                if stream is not None and (failure := getattr(stream, "failure", None)) is not None:
                    self._fail(file, failure)  # the next reading of this stream would raise it, and there may be none
                if chunk is not None:
                    return file, chunk, self._starts[file] + chunk.first_record
                if file >= len(self._files):
                    return None
                taken = self._open_next(file)
            except BaseException as error:
                self._fail(file, error)
                continue
            if taken is not None:
                return taken

    def _fail(self, file: int, error: BaseException) -> None:
        at = file, getattr(error, "record", None) or 0
        with self._lock:
            if self.failure is None or at < self._failed_at:
                self.failure, self._failed_at = error, at

    def _open_next(self, ended: int) -> tuple[int, Chunk, int] | None:
        """Open the file behind `ended`, unless another thread was faster."""
        with self._turn:
            file, stream = self._open
            if file != ended:
                return None
            position = self._starts[file] + stream.next_record if stream is not None else 0
            number = file + 1
            if number == len(self._files):
                self._open = number, None
                return None
            first = self._first if number == 0 else 0
            stream = self._open_stream(self._files[number], first)
            self._starts.append(position - first)
            lead = -position % self._size
            try:
                # What is lacking to a whole batch comes first, so that the pieces behind it are whole batches.
                chunk = stream.read(lead) if lead else None
            finally:
                self._open = number, stream
            return (number, chunk, position) if chunk is not None and len(chunk) else None


def _some(stream: Stream, records: int) -> Chunk | None:
    """Return the next chunk that is not that of a gzip member without records."""
    chunk = stream.read(records)
    while chunk is not None and not len(chunk):
        chunk = stream.read(records)
    return chunk


class _Crew:
    """Threads that make something of what a feed gives, and hand it over in order.

    Each holds at most one result that was not yet asked for, and there is room for as many more.
    """

    def __init__(self, workers: int, feed: _Feed, take: Callable[[], Any], make: Callable[..., Any]) -> None:
        self._feed = feed
        self._take = take
        self._make = make
        self._room = threading.Semaphore(2 * workers)
        self._change = threading.Condition()
        self._done: dict[int, tuple[int, Any]] = {}  # by position: how many records, and what was made or went wrong
        self._running = workers
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
        except BaseException:
            # It is the feed's failure, raised behind all that was given out before. Who waits for room has to know.
            for _ in self._threads:
                self._room.release()
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
                    if self._feed.failure is not None:
                        raise self._feed.failure
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
