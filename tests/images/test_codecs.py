"""Pictures: what is encoded is decoded again, by us and by TensorFlow; and what hostile bytes come to."""

from __future__ import annotations

import io
import struct
import sys
import zlib
from contextlib import suppress
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from PIL import Image

from recordkit import images
from recordkit.errors import CorruptRecordError, MissingExtraError, SchemaError

SIDES = st.integers(1, 20)


def shapes(*channels: int) -> st.SearchStrategy[tuple[int, ...]]:
    """Shapes of pictures, without and with a last dimension for channels."""
    return st.tuples(SIDES, SIDES) | st.tuples(SIDES, SIDES, st.sampled_from(channels))


PNG_ARRAYS = hnp.arrays(np.uint8, shapes(1, 2, 3, 4)) | hnp.arrays(st.sampled_from(["<u2", ">u2"]), shapes(1))
JPEG_ARRAYS = hnp.arrays(np.uint8, shapes(1, 3))


def smooth(height: int, width: int) -> Any:
    """A picture without sharp edges, in colour."""
    y, x = np.mgrid[0 : 1 : height * 1j, 0 : 1 : width * 1j]
    return np.stack([255 * x, 255 * y, 128 + 100 * np.sin(3 * (x + y))], axis=-1).round().astype(np.uint8)


def saved(image: Any, kind: Literal["JPEG", "PNG"], **options: Any) -> bytes:
    """What Pillow makes of an image, for forms that recordkit does not write."""
    stream = io.BytesIO()
    image.save(stream, kind, **options)
    return stream.getvalue()


def png(*chunks: tuple[bytes, bytes]) -> bytes:
    """A PNG of any chunks, with right checksums."""
    framed = (
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in chunks
    )
    return images.SIGNATURES["png"] + b"".join(framed)


def png_header(width: int, height: int, bits: int, colour: int) -> tuple[bytes, bytes]:
    return b"IHDR", struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, 0)


JPEG = images.encode(smooth(24, 32), "jpeg")
PNG = images.encode(smooth(24, 32), "png")
PALETTE = Image.fromarray(smooth(9, 7)).quantize(8)
RGB16 = png(png_header(2, 1, 16, 2), (b"IDAT", zlib.compress(b"\0" + bytes(range(12)))), (b"IEND", b""))


class TestPng:
    @given(PNG_ARRAYS)
    def test_holds_exactly_the_array(self, array: Any) -> None:
        found = images.decode(images.encode(array, "png"))

        expected = array[..., 0] if array.shape[2:] == (1,) else array
        assert found.dtype == array.dtype.newbyteorder("=")
        np.testing.assert_array_equal(found, expected)

    @given(PNG_ARRAYS)
    def test_strides_and_byte_order_do_not_matter(self, array: Any) -> None:
        turned = array[::-1, ::-1]

        assert images.encode(turned, "png") == images.encode(
            np.ascontiguousarray(turned.astype(array.dtype.name)), "png"
        )

    @pytest.mark.tensorflow
    @pytest.mark.parametrize("shape", [(5, 7), (5, 7, 1), (5, 7, 2), (5, 7, 3), (5, 7, 4)])
    @pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
    def test_tensorflow_decodes_the_same_pixels(self, tf: Any, shape: tuple[int, ...], dtype: Any) -> None:
        if dtype is np.uint16:
            shape = shape[:2]
        array = np.random.default_rng(1).integers(0, np.iinfo(dtype).max, shape, dtype)

        found = tf.io.decode_png(images.encode(array, "png"), dtype=dtype).numpy()

        np.testing.assert_array_equal(found, array.reshape(found.shape))

    @pytest.mark.tensorflow
    @pytest.mark.parametrize(
        "picture",
        [
            saved(PALETTE, "PNG"),
            saved(PALETTE, "PNG", transparency=b"\x00\x80\xff"),
            saved(PALETTE.convert("1"), "PNG"),
            saved(PALETTE.convert("L"), "PNG", transparency=3),
            saved(PALETTE.convert("RGB"), "PNG", transparency=(1, 2, 3)),
            png(png_header(4, 1, 2, 0), (b"IDAT", zlib.compress(b"\0\x1b")), (b"IEND", b"")),
        ],
        ids=["palette", "transparent palette", "one bit", "transparent grey", "transparent colour", "two bits"],
    )
    def test_other_forms_are_decoded_as_tensorflow_does(self, tf: Any, picture: bytes) -> None:
        found = images.decode(picture)

        expected = tf.io.decode_png(picture).numpy()
        assert images.size(picture) == expected.shape
        np.testing.assert_array_equal(found.reshape(expected.shape), expected)

    def test_of_sixteen_bits_in_colour_is_refused_rather_than_rounded(self) -> None:
        with pytest.raises(SchemaError) as caught:
            images.decode(RGB16)

        assert str(caught.value) == (
            "expected a picture of 8 bits, or of 16 in grey, found a png of 16 bits in 3 channels\n"
            "  Save it with 8 bits to decode it."
        )
        assert images.size(RGB16) == (1, 2, 3)

    @given(st.integers(8, len(PNG) - 1), st.integers(0, 7))
    def test_any_flipped_bit_is_noticed(self, place: int, bit: int) -> None:
        damaged = bytearray(PNG)
        damaged[place] ^= 1 << bit

        with pytest.raises(CorruptRecordError):
            images.decode(damaged)

    def test_error_says_where_the_damage_is(self) -> None:
        damaged = bytearray(PNG)
        damaged[60] ^= 1

        with pytest.raises(CorruptRecordError) as caught:
            images.decode(damaged)

        assert str(caught.value) == (
            f"{len(PNG)} bytes of a png that cannot be decoded: the checksum of the chunk at byte 33 does not match"
        )
        assert caught.value.kind == "bad_picture"


