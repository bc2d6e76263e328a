"""Many small shards: few descriptors are enough for any number of them, and each costs what one of few costs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def work(descriptors: int, shards: int) -> str:
    """Return what `tests.many_shards` prints in a process of its own."""
    command = [sys.executable, "-m", "tests.many_shards", str(descriptors), str(shards)]
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True, timeout=300).stdout


@pytest.mark.parametrize(
    ("descriptors", "shards"),
    [(64, 70), pytest.param(128, 300, marks=pytest.mark.slow), pytest.param(256, 1000, marks=pytest.mark.slow)],
)
def test_everything_works_with_more_shards_than_descriptors(descriptors: int, shards: int) -> None:
    assert work(descriptors, shards) == ""


def test_where_descriptors_run_out_an_error_says_so_and_nothing_is_left_open() -> None:
    assert work(-64, 20) == ""


def test_a_shard_costs_as_many_calls_among_many_as_among_few() -> None:
    few, more, most = (json.loads(work(0, shards)) for shards in (10, 20, 30))

    assert few.keys() == more.keys() == most.keys()
    for name in few:
        first, second = more[name] - few[name], most[name] - more[name]
        assert second <= 1.1 * first + 10, name
        assert second <= 40 * 10, name
