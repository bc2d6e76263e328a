from __future__ import annotations

import os
import threading
import time
from multiprocessing import active_children
from typing import TYPE_CHECKING, Any

import pytest

import recordkit as rk
from recordkit.errors import RecordKitError
from tests.dataset.files import save_many
from tests.pipeline.functions import doubled, fails_at_17, is_even, kills_itself, process_id
from tests.pipeline.sources import plain_all

if TYPE_CHECKING:
    from pathlib import Path

TWO = rk.Processes(2)


@pytest.fixture(scope="module")
def ds(tmp_path_factory: pytest.TempPathFactory) -> rk.Dataset:
    folder: Path = tmp_path_factory.mktemp("data")
    return rk.open(save_many(folder, [30, 0, 25], ["plain", "ours"]))


@pytest.fixture
def before() -> set[int | None]:
    """The processes that others have left."""
    return children()


def children() -> set[int | None]:
    return {process.pid for process in active_children()}


class TestProcesses:
    def test_give_what_threads_give(self, ds: rk.Dataset, before: set[int | None]) -> None:
        def made(pipe: Any, workers: Any) -> Any:
            return pipe.map(doubled, workers=workers).filter(is_even, workers=workers).batch(8)

        for pipe in (ds, ds.shuffle(3).shard(1, 2)):
            with iter(made(pipe, TWO)) as it:
                first = plain_all([next(it)])
                rest = plain_all(made(pipe, 2).resume(it.state_dict()))
                others = plain_all(it)

            assert first + others == plain_all(made(pipe, 2))
            assert rest == others

        assert children() <= before

    def test_functions_run_elsewhere(self, ds: rk.Dataset) -> None:
        assert os.getpid() not in set(ds.shuffle(1).map(process_id, workers=TWO))

    @pytest.mark.parametrize("order", ["shuffle", "in turn"])
    def test_error_names_file_and_record(self, ds: rk.Dataset, order: str) -> None:
        pipe = ds.shuffle(3) if order == "shuffle" else ds.skip(2)

        with pytest.raises(LookupError, match="not this one") as caught:
            list(pipe.map(fails_at_17, workers=rk.Processes(1)).prefetch())

        assert any("data-000.tfrecord: record 17: map(fails_at_17) failed" in note for note in caught.value.__notes__)
        assert "in fails_at_17" in str(caught.value.__cause__)

    def test_function_without_a_name_is_refused(self, ds: rk.Dataset) -> None:
        with pytest.raises(RecordKitError, match=r"cannot be sent to other processes.*\n  Functions are sent by name"):
            list(ds.shuffle(3).map(lambda row: row, workers=TWO))

    def test_process_that_dies_is_told(self, ds: rk.Dataset, before: set[int | None]) -> None:
        with pytest.raises(RecordKitError, match="a worker process ended unexpectedly"):
            list(ds.shuffle(3).map(kills_itself, workers=rk.Processes(1)))

        assert children() <= before

    def test_loop_that_is_left_leaves_no_process(self, ds: rk.Dataset, before: set[int | None]) -> None:
        it = iter(ds.shuffle(3).map(doubled, workers=rk.Processes(1)).prefetch())
        next(it)
        there = children() - before

        it.close()

        assert there
        assert children() <= before

    def test_end_that_the_pool_has_met_first_is_waited_for(
        self, ds: rk.Dataset, before: set[int | None], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        waitpid = os.waitpid

        def in_the_pool_first(pid: int, flags: int) -> tuple[int, int]:
            if "ExecutorManager" not in type(threading.current_thread()).__name__:
                time.sleep(0.1)
                return waitpid(pid, flags)
            told = waitpid(pid, flags)
            if told[0]:
                time.sleep(0.2)  # told, and not yet noted
            return told

        it = iter(ds.shuffle(3).map(doubled, workers=rk.Processes(1)))
        next(it)
        monkeypatch.setattr(os, "waitpid", in_the_pool_first)

        it.close()

        assert children() <= before
