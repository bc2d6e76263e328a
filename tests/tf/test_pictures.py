"""Pictures: the same pixels as TensorFlow's, of the same bytes."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from PIL import Image

from recordkit import images
from recordkit import tf as ours
from recordkit.errors import MalformedPayloadError
from tests.tf.both import run, scripts

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

SCRIPTS = scripts("pictures")
METHODS = ["BILINEAR", "NEAREST_NEIGHBOR", "BICUBIC", "AREA", "LANCZOS3", "LANCZOS5", "GAUSSIAN", "MITCHELLCUBIC"]


def picture(height: int = 37, width: int = 53, seed: int = 0) -> NDArray[np.uint8]:
    """Soft noise: there is something in every frequency, and a JPEG can hold it."""
    noise = np.random.default_rng(seed).integers(0, 256, (7, 9, 3), dtype=np.uint8)
    return np.asarray(Image.fromarray(noise).resize((width, height), Image.Resampling.BICUBIC))


def png(mode: str) -> bytes:
    grey = picture()[..., 0]
    if mode == "I;16":
        image = Image.fromarray(grey.astype(np.uint16) * 200 + 7)
    else:
        image = Image.fromarray(picture()).convert(mode)
    if mode in ("LA", "RGBA"):
        image.putalpha(Image.fromarray(grey))
    stream = io.BytesIO()
    image.save(stream, "PNG")
    return stream.getvalue()


def jpeg(kind: str) -> bytes:
    if kind == "grey":
        return images.encode(picture()[..., 0], "jpeg")
    image = Image.fromarray(picture())
    stream = io.BytesIO()
    subsampling = {"444": 0, "422": 1}.get(kind, 2)
    image.save(stream, "JPEG", quality=85, subsampling=subsampling, progressive=kind == "progressive")
    return stream.getvalue()


PICTURES = {
    **{f"jpeg {kind}": jpeg(kind) for kind in ("grey", "420", "422", "444", "progressive")},
    **{f"png {mode}": png(mode) for mode in ("L", "LA", "RGB", "RGBA", "P", "I;16")},
}


def furthest(mine: Any, theirs: Any) -> float:
    """How far two tensors are apart, which are alike otherwise."""
    assert mine.dtype.name == theirs.dtype.name
    assert mine.shape.as_list() == theirs.shape.as_list()
    return float(np.abs(mine.numpy().astype(np.float64) - theirs.numpy().astype(np.float64)).max())


def psnr(a: NDArray[Any], b: NDArray[Any]) -> float:
    error = ((a.astype(np.float64) - b.astype(np.float64)) ** 2).mean()
    return float(10 * np.log10(255**2 / error))


def frame(data: bytes) -> bytes:
    """The segment of a JPEG that says how it is made: progressive or not, its size, and the resolution of colours."""
    at = 2
    while data[at + 1] not in (0xC0, 0xC2):
        at += 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    return data[at : at + 2 + int.from_bytes(data[at + 2 : at + 4], "big")]


@pytest.mark.tensorflow
class TestDecoding:
    @pytest.mark.parametrize("channels", [0, 1, 3])
    @pytest.mark.parametrize("name", PICTURES)
    def test_is_within_a_grey_level(self, tf: Any, name: str, channels: int) -> None:
        options: Any = {"channels": channels, "dct_method": "INTEGER_ACCURATE"}

        mine, theirs = (module.io.decode_jpeg(PICTURES[name], **options) for module in (ours, tf))

        assert furthest(mine, theirs) <= 1

    @pytest.mark.parametrize("name", [name for name in PICTURES if name.startswith("jpeg")])
    def test_is_the_same_by_default(self, tf: Any, name: str) -> None:
        assert furthest(ours.io.decode_jpeg(PICTURES[name]), tf.io.decode_jpeg(PICTURES[name])) <= 1

    @pytest.mark.parametrize("ratio", [2, 4, 8])
    @pytest.mark.parametrize("name", ["jpeg 420", "jpeg grey", "png RGB"])
    def test_ratio_makes_it_smaller(self, tf: Any, name: str, ratio: int) -> None:
        options: Any = {"ratio": ratio, "dct_method": "INTEGER_ACCURATE"}

        mine, theirs = (module.io.decode_jpeg(PICTURES[name], **options) for module in (ours, tf))

        assert furthest(mine, theirs) <= 1

    @pytest.mark.parametrize("channels", [0, 1, 3, 4])
    @pytest.mark.parametrize("name", [name for name in PICTURES if name.startswith("png")])
    def test_png(self, tf: Any, name: str, channels: int) -> None:
        mine, theirs = (module.io.decode_png(PICTURES[name], channels) for module in (ours, tf))

        assert furthest(mine, theirs) <= 1

    @pytest.mark.parametrize("name", [name for name in PICTURES if name.startswith("png")])
    def test_png_of_16_bits(self, tf: Any, name: str) -> None:
        mine, theirs = (module.io.decode_png(PICTURES[name], dtype=module.uint16) for module in (ours, tf))

        assert furthest(mine, theirs) == 0

    @pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32", "float64", "int32"])
    @pytest.mark.parametrize("name", ["jpeg 420", "png RGB", "png L", "png I;16"])
    def test_image(self, tf: Any, name: str, dtype: str) -> None:
        mine, theirs = (module.io.decode_image(PICTURES[name], dtype=dtype) for module in (ours, tf))

        assert furthest(mine, theirs) <= {"float32": 1e-6, "float64": 1e-6}.get(dtype, 0)


@pytest.mark.tensorflow
class TestEncoding:
    @pytest.mark.parametrize("quality", [0, 30, 75, 95, 100])
    @pytest.mark.parametrize("channels", [1, 3])
    def test_jpeg_is_as_good_as_theirs(self, tf: Any, quality: int, channels: int) -> None:
        pixels = picture()[..., :channels]

        mine, theirs = (module.io.encode_jpeg(pixels, quality=quality).numpy() for module in (ours, tf))
        decoded = [tf.io.decode_jpeg(data, dct_method="INTEGER_ACCURATE").numpy() for data in (mine, theirs)]

        assert psnr(decoded[0], pixels) > psnr(decoded[1], pixels) - 0.3
        assert len(mine) < 1.1 * len(theirs)

    @pytest.mark.parametrize("channels", [1, 3])
    @pytest.mark.parametrize(
        "options",
        [
            {"chroma_downsampling": False},
            {"progressive": True},
            {"optimize_size": True},
            {"chroma_downsampling": False, "progressive": True, "optimize_size": True, "quality": 60},
        ],
        ids=" ".join,
    )
    def test_jpeg_is_made_as_theirs(self, tf: Any, options: dict[str, Any], channels: int) -> None:
        pixels = picture(120, 160)[..., :channels]

        mine, theirs = (module.io.encode_jpeg(pixels, **options).numpy() for module in (ours, tf))
        decoded = [tf.io.decode_jpeg(data, dct_method="INTEGER_ACCURATE").numpy() for data in (mine, theirs)]

        assert psnr(decoded[0], pixels) > psnr(decoded[1], pixels) - 0.3
        assert 0.9 * len(theirs) < len(mine) < 1.1 * len(theirs)
        assert frame(mine) == frame(theirs)

    def test_jpeg_says_of_itself_what_theirs_does(self, tf: Any) -> None:
        options: Any = {"density_unit": "cm", "x_density": 70_000, "y_density": 3, "xmp_metadata": "<a/>"}

        for given in ({}, options):  # type: ignore[var-annotated]
            mine, theirs = (module.io.encode_jpeg(picture(), **given).numpy() for module in (ours, tf))

            assert mine[:57] == theirs[:57]

    @pytest.mark.parametrize("channels", [1, 2, 3, 4])
    def test_png_holds_every_pixel(self, tf: Any, channels: int) -> None:
        pixels = np.dstack([picture(), picture(seed=1)])[..., :channels]

        back = [module.io.decode_png(ours.io.encode_png(pixels).numpy()).numpy() for module in (ours, tf)]

        assert all(np.array_equal(one, pixels) for one in back)

    def test_png_of_16_bits_in_grey(self, tf: Any) -> None:
        pixels = np.arange(60000, dtype=np.uint16).reshape(200, 300, 1)

        data = ours.io.encode_png(pixels).numpy()

        assert np.array_equal(tf.io.decode_png(data, dtype=tf.uint16).numpy(), pixels)


@pytest.mark.tensorflow
class TestResize:
    @pytest.mark.parametrize("antialias", [False, True])
    @pytest.mark.parametrize("dtype", ["uint8", "float32", "float64", "int16"])
    @pytest.mark.parametrize("method", METHODS)
    def test_is_theirs(self, tf: Any, method: str, dtype: str, antialias: bool) -> None:
        pixels = picture().astype(dtype)

        for size in [(20, 30), (37, 53), (100, 70), (1, 1), (50, 7)]:
            mine, theirs = (
                module.image.resize(pixels, size, getattr(module.image.ResizeMethod, method), antialias=antialias)
                for module in (ours, tf)
            )

            assert furthest(mine, theirs) <= 1e-3

    @pytest.mark.parametrize("antialias", [False, True])
    @pytest.mark.parametrize("method", ["bicubic", "lanczos3", "lanczos5", "gaussian", "mitchellcubic", "bilinear"])
    @pytest.mark.parametrize("shape", [(2, 1, 1, 1), (3, 2, 5, 4), (1, 200, 3, 2), (2, 64, 64, 3)])
    def test_is_theirs_for_batches(self, tf: Any, shape: tuple[int, ...], method: str, antialias: bool) -> None:
        pixels = np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8)

        for size in [(7, 5), (64, 64), (3, 300)]:
            mine, theirs = (module.image.resize(pixels, size, method, antialias=antialias) for module in (ours, tf))

            assert furthest(mine, theirs) <= 1e-3

    @pytest.mark.parametrize("size", [(20, 30), (100, 70), (13, 200), (37, 53)])
    @pytest.mark.parametrize("method", ["bilinear", "bicubic", "nearest"])
    def test_keeps_the_aspect_ratio(self, tf: Any, method: str, size: tuple[int, int]) -> None:
        pixels = np.stack([picture(), picture(seed=1)])

        mine, theirs = (module.image.resize(pixels, size, method, preserve_aspect_ratio=True) for module in (ours, tf))

        assert furthest(mine, theirs) <= 1e-3


@pytest.mark.tensorflow
class TestPixels:
    @pytest.mark.parametrize("fraction", [0.1, 0.5, 0.77, 1.0])
    def test_central_crop(self, tf: Any, fraction: float) -> None:
        for pixels in (picture(), picture()[None], picture(6, 4)):
            mine, theirs = (module.image.central_crop(pixels, fraction) for module in (ours, tf))

            assert furthest(mine, theirs) == 0

    def test_standardization(self, tf: Any) -> None:
        for pixels in (picture(), picture()[None] / 255, np.full((3, 3, 1), 7, np.uint8), np.zeros((2, 2, 3, 3, 1))):
            mine, theirs = (module.image.per_image_standardization(pixels) for module in (ours, tf))

            assert furthest(mine, theirs) <= 1e-4

    @pytest.mark.parametrize("saturate", [False, True])
    @pytest.mark.parametrize("wanted", ["uint8", "int8", "uint16", "int16", "int32", "float16", "float32", "float64"])
    @pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int32", "float32", "float64"])
    def test_conversion(self, tf: Any, dtype: str, wanted: str, saturate: bool) -> None:
        most = 1.0 if dtype.startswith("float") else np.iinfo(dtype).max
        pixels = (np.linspace(0, 1, 50) * most).astype(dtype)

        mine, theirs = (module.image.convert_image_dtype(pixels, wanted, saturate) for module in (ours, tf))

        np.testing.assert_array_equal(mine.numpy(), theirs.numpy(), strict=True)


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", SCRIPTS)
def test_script(tf: Any, name: str) -> None:
    given = {"picture": picture(), "jpeg": PICTURES["jpeg 420"], "png": PICTURES["png RGB"]}

    mine, theirs = (run(SCRIPTS[name], module, **given) for module in (ours, tf))

    assert mine == theirs


@pytest.mark.tensorflow
def test_whole_chain_gives_their_pixels(tf: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "pictures.tfrecord")
    with ours.io.TFRecordWriter(path) as writer:
        for label in range(6):
            feature = {
                "image": ours.train.Feature(
                    bytes_list=ours.train.BytesList(value=[images.encode(picture(30 + label, 40, label), "jpeg")])
                ),
                "label": ours.train.Feature(int64_list=ours.train.Int64List(value=[label])),
            }
            writer.write(ours.train.Example(features=ours.train.Features(feature=feature)).SerializeToString())

    mine, theirs = (chain(module, path) for module in (ours, tf))

    assert sorted(mine) == sorted(theirs) == list(range(6))
    assert all(np.abs(mine[label] - theirs[label]).max() <= 1e-3 for label in mine)


def chain(tf: Any, path: str) -> dict[int, Any]:
    """What a training loop is given of each picture."""
    schema = {"image": tf.io.FixedLenFeature([], tf.string), "label": tf.io.FixedLenFeature([], tf.int64)}

    def parse(payload: Any) -> Any:
        row = tf.io.parse_single_example(payload, schema)
        image = tf.io.decode_jpeg(row["image"], channels=3)
        image = tf.image.resize(image, [24, 24])
        return tf.cast(image, tf.float32) / 255.0, row["label"]

    dataset = tf.data.TFRecordDataset(path).map(parse, num_parallel_calls=tf.data.AUTOTUNE)
    dataset = dataset.shuffle(100).batch(4).prefetch(tf.data.AUTOTUNE)
    return {int(label): image.numpy() for batch, labels in dataset for image, label in zip(batch, labels, strict=True)}


class TestOurs:
    def test_damage_is_an_error_of_both_kinds(self) -> None:
        for function in (ours.io.decode_jpeg, ours.io.decode_image, ours.io.decode_png):
            with pytest.raises(MalformedPayloadError, match="Premature end") as caught:
                function(PICTURES["jpeg 420"][:-50])

            assert isinstance(caught.value, ours.errors.InvalidArgumentError)
            assert isinstance(caught.value, ours.errors.DataLossError)

    def test_random_flip_is_one_of_two(self) -> None:
        pixels = picture()
        both = {pixels.tobytes(), pixels[:, ::-1].tobytes()}

        seen = {ours.image.random_flip_left_right(pixels).numpy().tobytes() for _ in range(40)}

        assert seen == both

    def test_random_flip_decides_for_each_of_a_batch(self) -> None:
        batch = np.stack([picture()] * 40)

        flipped = ours.image.random_flip_left_right(batch, seed=1).numpy()

        assert {row.tobytes() for row in flipped} == {picture().tobytes(), picture()[:, ::-1].tobytes()}

    def test_methods_that_are_not_offered_are_named(self) -> None:
        with pytest.raises(ValueError, match="unknown method 'cubic'\n  Use one of bilinear, nearest, bicubic, area"):
            ours.image.resize(picture(), [3, 3], "cubic")
        with pytest.raises(AttributeError, match=r"recordkit's tf\.image has no 'adjust_hue'"):
            ours.image.adjust_hue  # noqa: B018
        with pytest.raises(ours.errors.InvalidArgumentError, match="xmp_metadata: expected 65504 bytes at most"):
            ours.io.encode_jpeg(picture(), xmp_metadata="x" * 70_000)

    def test_other_kinds_of_pictures_are_refused(self) -> None:
        with pytest.raises(MalformedPayloadError, match="neither jpeg nor png"):
            ours.io.decode_image(b"GIF89a" + bytes(20))
