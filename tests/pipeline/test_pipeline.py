from __future__ import annotations

import json
import pickle
import sys
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recordkit.errors import StateError
from recordkit.pipeline import Pipeline, from_generator
from tests.pipeline.chains import STEPS, chained, chains, tripled, wanted
from tests.pipeline.sources import MappedRecords, epoch, file_sizes, ids, numbers, plain_all, rows, states

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.usefixtures("small_blocks")

shuffled = st.sampled_from(["", "shuffle", "window", "interleave", "interleave shuffle"])
batch_sizes = st.one_of(st.integers(1, 5), st.integers(1, 90))


def in_order(pipe: Pipeline, order: str, cut: tuple[int, int | None]) -> Pipeline:
    for name in order.split():
        pipe = STEPS[name](pipe)
    pipe = pipe.skip(cut[0])
    return pipe if cut[1] is None else pipe.take(cut[1])


def all_ways(pipe: Pipeline, workers: int) -> list[Any]:
    """The elements of workers, taken in turns; of the pipeline itself if there are none."""
    if not workers:
        return epoch(pipe)
    shares = [epoch(pipe.for_worker(worker, workers)) for worker in range(workers)]
    none = object()
    return [element for turn in zip_longest(*shares, fillvalue=none) for element in turn if element is not none]


class TestPartition:
    @settings(max_examples=60)
    @given(
        sizes=file_sizes,
        order=shuffled,
        cut=st.tuples(st.sampled_from([0, 0, 3]), st.sampled_from([None, None, 0, 40])),
        world=st.integers(1, 16),
        workers=st.integers(0, 8),
        size=batch_sizes,
        uneven=st.sampled_from(["pad", "drop", "error"]),
        passes=st.sampled_from([None, None, 2]),
    )
    def test_ranks_and_workers_divide_the_records(
        self,
        sizes: list[int],
        order: str,
        cut: tuple[int, int | None],
        world: int,
        workers: int,
        size: int,
        uneven: Any,
        passes: int | None,
    ) -> None:
        pipe = in_order(numbers(*sizes), order, cut)
        everything = epoch(pipe)
        ranks = [pipe.shard(rank, world, uneven=uneven) for rank in range(world)]
        ranks = ranks if passes is None else [rank.repeat(passes) for rank in ranks]
        if uneven == "error" and len(everything) % world:
            with pytest.raises(ValueError, match="divided evenly"):
                epoch(ranks[0].batch(size))
            return

        batches = [all_ways(rank.batch(size), workers) for rank in ranks]

        assert {len(found) for found in batches} == {len(ranks[0].batch(size))}
        assert all(batches[at] == epoch(ranks[at].batch(size)) for at in (0, world - 1))
        seen = [number for found in batches for batch in found for number in batch]
        left = len(everything) % world
        kept = everything[: len(everything) - left] if uneven == "drop" else everything
        extra = -len(everything) % world if uneven == "pad" and everything else 0
        assert len(seen) == (len(kept) + extra) * (passes or 1)
        if passes is None:
            assert set(seen) == set(kept)
            assert sorted(seen) == sorted(kept + (everything * world)[:extra])

    @settings(max_examples=50)
    @given(pipe=chains(), workers=st.integers(1, 5))
    def test_workers_in_turns_give_what_one_gives(self, pipe: Pipeline, workers: int) -> None:
        assert all_ways(pipe, workers) == epoch(pipe)

    @settings(max_examples=30)
    @given(pipe=chains(), workers=st.integers(2, 4), data=st.data())
    def test_a_worker_resumes_where_it_stood(self, pipe: Pipeline, workers: int, data: Any) -> None:
        mine = pipe.for_worker(data.draw(st.integers(0, workers - 1)), workers)
        found, kept = states(mine)
        at = data.draw(st.integers(0, len(found)))

        assert plain_all(mine.resume(kept[at])) == found[at:]

    @pytest.mark.parametrize("uneven", ["pad", "drop"])
    @pytest.mark.parametrize("order", ["", "shuffle"])
    def test_stage_that_divides_elements_gives_each_rank_as_many(self, order: str, uneven: Any) -> None:
        pipe = in_order(numbers(9, 8), order, (0, None)).filter(lambda n: n % 5)
        everything = epoch(pipe)

        ranks = [epoch(pipe.shard(rank, 4, uneven=uneven)) for rank in range(4)]

        assert len(everything) == 13
        together = [number for turn in zip(*ranks, strict=True) for number in turn]
        assert together == (everything[:12] if uneven == "drop" else everything + everything[:3])

    def test_uneven_may_be_an_error_behind_a_filter(self) -> None:
        pipe = numbers(9).filter(lambda n: n % 5).shard(0, 2, uneven="error")

        with pytest.raises(ValueError, match="1 are left"):
            list(pipe)


