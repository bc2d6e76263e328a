from __future__ import annotations

import json
import math
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recordkit import _core

if TYPE_CHECKING:
    from numpy.typing import NDArray

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "order.json").read_text())
LARGEST = 2**62
WORD = 2**64 - 1
words = st.integers(0, WORD)


def mixed(x: int) -> int:
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & WORD
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB & WORD
    return x ^ (x >> 31)


def scrambled(half: int, key: int, bits: int) -> int:
    x = (half ^ key) * 0xFF51AFD7ED558CCD & WORD
    x = (x ^ (x >> 32)) * 0xC4CEB9FE1A85EC53 & WORD
    return x >> (64 - bits)


def image(index: int, count: int, seed: int, epoch: int, salt: int) -> int:
    """What docs/format/order.md says, word for word."""
    bits = max(10, (count - 1).bit_length())
    low_bits, high_bits = bits // 2, bits - bits // 2
    state, keys = 0, []
    for word in (seed, epoch, salt, count):
        state = mixed(((state ^ word) + 0x9E3779B97F4A7C15) & WORD)
    for _ in range(8):
        state = (state + 0x9E3779B97F4A7C15) & WORD
        keys.append(mixed(state))
    while True:
        high, low = index >> low_bits, index & ((1 << low_bits) - 1)
        for even, odd in zip(keys[::2], keys[1::2], strict=True):
            high ^= scrambled(low, even, high_bits)
            low ^= scrambled(high, odd, low_bits)
        index = high << low_bits | low
        if index < count:
            return index


def whole(count: int, seed: int = 0, epoch: int = 0, salt: int = 0) -> NDArray[np.int64]:
    return _core.permute(np.arange(count), count, seed, epoch, salt)


