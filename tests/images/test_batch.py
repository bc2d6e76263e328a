"""Batches of pictures: what is decoded one by one, resized and scaled, in one array."""

from __future__ import annotations

import io
import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from PIL import Image

from recordkit import images
from recordkit.columns import BytesColumn
from recordkit.errors import CorruptRecordError, SchemaError


def smooth(height: int, width: int, channels: int = 3) -> Any:
    """A picture with soft and with sharp edges."""
    y, x = np.mgrid[0 : 1 : height * 1j, 0 : 1 : width * 1j]
    colours = [255 * x, 255 * y, 128 + 100 * np.sin(9 * (x + y)), 255 * (x > y)]
    return np.stack(colours[:channels], axis=-1).round().astype(np.uint8)


def saved(array: Any, mode: str, **options: Any) -> bytes:
    """A JPEG of Pillow's, for forms that recordkit does not write."""
    stream = io.BytesIO()
    Image.fromarray(array).convert(mode).save(stream, "JPEG", **options)
    return stream.getvalue()


JPEG = images.encode(smooth(40, 50), "jpeg")
GREY = images.encode(smooth(30, 20, 1), "jpeg")
CMYK = saved(smooth(24, 32), "CMYK")
PNG = images.encode(smooth(33, 27), "png")
RGBA = images.encode(smooth(9, 7, 4), "png")
DEEP = images.encode(np.arange(0, 65536, 1024, dtype=np.uint16).reshape(8, 8), "png")
MIXED = [JPEG, PNG, GREY, CMYK, RGBA, DEEP]


class TestDecodeBatch:
    @pytest.mark.parametrize("channels", [1, 3, 4])
    def test_array_holds_each_picture_resized(self, channels: int) -> None:
        batch = images.decode_batch(MIXED, (12, 10), channels=channels, dtype="float32", scale=1 / 255, mean=0.5)

        assert isinstance(batch, np.ndarray)
        for found, pixels in zip(batch, images.decode_batch(MIXED, channels=channels), strict=True):
            resized = images.resize(pixels, (12, 10), dtype="float32")
            np.testing.assert_allclose(found, resized / 255 - 0.5, atol=1e-5)

    def test_without_a_size_each_has_its_own(self) -> None:
        found = images.decode_batch(MIXED, channels=None)

        shapes = [(40, 50, 3), (33, 27, 3), (30, 20, 1), (24, 32, 3), (9, 7, 4), (8, 8, 1)]
        assert [pixels.shape for pixels in found] == shapes
        assert {pixels.dtype.name for pixels in found} == {"uint8"}
        np.testing.assert_array_equal(found[0], images.decode(JPEG))

    def test_float32_without_a_size_is_normalised(self) -> None:
        (found,) = images.decode_batch([PNG], dtype="float32", scale=1 / 255, std=2)

        np.testing.assert_array_equal(found, images.normalise(smooth(33, 27), std=2))

    @pytest.mark.parametrize("form", [BytesColumn.of, tuple])
    def test_pictures_may_come_in_any_sequence(self, form: Any) -> None:
        expected = images.decode_batch(MIXED, (5, 6))

        np.testing.assert_array_equal(images.decode_batch(form(MIXED), (5, 6)), expected)

    @pytest.mark.parametrize(
        "form",
        [
            memoryview,
            bytearray,
            lambda picture: memoryview(b"before" + picture)[6:],
            lambda picture: np.frombuffer(picture, np.int8),
            lambda picture: np.repeat(np.frombuffer(picture, np.uint8), 2)[::2],
        ],
    )
    def test_pictures_may_be_any_buffer(self, form: Any) -> None:
        expected = images.decode_batch(MIXED, (5, 6))

        np.testing.assert_array_equal(images.decode_batch([form(each) for each in MIXED], (5, 6)), expected)

    @pytest.mark.parametrize("channels", [1, None])
    def test_no_pictures_are_an_empty_array(self, channels: int | None) -> None:
        found = images.decode_batch([], (5, 6), channels=channels)

        assert isinstance(found, np.ndarray)
        assert found.shape == (0, 5, 6, channels or 3)
        assert images.decode_batch([]) == []

    def test_alpha_is_dropped_or_kept_as_it_is(self) -> None:
        np.testing.assert_array_equal(images.decode_batch([RGBA])[0], smooth(9, 7, 4)[..., :3])
        np.testing.assert_array_equal(images.decode_batch([RGBA], channels=4)[0], smooth(9, 7, 4))
        assert {int(pixels[..., 3].min()) for pixels in images.decode_batch([JPEG, GREY, DEEP], channels=4)} == {255}

    def test_given_array_is_filled_and_returned(self) -> None:
        out = np.full((3, 5, 6, 3), 7, np.uint8)

        found = images.decode_batch([JPEG, PNG], (5, 6), out=out[:2])

        assert np.shares_memory(found, out)
        np.testing.assert_array_equal(out[:2], images.decode_batch([JPEG, PNG], (5, 6)))
        assert (out[2] == 7).all()

    @pytest.mark.parametrize("method", ["area", "bilinear"])
    @pytest.mark.parametrize("size", [(100, 130), (60, 60), (30, 40), (25, 12)])
    def test_scaled_is_nearly_the_same(self, size: tuple[int, int], method: images.Method) -> None:
        pictures = [images.encode(smooth(200, 260), "jpeg"), images.encode(smooth(201, 263, 1), "jpeg"), PNG, CMYK]

        full = images.decode_batch(pictures, size, method=method, dtype="float32")
        scaled = images.decode_batch(pictures, size, method=method, dtype="float32", scaled=True)

        assert isinstance(full, np.ndarray)
        assert isinstance(scaled, np.ndarray)
        assert 10 * np.log10(255**2 / np.mean((scaled[:2] - full[:2]) ** 2)) > 35
        assert (scaled[:2] != full[:2]).any()
        np.testing.assert_array_equal(scaled[2:], full[2:])


