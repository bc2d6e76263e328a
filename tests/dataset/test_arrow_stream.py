from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa
import pytest

import recordkit as rk
from recordkit.dataset import _dataset
from tests.dataset.files import SCHEMA, WAYS, flip, offset_of, rows, save, save_many

if TYPE_CHECKING:
    from pathlib import Path

RICH = rk.Schema(
    {"id": "int64", "box": "float32[2]", "tokens": "int64[?]", "tag": "string?", "data": "bytes"},
    sequences={"words": "string"},
)
RICH_ROWS: list[dict[str, Any]] = [
    {"id": i, "box": [i, 0.5], "tokens": list(range(i % 4)), "data": b"\xff" * i, "words": ["w"] * (i % 3)}
    | ({"tag": f"t{i}"} if i % 2 else {})
    for i in range(20)
]
WANTED = [{**row, "tag": row.get("tag")} for row in RICH_ROWS]


@pytest.fixture
def rich(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> rk.Dataset:
    """Fields of all kinds, in record batches of a few rows."""
    monkeypatch.setattr(_dataset, "_ARROW_BYTES", 300)
    chunks = [RICH.encode_rows(RICH_ROWS[:9]), RICH.encode_rows(RICH_ROWS[9:])]
    paths = [save(tmp_path / f"{number}.tfrecord", chunk) for number, chunk in enumerate(chunks)]
    return rk.open(paths, schema=RICH)


class TestPyarrow:
    def test_a_table_has_every_row_of_every_field(self, rich: rk.Dataset) -> None:
        table = pa.table(rich)

        assert table.to_pylist() == WANTED
        assert table.schema.names == ["id", "box", "tokens", "tag", "data", "words"]
        assert table["id"].num_chunks > 2

    def test_only_what_may_be_missing_is_nullable(self, rich: rk.Dataset) -> None:
        schema = pa.table(rich).schema

        assert [field.name for field in schema if field.nullable] == ["tag"]

    def test_it_is_nullable_though_none_of_the_first_rows_lacks_it(self, tmp_path: Path) -> None:
        schema = rk.Schema({"a": "int64?"})
        paths = [
            save(tmp_path / "0", schema.encode_rows([{"a": 1}, {"a": 2}])),
            save(tmp_path / "1", schema.encode_rows([{}, {"a": 3}])),
        ]

        assert pa.table(rk.open(paths, schema=schema))["a"].to_pylist() == [1, 2, None, 3]

    @pytest.mark.parametrize("way", WAYS)
    def test_is_a_stream_of_batches(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
        monkeypatch.setattr(_dataset, "_ARROW_BYTES", 500)
        ds = rk.open(save_many(tmp_path, [20, 0, 20], [way]), schema=SCHEMA)

        reader = pa.RecordBatchReader.from_stream(ds)

        batches = list(reader)
        assert len(batches) > 2
        assert pa.Table.from_batches(batches).to_pylist() == rows(0, 40)

    def test_the_batches_stay_when_the_dataset_is_gone(self, tmp_path: Path) -> None:
        reader = pa.RecordBatchReader.from_stream(rk.open(save_many(tmp_path, [20])))

        table = reader.read_all()
        del reader

        assert table.to_pylist() == rows(0, 20)

    def test_selection_and_range_hold(self, rich: rk.Dataset) -> None:
        table = rich.select("tag", "id").skip(3).take(2).to_arrow()

        assert table.to_pylist() == [{"tag": "t3", "id": 3}, {"tag": None, "id": 4}]
        assert table.schema.names == ["tag", "id"]

    def test_only_selected_fields_are_decoded(self, tmp_path: Path) -> None:
        ds = rk.open(save_many(tmp_path, [200, 100]), schema={"id": "uint8", "name": "string"})

        assert pa.table(ds.select("name")).num_rows == 300
        with pytest.raises(Exception, match="id: expected uint8, found 256"):
            pa.table(ds)

    def test_nothing_is_a_table_without_rows(self, rich: rk.Dataset, tmp_path: Path) -> None:
        empty = pa.table(rich.take(0))

        assert (empty.num_rows, empty.schema) == (0, pa.table(rich).schema)
        assert pa.table(rk.open(save(tmp_path / "none", []), schema={"a": "int64"})).num_rows == 0

    def test_an_error_in_the_middle_arrives_in_words(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(_dataset, "_ARROW_BYTES", 500)
        paths = save_many(tmp_path, [100, 100])
        at = offset_of(paths[1], 30)
        flip(paths[1], at + 12)
        reader = pa.RecordBatchReader.from_stream(rk.open(paths, schema=SCHEMA))
        reader.read_next_batch()

        with pytest.raises(Exception) as caught:  # noqa: PT011 - which one is pyarrow's to say
            reader.read_all()

        assert f"{paths[1]}: record 30 at byte {at}: the payload's checksum does not match" in str(caught.value)

    def test_a_stream_that_is_broken_off_can_be_left(self, rich: rk.Dataset) -> None:
        reader = pa.RecordBatchReader.from_stream(rich)
        reader.read_next_batch()

        reader.close()

        assert pa.table(rich).num_rows == 20


class TestOthers:
    def test_polars_takes_it(self, rich: rk.Dataset) -> None:
        frame = pl.DataFrame(rich)

        assert frame.drop("box").to_dicts() == [
            {name: value for name, value in row.items() if name != "box"} for row in WANTED
        ]
        assert frame["box"].to_list() == [row["box"] for row in WANTED]

    # Those that are no part of the group of test packages are tried where they are.
    if find_spec("pandas"):

        def test_pandas_takes_it(self, rich: rk.Dataset) -> None:
            frame = rich.select("id", "tag", "data").to_pandas()

            assert frame["id"].tolist() == list(range(20))
            assert frame["data"].tolist() == [row["data"] for row in WANTED]
            assert frame["tag"][1] == "t1"
            assert frame["tag"].isna().tolist() == [i % 2 == 0 for i in range(20)]

    if find_spec("duckdb"):

        def test_duckdb_takes_it(self, rich: rk.Dataset) -> None:
            import duckdb

            ds = rich.select("id", "tag", "tokens")

            relation = duckdb.sql("select sum(id), count(tag), sum(len(tokens)) from ds")

            assert len(ds) == 20
            assert relation is not None
            assert relation.fetchall() == [(190, 10, sum(len(row["tokens"]) for row in WANTED))]

    @pytest.mark.parametrize("name", ["pyarrow", "pandas"])
    def test_a_library_that_is_not_there_is_named(
        self, rich: rk.Dataset, monkeypatch: pytest.MonkeyPatch, name: str
    ) -> None:
        monkeypatch.setitem(__import__("sys").modules, name, None)

        with pytest.raises(rk.MissingExtraError, match=f"needs {name}: pip install"):
            (rich.to_arrow if name == "pyarrow" else rich.to_pandas)()
