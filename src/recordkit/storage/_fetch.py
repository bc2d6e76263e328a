"""Fetch: records of several files at once, in any order."""

from __future__ import annotations

from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np

from recordkit import _core
from recordkit.errors import RecordKitError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from recordkit.records import Chunk

    from ._places import Places
    from ._record_file import RecordFile

_FILES_AT_ONCE = 128  # each is open meanwhile


def fetch(files: Sequence[RecordFile], which: NDArray[np.int64], numbers: NDArray[np.int64]) -> Chunk:
    """Return records in the order asked for; they are read in the order of the files.

    Args:
        files: Those that have some of the records.
        which: Of each record, the place of its file among the files.
        numbers: Of each record, its number in that file.

    Raises:
        CorruptRecordError: One of them is not sound.
    """
    chunk = _at_once(files, which, numbers) if len(files) <= _FILES_AT_ONCE else None
    # Damaged records, and what an index says that is not so, are looked into by the way of a single file.
    return _one_by_one(files, which, numbers) if chunk is None else chunk


def _at_once(files: Sequence[RecordFile], which: NDArray[np.int64], numbers: NDArray[np.int64]) -> Chunk | None:
    """Return the records, read into their places by one call; None if that is not how, or one is not sound."""
    places: list[Places] = []
    for file in files:
        own = file.at_places()
        if own is None:
            return None
        places.append(own)
    try:
        return _read(files, places, which, numbers)
    except RecordKitError:
        raise
    except (ValueError, OSError):
        return None


def _read(
    files: Sequence[RecordFile], places: Sequence[Places], which: NDArray[np.int64], numbers: NDArray[np.int64]
) -> Chunk | None:
    tables = [own.table for own in places]
    borrowed: list[RecordFile] = []
    try:
        descriptors = []
        for file in files:
            borrowed.append(file)
            descriptors.append(file.borrowed())
        maps = [file.map for file in files]
        chunk, fault, reads, lacking = _core.fetch_numbers(descriptors, maps, tables, which, numbers)
        if lacking:
            for at, blocks in groupby(lacking, itemgetter(0)):
                places[at].load(tables[at], [block for _, block in blocks])
            chunk, fault, reads, _ = _core.fetch_numbers(descriptors, maps, tables, which, numbers)
        if reads:
            shares = np.bincount(which, minlength=len(files)) * reads // len(numbers)
            for file, share in zip(files, shares.tolist(), strict=True):
                file.was_read(share)
    finally:
        for file in borrowed:
            file.give_back()
    return None if fault else chunk


def _one_by_one(files: Sequence[RecordFile], which: NDArray[np.int64], numbers: NDArray[np.int64]) -> Chunk:
    if len(files) == 1:
        return files[0].fetch(numbers)
    order = np.argsort(which, kind="stable")
    joined = _core.join([file.fetch(numbers[which == at]) for at, file in enumerate(files)])
    if (order[1:] > order[:-1]).all():
        return joined
    back = np.empty(len(order), np.uint64)
    back[order] = np.arange(len(order), dtype=np.uint64)
    return joined.pick(back)
