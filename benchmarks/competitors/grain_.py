"""grain: pipelines of JAX users, here over array_record; OpenCV decodes."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Any

import cv2
import grain
import numpy as np
from array_record.python.array_record_module import ArrayRecordWriter
from competitors import photos
from worker import Request, Work, serve


def images(request: Request) -> Work:
    """Decode and resize pictures, in threads or in worker processes."""
    file = Path(request["folder"]) / f"pictures-{request['records']}.array_record"
    if not file.exists():
        write(file, request)
    source = grain.sources.ArrayRecordDataSource(str(file))
    pictures = grain.MapDataset.source(source).map(picture).batch(request["batch"])
    workers, threads = request.get("workers", 0), request.get("threads", 1)

    def batches() -> Any:
        found = pictures.to_iter_dataset(grain.ReadOptions(num_threads=threads, prefetch_buffer_size=max(4, threads)))
        return found.mp_prefetch(grain.MultiprocessingOptions(num_workers=workers)) if workers else found

    return photos.shown(batches, request)


def picture(record: bytes) -> tuple[Any, Any]:
    return photos.with_cv2(record[8:]), np.frombuffer(record[:8], np.int64)[0]


def write(file: Path, request: Request) -> None:
    partial = file.with_suffix(".partial")
    writer = ArrayRecordWriter(str(partial), "group_size:1,uncompressed")
    for jpeg, label in photos.encoded(request):
        writer.write(np.int64(label).tobytes() + jpeg)
    writer.close()
    partial.replace(file)


if __name__ == "__main__":
    serve({"grain": version("grain"), "cv2": cv2.__version__, "numpy": np.__version__}, {"images": images})
