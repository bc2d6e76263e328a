from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from recordkit.errors import SchemaError
from recordkit.pipeline import _elements, from_generator
from tests.pipeline.sources import plain_all

pytestmark = pytest.mark.usefixtures("small_blocks")


class TestGenerated:
    def test_is_called_once_an_epoch(self) -> None:
        calls: list[int] = []

        def numbered() -> Any:
            calls.append(0)
            yield from range(20)

        pipe = from_generator(numbered)

        assert [list(pipe), list(pipe)] == [list(range(20))] * 2
        assert len(calls) == 2

    def test_rows_are_checked_by_the_schema(self) -> None:
        pipe = from_generator(lambda: ({"n": "x" if n == 9 else n} for n in range(12)), {"n": "int64"})

        with pytest.raises(SchemaError) as caught:
            list(pipe)

        assert any("among its elements" in note for note in caught.value.__notes__)

    def test_rows_with_a_schema_are_columns(self) -> None:
        pipe = from_generator(lambda: ({"n": n} for n in range(12)), {"n": "int16"})

        assert next(iter(pipe.filter("n > 3").batch(3)))["n"].dtype == np.int16

    def test_generator_is_closed_where_the_loop_ends(self) -> None:
        closed: list[int] = []

        def endless() -> Any:
            try:
                while True:
                    yield 1
            finally:
                closed.append(1)

        with iter(from_generator(endless).map(abs).batch(2).prefetch()) as it:
            next(it)

        assert closed == [1]

    def test_first_element_does_not_wait_for_others(self) -> None:
        def first() -> Any:
            yield 1
            pytest.fail("nobody asked for more")

        assert next(iter(from_generator(first))) == 1

    def test_one_that_gives_less_when_resumed_ends(self) -> None:
        left = [20, 5]
        pipe = from_generator(lambda: range(left.pop(0)))
        it = iter(pipe)
        plain_all(next(it) for _ in range(9))

        assert list(pipe.resume(it.state_dict())) == []

    def test_state_goes_on_with_another_partial_of_the_same_function(self) -> None:
        first, second = (from_generator(partial(range, 9)).map(partial(pow, exp=2)) for _ in range(2))
        it = iter(first)
        next(it)

        assert list(second.resume(it.state_dict())) == [n**2 for n in range(1, 9)]

    def test_elements_before_an_error_come_first(self) -> None:
        def failing() -> Any:
            yield from range(9)
            raise ZeroDivisionError

        given: list[int] = []
        with pytest.raises(ZeroDivisionError):
            given.extend(from_generator(failing))

        assert given == list(range(9))


@pytest.mark.parametrize(("seconds", "sizes"), [(1e9, [1, 2, 4, 6, 6, 1]), (0.0, [1] * 20)])
def test_slow_elements_are_not_waited_for_together(
    seconds: float, sizes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_elements, "_GATHER_SECONDS", seconds)

    lists = list(_elements.gathered(range(20), 6))

    assert [len(values) for values in lists] == sizes
    assert [element for values in lists for element in values] == list(range(20))
