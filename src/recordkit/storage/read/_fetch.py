"""Fetch: reads records of several files at once, in any order."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from itertools import groupby, pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from recordkit import _core
from recordkit.errors import RecordKitError
from recordkit.filesystems import files_at_once

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from numpy.typing import NDArray

    from recordkit.records import Chunk

    from ._record_file import RecordFile
    from ._record_index import RecordIndex


def fetch(files: Sequence[RecordFile], which: NDArray[np.int64], numbers: NDArray[np.int64]) -> Chunk:
    """Return records in the requested order; they are read in the order of the files.

    Args:
        files: The files that hold the records.
        which: The position in `files` of each record's file.
        numbers: The number of each record in its file.

    Raises:
        CorruptRecordError: One of them is damaged.
    """
    most = files_at_once()
    if len(files) > most:
        return _sorted_by_file(files, which, numbers, most)
    listed = _listed(files, which, numbers)
    chunk = None if listed is None else _read(files, listed, which)
    # The single-file way explains damaged records and wrong indexes.
    return _one_by_one(files, which, numbers) if chunk is None else chunk


def fetch_later(
    files: Sequence[RecordFile], which: NDArray[np.int64], numbers: NDArray[np.int64]
) -> Chunk | MappedRecords:
    """Return what `fetch` returns or, if all files are mapped, records that are read when they are decoded."""
    maps = _maps(files)
    listed = None if maps is None else _listed(files, which, numbers)
    if maps is None or listed is None:
        return fetch(files, which, numbers)
    return MappedRecords(listed, maps, lambda some: fetch(files, which[some], numbers[some]), slice(0, len(which)))


class MappedRecords:
    """Records of files that are mapped, read only when they are decoded; for `recordkit.examples.Decoder`.

    Args:
        listed: Where the records are.
        maps: The files.
        read: Reads some of the records.
        here: The range of `listed` that this object covers.
    """

    first_record = 0  # as in any chunk of records from several places

    def __init__(
        self,
        listed: _core.PlaceList,
        maps: Sequence[_core.FileMap],
        read: Callable[[slice], Chunk],
        here: slice,
    ) -> None:
        self._listed, self._maps, self._read, self._here = listed, maps, read, here

    def __len__(self) -> int:
        return int(self._here.stop - self._here.start)

    def slice(self, start: int, stop: int) -> MappedRecords:
        """Return records [start, stop)."""
        first = self._here.start
        return MappedRecords(self._listed, self._maps, self._read, slice(first + start, first + stop))

    def gathered(self, decoder: _core.Decoder, start: int, stop: int) -> Any:
        """Decode records [start, stop); return None if one is damaged, so that reading it names the error."""
        first = self._here.start
        return decoder.decode_mapped(self._maps, self._listed, first + start, first + stop)

    def read(self) -> Chunk:
        """Read the records.

        Raises:
            CorruptRecordError: One of them is damaged.
        """
        return self._read(self._here)


def _maps(files: Sequence[RecordFile]) -> list[_core.FileMap] | None:
    """Return the maps of the files; None if one is not mapped, or is not read through an index."""
    if len(files) > files_at_once() or any(file.at_places() is None for file in files):
        return None
    try:
        with _borrowed(files):
            maps = [mapped for file in files if (mapped := file.map) is not None]
    except RecordKitError:
        raise
    except (ValueError, OSError):
        return None
    return maps if len(maps) == len(files) else None


@contextmanager
def _borrowed(files: Sequence[RecordFile]) -> Generator[list[int], None, None]:
    """Keep files open inside the block, and give their descriptors."""
    borrowed: list[RecordFile] = []
    with files[0].several(len(files)) if files else nullcontext():
        try:
            descriptors = []
            for file in files:
                borrowed.append(file)
                descriptors.append(file.borrowed())
            yield descriptors
        finally:
            for file in borrowed:
                file.give_back()


def _listed(
    files: Sequence[RecordFile], which: NDArray[np.int64], numbers: NDArray[np.int64]
) -> _core.PlaceList | None:
    """Return where the records are; None if one call cannot read them all."""
    places: list[RecordIndex] = []
    for file in files:
        own = file.at_places()
        if own is None:
            return None
        places.append(own)
    tables = [own.table for own in places]
    try:
        listed, lacking = _core.find_places(tables, which, numbers)
        if lacking:
            for at, blocks in groupby(lacking, itemgetter(0)):
                places[at].load(tables[at], [block for _, block in blocks])
            listed, _ = _core.find_places(tables, which, numbers)
    except RecordKitError:
        raise
    except (ValueError, OSError, IndexError):
        return None
    return listed


def _read(files: Sequence[RecordFile], listed: _core.PlaceList, which: NDArray[np.int64]) -> Chunk | None:
    """Return the records, read by one call; None if one is damaged."""
    try:
        with _borrowed(files) as descriptors:
            chunk, fault, reads = _core.fetch_listed(descriptors, [file.map for file in files], listed)
            if reads:
                shares = np.bincount(which, minlength=len(files)) * reads // len(which)
                for file, share in zip(files, shares.tolist(), strict=True):
                    file.note_reads(share)
    except RecordKitError:
        raise
    except (ValueError, OSError):
        return None
    return None if fault else chunk


def _sorted_by_file(
    files: Sequence[RecordFile], which: NDArray[np.int64], numbers: NDArray[np.int64], most: int
) -> Chunk:
    """Return records of more files than may be open at once, reading `most` files at a time."""
    order = np.argsort(which, kind="stable")
    which, numbers = which[order], numbers[order]
    edges = np.searchsorted(which, np.arange(0, len(files) + most, most)).tolist()
    chunks = []
    for group, (start, stop) in enumerate(pairwise(edges)):
        first = group * most
        if start < stop:
            chunks.append(fetch(files[first : first + most], which[start:stop] - first, numbers[start:stop]))
    return _back(_core.join(chunks), order)


def _back(chunk: Chunk, order: NDArray[np.int64]) -> Chunk:
    """Return records to the order they had before they were sorted by `order`."""
    if (order[1:] > order[:-1]).all():
        return chunk
    back = np.empty(len(order), np.uint64)
    back[order] = np.arange(len(order), dtype=np.uint64)
    return chunk.pick(back)


def _one_by_one(files: Sequence[RecordFile], which: NDArray[np.int64], numbers: NDArray[np.int64]) -> Chunk:
    if len(files) == 1:
        return files[0].fetch(numbers)
    order = np.argsort(which, kind="stable")
    return _back(_core.join([file.fetch(numbers[which == at]) for at, file in enumerate(files)]), order)
