"""webdataset: tar files, read by PyTorch's DataLoader; OpenCV decodes."""

from __future__ import annotations

import shutil
from importlib.metadata import version
from pathlib import Path
from typing import Any

import cv2
import torch
import webdataset as wds
from competitors import photos
from torch.utils.data import DataLoader
from worker import Request, Work, serve

SHARDS = 8  # at most; each has a whole batch, so that the first one is of the first shard


def images(request: Request) -> Work:
    """Decode and resize pictures in worker processes."""
    folder = Path(request["folder"]) / f"tar-{request['records']}"
    if not folder.exists():
        write(folder, request)
    shards = sorted(map(str, folder.glob("*.tar")))

    def batches() -> Any:
        samples = wds.WebDataset(shards, shardshuffle=False).to_tuple("jpg", "cls").map(picture)
        return DataLoader(samples.batched(request["batch"]), batch_size=None, num_workers=request["workers"])

    return photos.shown(batches, request)


def picture(sample: tuple[bytes, bytes]) -> tuple[torch.Tensor, int]:
    # A tensor goes from a worker through shared memory, an array through a pipe.
    return torch.from_numpy(photos.with_cv2(sample[0])), int(sample[1])


def write(folder: Path, request: Request) -> None:
    partial = folder.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    a_shard = max(request["batch"], -(-request["records"] // SHARDS))
    with wds.ShardWriter(str(partial / "%05d.tar"), maxcount=a_shard, verbose=0) as writer:
        for number, (jpeg, label) in enumerate(photos.encoded(request)):
            writer.write({"__key__": f"{number:06d}", "jpg": jpeg, "cls": label})
    partial.replace(folder)


if __name__ == "__main__":
    serve(
        {"webdataset": version("webdataset"), "torch": torch.__version__, "cv2": cv2.__version__},
        {"images": images},
    )
