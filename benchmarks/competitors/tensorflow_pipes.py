"""Pipelines of tf.data: as tutorials have them, and as its guide to performance advises."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import tensorflow as tf
from competitors import photos
from exact import SIZE

if TYPE_CHECKING:
    from collections.abc import Callable

    from columns import Digest
    from worker import Request, Work

TUNE = tf.data.AUTOTUNE


def pipeline(request: Request, feature: Callable[[str, str | None], Any]) -> Work:
    """Go through an epoch of shuffled batches of NumPy arrays."""
    described = {name: feature(declared, None) for name, declared in request["fields"].items()}
    records = shuffled(request)
    batches = (tutorial if request.get("one_by_one") else vectorised)(records, described, request).prefetch(TUNE)

    def work(digest: Digest | None) -> int:
        done = 0
        for batch in batches.as_numpy_iterator():
            done += len(next(iter(batch.values())))
            if digest:
                digest.add_in_any_order(batch)
        return done

    return work


def shuffled(request: Request) -> tf.data.Dataset:
    """The records of all shards in turns, shuffled if there is a buffer."""
    shards = tf.data.Dataset.from_tensor_slices(sorted(map(str, Path(request["file"]).glob("*.tfrecord"))))
    turns = {"cycle_length": 8, "block_length": request.get("block", 1)}
    records = shards.interleave(tf.data.TFRecordDataset, **turns, num_parallel_calls=TUNE, deterministic=False)
    return records.shuffle(request["buffer"]) if "buffer" in request else records


def tutorial(records: tf.data.Dataset, described: dict[str, Any], request: Request) -> tf.data.Dataset:
    calls = TUNE if request["parallel"] else None
    rows = records.map(lambda record: tf.io.parse_single_example(record, described), calls)
    return rows.padded_batch(request["batch"]) if "pad" in request else rows.batch(request["batch"])


def vectorised(records: tf.data.Dataset, described: dict[str, Any], request: Request) -> tf.data.Dataset:
    def parse(many: tf.Tensor) -> dict[str, tf.Tensor]:
        batch = tf.io.parse_example(many, described)
        return {name: value.to_tensor() if ragged(value) else value for name, value in batch.items()}

    return records.batch(request["batch"]).map(parse, TUNE)


def ragged(value: Any) -> bool:
    return isinstance(value, tf.RaggedTensor)


def images(request: Request) -> Work:
    """Decode and resize pictures, with both processors."""
    described = {"image": tf.io.FixedLenFeature([], tf.string), "label": tf.io.FixedLenFeature([], tf.int64)}

    def picture(record: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        row = tf.io.parse_single_example(record, described)
        pixels = tf.io.decode_jpeg(row["image"], channels=3)
        return tf.image.resize(pixels, (SIZE, SIZE)) / 255.0, row["label"]

    batches = tf.data.TFRecordDataset(request["file"]).map(picture, TUNE).batch(request["batch"]).prefetch(TUNE)
    return photos.shown(batches.as_numpy_iterator, request)
