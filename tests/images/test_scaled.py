"""JPEGs decoded straight to a size: nearly what decoding in full and resizing give, and refused where that is."""

from __future__ import annotations

import io
from typing import Any, cast

import numpy as np
import pytest
import simplejpeg
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from recordkit import _core, images
from recordkit.errors import CorruptRecordError, SchemaError

METHODS: tuple[images.Method, ...] = ("nearest", "bilinear", "area")


def photo(height: int, width: int, channels: int = 3, seed: int = 0, noise: int = 12) -> Any:
    """Soft colours under noise, none of them so bright or dark that they are cut off."""
    rng = np.random.default_rng([seed, height, width])
    y, x = np.mgrid[0 : 1 : height * 1j, 0 : 1 : width * 1j]
    waves = [np.sin(rng.uniform(1, 9) * x + rng.uniform(1, 9) * y) for _ in range(channels)]
    pixels = 128 + 50 * np.stack(waves, axis=-1) + noise * rng.uniform(-1, 1, (height, width, 1))
    return pixels.round().astype(np.uint8)


def saved(pixels: Any, mode: str | None = None, **options: Any) -> bytes:
    stream = io.BytesIO()
    image = Image.fromarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels)
    image.convert(mode or image.mode).save(stream, "JPEG", **options)
    return stream.getvalue()


def decodes(picture: bytes, height: int = 1, width: int = 1, channels: int = 1, *, is_portable: bool = False) -> bool:
    """Whether the core decodes it, and not libjpeg."""
    target = np.empty((height, width, channels), np.uint8)
    one, none = np.ones(channels, np.float32), np.zeros(channels, np.float32)
    return _core.JpegDecoder(is_portable).decode(picture, target, 1, one, none)


def batch(picture: bytes, size: tuple[int, int], **options: Any) -> Any:
    return cast("Any", images.decode_batch([picture], size, **options))[0].astype(float)


def decibels(found: Any, wanted: Any) -> float:
    return float(10 * np.log10(255**2 / (np.mean((found - wanted) ** 2) + 1e-9)))


def outcome(picture: bytes, *, scaled: bool) -> str:
    """What is said of a picture that may be damaged."""
    try:
        images.decode_batch([picture], (3, 4), scaled=scaled)
    except (CorruptRecordError, SchemaError) as error:
        return str(error)
    return "decoded"


@st.composite
def jpegs(draw: st.DrawFn) -> bytes:
    """Sound ones of the kinds that the core decodes."""
    height, width, seed = draw(st.integers(1, 70)), draw(st.integers(1, 70)), draw(st.integers(0, 9))
    quality = draw(st.integers(30, 100))
    if draw(st.booleans()):
        sampling = draw(st.sampled_from(["444", "422", "440", "420"]))
        return cast("bytes", simplejpeg.encode_jpeg(photo(height, width, 3, seed), quality, "RGB", sampling))
    options: Any = draw(
        st.sampled_from([{}, {"restart_marker_blocks": 3}, {"restart_marker_rows": 1}, {"optimize": True}])
    )
    pixels = photo(height, width, draw(st.sampled_from([1, 3])), seed)
    return saved(pixels, quality=quality, subsampling=draw(st.integers(0, 2)), **options)


class TestLikeFull:
    @settings(max_examples=150, deadline=None)
    @given(picture=jpegs(), data=st.data(), method=st.sampled_from(METHODS), channels=st.sampled_from([1, 3]))
    def test_every_pixel_is_within_a_few_levels(
        self, picture: bytes, data: st.DataObject, method: images.Method, channels: int
    ) -> None:
        height, width, _ = images.size(picture)
        size = data.draw(st.integers(1, height)), data.draw(st.integers(1, width))

        found = batch(picture, size, method=method, channels=channels, dtype="float32", scaled=True)

        wanted = batch(picture, size, method=method, channels=channels, dtype="float32")
        assert decodes(picture, *size, channels)
        assert np.abs(found - wanted).max() < 4  # libjpeg rounds brightness and colours, those between, and their sum

    @pytest.mark.parametrize("method", METHODS)
    @pytest.mark.parametrize("size", [(375, 500), (224, 224), (112, 112), (40, 50)])
    def test_noisy_photo_keeps_its_pixels(self, size: tuple[int, int], method: images.Method) -> None:
        picture = saved(photo(375, 500, noise=40), quality=95, subsampling="4:2:0")

        found, wanted = (batch(picture, size, method=method, scaled=scaled) for scaled in (True, False))

        assert decodes(picture, *size)
        assert decibels(found, wanted) > 45

    def test_colours_that_are_cut_off_are_nearly_the_same(self) -> None:
        rng = np.random.default_rng(1)
        picture = saved(rng.choice([0, 255], (90, 70, 3)).astype(np.uint8), quality=90)

        found, wanted = (batch(picture, (50, 60), scaled=scaled) for scaled in (True, False))

        assert decibels(found, wanted) > 25

    @pytest.mark.parametrize("channels", [1, 3, 4, None])
    def test_channels_are_those_asked_for(self, channels: int | None) -> None:
        for pixels in (photo(40, 30), photo(40, 30, 1)):
            found = images.decode_batch([saved(pixels)], (20, 20), channels=channels, scaled=True)

            assert isinstance(found, np.ndarray)
            assert found.shape[-1] == (channels or pixels.shape[-1])

    def test_pictures_of_all_kinds_mix(self) -> None:
        pictures = [saved(photo(60, 50)), saved(photo(31, 20, 1)), saved(photo(60, 50), progressive=True)]
        pictures += [images.encode(photo(30, 30), "png"), pictures[0], saved(photo(60, 50), "CMYK")]

        found = images.decode_batch(pictures, (12, 13), scaled=True)

        for each, picture in zip(found, pictures, strict=True):
            np.testing.assert_array_equal(each, batch(picture, (12, 13), scaled=True))

    def test_both_ways_of_the_core_give_the_same(self) -> None:
        picture, one, none = saved(photo(100, 90)), np.ones(3, np.float32), np.zeros(3, np.float32)
        made = []
        for is_portable in (False, True):
            made.append(np.empty((50, 40, 3), np.float32))
            assert _core.JpegDecoder(is_portable).decode(picture, made[-1], 1, one, none)

        np.testing.assert_array_equal(made[0], made[1])


