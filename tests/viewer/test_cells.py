"""Values as the page shows them, and drawings of arrays."""

from __future__ import annotations

import json
from base64 import b64decode
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from recordkit import images
from recordkit.columns import BytesColumn, Ragged
from recordkit.viewer import _drawings
from recordkit.viewer._cells import LARGE, SMALL, cell, safe
from recordkit.viewer._dataset_view import Failed

ARRAYS = hnp.arrays(
    hnp.scalar_dtypes().filter(
        lambda dtype: dtype.kind in "biufcmM" and dtype.itemsize <= 16 and dtype.char not in "gG"
    ),
    hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=9),
)


class TestCell:
    @given(ARRAYS, st.sampled_from([SMALL, LARGE]))
    def test_any_array_becomes_json(self, array: Any, room: Any) -> None:
        with np.errstate(all="ignore"):
            shown = cell("x", array, room)

        assert json.loads(json.dumps(shown, allow_nan=False)) == shown

    @given(st.binary(max_size=400))
    def test_any_bytes_become_json_without_them(self, value: bytes) -> None:
        shown = cell("x", value, SMALL)

        assert json.loads(json.dumps(shown, allow_nan=False)) == shown
        assert shown["bytes"] == len(value)

    def test_numbers_keep_every_digit(self) -> None:
        assert cell("x", np.int64(2**63 - 1), SMALL)["text"] == "9223372036854775807"
        assert cell("x", np.float64(0.1), SMALL)["text"] == "0.1"

    def test_text_is_cut_and_says_how_long_it_is(self) -> None:
        assert cell("x", "a" * 1000, SMALL) == {"k": "text", "text": "a" * 240, "chars": 1000}

    def test_picture_says_its_size_and_sends_no_bytes(self) -> None:
        picture = images.encode(np.zeros((4, 6, 3), np.uint8), "png")

        shown = cell("x", picture, SMALL)

        expected = {"k": "picture", "type": "image/png", "bytes": len(picture), "small": True, "h": 4, "w": 6, "c": 3}
        assert shown == expected

    def test_svg_and_html_are_bytes_like_any_other(self) -> None:
        for value in (
            b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>",
            b"<html><script>alert(1)</script>",
        ):
            assert cell("x", value, SMALL)["k"] == "bytes"

    @pytest.mark.parametrize(
        ("value", "kind"),
        [
            (None, "missing"),
            (Failed("why"), "failed"),
            (np.bool_(True), "bool"),
            (np.datetime64("2024-05-01"), "time"),
            (b"RIFF....WAVEfmt ", "sound"),
            (np.zeros(3), "numbers"),
            (np.zeros(64), "line"),
            (np.zeros((8, 8)), "grid"),
            (np.zeros((0, 3)), "numbers"),
            (BytesColumn.of(["a", "b"]), "list"),
            (Ragged(np.arange(3), (np.array([0, 2, 3]),)), "list"),
        ],
    )
    def test_each_kind_of_value_has_its_cell(self, value: Any, kind: str) -> None:
        assert cell("x", value, SMALL)["k"] == kind

    def test_long_array_named_audio_can_be_heard(self) -> None:
        assert cell("audio", np.zeros(4000, np.float32), LARGE)["sound"] is True
        assert "sound" not in cell("embedding", np.zeros(4000, np.float32), LARGE)

    def test_numbers_json_has_not_are_sent_as_text(self) -> None:
        assert safe({"a": [float("nan"), 2**60, 7, 0.5]}) == {"a": ["NaN", str(2**60), 7, 0.5]}


class TestDrawings:
    def test_line_keeps_the_peaks_of_a_long_array(self) -> None:
        array = np.zeros(10_000)
        array[7777] = 1

        lows, highs = _drawings.line(array, 100)

        assert (len(lows), len(highs), lows[77], highs[77]) == (100, 100, 0, 1000)

    def test_line_has_gaps_where_there_is_no_number(self) -> None:
        lows, _ = _drawings.line(np.array([0.0, np.nan, np.inf, 2.0]), 4)

        assert lows == [0, None, None, 1000]

    def test_colours_are_drawn_as_they_are(self) -> None:
        array = np.random.default_rng(0).integers(0, 256, (6, 5, 3), np.uint8)

        drawn = _drawings.grid(array, 64)

        assert drawn is not None
        assert b64decode(drawn["data"]) == array.tobytes()

    def test_large_arrays_are_drawn_with_few_points(self) -> None:
        drawn = _drawings.grid(np.zeros((1000, 3000), np.float32), 48)

        assert drawn is not None
        assert (drawn["h"], drawn["w"], len(b64decode(drawn["data"]))) == (48, 48, 48 * 48)

    def test_of_many_pictures_the_first_is_drawn_and_that_is_said(self) -> None:
        drawn = _drawings.grid(np.zeros((5, 8, 8, 3), np.uint8), 48)

        assert drawn is not None
        assert (drawn["h"], drawn["c"], drawn["first"]) == (8, 3, True)
