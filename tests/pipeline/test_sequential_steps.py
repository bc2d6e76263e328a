from __future__ import annotations

import threading
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recordkit.errors import SchemaError
from recordkit.pipeline import from_generator
from recordkit.pipeline._order_steps import REST, SLOTS, permuted
from recordkit.pipeline._sequential_steps import _DRAWN
from tests.pipeline.conftest import ours
from tests.pipeline.sources import epoch, few_sizes, numbers, plain, plain_all, rows

pytestmark = pytest.mark.usefixtures("small_blocks")


class TestUnbatch:
    @settings(max_examples=40)
    @given(few_sizes, st.integers(1, 9), st.booleans(), st.booleans())
    def test_is_the_inverse_of_batch(self, sizes: list[int], size: int, mapped: bool, shuffled: bool) -> None:
        pipe = rows(*sizes)
        pipe = pipe.shuffle(3) if shuffled else pipe
        pipe = pipe.map(lambda row: (row, {"n": [row["id"]]})) if mapped else pipe

        assert epoch(pipe.batch(size).unbatch()) == epoch(pipe)

    def test_takes_lists_and_arrays_apart(self) -> None:
        assert plain_all(from_generator(lambda: [[1, 2], np.arange(2), []]).unbatch()) == [1, 2, 0, 1]
        assert plain_all(from_generator(lambda: [np.arange(4).reshape(2, 2)]).unbatch()) == [[0, 1], [2, 3]]

    def test_what_is_no_batch_is_named(self) -> None:
        with pytest.raises(SchemaError, match="expected a batch, a list or an array, found int"):
            list(numbers(3).unbatch())
        for batch in ({"a": [1], "b": [1, 2]}, ([1], [1, 2])):
            with pytest.raises(SchemaError, match=r"columns of one length, found \[1, 2\]"):
                list(from_generator([batch].copy).unbatch())


class TestEnumerate:
    def test_numbers_go_on_over_passes(self) -> None:
        assert epoch(numbers(3).repeat(2).enumerate()) == list(enumerate([0, 1, 2] * 2))

    def test_numbers_are_of_what_is_left(self) -> None:
        assert epoch(numbers(9).filter(lambda n: n % 2).enumerate()) == [(0, 1), (1, 3), (2, 5), (3, 7)]


class TestTakeAndSkip:
    @settings(max_examples=60)
    @given(
        few_sizes,
        st.lists(st.tuples(st.sampled_from(["take", "skip"]), st.integers(0, 30)), max_size=4),
        st.sampled_from(["rows", "shuffle", "filter", "buffer", "batch"]),
    )
    def test_are_slices_wherever_they_stand(self, sizes: list[int], cuts: list[tuple[str, int]], behind: str) -> None:
        pipe = {
            "rows": lambda: numbers(*sizes),
            "shuffle": lambda: numbers(*sizes).shuffle(2),
            "filter": lambda: numbers(*sizes).filter(lambda n: n % 3),
            "buffer": lambda: numbers(*sizes).shuffle(2, buffer=3),
            "batch": lambda: numbers(*sizes).batch(2),
        }[behind]()
        wanted = epoch(pipe)
        for step, count in cuts:
            pipe = getattr(pipe, step)(count)
            wanted = wanted[:count] if step == "take" else wanted[count:]

        assert epoch(pipe) == wanted

    def test_take_asks_for_no_more(self) -> None:
        def few() -> Any:
            yield from range(3)
            pytest.fail("nobody asked for more")

        assert list(from_generator(few).take(3)) == [0, 1, 2]


class TestRepeat:
    def test_batches_span_passes(self) -> None:
        for pipe in (
            numbers(3),
            numbers(3).shuffle(1),
            numbers(3).filter(lambda n: True),
            from_generator(lambda: range(3)),
        ):
            assert [len(batch) for batch in pipe.repeat(3).batch(4)] == [4, 4, 1]

    def test_batches_behind_it_do_not(self) -> None:
        assert [len(batch) for batch in numbers(3).batch(2).repeat(2)] == [2, 1, 2, 1]

    def test_passes_are_shuffled_anew(self) -> None:
        for pipe in (numbers(30).shuffle(1), numbers(30).filter(lambda n: True).shuffle(1, buffer=8)):
            found = epoch(pipe.repeat(2))

            assert sorted(found[:30]) == sorted(found[30:])
            assert found[:30] != found[30:]
            assert epoch(pipe.repeat(2), 1) == epoch(pipe, 2) + epoch(pipe, 3)

    def test_nothing_ends_however_often(self) -> None:
        assert list(numbers(3).filter(lambda n: False).repeat()) == []
        assert list(numbers(3).repeat(0).batch(2)) == []

    def test_has_no_end_unless_told(self) -> None:
        assert epoch(numbers(2).repeat().take(5)) == [0, 1, 0, 1, 0]
        assert epoch(numbers(2).filter(lambda n: True).repeat().take(5)) == [0, 1, 0, 1, 0]