class TestResume:
    @pytest.mark.parametrize("name", list(STEPS))
    @pytest.mark.parametrize("before", ["", "shuffle"])
    def test_at_every_position_behind_every_step(self, name: str, before: str) -> None:
        if (name, before) == ("interleave", "shuffle"):
            before = ""
        pipe = chained(rows(7, 0, 5, 9), [*before.split(), name])
        found, kept = states(pipe, 1)

        rests = [plain_all(pipe.resume(state)) for state in kept]

        assert found
        assert rests == [found[at:] for at in range(len(found) + 1)]

    @settings(max_examples=80)
    @given(pipe=chains(), number=st.integers(0, 2), data=st.data())
    def test_anywhere_in_any_chain(self, pipe: Pipeline, number: int, data: Any) -> None:
        found, kept = states(pipe, number)
        at = data.draw(st.integers(0, len(found)))

        rest, again = self.states_of(pipe.resume(kept[at]))

        assert rest == found[at:]
        later = data.draw(st.integers(0, len(rest)))
        assert plain_all(pipe.resume(again[later])) == rest[later:]

    @staticmethod
    def states_of(it: Iterator[Any]) -> tuple[list[Any], list[Any]]:
        found, kept = [], [it.state_dict()]  # type: ignore[attr-defined]
        for element in it:
            found += plain_all([element])
            kept.append(json.loads(json.dumps(it.state_dict())))  # type: ignore[attr-defined]
        return found, kept

    @settings(max_examples=30)
    @given(names=st.lists(st.sampled_from([*STEPS]), max_size=4), at=st.integers(0, 20))
    def test_in_a_pipeline_that_is_made_anew_or_was_pickled(self, names: list[str], at: int) -> None:
        names = [name for name in names if name in {"map", "shuffle", "filter", "shard", "take", "buffer", "prefetch"}]
        made = [chained(rows(8, 13), names) for _ in range(2)]
        found, kept = states(made[0])
        at = min(at, len(found))

        for pipe in (made[1], pickle.loads(pickle.dumps(made[0]))):
            assert plain_all(pipe.resume(kept[at])) == found[at:]
            assert iter(pipe).epoch == 1

    @settings(max_examples=60)
    @given(
        sizes=file_sizes,
        order=shuffled,
        before=st.integers(1, 16),
        after=st.integers(0, 16),
        size=batch_sizes,
        uneven=st.sampled_from(["pad", "drop"]),
        data=st.data(),
    )
    def test_other_ranks_give_the_rest_of_the_epoch(
        self, sizes: list[int], order: str, before: int, after: int, size: int, uneven: Any, data: Any
    ) -> None:
        pipe = in_order(numbers(*sizes), order, (0, None))
        everything = epoch(pipe, 3)
        ranks = [pipe.shard(rank, before, uneven=uneven).map(abs).batch(size).prefetch() for rank in range(before)]
        its = []
        for rank in ranks:
            rank.set_epoch(3)
            its.append(iter(rank))
        given = data.draw(st.integers(0, len(ranks[0])))
        seen = [number for it in its for _ in range(given) for number in next(it).tolist()]
        kept = [it.state_dict() for it in its]
        for it in its:
            it.close()

        others = [pipe.shard(rank, after, uneven=uneven) for rank in range(after)] or [pipe]
        rest = [number for other in others for number in ids(other.map(abs).batch(2 * size).resume(kept[-1]))]

        assert kept == [kept[0]] * before
        left = max(0, len(everything) - len(seen))
        lost = left % after if uneven == "drop" and after else 0
        padded = -left % after if uneven == "pad" and after else 0
        assert len(set(seen + rest)) == len(everything) - lost
        assert len(rest) == left - lost + padded

    def test_other_sizes_of_batches_go_on_where_marks_count_records(self) -> None:
        pipe = numbers(20).shuffle(3)
        it = iter(pipe.batch(4))
        seen = ids([next(it), next(it)])

        rest = ids(pipe.batch(5).resume(it.state_dict()))

        assert seen + rest == epoch(pipe)

    @pytest.mark.parametrize(
        ("step", "named"),
        [
            (lambda pipe: pipe.filter(wanted), "Filter(wanted)"),
            (lambda pipe: pipe.shuffle(2, buffer=4), "BufferShuffle"),
            (lambda pipe: pipe.batch(2).unbatch(), "Unbatch()"),
            (lambda pipe: pipe.batch(2).take(5), "Take(elements=5)"),
            (lambda pipe: pipe.shuffle(3), "shard followed by steps"),
            (lambda pipe: pipe.enumerate(), "Enumerate()"),
        ],
    )
    def test_steps_behind_ranks_tie_a_state_to_them_by_name(self, step: Any, named: str) -> None:
        pipes = [step(rows(30).shard(rank, world)) for rank, world in [(1, 3), (0, 3), (1, 2)]]
        it = iter(pipes[0])
        first = plain_all([next(it)])
        state = it.state_dict()

        for other in (*pipes[1:], step(rows(30))):
            with pytest.raises(StateError) as caught:
                other.resume(state)
            assert "rank 1 of 3" in str(caught.value)

        assert first + plain_all(pipes[0].resume(state)) == epoch(pipes[0])
        with pytest.raises(StateError) as caught:
            pipes[1].resume(state)
        assert named in str(caught.value)
        assert named in pipes[0].explain()

    def test_records_that_are_passed_over_tie_a_state_to_its_ranks(self) -> None:
        pipe = rows(30, bad=frozenset([3])).shard(0, 2)
        it = iter(pipe)
        next(it)

        with pytest.raises(StateError, match="on_error"):
            rows(30, bad=frozenset([3])).shard(1, 2).resume(it.state_dict())

    def test_passes_counted_on_one_side_of_ranks_are_not_taken_for_those_on_the_other(self) -> None:
        inner, outer, none = rows(9).repeat(3).shard(0, 2), rows(9).shard(0, 2).repeat(3), rows(9).repeat(3)
        it = iter(none)
        for _ in range(10):
            next(it)

        assert len(list(outer.resume(it.state_dict()))) == 4 + 5
        with pytest.raises(StateError, match="the state is of other steps"):
            inner.resume(it.state_dict())

    @pytest.mark.parametrize(
        "other",
        [
            rows(30).shuffle(8),
            rows(30),
            rows(30).shuffle(7, window=400),
            rows(30).shuffle(7).take(5),
            rows(30).shuffle(7).filter(wanted),
        ],
        ids=str,
    )
    def test_other_steps_are_refused(self, other: Pipeline) -> None:
        state = iter(rows(30).shuffle(7)).state_dict()

        with pytest.raises(StateError, match="the state is of other steps\n  expected Shuffle"):
            other.resume(state)

    def test_other_records_are_refused(self) -> None:
        state = iter(rows(30).shuffle(7)).state_dict()

        with pytest.raises(StateError, match="the state is of other records"):
            rows(29, 1).shuffle(7).resume(state)

    @pytest.mark.parametrize("state", [None, 3, [], {}, {"at": 3}, {"format": 1, "at": 3}, {"format": 1, "epoch": 0}])
    def test_what_is_no_state_is_refused(self, state: Any) -> None:
        with pytest.raises(StateError, match="expected what state_dict"):
            rows(3).resume(state)

    def test_state_of_a_newer_format_is_refused(self) -> None:
        state = iter(rows(3)).state_dict()

        with pytest.raises(StateError, match="Install a newer"):
            rows(3).resume({**state, "format": 2})

    def test_state_is_small_however_far_it_is(self) -> None:
        it = iter(numbers(1000).shuffle(3).repeat().shard(3, 8).map(tripled).batch(16).prefetch())
        for _ in range(300):
            next(it)
        state = it.state_dict()
        it.close()

        assert len(json.dumps(state)) < 250

    def test_state_counts_what_was_given_not_what_was_made(self) -> None:
        it = iter(numbers(100).map(abs).batch(10).prefetch(5))
        next(it)
        state = it.state_dict()
        it.close()

        assert state["at"] == 10


