"""MosaicML Streaming: the MDS format, read from a local folder."""

from __future__ import annotations

import shutil
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import columns
import numpy as np
import torch
from columns import Digest, picked
from competitors import photos
from streaming import MDSWriter, StreamingDataset
from torch.utils.data import DataLoader
from worker import Request, Work, serve

if TYPE_CHECKING:
    from collections.abc import Iterable


def random(request: Request) -> Work:
    """Look records up one by one; the dataset is open."""
    folder = Path(request["file"]).with_suffix(".mds")
    drawn = columns.load(request["folder"], request["fields"], mapped=True)
    if not folder.exists():
        rows = (dict(zip(drawn, values, strict=True)) for values in zip(*drawn.values(), strict=True))
        write(folder, {name: encoding(column) for name, column in drawn.items()}, rows)
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


class Pictures(StreamingDataset):
    """Rows with pixels in place of JPEGs."""

    def __getitem__(self, at: Any) -> Any:
        row = super().__getitem__(at)
        return torch.from_numpy(photos.with_cv2(row["image"])), row["label"]


def images(request: Request) -> Work:
    """Decode and resize pictures in the worker processes of a DataLoader."""
    folder = Path(request["folder"]) / f"pictures-{request['records']}.mds"
    if not folder.exists():
        rows = ({"image": jpeg, "label": label} for jpeg, label in photos.encoded(request))
        write(folder, {"image": "bytes", "label": "int"}, rows)
    size = request["batch"]
    dataset = Pictures(local=str(folder), shuffle=False, batch_size=size)
    return photos.shown(lambda: DataLoader(dataset, batch_size=size, num_workers=request["workers"]), request)


def write(folder: Path, encodings: dict[str, str], rows: Iterable[dict[str, Any]]) -> None:
    partial = folder.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    with MDSWriter(out=str(partial), columns=encodings) as writer:
        for row in rows:
            writer.write(row)
    partial.replace(folder)


def encoding(column: Any) -> str:
    """A column's type in words of MDS."""
    if column.ndim == 1:
        return str(column.dtype)
    return f"ndarray:{column.dtype}:{','.join(map(str, column.shape[1:]))}"


if __name__ == "__main__":
    versions = {
        "mosaicml-streaming": version("mosaicml-streaming"),
        "torch": torch.__version__,
        "numpy": np.__version__,
    }
    serve(versions, {"random": random, "images": images})
