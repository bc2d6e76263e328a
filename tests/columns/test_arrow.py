"""The Arrow C data interface, which pyarrow and polars read without knowing of recordkit."""

from __future__ import annotations

import gc
import sys
import weakref
from typing import Any

import ml_dtypes
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordkit import records
from recordkit.columns import Batch, BytesColumn, Column, Ragged
from recordkit.examples import Decoder, Feature
from tests import wire


def taken(column: Any, valid: Any = None) -> Any:
    """The column as pyarrow sees it: the one column of a batch."""
    mask = None if valid is None else {"x": np.array(valid)}
    batch = pa.record_batch(Batch({"x": column}, len(column), mask))
    batch.validate(full=True)
    return batch.column(0)


NUMBERS: list[Any] = [
    np.array([-128, 127], np.int8),
    np.array([0, 255], np.uint8),
    np.array([-(2**15), 2**15 - 1], np.int16),
    np.array([0, 2**16 - 1], np.uint16),
    np.array([-(2**31), 2**31 - 1], np.int32),
    np.array([0, 2**32 - 1], np.uint32),
    np.array([-(2**63), 2**63 - 1], np.int64),
    np.array([0, 2**64 - 1], np.uint64),
    np.array([0.5, -65504], np.float16),
    np.array([0.1, np.inf], np.float32),
    np.array([0.1, -np.inf], np.float64),
    np.array([True, False, True] * 7),
]


class TestNumbers:
    @pytest.mark.parametrize("array", NUMBERS, ids=lambda array: array.dtype.name)
    def test_values_and_type_arrive(self, array: Any) -> None:
        column = taken(array)

        assert column.type == pa.from_numpy_dtype(array.dtype)
        assert column.to_pylist() == array.tolist()
        assert pl.DataFrame(Batch({"x": array}, len(array)))["x"].to_list() == array.tolist()

    @pytest.mark.parametrize("array", NUMBERS, ids=lambda array: array.dtype.name)
    def test_missing_ones_are_null(self, array: Any) -> None:
        valid = [i % 2 == 1 for i in range(len(array))]

        column = taken(array, valid)

        assert column.to_pylist() == [value if ok else None for value, ok in zip(array.tolist(), valid, strict=True)]
        assert column.null_count == valid.count(False)

    @pytest.mark.parametrize("order", ["<", ">"])
    @pytest.mark.parametrize("kind", ["i2", "u4", "i8", "f4", "f8", "M8[s]"])
    def test_either_byte_order_gives_the_values(self, order: str, kind: str) -> None:
        array = np.array([1, 2, 300]).astype(order + kind)

        assert taken(array).to_pylist() == array.tolist()

    def test_arrays_with_gaps_give_the_values(self) -> None:
        assert taken(np.arange(20)[::3]).to_pylist() == [0, 3, 6, 9, 12, 15, 18]

    @pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
    def test_datetimes_and_durations(self, unit: str) -> None:
        moments, spans = (np.array([0, 10**9, -5], f"{kind}8[{unit}]") for kind in "Mm")

        times, durations = taken(moments), taken(spans)

        assert (times.type, durations.type) == (pa.timestamp(unit), pa.duration(unit))
        assert (times.to_numpy() == moments).all()
        assert (durations.to_numpy() == spans).all()

    @pytest.mark.parametrize("dtype", ["M8[D]", "M8[h]", "m8[W]", "M8[10ms]", "O", "U3"])
    def test_what_arrow_does_not_know_is_refused_in_words(self, dtype: str) -> None:
        with pytest.raises(TypeError, match=r"^Arrow has no type for "):
            taken(np.zeros(2, dtype))

    def test_complex_numbers_are_pairs(self) -> None:
        for dtype, part in ((np.complex64, pa.float32()), (np.complex128, pa.float64())):
            column = taken(np.array([1 + 2j, 3 - 4j], dtype), [True, False])

            assert column.type.value_type == part
            assert column.to_pylist() == [[1.0, 2.0], None]

    @pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2])
    def test_dtypes_of_ml_dtypes_become_float32(self, dtype: Any) -> None:
        column = taken(np.array([1.5, -2.5], dtype))

        assert column.type == pa.float32()
        assert column.to_pylist() == [1.5, -2.5]

    @pytest.mark.parametrize("shape", [(2, 3), (2, 3, 4), (0, 3), (4, 1)])
    def test_dimensions_become_lists_of_fixed_size(self, shape: tuple[int, ...]) -> None:
        array = np.arange(int(np.prod(shape)), dtype=np.int32).reshape(shape)

        column = taken(array)

        assert pa.types.is_fixed_size_list(column.type)
        assert column.type.list_size == shape[1]
        assert column.to_pylist() == array.tolist()

    def test_rows_of_bools(self) -> None:
        array = np.random.default_rng(7).integers(0, 2, (5, 3)).astype(bool)

        assert taken(array).to_pylist() == array.tolist()

    def test_no_rows(self) -> None:
        assert taken(np.array([], np.float32)).to_pylist() == []


