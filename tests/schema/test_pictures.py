"""Pictures given as arrays: stored as if they had been encoded first."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordkit import images
from recordkit.columns import BytesColumn, Ragged
from recordkit.errors import MissingExtraError, SchemaError
from recordkit.schema import Field, Schema

RED = np.full((6, 8, 3), (200, 30, 30), np.uint8)
RAMP = np.arange(48, dtype=np.uint8).reshape(6, 8)
SMALL = RAMP[:3, :5].copy()


def encoded(array: Any, kind: Any = "png") -> bytes:
    return images.encode(array, kind)


class TestRows:
    @pytest.mark.parametrize("kind", ["jpeg", "png"])
    @pytest.mark.parametrize("array", [RED, RAMP, RAMP[..., None], RED[::2, ::-1]])
    def test_array_is_stored_as_the_picture_made_of_it(self, kind: Any, array: Any) -> None:
        schema = Schema({"x": kind})

        assert schema.encode_rows([{"x": array}])[0] == schema.encode_rows([{"x": encoded(array, kind)}])[0]

    def test_bytes_are_stored_untouched(self) -> None:
        picture = images.SIGNATURES["jpeg"] + b"and what follows is not looked at"
        schema = Schema({"x": Field("jpeg", quality=10)})

        assert schema.decode(schema.encode_rows([{"x": picture}]))["x"][0] == picture

    @pytest.mark.parametrize(
        ("kind", "value", "read"),
        [
            ("png[?]", [RED, encoded(RAMP), SMALL], [encoded(RED), encoded(RAMP), encoded(SMALL)]),
            ("png[?]", np.stack([RED, RED]), [encoded(RED)] * 2),
            ("png[?]", np.stack([RAMP, RAMP]), [encoded(RAMP)] * 2),
            ("png[?]", [], []),
            ("png[?]", np.zeros((0, 6, 8, 3), np.uint8), []),
            ("png[2]", (RED, RAMP), [encoded(RED), encoded(RAMP)]),
            ("png[2,1]", [[RED], [RAMP]], [[encoded(RED)], [encoded(RAMP)]]),
            ("png[2,?]", np.stack([RED, RED])[:, None], [[encoded(RED)]] * 2),
            ("png[1,?]", [np.stack([RED, RED])], [[encoded(RED)] * 2]),
        ],
    )
    def test_several_pictures_in_one_field_may_be_arrays(self, kind: str, value: Any, read: Any) -> None:
        schema = Schema({"x": kind})

        assert schema.decode(schema.encode_rows([{"x": value}]))["x"].to_list() == [read]

    def test_what_numpy_can_make_an_array_of_will_do(self) -> None:
        class Tensor:
            def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
                return RED

        schema = Schema({"x": "png", "y": "png[?]"})

        batch = schema.decode(schema.encode_rows([{"x": Tensor(), "y": [Tensor()]}]))

        assert [batch["x"][0], *batch["y"].to_list()[0]] == [encoded(RED)] * 2

    def test_error_names_field_and_row(self) -> None:
        with pytest.raises(SchemaError) as caught:
            Schema({"image": "jpeg?"}).encode_rows([{"image": RED}, {"image": RED.transpose(2, 0, 1)}])

        assert str(caught.value) == (
            "image: expected jpeg?, found an array of uint8, shape [3,6,8]\n  In row 1. A jpeg takes uint8 of shape "
            "[h,w], [h,w,1] or [h,w,3]. Channels come last: array.transpose(1, 2, 0)."
        )
        assert (caught.value.field, caught.value.record) == ("image", 1)


class TestColumns:
    @pytest.mark.parametrize("kind", ["jpeg", "png"])
    @pytest.mark.parametrize(
        "column",
        [
            [RED, RAMP],
            [RED, encoded(RAMP)],
            [encoded(RED), SMALL],
            np.stack([RED, RED]),
            np.stack([RAMP, RAMP]),
            np.zeros((2, 5, 3, 1), np.uint8),
            np.array([RED, encoded(RAMP)], object),
        ],
    )
    def test_column_is_stored_as_the_pictures_made_of_it(self, kind: Any, column: Any) -> None:
        pictures = [encoded(images.decode(item) if isinstance(item, bytes) else item, kind) for item in column]
        schema = Schema({"x": kind})
        if kind == "jpeg":
            column = [pictures[row] if isinstance(item, bytes) else item for row, item in enumerate(column)]

        packed = schema.encode({"x": column})

        assert list(packed) == list(schema.encode({"x": BytesColumn.of(pictures)}))
        assert list(packed) == list(schema.encode_rows({"x": item} for item in column))

    def test_pixels_of_differing_sizes_that_were_read_can_be_written_as_pictures(self) -> None:
        pixels = Schema({"x": "uint8[?,?]"})
        column = pixels.decode(pixels.encode({"x": [RAMP, SMALL]}))["x"]
        assert isinstance(column, Ragged)

        found = Schema({"x": "png"}).encode({"x": column})

        assert list(found) == list(Schema({"x": "png"}).encode({"x": [encoded(RAMP), encoded(SMALL)]}))

    def test_missing_pictures_are_left_out(self) -> None:
        schema = Schema({"x": "png?"})

        batch = schema.decode(
            schema.encode({"x": [None, RED, np.zeros(3)]}, valid={"x": np.array([True, True, False])})
        )

        assert [row["x"] for row in batch.rows()] == [None, encoded(RED), None]

    def test_steps_of_a_sequence_may_be_arrays(self) -> None:
        schema = Schema({"id": "int64"}, sequences={"frames": "png"})
        video = np.stack([RED, RED])
        rows = [{"id": 1, "frames": video}, {"id": 2, "frames": [RAMP, encoded(RED)]}]

        found = schema.decode(schema.encode_rows(rows))["frames"].to_list()

        assert found == [[encoded(RED)] * 2, [encoded(RAMP), encoded(RED)]]
        columns = schema.encode({"id": [1, 2], "frames": np.stack([video, video])})
        assert schema.decode(columns)["frames"].to_list() == [[encoded(RED)] * 2] * 2

    def test_one_picture_is_not_taken_for_a_column_of_narrow_ones(self) -> None:
        with pytest.raises(SchemaError) as caught:
            Schema({"x": "png"}).encode({"x": RED})

        assert str(caught.value) == (
            "x: expected png, found an array of uint8, shape [6,8,3]\n  Is it one picture, or are they several in "
            "grey? Give [array] for one, array[..., None] for several."
        )

    def test_error_names_field_and_row(self) -> None:
        with pytest.raises(SchemaError, match=r"^x: expected png, found an array of bool, shape .6,8.\n  In row 1\. "):
            Schema({"x": "png"}).encode({"x": [RED, RAMP > 3]})

    @given(st.lists(st.tuples(st.booleans(), st.sampled_from([RED, RAMP, SMALL, RED[:1]])), max_size=6))
    def test_bytes_and_arrays_mix_in_any_way(self, drawn: list[tuple[bool, Any]]) -> None:
        schema = Schema({"x": "png"})
        column = [encoded(array) if first else array for first, array in drawn]

        packed = schema.encode({"x": column}, rows=len(column))

        assert schema.decode(packed)["x"].to_list() == [encoded(array) for _, array in drawn]


class TestQuality:
    def test_declared_is_used_for_rows_columns_and_steps(self) -> None:
        noise = np.random.default_rng(0).integers(0, 256, (16, 16, 3), np.uint8)
        field, worse = Field("jpeg", quality=30), images.encode(noise, "jpeg", quality=30)
        schema, many = Schema({"x": field}), Schema({"x": Field("jpeg[?]", quality=30)})
        steps = Schema({}, sequences={"x": field})

        assert len(worse) < len(images.encode(noise, "jpeg"))
        assert schema.decode(schema.encode_rows([{"x": noise}]))["x"].to_list() == [worse]
        assert schema.decode(schema.encode({"x": noise[None]}))["x"].to_list() == [worse]
        assert many.decode(many.encode({"x": [[noise]]}))["x"].to_list() == [[worse]]
        assert steps.decode(steps.encode_rows([{"x": [noise]}]))["x"].to_list() == [[worse]]

    def test_default_may_be_an_array(self) -> None:
        field = Field("jpeg?", default=RED, quality=30)
        schema = Schema({"x": field})

        assert field.default == images.encode(RED, "jpeg", quality=30)
        assert Schema.from_json(schema.to_json()) == schema
        assert schema.decode(schema.encode({"x": [None]}))["x"].to_list() == [field.default]


class TestLibraries:
    def test_are_imported_only_for_arrays(self) -> None:
        program = """
import sys
import recordkit
from recordkit import images
from recordkit.schema import Schema
schema = Schema({"x": "jpeg", "y": "png?"})
schema.decode(schema.encode({"x": [images.SIGNATURES["jpeg"]]}))["x"][0]
schema.check({"x": images.SIGNATURES["jpeg"], "y": images.SIGNATURES["png"]})
print([name for name in ("PIL", "simplejpeg") if name in sys.modules])
"""
        command = [sys.executable, "-W", "error", "-c", program]

        done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=True)

        assert done.stdout == "[]\n"

    @pytest.mark.parametrize(("kind", "package"), [("jpeg", "simplejpeg"), ("png", "Pillow")])
    def test_that_are_missing_are_named_with_how_to_get_them(
        self, kind: str, package: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, {"Pillow": "PIL"}.get(package, package), None)
        schema = Schema({"x": kind})

        with pytest.raises(MissingExtraError) as by_row:
            schema.encode_rows([{"x": RED}])
        with pytest.raises(MissingExtraError) as by_column:
            schema.encode({"x": [RED]})

        words = f"encoding a {kind} needs {package}: pip install 'recordkit[images]'"
        assert str(by_row.value) == str(by_column.value) == words
