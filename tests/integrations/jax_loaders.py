"""What is done with JAX and grain, as functions that another process can call."""

from __future__ import annotations

from typing import Any

import grain
import jax
import numpy as np
from absl import flags

import recordkit as rk
from recordkit.integrations.jax import GrainSource, processes, put

flags.FLAGS.mark_as_parsed()  # grain's workers look at them


def grain_loader(path: str, crew: Any, stop: int | None = None, state: Any = None) -> tuple[list[list[int]], Any]:
    """Batches of grain's DataLoader, which starts its workers in its own way."""
    source = GrainSource(rk.open(path))
    if not len(source):
        return [], None  # grain refuses to sample from nothing
    sampler = grain.samplers.IndexSampler(len(source), shuffle=True, seed=3, num_epochs=1)
    operations = [grain.transforms.Batch(4)]
    loader = grain.DataLoader(data_source=source, sampler=sampler, operations=operations, worker_count=crew[0])
    iterator = iter(loader)
    if state is not None:
        iterator.set_state(state)
    batches: list[list[int]] = []
    while (stop is None or len(batches) < stop) and (found := next(iterator, None)) is not None:
        batches.append(found["id"].tolist())
    return batches, iterator.get_state()


def grain_dataset(path: str) -> list[list[int]]:
    """Batches of grain's own shuffling."""
    dataset = grain.MapDataset.source(GrainSource(rk.open(path))).shuffle(seed=1).batch(4)
    return [batch["id"].tolist() for batch in dataset]


def on_devices(path: str) -> tuple[list[int], str, list[int], tuple[int, int]]:
    """A batch on the default device, and one that is divided over a mesh."""
    batch = next(iter(rk.open(path).select("id").batch(4)))
    mesh = jax.make_mesh((1,), ("data",))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("data"))
    put_there, divided = put(batch)["id"], put(batch, sharding)["id"]
    assert divided.sharding == sharding
    return np.asarray(put_there).tolist(), str(put_there.dtype), np.asarray(divided).tolist(), processes()