class TestBufferShuffle:
    @staticmethod
    def oracle(values: list[int], size: int, seed: int, number: int) -> list[int]:
        """One element at a time, with the same draws."""
        buffer, found = values[:size], []
        for at, value in enumerate(values[size:]):
            slot = int(permuted(np.array([at]), _DRAWN, seed, number, SLOTS)[0] % size)
            found.append(buffer[slot])
            buffer[slot] = value
        rest = permuted(np.arange(len(buffer)), len(buffer), seed, number, REST)
        return found + [buffer[i] for i in rest.tolist()]

    @settings(max_examples=60)
    @given(few_sizes, st.integers(1, 60), st.integers(0, 2**40), st.integers(0, 3), st.booleans())
    def test_swaps_one_element_after_the_other(
        self, sizes: list[int], size: int, seed: int, number: int, columns: bool
    ) -> None:
        pipe = rows(*sizes).shuffle(seed, buffer=size) if columns else numbers(*sizes).shuffle(seed, buffer=size)

        found = [row["id"] if columns else row for row in epoch(pipe, number)]

        assert found == self.oracle(list(range(sum(sizes))), size, seed, number)

    def test_gives_before_all_is_there(self) -> None:
        def many() -> Any:
            yield from range(64)
            pytest.fail("nobody asked for more")

        assert next(iter(from_generator(many).shuffle(1, buffer=5))) < 20


class TestPrefetch:
    def test_elements_are_made_before_they_are_asked_for(self) -> None:
        made = threading.Event()

        def second(n: int) -> int:
            if n == 1:
                made.set()
            return n

        with iter(from_generator(lambda: range(9)).map(second, workers=1).prefetch(3)) as it:
            next(it)

            assert made.wait(10)

    def test_no_more_than_asked_for(self) -> None:
        given: list[int] = []

        def noted() -> Any:
            for n in range(1000):
                given.append(n)
                yield n

        it = iter(from_generator(noted).prefetch(4))
        next(it)
        ahead = self.still(given)
        it.close()

        assert ahead <= 1 + 4 + 6  # those that were asked for, and one block of six

    @staticmethod
    def still(given: list[int]) -> int:
        """How many there are when no more come."""
        last = -1
        while last != len(given):
            last = len(given)
            threading.Event().wait(0.05)
        return last

    def test_error_comes_behind_what_was_made_before(self) -> None:
        it = iter(from_generator(lambda: map((1).__truediv__, [1, 1, 1, 1, 0])).prefetch(50))
        found: list[float] = []

        with pytest.raises(ZeroDivisionError):
            found.extend(it)

        assert found[:3] == [1, 1, 1]

    def test_loop_that_is_left_leaves_no_thread(self) -> None:
        for element in numbers(900).shuffle(1).map(abs, workers=3).batch(2).prefetch():
            assert len(element) == 2
            assert ours()
            break
        del element

        assert not ours()


class TestShard:
    def test_rounds_are_dealt_out(self) -> None:
        pipe = numbers(7).filter(lambda n: True)

        assert [epoch(pipe.shard(rank, 3)) for rank in range(3)] == [[0, 3, 6], [1, 4, 0], [2, 5, 1]]

    def test_fewer_elements_than_ranks_are_given_more_than_once(self) -> None:
        for pipe in (numbers(2), numbers(2).filter(lambda n: True)):
            found = Counter(n for rank in range(5) for n in epoch(pipe.shard(rank, 5)))

            assert found == {0: 3, 1: 2}

    def test_nothing_for_nobody(self) -> None:
        assert epoch(numbers(0).filter(lambda n: True).shard(1, 3)) == epoch(numbers(0).shard(1, 3)) == []


class TestColumns:
    def test_rows_stay_columns_through_stages(self) -> None:
        pipe = rows(9, 9).shuffle(2, buffer=4).skip(1).take(9).repeat(2).prefetch()

        batch = next(iter(pipe.batch(16)))

        assert plain(batch)["text"] == [f"n{n}" for n in plain(batch)["id"]]
        assert type(batch).__name__ == "Batch"
