"""Loaders of PyTorch, as functions that another process can call."""

from __future__ import annotations

from typing import Any

from torch.utils.data import DataLoader
from torchdata.stateful_dataloader import StatefulDataLoader

import recordkit as rk
from recordkit.integrations.torch import TorchDataset, TorchIterableDataset, collate, pipe_state

TIMEOUT = 40  # seconds in which a worker has to answer


def _taken(loader: Any, state: Any, stop: int | None) -> tuple[list[list[int]], Any]:
    if state is not None:
        loader.load_state_dict(state)
    batches: list[list[int]] = []
    iterator = iter(loader)
    while stop is None or len(batches) < stop:
        batch = next(iterator, None)
        if batch is None:
            break
        batches.append(batch["id"].tolist())
    return batches, loader.state_dict() if isinstance(loader, StatefulDataLoader) else None


def loader_options(crew: tuple[int, str | None]) -> dict[str, Any]:
    """What a DataLoader has to be told of its workers."""
    workers, start = crew
    return {"num_workers": workers, "multiprocessing_context": start, "timeout": TIMEOUT if workers else 0}


def map_style(path: str, crew: Any, stop: int | None = None, state: Any = None) -> tuple[list[list[int]], Any]:
    """Batches of a `TorchDataset`, as columns."""
    dataset = TorchDataset(rk.open(path))
    loader = StatefulDataLoader(dataset, batch_size=4, collate_fn=collate, **loader_options(crew))
    return _taken(loader, state, stop)


def row_by_row(path: str, crew: Any) -> tuple[list[list[int]], Any]:
    """Batches of a `TorchDataset` that PyTorch's own function makes, of a parent that has read and has threads."""
    dataset = TorchDataset(rk.open(path, workers=2))
    list(dataset.dataset)
    return _taken(DataLoader(dataset, batch_size=4, **loader_options(crew)), None, None)


def pipeline(path: str, kind: str = "shuffled") -> Any:
    """A pipeline of batches of four."""
    ds = rk.open(path)
    if kind == "shuffled":
        return ds.shuffle(seed=3).batch(4)
    if kind == "filtered":
        return ds.shuffle(seed=3).filter("id < 4 or id > 6").batch(4).prefetch(2)
    return ds.batch(4)


def iterable(
    path: str, crew: Any, stop: int | None = None, state: Any = None, kind: str = "shuffled"
) -> tuple[list[list[int]], Any]:
    """Batches of a `TorchIterableDataset`."""
    dataset = TorchIterableDataset(pipeline(path, kind))
    return _taken(StatefulDataLoader(dataset, batch_size=None, **loader_options(crew)), state, stop)


def iterable_from(path: str, crew: Any, state: Any, kind: str = "shuffled") -> tuple[list[list[int]], Any]:
    """The rest of an epoch by other workers than those that began it."""
    dataset = TorchIterableDataset(pipeline(path, kind), pipe_state(state))
    return _taken(DataLoader(dataset, batch_size=None, **loader_options(crew)), None, None)


def epochs(path: str, crew: Any, *, persistent: bool = False) -> list[list[list[int]]]:
    """The batches of two epochs, of one that is given up after its first batch, and of two more."""
    dataset = TorchIterableDataset(pipeline(path))
    loader = DataLoader(dataset, batch_size=None, persistent_workers=persistent, **loader_options(crew))
    return [_taken(loader, None, stop)[0] for stop in (None, None, 1, None, None)]


def set_epochs(path: str, crew: Any) -> list[list[list[int]]]:
    """The batches of epochs that are chosen, by workers that stay."""
    dataset = TorchIterableDataset(pipeline(path))
    loader = DataLoader(dataset, batch_size=None, persistent_workers=True, **loader_options(crew))
    found = []
    for epoch in (4, 4, 1):
        dataset.set_epoch(epoch)
        found.append(_taken(loader, None, None)[0])
    return found