@pytest.mark.tensorflow
class TestTensorflow:
    @pytest.mark.parametrize("channels", [1, 3])
    @pytest.mark.parametrize(
        "picture",
        [
            JPEG,
            GREY,
            saved(smooth(41, 35), "RGB", subsampling=0, quality=80),
            saved(smooth(41, 35), "RGB", subsampling=1, quality=60),
            saved(smooth(41, 35), "RGB", progressive=True),
        ],
        ids=["ours", "grey", "4:4:4", "4:2:2", "progressive"],
    )
    @pytest.mark.parametrize(("dct", "name"), [("accurate", "INTEGER_ACCURATE"), ("fast", "INTEGER_FAST")])
    def test_decodes_jpegs_within_one_grey_level(
        self, tf: Any, picture: bytes, channels: int, dct: images.Dct, name: str
    ) -> None:
        (found,) = images.decode_batch([picture], channels=channels, dct=dct)

        expected = tf.io.decode_jpeg(picture, channels=channels, dct_method=name).numpy()
        assert np.abs(found.astype(int) - expected).max() <= 1

    @pytest.mark.parametrize("channels", [1, 3, 4])
    @pytest.mark.parametrize("picture", [PNG, RGBA, DEEP, images.encode(smooth(9, 7, 2), "png")])
    def test_decodes_pngs_to_the_same_channels(self, tf: Any, picture: bytes, channels: int) -> None:
        (found,) = images.decode_batch([picture], channels=channels)

        expected = tf.io.decode_png(picture, channels=channels).numpy()
        assert np.abs(found.astype(int) - expected).max() <= 1

    @pytest.mark.parametrize("method", ["nearest", "bilinear", "area"])
    def test_decodes_resizes_and_scales_to_the_same(self, tf: Any, method: images.Method) -> None:
        (found,) = images.decode_batch([JPEG], (22, 24), method=method, dtype="float32", scale=1 / 255)

        decoded = tf.io.decode_jpeg(JPEG, dct_method="INTEGER_ACCURATE")
        expected = tf.cast(tf.image.resize(decoded, (22, 24), method=method), tf.float32) / 255
        assert np.abs(found - expected.numpy()).max() < 1.01 / 255


