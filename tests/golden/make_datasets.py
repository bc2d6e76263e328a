"""Writes golden datasets with the recordkit that is installed, and says in JSON beside each what is in it.

Run as `.venv/bin/python tests/golden/make_datasets.py FOLDER` when a format gets a new version, and commit the folder
as `tests/golden/format-<version>`, beside those of the versions before. Never to make a test pass: see PROVENANCE.md.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

import recordkit as rk

if TYPE_CHECKING:
    from collections.abc import Callable

Row = dict[str, Any]

SCHEMA = {
    "id": "int64",
    "label": "uint8",
    "flag": "bool",
    "weight": "float32",
    "exact": "float64",
    "half": "bfloat16",
    "when": "datetime64:ns",
    "name": "string",
    "note": "string?",
    "blob": "bytes",
    "tokens": "int64[?]",
    "words": "string[?]",
    "box": "float32[4]",
    "depth": "float64[?,2]",
    "wave": "complex64[?]",
}
SEQUENCES = rk.Schema({"id": "int64", "title": "string?"}, sequences={"frames": "bytes", "actions": "float32[3]"})
EDGES = [0.0, -0.0, 1 / 3, float("nan"), float("inf"), -1e300]
WORDS = ["", "Größe", "图像", "two words", "\0", "🙂"]


def row(number: int) -> Row:
    """One row; every value depends on its number alone."""
    return {
        "id": np.int64(number * 7 - 3),
        "label": np.uint8(number * 37 % 256),
        "flag": np.bool_(number % 3 == 0),
        "weight": np.float32(number / 7),
        "exact": np.float64(EDGES[number % len(EDGES)]),
        "half": ml_dtypes.bfloat16(number / 3),
        "when": np.datetime64(1_600_000_000_000_000_000 + number, "ns"),
        "name": WORDS[number % len(WORDS)],
        "note": None if number % 4 == 1 else f"note {number}",
        "blob": bytes(range(number % 5)),
        "tokens": np.arange(number % 4, dtype=np.int64) - 2**62,
        "words": WORDS[: number % 4],
        "box": np.arange(4, dtype=np.float32) * number,
        "depth": np.full((number % 3, 2), number / 3),
        "wave": (np.arange(number % 3) * (1 - 2j)).astype(np.complex64),
    }


def rows(start: int, stop: int) -> list[Row]:
    return [row(number) for number in range(start, stop)]


def long_row(number: int) -> Row:
    """Much before it is compressed and little after, so that a small gzip file has several members."""
    return {"id": np.int64(number), "fill": np.full(4096, 2**62 + number)}


def episode(number: int) -> Row:
    return {
        "id": np.int64(number),
        "title": None if number % 3 == 0 else f"episode {number}",
        "frames": [bytes([number, step]) for step in range(number % 4)],
        "actions": np.arange(3 * (number % 3), dtype=np.float32).reshape(-1, 3),
    }


def plain(value: Any) -> Any:
    """A value as JSON that keeps every bit: an array by its dtype, shape and bytes."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    if isinstance(value, list):
        return [plain(each) for each in value]
    if hasattr(value, "to_list"):
        return plain(value.to_list())
    array = np.asarray(value)
    if array.size and (array == array.flat[0]).all():
        return {"dtype": array.dtype.name, "shape": [*array.shape], "all": array.flat[0].tobytes().hex()}
    return {"dtype": array.dtype.name, "shape": [*array.shape], "hex": array.tobytes().hex()}


# --- The datasets: each function writes one and returns its rows


def folder(path: Path) -> list[Row]:
    rk.write(path, rows(0, 12), SCHEMA, shards=3, metadata={"made": "golden"})
    return rows(0, 12)


def in_gzip(path: Path) -> list[Row]:
    rk.write(path, rows(0, 12), SCHEMA, shards=2, compression="gzip")
    return rows(0, 12)


def in_zlib(path: Path) -> list[Row]:
    rk.write(path, rows(0, 12), SCHEMA, shards=2, compression="zlib")
    return rows(0, 12)


def members(path: Path) -> list[Row]:
    long = [long_row(number) for number in range(64)]
    rk.write(path, long, {"id": "int64", "fill": "int64[4096]"}, compression="gzip")
    return long


def sequences(path: Path) -> list[Row]:
    episodes = [episode(number) for number in range(12)]
    rk.write(path, episodes, SEQUENCES, shards=2)
    return episodes


def payloads(path: Path) -> list[Row]:
    with rk.create(path) as writer:
        for number in range(12):
            writer.write_raw(bytes([number]) * number)
    return [{"payload": bytes([number]) * number} for number in range(12)]


