from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recordkit.pipeline._order import EpochOrder, StridedOrder
from recordkit.pipeline._order_steps import Interleave, RepeatStep, ShardStep, Shuffle, SkipStep, TakeStep, Windows
from recordkit.pipeline._step import ENDLESS
from tests.pipeline.sources import MappedRecords, file_sizes

counts = st.one_of(st.integers(0, 40), st.integers(0, 1000))
seeds = st.one_of(st.integers(0, 3), st.integers(0, 2**64 - 1))
shuffles = st.builds(Shuffle, seeds, st.none() | st.integers(500, 30_000))
cuts = st.one_of(st.builds(TakeStep, st.integers(0, 1100)), st.builds(SkipStep, st.integers(0, 200)))
repeats = st.builds(RepeatStep, st.integers(0, 3))
unevens = st.sampled_from(["pad", "drop"])
sizes_of_batches = st.one_of(st.integers(1, 5), st.integers(1, 300))


@st.composite
def ops_before_ranks(draw: Any) -> tuple[Any, ...]:
    """Operations that give every element its place, whoever gets it."""
    first = draw(st.lists(st.builds(Interleave, st.integers(1, 6), st.integers(1, 9)), max_size=1))
    return (*first, *draw(st.lists(st.one_of(shuffles, cuts), max_size=3)))


def all_of(order: EpochOrder | StridedOrder) -> list[int]:
    return [int(number) for number in order.numbers(0, order.count)]


def ordered(sizes: list[int], *ops: Any, epoch: int = 0, mark: Any = None) -> EpochOrder:
    source = MappedRecords(tuple(sizes))
    return EpochOrder.at(source.count(), ops, source, epoch, mark)


def in_turns(ranks: list[list[int]]) -> list[int]:
    return [number for turn in zip(*ranks, strict=True) for number in turn]


class TestShuffle:
    @settings(max_examples=60)
    @given(counts, shuffles, st.integers(0, 5))
    def test_every_place_is_taken_once(self, count: int, shuffle: Shuffle, epoch: int) -> None:
        found = all_of(ordered([count], shuffle, epoch=epoch))

        assert sorted(found) == list(range(count))

    @settings(max_examples=40)
    @given(counts, st.integers(1, 30_000), seeds, st.data())
    def test_any_places_alone_are_those_of_the_whole(self, count: int, window: int, seed: int, data: Any) -> None:
        order = ordered([count], Shuffle(seed, window))
        first = data.draw(st.integers(0, count))
        stop = data.draw(st.integers(first, count))

        assert order.numbers(first, stop).tolist() == all_of(order)[first:stop]

    @pytest.mark.parametrize("window", [None, 6000])
    def test_seeds_and_epochs_give_other_orders(self, window: int | None) -> None:
        orders = {
            tuple(all_of(ordered([500], Shuffle(seed, window), epoch=epoch))) for seed in range(4) for epoch in range(4)
        }

        assert len(orders) == 16

    def test_seed_may_be_any_whole_number(self) -> None:
        assert all_of(ordered([50], Shuffle(-1))) == all_of(ordered([50], Shuffle(2**64 - 1)))


