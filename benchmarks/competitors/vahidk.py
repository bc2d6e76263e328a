"""vahidk/tfrecord: reads TFRecords without TensorFlow, for PyTorch's DataLoader."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from tfrecord import tfrecord_loader
from tfrecord.torch.dataset import MultiTFRecordDataset
from torch.utils.data import DataLoader
from worker import Request, Work, serve

if TYPE_CHECKING:
    from columns import Digest

KINDS = {"float32": "float", "int64": "int", "bytes": "byte"}


def decode(request: Request) -> Work:
    """Go through the records, each as a dict of arrays and of `bytes`; no CRC is checked."""

    def work(digest: Digest | None) -> int:
        done = 0
        for record in tfrecord_loader(request["file"], None, kinds(request)):
            done += 1
            if digest:
                for name, value in record.items():
                    add = digest.add_strings if isinstance(value, bytes) else digest.add
                    add(name, [value] if isinstance(value, bytes) else value)
        return done

    return work


def kinds(request: Request) -> dict[str, str]:
    return {name: KINDS[declared] for name, declared in request["fields"].items()}


def pipeline(request: Request) -> Work:
    """Go through an epoch of shuffled batches."""
    shards = sorted(Path(request["file"]).glob("*.tfrecord"))
    pattern = str(shards[0].parent / "{}.tfrecord")
    options = {
        "splits": {shard.stem: 1 / len(shards) for shard in shards},
        "description": kinds(request),
        "shuffle_queue_size": request["buffer"],
        "infinite": False,
    }

    def work(digest: Digest | None) -> int:
        done = 0
        dataset = MultiTFRecordDataset(pattern, None, **options)
        for batch in DataLoader(dataset, batch_size=request["batch"], num_workers=request["workers"]):
            done += len(next(iter(batch.values())))
            if digest:
                digest.add_in_any_order({name: column.numpy() for name, column in batch.items()})
        return done

    return work


if __name__ == "__main__":
    serve({"tfrecord": version("tfrecord"), "torch": torch.__version__}, {"decode": decode, "pipeline": pipeline})
