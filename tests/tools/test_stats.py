"""Statistics of fields: against NumPy, merged by shards, and as they print."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recordkit as rk
from recordkit import images, progress
from recordkit.columns import Batch, BytesColumn, Ragged
from recordkit.dataset import open as open_dataset
from recordkit.errors import SchemaError
from recordkit.schema import Schema
from recordkit.storage.write import create
from recordkit.tools.stats._contents import Top
from recordkit.tools.stats._stats import Accumulator, Stats, stats, stats_of
from tests.tools.in_memory import MappedRecords

if TYPE_CHECKING:
    from pathlib import Path

    from recordkit.tools.stats._fields import FieldStats


def of_column(type: str, values: list[Any]) -> FieldStats:  # noqa: A002
    schema = Schema({"x": type})
    return stats_of([schema.decode(schema.encode_rows({"x": value} for value in values))], schema)["x"]


class TestNumbers:
    @given(st.lists(st.floats(width=32, min_value=-1e6, max_value=1e6), min_size=1, max_size=50))
    def test_floats_are_as_numpy_says(self, values: list[float]) -> None:
        found, array = of_column("float32", values), np.array(values, np.float32)

        assert (found.min, found.max, found.values) == (array.min(), array.max(), len(values))
        assert found.mean == pytest.approx(array.mean(dtype=float), rel=1e-6, abs=1e-3)
        assert found.std == pytest.approx(array.std(dtype=float), rel=1e-6, abs=1e-3)
        assert found.quantiles[0.5] == np.quantile(array, 0.5, method="inverted_cdf")
        assert found.distinct == len(set(values))
        assert found.zeros == values.count(0)
        assert found.histogram is not None
        assert sum(found.histogram.counts) == len(values)

    @pytest.mark.parametrize("dtype", ["uint8", "int8", "bool", "int16", "uint32", "int64", "uint64"])
    @settings(max_examples=40)
    @given(data=st.data())
    def test_whole_numbers_are_exact_but_for_the_mean(self, dtype: str, data: st.DataObject) -> None:
        low, high = (0, 1) if dtype == "bool" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
        values = data.draw(st.lists(st.integers(int(low), int(high)) | st.integers(0, 1), min_size=1, max_size=40))
        array = np.array(values, dtype)

        found = of_column(f"{dtype}[?]", [array])

        assert (found.min, found.max, found.zeros) == (min(values), max(values), values.count(0))
        assert found.quantiles[0.25] == sorted(values)[-(-len(values) // 4) - 1]
        assert found.distinct == len(set(values))
        # The mean is a float: as near as the size of the values lets it be, not as its own.
        assert abs(found.mean - sum(values) / len(values)) <= 1e-14 * max(map(abs, values))
        assert found.top[0].count == max(map(values.count, values))
        assert found.histogram is None or sum(found.histogram.counts) == len(values)

    @pytest.mark.parametrize("type", ["float8_e5m2", "float16", "bfloat16", "float32", "float64"])
    def test_nan_and_infinities_stand_apart(self, type: str) -> None:  # noqa: A002
        found = of_column(f"{type}[4]", [[1, np.nan, np.inf, -np.inf], [3, 0, np.nan, 0]])

        assert (found.values, found.nan, found.inf, found.zeros) == (8, 2, 2, 2)
        assert (found.min, found.max, found.mean) == (0, 3, 1)

    def test_a_float_without_infinities_has_nan(self) -> None:
        found = of_column("float8_e4m3fn[4]", [[1, np.nan, 2.5, -448], [3, 0, np.nan, 0]])

        assert (found.values, found.nan, found.inf, found.zeros) == (8, 2, 0, 2)
        assert (found.min, found.max) == (-448, 3)

    def test_complex_numbers_are_counted(self) -> None:
        found = of_column("complex64[3]", [[1j, 0, 1j], [complex("nan"), complex("inf"), 2]])

        assert (found.values, found.nan, found.inf, found.zeros, found.distinct) == (6, 1, 1, 1, 3)
        assert found.min is None

    def test_times_stay_times(self) -> None:
        days = [np.datetime64(f"2024-01-0{day}") for day in (1, 2, 6)] + [np.datetime64("NaT")]

        found = of_column("datetime64:D", days)

        assert (found.min, found.mean, found.max) == (days[0], np.datetime64("2024-01-03"), days[2])
        assert (found.nan, found.values, found.std) == (1, 4, np.timedelta64(2, "D"))
        assert found.histogram is not None
        assert found.histogram.edges[0] == days[0]

    def test_spans_of_a_counted_unit(self) -> None:
        found = of_column("timedelta64:25s", [np.timedelta64(n, (("s"), 25)) for n in (0, 4)])

        assert (found.max, found.zeros) == (np.timedelta64(100, "s"), 1)


class TestRecords:
    def test_missing_values_count_for_nothing_else(self) -> None:
        found = of_column("float32[2]?", [[1, 2], None, [3, 4], None])

        assert (found.records, found.missing, found.values, found.min) == (4, 2, 4, 1)

    def test_lengths_of_lists(self) -> None:
        found = of_column("int64[?]?", [[5, 6], [], None, [7]])

        assert found.lengths is not None
        assert (found.lengths.min, found.lengths.max, found.lengths.mean) == (0, 2, 1)
        assert (found.missing, found.values) == (1, 3)

    def test_shapes_of_arrays(self) -> None:
        found = of_column("float64[?,?]", [np.ones((2, 3)), np.ones((0, 3)), np.ones((2, 3))])

        assert found.shapes == (Top((2, 3), 2), Top((0, 3), 1))
        assert found.lengths is not None
        assert found.lengths.max == 6

    def test_lists_of_lists_count_their_values(self) -> None:
        schema = Schema({}, sequences={"x": "int64[?]"})
        batch = schema.decode(schema.encode_rows([{"x": [[1, 2], [3]]}, {"x": []}]))

        found = stats_of([batch], schema)["x"]

        assert found.type == "sequence of int64[?]"
        assert found.lengths is not None
        assert (found.lengths.min, found.lengths.max, found.values) == (0, 3, 3)

    def test_rows_of_vectors_count_their_numbers(self) -> None:
        ragged = Ragged(np.ones((3, 4)), (np.array([0, 1, 3]),))

        found = stats_of([Batch({"x": ragged}, 2)], Schema({"x": "float64[?,4]"}))["x"]

        assert found.lengths is not None
        assert (found.lengths.min, found.lengths.max, found.values) == (4, 8, 12)

    def test_no_records_have_no_values(self) -> None:
        found = stats_of([], Schema({"x": "int64"}))

        assert (found.rows, found["x"].min, found["x"].distinct) == (0, None, None)
        assert "x" in str(found)

    def test_numbers_and_byte_strings_in_one_field_are_an_error_in_words(self) -> None:
        schema = Schema({"x": "int64"})
        accumulator = Accumulator(schema)
        accumulator.add(Batch({"x": np.arange(2)}, 2))

        with pytest.raises(SchemaError, match="x: it holds numbers in some records, byte strings in others"):
            accumulator.add(Batch({"x": BytesColumn.of(["a"])}, 1))


class TestByteStrings:
    def test_texts_have_sizes_top_values_and_samples(self) -> None:
        found = of_column("string?", ["cat", "dog", "cat", "", None, "äö"])

        assert found.sizes is not None
        assert (found.sizes.min, found.sizes.max, found.values) == (0, 4, 5)
        assert found.top[0] == Top("cat", 2)
        assert found.samples == ("cat", "dog", "äö")
        assert found.distinct == 4

    def test_long_texts_are_told_apart_but_shown_cut(self) -> None:
        start = "x" * 200

        found = of_column("string", [start + "a", start + "b", start + "a"])

        assert found.top == (Top("x" * 40 + "…", 2), Top("x" * 40 + "…", 1))
        assert found.distinct == 2
        assert max(map(len, found.samples)) == 41

    def test_long_byte_strings_have_no_top_values(self) -> None:
        short, long = of_column("bytes", [b"\xff", b"\xff"]), of_column("bytes[2]", [[b"\xff", b"y" * 65]])

        assert (short.top, long.top, long.distinct) == ((Top(b"\xff", 2),), (), 2)

    @pytest.mark.parametrize("kind", ["jpeg", "png"])
    def test_pictures_tell_their_shapes(self, kind: Any) -> None:
        wide, grey = np.zeros((2, 6, 3), np.uint8), np.zeros((4, 4), np.uint8)
        pictures = [images.encode(wide, kind), images.encode(grey, kind), images.encode(wide, kind)]

        found = of_column(kind, [*pictures, images.SIGNATURES[kind]])

        assert found.shapes == (Top((2, 6, 3), 2), Top((4, 4, 1), 1))
        assert (found.bad_pictures, found.distinct) == (1, 3)


SCHEMA = Schema({"i": "int64", "f": "float32[3]?", "s": "string?", "r": "int64[?]", "u": "uint8", "b": "bytes",
                 "t": "datetime64:s", "c": "complex64"})  # fmt: skip


def some_rows(count: int) -> list[dict[str, Any]]:
    return [
        {"i": n * n % 97, "f": [n, n / 3, -n] if n % 4 else None, "s": f"s{n % 5}" if n % 3 else None,
         "r": list(range(n % 6)), "u": n % 256, "b": bytes([n % 9]), "t": np.datetime64(n, "s"), "c": n * 1j}
        for n in range(count)
    ]  # fmt: skip


class TestMerging:
    @settings(max_examples=40, deadline=None)
    @given(st.integers(0, 60), st.lists(st.integers(0, 60), max_size=4))
    def test_parts_of_few_records_give_exactly_the_whole(self, count: int, cuts: list[int]) -> None:
        chunk = SCHEMA.encode_rows(some_rows(count))
        whole = stats_of([SCHEMA.decode(chunk)], SCHEMA)
        places = [0, *sorted(min(cut, count) for cut in cuts), count]

        merged = Accumulator(SCHEMA)
        for start, stop in pairwise(places):
            part = Accumulator(SCHEMA)
            if start < stop:
                part.add(SCHEMA.decode(chunk, start=start, stop=stop))
            merged.merge(part)

        assert _rounded(merged.result().to_dict()) == _rounded(whole.to_dict()) or not count


def _rounded(value: Any) -> Any:
    """Sums of floats depend on their order in the last digits."""
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    return float(f"{value:.9g}") if isinstance(value, float) else value


class TestStats:
    dataset = MappedRecords(SCHEMA, SCHEMA.encode_rows(some_rows(5000)))

    def test_any_number_of_threads_says_the_same(self) -> None:
        found = [stats(self.dataset, workers=workers) for workers in (1, 3)]

        assert found[0].to_dict() == found[1].to_dict()
        assert (found[0].rows, found[0].total, found[0]["f"].missing) == (5000, 5000, 1250)

    def test_only_the_fields_asked_for(self) -> None:
        assert list(stats(self.dataset, fields=["u", "i"]).fields) == ["u", "i"]

    def test_a_sample_is_always_the_same(self) -> None:
        one, other = stats(self.dataset, sample=300), stats(self.dataset, sample=300)

        assert (one.rows, one.total) == (300, 5000)
        assert one.to_dict() == other.to_dict()
        assert str(one).startswith("300 records, a sample of 5,000\n")

    def test_says_how_far_it_has_come(self) -> None:
        reports: list[progress.Report] = []

        with progress.reporting(reports.append):
            stats(self.dataset)

        assert [report.done for report in reports] == [4096, 5000]

    def test_is_json(self) -> None:
        found = stats(self.dataset)

        plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))

        assert plain == found.to_dict()
        assert plain["fields"]["t"]["min"] == "1970-01-01T00:00:00"
        assert plain["fields"]["b"]["top"][0] == {"value": "\x00", "count": 556}

    def test_prints_a_table(self) -> None:
        rows = [{"id": n, "label": n % 2, "tokens": [1.5] * n, "note": "yes" if n else None} for n in range(4)]
        dataset = MappedRecords.of({"id": "int64", "label": "int64", "tokens": "float32[?]", "note": "string?"}, rows)

        assert str(stats(dataset)) == (
            "4 records\n"
            "field   type        missing  distinct  min  median  max  mean  std\n"
            "id      int64       0        4         0    1       3    1.5   1.118\n"
            "label   int64       0        2         0    0       1    0.5   0.5    most: 0 (50.0%), 1 (50.0%)\n"
            "tokens  float32[?]  0        1         1.5  1.5     1.5  1.5   0      length 0 to 3, median 1\n"
            "note    string?     1        1         3 B  3 B     3 B  3 B   0 B    most: yes (100.0%)"
        )

    def test_is_frozen(self) -> None:
        found: Any = Stats(0, 0, {})

        with pytest.raises(AttributeError):
            found.rows = 1


class TestFiles:
    @pytest.mark.parametrize("compression", [None, "gzip"])
    def test_files_say_what_their_rows_say(self, tmp_path: Path, compression: Any) -> None:
        rows = some_rows(500)
        with create(tmp_path / "data", SCHEMA, records_per_shard=150, compression=compression) as writer:
            for row in rows:
                writer.write(row)

        found = stats(tmp_path / "data")

        expected = stats(MappedRecords(SCHEMA, SCHEMA.encode_rows(rows)))
        assert found.to_dict() == expected.to_dict()
        assert stats(open_dataset(tmp_path / "data").take(90)).rows == 90
        assert stats(tmp_path / "data", sample=40)["i"].records == 40

    def test_payloads_have_no_fields(self, tmp_path: Path) -> None:
        with create(tmp_path / "data", SCHEMA) as writer:
            writer.write(some_rows(1)[0])

        with pytest.raises(SchemaError, match="these records have no fields"):
            stats(open_dataset(tmp_path / "data", raw=True))


class TestNeighbours:
    def test_tell_sorted_from_shuffled(self, tmp_path: Path) -> None:
        rk.write(tmp_path / "data", {"id": np.arange(5000)})
        ds = rk.open(tmp_path / "data")

        lying, shuffled, nearly = (
            rk.stats(each)["id"].neighbours for each in (ds, ds.shuffle(3), ds.shuffle(3, buffer=50))
        )

        assert None not in (lying, shuffled, nearly)
        assert lying < nearly < 0.1  # type: ignore[operator]
        assert abs(shuffled - 1) < 0.1  # type: ignore[operator]

    def test_a_field_in_runs_is_said_to_be(self, tmp_path: Path) -> None:
        rk.write(
            tmp_path / "data",
            {"label": np.repeat(np.arange(10), 100), "id": np.random.default_rng(0).permutation(1000)},
        )

        lines = str(rk.stats(tmp_path / "data")).splitlines()

        assert "sorted or in runs (neighbours 0.0" in lines[2]
        assert "runs" not in lines[3]

    def test_a_pipeline_of_other_things_than_rows_is_refused(self) -> None:
        with pytest.raises(SchemaError, match="expected rows of a dataset, found ndarray"):
            rk.stats(rk.from_generator(lambda: range(3)))
