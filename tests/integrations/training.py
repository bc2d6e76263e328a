"""A training loop as people write it, run by a process for each rank: `python -m tests.integrations.training`."""

from __future__ import annotations

import json
import pickle
import sys
from pathlib import Path
from typing import Any

import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel
from torchdata.stateful_dataloader import StatefulDataLoader

import recordkit as rk
from recordkit.errors import StateError
from recordkit.integrations.torch import TorchIterableDataset, pipe_state

BATCH = 3


def train(data: str, run: Path, rank: int, world: int, steps: int | None) -> None:
    """Train for some steps, or to the end of the epoch, from the checkpoint if there is one; note the ids seen."""
    early = TorchIterableDataset(rk.open(data).batch(BATCH))
    divided = TorchIterableDataset(rk.open(data).shard(rank, world).batch(BATCH))
    distributed.init_process_group("gloo", init_method=f"file://{run}/meet-{world}", rank=rank, world_size=world)
    refused = [refuses(iter, early), refuses(pickle.dumps, early), refuses(iter, divided)]
    checkpoint: Any = torch.load(run / "checkpoint.pt") if (run / "checkpoint.pt").exists() else {}
    model = DistributedDataParallel(torch.nn.Linear(1, 1))
    model.load_state_dict(checkpoint.get("model", model.state_dict()))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    dataset = TorchIterableDataset(rk.open(data).shuffle(seed=11).batch(BATCH).prefetch(), checkpoint.get("data"))
    loader = StatefulDataLoader(dataset, batch_size=None, num_workers=2, multiprocessing_context="fork", timeout=40)
    seen = []
    for step, batch in enumerate(loader):
        if step == steps:
            break
        loss = model(batch["id"].float()[:, None]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seen += batch["id"].tolist()
        state = loader.state_dict()
    if rank == 0:
        torch.save({"model": model.state_dict(), "data": pipe_state(state)}, run / "checkpoint.pt")
    (run / f"rank-{rank}-of-{world}.json").write_text(json.dumps([seen, refused]))
    distributed.barrier()
    distributed.destroy_process_group()


def refuses(use: Any, dataset: TorchIterableDataset) -> str | None:
    """What a dataset says that was made when there was one rank."""
    try:
        use(dataset)
    except StateError as error:
        return str(error)
    return None


if __name__ == "__main__":
    _, data, run, rank, world, steps = sys.argv
    train(data, Path(run), int(rank), int(world), int(steps) or None)
