"""pyarrow: the same columns as Parquet with snappy, another format."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import columns
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from columns import Digest, Lists
from worker import Request, Work, serve, sync


def decode(request: Request) -> Work:
    """Read a Parquet file in batches of NumPy arrays; with `objects`, bytes as Python's `bytes`."""
    file = Path(request["file"]).with_suffix(".parquet")
    if not file.exists():
        write(table(request), file, synced=False)

    def work(digest: Digest | None) -> int:
        done = 0
        with pq.ParquetFile(file) as parquet:
            for batch in parquet.iter_batches(request["batch"]):
                arrays = {name: array_of(batch[name], request) for name in batch.schema.names}
                done += len(batch)
                if digest:
                    add(digest, arrays)
        return done

    return work


def array_of(column: pa.Array, request: Request) -> Any:
    """Bytes as objects, or as the array of all and where each begins; numbers as an array."""
    if not pa.types.is_large_binary(column.type):
        return column.to_numpy()
    if request.get("objects"):
        return column.to_numpy(zero_copy_only=False)
    _, offsets, values = column.buffers()
    offsets = np.frombuffer(offsets, np.int64)[column.offset :][: len(column) + 1]
    return Lists(np.frombuffer(values, np.uint8)[offsets[0] : offsets[-1]], offsets)


def add(digest: Digest, arrays: dict[str, Any]) -> None:
    for name, array in arrays.items():
        if not isinstance(array, Lists) and array.dtype == object:
            digest.add_strings(name, array)
        else:
            digest.add_columns({name: array})


def pipeline(request: Request) -> Work:
    """Read the groups of a Parquet file in random order, and shuffle the rows of each."""
    file = Path(request["folder"]) / f"groups-of-{request['group']}.parquet"
    if not file.exists():
        write(table(request), file, synced=False, row_group_size=request["group"])
    rng, size = np.random.default_rng(7), request["batch"]

    def work(digest: Digest | None) -> int:
        done = 0
        with pq.ParquetFile(file) as parquet:
            for group in rng.permutation(parquet.num_row_groups).tolist():
                rows = parquet.read_row_group(group)
                order = rng.permutation(len(rows))
                arrays = {name: rows[name].to_numpy()[order] for name in rows.column_names}
                for start in range(0, len(rows), size):
                    batch = {name: array[start : start + size] for name, array in arrays.items()}
                    done += len(next(iter(batch.values())))
                    if digest:
                        digest.add_in_any_order(batch)
        return done

    return work


def encode(request: Request) -> Work:
    """Write the columns as a Parquet file."""
    drawn, file = table(request), Path(request["output"]).with_suffix(".parquet")

    def work(digest: Digest | None) -> int:
        write(drawn, file, synced=request.get("sync", False))
        return drawn.num_rows

    return work


def table(request: Request) -> pa.Table:
    drawn = columns.load(request["folder"], request["fields"])
    drawn = columns.rows(drawn, 0, request["records"])
    return pa.table({name: column_of(column) for name, column in drawn.items()})


def column_of(column: Any) -> Any:
    """A column as pyarrow takes it."""
    if not isinstance(column, Lists):
        return column
    parts = [None, pa.py_buffer(np.ascontiguousarray(column.offsets)), pa.py_buffer(column.values)]
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(column.offsets) - 1, parts)


def write(drawn: pa.Table, file: Path, *, synced: bool, row_group_size: int | None = None) -> None:
    partial = file.with_suffix(".partial")
    pq.write_table(drawn, partial, compression="snappy", row_group_size=row_group_size)
    if synced:
        sync(partial)
    partial.replace(file)


if __name__ == "__main__":
    jobs = {"decode": decode, "encode": encode, "write": encode, "pipeline": pipeline}
    serve({"pyarrow": pa.__version__, "numpy": np.__version__}, jobs)
