"""Benchmarks: what recordkit does in them runs and is right, on next to nothing; the others need environments."""

from __future__ import annotations

import importlib
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


def plots(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "plots.py", *arguments, "--check"]
    return subprocess.run(command, cwd=BENCHMARKS, check=False, capture_output=True, text=True, timeout=60)


class TestFigures:
    def test_all_that_the_documentation_quotes_are_of_one_run(self) -> None:
        checked = plots()

        assert checked.stdout == ""
        assert checked.returncode == 0

    def test_another_figure_is_noticed_wherever_it_is_quoted(self, tmp_path: Path) -> None:
        results = json.loads((BENCHMARKS / "results" / "latest.json").read_text())
        results["ratios"][0]["ratio"] += 1
        (tmp_path / "other.json").write_text(json.dumps(results))

        checked = plots(str(tmp_path / "other.json"))

        assert checked.returncode == 1
        told = [Path(line.partition(": ")[0]).name for line in checked.stdout.splitlines()[::2]]
        assert told == ["speed.md", "README.md"]

    def test_every_ratio_that_a_table_asks_for_is_measured(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.syspath_prepend(BENCHMARKS)
        planned = {
            task.name: {ratio.words or f"{ratio.of} / {ratio.to}" for ratio in task.ratios}
            for task in importlib.import_module("plan").TASKS
        }
        drawn = importlib.import_module("plots")

        for row in (drawn.FASTER, drawn.CHEAPER):
            assert row.what in planned[row.task]
        for row in (*drawn.SUMMARY, *drawn.COMPARE):
            assert set(row.what) <= planned[row.task]

    def test_losses_are_in_the_tables(self) -> None:
        results = json.loads((BENCHMARKS / "results" / "latest.json").read_text())
        losses = {each["ratio"] for each in results["ratios"] if " / " in each["what"] and each["ratio"] < 1}
        page = (BENCHMARKS.parent / "docs" / "speed.md").read_text()
        summary, _, every = page.partition("## Every ratio")

        assert losses
        for loss in losses:
            assert f"| {loss:.3g} times as fast |" in summary
            assert f"| {loss:.3g} times as fast |" in every