class TestWindows:
    @settings(max_examples=60)
    @given(counts.filter(bool), st.integers(1, 60), st.integers(1, 9), seeds, st.integers(0, 3))
    def test_window_holds_whole_pieces_and_no_more_than_it_may(
        self, places: int, piece: int, pieces: int, seed: int, epoch: int
    ) -> None:
        windows = Windows(places, piece, pieces)
        found = windows.source_places(np.arange(places), seed, epoch)
        starts = windows.starts(seed, epoch).tolist()

        assert (starts[0], starts[-1]) == (0, places)
        for start, stop in pairwise(starts):
            whole = np.unique(found[start:stop] // piece)
            assert len(whole) <= pieces
            assert sum(min(piece, places - p * piece) for p in whole.tolist()) == stop - start

    def test_pieces_come_from_anywhere_and_neighbours_are_parted(self) -> None:
        order = np.array(all_of(ordered([1000], Shuffle(5, 8000))))  # 4000 bytes at a time: 40 records of 100

        windows = Shuffle(5, 8000).windows(1000, MappedRecords((1000,)))
        assert (windows.piece, windows.pieces) == (40, 1)
        assert np.mean(np.abs(np.diff(order)) == 1) < 0.1
        assert order[:40].min() > 0 or order[-40:].max() < 999

    @settings(max_examples=60)
    @given(counts.filter(bool), st.integers(1, 30_000), st.integers(0, 999), st.integers(1, 5), st.booleans())
    def test_window_ends_where_records_of_another_are_asked_for(
        self, count: int, window: int, first: int, world: int, repeated: bool
    ) -> None:
        shuffle = Shuffle(3, window)
        ops = (shuffle, ShardStep(0, world), *([RepeatStep(2)] if repeated else []))
        order = ordered([count], *ops)
        first = min(first, order.count - 1)

        end = order.window_end(first, order.count)

        pieces = shuffle.windows(count, MappedRecords((count,))).pieces
        size = shuffle.windows(count, MappedRecords((count,))).piece
        assert first < end <= order.count
        assert len(np.unique(order.numbers(first, end) // size)) <= pieces + 1  # padding takes up the first again


class TestInterleave:
    @staticmethod
    def oracle(sizes: list[int], cycle: int, block: int) -> list[int]:
        ends = np.cumsum([0, *sizes]).tolist()
        files = [list(range(a, b)) for a, b in pairwise(ends) if a < b]
        slots, files, found = files[:cycle], files[cycle:], []
        while any(slots):
            for at, slot in enumerate(slots):
                found += slot[:block]
                slots[at] = slot[block:]
                if slot and not slots[at] and files:
                    slots[at] = files.pop(0)
        return found

    @given(file_sizes, st.integers(1, 20), st.integers(1, 12))
    def test_takes_files_in_turns(self, sizes: list[int], cycle: int, block: int) -> None:
        found = all_of(ordered(sizes, Interleave(cycle, block)))

        assert found == self.oracle(sizes, cycle, block)


class TestRanks:
    @given(file_sizes, ops_before_ranks(), st.integers(1, 16), unevens, st.integers(0, 2))
    def test_ranks_have_what_one_has_and_the_first_once_more(
        self, sizes: list[int], ops: tuple[Any, ...], world: int, uneven: Any, epoch: int
    ) -> None:
        everything = all_of(ordered(sizes, *ops, epoch=epoch))

        ranks = [all_of(ordered(sizes, *ops, ShardStep(rank, world, uneven), epoch=epoch)) for rank in range(world)]

        together = in_turns(ranks)
        if uneven == "drop":
            assert together == everything[: len(everything) // world * world]
        else:
            missing = -len(everything) % world
            assert together == (everything * (world + 1))[: len(everything) + missing] if everything else not together

    @given(file_sizes, ops_before_ranks(), st.data(), unevens)
    def test_other_ranks_go_on_where_some_stood(
        self, sizes: list[int], ops: tuple[Any, ...], data: Any, uneven: Any
    ) -> None:
        everything = all_of(ordered(sizes, *ops))
        before, after = data.draw(st.integers(1, 16)), data.draw(st.integers(1, 16))
        first = [ordered(sizes, *ops, ShardStep(rank, before, uneven)) for rank in range(before)]
        given = data.draw(st.integers(0, first[0].count))
        marks = {order.mark(given) for order in first}

        mark = marks.pop()
        rest = [ordered(sizes, *ops, ShardStep(rank, after, uneven), mark=mark) for rank in range(after)]

        assert not marks
        assert len({order.count for order in rest}) == 1
        seen = in_turns([order.numbers(0, given).tolist() for order in first])[: len(everything)]
        left = len(everything) - len(seen)
        assert seen == everything[: len(seen)]
        wanted = everything[len(seen) :] + (everything * after)[: -left % after]
        if uneven == "drop":
            wanted = everything[len(seen) :][: left // after * after]
        assert in_turns(list(map(all_of, rest))) == wanted

    @given(file_sizes, ops_before_ranks(), st.integers(1, 5), repeats, st.data(), st.booleans())
    def test_a_mark_goes_on_where_it_stands(
        self, sizes: list[int], ops: tuple[Any, ...], world: int, repeat: RepeatStep, data: Any, inside: bool
    ) -> None:
        ranked = (*ops, repeat, ShardStep(world - 1, world)) if inside else (*ops, ShardStep(world - 1, world), repeat)
        order = ordered(sizes, *ranked, epoch=1)
        given = data.draw(st.integers(0, order.count))

        rest = ordered(sizes, *ranked, epoch=1, mark=order.mark(given))

        assert all_of(rest) == all_of(order)[given:]
        again = data.draw(st.integers(0, rest.count))
        assert all_of(ordered(sizes, *ranked, epoch=1, mark=rest.mark(again))) == all_of(order)[given + again :]


class TestRepeat:
    @given(file_sizes, ops_before_ranks(), st.integers(0, 4), st.integers(0, 2))
    def test_passes_are_epochs_of_their_own(
        self, sizes: list[int], ops: tuple[Any, ...], times: int, epoch: int
    ) -> None:
        passes = [all_of(ordered(sizes, *ops, epoch=epoch * times + number)) for number in range(times)]

        assert all_of(ordered(sizes, *ops, RepeatStep(times), epoch=epoch)) == [
            number for each in passes for number in each
        ]

    def test_without_end_is_as_long_as_anything(self) -> None:
        order = ordered([3], Shuffle(1), RepeatStep())

        assert order.count == ENDLESS
        assert sorted(order.numbers(3 * 10**12, 3 * 10**12 + 3).tolist()) == [0, 1, 2]

    def test_nothing_without_end_is_nothing(self) -> None:
        assert ordered([0, 0], RepeatStep()).count == 0


class TestEvery:
    @settings(max_examples=25)
    @given(file_sizes, ops_before_ranks(), sizes_of_batches, st.integers(1, 8), st.data())
    def test_groups_taken_in_turns_are_all_groups(
        self, sizes: list[int], ops: tuple[Any, ...], size: int, workers: int, data: Any
    ) -> None:
        order = ordered(sizes, *ops, RepeatStep(2))
        everything = all_of(order)
        groups = [everything[at : at + size] for at in range(0, len(everything), size)]

        for worker in range(workers):
            mine = StridedOrder(order, size, worker, workers)
            wanted = [number for group in groups[worker::workers] for number in group]
            assert all_of(mine) == wanted
            if wanted:
                given = min(len(wanted), size * data.draw(st.integers(1, -(-len(wanted) // size))))
                whole, number = mine.mark(given)
                rest = StridedOrder(
                    EpochOrder.at(order.records, order.ops, order.source, order.epoch, whole),
                    size,
                    worker,
                    workers,
                    number,
                )
                assert all_of(rest) == wanted[given:]


class TestSaid:
    def test_steps_are_printed_as_they_were_said(self) -> None:
        steps = (
            Shuffle(7),
            Shuffle(7, 100),
            TakeStep(3),
            ShardStep(1, 4),
            ShardStep(0, 2, "drop"),
            RepeatStep(),
            Interleave(16, 1),
        )

        assert list(map(str, steps)) == [
            "Shuffle(seed=7)",
            "Shuffle(seed=7, window=100)",
            "Take(elements=3)",
            "Shard(rank=1, world=4)",
            "Shard(rank=0, world=2, uneven='drop')",
            "Repeat()",
            "Interleave(cycle=16, block=1)",
        ]
