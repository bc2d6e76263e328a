"""The programs in `examples/` run, print nothing on standard error, and are short and listed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "examples"
PROGRAMS = sorted(FOLDER.glob("*.py"))


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.stem)
def test_a_program_runs_twice_and_prints_nothing_on_standard_error(program: Path, tmp_path: Path) -> None:
    for _ in range(2):  # the second time over what the first has written
        run = subprocess.run(
            [sys.executable, program], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
        )

        assert (run.returncode, run.stderr) == (0, "")
        assert run.stdout


def test_programs_are_short() -> None:
    lengths = {program.name: len(program.read_text().splitlines()) for program in PROGRAMS}

    assert {name: length for name, length in lengths.items() if length >= 40} == {}


def test_every_program_is_listed() -> None:
    page = (FOLDER / "README.md").read_text()

    assert [program.name for program in PROGRAMS if f"[{program.name}]({program.name})" not in page] == []
