from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from recordkit.storage.write._queue import WriteQueue

if TYPE_CHECKING:
    from concurrent.futures import Future


@pytest.fixture(params=[1, 3])
def lane(request: pytest.FixtureRequest) -> Any:
    lane = WriteQueue(request.param)
    yield lane
    lane.stop()


def take(done: list[int], work: Future[int]) -> None:
    done.append(work.result())


def fail(words: str) -> None:
    raise KeyError(words)


class TestLane:
    def test_jobs_are_done_in_order(self, lane: WriteQueue) -> None:
        done: list[int] = []

        for number in range(100):
            lane.do(partial(done.append, number))
        lane.wait()

        assert done == list(range(100))

    def test_work_is_had_by_a_later_job(self, lane: WriteQueue) -> None:
        done: list[int] = []

        for number in range(20):
            work = lane.start(pow, number, 2)
            lane.do(partial(take, done, work))
        lane.wait()

        assert done == [number**2 for number in range(20)]

    def test_a_failure_stops_what_follows_and_comes_out(self, lane: WriteQueue) -> None:
        done: list[int] = []

        with pytest.raises(KeyError, match="disk"):  # noqa: PT012  the first call may fail, or a later one
            lane.do(partial(fail, "disk"))
            lane.wait()

        if lane._thread is not None:
            with pytest.raises(KeyError, match="disk"):
                lane.do(partial(done.append, 1))
            with pytest.raises(KeyError, match="disk"):
                lane.wait()
            assert done == []

    def test_work_that_failed_comes_out_too(self, lane: WriteQueue) -> None:
        with pytest.raises(KeyError, match="work"):  # noqa: PT012
            work = lane.start(fail, "work")
            lane.do(work.result)
            lane.wait()

    def test_with_one_worker_there_is_no_thread(self) -> None:
        before = threading.active_count()

        lane = WriteQueue(1)
        lane.start(pow, 2, 2)

        assert threading.active_count() == before
        lane.stop()

    def test_whoever_hands_in_more_than_there_is_room_for_waits(self) -> None:
        lane, gate = WriteQueue(2), threading.Event()
        handed_in: list[int] = []

        def hand_in() -> None:
            for number in range(50):
                lane.do(gate.wait)
                handed_in.append(number)

        caller = threading.Thread(target=hand_in)
        caller.start()
        caller.join(0.2)
        waiting = len(handed_in)
        gate.set()
        caller.join()
        lane.wait()
        lane.stop()

        assert waiting <= 2 * 2 + 1
        assert len(handed_in) == 50

    def test_stopping_ends_the_threads_and_drops_what_waits(self) -> None:
        lane, gate = WriteQueue(2), threading.Event()
        done: list[int] = []
        lane.do(gate.wait)
        lane.do(partial(done.append, 1))
        stopper = threading.Thread(target=lane.stop)

        stopper.start()
        while lane._failure is None:
            pass
        gate.set()
        stopper.join()

        assert done == []
        assert [thread.name for thread in threading.enumerate() if thread.name.startswith("recordkit")] == []
        lane.stop()
