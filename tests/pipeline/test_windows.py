from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordkit.columns import Batch
from recordkit.pipeline import Pipeline
from recordkit.pipeline._windows import Window, _cuts, has_small_rows, read
from tests.pipeline.sources import MappedRecords, epoch, ids, numbers, plain


@dataclass(frozen=True)
class Rows(MappedRecords):
    """Rows of numbers, some without a mark.

    Attributes:
        wide: How much memory a row takes.
    """

    wide: int = 1

    def values(self, numbers: Any) -> Any:
        lines = numbers[:, None] + np.arange(self.wide)
        return Batch(
            {"id": numbers, "line": lines}, len(numbers), {"line": numbers % 3 > 0} if len(numbers) > 1 else {}
        )


def piped(**facts: Any) -> Pipeline:
    return Pipeline(Rows((50, 40), mean_bytes=100, **facts), workers=2).shuffle(4, window=3000)


class TestCuts:
    @given(st.lists(st.integers(0, 99), min_size=1, max_size=60).map(sorted), st.integers(1, 9))
    def test_make_parts_of_about_one_size(self, numbers: list[int], size: int) -> None:
        parts = np.split(numbers, _cuts(np.array(numbers), size))

        assert np.concatenate(parts).tolist() == numbers
        assert all(0 < len(part) <= 2 * size for part in parts)
        assert len(parts) <= max(1, -(-len(numbers) // size))

    def test_leave_together_what_follows_each_other(self) -> None:
        numbers = np.concatenate([np.arange(0, 9), np.arange(20, 31), np.arange(50, 60)])

        assert _cuts(numbers, 10) == [9, 20]


class TestWindow:
    @given(st.lists(st.integers(0, 60), min_size=1, max_size=40), st.integers(0, 40), st.integers(0, 40))
    def test_is_what_was_asked_for(self, asked: list[int], start: int, stop: int) -> None:
        source = Rows((61,), mean_bytes=1 << 20)
        with ThreadPoolExecutor(2) as pool:
            window = read(source, np.array(asked), pool).result()

        found = window.elements(start, stop).values

        assert isinstance(found, Batch)
        assert found["id"].tolist() == asked[start:stop]
        assert found["line"][:, 0].tolist() == asked[start:stop]

    def test_values_that_are_lacking_stay_so(self) -> None:
        expected = [
            {"id": n, "line": None if n % 3 == 0 else [n]} for n in epoch(numbers(50, 40).shuffle(4, window=3000))
        ]

        assert epoch(piped()) == expected

    def test_whoever_keeps_a_batch_does_not_keep_the_window(self) -> None:
        with ThreadPoolExecutor(1) as pool:
            window = read(Rows((61,)), np.arange(61), pool).result()

        found = window.elements(3, 5).values

        assert isinstance(found, Batch)
        assert found["id"].base is None

    def test_columns_are_shuffled_by_all_who_wait_for_them(self) -> None:
        both = threading.Barrier(2, timeout=5)

        def made() -> Any:
            both.wait()
            return np.arange(2)

        window = Window([Batch({"a": made, "b": made}, 2)], np.array([1, 0]), 0.0)
        with ThreadPoolExecutor(2) as pool:
            found = list(pool.map(lambda at: plain(window.elements(at, at + 1).values), range(2)))

        assert found == [{"a": [1], "b": [1]}, {"a": [0], "b": [0]}]


class TestSmallRows:
    def test_are_numbers(self) -> None:
        assert has_small_rows(Rows((9,)), 3)
        assert not has_small_rows(MappedRecords((9,)), 3)  # has text
        assert not has_small_rows(Rows((9,), gives_lists=True), 3)

    def test_take_no_more_memory_than_their_records_and_little(self) -> None:
        assert has_small_rows(Rows((9,), wide=11, mean_bytes=100), 3)
        assert not has_small_rows(Rows((9,), wide=12, mean_bytes=100), 3)
        assert not has_small_rows(Rows((9,), wide=200, mean_bytes=10_000), 3)

    def test_are_there_for_every_record(self) -> None:
        assert not has_small_rows(Rows((9,), bad=frozenset({5})), 3)

    def test_are_as_declared(self) -> None:
        class Late(MappedRecords):
            def values(self, numbers: Any) -> Any:
                return Batch({"id": lambda: numbers}, len(numbers))

        assert not has_small_rows(Late((9,)), 3)


@pytest.mark.usefixtures("small_blocks")
class TestReading:
    def test_rows_are_decoded_by_as_many_threads_as_there_are_workers(self) -> None:
        decoding, met = threading.Barrier(3, timeout=5), threading.Event()

        class Meeting(Rows):
            def values(self, numbers: Any) -> Any:
                if len(numbers) > 1 and not met.is_set():
                    decoding.wait()
                    met.set()
                return super().values(numbers)

        found = ids(Pipeline(Meeting((54,)), workers=3).shuffle(1, window=10_800))

        assert sorted(found) == list(range(54))

    def test_what_else_there_is_is_not_made_long_before(self) -> None:
        made: list[int] = []

        class Noting(MappedRecords):
            def values(self, numbers: Any) -> Any:
                made.append(len(numbers))
                return super().values(numbers)

        for lists in (True, False):
            with iter(Pipeline(Noting((90,), gives_lists=lists), workers=1).shuffle(1, window=20_000)) as it:
                next(it)

            assert sum(made) < 30
            made.clear()

    def test_time_of_reading_is_told(self) -> None:
        pipe = piped()
        list(pipe)

        assert "90 " in pipe.profile()
