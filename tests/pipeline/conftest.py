"""Small blocks, so that few records make many of them, and no threads left behind."""

from __future__ import annotations

import gc
import threading
import time
from typing import TYPE_CHECKING

import pytest

from recordkit.pipeline import _combine, _generator, _plan, _reading, _windows

if TYPE_CHECKING:
    from collections.abc import Iterator


def ours() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("recordkit-")]


@pytest.fixture(scope="module")
def small_blocks() -> Iterator[None]:
    """Blocks of a few elements."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_reading, "_FIRST_BLOCK", 3)
        patch.setattr(_reading, "_BLOCK_BYTES", 1000)
        patch.setattr(_plan, "_FEW", 4)
        patch.setattr(_plan, "_ROW_BYTES", 700)
        patch.setattr(_plan, "_BUFFERED_BYTES", 1000)
        patch.setattr(_windows, "_READ_BYTES", 300)
        patch.setattr(_combine, "_MIXED", 5)
        patch.setattr(_generator, "_MOST", 6)
        yield


@pytest.fixture(scope="module", autouse=True)
def _no_threads_left() -> Iterator[None]:
    yield
    gc.collect()  # errors that were caught hold the loops that they ended
    until = time.monotonic() + 5
    while ours() and time.monotonic() < until:
        time.sleep(0.01)
    assert not ours()
