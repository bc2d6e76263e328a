"""Laws of dividing a pipeline over ranks and workers, without a process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import recordkit as rk
from recordkit.errors import StateError
from recordkit.integrations._workers import Share, pipe_state, share_of
from tests.dataset.files import save_many

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

KINDS = ("shuffled", "as they lie", "mapped", "filtered", "rows")
PADDED = st.sampled_from(KINDS[:3])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("records")
    save_many(folder, [7, 0, 20, 1, 9])
    return folder


def pipeline(folder: Path, kind: str, count: int, size: int) -> Any:
    ds = rk.open(folder, workers=1).select("id").take(count)
    if kind == "rows":
        return ds.shuffle(seed=5)
    if kind == "mapped":
        return ds.shuffle(seed=5).map(same).batch(size).prefetch(2)
    if kind == "filtered":
        return ds.shuffle(seed=5).filter("id != 3").batch(size)
    return (ds.shuffle(seed=5) if kind == "shuffled" else ds).batch(size)


def same(row: Any) -> Any:
    return row


def ids(element: Any) -> list[int]:
    return [element["id"].item()] if element["id"].ndim == 0 else element["id"].tolist()


def in_turns(shares: list[Share]) -> Iterator[Any]:
    """What a DataLoader gets of its workers: an element of each in turns, until the last has ended."""
    left = list(shares)
    while left:
        for share in list(left):
            try:
                yield next(share)
            except StopIteration:
                left.remove(share)


def crew(pipe: Any, workers: int, epoch: int = 0, start: Any = None) -> list[Share]:
    return [Share(pipe, worker, workers, epoch, start) for worker in range(workers)]


class TestWorkers:
    @given(st.sampled_from(KINDS), st.integers(0, 37), st.integers(1, 8), st.integers(1, 6), st.integers(0, 2))
    def test_together_give_what_one_gives(
        self, folder: Path, kind: str, count: int, size: int, workers: int, epoch: int
    ) -> None:
        pipe = pipeline(folder, kind, count, size)
        pipe.set_epoch(epoch)
        alone = list(map(ids, pipe))

        found = list(map(ids, in_turns(crew(pipe, workers, epoch))))

        assert found == alone

    @given(st.sampled_from(KINDS), st.integers(1, 37), st.integers(1, 8), st.integers(1, 5), st.data())
    def test_go_on_each_from_its_state(
        self, folder: Path, kind: str, count: int, size: int, workers: int, data: st.DataObject
    ) -> None:
        pipe = pipeline(folder, kind, count, size)
        alone = list(map(ids, crew(pipe, 1)[0]))
        stop = data.draw(st.integers(0, len(alone)))
        shares = crew(pipe, workers)
        for number in range(stop):
            next(shares[number % workers])

        again = crew(pipe, workers, epoch=4)
        for share, begun in zip(again, shares, strict=True):
            share.load_state_dict(begun.state_dict())

        first = stop % workers
        assert list(map(ids, in_turns(again[first:] + again[:first]))) == alone[stop:]

    @given(st.sampled_from(KINDS), st.integers(1, 37), st.integers(1, 8), st.data())
    def test_others_go_on_from_the_state_of_the_whole(
        self, folder: Path, kind: str, count: int, size: int, data: st.DataObject
    ) -> None:
        pipe = pipeline(folder, kind, count, size)
        alone, given_before, start = list(map(ids, crew(pipe, 1)[0])), 0, None
        for workers in data.draw(st.lists(st.integers(1, 5), max_size=3)):
            stop = data.draw(st.integers(0, len(alone) - given_before))
            shares = crew(pipe, workers, 0, start)
            for number in range(stop):
                next(shares[number % workers])
            given_before += stop
            start = pipe_state({"inside": {str(at): share.state_dict() for at, share in enumerate(shares)}})

        assert list(map(ids, in_turns(crew(pipe, 2, 0, start)))) == alone[given_before:]


class TestRanks:
    @given(PADDED, st.integers(1, 37), st.integers(1, 8), st.integers(1, 16), st.integers(1, 4))
    def test_have_every_record_and_as_many_batches_each(
        self, folder: Path, kind: str, count: int, size: int, world: int, workers: int
    ) -> None:
        pipe = pipeline(folder, kind, count, size)

        ranks = [list(map(ids, in_turns(crew(share_of(pipe, rank, world), workers)))) for rank in range(world)]

        assert len({len(batches) for batches in ranks}) == 1
        found = [number for batches in ranks for batch in batches for number in batch]
        assert set(found) == set(range(count))
        assert len(found) == -(-count // world) * world  # some twice, so that all have as many

    @given(PADDED, st.integers(1, 37), st.integers(1, 4), st.integers(1, 4), st.integers(1, 4), st.data())
    def test_others_go_on(
        self, folder: Path, kind: str, count: int, size: int, world: int, others: int, data: st.DataObject
    ) -> None:
        pipe = pipeline(folder, kind, count, size)
        ranks = [crew(share_of(pipe, rank, world), 2) for rank in range(world)]
        stop = data.draw(st.integers(0, len(share_of(pipe, 0, world)) - 1))
        seen = [ids(next(shares[number % 2])) for shares in ranks for number in range(stop)]
        states = [pipe_state({str(at): share.state_dict() for at, share in enumerate(shares)}) for shares in ranks]

        rest = [list(map(ids, in_turns(crew(share_of(pipe, rank, others), 3, 0, states[0])))) for rank in range(others)]

        assert all(state == states[0] for state in states)
        first = [number for batch in seen for number in batch]
        left = [number for batches in rest for batch in batches for number in batch]
        assert len(first) == len(set(first))
        assert set(first) | set(left) == set(range(count))
        assert len(first) + len(left) < count + others  # only to come out even is any given twice

    def test_are_left_alone_if_the_pipeline_has_a_shard_step(self, folder: Path) -> None:
        pipe = rk.open(folder).shard(1, 2).batch(4)

        assert share_of(pipe, 0, 3) is pipe


class TestStates:
    def test_of_other_workers_are_refused(self, folder: Path) -> None:
        pipe = pipeline(folder, "shuffled", 9, 2)

        with pytest.raises(
            StateError, match=r"^the state belongs to worker 1 of 2, and this is worker 1 of 3\n  Start as"
        ):
            Share(pipe, 1, 3, 0).load_state_dict(Share(pipe, 1, 2, 0).state_dict())

    def test_without_a_worker_are_refused(self) -> None:
        with pytest.raises(
            StateError, match=r"^expected the state of a StatefulDataLoader with a TorchIterableDataset"
        ):
            pipe_state({"_snapshot": {}})

    def test_that_do_not_tell_all_are_refused(self) -> None:
        with pytest.raises(
            StateError, match=r"^the state was taken 3 batches ago\n  Create the StatefulDataLoader with"
        ):
            pipe_state({"_steps_since_snapshot": 3})