class TestRefused:
    @pytest.mark.parametrize(
        ("broken", "message"),
        [
            (JPEG[:-30], f"picture 1: {len(JPEG) - 30} bytes of a jpeg that cannot be decoded: "),
            (PNG[:-30], f"picture 1: {len(PNG) - 30} bytes of a png that cannot be decoded: "),
            (b"junk", "picture 1: 4 bytes that are neither jpeg nor png"),
            (b"", "picture 1: 0 bytes that are neither jpeg nor png"),
        ],
    )
    @pytest.mark.parametrize("size", [None, (5, 6)])
    def test_broken_picture_is_named_by_its_number(self, broken: bytes, message: str, size: Any) -> None:
        with pytest.raises(CorruptRecordError) as caught:
            images.decode_batch([JPEG, broken, b"never looked at"], size)

        error = pickle.loads(pickle.dumps(caught.value))
        assert str(error).startswith(message)
        assert (error.record, error.kind) == (1, "bad_picture")

    @pytest.mark.parametrize(
        ("pictures", "options", "message"),
        [
            ([JPEG, None], {}, "picture 1: expected the bytes of a picture, found NoneType"),
            (["text"], {"channels": None}, "picture 0: expected the bytes of a picture, found str"),
            (
                [JPEG, GREY],
                {"channels": None},
                "picture 1: expected 3 channels as picture 0 has, found 1\n  Choose one",
            ),
            ([JPEG], {"channels": 2}, "channels: expected 1, 3, 4 or None, found 2"),
            ([JPEG], {"dct": "slow"}, "dct: expected 'accurate' or 'fast', found 'slow'"),
            ([JPEG], {"size": None, "scaled": True}, "scaled: only with a size"),
            ([JPEG], {"size": None, "out": np.zeros(3)}, "out: only with a size"),
            ([JPEG], {"scale": 1 / 255}, "scale, mean and std: only for float32, and uint8 is asked for\n  Add dtype="),
            ([JPEG], {"mean": 0}, "scale, mean and std: only for float32"),
            ([JPEG], {"out": np.zeros((1, 5, 6, 3))}, "out: expected a writable, contiguous array of uint8, shape [1,"),
            ([JPEG], {"out": np.zeros((1, 5, 6, 4), np.uint8)}, "out: expected a writable, contiguous array of uint8"),
            ([JPEG], {"out": np.zeros((1, 6, 5, 3), np.uint8).swapaxes(1, 2)}, "out: expected a writable, contiguous"),
            ([JPEG], {"dtype": "float32", "mean": [1, 2]}, "mean: expected a number, or 3, found list of shape [2]"),
        ],
    )
    def test_what_makes_no_sense_is_named(self, pictures: Any, options: Any, message: str) -> None:
        with pytest.raises(SchemaError) as caught:
            images.decode_batch(pictures, **({"size": (5, 6)} | options))

        assert str(caught.value).startswith(message)

    def test_header_that_claims_too_much_gets_no_memory(self, room_for: Any) -> None:
        huge = JPEG.replace((40).to_bytes(2, "big") + (50).to_bytes(2, "big"), b"\xff\xdc\xff\xdc", 1)

        with (
            room_for(200 << 20),
            pytest.raises(CorruptRecordError, match=r"picture 0: .* more than its bytes can hold"),
        ):
            images.decode_batch([huge], (5, 6))


class TestMemory:
    """Batches of a megabyte and more stand in memory that is used again."""

    SIZE = (224, 224)

    @staticmethod
    def batch(value: int) -> Any:
        picture = images.encode(np.full((8, 8, 3), value, np.uint8), "png")
        return images.decode_batch([picture] * 8, TestMemory.SIZE)

    @pytest.mark.parametrize(
        "held", [lambda batch: batch, lambda batch: batch[3:4], lambda batch: batch.reshape(-1).view()]
    )
    def test_what_somebody_holds_is_not_written_over(self, held: Any) -> None:
        kept = [held(self.batch(value)) for value in range(10)]

        assert [set(np.unique(part).tolist()) for part in kept] == [{value} for value in range(10)]

    def test_what_nobody_holds_is_used_again(self) -> None:
        found = {self.batch(value).ctypes.data for value in range(20)}

        assert len(found) == 1

    def test_threads_do_not_share_it(self) -> None:
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(self.batch, range(40)))

        assert [set(np.unique(batch).tolist()) for batch in found] == [{value} for value in range(40)]

    def test_can_be_written_to(self) -> None:
        batch = self.batch(1)

        batch += 1

        assert batch.max() == 2
