"""A program that is stopped while a slow function is at work: `python -m tests.pipeline.slow CASE FOLDER`."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import recordkit as rk

if TYPE_CHECKING:
    from collections.abc import Iterator


def slowly(row: Any) -> int:
    """Take longer than anyone waits, for many rows."""
    sys.stdout.write("at work\n")
    sys.stdout.flush()
    time.sleep(0.2)
    return int(row["id"])


def slow_rows() -> Iterator[dict[str, int]]:
    """Give some rows, and then hardly any."""
    for n in range(1000):
        if n > 40:
            slowly({"id": n})
        yield {"id": n}


def pipeline(case: str, folder: Path) -> Any:
    """Return what is gone through."""
    ds = rk.open(folder / "data")
    return {
        "in turn": lambda: ds.map(slowly),
        "shuffle": lambda: ds.shuffle(1).map(slowly).batch(4),
        "many threads": lambda: ds.shuffle(1).map(slowly, workers=16).batch(4),
        "prefetch": lambda: ds.shuffle(1).map(slowly).batch(4).prefetch(),
        "generator": lambda: rk.from_generator(slow_rows).map(dict, workers=3),
        "processes": lambda: ds.shuffle(1).map(slowly, workers=rk.Processes(2)).batch(4),
        "processes in turn": lambda: ds.map(slowly, workers=rk.Processes(2)).batch(4).prefetch(),
        "cache": lambda: ds.map(slowly).cache(folder / "kept", key="1"),
        "spill": lambda: rk.from_generator(slow_rows).cache(max_bytes=10),
        "write": lambda: rk.from_generator(slow_rows, {"id": "int64"}),
    }[case]()


def main(case: str, folder: Path) -> None:
    """Go through all of it."""
    pipe = pipeline(case, folder)
    if case == "write":
        pipe.write(folder / "written")
    for _ in pipe:
        pass


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
