"""Cache: elements that are computed once, and kept in memory or on disk.

On disk they are a dataset of their own, which appears when it is complete: each record is a block of elements, as
`_cache_format` writes it, and the last record holds the number of elements of each block. The manifest holds the
fingerprint of what they were made from.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
import threading
import weakref
from bisect import bisect_right
from collections import OrderedDict
from contextlib import closing
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from recordkit.columns import Batch, BytesColumn, Ragged
from recordkit.errors import StateError, TargetBusyError
from recordkit.filesystems import LocalFile, OpenFiles
from recordkit.storage.format import Manifest, inside, manifest_of
from recordkit.storage.read import RecordFile
from recordkit.storage.write import create

from ._cache_format import dump, load
from ._elements import TracedElements, cut, joined, picked, traced

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from numpy.typing import NDArray

    from ._element_steps import Section
    from ._elements import Values
    from ._pipeline import Pipeline

_RECORD_BYTES = 64 << 10  # few elements, because any of them may be read alone
_KEPT_BLOCKS = 64
_FORMAT = 2  # 1 was pickled: such a cache is rebuilt


def nbytes(value: Any) -> int:
    """Return about how much memory an element takes."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    if isinstance(value, Batch):
        return sum(nbytes(value[name]) for name in value)
    if isinstance(value, BytesColumn):
        return value.data.nbytes + value.offsets.nbytes
    if isinstance(value, Ragged):
        return nbytes(value.values) + sum(level.nbytes for level in value.offsets)
    if isinstance(value, dict):
        return 64 + sum(nbytes(item) + 64 for item in value.values())
    if isinstance(value, list | tuple):
        return 64 + sum(map(nbytes, value))
    return len(value) + 48 if isinstance(value, bytes | str) else 32


class MemoryStore:
    """Blocks of elements in memory."""

    def __init__(self) -> None:
        self._blocks: list[Values] = []
        self._starts = [0]
        self.nbytes = 0

    def add(self, values: Values) -> None:
        """Keep some elements."""
        self.nbytes += nbytes(values)
        self._blocks.append(values)
        self._starts.append(self._starts[-1] + len(values))

    def blocks(self) -> list[Values]:
        """Return all that is kept."""
        return self._blocks

    def finish(self) -> CachedElements:
        """Return the elements, by number."""
        return CachedElements(self._starts, self._blocks.__getitem__)


