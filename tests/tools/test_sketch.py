"""Sketches: exact while small, and within what they promise beyond."""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recordkit.tools.stats._counting import Distinct, TopValues
from recordkit.tools.stats._quantiles import BLOCK, POINTS, Moments, Quantiles

if TYPE_CHECKING:
    from collections.abc import Callable

few = st.lists(st.floats(-1e6, 1e6), max_size=60).map(lambda values: np.array(values))
seeds = st.integers(0, 2**32 - 1)


@st.composite
def many(draw: st.DrawFn) -> np.ndarray[Any, Any]:
    """More values than a block, of a kind that could be hard: sorted, with many equals, with outliers."""
    rng = np.random.default_rng(draw(seeds))
    size = draw(st.integers(1, 12 * BLOCK))
    shape = draw(st.sampled_from(["even", "few values", "heavy tail", "rising", "falling", "waves"]))
    values: dict[str, Callable[[], Any]] = {
        "even": lambda: rng.random(size),
        "few values": lambda: rng.integers(0, 5, size).astype(float),
        "heavy tail": lambda: rng.standard_cauchy(size),
        "rising": lambda: np.arange(float(size)),
        "falling": lambda: -np.arange(float(size)),
        "waves": lambda: np.sin(np.arange(size) / 100.0),
    }
    return np.asarray(values[shape]())


def quantiles_of(*arrays: np.ndarray[Any, Any]) -> Quantiles:
    sketch = Quantiles()
    for array in arrays:
        sketch.add(array)
    return sketch


def in_pieces(values: np.ndarray[Any, Any], seed: int) -> list[np.ndarray[Any, Any]]:
    cuts = sorted(random.Random(seed).choices(range(len(values) + 1), k=5))
    return np.split(values, cuts)


def worst_rank_error(sketch: Quantiles, values: np.ndarray[Any, Any]) -> float:
    """How far the rank of the answers is off the rank asked for: nothing where equal values span it.

    Shares such as 0.35 are rounded, in the last digit of a float; that is no error of a rank, and is taken off.
    """
    shares = np.linspace(0, 1, 41)
    answers = sketch.quantiles(shares.tolist())
    ordered = np.sort(values)
    low = np.searchsorted(ordered, answers, side="left") / len(values)
    high = np.searchsorted(ordered, answers, side="right") / len(values)
    return float(np.maximum(low - shares, shares - high).max()) - 1e-12


