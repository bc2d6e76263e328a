"""Build a pipeline from functions of your own: a generator, a filter, an augmentation, a normalised batch."""

import numpy as np

import recordkit as rk

rng = np.random.default_rng(0)
rk.write("real/", {"id": np.arange(600), "x": rng.random((600, 4), np.float32)}, overwrite=True)


def synthetic():
    """Yield elements from anywhere: a simulation, a database, a socket."""
    for i in range(1000):
        yield {"id": -1 - i, "x": np.full(4, i, np.float32)}


def augment(row):
    """Return a changed copy; the row itself may be shared."""
    return {**row, "x": row["x"] * 2}


def normalised(batch):
    """Work on a whole batch at once: a dict of arrays becomes what the model takes."""
    return (batch["x"] - batch["x"].mean(axis=0)) / 100, batch["id"]


real = rk.open("real/").shuffle(seed=1).filter(lambda row: row["x"].max() > 0.5)
made = rk.from_generator(synthetic)
pipe = real.mix(made, weights=[0.8, 0.2], seed=2).map(augment, workers=2).batch(64).map(normalised)
pipe = pipe.take(5)
print(pipe.explain())

for x, ids in pipe:
    print(x.shape, f"{np.mean(ids < 0):.0%} synthetic")
