"""MosaicML Streaming: the MDS format, read from a local folder."""

from __future__ import annotations

import shutil
from importlib.metadata import version
from pathlib import Path
from typing import Any

import columns
import numpy as np
from columns import Digest, picked
from streaming import MDSWriter, StreamingDataset
from worker import Request, Work, serve


def random(request: Request) -> Work:
    """Look records up one by one; the dataset is open."""
    folder = Path(request["file"]).with_suffix(".mds")
    drawn = columns.load(request["folder"], request["fields"], mapped=True)
    if not folder.exists():
        write(folder, drawn)
    dataset = StreamingDataset(local=str(folder), shuffle=False, batch_size=1)
    numbers = picked(request["records"], request["picks"]).tolist()

    def work(digest: Digest | None) -> int:
        if digest:
            rows = [dataset[number] for number in numbers]
            digest.add_columns({name: np.array([row[name] for row in rows]) for name in drawn})
            return len(rows)
        for number in numbers:
            dataset[number]
        return len(numbers)

    return work


def write(folder: Path, drawn: columns.Columns) -> None:
    partial = folder.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    encodings = {name: encoding(column) for name, column in drawn.items()}
    with MDSWriter(out=str(partial), columns=encodings) as writer:
        for values in zip(*drawn.values(), strict=True):
            writer.write(dict(zip(drawn, values, strict=True)))
    partial.replace(folder)


def encoding(column: Any) -> str:
    """A column's type in words of MDS."""
    if column.ndim == 1:
        return str(column.dtype)
    return f"ndarray:{column.dtype}:{','.join(map(str, column.shape[1:]))}"


if __name__ == "__main__":
    serve({"mosaicml-streaming": version("mosaicml-streaming"), "numpy": np.__version__}, {"random": random})