class TestQuantiles:
    @given(few.filter(len), st.floats(0, 1))
    def test_few_values_are_exact(self, values: np.ndarray[Any, Any], share: float) -> None:
        sketch = quantiles_of(*in_pieces(values, 0))

        assert sketch.quantile(share) in values.tolist()
        assert worst_rank_error(sketch, values) <= 0
        assert sketch.rank_error == 0

    @settings(max_examples=40, deadline=None)
    @given(many(), seeds)
    def test_many_are_within_the_promised_rank(self, values: np.ndarray[Any, Any], seed: int) -> None:
        sketch = quantiles_of(*in_pieces(values, seed))

        assert worst_rank_error(sketch, values) <= sketch.rank_error
        assert sketch.count == len(values)

    @settings(max_examples=40, deadline=None)
    @given(many(), seeds)
    def test_merged_parts_keep_the_promise_in_any_order(self, values: np.ndarray[Any, Any], seed: int) -> None:
        parts = [quantiles_of(part) for part in in_pieces(values, seed)]
        random.Random(seed).shuffle(parts)

        merged = Quantiles()
        for part in parts:
            merged.merge(part)

        assert merged.count == len(values)
        assert (merged.min, merged.max) == (values.min(), values.max())
        assert worst_rank_error(merged, values) <= merged.rank_error

    @settings(max_examples=30, deadline=None)
    @given(many())
    def test_rank_of_a_value_is_within_the_promise(self, values: np.ndarray[Any, Any]) -> None:
        sketch = quantiles_of(values)

        middle = float(np.median(values))

        assert abs(sketch.rank(middle) - int((values <= middle).sum())) <= sketch.rank_error * len(values)

    def test_memory_grows_with_the_logarithm(self) -> None:
        sketch, block = Quantiles(), np.random.default_rng(0).random(64 * BLOCK)

        for _ in range(4):
            sketch.add(block)

        assert sketch.nbytes <= 8 * (BLOCK + POINTS * 9)
        assert sketch.rank_error < 0.005

    def test_many_small_arrays_take_no_more_room_than_one(self) -> None:
        sketch = Quantiles()

        for number in range(1000):
            sketch.add(np.array([number]))

        assert len(sketch._loose) <= 65
        assert sketch.quantile(0.5) == 499

    def test_nan_and_infinities_are_counted_apart(self) -> None:
        sketch = quantiles_of(np.array([1, np.nan, np.inf, -np.inf, 3], np.float32))

        assert (sketch.count, sketch.nan, sketch.inf, sketch.min, sketch.max) == (2, 1, 2, 1.0, 3.0)

    def test_whole_numbers_beyond_two_to_the_53_stay_exact(self) -> None:
        sketch = quantiles_of(np.array([2**63 - 1, 2**63 - 2, 2**63 - 3]))

        assert sketch.quantile(0.5) == 2**63 - 2

    @given(st.integers(1, 400), st.integers(1, 39))
    def test_a_share_means_what_it_says_though_floats_round_it(self, count: int, fortieths: int) -> None:
        sketch = quantiles_of(np.arange(count))

        assert sketch.quantile(fortieths / 40) == -(-fortieths * count // 40) - 1

    def test_none_have_no_quantile(self) -> None:
        assert Quantiles().quantile(0.5) is None
        assert Quantiles().histogram() == ([], [])
        assert Quantiles().rank(1) == 0


class TestHistogram:
    @given(few.filter(len))
    def test_few_values_are_counted_as_numpy_counts_them(self, values: np.ndarray[Any, Any]) -> None:
        edges, counts = quantiles_of(values).histogram(7)

        assert counts == np.histogram(values, edges)[0].tolist() or edges[0] == edges[-1]
        assert sum(counts) == len(values)

    @settings(max_examples=30, deadline=None)
    @given(many())
    def test_bins_of_many_are_within_twice_the_promise(self, values: np.ndarray[Any, Any]) -> None:
        sketch = quantiles_of(values)

        edges, counts = sketch.histogram(20)

        if edges[0] < edges[-1]:
            off = np.abs(np.array(counts) - np.histogram(values, edges)[0]).max()
            assert off <= 2 * sketch.rank_error * len(values)
        assert sum(counts) == len(values)

    def test_range_of_all_floats_does_not_overflow(self) -> None:
        edges, counts = quantiles_of(np.array([-1.7e308, 0, 1.7e308])).histogram(2)

        assert (edges, counts) == ([-1.7e308, 0.0, 1.7e308], [1, 2])

    def test_one_value_has_one_bin(self) -> None:
        assert quantiles_of(np.array([2.5, 2.5])).histogram() == ([2.5, 2.5], [2])


class TestMoments:
    @given(few.filter(len), seeds)
    def test_parts_give_what_numpy_gives_for_all(self, values: np.ndarray[Any, Any], seed: int) -> None:
        moments = Moments()
        for part in in_pieces(values, seed):
            moments.add(part)

        assert (moments.count, moments.min, moments.max) == (len(values), values.min(), values.max())
        assert moments.mean == pytest.approx(values.mean(), rel=1e-9, abs=1e-6)
        assert moments.std == pytest.approx(values.std(), rel=1e-6, abs=1e-6)

    def test_large_mean_does_not_drown_the_deviation(self) -> None:
        moments = Moments()
        for start in range(0, 1000, 10):
            moments.add(1e12 + np.arange(start, start + 10) % 2)

        assert moments.std == pytest.approx(0.5)


class TestTopValues:
    @given(st.lists(st.integers(0, 30)), st.lists(st.integers(0, 30)))
    def test_few_different_values_are_exact_merged_or_not(self, one: list[int], other: list[int]) -> None:
        top, more = TopValues(keep=31), TopValues(keep=31)
        top.add(one)
        more.add_array(np.array(other, np.int64))

        top.merge(more)

        assert dict(top.most_common(99)) == dict(Counter(one + other))
        assert top.exact
        assert top.total == len(one + other)

    @given(st.integers(0, 500), st.floats(1.1, 4), st.integers(1, 8), seeds, st.booleans())
    def test_no_value_with_a_large_share_is_missed(
        self, size: int, skew: float, keep: int, seed: int, array: bool
    ) -> None:
        values = (np.random.default_rng(seed).zipf(skew, size) % 1000).tolist()
        top = TopValues(keep)
        for part in in_pieces(np.array(values, np.int64), seed):
            one = TopValues(keep)
            one.add_array(part) if array else one.add(part.tolist())
            top.merge(one)

        counts = Counter(values)
        found = dict(top.most_common(len(top)))
        assert {value for value, count in counts.items() if count * (keep + 1) > len(values)} <= set(found)
        assert all(found[value] <= counts[value] <= found[value] + top.error for value in found)
        assert top.error * (keep + 1) <= len(values)
        assert top.total == len(values)

    def test_memory_is_bounded(self) -> None:
        top = TopValues(keep=100)

        for start in range(0, 50_000, 1000):
            top.add_array(np.arange(start, start + 1000))
            top.add(f"{number}" for number in range(start, start + 1000))

        assert len(top) <= 400
        assert not top.exact


class TestDistinct:
    @given(st.lists(st.floats(allow_nan=False)), st.lists(st.floats(allow_nan=False)))
    def test_few_are_exact_merged_or_not(self, one: list[float], other: list[float]) -> None:
        distinct, more = Distinct(), Distinct()
        distinct.add(np.array(one))
        more.add(np.array(other))

        distinct.merge(more)

        assert distinct.estimate() == len({*one, *other})

    @settings(max_examples=20, deadline=None)
    @given(st.integers(1, 200_000), seeds)
    def test_estimate_is_near_and_the_same_in_any_order(self, count: int, seed: int) -> None:
        values = np.random.default_rng(seed).permutation(np.tile(np.arange(count) * 977, 2))
        whole, merged = Distinct(), Distinct()
        whole.add(values)
        for part in in_pieces(values, seed)[::-1]:
            one = Distinct()
            one.add(part)
            merged.merge(one)

        assert merged.estimate() == whole.estimate()
        assert abs(whole.estimate() - count) <= 0.1 * count  # six times the standard error
        assert whole.exact == (count < 4096)

    def test_zeros_are_one_value_and_complex_parts_are_told_apart(self) -> None:
        zeros, pairs = Distinct(), Distinct()

        zeros.add(np.array([0.0, -0.0]))
        pairs.add(np.array([1 + 2j, 2 + 1j, 1 + 2j]))

        assert (zeros.estimate(), pairs.estimate()) == (1, 2)
