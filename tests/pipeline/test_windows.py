from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordkit.columns import Batch
from recordkit.errors import SchemaError
from recordkit.pipeline import Piece, Pipeline, whole
from recordkit.pipeline._blocks import elements
from recordkit.pipeline._windows import Window, _parts, read
from tests.pipeline.sources import InMemory, epoch, ids, numbers, plain, rows

numbers_asked = st.lists(st.integers(0, 60), min_size=1, max_size=40)


class TestParts:
    @given(st.lists(st.integers(0, 99), min_size=1, max_size=60).map(sorted), st.integers(1, 9))
    def test_are_all_numbers_in_pieces_of_about_one_size(self, numbers: list[int], size: int) -> None:
        parts = _parts(np.array(numbers), size)

        assert np.concatenate(parts).tolist() == numbers
        assert all(len(part) <= 2 * size for part in parts)
        assert len(parts) <= max(1, -(-len(numbers) // size))

    def test_numbers_that_follow_each_other_stay_together(self) -> None:
        numbers = np.concatenate([np.arange(0, 9), np.arange(20, 31), np.arange(50, 60)])

        assert [part.tolist() for part in _parts(numbers, 10)] == [
            [*range(9)],
            [*range(20, 31)],
            [*range(50, 60)],
        ]


class TestWindow:
    @given(numbers_asked, st.sets(st.integers(0, 60)), st.integers(0, 40), st.integers(0, 40))
    def test_is_what_was_asked_for_without_what_is_passed_over(
        self, asked: list[int], bad: set[int], start: int, stop: int
    ) -> None:
        source = InMemory((61,), frozenset(bad), mean_bytes=1 << 20)
        start, stop = sorted((min(start, len(asked)), min(stop, len(asked))))
        with ThreadPoolExecutor(2) as pool:
            window = read(source, np.array(asked), pool).result()

        piece = window.piece(start, stop)

        there = [(number, at) for at, number in enumerate(asked[start:stop], 1) if number not in bad]
        assert [row["id"] for row in elements(piece.values)] == [number for number, _ in there]
        assert (list(piece.ends), piece.taken) == ([at for _, at in there], stop - start)

    def test_columns_that_cannot_be_made_fail_who_asks_for_them(self) -> None:
        def fails() -> Any:
            message = "no such thing"
            raise SchemaError(message)

        window = Window([whole(Batch({"a": np.arange(3), "b": fails}, 3))], np.array([2, 0, 1]), 0.0)
        values = window.piece(0, 2).values

        assert isinstance(values, Batch)
        assert values["a"].tolist() == [2, 0]
        with pytest.raises(SchemaError, match="no such thing"):
            values["b"]

    def test_columns_are_made_by_all_who_wait_for_them(self) -> None:
        both = threading.Barrier(2, timeout=5)

        def made() -> Any:
            both.wait()
            return np.arange(2)

        window = Window([whole(Batch({"a": made, "b": made}, 2))], np.array([1, 0]), 0.0)
        with ThreadPoolExecutor(2) as pool:
            found = list(pool.map(lambda at: window.piece(at, at + 1), range(2)))

        assert [[plain(row) for row in elements(piece.values)] for piece in found] == [
            [{"a": 1, "b": 1}],
            [{"a": 0, "b": 0}],
        ]


@pytest.mark.usefixtures("small_blocks")
class TestReading:
    def test_records_are_decoded_by_as_many_threads_as_there_are_workers(self) -> None:
        decoding, met = threading.Barrier(3, timeout=5), threading.Event()

        class Meeting(InMemory):
            def values(self, numbers: Any) -> Any:
                if not met.is_set():
                    decoding.wait()
                    met.set()
                return super().values(numbers)

        found = ids(Pipeline(Meeting((54,)), workers=3).shuffle(1, window=10_800))

        assert sorted(found) == list(range(54))

    def test_what_functions_make_is_not_made_long_before(self) -> None:
        loaded: list[int] = []

        class Noting(InMemory):
            def values(self, numbers: Any) -> Any:
                loaded.append(len(numbers))
                return super().values(numbers)

        with iter(Pipeline(Noting((90,), lists=True), workers=1).shuffle(1, window=20_000)) as it:
            next(it)

        assert sum(loaded) < 30

    def test_order_is_that_of_the_records_whoever_reads_them(self) -> None:
        assert ids(epoch(rows(50, 40).shuffle(4, window=3000))) == epoch(numbers(50, 40).shuffle(4, window=3000))


def test_time_of_reading_is_that_of_the_records() -> None:
    window = Window([Piece(Batch({"a": np.arange(3)}, 3), range(1, 4), 3)], np.arange(3), 6.0)

    assert window.seconds(2) == 4.0
