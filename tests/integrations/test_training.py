from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.dataset.files import save_many

if TYPE_CHECKING:
    from pathlib import Path

TIMEOUT = 150  # seconds for all ranks together


EARLY = (
    "torch.distributed was initialised after this TorchIterableDataset, which assumes one rank\n"
    "  Call torch.distributed.init_process_group first."
)


def trained(data: Path, run: Path, world: int, steps: int = 0) -> list[tuple[list[int], list[str | None]]]:
    """The ids that each rank saw, and what a dataset said to it that was made too early."""
    command = [sys.executable, "-m", "tests.integrations.training", str(data), str(run)]
    ranks = [
        subprocess.Popen([*command, str(rank), str(world), str(steps)], stderr=subprocess.PIPE, text=True)
        for rank in range(world)
    ]
    try:
        said = [rank.communicate(timeout=TIMEOUT)[1] for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    assert [rank.returncode for rank in ranks] == [0] * world, said
    return [json.loads((run / f"rank-{rank}-of-{world}.json").read_text()) for rank in range(world)]


@pytest.mark.slow
def test_a_run_of_two_ranks_that_one_goes_on_with_sees_each_record_once(tmp_path: Path) -> None:
    save_many(tmp_path / "data", [4, 0, 13, 7, 9])  # 33: after 2 steps of 2 x 3 records, 21 are left

    first = trained(tmp_path / "data", tmp_path, 2, steps=2)
    rest = trained(tmp_path / "data", tmp_path, 1)

    assert [len(seen) for seen, _ in first + rest] == [6, 6, 21]
    assert sorted(number for seen, _ in first + rest for number in seen) == list(range(33))
    assert [refused for _, refused in first + rest] == [[EARLY, EARLY, None], [EARLY, EARLY, None], [None] * 3]
