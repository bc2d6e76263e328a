from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import recordkit as rk
from recordkit.cli._values import line_of, plain, row_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .conftest import Done

SCHEMA = rk.Schema(
    {
        "int": "int64",
        "small": "uint8[2]",
        "float": "float32",
        "wide": "float64[?]",
        "half": "float16",
        "text": "string",
        "texts": "string[?]",
        "raw": "bytes",
        "maybe": "int64?",
        "array": "float32[?,?]",
        "bool": "bool",
        "complex": "complex64",
        "when": "datetime64:ms",
        "span": "timedelta64:s",
    }
)
ROWS = st.fixed_dictionaries(
    {
        "int": st.integers(-(2**63), 2**63 - 1),
        "small": arrays.arrays(np.uint8, 2),
        "float": st.floats(width=32).map(np.float32),
        "wide": st.lists(st.floats()),
        "half": st.floats(width=16).map(np.float16),
        "text": st.text(st.characters(exclude_categories=["Cs"])),
        "texts": st.lists(st.text(st.characters(exclude_categories=["Cs"]))),
        "raw": st.binary(),
        "maybe": st.none() | st.integers(-5, 5),
        "array": arrays.arrays(np.float32, st.tuples(st.integers(1, 3), st.integers(1, 3))),
        "bool": st.booleans(),
        "complex": st.complex_numbers(width=64, allow_nan=False, allow_infinity=False).map(np.complex64),
        "when": arrays.from_dtype(np.dtype("M8[ms]"), min_value=-(10**14), max_value=10**14),
        "span": arrays.from_dtype(np.dtype("m8[s]")),
    }
)


class TestLines:
    @settings(max_examples=40)
    @given(st.lists(ROWS, min_size=1, max_size=3))
    def test_any_row_comes_back_from_its_line(self, rows: list[dict[str, Any]]) -> None:
        chunk = SCHEMA.encode_rows(rows)

        lines = [json.dumps(line_of(row), allow_nan=False) for row in SCHEMA.decode(chunk).rows()]
        again = SCHEMA.encode_rows(row_of(json.loads(line), SCHEMA) for line in lines)

        for one, other in zip(SCHEMA.decode(chunk).rows(), SCHEMA.decode(again).rows(), strict=True):
            for name in SCHEMA.names:
                np.testing.assert_array_equal(_array(one[name]), _array(other[name]), name)

    @pytest.mark.parametrize(
        ("value", "shown"),
        [
            (np.float32(0.1), 0.1),
            (np.float64(0.1), 0.1),
            (np.array([np.nan, np.inf, -np.inf]), ["NaN", "Infinity", "-Infinity"]),
            (np.array([[1, 2], [3, 4]], np.uint8), [[1, 2], [3, 4]]),
            (b"\x00\xff", "AP8="),
            (np.datetime64("2024-05-01T12:00", "m"), "2024-05-01T12:00"),
            (np.timedelta64(90, "s"), 90),
            (np.complex64(1 + 2j), "(1+2j)"),
            (None, None),
        ],
    )
    def test_values_are_shown_so(self, value: Any, shown: Any) -> None:
        assert plain(value) == shown

    def test_cat_and_append_together_copy_a_dataset(self, run: Callable[..., Done], train: str, tmp_path: Path) -> None:
        rk.create("copy", rk.open(train).schema).close()

        lines = run("cat", train).out
        done = run("append", "copy", "-", given=lines.encode())

        assert done.status == 0
        assert list(rk.open("copy", raw=True)) == list(rk.open(train, raw=True))


def _array(value: Any) -> Any:
    return value.to_list() if hasattr(value, "to_list") else value
