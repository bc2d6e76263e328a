"""Memory: recordkit writes the same columns again and again, in a fresh process that watches its size; Linux only."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import columns
import numpy as np
from plan import GROWTH, PEAK, SETTLED
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


if __name__ == "__main__":
    print(json.dumps(write(json.loads(sys.argv[1]))._asdict()))
