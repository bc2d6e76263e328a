from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import recordkit as rk
from recordkit.storage.write import _input

SCHEMA = rk.Schema({"id": "int64", "note": "string?", "x": "int64[?]"})
ROWS: list[dict[str, Any]] = [{"id": n, "note": None if n % 2 else f"{n}", "x": list(range(n))} for n in range(5)]


class TestColumns:
    @pytest.mark.parametrize("count", range(6))
    def test_behind_some_rows_are_the_others(self, count: int) -> None:
        batch = SCHEMA.decode(SCHEMA.encode_rows(ROWS))
        columns = {"deep": {"id": np.arange(5)}, "id": [4, 3, 2, 1, 0]}

        rest, valid = _input.columns_behind(batch, count)
        plain, none = _input.columns_behind(columns, count)

        assert bytes(SCHEMA.encode(rest, valid=valid)) == bytes(SCHEMA.encode_rows(ROWS[count:]))
        assert {name: list(column) for name, column in plain.items()} == {
            "deep/id": list(range(count, 5)),
            "id": list(range(4, -1, -1))[count:],
        }
        assert none is None

    def test_rows_of_columns_leave_out_what_is_missing(self) -> None:
        valid = {"note": np.array([True, False])}

        rows = list(_input.batch_rows({"deep": {"id": [1, 2]}, "note": ["a", ""]}, valid))

        assert rows == [{"deep/id": 1, "note": "a"}, {"deep/id": 2}]

    def test_rows_of_a_batch_are_its_rows(self) -> None:
        batch = SCHEMA.decode(SCHEMA.encode_rows(ROWS))

        rows = list(_input.batch_rows(batch, {}))

        assert [row["id"] for row in rows] == list(range(5))

    @pytest.mark.parametrize(
        ("columns", "count"), [({"x": [1, 2]}, 2), ({"deep": {"x": np.zeros((3, 2))}}, 3), ({}, None)]
    )
    def test_rows_are_counted(self, columns: Any, count: int | None) -> None:
        assert _input.row_count(columns) == count

    def test_a_row_is_weighed_by_what_is_large_in_it(self) -> None:
        row = {"array": np.zeros(1000), "blob": bytes(500), "deep": {"text": "x" * 100}, "list": [b"12345"] * 10}

        assert _input.size_of(row) == 8000 + 500 + 100 + 50


class TestWithRow:
    def test_the_row_comes_before_the_advice(self) -> None:
        error = rk.SchemaError("x: expected int64, found str\n  Convert it.", field="x")

        numbered = _input.with_row(error, 12_345)

        assert str(numbered) == "x: expected int64, found str\n  In row 12,345. Convert it."
        assert (numbered.field, numbered.record) == ("x", 12_345)
