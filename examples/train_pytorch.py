"""Train with PyTorch: global shuffle, worker processes, and a checkpoint to resume from."""

import numpy as np
import torch
from torch.utils.data import DataLoader

import recordkit as rk

rng = np.random.default_rng(0)
x = rng.random((2000, 8), np.float32)
rk.write("train/", {"x": x, "y": x @ np.arange(8, dtype=np.float32)}, records_per_shard=500, overwrite=True)

model = torch.nn.Linear(8, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=0.05)


def train(batch):
    """Take one step and return the loss."""
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(batch["x"]).squeeze(1), batch["y"])
    loss.backward()
    optimizer.step()
    return loss.item()


# The pipeline makes the batches, so that workers hand over whole tensors.
pipe = rk.open("train/").shuffle(seed=7).batch(100)
loader = DataLoader(rk.torch.TorchIterableDataset(pipe), batch_size=None, num_workers=2)
for epoch in range(3):
    print("epoch", epoch, "loss", np.mean([train(batch) for batch in loader]))

# Without a DataLoader, the state of a pipeline is a small JSON value: save it with the model.
it = iter(pipe.map(rk.torch.tensors))
print("loss", train(next(it)))
state = it.state_dict()
it.close()
rest = [train(batch) for batch in pipe.map(rk.torch.tensors).resume(state)]
print(len(rest), "batches after resuming")
