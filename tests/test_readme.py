"""The README is right: its program runs as it stands."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def test_the_program_in_the_readme_runs_and_prints_what_it_should(tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)

    run = subprocess.run(
        [sys.executable, "-W", "ignore::ResourceWarning", "-c", "\n".join(blocks)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert run.stderr == ""
    assert run.stdout == (
        "[0 1 2] [[5 6]\n [0 0]\n [7 0]] [ True False False]\n"
        "3 [] [2 0]\n"
        "[2 0 1]\n"
        "damaged.tfrecord: record 0 at byte 0: the payload or its checksum is damaged\n"
        "2 records are intact\n"
    )


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "guide").glob("*.md")), ids=lambda page: page.stem)
def test_the_programs_of_a_guide_run(page: Path, tmp_path: Path) -> None:
    program = "\n".join(re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL))

    run = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)

    assert run.returncode == 0, run.stderr


def test_the_demo_runs(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, ROOT / "examples" / "demo.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert run.stderr == ""
    assert "going on behind row 1,000" in run.stdout
    assert "61,610 records recovered" in run.stdout
    assert "The rescued file is sound: True" in run.stdout


def test_architecture_names_every_part_there_is() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    parts = [path.name for path in (ROOT / "src" / "recordkit").iterdir() if path.suffix == ".py" or path.is_dir()]
    sources = {path.stem for path in (ROOT / "cpp" / "core").glob("*.cc")}

    missing = [name for name in parts if name not in ("__init__.py", "__pycache__") and f"`{name}" not in text]

    assert missing == []
    assert [name for name in sources if f"`{name}`" not in text] == []
