"""The main job in a minute: declare, write, check, damage, rescue, read back.

Run it with `make demo`.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import recordkit as rk

ROWS = 200_000


def say(step: str, text: str = "") -> None:
    """Print one step of the story."""
    print(f"\n\033[1m{step}\033[0m" if sys.stdout.isatty() else f"\n{step}")
    if text:
        print("  " + text.replace("\n", "\n  "))


def rate(rows: int, size: int, seconds: float) -> str:
    """Return a speed in words."""
    millions, megabytes = rows / seconds / 1e6, size / seconds / 1e6
    return f"{rows:,} records in {seconds:.2f} s: {millions:.1f} million a second, {megabytes:,.0f} MB/s"


def main() -> None:
    """Tell the story in a folder that goes away."""
    schema = rk.Schema(
        {
            "id": "int64",
            "label": "uint8",
            "tokens": "int64[?]",
            "embedding": "float32[16]",
            "depth": "float64[?,?]",
            "note": "string?",
        }
    )
    say("1. A schema says what every record holds", str(schema))

    rng = np.random.default_rng(7)
    lengths = rng.integers(0, 20, ROWS)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    columns = {
        "id": np.arange(ROWS),
        "label": rng.integers(0, 10, ROWS).astype(np.uint8),
        "tokens": rk.Ragged(rng.integers(0, 50_000, offsets[-1]), (offsets,)),
        "embedding": rng.standard_normal((ROWS, 16), dtype=np.float32),
        "depth": [np.full((i % 3, 2), i / 3) for i in range(ROWS)],
        "note": ["every tenth has a note" if i % 10 == 0 else None for i in range(ROWS)],
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "train.tfrecord"
        start = time.perf_counter()
        packed = schema.encode(columns)
        path.write_bytes(packed)
        say(
            "2. Columns become records; TensorFlow reads the file as it is",
            rate(ROWS, packed.nbytes, time.perf_counter() - start),
        )

        say("3. Silent mistakes are loud")
        for row in ({"id": 1, "label": 300}, {"id": 1, "label": 3, "tokens": [], "embeding": [0.0] * 16}):
            try:
                schema.check({"tokens": [], "embedding": [0.0] * 16, "depth": [[]], **row})
            except rk.SchemaError as error:
                print("  " + str(error).replace("\n", "\n  "))

        start = time.perf_counter()
        with path.open("rb") as file:
            rows, total = 0, 0
            reader = rk.records.Reader(file)
            while (chunk := reader.read(1024)) is not None:
                batch = schema.decode(chunk)
                rows += len(batch)
                total += int(batch["tokens"].values.sum())
        assert total == int(columns["tokens"].values.sum())
        say("4. Every byte is checked on the way back", rate(rows, path.stat().st_size, time.perf_counter() - start))
        print(f"  {batch}\n  {batch.row(3)}")

        damaged = bytearray(path.read_bytes())
        damaged[100_000] ^= 1
        say("5. One bit flips on the disk")
        try:
            rk.records.scan(damaged, path="train.tfrecord")
        except rk.CorruptRecordError as error:
            print("  " + str(error).replace("\n", "\n  "))
        rescued = rk.records.salvage(damaged)
        print(f"  Salvaged {len(rescued.found):,} of {ROWS:,} records. Lost: {rescued.lost[0]}")


if __name__ == "__main__":
    main()
