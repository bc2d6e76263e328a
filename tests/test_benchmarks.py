"""Benchmarks: what recordkit does in them runs and is right, on next to nothing; the others need environments."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parent.parent / "benchmarks"
# Without pictures, which are drawn in an environment of their own.
TASKS = (
    "scan-w1,decode-w1,decode-w4,encode,write-w1,read-w1,random,bake-w3,read-overlay-w1,"
    "pipeline,shuffle,first,view,epochs-memory-w1"
)


@pytest.mark.slow
def test_every_case_of_recordkit_finds_what_was_drawn(tmp_path: Path) -> None:
    said = tmp_path / "said.json"
    options = {"--scale": "0.0005", "--repeats": "1", "--competitors": "recordkit,read", "--only": TASKS}
    places = {"--data": tmp_path / "data", "--json": said}
    command = [sys.executable, "run.py", *(str(word) for pair in (options | places).items() for word in pair)]

    subprocess.run(command, cwd=BENCHMARKS, check=True, stdout=subprocess.DEVNULL, timeout=120)

    measured = json.loads(said.read_text())["measurements"]
    ours = [each for each in measured if each["competitor"] in ("recordkit", "read")]
    assert len(ours) > 20
    assert [each for each in ours if each.get("results") != "equal"] == []
