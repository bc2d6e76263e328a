"""Find the damaged files of a dataset and recover their intact records."""

from pathlib import Path

import numpy as np

import recordkit as rk

rk.write("log/", {"id": np.arange(1000)}, shards=4, overwrite=True)

# Flip one bit, as a failing disk does, and cut another shard short.
first, second, *_ = sorted(Path("log").glob("*.tfrecord"))
data = bytearray(first.read_bytes())
data[30] ^= 1
first.write_bytes(data)
second.write_bytes(second.read_bytes()[:-5])

report = rk.verify("log/")
print(report)
assert not report.ok

damaged = [file.path for file in report.files if not file.ok]
for path in damaged:
    repaired = rk.repair(path, f"repaired-{Path(path).name}", overwrite=True)
    print(f"{path}: {repaired.recovered} records recovered")

assert rk.verify([f"repaired-{Path(path).name}" for path in damaged]).ok
