"""Engines: whoever does the jobs of a tool, the result is the same."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import pytest

import recordkit as rk
from recordkit.engines import ProcessEngine
from recordkit.tools import verify
from recordkit.tools.verify.checks import CHECKS

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable
    from pathlib import Path

    from recordkit.engines import Engine


class Elsewhere:
    """An engine that sends every job through pickle, and does the last one first."""

    def map(self, function: Callable[[Any], Any], jobs: Iterable[Any]) -> Generator[Any, None, None]:
        sent = [pickle.dumps((function, job)) for job in jobs]
        results = []
        for data in reversed(sent):
            function, job = pickle.loads(data)
            results.append(function(job))
        yield from reversed(results)


ENGINES: list[Engine] = [Elsewhere(), ProcessEngine(2)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rk.write(tmp_path / "data", [{"id": number} for number in range(100)], shards=4)
    return tmp_path / "data"


def spoil(folder: Path) -> None:
    path = sorted(folder.glob("*.tfrecord"))[1]
    data = bytearray(path.read_bytes())
    data[200] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: type(engine).__name__)
@pytest.mark.parametrize("check", ["records", "examples"])
def test_verify_reports_the_same(engine: Engine, check: Any, folder: Path) -> None:
    spoil(folder)

    report = verify(folder, check=check, workers=engine)

    assert report == verify(folder, check=check, workers=1)
    assert [file.ok for file in report.files] == [True, False, True, True]


class TestRewrite:
    def test_processes_make_the_same_files(self, folder: Path, tmp_path: Path) -> None:
        rk.filter(folder, "id >= 50", out=tmp_path / "here" / "new", workers=1)
        rk.filter(folder, "id >= 50", out=tmp_path / "there" / "new", workers=ProcessEngine(2))

        here, there = (sorted((tmp_path / name / "new").glob("*.tfrecord")) for name in ("here", "there"))
        assert [path.name for path in here] == [path.name for path in there]
        assert [path.read_bytes() for path in here] == [path.read_bytes() for path in there]

    def test_what_a_job_raises_is_raised(self, folder: Path, tmp_path: Path) -> None:
        spoil(folder)

        with pytest.raises(rk.CorruptRecordError) as caught:
            rk.filter(folder, "id >= 50", out=tmp_path / "out", workers=ProcessEngine(2))

        assert caught.value.record is not None
        assert not (tmp_path / "out").exists()

    def test_a_job_that_runs_outside_this_process_and_its_children_is_refused(
        self, folder: Path, tmp_path: Path
    ) -> None:
        with pytest.raises(rk.StorageError, match="the process that makes it has ended"):
            rk.filter(folder, "id >= 50", out=tmp_path / "out", workers=Elsewhere())


def test_an_unknown_option_of_a_rewrite_is_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="there is no option 'worker'; there are workers, resume, overwrite, sync"):
        rk.bake(folder, tmp_path / "out", worker=2)  # type: ignore[call-arg]


def test_every_check_is_in_a_file_of_its_own() -> None:
    assert len({check.__module__ for check in CHECKS}) == len(CHECKS)
