"""What is said of a sample: spread over the files, marked as one, and never more different values than there are."""

from __future__ import annotations

import copy
import pickle
from typing import TYPE_CHECKING

import numpy as np
import pytest

import recordkit as rk
from recordkit.cli import main
from recordkit.columns import BytesColumn
from recordkit.tools.stats._contents import NumberStats, StringStats
from tests.chance import generator

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.drawn
def test_never_more_different_values_than_values() -> None:
    chance = generator("distinct values")
    for _ in range(40):
        count = chance.randrange(1, 30_000)
        first = chance.randrange(-(2**62), 2**62)
        numbers, texts = NumberStats(), StringStats("string")
        numbers.add(np.arange(first, first + count))
        texts.add(BytesColumn.of([str(first + each) for each in range(min(count, 5000))], text=True))

        assert numbers.facts()["distinct"] <= count
        assert texts.facts()["distinct"] <= min(count, 5000)


def test_info_looks_at_files_spread_over_all_beside_an_overlay(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "data"
    rk.write(path, [{"id": number} for number in range(20_000)], shards=20, rows=20_000, sync=False)
    main(["info", str(path)])
    plain = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("id "))

    rk.add_fields(path, {"one": 1}, sync=False)
    main(["info", str(path)])
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("id "))

    assert line.split() == plain.split()
    assert "0 to 17,511 in the sample" in line


def test_lines_of_a_sample_say_so(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    rk.write(path, [{"id": number, "odd": number % 2} for number in range(900)], sync=False)

    lines = str(rk.stats(path, sample=100)).splitlines()

    assert lines[0] == "100 records, a sample of 900"
    assert all("of a sample" in line for line in lines[2:])
    assert [line.split()[3] for line in lines[2:]] == ["≥100", "≥2"]
    assert "sample" not in str(rk.stats(path))


def test_statistics_survive_pickling_and_copying(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    rk.write(path, [{"id": number, "text": str(number)} for number in range(9)], sync=False)
    found = rk.stats(path)

    assert pickle.loads(pickle.dumps(found)) == copy.deepcopy(found) == found