class TestPermute:
    @pytest.mark.parametrize("case", GOLDEN, ids=lambda case: str(case["count"]))
    def test_never_changes(self, case: dict[str, int | list[int]]) -> None:
        key = [case[name] for name in ("count", "seed", "epoch", "salt")]

        images = _core.permute(np.array(case["indices"], np.int64), *key)  # type: ignore[arg-type]

        assert images.tolist() == case["images"]

    def test_is_a_bijection_of_every_small_count(self) -> None:
        broken = [count for count in range(3001) if not np.array_equal(np.sort(whole(count, count)), np.arange(count))]

        assert broken == []

    @settings(max_examples=60)
    @given(st.integers(1, LARGEST), words, words, words, st.data())
    def test_is_what_is_written_down(self, count: int, seed: int, epoch: int, salt: int, data: st.DataObject) -> None:
        indices = data.draw(st.lists(st.integers(0, count - 1), max_size=5))

        images = _core.permute(np.array(indices, np.int64), count, seed, epoch, salt)

        assert images.tolist() == [image(index, count, seed, epoch, salt) for index in indices]

    @given(st.integers(3000, LARGEST), words)
    def test_no_two_of_a_huge_count_meet(self, count: int, seed: int) -> None:
        few = np.arange(1000)
        indices = np.unique(np.concatenate([few, few * (count // 1000), count - 1 - few]))

        images = _core.permute(indices, count, seed, 0, 0)

        assert len(np.unique(images)) == len(indices)
        assert images.min() >= 0
        assert images.max() < count

    @given(st.integers(1, 5000), st.lists(st.integers(0, 2**20), max_size=50), words)
    def test_an_index_has_its_image_whatever_it_is_asked_with(self, count: int, drawn: list[int], seed: int) -> None:
        indices = np.array(drawn, np.int64) % count

        assert np.array_equal(_core.permute(indices, count, seed, 1, 2), whole(count, seed, 1, 2)[indices])

    @given(st.lists(st.tuples(words, words, words), min_size=2, max_size=2, unique=True))
    def test_another_seed_epoch_or_salt_is_another_order(self, keys: list[tuple[int, int, int]]) -> None:
        one, other = (whole(100, *key) for key in keys)

        # Two orders have about one index in common; of 100, 20 are never seen.
        assert int((one == other).sum()) < 20

    def test_one_seed_more_changes_all(self) -> None:
        near = [whole(1000, 7), whole(1000, 8), whole(1000, 7, 1), whole(1000, 7, 0, 1), whole(1000, 7, 1, 1)]

        assert all(int((a == b).sum()) < 10 for at, a in enumerate(near) for b in near[:at])

    @pytest.mark.parametrize(("index", "count"), [(0, 0), (5, 5), (-1, 5), (-(2**63), LARGEST)])
    def test_an_index_beyond_the_count_is_refused(self, index: int, count: int) -> None:
        with pytest.raises(IndexError):
            _core.permute(np.array([index]), count, 0, 0, 0)

    def test_a_count_beyond_the_largest_is_refused(self) -> None:
        with pytest.raises(ValueError, match=r"2\*\*62"):
            _core.permute(np.array([0]), LARGEST + 1, 0, 0, 0)


def surprise(counts: NDArray[np.int64], expected: float) -> float:
    """How many standard deviations a chi-square is from what chance gives."""
    freedom = counts.size - 1
    chi_square = float(((counts - expected) ** 2 / expected).sum())
    return (chi_square - freedom) / math.sqrt(2 * freedom)


class TestChance:
    """Fixed seeds, so that what passes once passes always."""

    @pytest.mark.parametrize("count", [2, 3, 5, 16, 37, 100])
    def test_every_place_is_as_likely_for_every_index(self, count: int) -> None:
        seeds = 4000
        orders = np.array([whole(count, seed) for seed in range(seeds)])

        found = [surprise(np.bincount(orders[:, i], minlength=count), seeds / count) for i in range(min(count, 20))]

        assert max(map(abs, found)) < 5

    @pytest.mark.parametrize("count", [3, 5, 16, 37])
    def test_every_pair_of_places_is_as_likely_for_neighbours(self, count: int) -> None:
        epochs = 4000
        orders = np.array([whole(count, 1, epoch) for epoch in range(epochs)])
        pairs = count * (count - 1)

        found = []
        for one, other in pairwise(orders.T[:8]):
            cells = one * (count - 1) + other - (other > one)
            found.append(surprise(np.bincount(cells, minlength=pairs), epochs / pairs))

        assert max(map(abs, found)) < 5

    @pytest.mark.parametrize("count", [1000, 100_000, 1_000_000])
    def test_of_one_order_the_places_and_the_steps_between_neighbours_are_spread(self, count: int) -> None:
        order = whole(count, 3)
        parts = 50

        # Of every fiftieth of the indices the fiftieth that their images are in; then how far it is to the next.
        cells = np.arange(count) * parts // count * parts + order * parts // count
        steps = np.diff(order) % count * parts // count

        assert abs(surprise(np.bincount(cells, minlength=parts**2), count / parts**2)) < 5
        assert abs(surprise(np.bincount(steps, minlength=parts), (count - 1) / parts)) < 5

    def test_of_a_huge_order_neighbours_are_far_apart(self) -> None:
        count, parts = LARGEST - 1, 64
        images = _core.permute(np.arange(200_000), count, 11, 0, 0)

        high = images >> 56
        pairs = high[1:] * parts + high[:-1]

        assert abs(surprise(np.bincount(high, minlength=parts), 200_000 / parts)) < 5
        assert abs(surprise(np.bincount(images & 63, minlength=parts), 200_000 / parts)) < 5
        assert abs(surprise(np.bincount(pairs, minlength=parts**2), 199_999 / parts**2)) < 5

    @pytest.mark.parametrize("count", [10, 1000])
    def test_one_index_an_order_stays_where_it_was(self, count: int) -> None:
        orders = 4000

        fixed = np.array([int((whole(count, 0, 0, salt) == np.arange(count)).sum()) for salt in range(orders)])

        # As of all orders: one on average, with a variance of one.
        assert abs(fixed.mean() - 1) < 5 / orders**0.5
        assert abs(fixed.var() - 1) < 0.15