class TestJpeg:
    @given(st.integers(64, 200), st.integers(64, 200))
    def test_of_a_smooth_picture_is_nearly_it(self, height: int, width: int) -> None:
        picture = smooth(height, width)

        found = images.decode(images.encode(picture, "jpeg"))

        assert found.dtype == np.uint8
        assert np.abs(found.astype(int) - picture).mean() < 1.5

    def test_of_a_grey_picture_is_grey(self) -> None:
        grey = smooth(40, 30)[..., 0]

        found = images.decode(images.encode(grey, "jpeg"))

        assert found.shape == (40, 30)
        assert np.abs(found.astype(int) - grey).max() <= 2

    def test_is_smaller_and_further_off_with_less_quality(self) -> None:
        picture = np.random.default_rng(0).integers(0, 256, (32, 32, 3), np.uint8)

        encoded = [images.encode(picture, "jpeg", quality=quality) for quality in (1, 30, 60, 95, 100)]
        errors = [np.abs(images.decode(each).astype(int) - picture).mean() for each in encoded]

        assert sorted(map(len, encoded)) == list(map(len, encoded))
        assert sorted(errors, reverse=True) == errors
        assert images.encode(picture, "jpeg") == encoded[3]

    @pytest.mark.tensorflow
    @pytest.mark.parametrize("shape", [(33, 47), (33, 47, 1), (33, 47, 3), (1, 1, 3)])
    def test_tensorflow_decodes_nearly_the_same_pixels(self, tf: Any, shape: tuple[int, ...]) -> None:
        array = smooth(*shape[:2])[..., : shape[2] if len(shape) == 3 else 1].reshape(shape)
        picture = images.encode(array, "jpeg")

        found = tf.io.decode_jpeg(picture).numpy()

        assert found.shape == images.size(picture)
        assert np.abs(found.astype(int) - images.decode(picture).reshape(found.shape)).max() <= 8

    @pytest.mark.tensorflow
    def test_in_cmyk_is_decoded_to_rgb(self, tf: Any) -> None:
        picture = saved(Image.fromarray(smooth(24, 32)).convert("CMYK"), "JPEG", quality=95)

        found = images.decode(picture)

        assert found.shape == images.size(picture) == (24, 32, 3)
        assert np.abs(found.astype(int) - tf.io.decode_jpeg(picture, channels=3).numpy()).mean() < 4

    @pytest.mark.parametrize("options", [{"progressive": True}, {"subsampling": 0}, {"restart_marker_blocks": 1}])
    def test_of_other_makes_is_decoded(self, options: dict[str, Any]) -> None:
        picture = saved(Image.fromarray(smooth(24, 32)), "JPEG", quality=95, **options)

        assert np.abs(images.decode(picture).astype(int) - smooth(24, 32)).mean() < 4

    def test_header_is_found_behind_a_thumbnail_and_fill_bytes(self) -> None:
        thumbnail = images.encode(smooth(3, 5), "jpeg")
        segment = b"\xff\xe1" + (len(thumbnail) + 2).to_bytes(2, "big") + thumbnail

        picture = JPEG[:2] + segment + b"\xff\xff" + JPEG[2:]

        assert images.size(picture) == images.decode(picture).shape == (24, 32, 3)

    def test_of_twelve_bits_is_refused(self) -> None:
        place = JPEG.index(b"\xff\xc0")
        deep = JPEG[: place + 4] + b"\x0c" + JPEG[place + 5 :]

        with pytest.raises(SchemaError, match="found a jpeg of 12 bits in 3 channels"):
            images.decode(deep)


