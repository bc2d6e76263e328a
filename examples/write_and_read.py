"""Write a sharded dataset of NumPy arrays, then read it by number, by batch and by filter."""

import numpy as np

import recordkit as rk

rng = np.random.default_rng(0)
schema = {"id": "int64", "label": "uint8", "depth": "float64[?,?]", "note": "string?"}

# digits/ appears only when the block ends without an error.
with rk.create("digits/", schema, records_per_shard=400, overwrite=True) as out:
    for i in range(1000):
        row = {"id": i, "label": i % 10, "depth": rng.random((2 + i % 3, 4))}
        if i % 100 == 0:
            row["note"] = f"every hundredth: {i}"
        out.write(row)

ds = rk.open("digits/")
print(ds)

row = ds[700]
print(row["note"], row["depth"].shape, row["depth"].dtype)

columns = ds[[5, 1, 9]]
print(columns["id"], columns["label"])

sevens = ds.select("id", "label").filter("label == 7")
print(sum(1 for _ in sevens), "sevens")

for batch in ds.select("id", "label").batch(300):
    print(len(batch), batch["id"][0], batch["label"].mean())
