"""Flips: one bit of a file is flipped, again and again; does a reader notice?

    pip install recordkit pyarrow array_record
    python benchmarks/flips.py

Nothing is timed, so no quiet machine is needed. Formats whose packages are not installed are skipped. WebDataset reads
tar files with Python's tarfile, so tarfile represents it here. If every format ran, the counts go to
results/flips.json, and `plots.py` writes them into the documentation.
"""

from __future__ import annotations

import io
import json
import tarfile
import tempfile
from collections import Counter
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import recordkit as rk

if TYPE_CHECKING:
    from collections.abc import Callable

FLIPS, ROWS = 200, 2000
DETECTED, NO_EFFECT, UNDETECTED = OUTCOMES = ("detected", "no effect", "wrong values, undetected")
RESULTS = Path(__file__).resolve().parent / "results" / "flips.json"


def flipped(path: Path, read: Callable[[Path], list[bytes]]) -> Counter[str]:
    """Count the outcomes of the flips."""
    rng = np.random.default_rng(0)
    whole, good = path.read_bytes(), read(path)
    found: Counter[str] = Counter()
    for at in rng.integers(0, len(whole), FLIPS):
        data = bytearray(whole)
        data[at] ^= 1 << int(rng.integers(8))
        path.write_bytes(data)
        try:
            found[NO_EFFECT if read(path) == good else UNDETECTED] += 1
        except Exception:
            found[DETECTED] += 1
    return found


def ours(path: Path, rows: list[bytes]) -> Callable[[Path], list[bytes]]:
    rk.write(path, [{"x": row} for row in rows], {"x": "bytes"})
    return lambda path: [value for batch in rk.open(path).batch(500) for value in batch["x"].to_list()]


def parquet(path: Path, rows: list[bytes], *, checksums: bool) -> Callable[[Path], list[bytes]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"x": pa.array(rows, pa.binary())}), path, write_page_checksum=checksums)
    return lambda path: pq.read_table(path, page_checksum_verification=checksums)["x"].to_pylist()


def array_record(path: Path, rows: list[bytes]) -> Callable[[Path], list[bytes]]:
    from array_record.python import array_record_module

    writer = array_record_module.ArrayRecordWriter(str(path), "group_size:1")
    for row in rows:
        writer.write(row)
    writer.close()
    return lambda path: array_record_module.ArrayRecordReader(str(path)).read_all()


def tar(path: Path, rows: list[bytes]) -> Callable[[Path], list[bytes]]:
    with tarfile.open(path, "w") as file:
        for number, row in enumerate(rows):
            info = tarfile.TarInfo(f"{number:06d}.bin")
            info.size = len(row)
            file.addfile(info, io.BytesIO(row))
    return _untarred


def _untarred(path: Path) -> list[bytes]:
    with tarfile.open(path) as file:
        return [found.read() for member in file if (found := file.extractfile(member))]


def main() -> None:
    """Print a line for each format, and keep the counts if none was skipped."""
    vectors = np.random.default_rng(1).standard_normal((ROWS, 64)).astype(np.float32)
    rows = [vector.tobytes() for vector in vectors]
    formats: dict[str, tuple[str, Callable[..., Any]]] = {
        "TFRecord, read by recordkit": ("a.tfrecord", ours),
        "Parquet, pyarrow's defaults": ("a.parquet", lambda *given: parquet(*given, checksums=False)),
        "Parquet, checksums turned on": ("b.parquet", lambda *given: parquet(*given, checksums=True)),
        "ArrayRecord": ("a.array_record", array_record),
        "tar, as WebDataset reads it": ("a.tar", tar),
    }
    counts: dict[str, dict[str, int]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, (file, make) in formats.items():
            path = Path(folder, file)
            try:
                read = make(path, rows)
            except ImportError as error:
                print(f"{name}: skipped, {error}")
                continue
            found = flipped(path, read)
            counts[name] = {outcome: found[outcome] for outcome in OUTCOMES}
            print(f"{name}: {counts[name]}")
    if len(counts) == len(formats):
        kept = {"date": str(date.today()), "flips": FLIPS, "records": ROWS, "formats": counts}
        RESULTS.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