class TestEpochs:
    def test_each_iteration_is_the_next(self) -> None:
        pipe = numbers(40).shuffle(3)

        epochs = [list(pipe) for _ in range(3)]

        assert len(set(map(tuple, epochs))) == 3
        assert epochs[2] == epoch(pipe, 2)
        assert iter(pipe).epoch == 3

    def test_one_pipeline_knows_nothing_of_another(self) -> None:
        pipe = numbers(40).shuffle(3)
        list(pipe)
        longer = pipe.batch(4)

        assert iter(longer).epoch == iter(pipe).epoch == 1
        assert iter(longer).epoch == 2

    def test_after_resuming_comes_the_next(self) -> None:
        pipe = numbers(40).shuffle(3)
        pipe.set_epoch(6)
        it = iter(pipe)
        next(it)

        assert pipe.resume(it.state_dict()).epoch == 6
        assert iter(pipe).epoch == 7

    def test_ranks_agree_on_an_epoch(self) -> None:
        ranks = [numbers(40).shuffle(3).shard(rank, 4) for rank in range(4)]

        for number in (0, 5):
            found = [epoch(rank, number) for rank in ranks]
            assert sorted(number for rank in found for number in rank) == list(range(40))

    @pytest.mark.parametrize("name", ["buffer", "mix"])
    def test_what_is_drawn_differs(self, name: str) -> None:
        pipe = STEPS[name](rows(40))

        assert epoch(pipe, 0) != epoch(pipe, 1)
        assert epoch(pipe, 1) == epoch(pipe, 1)

    def test_number_is_checked(self) -> None:
        with pytest.raises(ValueError, match="epoch is a number from 0 up, found -1"):
            numbers(3).set_epoch(-1)


