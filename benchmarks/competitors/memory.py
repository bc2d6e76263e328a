"""Memory: recordkit writes, reads or opens a lot, in a fresh process that watches its size; Linux only."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from urllib.request import urlopen

import columns
import numpy as np
from cases import FIRST_BATCH, FIRST_EPOCH, FIRST_PAGE, FIRST_ROW, GROWTH, JUMP, OPENED, PEAK, SETTLED
from competitors.pipes import made, piped
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


def first(request: Request) -> Done:
    """Open a dataset, and take the first batch of a shuffle of all its records."""
    start = time.perf_counter()
    pipe = piped(request)
    made(next(iter(pipe)))
    seconds = time.perf_counter() - start
    return Done(request["records"], seconds, {FIRST_BATCH: seconds, PEAK: megabytes("VmHWM")})


def view(request: Request) -> Done:
    """Serve the page on a dataset, and ask for what it shows first, and then for records anywhere."""
    start = time.perf_counter()
    with rk.viewer.start(request["file"]) as server:
        for part in ("", "api/overview", "api/records?count=24"):
            _got(server.address + part)
        first = time.perf_counter() - start
        jumps = []
        for number in np.random.default_rng(0).integers(0, max(1, request["records"] - 24), 50).tolist():
            begun = time.perf_counter()
            _got(f"{server.address}api/records?at={number}&count=24")
            jumps.append(1000 * (time.perf_counter() - begun))
        peak = megabytes("VmHWM")
    return Done(request["records"], first, {FIRST_PAGE: first, JUMP: max(jumps), PEAK: peak})


def _got(address: str) -> bytes:
    with urlopen(address, timeout=60) as answer:
        return answer.read()


def epochs(request: Request) -> Done:
    """Go through a pipeline again and again, and look at the memory at every batch."""
    pipe, done, most = piped(request), 0, []
    start = time.perf_counter()
    for _ in range(request["cycles"]):
        most.append(0.0)
        for batch in pipe:
            made(batch)
            done += len(batch)
            most[-1] = max(most[-1], megabytes("VmRSS"))
    seconds = time.perf_counter() - start
    figures = {FIRST_EPOCH: most[0], PEAK: max(most), GROWTH: max(most[1:]) - most[0]}
    return Done(done // request["cycles"], seconds / request["cycles"], figures)


JOBS = {"memory": write, "streaming": read, "opening": open_, "first": first, "epochs": epochs, "view": view}

if __name__ == "__main__":
    asked = json.loads(sys.argv[1])
    print(json.dumps(JOBS[asked["job"]](asked)._asdict()))
