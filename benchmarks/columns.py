"""Columns: the values of a workload as they were drawn, kept beside its files, and digests to compare by.

Every process of the benchmark imports this, whatever its environment, so it needs NumPy alone.
"""

from __future__ import annotations

import hashlib
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray


class Lists(NamedTuple):
    """A list of numbers a record, or its bytes: all values back to back, and where each record's start."""

    values: NDArray[Any]
    offsets: NDArray[np.int64]


Columns = dict[str, Any]  # name -> an array with a row a record, or Lists


def save(folder: Path, columns: Columns) -> None:
    """Keep columns as .npy files."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, column in columns.items():
        if isinstance(column, Lists):
            np.save(folder / f"{name}.values.npy", column.values)
            np.save(folder / f"{name}.offsets.npy", column.offsets)
        else:
            np.save(folder / f"{name}.npy", column)


def load(folder: str | Path, names: Iterable[str], *, mapped: bool = False) -> Columns:
    """Return what `save` kept; `mapped` leaves the values on disk until they are looked at."""

    def array(path: Path) -> Any:
        return np.load(path, mmap_mode="r" if mapped else None)

    def column(name: str) -> Any:
        path = Path(folder) / f"{name}.npy"
        if path.exists():
            return array(path)
        return Lists(array(path.with_name(f"{name}.values.npy")), array(path.with_name(f"{name}.offsets.npy")))

    return {name: column(name) for name in names}


def rows(columns: Columns, start: int, stop: int) -> Columns:
    """Return records [start, stop) of columns, without copying values."""

    def part(column: Any) -> Any:
        if not isinstance(column, Lists):
            return column[start:stop]
        offsets = column.offsets[start : stop + 1]
        return Lists(column.values[offsets[0] : offsets[-1]], offsets - offsets[0])

    return {name: part(column) for name, column in columns.items()}


def picked(records: int, count: int) -> NDArray[np.int64]:
    """Return the numbers of so many records, drawn at random and none twice; the same in every process."""
    return np.random.default_rng(5).permutation(records)[:count].astype(np.int64)


def dicts(columns: Columns) -> list[dict[str, Any]]:
    """Return columns of scalars and of bytes as a dict of Python ints, floats and bytes a record."""

    def items(column: Any) -> list[Any]:
        if not isinstance(column, Lists):
            return column.tolist()
        starts, data = column.offsets.tolist(), memoryview(column.values)
        return [bytes(data[start:stop]) for start, stop in pairwise(starts)]

    return [dict(zip(columns, row, strict=True)) for row in zip(*map(items, columns.values()), strict=True)]


class Digest:
    """A hash of each column, the same however the records were cut into batches."""

    def __init__(self) -> None:
        self._hashes: dict[str, Any] = {}
        self._sums: dict[str, int] = {}

    def add(self, name: str, values: Any, lengths: Any = None) -> None:
        """Take the next values of a column; with `lengths`, how many of them, or bytes, each record has."""
        self._update(name, np.ascontiguousarray(values))
        if lengths is not None:
            self._update(f"{name} lengths", np.ascontiguousarray(lengths, dtype=np.int64))

    def add_strings(self, name: str, strings: Iterable[bytes]) -> None:
        """Take the next values of a column of bytes."""
        items = list(strings)
        self.add(name, np.frombuffer(b"".join(items), np.uint8), [len(item) for item in items])

    def add_columns(self, columns: Mapping[str, Any]) -> None:
        """Take the next records of many columns, arrays or Lists."""
        for name, column in columns.items():
            if isinstance(column, Lists):
                self.add(name, column.values, np.diff(column.offsets))
            else:
                self.add(name, column)

    def add_in_any_order(self, columns: Mapping[str, Any]) -> None:
        """Take some records, whichever they are. Lists may be filled up with zeros, and bytes may be Python objects."""
        rows = np.uint64(0)
        for name, column in sorted(columns.items()):
            values, numbers = numbered(column)
            self._sum(f"{name} {values.dtype.str}", numbers)
            rows = mixed(rows * ODD + numbers)
        self._sum("rows", rows)

    def _sum(self, key: str, numbers: Any) -> None:
        self._sums[key] = (self._sums.get(key, 0) + int(np.sum(numbers, dtype=np.uint64))) % (1 << 64)

    def _update(self, key: str, values: NDArray[Any]) -> None:
        # The dtype is part of what is compared: a peer that gives other types has done other work.
        found = self._hashes.setdefault(key, hashlib.blake2b(values.dtype.str.encode(), digest_size=8))
        found.update(memoryview(values).cast("B") if values.size else b"")

    def result(self) -> dict[str, str]:
        """Return a short text a column."""
        hashes = {key: found.hexdigest() for key, found in sorted(self._hashes.items())}
        return hashes | {key: f"{total:016x}" for key, total in sorted(self._sums.items())}


# --- A number for each row, for records that come in any order

ODD = np.uint64(0x9E3779B97F4A7C15)


def numbered(column: Any) -> tuple[NDArray[Any], NDArray[np.uint64]]:
    """Return a column's values, and a number for each row that tells it from others. What is filled up adds nothing."""
    if not isinstance(column, Lists) and column.dtype == object:
        joined = np.frombuffer(b"".join(column), np.uint8)
        column = Lists(joined, np.cumsum([0, *map(len, column)]))
    if isinstance(column, Lists):
        lengths = np.diff(column.offsets)
        values, places = column.values, np.arange(column.offsets[-1]) - np.repeat(column.offsets[:-1], lengths)
        sums = np.concatenate([[np.uint64(0)], np.cumsum(weighted(values, places), dtype=np.uint64)])
        return values, sums[column.offsets[1:]] - sums[column.offsets[:-1]]
    values = np.ascontiguousarray(column).reshape(len(column), -1)
    return values, weighted(values, np.arange(values.shape[1])).sum(axis=1, dtype=np.uint64)


def weighted(values: NDArray[Any], places: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return a number for each value at its place in the row; 0 for 0."""
    bits = values.view(f"u{values.dtype.itemsize}").astype(np.uint64)
    return mixed(bits) * (2 * places + 1).astype(np.uint64)


def mixed(numbers: Any) -> Any:
    """Return numbers that have little to do with these, the same for the same; 0 for 0."""
    numbers = numbers * ODD
    return (numbers ^ (numbers >> np.uint64(29))) * ODD