class TestLength:
    @settings(max_examples=60)
    @given(chains())
    def test_is_how_many_there_are_or_is_not_told(self, pipe: Pipeline) -> None:
        count = pipe.count()

        assert count is None or count == len(epoch(pipe))

    @pytest.mark.parametrize("before", ["", "shuffle", "enumerate"])
    @pytest.mark.parametrize("name", list(STEPS))
    def test_is_told_behind_every_step_that_lets_it_be_known(self, name: str, before: str) -> None:
        pipe = chained(rows(7, 0, 5, 9), [name] if name == "interleave" else [*before.split(), name])

        count = pipe.count()

        unknown = {"filter", "batch a batch", "mix until the first", "batch and unbatch", "batch and drop"}
        assert (count is None) == (name in unknown)
        assert count in (None, len(epoch(pipe)))

    def test_of_what_has_no_end_is_not_told(self) -> None:
        for pipe in (numbers(3).repeat(), numbers(3).repeat().shard(0, 16).batch(3), numbers(3).filter(wanted)):
            with pytest.raises(TypeError, match="not known before the end"):
                len(pipe)

    def test_of_some_of_what_has_no_end_is(self) -> None:
        assert len(numbers(3).shuffle(1).repeat().take(10).batch(4)) == 3


class TestWords:
    def test_pipeline_is_printed_as_its_steps(self) -> None:
        pipe = numbers(3).shuffle(7).map(tripled).batch(2, drop_last=True).prefetch()

        assert repr(pipe) == "Pipeline(memory > Shuffle(seed=7) > Map(tripled) > Batch(2, drop_last=True) > Prefetch())"

    def test_steps_leave_the_pipeline_as_it_was(self) -> None:
        pipe = numbers(3)

        pipe.shuffle(7).batch(2)

        assert pipe.steps == ()