class TestBytes:
    @given(st.lists(st.text(max_size=5), max_size=6))
    def test_text_is_large_utf8(self, texts: list[str]) -> None:
        column = BytesColumn.of(texts, text=True)

        array = pa.array(column)
        array.validate(full=True)

        assert array.type == pa.large_string()
        assert array.to_pylist() == texts
        assert pl.Series(column).to_list() == texts

    @given(st.lists(st.binary(max_size=5), max_size=6))
    def test_bytes_are_large_binary(self, values: list[bytes]) -> None:
        array = pa.array(BytesColumn.of(values))
        array.validate(full=True)

        assert array.type == pa.large_binary()
        assert array.to_pylist() == values

    def test_a_slice_and_a_pick(self) -> None:
        column = BytesColumn.of(["a", "bb", "ccc", ""])

        assert pa.array(column[1:3]).to_pylist() == ["bb", "ccc"]
        assert pa.array(column[[3, 0]]).to_pylist() == ["", "a"]

    def test_rows_with_a_shape_are_lists_of_fixed_size(self) -> None:
        column = BytesColumn.of(list("abcdef")).reshape((3, 2))

        assert pa.array(column).type == pa.list_(pa.field("item", pa.large_string(), nullable=False), 2)
        assert pa.array(column).to_pylist() == [["a", "b"], ["c", "d"], ["e", "f"]]

    def test_missing_ones_are_null(self) -> None:
        assert taken(BytesColumn.of([b"a", b"", b""]), [True, True, False]).to_pylist() == [b"a", b"", None]


class TestRagged:
    ROWS = [[1, 2], [], [3]]

    def column(self) -> Ragged:
        return Ragged(np.array([1, 2, 3], np.int16), (np.array([0, 2, 2, 3]),))

    def test_one_level_is_a_large_list(self) -> None:
        array = pa.array(self.column())
        array.validate(full=True)

        assert pa.types.is_large_list(array.type)
        assert array.type.value_type == pa.int16()
        assert array.to_pylist() == self.ROWS
        assert pl.Series(self.column()).to_list() == self.ROWS

    def test_missing_rows_are_null_and_not_empty(self) -> None:
        assert taken(self.column(), [True, False, True]).to_pylist() == [[1, 2], None, [3]]

    def test_levels_nest(self) -> None:
        column = Ragged(np.arange(5), (np.array([0, 2, 2, 3]), np.array([0, 2, 2, 5])))

        assert pa.array(column).to_pylist() == [[[0, 1], []], [], [[2, 3, 4]]]
        assert pl.Series(column).to_list() == [[[0, 1], []], [], [[2, 3, 4]]]

    def test_rows_of_differing_shape(self) -> None:
        column = Ragged.rectangular(np.arange(6.0), np.array([[2, 2], [0, 5], [1, 2]]))

        assert pa.array(column).to_pylist() == [[[0.0, 1.0], [2.0, 3.0]], [], [[4.0, 5.0]]]

    def test_rows_of_text_and_rows_of_vectors(self) -> None:
        texts = Ragged(BytesColumn.of(["a", "b", "c"]), (np.array([0, 2, 2, 3]),))
        vectors = Ragged(np.arange(6).reshape(3, 2), (np.array([0, 2, 2, 3]),))

        assert pa.array(texts).to_pylist() == [["a", "b"], [], ["c"]]
        assert pa.array(vectors).to_pylist() == [[[0, 1], [2, 3]], [], [[4, 5]]]

    def test_a_slice_and_a_pick(self) -> None:
        assert pa.array(self.column()[1:]).to_pylist() == [[], [3]]
        assert pa.array(self.column()[[2, 0]]).to_pylist() == [[3], [1, 2]]


