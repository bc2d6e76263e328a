from __future__ import annotations

import json
from enum import Enum, IntEnum
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import recordkit as rk
from recordkit.storage.format import BadRow, Lost, _quarantine
from recordkit.storage.format._quarantine import from_line, to_line

if TYPE_CHECKING:
    from pathlib import Path

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(st.characters(codec=None), max_size=9),
    st.binary(max_size=9),
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner), max_leaves=6
)
dtypes = hnp.scalar_dtypes().filter(lambda dtype: dtype.kind in "biufcmM" and dtype.itemsize <= 16)
arrays = hnp.arrays(dtypes, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3))


def back(value: Any) -> Any:
    return from_line(to_line(BadRow(0, None, "", value))).row


class TestLines:
    @given(st.integers(0, 2**63 - 1), st.none() | st.text(), st.text(), st.dictionaries(st.text(), values))
    def test_a_row_comes_back_as_it_was(self, number: int, field: str | None, reason: str, row: dict[str, Any]) -> None:
        bad = BadRow(number, field, reason, row)

        assert from_line(to_line(bad)) == bad

    @given(values)
    def test_a_row_is_one_line(self, value: Any) -> None:
        line = to_line(BadRow(0, None, "two\nlines", {"x": value}))

        assert line.count(b"\n") == 1
        assert line.endswith(b"\n")

    @given(arrays)
    def test_an_array_comes_back_bit_for_bit(self, array: Any) -> None:
        found = back({"x": array})["x"]

        little = array.astype(array.dtype.newbyteorder("<"))
        assert (found.shape, found.dtype.newbyteorder("="), found.tobytes()) == (
            array.shape,
            array.dtype.newbyteorder("="),
            little.tobytes(),
        )

    @pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan")])
    def test_floats_that_json_has_no_word_for_come_back_and_the_line_is_json(self, value: float) -> None:
        line = to_line(BadRow(1, None, "why", {"x": value}))

        json.loads(line, parse_constant=lambda word: pytest.fail(word))
        assert repr(from_line(line).row["x"]) == repr(value)

    @given(st.dictionaries(st.integers() | st.text() | st.binary() | st.tuples(st.integers(), st.text()), scalars))
    def test_keys_of_any_kind_come_back(self, row: dict[Any, Any]) -> None:
        assert back(row) == row

    @given(st.dictionaries(st.sampled_from(["$", "base64", "items", "what"]), scalars))
    def test_rows_that_look_like_our_own_marks_come_back(self, row: dict[str, Any]) -> None:
        assert back(row) == row

    def test_arrays_of_text_come_back_as_lists(self) -> None:
        assert back(np.array(["a", "b"])) == ["a", "b"]
        assert back(np.array([[b"a"], ["b"]], object)) == [[b"a"], ["b"]]

    def test_dtypes_that_numpy_cannot_name_come_back_as_their_values(self) -> None:
        for dtype in (ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2):
            assert back(np.array([1.5, -2], dtype)) == [1.5, -2.0]

    def test_scalars_of_numpy_keep_their_dtype(self) -> None:
        for value in (np.float64(1.5), np.int8(-3), np.bool_(True), np.datetime64(7, "ns")):
            assert back(value) == value
            assert back(value).dtype == value.dtype

    def test_subclasses_come_back_as_what_they_hold(self) -> None:
        class Huge(int):
            pass

        class Color(IntEnum):
            RED = 7

        assert back({"huge": Huge(2**70), "color": Color.RED}) == {"huge": 2**70, "color": 7}

    def test_what_json_cannot_hold_is_lost_and_said_so(self) -> None:
        class Color(Enum):
            RED = 7

        assert back({"x": {1, 2}, "y": Color.RED, "z": 1}) == {"x": Lost("{1, 2}"), "y": Lost(repr(Color.RED)), "z": 1}

    def test_what_is_too_large_is_lost_and_said_so(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(_quarantine, "LARGEST", 1000)

        found = back({"x": bytes(1001), "y": np.zeros(126), "z": bytes(1000)})

        assert found == {"x": Lost("bytes of 1,001 bytes"), "y": Lost("array of 1,008 bytes"), "z": bytes(1000)}

    def test_lines_are_json_that_others_can_read(self) -> None:
        line = to_line(BadRow(7, "x", "x: expected int64, found str", {"x": "größe", "y": b"\0\1"}))

        assert json.loads(line) == {
            "row": 7,
            "field": "x",
            "reason": "x: expected int64, found str",
            "values": {"x": "größe", "y": {"$": "bytes", "base64": "AAE="}},
        }


class TestQuarantined:
    def test_rows_can_be_mended_and_written_again(self, tmp_path: Path) -> None:
        rows = [{"id": 1, "x": np.arange(2)}, {"id": "2", "x": np.arange(2)}, {"id": 3, "x": np.arange(2)}]
        rk.write(tmp_path / "a", rows, {"id": "int64", "x": "int64[2]"}, on_error="skip")

        with rk.append(tmp_path / "a") as writer:
            for bad in rk.quarantined(tmp_path / "a"):
                writer.write({**bad.row, "id": int(bad.row["id"])})

        assert writer.close().records == 1

    def test_nothing_where_nothing_was_skipped(self, tmp_path: Path) -> None:
        rk.write(tmp_path / "a", [{"id": 1}])

        assert list(rk.quarantined(tmp_path / "a")) == []
        assert list(rk.quarantined(tmp_path / "nowhere")) == []