class DiskStore:
    """Blocks of elements on their way to the disk."""

    def __init__(self, path: Path, fingerprint: str, *, mode: int | None, passing: bool = False) -> None:
        self._path = path
        self._passing = passing  # the folder is removed with its last user
        self._counts: list[int] = []
        metadata = {"recordkit": "cache", "format": _FORMAT, "of": fingerprint}
        self._writer = create(path, name="cache", metadata=metadata, mode=mode, overwrite=path.exists())

    def add(self, values: Values) -> None:
        """Write some elements, few in each record."""
        step = max(1, len(values) * _RECORD_BYTES // max(1, nbytes(values)))
        for start in range(0, len(values), step):
            part = cut(values, start, min(len(values), start + step))
            self._writer.write_raw(dump(part))
            self._counts.append(len(part))

    def finish(self) -> CachedElements:
        """Publish the dataset, and return the elements, by number."""
        self._writer.write_raw(dump(self._counts))
        self._writer.close()
        kept = open_cache(self._path)
        if self._passing:
            weakref.finalize(kept, shutil.rmtree, self._path.parent, ignore_errors=True)
        return kept

    def drop(self) -> None:
        """Remove everything."""
        self._writer.abort()
        if self._passing:
            shutil.rmtree(self._path.parent, ignore_errors=True)


def open_cache(path: Path) -> CachedElements:
    """Return the elements of a cache on disk."""
    where = manifest_of(path, lone=False)
    manifest = Manifest.load(where)
    assert manifest is not None
    open_files = OpenFiles.of(len(manifest.shards))
    files = [RecordFile(LocalFile(inside(path, shard.name, where)), shard, open_files) for shard in manifest.shards]
    ends = np.cumsum([shard.records for shard in manifest.shards])

    def record(number: int) -> Any:
        at = int(np.searchsorted(ends, number, side="right"))
        chunk = files[at].fetch_one(number - int(ends[at - 1] if at else 0))
        try:
            return load(next(iter(chunk)))
        except ValueError as error:
            raise _not_ours(path, number, str(error)) from error

    last = int(ends[-1]) - 1 if len(ends) else -1
    counts = record(last) if last >= 0 else None
    if type(counts) is not list or len(counts) != last or not all(type(n) is int and n > 0 for n in counts):
        raise _not_ours(path, last, "expected how many elements each record before it holds")
    starts = [0, *accumulate(counts)]

    def block(number: int) -> Values:
        values = record(number)
        if not isinstance(values, Batch | list) or len(values) != counts[number]:
            raise _not_ours(path, number, f"expected {counts[number]} elements")
        return values

    return CachedElements(starts, block)


def _not_ours(path: Path, record: int, words: str) -> StateError:
    message = f"{path}: record {record} is not what cache() writes: {words}\n  Remove the folder to rebuild the cache."
    return StateError(message)


def cache_fingerprint(path: Path) -> str | None:
    """Return the fingerprint of the cache in a folder, "" if it is outdated; None if there is none."""
    manifest = Manifest.load(manifest_of(path, lone=False))
    metadata = manifest.metadata if manifest is not None else {}
    if metadata.get("recordkit") != "cache":
        return None
    return str(metadata.get("of")) if metadata.get("format") == _FORMAT else ""


class CachedElements:
    """All elements, by number."""

    def __init__(self, starts: Sequence[int], block: Any) -> None:
        self._starts = starts
        self._block = block
        self._recent: OrderedDict[int, Values] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return int(self._starts[-1])

    def _at(self, number: int) -> Values:
        with self._lock:
            if number in self._recent:
                self._recent.move_to_end(number)
                return self._recent[number]
        values: Values = self._block(number)
        with self._lock:
            self._recent[number] = values
            if len(self._recent) > _KEPT_BLOCKS:
                self._recent.popitem(last=False)
        return values

    def span(self, first: int, stop: int) -> Values:
        """Return consecutive elements."""
        parts = []
        while first < stop:
            number = bisect_right(self._starts, first) - 1
            start, end = self._starts[number], min(stop, self._starts[number + 1])
            parts.append(cut(self._at(number), first - start, end - start))
            first = end
        return joined(parts) if parts else []

    def some(self, numbers: NDArray[np.int64]) -> Values:
        """Return elements in any order."""
        blocks = np.searchsorted(np.asarray(self._starts), numbers, side="right") - 1
        places = numbers - np.asarray(self._starts)[blocks]
        order = np.argsort(blocks, kind="stable")
        # Only the wanted elements of each block are joined.
        parts = [picked(self._at(number), places[blocks == number]) for number in np.unique(blocks).tolist()]
        back = np.empty(len(order), np.int64)
        back[order] = np.arange(len(order))
        return picked(joined(parts), back) if parts else []


@dataclass
class _CacheState:
    kept: CachedElements | None = None
    lock: Any = field(default_factory=threading.Lock)
    filling: Any = field(default_factory=threading.Lock)  # held while the elements are computed for all who wait

    def __getstate__(self) -> tuple[()]:
        return ()  # another process fills its own, or uses the one on disk

    def __setstate__(self, state: tuple[()]) -> None:
        self.__init__()  # type: ignore[misc]


@dataclass(frozen=True)
class CacheSource:
    """A source whose elements are computed once, and kept when all of them are there.

    Args:
        upstream: Computes them.
        path: A folder to keep them in; None for memory.
        max_bytes: If they need more memory than this, move them to disk.
        fingerprint: Identifies what they are made from.
        name: What errors call it.
        most_rows: How many elements to give at a time at most; None for as many as fit.
    """

    upstream: Pipeline
    path: Path | None
    max_bytes: int | None
    fingerprint: str
    name: str
    indexed = True
    exact = True
    gives_columns = False  # they may be columns, but are decoded already
    ahead_bytes = first_bytes = None
    most_rows: int | None = None
    _filled: _CacheState = field(default_factory=_CacheState)

    @property
    def ends(self) -> NDArray[np.int64]:
        """The elements, as if in one file."""
        return np.array([self.count()], np.int64)

    @property
    def mean_bytes(self) -> int:
        """A size that suits elements of any size."""
        return _RECORD_BYTES

    @property
    def exact_mean_bytes(self) -> int:
        """The same."""
        return _RECORD_BYTES

    def digest(self) -> str:
        """Return the fingerprint."""
        return self.fingerprint

    def permissions(self) -> int | None:
        """Return the permissions that all files of the elements allow; None if there are no files."""
        return self.upstream.permissions()

    def as_records(self) -> CacheSource:
        """Return this: each element is a record."""
        return self

    def describe(self) -> None:
        """Return None: the pipeline before the cache describes the elements."""

    def functions(self) -> tuple[Any, ...]:
        """Return none: they belong to the pipeline before the cache."""
        return ()

    def pipelines(self) -> tuple[Pipeline, ...]:
        """Return the pipeline that makes the elements."""
        return (self.upstream,)

    @property
    def gives_lists(self) -> bool:
        """Whether a batch is a list, as it is without a cache."""
        return self.upstream.gives_lists

    def summary(self) -> str:
        """Return where the elements are kept."""
        return f"{self.name}, kept in {'memory' if self.path is None else self.path} once they are made"

    def expect(self, count: int) -> None:
        """Do nothing: elements are kept in memory or read in blocks."""

    def place(self, number: int) -> str:
        """Name an element."""
        return f"{self.name}: element {number} of its cache"

    def count(self) -> int:
        """Return how many elements there are; all may have to be computed for that."""
        known = self._known()
        if known is not None:
            return len(known)
        count = self.upstream.count()
        return len(self.filled()) if count is None else count

    def _known(self) -> CachedElements | None:
        if self._filled.kept is None and self.path is not None and self.may_use(cache_fingerprint(self.path)):
            self._filled.kept = open_cache(self.path)
        return self._filled.kept

    def may_use(self, fingerprint: str | None) -> bool:
        """Tell whether to use the cache on disk with this fingerprint: None if there is none, "" if it is outdated."""
        return fingerprint == self.fingerprint

    def filled(self) -> CachedElements:
        """Return the elements, after computing them all if necessary."""
        with self._filled.filling:
            if (known := self._known()) is not None:
                return known
            filling = _CacheFiller(self)
            for _ in filling.blocks():
                pass
        assert filling.kept is not None
        return filling.kept

    def store(self) -> MemoryStore | DiskStore:
        """Return a store for new elements. If several fill the cache at once, the first to finish is kept."""
        if self.path is None:
            return MemoryStore()
        try:
            return DiskStore(self._free(self.path), self.fingerprint, mode=self.permissions())
        except TargetBusyError:
            return MemoryStore()

    def spilled(self, store: MemoryStore) -> DiskStore:
        """Move what has grown too large for memory to disk."""
        folder = Path(tempfile.mkdtemp(prefix="recordkit-cache-"))
        disk = DiskStore(folder / "cache", self.fingerprint, mode=self.permissions(), passing=True)
        for values in store.blocks():
            disk.add(values)
        return disk

    @staticmethod
    def _free(path: Path) -> Path:
        """Return the path; raise if there is something else than a cache."""
        if path.exists() and cache_fingerprint(path) is None and (not path.is_dir() or any(path.iterdir())):
            message = f"{path}: this is not a cache, and would be overwritten\n  Give cache() a folder of its own."
            raise StateError(message)
        return path

    def keep(self, kept: CachedElements) -> CachedElements:
        """Keep these elements, unless others were kept in the meantime."""
        with self._filled.lock:
            if self._filled.kept is None:
                self._filled.kept = kept
            return self._filled.kept

    def load(self, numbers: NDArray[np.int64]) -> _CachedSelection:
        """Return elements in any order; all may have to be computed for that."""
        return _CachedSelection(self.filled(), numbers)

    def batches(self, first: int, count: int | None, size: int, workers: int) -> Iterator[tuple[Values, float]]:
        """Yield elements in their order; the first time, as they are computed."""
        stop = None if count is None else first + count
        for values in self._in_order(first, stop, size):
            yield values, 0.0

    def stream(
        self, first: int, count: int | None, size: int, section: Section, workers: int
    ) -> Iterator[tuple[TracedElements, list[float], float]]:
        """Yield what steps make of the elements in their order."""
        for values, seconds in self.batches(first, count, size, workers):
            yield (*section.run(traced(values), self.place), seconds)

    def _in_order(self, first: int, stop: int | None, size: int) -> Iterator[Values]:
        known = self._known()
        if known is None:
            yield from _even(_between(_CacheFiller(self).blocks(), first, stop), size)
            return
        stop = len(known) if stop is None else min(stop, len(known))
        for start in range(first, stop, size):
            yield known.span(start, min(stop, start + size))


class _CacheFiller:
    """Computes all elements, and keeps them when all are done."""

    def __init__(self, cached: CacheSource) -> None:
        self._cached = cached
        self.kept: CachedElements | None = None

    def blocks(self) -> Generator[Values, None, None]:
        """Yield elements as they are computed."""
        cached = self._cached
        store = cached.store()
        try:
            with closing(cached.upstream.blocks(None, 0)) as blocks:
                for block in blocks:
                    store.add(block.values)
                    if (
                        isinstance(store, MemoryStore)
                        and cached.max_bytes is not None
                        and store.nbytes > cached.max_bytes
                    ):
                        store = cached.spilled(store)
                    yield block.values
            self.kept = cached.keep(store.finish())
        except BaseException:
            if isinstance(store, DiskStore):
                store.drop()
            raise


def _between(blocks: Iterator[Values], first: int, stop: int | None) -> Iterator[Values]:
    """Yield elements [first, stop) of blocks, and consume all blocks in any case."""
    at = 0
    for values in blocks:
        count = len(values)
        start, end = max(0, first - at), count if stop is None else min(count, stop - at)
        if start < end:
            yield cut(values, start, end)
        at += count


def _even(blocks: Iterator[Values], size: int) -> Iterator[Values]:
    """Yield the same elements, `size` at a time."""
    held: list[Values] = []
    count = 0
    for values in blocks:
        held.append(values)
        count += len(values)
        if count >= size:
            both = joined(held)
            stop = count // size * size
            for start, end in pairwise(range(0, stop + 1, size)):
                yield cut(both, start, end)
            held, count = ([cut(both, stop, count)], count - stop) if stop < count else ([], 0)
    if held:
        yield joined(held)


@dataclass(frozen=True)
class _CachedSelection:
    kept: CachedElements
    numbers: NDArray[np.int64]

    def elements(self, start: int, stop: int) -> TracedElements:
        """Return some of them."""
        return traced(self.kept.some(self.numbers[start:stop]))


def fingerprint(facts: Any) -> str:
    """Return a fingerprint of facts."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True, default=str).encode()).hexdigest()[:32]
