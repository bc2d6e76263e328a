"""array_record: a format for random access. Records are the bytes of a row, so that taking them apart is free."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Any

import columns
import numpy as np
from array_record.python.array_record_data_source import ArrayRecordDataSource
from array_record.python.array_record_module import ArrayRecordWriter
from columns import Digest, picked
from worker import Request, Work, serve


def random(request: Request) -> Work:
    """Look records up, one by one or all at once; the file is open."""
    file = Path(request["file"]).with_suffix(f".{request['options'].replace(':', '-')}.array_record")
    drawn = columns.load(request["folder"], request["fields"], mapped=True)
    dtype = np.dtype([(name, column.dtype, column.shape[1:]) for name, column in drawn.items()])
    if not file.exists():
        write(file, drawn, dtype, request["options"])
    source = ArrayRecordDataSource(str(file))
    numbers = picked(request["records"], request["picks"]).tolist()

    def one_by_one() -> list[Any]:
        return [np.frombuffer(source[number], dtype) for number in numbers]

    def at_once() -> list[Any]:
        return [np.frombuffer(b"".join(source.__getitems__(numbers)), dtype)]

    def work(digest: Digest | None) -> int:
        parts = at_once() if request.get("at_once") else one_by_one()
        if digest:
            rows = np.concatenate(parts)
            digest.add_columns({name: rows[name] for name in drawn})
        return len(numbers)

    return work


def write(file: Path, drawn: columns.Columns, dtype: np.dtype[Any], options: str) -> None:
    partial = file.with_suffix(".partial")
    writer = ArrayRecordWriter(str(partial), options)
    rows = np.empty(len(next(iter(drawn.values()))), dtype)
    for name, column in drawn.items():
        rows[name] = column
    for row in rows:
        writer.write(row.tobytes())
    writer.close()
    partial.replace(file)


if __name__ == "__main__":
    serve({"array_record": version("array_record"), "numpy": np.__version__}, {"random": random})
