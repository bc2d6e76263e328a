"""Memory: recordkit writes, reads or opens a lot, in a fresh process that watches its size; Linux only."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import columns
import numpy as np
from plan import FIRST_ROW, GROWTH, OPENED, PEAK, SETTLED
from worker import Done, Request

import recordkit as rk


def megabytes(key: str) -> float:
    """Return what the system says of this process: VmRSS, what it has in memory, or VmHWM, the most it ever had."""
    # Not getrusage, whose peak is at first that of the process that started this one.
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(lines[key].split()[0]) * 1024 / 1e6


def write(request: Request) -> Done:
    drawn = columns.rows(columns.load(request["folder"], request["fields"], mapped=True), 0, request["rows"])
    # Mapped pages would count as memory.
    taken = {name: np.array(column) for name, column in drawn.items()}
    settled = 0.0
    start = time.perf_counter()
    with rk.create(Path(request["output"]).with_suffix(""), request["fields"], **request["options"]) as writer:
        for cycle in range(request["cycles"]):
            writer.write_batch(taken)
            if cycle + 1 == request["settled"]:
                settled = megabytes("VmRSS")
    seconds, peak = time.perf_counter() - start, megabytes("VmHWM")
    return Done(writer.close().records, seconds, {SETTLED: settled, PEAK: peak, GROWTH: peak - settled})


def read(request: Request) -> Done:
    """Go through a dataset again and again, with every column made."""
    ds, done, settled = rk.open(request["file"]), 0, 0.0
    start = time.perf_counter()
    for cycle in range(request["cycles"]):
        for batch in ds.batch(request["batch"]):
            for name in batch.names:
                batch[name]
            done += len(batch)
        if cycle + 1 == request["settled"]:
            settled = megabytes("VmRSS")
    seconds, peak = time.perf_counter() - start, megabytes("VmHWM")
    return Done(done, seconds, {SETTLED: settled, PEAK: peak, GROWTH: peak - settled})


def open_(request: Request) -> Done:
    """Open a dataset of many files, count it, and take a row from its middle."""
    start = time.perf_counter()
    ds = rk.open(request["file"])
    count = len(ds)
    opened = time.perf_counter() - start
    ds[count // 2]
    seconds = time.perf_counter() - start
    return Done(count, seconds, {OPENED: opened, FIRST_ROW: 1000 * (seconds - opened), PEAK: megabytes("VmHWM")})


JOBS = {"memory": write, "streaming": read, "opening": open_}

if __name__ == "__main__":
    asked = json.loads(sys.argv[1])
    print(json.dumps(JOBS[asked["job"]](asked)._asdict()))