def appended(path: Path) -> list[Row]:
    rk.write(path, rows(0, 5), SCHEMA, shards=2)
    for start, stop in ((5, 8), (8, 12)):
        with rk.append(path) as writer:
            for each in rows(start, stop):
                writer.write(each)
    return rows(0, 12)


def splits(path: Path) -> list[Row]:
    for part, (split, start, stop) in enumerate((("train", 0, 9), ("val", 9, 12))):
        with rk.create(path, SCHEMA, part=part, parts=2, split=split, records_per_shard=5) as writer:
            for each in rows(start, stop):
                writer.write(each)
    rk.commit(path)
    return rows(0, 12)


def quarantine(path: Path) -> list[Row]:
    with rk.create(path, {"id": "int64", "label": "uint8"}, on_error="skip") as writer:
        for number in range(250, 262):
            writer.write({"id": number, "label": number})
    return [{"id": np.int64(number), "label": np.uint8(number)} for number in range(250, 256)]


def added(path: Path) -> list[Row]:
    rk.write(path, rows(0, 12), SCHEMA, shards=3)
    rk.add_fields(path, {"height": np.arange(12, dtype=np.int32)})
    rk.add_fields(path, {"caption": [f"caption {number}" for number in range(12)]})
    rk.add_fields(path, {"name": [number % 2 for number in range(12)]}, replace=True)
    rk.drop_fields(path, ["wave", "caption"])
    there = rows(0, 12)
    for number, each in enumerate(there):
        del each["wave"]
        each |= {"height": np.int32(number), "name": np.int64(number % 2)}
    return there


def deleted(path: Path) -> list[Row]:
    rk.write(path, rows(0, 12), SCHEMA, shards=3, compression="gzip")
    rk.delete(path, where="label > 180")
    rk.delete(path, where="id == -3")
    return [each for each in rows(0, 12) if not (each["label"] > 180 or each["id"] == -3)]


def added_and_deleted(path: Path) -> list[Row]:
    rk.write(path, rows(0, 12), SCHEMA, shards=2)
    rk.add_fields(path, {"height": np.arange(12, dtype=np.int32)})
    rk.delete(path, where="height < 3")
    rk.add_fields(path, {"rest": np.arange(9, dtype=np.int64) * 2})
    return [row(n) | {"height": np.int32(n), "rest": np.int64(2 * (n - 3))} for n in range(3, 12)]


def lone(path: Path) -> list[Row]:
    rk.write(path / "one.tfrecord", rows(0, 12), SCHEMA)
    return rows(0, 12)


def lone_gzip(path: Path) -> list[Row]:
    rk.write(path / "one.tfrecord.gz", rows(0, 12), SCHEMA, compression="gzip")
    return rows(0, 12)


def lone_appended(path: Path) -> list[Row]:
    rk.write(path / "one.tfrecord", rows(0, 7), SCHEMA)
    with rk.append(path / "one.tfrecord") as writer:
        for each in rows(7, 12):
            writer.write(each)
    return rows(0, 12)


def lone_changed(path: Path) -> list[Row]:
    rk.write(path / "one.tfrecord", rows(0, 12), SCHEMA)
    rk.add_fields(path / "one.tfrecord", {"height": np.arange(12, dtype=np.int32)})
    rk.delete(path / "one.tfrecord", where="height == 5")
    return [row(n) | {"height": np.int32(n)} for n in range(12) if n != 5]


def foreign(path: Path) -> list[Row]:
    """A file that has no manifest, with an index of ours and a text index."""
    path.mkdir()
    schema = rk.Schema({"id": "int64", "name": "string"})
    payloads = schema.encode({"id": range(12), "name": [str(number) for number in range(12)]})
    (path / "one.tfrecord").write_bytes(b"".join(map(rk.records.pack, payloads)))
    rk.index(path / "one.tfrecord")
    rk.index(path / "one.tfrecord", text=True)
    return [{"id": np.int64(number), "name": str(number)} for number in range(12)]


DATASETS: dict[str, Callable[[Path], list[Row]]] = {
    function.__name__: function
    for function in (
        *(folder, in_gzip, in_zlib, members, sequences, payloads, appended, splits, quarantine),
        *(added, deleted, added_and_deleted, lone, lone_gzip, lone_appended, lone_changed, foreign),
    )
}


def main(place: Path) -> None:
    place.mkdir(parents=True)
    for name, function in DATASETS.items():
        there = function(place / name)
        text = ",\n".join(
            json.dumps({field: plain(value) for field, value in each.items()}, ensure_ascii=False) for each in there
        )
        (place / f"{name}.json").write_text(f"[\n{text}\n]\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
