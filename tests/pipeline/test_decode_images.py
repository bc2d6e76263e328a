"""Pictures on their way through a pipeline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import recordkit as rk
from recordkit import images
from recordkit.errors import CorruptRecordError, SchemaError

if TYPE_CHECKING:
    from pathlib import Path

SIZE = (12, 10)


def picture(number: int) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    return np.random.default_rng(number).integers(0, 255, (20 + number % 3, 30, 3), np.uint8)


@pytest.fixture
def ds(tmp_path: Path) -> rk.Dataset:
    rows = ({"id": i, "image": picture(i)} for i in range(30))
    rk.write(tmp_path / "data", rows, {"id": "int64", "image": "png"}, records_per_shard=11)
    return rk.open(tmp_path / "data")


class TestDecodeImages:
    def test_pictures_of_one_size_are_stacked(self, ds: rk.Dataset) -> None:
        batches = list(ds.decode_images("image", SIZE).batch(8))

        assert [batch["image"].shape for batch in batches] == [(8, *SIZE, 3)] * 3 + [(6, *SIZE, 3)]
        assert np.array_equal(batches[1]["image"][3], images.resize(picture(11), SIZE))
        assert batches[1]["id"][3] == 11

    def test_pictures_of_their_own_sizes_are_ragged(self, ds: rk.Dataset) -> None:
        batch = next(iter(ds.decode_images("image").batch(4)))

        assert all(np.array_equal(batch["image"][i], picture(i)) for i in range(4))

    def test_rows_columns_and_batches_give_the_same(self, ds: rk.Dataset) -> None:
        options = {"dtype": "float32", "scale": 1 / 255}
        ways = [
            ds.decode_images("image", SIZE, **options).batch(7),
            ds.map(dict).decode_images("image", SIZE, **options).batch(7),
            ds.batch(7).decode_images("image", SIZE, **options),
            ds.shuffle(0).decode_images("image", SIZE, **options).batch(30),
        ]

        first, second, third, shuffled = ([batch["image"] for batch in way] for way in ways)

        assert all(np.array_equal(a, b) and np.array_equal(a, c) for a, b, c in zip(first, second, third, strict=True))
        order = [int(row["id"]) for row in ds.shuffle(0)]
        assert np.array_equal(shuffled[0], np.concatenate(first)[order])

    def test_a_broken_picture_names_file_and_record(self, tmp_path: Path) -> None:
        good = images.encode(picture(0), "png")
        rk.write(tmp_path / "data.tfrecord", {"id": range(5), "image": [good] * 3 + [good[:-30], good]})

        for pipe in (rk.open(tmp_path / "data.tfrecord"), rk.open(tmp_path / "data.tfrecord").shuffle(3)):
            with pytest.raises(CorruptRecordError, match=r"data\.tfrecord: record 3: image: ") as caught:
                list(pipe.decode_images("image", SIZE).batch(5))
            assert "cannot be decoded" in str(caught.value)

    @pytest.mark.parametrize("name", ["id", "nothing"])
    def test_a_field_of_no_pictures_is_refused_by_name(self, ds: rk.Dataset, name: str) -> None:
        with pytest.raises(SchemaError, match=rf"decode_images\('{name}'\): expected a field of encoded pictures"):
            list(ds.decode_images(name, SIZE).batch(5))

    @pytest.mark.parametrize(
        ("size", "options", "words"),
        [
            ((0, 3), {}, r"size: expected \(height, width\), each 1 to .*, found \(0, 3\)"),
            (224, {}, r"size is \(height, width\), found 224\n  Write decode_images\('image', \(224, 224\)\)"),
            (None, {"dtype": "bfloat16"}, "dtype: expected uint8 or float32, found bfloat16"),
            (SIZE, {"method": "cubic"}, "no method of resizing"),
            (SIZE, {"channels": 2}, "channels: expected 1, 3, 4 or None"),
            (SIZE, {"mean": [1, 2, 3]}, 'Add dtype="float32"'),
            (SIZE, {"dtype": "float32", "std": [1, 2]}, "std: expected a number, or 3"),
            (None, {"scaled": True}, "scaled: only with a size"),
        ],
    )
    def test_what_cannot_be_made_is_refused_when_the_step_is_built(
        self, ds: rk.Dataset, size: Any, options: dict[str, Any], words: str
    ) -> None:
        with pytest.raises(SchemaError, match=words):
            ds.decode_images("image", size, **options)

    @pytest.mark.parametrize("options", [{"dytpe": "uint8"}, {"out": np.zeros(1)}])
    def test_an_option_that_there_is_not_is_refused(self, ds: rk.Dataset, options: dict[str, Any]) -> None:
        with pytest.raises(TypeError, match=next(iter(options))):
            ds.decode_images("image", SIZE, **options)
