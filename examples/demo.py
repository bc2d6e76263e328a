"""The main job in a minute: declare, write, break off and resume, read back, add a field, damage and repair.

Run it with `make demo`.
"""

from __future__ import annotations

import logging
import os
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
    logging.disable()  # the story says it in its own words
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
        os.chdir(folder)
        start = time.perf_counter()
        written = rk.write("train", columns, schema, shard_size="16MB", metadata={"source": "examples/demo.py"})
        say(
            "2. Columns become shards, under their names only when all are whole; TensorFlow reads them as they are",
            rate(ROWS, written.bytes, time.perf_counter() - start),
        )
        print(f"  {written}")
        print("  " + "\n  ".join(sorted(str(path) for path in Path("train").rglob("*") if path.is_file())))

        say("3. Silent mistakes are loud")
        for row in ({"id": 1, "label": 300}, {"id": 1, "label": 3, "tokens": [], "embeding": [0.0] * 16}):
            try:
                schema.check({"tokens": [], "embedding": [0.0] * 16, "depth": [[]], **row})
            except rk.SchemaError as error:
                print("  " + indented(error))

        say("4. A run that breaks off leaves nothing half-made, and goes on where it was")
        try:
            write_numbers(break_at=1234)
        except RuntimeError as error:
            print(f"  {error}; is there anything under the name? {Path('numbers').exists()}")
        print(f"  {write_numbers()}")

        start = time.perf_counter()
        rows, total = 0, 0
        ds = rk.open("train")
        for batch in ds.batch(1024):
            rows += len(batch)
            total += int(batch["tokens"].values.sum())
        assert total == int(columns["tokens"].values.sum())
        say("5. Every byte is checked on the way back", rate(rows, written.bytes, time.perf_counter() - start))
        print("  " + indented(ds))

        start = time.perf_counter()
        numbers = rng.integers(0, ROWS, 10_000)
        for number in numbers.tolist():
            assert ds[number]["id"] == number
        seconds = time.perf_counter() - start
        say("6. Any record at random", f"10,000 records one by one: {seconds / 10_000 * 1e6:.0f} microseconds each")

        start = time.perf_counter()
        length = rk.Computed("int64", lambda batch: np.diff(batch["tokens"].offsets[0]), reads=["tokens"], batched=True)
        added = rk.add_fields("train", {"length": length})
        say("7. A new field for old records: beside them, nothing is rewritten", f"{added}")
        print(f"  {time.perf_counter() - start:.2f} s; record 3 now: length {rk.open('train')[3]['length']}")

        damaged = bytearray(Path("train", "train-00000-of-00004.tfrecord").read_bytes())
        damaged[100_000] ^= 1
        Path("damaged.tfrecord").write_bytes(damaged)
        say("8. One bit flips on the disk", indented(rk.verify("damaged.tfrecord")))
        print("  " + indented(rk.repair("damaged.tfrecord", "rescued.tfrecord")))
        print(f"  The rescued file is sound: {rk.verify('rescued.tfrecord').ok}")
        os.chdir("/")


def write_numbers(break_at: int | None = None) -> rk.storage.Written:
    """Write two thousand rows in shards of five hundred, or break off at one of them."""
    with rk.create("numbers", {"id": "int64"}, records_per_shard=500, resume=True) as writer:
        if writer.committed:
            print(f"  going on behind row {writer.committed:,}, the last in a finished shard")
        for i in range(writer.committed, 2000):
            if i == break_at:
                message = f"broke off at row {i:,}"
                raise RuntimeError(message)
            writer.write({"id": i})
    return writer.close()


def indented(thing: object) -> str:
    """Return what an error or a report says, as part of the story."""
    return str(thing).replace("\n", "\n  ")


if __name__ == "__main__":
    main()
