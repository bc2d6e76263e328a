"""Photos: what every competitor does with pictures: go through them in batches, and compare the first batch."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

import columns
import numpy as np
from cases import QUALITY
from columns import Digest
from exact import SIZE, quality
from worker import Done, Request, Work

LEAST = 30.0  # decibels: with less, it is not the same picture

Batches = Callable[[], Iterable[tuple[Any, Any]]]  # pictures, labels


def shown(batches: Batches, request: Request) -> Work:
    """Return the work of going through batches, the first of which is compared when nothing is timed."""
    decibels = 0.0

    def work(digest: Digest | None) -> Done:
        nonlocal decibels
        done, start = 0, time.perf_counter()
        for pixels, labels in batches():
            if digest:
                decibels = decibels if done else checked(pixels, request)
                digest.add_in_any_order({"label": np.asarray(labels, np.int64).reshape(-1)})
            done += len(labels)
        return Done(done, time.perf_counter() - start, {QUALITY: decibels})

    return work


def checked(pixels: Any, request: Request) -> float:
    found = quality(np.asarray(pixels), request["exact"])
    if found < LEAST:
        message = f"the first pictures are not what they should be: {found:.1f} dB"
        raise ValueError(message)
    return found


def encoded(request: Request) -> list[tuple[bytes, int]]:
    """Return the JPEGs and labels, for those who keep them in a format of their own."""
    drawn = columns.rows(columns.load(request["folder"], ["image", "label"]), 0, request["records"])
    return [(row["image"], row["label"]) for row in columns.dicts(drawn)]


def with_cv2(jpeg: bytes) -> Any:
    """Return the pixels of a JPEG as OpenCV makes them, as users of formats without a decoder do."""
    import cv2

    cv2.setNumThreads(0)  # there are as many workers as processors
    pixels = cv2.cvtColor(cv2.imdecode(np.frombuffer(jpeg, np.uint8), cv2.IMREAD_COLOR), cv2.COLOR_BGR2RGB)
    return cv2.resize(pixels, (SIZE, SIZE), interpolation=cv2.INTER_LINEAR).astype(np.float32) / np.float32(255)
