from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recordkit.columns import Batch
from recordkit.errors import StateError
from recordkit.pipeline import from_generator
from tests.pipeline.conftest import ours
from tests.pipeline.sources import epoch, few_sizes, ids, numbers, rows

pytestmark = pytest.mark.usefixtures("small_blocks")


class TestZip:
    @settings(max_examples=40)
    @given(st.lists(few_sizes, min_size=1, max_size=3))
    def test_gives_tuples_until_one_ends(self, several: list[list[int]]) -> None:
        pipes = [numbers(*sizes).shuffle(at) for at, sizes in enumerate(several)]
        pipe = pipes[0].zip(*pipes[1:])

        assert epoch(pipe) == list(zip(*map(epoch, pipes), strict=False))
        assert len(pipe) == min(sum(sizes) for sizes in several)

    def test_ends_with_the_shortest_that_has_no_end(self) -> None:
        assert epoch(numbers(3).zip(numbers(2).repeat())) == [(0, 0), (1, 1), (2, 0)]

    def test_all_are_of_one_epoch(self) -> None:
        pipe = numbers(20).shuffle(1).zip(numbers(20).shuffle(1))

        for number in (0, 1):
            assert all(left == right for left, right in epoch(pipe, number))


class TestConcat:
    @settings(max_examples=40)
    @given(st.lists(few_sizes, min_size=1, max_size=3))
    def test_gives_one_after_the_other(self, several: list[list[int]]) -> None:
        pipes = [numbers(*sizes) for sizes in several]
        pipe = pipes[0].concat(*pipes[1:])

        assert epoch(pipe) == [n for each in pipes for n in epoch(each)]
        assert len(pipe) == len(epoch(pipe))

    def test_rows_stay_columns(self) -> None:
        batch = next(iter(rows(3).concat(rows(2)).batch(5)))

        assert isinstance(batch, Batch)
        assert batch["id"].tolist() == [0, 1, 2, 0, 1]

    def test_rows_of_other_names_are_rows(self) -> None:
        pipe = rows(2).concat(rows(2).map(lambda row: {"id": row["id"]}))

        assert ids(pipe) == [0, 1, 0, 1]


class TestMix:
    @settings(max_examples=40)
    @given(few_sizes, few_sizes, st.integers(0, 9), st.integers(0, 2))
    def test_gives_all_of_each_in_its_order(self, left: list[int], right: list[int], seed: int, number: int) -> None:
        pipes = numbers(*left).map(lambda n: ("left", n)), numbers(*right).map(lambda n: ("right", n))

        found = epoch(pipes[0].mix(pipes[1], weights=[3, 1], seed=seed), number)

        for pipe, name in zip(pipes, ["left", "right"], strict=True):
            assert [element for element in found if element[0] == name] == epoch(pipe)

    @pytest.mark.parametrize("weights", [(1.0, 1.0, 1.0), (5.0, 2.0, 1.0), (0.1, 0.3, 0.6)])
    def test_shares_are_those_asked_for(self, weights: tuple[float, ...]) -> None:
        pipes = [numbers(1).map((at).__add__).repeat() for at in range(3)]
        drawn = 3000

        found = np.bincount(epoch(pipes[0].mix(*pipes[1:], weights=weights, seed=1).take(drawn)), minlength=3)

        wanted = drawn * np.array(weights) / sum(weights)
        assert ((found - wanted) ** 2 / wanted).sum() < 18.4  # one of ten thousand, by chi-square of two degrees

    def test_turns_say_nothing_of_each_other(self) -> None:
        zeros, ones = numbers(1).repeat(), numbers(1).map(lambda n: 1).repeat()

        turns = np.array(epoch(zeros.mix(ones, seed=5).take(4000)))

        pairs = np.bincount(2 * turns[:-1] + turns[1:], minlength=4)
        assert ((pairs - 1000) ** 2 / 1000).sum() < 21.1  # one of ten thousand, by chi-square of three degrees

    def test_stops_at_the_first_that_ends(self) -> None:
        left, right = numbers(4).map(lambda n: ("left", n)), numbers(1).map(lambda n: ("right", n)).repeat()

        found = epoch(left.mix(right, stop="first", seed=3))

        assert [n for name, n in found if name == "left"] == [0, 1, 2, 3]
        assert len(found) < 60

    def test_seeds_and_epochs_differ(self) -> None:
        pipes = numbers(30), numbers(30).map(lambda n: n + 100)
        found = {tuple(epoch(pipes[0].mix(pipes[1], seed=seed), number)) for seed in range(2) for number in range(2)}

        assert len(found) == 4

    def test_rows_stay_columns(self) -> None:
        assert isinstance(next(iter(rows(5).mix(rows(5)).batch(4))), Batch)

    @pytest.mark.parametrize("other", [{"weights": [1, 2]}, {"seed": 9}, {"stop": "first"}])
    def test_state_of_another_mixture_is_refused(self, other: dict[str, Any]) -> None:
        state = iter(numbers(5).mix(numbers(5))).state_dict()

        with pytest.raises(StateError):
            numbers(5).mix(numbers(5), **other).resume(state)


class TestThreads:
    @pytest.mark.parametrize("how", ["zip", "concat", "mix"])
    def test_are_let_go_of_all(self, how: str) -> None:
        pipes = [numbers(90).map(abs, workers=2).prefetch() for _ in range(2)]
        it = iter(getattr(pipes[0], how)(pipes[1]))
        next(it)

        it.close()

        assert not ours()

    def test_one_that_fails_ends_the_others(self) -> None:
        pipe = numbers(90).prefetch().zip(from_generator(lambda: map((1).__truediv__, [1, 1, 0])))

        with pytest.raises(ZeroDivisionError):
            list(pipe)
