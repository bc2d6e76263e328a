"""Flips: one bit of a file is flipped, again and again; does a reader notice?

    pip install recordkit pyarrow array_record
    python benchmarks/flips.py

No timing, so it needs no quiet machine. Formats whose packages are not installed are passed over. WebDataset reads tar
files with Python's tarfile, which stands for it here.
"""

from __future__ import annotations

import io
import tarfile
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import recordkit as rk

if TYPE_CHECKING:
    from collections.abc import Callable

FLIPS, ROWS = 200, 2000


def flipped(path: Path, read: Callable[[Path], list[bytes]]) -> Counter[str]:
    """Return what came of each flip: "noticed", "nothing changed" or "wrong values, not noticed"."""
    rng = np.random.default_rng(0)
    whole, good = path.read_bytes(), read(path)
    found: Counter[str] = Counter()
    for at in rng.integers(0, len(whole), FLIPS):
        data = bytearray(whole)
        data[at] ^= 1 << int(rng.integers(8))
        path.write_bytes(data)
        try:
            found["nothing changed" if read(path) == good else "wrong values, not noticed"] += 1
        except Exception:
            found["noticed"] += 1
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
    """Print a line for each format."""
    vectors = np.random.default_rng(1).standard_normal((ROWS, 64)).astype(np.float32)
    rows = [vector.tobytes() for vector in vectors]
    formats: dict[str, tuple[str, Callable[..., Any]]] = {
        "TFRecord, by recordkit": ("a.tfrecord", ours),
        "Parquet, as it is by default": ("a.parquet", lambda *given: parquet(*given, checksums=False)),
        "Parquet, with checksums": ("b.parquet", lambda *given: parquet(*given, checksums=True)),
        "ArrayRecord": ("a.array_record", array_record),
        "tar, as WebDataset has it": ("a.tar", tar),
    }
    with tempfile.TemporaryDirectory() as folder:
        for name, (file, make) in formats.items():
            path = Path(folder, file)
            try:
                read = make(path, rows)
            except ImportError as error:
                print(f"{name}: passed over, {error}")
                continue
            print(f"{name}: {dict(flipped(path, read))}")


if __name__ == "__main__":
    main()
