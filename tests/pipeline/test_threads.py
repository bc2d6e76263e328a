from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recordkit.engines import AUTO, ThreadEngine, Threads, _ordered_threads
from recordkit.pipeline import Pipeline, from_generator
from tests.pipeline.chains import chains
from tests.pipeline.conftest import ours
from tests.pipeline.sources import MappedRecords, epoch, numbers


class Together:
    """A function that waits, and notes who calls it."""

    def __init__(self, seconds: float = 0.002) -> None:
        self.seconds = seconds
        self.threads: set[int] = set()

    def __call__(self, element: Any) -> Any:
        self.threads.add(threading.get_ident())
        time.sleep(self.seconds)
        return element


class TestOrder:
    @settings(max_examples=25)
    @given(chains(), st.integers(2, 5))
    @pytest.mark.usefixtures("small_blocks")
    def test_many_threads_give_what_one_gives(self, pipe: Pipeline, workers: int) -> None:
        many = Pipeline(pipe.source, pipe.steps, workers)

        assert epoch(many) == epoch(pipe)

    @settings(max_examples=25)
    @given(st.integers(0, 30), st.integers(1, 6), st.none() | st.integers(0, 30))
    def test_results_come_in_order_and_an_error_in_its_place(self, count: int, workers: int, bad: int | None) -> None:
        def made(number: int) -> int:
            if number == bad:
                raise LookupError
            return number

        found: list[int] = []
        try:
            found.extend(ThreadEngine(workers).map(made, (n for n in range(count))))
        except LookupError:
            found.append(-1)

        fails = bad is not None and bad < count
        assert found == ([*range(bad), -1] if fails else list(range(count)))  # type: ignore[arg-type]

    @pytest.mark.parametrize("workers", [1, 3])
    def test_what_is_taken_from_may_fail(self, workers: int) -> None:
        def failing() -> Any:
            yield from range(5)
            raise LookupError

        found: list[int] = []
        with pytest.raises(LookupError):
            found.extend(ThreadEngine(workers).map(abs, failing()))

        assert found == [0, 1, 2, 3, 4]


class TestHowMany:
    @pytest.mark.parametrize("workers", [1, Threads(3)])
    @pytest.mark.parametrize("behind", ["shuffle", "generator", "in turn", "cache"])
    @pytest.mark.usefixtures("small_blocks")
    def test_as_many_as_asked_for(self, workers: Any, behind: str) -> None:
        function = Together()
        pipe = {
            "shuffle": numbers(100).shuffle(1),
            "generator": from_generator(lambda: range(100)),
            "in turn": numbers(100),
            "cache": numbers(100).cache(),
        }[behind]

        list(pipe.map(function, workers=workers))

        assert len(function.threads) == (1 if workers == 1 else 3)

    @pytest.mark.parametrize("order", ["shuffle", "in turn"])
    @pytest.mark.usefixtures("small_blocks")
    def test_auto_starts_more_for_a_function_that_waits(self, order: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(_ordered_threads, "_LOOK_SECONDS", 0.005)
        monkeypatch.setattr(_ordered_threads, "_WAITING", 1e9)  # however busy the machine is with something else
        function = Together()

        pipe = Pipeline(MappedRecords((300,)), workers=AUTO)
        list((pipe.shuffle(1) if order == "shuffle" else pipe).map(function))

        assert len(function.threads) > 3

    def test_little_is_made_ahead(self) -> None:
        made: list[int] = []

        def make(number: int) -> None:
            made.append(number)

        things = ThreadEngine(3).map(make, (n for n in range(1000)))
        next(things)
        last = -1
        while last != len(made):
            last = len(made)
            time.sleep(0.05)
        things.close()

        assert last <= 1 + 2 * 3 + 2


class TestLeaving:
    def test_loop_that_is_left_leaves_no_thread(self) -> None:
        it = iter(numbers(1000).shuffle(1).map(abs, workers=4))
        next(it)
        there = ours()

        del it

        assert there
        assert not ours()

    def test_error_leaves_no_thread(self) -> None:
        with pytest.raises(ZeroDivisionError):
            list(numbers(1000).shuffle(1).map(lambda n: 1 // (n - 700), workers=4).prefetch())

    def test_threads_that_do_not_return_are_waited_for_together(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(_ordered_threads, "_LEAVE_SECONDS", 0.1)
        waits: list[float] = []
        join = threading.Thread.join
        end = threading.Event()

        def noted(thread: threading.Thread, timeout: float | None = None) -> None:
            waits.append(timeout or 0.0)
            join(thread, timeout)

        monkeypatch.setattr(threading.Thread, "join", noted)

        def waits_for_end(number: int) -> int:
            if number:
                end.wait(20)
            return number

        it = iter(ThreadEngine(12).map(waits_for_end, (n for n in range(99))))
        next(it)
        it.close()
        end.set()

        assert len(waits) == 11
        assert sum(waits[1:]) < 0.1

    def test_interrupt_while_taking_does_not_wait_for_the_others(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(_ordered_threads, "_LEAVE_SECONDS", 0.05)
        end, busy = threading.Event(), threading.Event()
        finished: list[int] = []

        def interrupted() -> Any:
            for number in range(10**9):
                if busy.is_set() and threading.current_thread() is threading.main_thread():
                    raise KeyboardInterrupt
                yield number

        def made(number: int) -> int:
            if threading.current_thread() is not threading.main_thread():
                busy.set()
                end.wait(20)
                finished.append(number)
            return number

        with pytest.raises(KeyboardInterrupt):
            list(ThreadEngine(2).map(made, interrupted()))

        assert finished == []
        end.set()

    def test_thread_that_waits_for_the_next_thing_is_left_alone(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(_ordered_threads, "_LEAVE_SECONDS", 0.05)
        end, waiting, closed = threading.Event(), threading.Event(), threading.Event()

        def slow() -> Any:
            try:
                yield 1
                waiting.set()
                end.wait(20)
                yield 2
            finally:
                closed.set()

        it = iter(from_generator(slow).map(abs, workers=2))
        next(it)
        assert waiting.wait(20)
        it.close()
        del it
        end.set()

        assert closed.wait(20)


class TestRoom:
    def test_few_results_wait_for_one_that_takes_long(self) -> None:
        workers, made, late = 2, [0], threading.Event()
        first, lock = threading.Event(), threading.Lock()

        class Numbers:
            failure = None

            def take(self) -> Any:
                with lock:
                    made[0] += 1
                    return made[0] - 1, 1, made[0] - 1

        def make(number: int) -> int:
            mine = threading.current_thread() is not threading.main_thread()
            if mine and not first.is_set():
                first.set()
                late.wait(0.5)  # while the one who asks for results goes on
            elif not first.is_set():
                first.wait(0.05)
            return number

        crew = _ordered_threads.OrderedThreadPool(workers, Numbers(), make)
        results = crew.results()
        most = 0
        for expected in range(200):
            assert next(results) == expected
            most = max(most, crew.waiting)
        late.set()
        crew.stop()

        assert first.is_set()
        assert most <= 4 * workers
