"""Datasets to look at: a pretty one, damaged ones, hostile ones."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

import recordkit as rk
from recordkit import images

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

SHAPES = ("disc", "square", "ring")
SCHEMA = rk.Schema(
    {
        "image": "jpeg",
        "objects/bbox": "float32[?,4]",
        "objects/label": "string[?]",
        "caption": "string",
        "label": "int64",
        "score": "float32",
        "note": "string?",
        "embedding": "float32[64]",
        "heat": "float32[12,16]",
        "tokens": "int64[?]",
        "taken": "datetime64:s",
    }
)


def scene(rng: np.random.Generator, height: int = 180, width: int = 240) -> tuple[NDArray[np.uint8], Any, list[str]]:
    """Return a picture of a few shapes before an evening sky, their boxes as shares of it, and their names."""
    down, across = np.mgrid[0 : 1 : height * 1j, 0 : 1 : width * 1j]
    top, bottom = rng.uniform(30, 160, 3), rng.uniform(120, 250, 3)
    pixels = top + (bottom - top) * (down[..., None] * 0.8 + 0.2 * across[..., None])
    boxes, names = [], []
    for _ in range(int(rng.integers(1, 4))):
        radius = rng.uniform(0.12, 0.24)
        y, x = rng.uniform(radius, 1 - radius, 2)
        name = SHAPES[int(rng.integers(len(SHAPES)))]
        away_y, away_x = np.abs(down - y), np.abs(across - x) * width / height
        far = np.hypot(away_y, away_x)
        inside = {"disc": far < radius, "ring": (far < radius) & (far > radius * 0.6)}.get(
            name, np.maximum(away_y, away_x) < radius
        )
        pixels[inside] = rng.uniform(0, 255, 3) * 0.85 + 0.15 * pixels[inside]
        wide = radius * height / width
        boxes.append([y - radius, x - wide, y + radius, x + wide])
        names.append(name)
    noisy = pixels + rng.normal(0, 3, pixels.shape)
    return np.clip(noisy, 0, 255).astype(np.uint8), np.clip(np.array(boxes, np.float32), 0, 1), names


@cache
def row(number: int) -> dict[str, Any]:
    """Return one record of the pretty dataset."""
    rng = np.random.default_rng(number)
    pixels, boxes, names = scene(rng)
    waves = np.sin(np.linspace(0, rng.uniform(4, 20), 64)) * rng.uniform(0.5, 2) + rng.normal(0, 0.15, 64)
    hill = np.exp(-((np.mgrid[0:12, 0:16] - rng.uniform(3, 11, (2, 1, 1))) ** 2).sum(0) / rng.uniform(6, 30))
    return {
        "image": images.encode(pixels, "jpeg", quality=88),
        "objects/bbox": boxes,
        "objects/label": names,
        "caption": f"{' and '.join(f'a {name}' for name in names)}, seen in the evening of day {number}",
        "label": len(names),
        "score": float(rng.normal(0.5, 0.18)),
        "note": "looked at twice" if number % 7 == 0 else None,
        "embedding": waves.astype(np.float32),
        "heat": hill.astype(np.float32),
        "tokens": rng.integers(0, 30_000, int(rng.integers(0, 40))),
        "taken": np.datetime64("2024-05-01T18:00:00", "s") + np.timedelta64(number * 977, "s"),
    }


def pretty(folder: Path, records: int = 120) -> Path:
    """Write a dataset of pictures with boxes, texts, numbers and arrays, in a few shards."""
    with rk.create(folder, SCHEMA, shard_size="200KB") as writer:
        for number in range(records):
            writer.write(row(number))
    return folder


def plain(path: Path, records: int = 1000) -> Path:
    """Write numbers and texts that tell their record, as a lone file without anything beside it."""
    schema = rk.Schema({"id": "int64", "square": "int64", "name": "string"})
    rows = [{"id": i, "square": i * i, "name": f"number {i}"} for i in range(records)]
    path.write_bytes(bytes(memoryview(schema.encode_rows(rows))))
    return path


def damaged(path: Path, *, lengths: bool = True) -> Path:
    """Write 1000 records of which number 50 has a bad payload and, if wanted, number 300 a bad length."""
    data = bytearray(plain(path).read_bytes())
    offsets = rk.records.scan(bytes(data))
    data[int(offsets[50]) + 15] ^= 1
    if lengths:
        data[int(offsets[300]) + 1] ^= 1
    path.write_bytes(data)
    return path


def tone(samples: int = 8000) -> NDArray[np.float32]:
    """Return a second of a pure tone."""
    return (0.5 * np.sin(np.arange(samples) * 2 * np.pi * 440 / 8000)).astype(np.float32)