class TestSize:
    @given(PNG_ARRAYS)
    def test_of_a_png_is_that_of_the_array(self, array: Any) -> None:
        assert images.size(images.encode(array, "png")) == (*array.shape, 1)[:3]

    @given(JPEG_ARRAYS)
    def test_of_a_jpeg_is_that_of_the_array(self, array: Any) -> None:
        assert images.size(images.encode(array, "jpeg")) == (*array.shape, 1)[:3]

    def test_needs_no_library(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "PIL", None)
        monkeypatch.setitem(sys.modules, "simplejpeg", None)

        assert images.size(JPEG) == images.size(PNG) == (24, 32, 3)

    def test_needs_only_the_header(self) -> None:
        assert images.size(PNG[:33]) == (24, 32, 3)
        assert images.size(JPEG[: JPEG.index(b"\xff\xda")]) == (24, 32, 3)

    @pytest.mark.parametrize("form", [bytes, bytearray, memoryview, lambda data: np.frombuffer(data, np.uint8)])
    def test_bytes_may_come_in_any_form(self, form: Any) -> None:
        assert images.kind(form(JPEG)) == "jpeg"
        assert images.size(form(JPEG)) == images.decode(form(JPEG)).shape


class TestHostileBytes:
    @given(
        st.binary(max_size=80)
        | st.tuples(st.sampled_from([*images.SIGNATURES.values()]), st.binary(max_size=80)).map(b"".join)
        | st.sampled_from([JPEG, PNG, saved(PALETTE, "PNG"), RGB16]).flatmap(
            lambda picture: st.integers(0, len(picture)).map(lambda end: picture[:end])
        )
        | st.tuples(st.integers(2, len(JPEG) - 1), st.binary(min_size=1, max_size=4)).map(
            lambda change: JPEG[: change[0]] + change[1] + JPEG[change[0] + len(change[1]) :]
        )
    )
    @example(b"")
    @example(b"\xff\xd8\xff")
    @example(b"\xff\xd8\xff\xc0\x00\x00")
    @example(png())
    @example(png((b"IEND", b"")))
    @example(png(png_header(1, 1, 8, 3), (b"IEND", b"")))
    @example(png(png_header(1, 1, 8, 3), (b"IDAT", zlib.compress(b"\0\1")), (b"IEND", b"")))
    @example(png(png_header(1, 1, 8, 0), (b"IEND", b"")))
    @example(png(png_header(1, 1, 8, 0), (b"IDAT", b"junk"), (b"IEND", b"")))
    def test_are_a_picture_of_the_size_they_say_or_an_error(self, data: bytes) -> None:
        kind, pixels = images.kind(data), None

        with suppress(CorruptRecordError, SchemaError):
            pixels = images.decode(data)

        if pixels is not None:
            assert kind is not None
            assert images.size(data) == (*pixels.shape, 1)[:3]
        elif kind is None:
            with pytest.raises(CorruptRecordError, match="that are neither jpeg nor png"):
                images.size(data)
        else:
            with suppress(CorruptRecordError):
                assert min(images.size(data)) > 0

    @pytest.mark.parametrize("cut", [1, 2, 3, 20, 100])
    @pytest.mark.parametrize("picture", [JPEG, PNG])
    def test_picture_cut_short_is_no_picture(self, picture: bytes, cut: int) -> None:
        with pytest.raises(CorruptRecordError):
            images.decode(picture[:-cut])

    @pytest.mark.parametrize(
        "picture",
        [
            png(png_header(2**31 - 1, 2**31 - 1, 8, 6), (b"IDAT", zlib.compress(bytes(99))), (b"IEND", b"")),
            JPEG.replace(struct.pack(">HH", 24, 32), struct.pack(">HH", 65500, 65500), 1),
        ],
    )
    def test_header_cannot_ask_for_more_memory_than_the_bytes_account_for(self, picture: bytes, room_for: Any) -> None:
        with room_for(200 << 20), pytest.raises(CorruptRecordError, match="pixels, more than its bytes can hold"):
            images.decode(picture)

    @pytest.mark.parametrize("options", [{}, {"progressive": True, "subsampling": 2, "quality": 1}])
    @pytest.mark.parametrize("kind", ["JPEG", "PNG"])
    def test_large_picture_of_one_colour_is_within_that_bound(self, kind: Any, options: dict[str, Any]) -> None:
        blank = saved(Image.new("RGB", (3000, 2000)), kind, optimize=True, **options)

        assert images.decode(blank).max() <= 1


