from __future__ import annotations

import pickle
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

import pytest

from recordkit.integrations._epochs import Epochs

if TYPE_CHECKING:
    from tests.integrations.elsewhere import Elsewhere


class TestEpochs:
    def test_workers_that_share_a_key_share_an_epoch(self) -> None:
        epochs = Epochs()

        found = [epochs.begin(key, 3) for key in (7, 7, 9, 7, 9, 9)]

        assert found == [0, 0, 1, 0, 1, 1]

    def test_one_more_worker_with_the_same_key_is_of_the_next(self) -> None:
        epochs = Epochs()

        assert [epochs.begin(7, 2) for _ in range(5)] == [0, 0, 1, 1, 2]

    def test_workers_that_never_began_leave_no_trace(self) -> None:
        epochs = Epochs()

        assert [epochs.begin(key, 9) for key in range(40)] == list(range(40))

    def test_the_next_one_can_be_chosen(self) -> None:
        epochs = Epochs(3)
        first = epochs.begin(1, 1)

        epochs.coming = 0

        assert (first, epochs.begin(2, 1), epochs.coming) == (3, 0, 1)

    def test_a_copy_goes_its_own_way(self) -> None:
        epochs = Epochs(5)

        copy = pickle.loads(pickle.dumps(epochs))
        copy.begin(1, 1)

        assert (copy.coming, epochs.coming) == (6, 5)

    @pytest.mark.parametrize("start", ["fork", "spawn"])
    def test_processes_count_together(self, start: str, elsewhere: Elsewhere) -> None:
        assert elsewhere(begun_in_processes, start) == ([0, 0, 0, 1], 2)


def begun_in_processes(start: str) -> tuple[list[int], int]:
    """The epochs of three processes with one key, and of one with another."""
    epochs = Epochs()
    context: Any = get_context(start)
    queue = context.Queue()
    processes = [context.Process(target=begin, args=(epochs, 7, queue)) for _ in range(3)]
    for process in processes:
        process.start()
    found = [queue.get(timeout=40) for _ in processes]
    processes.append(context.Process(target=begin, args=(epochs, 8, queue)))
    processes[-1].start()
    found.append(queue.get(timeout=40))
    for process in processes:
        process.join()
    return found, epochs.coming


def begin(epochs: Epochs, key: int, queue: Any) -> None:
    """What a worker does first."""
    queue.put(epochs.begin(key, 3))
