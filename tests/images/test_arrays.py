"""Arrays of pixels: resized as TensorFlow does, cut, turned and scaled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recordkit import images
from recordkit.errors import SchemaError

METHODS: list[images.Method] = ["nearest", "bilinear", "area"]
SIDES = st.integers(1, 30)


def drawn(*shape: int, dtype: Any = np.uint8) -> Any:
    return np.random.default_rng(shape).integers(0, 256, shape).astype(dtype)


class TestResize:
    @pytest.mark.tensorflow
    @pytest.mark.parametrize("method", METHODS)
    @pytest.mark.parametrize("dtype", [np.uint8, np.float32])
    @pytest.mark.parametrize(
        ("shape", "size"),
        [
            ((375, 500, 3), (224, 224)),
            ((33, 47, 3), (224, 100)),
            ((33, 47, 1), (47, 33)),
            ((5, 2, 3), (7, 9)),
            ((1, 1, 4), (3, 5)),
            ((295, 156, 5), (297, 276)),
            ((3, 8191, 2), (4, 5)),
            ((3, 8191, 3), (2, 3000)),
            ((4, 12, 10, 3), (6, 5)),
        ],
    )
    def test_is_within_a_thousandth_of_tensorflow(
        self, tf: Any, method: images.Method, dtype: Any, shape: tuple[int, ...], size: tuple[int, int]
    ) -> None:
        array = drawn(*shape, dtype=dtype)

        found = images.resize(array, size, method=method, dtype="float32")

        expected = tf.image.resize(array, size, method=method).numpy()
        assert found.shape == expected.shape
        assert np.abs(found - expected.astype(np.float32)).max() < 1e-3

    @given(st.sampled_from(METHODS), SIDES, SIDES, SIDES, SIDES, st.integers(1, 5))
    def test_to_bytes_is_the_nearest_whole_number(
        self, method: images.Method, h: int, w: int, height: int, width: int, channels: int
    ) -> None:
        array = drawn(h, w, channels)

        found = images.resize(array, (height, width), method=method)

        exact = images.resize(array, (height, width), method=method, dtype="float32")
        assert found.dtype == np.uint8
        assert np.abs(found - exact).max() <= 0.5001

    @settings(max_examples=50)
    @given(st.sampled_from(METHODS), st.data())
    def test_of_a_part_that_is_turned_is_that_of_its_copy(self, method: images.Method, data: st.DataObject) -> None:
        array = drawn(20, 22, data.draw(st.integers(1, 4)))
        top, left = data.draw(st.integers(0, 9)), data.draw(st.integers(0, 9))
        part = images.crop(array, top, left, data.draw(st.integers(1, 11)), data.draw(st.integers(1, 12)))
        for direction in data.draw(st.lists(st.sampled_from(["horizontal", "vertical"]))):
            part = images.flip(part, direction)  # type: ignore[arg-type]

        # Sizes whose positions are exact, so that a centre between two pixels falls to the same side.
        found = images.resize(part, part.shape[:2], method=method)

        np.testing.assert_array_equal(found, part)
        bilinear = images.resize(part, (8, 16), dtype="float32")
        np.testing.assert_allclose(bilinear, images.resize(part.copy(), (8, 16), dtype="float32"), atol=1e-3)

    @pytest.mark.parametrize("dtype", [np.uint8, np.float32])
    def test_any_strides_and_byte_order_will_do(self, dtype: Any) -> None:
        array = drawn(12, 9, 6, dtype=dtype)

        for view in (array[..., ::2], array[:, ::3], array.transpose(1, 0, 2), array[::2, ::-1, 1:4]):
            expected = images.resize(np.ascontiguousarray(view), (5, 4))
            np.testing.assert_allclose(images.resize(view, (5, 4)), expected, atol=1e-3)
            swapped = view.astype(view.dtype.newbyteorder("S"))
            np.testing.assert_array_equal(images.resize(swapped, (5, 4)), expected)

    def test_keeps_how_many_dimensions_there_are(self) -> None:
        assert images.resize(drawn(4, 5), (2, 3)).shape == (2, 3)
        assert images.resize(drawn(4, 5, 1), (2, 3)).shape == (2, 3, 1)
        assert images.resize(drawn(2, 4, 5, 3), [2, 3]).shape == (2, 2, 3, 3)
        assert images.resize(drawn(2, 4, 5, 3)[:0], (2, 3)).shape == (0, 2, 3, 3)

    @pytest.mark.parametrize(
        ("array", "options", "message"),
        [
            (drawn(4, 5), {"size": (0, 3)}, "size: expected (height, width), each 1 to 16777216, found (0, 3)"),
            (drawn(4, 5), {"size": 7}, "size: expected (height, width), each 1 to 16777216, found 7"),
            (drawn(4, 5), {"size": (1 << 25, 1)}, "size: expected (height, width), each 1 to 16777216, found ("),
            (drawn(4, 5), {"size": (2.5, 1)}, "size: expected (height, width), each 1 to 16777216, found (2.5, 1)"),
            (drawn(4, 5), {"method": "cubic"}, "'cubic' is no method of resizing\n  There are nearest, bilinear, area"),
            (drawn(4, 5), {"dtype": "int64"}, "dtype: expected uint8 or float32, found int64"),
            (drawn(4, 5, dtype=int), {}, "expected uint8 or float32 of shape [h,w], [h,w,channels] or [n,h,w,channe"),
            (drawn(4), {}, "expected uint8 or float32 of shape [h,w], [h,w,channels] or [n,h,w,channels], found an a"),
            (drawn(4, 0, 3), {}, "expected uint8 or float32 of shape [h,w], [h,w,channels] or [n,h,w,channels], fo"),
        ],
    )
    def test_what_makes_no_sense_is_named(self, array: Any, options: Any, message: str) -> None:
        with pytest.raises(SchemaError) as caught:
            images.resize(array, **({"size": (2, 2)} | options))

        assert str(caught.value).startswith(message)


class TestCropAndFlip:
    def test_share_the_memory_of_the_array(self) -> None:
        array = drawn(2, 6, 7, 3)

        part = images.flip(images.crop(array, 1, 2, 3, 4), "vertical")

        assert np.shares_memory(part, array)
        np.testing.assert_array_equal(part, array[:, 1:4, 2:6][:, ::-1])

    @pytest.mark.tensorflow
    def test_are_those_of_tensorflow(self, tf: Any) -> None:
        array = drawn(6, 7, 3)

        np.testing.assert_array_equal(
            images.crop(array, 1, 2, 3, 4), tf.image.crop_to_bounding_box(array, 1, 2, 3, 4).numpy()
        )
        np.testing.assert_array_equal(images.flip(array), tf.image.flip_left_right(array).numpy())
        np.testing.assert_array_equal(images.flip(array, "vertical"), tf.image.flip_up_down(array).numpy())

    @pytest.mark.parametrize("box", [(-1, 0, 2, 2), (0, 0, 0, 2), (5, 0, 2, 2), (0, 3, 1, 5)])
    def test_part_that_is_none_is_refused(self, box: tuple[int, int, int, int]) -> None:
        with pytest.raises(SchemaError, match="expected a part of 6 x 7 pixels, found"):
            images.crop(drawn(6, 7), *box)

    def test_direction_that_is_none_is_named(self) -> None:
        with pytest.raises(SchemaError, match="'sideways' is no direction"):
            images.flip(drawn(6, 7), "sideways")  # type: ignore[arg-type]


class TestNormalise:
    @pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float32, np.float64])
    def test_scales_then_takes_the_mean_then_divides(self, dtype: Any) -> None:
        array = drawn(4, 5, 3, dtype=dtype)

        found = images.normalise(array, mean=[0.4, 0.5, 0.6], std=(0.1, 0.2, 0.4))

        assert found.dtype == np.float32
        np.testing.assert_allclose(found, (array / 255 - [0.4, 0.5, 0.6]) / [0.1, 0.2, 0.4], atol=1e-5)

    def test_of_grey_takes_one_number(self) -> None:
        np.testing.assert_allclose(images.normalise(drawn(4, 5), scale=2, mean=3), drawn(4, 5) * 2.0 - 3)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"mean": [1, 2]}, "mean: expected a number, or 3, found list of shape [2]"),
            ({"std": 0}, "std: expected numbers other than 0, found 0"),
            ({"std": [1, 0, 1]}, "std: expected numbers other than 0, found 0"),
            ({"scale": float("nan")}, "scale: expected a number, found nan"),
            ({"mean": "half"}, "mean: expected a number, or 3, found str of shape []"),
        ],
    )
    def test_numbers_that_are_none_are_named(self, options: Any, message: str) -> None:
        with pytest.raises(SchemaError) as caught:
            images.normalise(drawn(4, 5, 3), **options)

        assert str(caught.value).startswith(message)
