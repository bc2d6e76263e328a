"""The harness, once for all tests here."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from .harness import FULL, Harness, build_shim

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The shim, compiled."""
    return build_shim(tmp_path_factory.mktemp("shim"))


@pytest.fixture(scope="session")
def harness(shim: Path) -> Iterator[Harness]:
    """A harness whose trials take place in memory, where fsync costs nothing; what lasts is a matter of the model."""
    memory = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(prefix="recordkit-", dir=memory if os.access(memory, os.W_OK) else None))
    made = Harness(shim, folder, full=bool(os.environ.get(FULL)))
    yield made
    made.close()
    shutil.rmtree(folder)