UINT8 = np.zeros((9, 7, 3), np.uint8)
FLOATS = "Pixels of 0 to 1 become uint8 by (array * 255).round().astype(np.uint8)."


class TestRefused:
    @pytest.mark.parametrize(
        ("kind", "array", "found", "advice"),
        [
            ("jpeg", UINT8 / 255, "an array of float64, shape [9,7,3]", FLOATS),
            (
                "png",
                np.zeros((3, 9, 7), np.float32),
                "an array of float32, shape [3,9,7]",
                f"{FLOATS} Channels come last: array.transpose(1, 2, 0).",
            ),
            ("png", np.zeros((1, 9, 7), np.uint8), "an array of uint8, shape [1,9,7]", "Channels come last:"),
            ("jpeg", np.zeros((9, 7, 4), np.uint8), "an array of uint8, shape [9,7,4]", "A jpeg has no transparency"),
            ("jpeg", np.zeros((9, 7, 2), np.uint8), "an array of uint8, shape [9,7,2]", "A jpeg has no transparency"),
            ("png", np.zeros((9, 7, 5), np.uint8), "an array of uint8, shape [9,7,5]", "A picture has up to 4 channel"),
            ("jpeg", UINT8.astype(np.uint16), "an array of uint16, shape [9,7,3]", "A jpeg holds 8 bits"),
            ("png", UINT8.astype(np.uint16), "an array of uint16, shape [9,7,3]", "A png of 16 bits is written in gr"),
            ("png", UINT8.astype(int), "an array of int64, shape [9,7,3]", "If all pixels are 0 to 255, use array.ast"),
            ("png", UINT8[..., 0] > 3, "an array of bool, shape [9,7]", "A mask becomes uint8 by array.astype(np.ui"),
            ("png", np.array([["a"]]), "an array of str32, shape [1,1]", "Pixels are numbers."),
            ("png", UINT8[None], "an array of uint8, shape [1,9,7,3]", "These are several pictures"),
            ("png", UINT8[0, 0], "an array of uint8, shape [3]", "A picture has a height and a width"),
            ("png", UINT8[:0], "an array of uint8, shape [0,7,3]", "A picture has at least one pixel."),
            ("jpeg", np.zeros((1, 65501), np.uint8), "an array of uint8, shape [1,65501]", "A jpeg has up to 65500"),
            ("png", [[1, 2]], "list", "Give the pixels as a NumPy array."),
            ("png", np.ma.array(UINT8), "a masked array", "The hidden values would be stored."),
        ],
    )
    def test_array_is_named_with_what_is_expected_and_what_to_do(
        self, kind: Any, array: Any, found: str, advice: str
    ) -> None:
        with pytest.raises(SchemaError) as caught:
            images.encode(array, kind)

        expected = caught.value.expected
        assert expected is not None
        assert expected.startswith("uint8 of shape [h,w]")
        assert str(caught.value).startswith(f"expected {expected}, found {found}\n  {advice}")
        assert caught.value.found == found

    @pytest.mark.parametrize(
        ("kind", "quality", "message"),
        [
            ("png", 90, "quality: only a jpeg has one, and this is png\n  A png keeps every pixel as it is."),
            ("jpeg", 0, "quality: expected 1 to 100, found 0"),
            ("gif", None, "'gif' is no kind of picture\n  There are jpeg and png."),
        ],
    )
    def test_options_that_make_no_sense_are_named(self, kind: Any, quality: Any, message: str) -> None:
        with pytest.raises(SchemaError) as caught:
            images.encode(UINT8, kind, quality=quality)

        assert str(caught.value) == message

    @pytest.mark.parametrize(
        ("picture", "module", "package"), [(JPEG, "simplejpeg", "simplejpeg"), (PNG, "PIL", "Pillow")]
    )
    def test_missing_library_is_named_with_how_to_get_it(
        self, picture: bytes, module: str, package: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, module, None)

        with pytest.raises(MissingExtraError) as caught:
            images.decode(picture)

        words = f"decoding a {images.kind(picture)} needs {package}: pip install 'recordkit[images]'"
        assert str(caught.value) == words
