from __future__ import annotations

import time
from typing import Any

import pytest

from recordkit.pipeline import from_generator
from tests.pipeline.sources import numbers, rows


class TestExplain:
    def test_says_what_the_shuffle_guarantees(self) -> None:
        assert "a permutation of all 1,000" in numbers(1000).shuffle(3).explain()
        assert "a permutation of all 2,000" in numbers(1000).repeat(2).shuffle(3).explain()
        assert "a permutation of all 500" in numbers(1000).shard(0, 2).shuffle(3).explain()
        assert "no element moves more than 50 places forward" in numbers(9).shuffle(3, buffer=50).explain()
        assert "of each file in turn" in rows(3, 4).interleave(2).explain()
        assert "of each file in turn" in rows(3, 4).interleave(2).shuffle(3, window=20).explain()
        assert "has no effect before" in rows(3, 4).interleave(2).shuffle(3).explain()
        window = numbers(1000).shuffle(3, window=20_000).explain()
        assert "pieces of 100, each shuffled with 0 others in a window of 100" in window

    @pytest.mark.parametrize(
        ("uneven", "words"), [("pad", "2 of the first are repeated"), ("drop", "the last 1 are dropped")]
    )
    def test_says_how_many_are_padded(self, uneven: Any, words: str) -> None:
        assert words in numbers(10).shuffle(1).take(7).shard(0, 3, uneven=uneven).explain()

    def test_says_nothing_of_padding_where_ranks_divide_evenly(self) -> None:
        assert "evenly" not in numbers(9).shard(0, 3).explain()

    def test_says_who_can_resume(self) -> None:
        assert "can be resumed on any number of ranks and workers" in rows(9).shard(0, 2).map(dict).batch(2).explain()
        assert "can be resumed on the same ranks (Filter('id > 3'))" in rows(9).shard(0, 2).filter("id > 3").explain()

    def test_says_how_it_reads(self) -> None:
        assert "one file after the other" in rows(9).explain()
        assert "each record by its position" in rows(9).shuffle(1).explain()
        assert "large pieces" in rows(9).shuffle(1, window=500).explain()
        assert "compressed blocks" in rows(9, ahead_bytes=5000).shuffle(1).explain()

    def test_every_step_has_a_line(self) -> None:
        pipe = from_generator(lambda: [1]).map(abs).batch(2).zip(numbers(3)).enumerate().prefetch()

        lines = pipe.explain().splitlines()

        assert [line.split("(")[0].strip() for line in lines[1:3]] == ["Enumerate", "Prefetch"]


class TestProfile:
    def test_tells_each_step_apart(self) -> None:
        def slow(number: int) -> int:
            time.sleep(0.001)
            return number

        pipe = numbers(40).shuffle(1).map(slow, workers=1).filter(lambda n: n % 2).batch(4)
        list(pipe)

        lines = {line.split("  ")[-1]: line.split() for line in pipe.profile().splitlines()}
        assert float(lines["Map(TestProfile.test_tells_each_step_apart.<locals>.slow)"][0]) >= 0.04
        assert lines["read, check and decode"][1] == "40"
        assert "5 elements;" in pipe.profile()

    def test_knows_nothing_before_the_first_epoch(self) -> None:
        assert len(numbers(3).profile().splitlines()) == 1