class TestLeftToLibjpeg:
    @pytest.mark.parametrize(
        "picture",
        [
            saved(photo(40, 50), progressive=True),
            saved(photo(40, 50), "CMYK"),
            saved(photo(40, 50), keep_rgb=True),
            cast("bytes", simplejpeg.encode_jpeg(photo(40, 50), 90, "RGB", "411")),
            images.encode(photo(40, 50), "png"),
        ],
        ids=["progressive", "cmyk", "rgb", "411", "png"],
    )
    def test_other_kinds_are_decoded_nevertheless(self, picture: bytes) -> None:
        found, wanted = (batch(picture, (30, 40), scaled=scaled) for scaled in (True, False))

        assert not decodes(picture)
        np.testing.assert_array_equal(found, wanted)

    def test_size_that_is_larger_is_decoded_in_full(self) -> None:
        picture = saved(photo(20, 30))

        np.testing.assert_array_equal(*(batch(picture, (21, 30), scaled=scaled) for scaled in (True, False)))


class TestDamage:
    SMALL = saved(photo(20, 26), quality=70)
    PICTURES = (SMALL, saved(photo(18, 33), quality=60, restart_marker_blocks=1), saved(photo(9, 24, 1), quality=80))

    @pytest.mark.parametrize("picture", PICTURES, ids=["colour", "restarts", "grey"])
    def test_picture_cut_anywhere_is_refused_in_the_same_words(self, picture: bytes) -> None:
        for size in range(2, len(picture)):
            found = outcome(picture[:size], scaled=True)

            assert found != "decoded"
            assert found == outcome(picture[:size], scaled=False)

    @pytest.mark.parametrize("picture", PICTURES, ids=["colour", "restarts", "grey"])
    def test_flipped_bit_is_refused_where_libjpeg_refuses_it(self, picture: bytes) -> None:
        decoded = 0
        for at in range(2, len(picture)):
            for bit in (at % 8, (at + 3) % 8):
                damaged = bytearray(picture)
                damaged[at] ^= 1 << bit
                found = outcome(bytes(damaged), scaled=True)
                decoded += decodes(bytes(damaged), 3, 4)

                assert found == outcome(bytes(damaged), scaled=False)
        assert decoded > 100  # else nothing was told

    @settings(max_examples=300, deadline=None)
    @given(picture=jpegs(), data=st.data())
    def test_bytes_that_are_changed_are_refused_where_libjpeg_refuses_them(
        self, picture: bytes, data: st.DataObject
    ) -> None:
        damaged = bytearray(picture)
        for _ in range(data.draw(st.integers(1, 3))):
            at = data.draw(st.integers(2, len(damaged) - 1))
            damaged[at : at + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=2))

        if decodes(bytes(damaged)):
            simplejpeg.decode_jpeg(bytes(damaged))  # without an error

    @pytest.mark.parametrize(
        "behind", [b"x", b"\xff\xd8\xff", b"\0" * 100], ids=["a byte", "another beginning", "zeros"]
    )
    def test_what_stands_behind_the_end_does_not_matter(self, behind: bytes) -> None:
        assert outcome(self.SMALL + behind, scaled=True) == outcome(self.SMALL + behind, scaled=False) == "decoded"

    def test_header_that_claims_too_much_gets_no_memory(self, room_for: Any) -> None:
        huge = self.SMALL.replace((20).to_bytes(2, "big") + (26).to_bytes(2, "big"), b"\xff\xdc\xff\xdc", 1)

        with room_for(200 << 20), pytest.raises(CorruptRecordError, match=r"more than its bytes can hold"):
            images.decode_batch([huge], (5, 6), scaled=True)
