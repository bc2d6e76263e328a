"""Dtypes of ml_dtypes: the rest of the library needs no more than their lines in the table."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import pytest

import recordkit as rk
from recordkit import dtypes
from recordkit.cli import main
from recordkit.viewer import _drawings as drawings

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(params=dtypes.ML_DTYPES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def values(name: str) -> np.ndarray[Any, Any]:
    return np.array([[0.5, -2, 0, 12], [1, 2, 3, np.nan]], getattr(ml_dtypes, name))


@pytest.fixture
def path(tmp_path: Path, name: str, values: np.ndarray[Any, Any]) -> Path:
    rk.write(tmp_path / "data", [{"x": row, "key": row[0]} for row in values], {"x": f"{name}[4]", "key": name})
    return tmp_path / "data"


class TestDtypesOfMlDtypes:
    def test_the_table_has_their_size(self, name: str) -> None:
        assert dtypes.itemsize(name) == dtypes.numpy_dtype(name).itemsize == np.dtype(getattr(ml_dtypes, name)).itemsize

    def test_rows_are_read_back(self, path: Path, values: np.ndarray[Any, Any]) -> None:
        read = np.stack([row["x"] for row in rk.open(path)])

        assert (read.dtype, read.tobytes()) == (values.dtype, values.tobytes())

    def test_a_schema_is_inferred(self, name: str, values: np.ndarray[Any, Any]) -> None:
        rows = [{"x": row, "key": row[0]} for row in values]

        assert rk.Schema.of_rows(rows) == rk.Schema({"x": f"{name}[4]", "key": name})

    def test_filters_compare_them(self, path: Path) -> None:
        assert [float(row["key"]) for row in rk.open(path).filter("key < 0.75")] == [0.5]

    def test_stats_are_those_of_numbers(self, path: Path) -> None:
        found = rk.stats(path).fields["x"]

        assert (found.min, found.max, found.nan, found.zeros) == (-2, 12, 1, 1)

    def test_a_cache_on_disk_keeps_them(self, path: Path, tmp_path: Path, values: np.ndarray[Any, Any]) -> None:
        pipeline = rk.open(path).batch(2).cache(tmp_path / "cache")

        for _ in range(2):
            [batch] = pipeline
            assert (batch["x"].dtype, batch["x"].tobytes()) == (values.dtype, values.tobytes())

    def test_commands_print_them(self, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert [main([command, str(path)]) for command in ("head", "cat", "stats", "info")] == [0, 0, 0, 0]
        assert "12" in capsys.readouterr().out

    def test_the_viewer_draws_them(self, values: np.ndarray[Any, Any]) -> None:
        assert drawings.summary(values) == {"min": -2, "max": 12, "mean": 16.5 / 7, "nan": 1}
        assert drawings.line(values[1, :3], 3) == [[0, 500, 1000]] * 2
        assert drawings.grid(values, 8) is not None

    def test_casts_that_would_change_a_value_are_refused(self, name: str) -> None:
        schema = rk.Schema({"x": name})

        with pytest.raises(rk.SchemaError, match=rf"Round with \.astype\(ml_dtypes\.{name}\)"):
            schema.check({"x": np.float32(0.1)})
        with pytest.raises(rk.SchemaError, match=r"It overflows to (infinity|NaN) in"):
            schema.check({"x": 1e300})

    def test_other_modules_do_not_import_the_package(self, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "ml_dtypes", None)

        assert str(rk.Schema({"x": name}).fields["x"]) == name