class TestChecking:
    @pytest.mark.parametrize(
        ("said", "words"),
        [
            (lambda pipe: pipe.batch(0), "size is a number from 1 up, found 0"),
            (lambda pipe: pipe.take(-1), "count is a number from 0 up, found -1"),
            (lambda pipe: pipe.take(1.5), "found 1.5"),
            (lambda pipe: pipe.skip(True), "found True"),
            (lambda pipe: pipe.shuffle("a"), "seed is a whole number, found 'a'"),
            (lambda pipe: pipe.shuffle(1, window=3, buffer=3), "not both"),
            (lambda pipe: pipe.shuffle(1, buffer=0), "buffer is a number from 1 up"),
            (lambda pipe: pipe.shard(2, 2), "rank 2 of 2"),
            (lambda pipe: pipe.shard(0), "rank 0 of None"),
            (lambda pipe: pipe.shard(0, 2, uneven="more"), "uneven is 'pad', 'drop' or 'error'"),
            (lambda pipe: pipe.interleave(0), "cycle is a number from 1 up"),
            (lambda pipe: pipe.prefetch(0), "count is a number from 1 up"),
            (lambda pipe: pipe.repeat(-1), "times is a number from 0 up"),
            (lambda pipe: pipe.mix(pipe, weights=[1]), "expected 2 weights"),
            (lambda pipe: pipe.mix(pipe, weights=[1, 0]), "above 0"),
            (lambda pipe: pipe.mix(pipe, stop="now"), "stop is 'all' or 'first'"),
            (lambda pipe: pipe.map(tripled, workers=0), "workers is a number from 1 up"),
            (lambda pipe: pipe.decode_images("image", size=(0, 3)), r"size: expected \(height, width\)"),
        ],
    )
    def test_what_is_asked_for_is_checked_when_it_is_said(self, said: Any, words: str) -> None:
        with pytest.raises(ValueError, match=words):
            said(numbers(3))

    @pytest.mark.parametrize("step", ["map", "filter", "map_batches"])
    def test_functions_are_functions(self, step: str) -> None:
        with pytest.raises(TypeError, match=f"{step} takes a function, found int"):
            getattr(numbers(3), step)(3)

    def test_shuffle_needs_numbers(self) -> None:
        with pytest.raises(StateError, match=r"Filter\(wanted\) before it does not keep.*\n  Shuffle first"):
            numbers(3).filter(wanted).shuffle(1)
        with pytest.raises(StateError, match="is a stream"):
            from_generator(lambda: range(3)).shuffle(1)

    @pytest.mark.parametrize("name", ["shuffle", "shard", "take", "repeat"])
    def test_interleave_needs_files(self, name: str) -> None:
        with pytest.raises(StateError, match="there are no files\n  Interleave first"):
            STEPS[name](rows(3, 4)).interleave(2)

    def test_interleave_makes_no_difference_before_a_shuffle_of_everything(self) -> None:
        plain, turns = rows(7, 0, 5, 9).shuffle(3), rows(7, 0, 5, 9).interleave(2).shuffle(3)

        assert list(plain) == list(turns)
        assert list(rows(7, 0, 5, 9).interleave(2).shuffle(3, window=1)) != list(rows(7, 0, 5, 9).shuffle(3, window=1))

    def test_ranks_are_not_guessed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for framework in ("jax", "torch.distributed"):  # which other tests may have imported
            monkeypatch.delitem(sys.modules, framework, raising=False)

        with pytest.raises(StateError, match=r"torch\.distributed"):
            numbers(3).shard("auto")


class TestPickling:
    def test_pipeline_keeps_its_epoch(self) -> None:
        pipe = Pipeline(MappedRecords((9, 9))).shuffle(3).map(tripled).batch(4)
        list(pipe)

        copy = pickle.loads(pickle.dumps(pipe))

        assert iter(copy).epoch == 1
        assert epoch(copy, 5) == epoch(pipe, 5)
