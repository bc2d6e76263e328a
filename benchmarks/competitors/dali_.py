"""NVIDIA DALI, on the CPU."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Any

import nvidia.dali.fn as fn
import nvidia.dali.tfrecord as tfrec
import nvidia.dali.types as types
from competitors import photos
from exact import SIZE
from nvidia.dali import pipeline_def
from worker import Request, Work, serve


def images(request: Request) -> Work:
    """Decode and resize pictures; the pipeline is built once, and goes on with the next epoch by itself."""
    index = indexed(Path(request["file"]))
    size, count = request["batch"], request["records"]
    pipe = pictures(request["file"], str(index), batch_size=size, num_threads=request["threads"], device_id=None)
    pipe.build()

    def batches() -> Any:
        for start in range(0, count, size):
            here = min(size, count - start)
            pixels, labels = pipe.run()
            yield pixels.as_array()[:here], labels.as_array()[:here]

    return photos.shown(batches, request)


@pipeline_def
def pictures(file: str, index: str) -> Any:
    described = {
        "image": tfrec.FixedLenFeature((), tfrec.string, ""),
        "label": tfrec.FixedLenFeature([1], tfrec.int64, -1),
    }
    # The last batch is filled up, so that the next one is the first of an epoch.
    rows = fn.readers.tfrecord(path=[file], index_path=[index], features=described, pad_last_batch=True)
    pixels = fn.decoders.image(rows["image"], output_type=types.RGB)
    pixels = fn.resize(pixels, size=(SIZE, SIZE), interp_type=types.INTERP_LINEAR, antialias=False)
    return fn.cast(pixels, dtype=types.FLOAT) / 255.0, rows["label"]


def indexed(file: Path) -> Path:
    """Return DALI's index of a file: where each record is, and how long."""
    index = file.with_suffix(".dali")
    if not index.exists():
        lines, at, data = [], 0, file.read_bytes()
        while at < len(data):
            size = 16 + int.from_bytes(data[at : at + 8], "little")
            lines.append(f"{at} {size}\n")
            at += size
        index.write_text("".join(lines))
    return index


if __name__ == "__main__":
    serve({"dali": version("nvidia-dali-cuda120")}, {"images": images})
