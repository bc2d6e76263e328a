"""Workers: how a pipeline is divided among processes that do not know each other, and resumes with other workers.

Worker w of W yields the elements w, w + W, w + 2W, ... Asking the workers in turn gives the elements in order, however
many workers there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from recordkit.errors import StateError
from recordkit.pipeline import BatchStep, Prefetch, RepeatStep, whole_state

if TYPE_CHECKING:
    from recordkit.pipeline import Pipeline

_FORMAT = "recordkit_worker"


def share_of(pipe: Pipeline, rank: int, world: int) -> Pipeline:
    """Return the share of one rank: the pipeline is divided before it is batched, unless it is sharded already."""
    if world == 1 or pipe.sharded:
        return pipe
    late = (BatchStep, RepeatStep, Prefetch)
    at = next((at for at, step in enumerate(pipe.steps) if isinstance(step, late)), len(pipe.steps))
    divided = replace(pipe, steps=pipe.steps[:at]).shard(rank, world)
    for step in pipe.steps[at:]:
        divided = divided.with_step(step)
    return divided


class Share(Iterator[Any]):
    """The elements that one worker yields in one epoch, and its position among them.

    Args:
        pipe: The whole pipeline.
        worker: The number of this worker.
        workers: How many workers there are.
        epoch: The epoch.
        start: A state of the whole pipeline to resume from, if it is of this epoch.
    """

    def __init__(
        self, pipe: Pipeline, worker: int, workers: int, epoch: int, start: Mapping[str, Any] | None = None
    ) -> None:
        self._pipe = pipe.for_worker(worker, workers)
        self._worker = worker
        self._workers = workers
        self.epoch = epoch
        self._start = start if start is not None and start["epoch"] == epoch else None
        self._given = 0
        self._elements: Any = None

    def _begin(self) -> Any:
        if self._start is not None:
            return self._pipe.resume(self._start)
        self._pipe.set_epoch(self.epoch)
        return iter(self._pipe)

    def __next__(self) -> Any:
        if self._elements is None:
            self._elements = self._begin()
        element = next(self._elements)
        self._given += 1
        return element

    def state_dict(self) -> dict[str, Any]:
        """Return the position, both of this worker and of the whole pipeline."""
        mine = self._elements.state_dict() if self._given else None
        facts = {_FORMAT: 1, "worker": self._worker, "workers": self._workers, "epoch": self.epoch}
        whole = self._start if mine is None else whole_state(mine)
        return {**facts, "given": self._given, "mine": mine, "whole": whole}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resume where a worker with the same number stopped."""
        if (state["worker"], state["workers"]) != (self._worker, self._workers):
            message = (
                f"the state belongs to worker {state['worker']} of {state['workers']}, "
                f"and this is worker {self._worker} of {self._workers}\n"
                "  Start as many workers as before, or use TorchIterableDataset(pipe, rk.torch.pipe_state(state))."
            )
            raise StateError(message)
        self.epoch, self._given = state["epoch"], state["given"]
        self._start = state["whole"] if state["mine"] is None else None
        self._elements = None if state["mine"] is None else self._pipe.resume(state["mine"])


def pipe_state(state: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the state of the pipeline from the state of a `StatefulDataLoader`; None if nothing was yielded yet.

    Any number of workers can resume from it, and any number of ranks if the pipeline allows that:
    `TorchIterableDataset(pipe, pipe_state(loader.state_dict()))`, or `pipe.resume(pipe_state(...))`.

    Raises:
        StateError: It holds no state of a `TorchIterableDataset`, or an outdated one.
    """
    if state.get("_steps_since_snapshot"):
        message = (
            f"the state was taken {state['_steps_since_snapshot']} batches ago\n"
            "  Create the StatefulDataLoader with snapshot_every_n_steps=1."
        )
        raise StateError(message)
    found = list(_worker_states(state))
    if not found:
        message = (
            "expected the state of a StatefulDataLoader with a TorchIterableDataset, found no state of a worker in it"
        )
        raise StateError(message)
    last = max(found, key=lambda one: (one["given"] > 0, one["given"] * one["workers"] + one["worker"]))
    whole: dict[str, Any] | None = last["whole"]
    return whole


def _worker_states(state: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the states of all workers, wherever torchdata keeps them."""
    if isinstance(state, Mapping):
        if _FORMAT in state:
            yield state
        else:
            for value in state.values():
                yield from _worker_states(value)