class TestBatch:
    def batch(self) -> Batch:
        columns: dict[str, Column] = {
            "id": np.array([1, 2]),
            "name": BytesColumn.of(["a", ""]),
            "tokens": Ragged(np.array([5, 6, 7]), (np.array([0, 3, 3]),)),
            "when": np.array([0, 1], "M8[us]"),
            "ok": np.array([True, False]),
        }
        return Batch(columns, 2, {"name": np.array([True, False])})

    EXPECTED = {"id": [1, 2], "name": ["a", None], "tokens": [[5, 6, 7], []], "ok": [True, False]}

    def test_is_a_record_batch_for_pyarrow(self) -> None:
        batch = pa.record_batch(self.batch())
        batch.validate(full=True)

        assert batch.schema.names == ["id", "name", "tokens", "when", "ok"]
        assert [field.nullable for field in batch.schema] == [False, True, False, False, False]
        assert batch.drop_columns(["when"]).to_pydict() == self.EXPECTED

    def test_is_a_frame_for_polars(self) -> None:
        frame = pl.DataFrame(self.batch())

        assert frame.drop("when").to_dict(as_series=False) == self.EXPECTED
        assert frame["when"].dtype == pl.Datetime("us")

    def test_columns_made_when_asked_for_are_made(self) -> None:
        assert pa.record_batch(Batch({"x": lambda: np.array([1, 2])}, 2)).to_pydict() == {"x": [1, 2]}

    def test_without_columns_or_rows(self) -> None:
        assert pa.record_batch(Batch({}, 0)).num_rows == 0
        assert pa.record_batch(Batch({"x": np.array([], np.int64)}, 0)).to_pydict() == {"x": []}

    def test_what_a_decoder_gives_goes_straight_to_arrow(self) -> None:
        chunk = records.pack_many([wire.example(wire.entry("x", wire.ints(*range(n)))) for n in range(4)])
        found = Decoder([Feature("x", "int64")]).decode(chunk)["x"]

        assert isinstance(found.values, np.ndarray)
        assert found.offsets is not None
        assert pa.array(Ragged(found.values, (found.offsets,))).to_pylist() == [[], [0], [0, 1], [0, 1, 2]]


class Memory(bytearray):
    """Memory that can be watched as it goes, which NumPy's own cannot."""


def watched(size: int = 1000) -> tuple[Any, weakref.ref[Memory]]:
    memory = Memory(np.arange(size).tobytes())
    return np.frombuffer(memory, np.int64), weakref.ref(memory)


class TestMemory:
    """The Arrow structures hold what they point at, and let go of it whoever drops them last."""

    def test_no_copy_is_made(self) -> None:
        array = np.arange(1000)

        assert np.shares_memory(taken(array).to_numpy(), array)

    def test_capsules_that_nobody_takes_let_go(self) -> None:
        array, gone = watched()
        capsules = Batch({"x": array}, len(array)).__arrow_c_array__()
        del array
        gc.collect()
        assert gone() is not None

        del capsules
        gc.collect()

        assert gone() is None

    def test_a_consumer_keeps_the_memory_when_the_source_is_gone(self) -> None:
        array, gone = watched()
        batch = Batch({"x": array}, len(array))
        kept = pa.record_batch(batch)
        del array, batch
        gc.collect()

        assert kept.column(0).to_pylist() == list(range(1000))

        del kept
        gc.collect()
        assert gone() is None

    def test_a_child_keeps_the_memory_when_its_batch_is_gone(self) -> None:
        array, gone = watched()
        column = pa.record_batch(Batch({"x": array, "y": np.zeros(1000)}, 1000)).column(0)
        del array
        gc.collect()

        assert column[999].as_py() == 999

        del column
        gc.collect()
        assert gone() is None

    def test_polars_keeps_and_lets_go_too(self) -> None:
        array, gone = watched()
        frame = pl.DataFrame(Batch({"x": array}, len(array)))
        del array
        gc.collect()

        assert gone() is not None
        assert frame["x"].sum() == 499_500

        del frame
        gc.collect()
        assert gone() is None

    def test_one_capsule_taken_and_the_other_not(self) -> None:
        array, gone = watched()
        schema, data = Batch({"x": array}, len(array)).__arrow_c_array__()

        assert pa.DataType._import_from_c_capsule(schema).num_fields == 1
        del array, schema, data
        gc.collect()

        assert gone() is None

    def test_offering_again_and_again_leaks_nothing(self) -> None:
        array = np.arange(10)
        batch = Batch({"x": array, "y": BytesColumn.of(["a"] * 10), "z": Ragged(array, (np.arange(11),))}, 10)
        pa.record_batch(batch)
        before = sys.getrefcount(array)

        for _ in range(200):
            pa.record_batch(batch)
            batch.__arrow_c_array__()

        assert sys.getrefcount(array) == before
