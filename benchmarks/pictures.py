"""Pictures: the JPEGs of W2, made in an environment of their own because recordkit needs no Pillow.

Gradients under noise of four sizes, so that the files compress as photographs do, at the quality that brings them
nearest to the size wanted. Run as `python -m pictures COUNT SEED FOLDER`.
"""

from __future__ import annotations

import io
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import columns
import numpy as np
from PIL import Image

if TYPE_CHECKING:
    from collections.abc import Callable

WIDTH, HEIGHT = 500, 375
WANTED_BYTES = 110_000
OCTAVES = ((64, 45), (16, 25), (4, 14))  # pixels a cell, strength


def picture(seed: int, number: int) -> Image.Image:
    """Return one picture."""
    rng = np.random.default_rng([seed, number])
    down = np.linspace(0, 1, HEIGHT, dtype=np.float32)[:, None, None]
    across = np.linspace(0, 1, WIDTH, dtype=np.float32)[None, :, None]
    corner, right, bottom = rng.uniform(0, 255, (3, 3)).astype(np.float32)
    pixels = corner + (right - corner) * across + (bottom - corner) * down
    for cell, strength in OCTAVES:
        small = rng.integers(0, 256, (HEIGHT // cell + 2, WIDTH // cell + 2, 3), dtype=np.uint8)
        smooth = Image.fromarray(small).resize((WIDTH, HEIGHT), Image.Resampling.BILINEAR)
        pixels += (np.asarray(smooth, np.float32) - 127.5) * (strength / 64)
    pixels += 7 * rng.standard_normal((HEIGHT, WIDTH, 1), dtype=np.float32)
    return Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))


def jpeg(image: Image.Image, quality: int) -> bytes:
    """Return a picture as a JPEG with 4:2:0 chroma."""
    file = io.BytesIO()
    image.save(file, "JPEG", quality=quality, subsampling="4:2:0")
    return file.getvalue()


def best_quality(make: Callable[[int], Image.Image]) -> int:
    """Return the quality whose mean size over a few pictures is nearest to the one wanted."""
    few = [make(number) for number in range(8)]
    return min(range(70, 99), key=lambda q: abs(sum(len(jpeg(image, q)) for image in few) - WANTED_BYTES * len(few)))


def main(count: int, seed: int, folder: Path) -> None:
    """Keep `count` pictures as a column."""
    make = partial(picture, seed)
    quality = best_quality(make)
    with ThreadPoolExecutor(2) as pool:
        files = list(pool.map(lambda number: jpeg(make(number), quality), range(count)))
    sizes = [len(file) for file in files]
    print(f"  {count} pictures at quality {quality}, {sum(sizes) / count / 1000:.0f} kB each", flush=True)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    columns.save(folder, {"image": columns.Lists(np.frombuffer(b"".join(files), np.uint8), offsets)})


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
