"""The contract of engines."""

from __future__ import annotations

import itertools
import time
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recordkit.engines import Engine

_FEW = 100  # far more than any engine has in hand


class JobError(Exception):
    """What a job of these tests fails with."""


def _square(number: int) -> int:
    return number * number


def _slow_at_first(number: int) -> int:
    time.sleep(0.05 if number % 4 == 0 else 0)
    return number


def _fail_at_five(number: int) -> int:
    if number == 5:
        message = "five"
        raise JobError(message)
    return number


class EngineContract:
    """Tests that an engine keeps its promises.

    Inherit from it in a test module, and override the fixture:

    ```python
    class TestCluster(EngineContract):
        @pytest.fixture
        def engine(self):
            return ClusterEngine(workers=2)
    ```
    """

    @pytest.fixture
    def engine(self) -> Engine:
        """The engine under test."""
        raise NotImplementedError

    def test_every_job_is_done(self, engine: Engine) -> None:
        assert list(engine.map(_square, range(50))) == [number * number for number in range(50)]

    def test_no_jobs_have_no_results(self, engine: Engine) -> None:
        assert list(engine.map(_square, [])) == []

    def test_results_come_in_the_order_of_the_jobs(self, engine: Engine) -> None:
        assert list(engine.map(_slow_at_first, range(20))) == list(range(20))

    def test_any_value_is_a_result(self, engine: Engine) -> None:
        assert list(engine.map(_first, [(None,), ([],), (b"",), ({"a": 1},)])) == [None, [], b"", {"a": 1}]

    def test_a_failure_comes_after_the_results_before_it(self, engine: Engine) -> None:
        results = engine.map(_fail_at_five, range(20))

        assert list(itertools.islice(results, 5)) == [0, 1, 2, 3, 4]
        with pytest.raises(JobError, match="five"):
            next(results)

    def test_a_failure_of_the_jobs_comes_after_the_results_before_it(self, engine: Engine) -> None:
        results = engine.map(_square, _jobs_that_fail(3))

        assert list(itertools.islice(results, 3)) == [0, 1, 4]
        with pytest.raises(JobError, match="no more jobs"):
            next(results)

    def test_jobs_are_taken_as_they_are_needed(self, engine: Engine) -> None:
        taken = itertools.count()
        results = engine.map(_square, taken)

        assert [next(results) for _ in range(3)] == [0, 1, 4]
        results.close()

        assert next(taken) < _FEW

    def test_an_engine_can_be_used_again(self, engine: Engine) -> None:
        results = engine.map(_square, itertools.count())
        assert next(results) == 0
        results.close()

        assert list(engine.map(_square, range(3))) == [0, 1, 4]

    def test_nothing_is_done_before_a_result_is_asked_for(self, engine: Engine) -> None:
        taken = itertools.count()

        engine.map(_square, taken).close()

        assert next(taken) == 0


def _first(values: tuple[Any, ...]) -> Any:
    return values[0]


def _jobs_that_fail(number: int) -> Iterator[int]:
    yield from range(number)
    message = "no more jobs"
    raise JobError(message)
