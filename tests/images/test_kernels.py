"""Kernels: laws of resampling, and Pillow's answers; TensorFlow's are in tests/tf."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
import pytest
from PIL import Image

from recordkit import images
from recordkit.errors import SchemaError

KERNELS = get_args(images.Kernel)
# None of them puts an old pixel just at the edge of what a new one covers, where rounding decides.
SIZES = [(5, 40), (23, 31), (60, 13)]


def picture(*shape: int) -> Any:
    return np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)


@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize("kernel", KERNELS)
class TestEveryKernel:
    def test_one_colour_stays_that_colour(self, kernel: images.Kernel, antialias: bool) -> None:
        for size in SIZES:
            made = images.resample(np.full((23, 31, 3), 200, np.uint8), size, kernel, antialias=antialias)

            assert (made.shape, made.dtype.name) == ((*size, 3), "float32")
            np.testing.assert_allclose(made, 200, rtol=1e-5)

    def test_mirrored_picture_gives_the_mirrored_result(self, kernel: images.Kernel, antialias: bool) -> None:
        pixels = picture(23, 31)
        for size in SIZES:
            made, mirrored = (
                images.resample(one, size, kernel, antialias=antialias) for one in (pixels, images.flip(pixels))
            )

            np.testing.assert_allclose(mirrored[:, ::-1], made, atol=1e-2)

    def test_batch_is_its_pictures(self, kernel: images.Kernel, antialias: bool) -> None:
        batch = picture(3, 9, 14, 2)

        made = images.resample(batch, (4, 20), kernel, antialias=antialias)

        for one, alone in zip(made, batch, strict=True):
            np.testing.assert_array_equal(one, images.resample(alone, (4, 20), kernel, antialias=antialias))


@pytest.mark.parametrize(
    ("kernel", "theirs"),
    [
        ("triangle", Image.Resampling.BILINEAR),
        ("cubic", Image.Resampling.BICUBIC),
        ("lanczos3", Image.Resampling.LANCZOS),
    ],
)
def test_antialiased_is_as_pillow(kernel: images.Kernel, theirs: Image.Resampling) -> None:
    pixels = picture(23, 31).astype(np.float32)

    for height, width in SIZES:
        made = images.resample(pixels, (height, width), kernel, antialias=True)

        np.testing.assert_allclose(made, Image.fromarray(pixels).resize((width, height), theirs), atol=1e-2)


def test_same_size_is_the_same_picture() -> None:
    pixels = picture(23, 31, 3)

    for kernel in ("triangle", "cubic", "cubic table"):
        np.testing.assert_array_equal(images.resample(pixels, (23, 31), kernel), pixels)


def test_pixel_that_is_no_number_spoils_only_those_around_it() -> None:
    pixels = np.zeros((40, 40), np.float32)
    pixels[20, 20] = np.nan

    made = images.resample(pixels, (40, 40), "cubic")

    assert 1 <= np.isnan(made).sum() <= 25


@pytest.mark.parametrize(
    ("array", "size", "kernel", "words"),
    [
        (np.zeros((2, 2), np.int64), (1, 1), "cubic", "expected uint8 or float32 of shape"),
        (np.zeros((2, 2), np.uint8), (0, 1), "cubic", "size"),
        (np.zeros((2, 2), np.uint8), (1, 1), "cubist", "'cubist' is no kernel\n  There are triangle"),
    ],
)
def test_what_cannot_be_is_refused(array: Any, size: Any, kernel: Any, words: str) -> None:
    with pytest.raises(SchemaError, match=words):
        images.resample(array, size, kernel)
