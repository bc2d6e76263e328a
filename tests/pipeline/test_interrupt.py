"""Stopping: whatever is under way, nothing is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import recordkit as rk
from recordkit.pipeline._cache import cache_fingerprint
from tests.pipeline.slow import pipeline

if TYPE_CHECKING:
    from collections.abc import Iterator

_ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rk.write(tmp_path / "data", {"id": np.arange(1000)}, records_per_shard=300, sync=False)
    (tmp_path / "tmp").mkdir()
    return tmp_path


class Running:
    """The program, in a group of processes of its own."""

    def __init__(self, case: str, folder: Path) -> None:
        command = [sys.executable, "-m", "tests.pipeline.slow", case, str(folder)]
        environment = {**os.environ, "TMPDIR": str(folder / "tmp")}
        self.process = subprocess.Popen(
            command,
            cwd=_ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert self.process.stdout is not None
        self.first_line = self.process.stdout.readline()

    def ended(self, seconds: float) -> str:
        """Wait for the end of all its processes, and return what it wrote to stderr."""
        _, errors = self.process.communicate(timeout=seconds)
        until = time.monotonic() + 5
        while self.alive() and time.monotonic() < until:
            time.sleep(0.02)
        return str(errors)

    def alive(self) -> bool:
        try:
            os.killpg(self.process.pid, 0)
        except ProcessLookupError:
            return False
        return True

    def end(self) -> None:
        if self.alive():
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()


@pytest.fixture
def running(folder: Path, request: pytest.FixtureRequest) -> Iterator[Running]:
    program = Running(request.param, folder)
    yield program
    program.end()


CASES = ["shuffle", "prefetch", "generator", "processes", "processes in turn", "spill", "write"]


class TestInterrupt:
    @pytest.mark.parametrize("running", CASES, indirect=True)
    def test_ends_soon_and_leaves_nothing(self, running: Running, folder: Path) -> None:
        assert running.first_line.startswith("at work")

        os.kill(running.process.pid, signal.SIGINT)
        errors = running.ended(seconds=6)

        assert "KeyboardInterrupt" in errors
        assert running.process.returncode == -signal.SIGINT
        assert not running.alive()
        assert sorted(path.name for path in folder.iterdir()) == ["data", "tmp"]
        assert list((folder / "tmp").iterdir()) == []


class TestKill:
    @pytest.mark.parametrize("running", ["cache"], indirect=True)
    def test_cache_that_was_not_finished_is_not_used(self, running: Running, folder: Path) -> None:
        running.process.kill()
        running.ended(seconds=6)

        kept = pipeline("cache", folder).source

        assert cache_fingerprint(folder / "kept") is None
        assert kept._known() is None
