"""Processes: the other end of `worker`; starts a competitor, asks it, and ends it."""

from __future__ import annotations

import json
import os
import select
import subprocess
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PATIENCE = 1200  # seconds; no case takes a tenth of it
# TensorFlow's notices of what it was compiled with fill the logs; errors still come through.
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "2", "CUDA_VISIBLE_DEVICES": "-1"}


class CompetitorError(Exception):
    """A competitor could not start, or could not do what was asked."""


class Process:
    """A running competitor."""

    def __init__(self, module: str, python: Path, log: Path) -> None:
        log.parent.mkdir(parents=True, exist_ok=True)
        self._log = log
        with log.open("w") as errors:
            self._process = subprocess.Popen(
                [python, "-m", f"competitors.{module}"],
                cwd=HERE,
                env={**os.environ, **QUIET},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        try:
            hello = self._answer()
        except CompetitorError:
            self.close()
            raise
        self.id = self._process.pid
        self.versions: dict[str, str] = hello["versions"]
        self.jobs: list[str] = hello["jobs"]

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to a request.

        Raises:
            CompetitorError: The job failed, or the process has died.
        """
        assert self._process.stdin is not None
        try:
            print(json.dumps(request), file=self._process.stdin, flush=True)
        except BrokenPipeError:
            raise CompetitorError(self._last_words()) from None
        said = self._answer()
        if "error" in said:
            raise CompetitorError(said["error"])
        return said

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        # There is never more than one line under way, so nothing can wait in the buffer of `stdout` unseen.
        if not select.select([self._process.stdout], [], [], PATIENCE)[0]:
            self._process.kill()
            raise CompetitorError(f"no answer within {PATIENCE} seconds")
        line = self._process.stdout.readline()
        if not line:
            raise CompetitorError(self._last_words())
        said: dict[str, Any] = json.loads(line)
        return said

    def _last_words(self) -> str:
        status = self._process.wait()
        lines = self._log.read_text(errors="replace").strip().splitlines()
        return f"its process ended with status {status}: {lines[-1] if lines else 'it said nothing'} (see {self._log})"

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.close()
            self._process.wait(timeout=20)
        except (BrokenPipeError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
