"""recordkit with what it has extras for: pictures, and PyTorch's DataLoader."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np
from competitors import photos
from competitors.pipes import piped
from competitors.reading import alone
from torch.utils.data import DataLoader
from worker import Request, Work, serve

from recordkit.integrations.torch import TorchIterableDataset

if TYPE_CHECKING:
    from collections.abc import Iterator

    from columns import Digest


def images(request: Request) -> Work:
    """Decode and resize pictures."""

    def batches() -> Iterator[tuple[Any, Any]]:
        for batch in piped(request | {"images": True}):
            yield batch["image"], batch["label"]

    return photos.shown(batches, request)


def pipeline(request: Request) -> Work:
    """Go through an epoch with a DataLoader that leaves batches to the pipeline."""

    def work(digest: Digest | None) -> int:
        done = 0
        loader = DataLoader(TorchIterableDataset(piped(request)), batch_size=None, num_workers=request["workers"])
        for batch in loader:
            done += len(next(iter(batch.values())))
            if digest:
                digest.add_in_any_order({name: column.numpy() for name, column in batch.items()})
        return done

    return work


if __name__ == "__main__":
    names = ("recordkit", "torch", "simplejpeg", "pillow")
    versions = {name: version(name) for name in names} | {"numpy": np.__version__}
    serve(versions, {"images": images, "pipeline": pipeline, "epochs": alone})
