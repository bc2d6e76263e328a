"""Measure: how fast a dataset is read in several ways, a few seconds each."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from recordkit import _core, engines
from recordkit.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from recordkit.dataset import Dataset
    from recordkit.engines import Workers

__all__ = ["Measured", "measurements"]

_BLOCK: Final = 4 << 20
_MOST_ROWS: Final = 1024


@dataclass(frozen=True)
class Measured:
    """A speed in bytes and records per second; None if not measured."""

    what: str
    bytes_per_second: float | None
    records_per_second: float | None


def measurements(dataset: Dataset, seconds: float, hands: Workers) -> Iterator[Measured]:
    """Yield the measurements one by one."""
    paths = [file.local.path for file in dataset.shards if file.local is not None]
    size = _bytes_a_record(dataset)
    yield Measured("the disk, raw", _rates(lambda end: _raw(paths, end, drop=True), seconds)[0], None)
    yield Measured("memory, raw", _rates(lambda end: _raw(paths, end, drop=False), seconds)[0], None)
    yield Measured("checksum alone", _rates(lambda end: _checksums(), seconds / 4)[0], None)
    if not size:
        return
    yield Measured("records, checked, 1 thread", *_rates(lambda end: _records(dataset, end), seconds))
    if dataset.schema is not None:
        rows = max(1, min(_MOST_ROWS, int(_BLOCK / size)))
        _, rate = _rates(lambda end: _columns(dataset, end, hands, rows), seconds)
        what = f"columns, {counted(engines.count(hands), 'thread')}"
        yield Measured(what, None if rate is None else rate * size, rate)
    dataset[0]  # builds the index, once
    yield Measured("any record, one by one", None, _rates(lambda end: _random(dataset, end), seconds)[1])


def _rates(passes: Callable[[float], Iterator[tuple[int, int]]], seconds: float) -> tuple[float | None, float | None]:
    """Return bytes and records per second, repeating the passes until the time is over."""
    held = records = 0
    begun = time.perf_counter()
    while True:
        for size, count in passes(begun + seconds):
            held, records = held + size, records + count
        spent = time.perf_counter() - begun
        if spent >= seconds:
            return held / spent if held else None, records / spent if records else None


def _raw(paths: list[Path], end: float, *, drop: bool) -> Iterator[tuple[int, int]]:
    block = bytearray(_BLOCK)
    for path in paths:
        with path.open("rb", buffering=0) as file:
            if drop and hasattr(os, "posix_fadvise"):
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            while size := file.readinto(block):
                yield size, 0
                if time.perf_counter() >= end:  # after a read: a slow disk has a speed, too
                    return


def _checksums() -> Iterator[tuple[int, int]]:
    block = np.zeros(_BLOCK, np.uint8)
    _core.crc32c(block)
    yield block.nbytes, 0


def _records(dataset: Dataset, end: float) -> Iterator[tuple[int, int]]:
    for file in dataset.shards:
        stream = file.stream()
        while (chunk := stream.read()) is not None:
            yield chunk.nbytes, len(chunk)
            if time.perf_counter() >= end:
                return


def _columns(dataset: Dataset, end: float, hands: Any, rows: int) -> Iterator[tuple[int, int]]:
    for batch in dataset.batch(rows, workers=hands):
        for name in batch.names:
            batch[name]
        yield 0, len(batch)
        if time.perf_counter() >= end:
            return


def _random(dataset: Dataset, end: float) -> Iterator[tuple[int, int]]:
    for number in np.random.default_rng(0).integers(0, len(dataset), _MOST_ROWS).tolist():
        dataset[number]
        yield 0, 1
        if time.perf_counter() >= end:
            return


def _bytes_a_record(dataset: Dataset) -> float:
    chunk = dataset.shards[0].stream().read()
    return chunk.nbytes / len(chunk) if chunk is not None and len(chunk) else 0.0
