"""Add fields to an existing dataset without rewriting it, then write a copy that holds everything."""

import shutil

import numpy as np

import recordkit as rk

rng = np.random.default_rng(0)
shutil.rmtree("sounds", ignore_errors=True)
rk.write("sounds/", {"id": np.arange(500), "wave": rng.random((500, 16), np.float32)})


def loudness(row):
    """Compute the new value of one record; only the fields named in `reads` are decoded."""
    return np.sqrt(np.mean(row["wave"] ** 2))


rk.add_fields("sounds/", {"loudness": rk.Computed("float32", loudness, reads=["wave"])})
rk.add_fields("sounds/", {"fold": np.arange(500) % 5, "source": "studio"})

ds = rk.open("sounds/")
print(ds.schema)
print(ds[3]["loudness"], ds[3]["fold"], ds[3]["source"])

# Delete records, too: they are only marked, and overlays=False still shows them.
rk.delete("sounds/", where="loudness < 0.5")
print(len(rk.open("sounds/")), "of", len(rk.open("sounds/", overlays=False)), "records left")

# Programs that read the files without recordkit need a copy with all changes in the records.
print(rk.bake("sounds/", out="sounds-v2/", overwrite=True))
