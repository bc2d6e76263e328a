from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordkit import _core
from recordkit.columns import Batch, BytesColumn, Column, Ragged, _bytes
from recordkit.errors import SchemaError

ROWS = st.lists(st.lists(st.integers(-9, 9), max_size=4), max_size=6)
TEXTS = st.lists(st.text(max_size=4), max_size=6)
# Each picks rows of a column as it does of a NumPy array.
PICKS: list[Any] = [slice(1, 3), slice(None, None, -1), slice(0, 0), slice(None), [2, 0, 2], np.array([1]), []]
PICKS += [np.array([True, False, True, True]), np.array([-1, 0])]


def ragged(rows: list[list[Any]]) -> Ragged:
    flat = [value for row in rows for value in row]
    return Ragged(np.array(flat, np.int64), (np.cumsum([0, *map(len, rows)]),))


def nested(rows: list[list[list[int]]]) -> Ragged:
    inner = [part for row in rows for part in row]
    flat = [value for part in inner for value in part]
    return Ragged(np.array(flat, np.int64), (np.cumsum([0, *map(len, rows)]), np.cumsum([0, *map(len, inner)])))


def rectangular(rows: list[Any]) -> Ragged:
    flat = np.concatenate([np.asarray(row).ravel() for row in rows])
    return Ragged.rectangular(flat, np.array([np.shape(row) for row in rows]))


def picked(rows: list[Any], pick: Any) -> list[Any]:
    return [rows[i] for i in np.arange(len(rows))[pick].tolist()]


class TestBytesColumn:
    @pytest.mark.parametrize("values", [[], [b"", b"abc", b""], ["é", "", "ab"]])
    def test_its_values_come_one_after_the_other(self, values: list[bytes | str]) -> None:
        column = BytesColumn.of([*values[:1], *values])[len(values[:1]) :]  # data and offsets of a part

        assert list(column) == [column[i] for i in range(len(column))] == values
        assert column.to_numpy().dtype == object
        assert column.to_numpy().tolist() == values

    def test_rows_of_several_values_come_as_columns(self) -> None:
        rows = list(BytesColumn.of([b"a", b"b", b"c", b"d"]).reshape((2, 2)))

        assert [row.to_list() for row in rows] == [[b"a", b"b"], [b"c", b"d"]]

    @given(TEXTS)
    def test_gives_back_the_text_it_was_made_of(self, texts: list[str]) -> None:
        column = BytesColumn.of(texts, text=True)

        assert column.to_list() == list(column) == texts
        assert column.to_numpy().tolist() == texts
        assert column.lengths.tolist() == [len(text.encode()) for text in texts]
        assert (len(column), column.shape) == (len(texts), (len(texts),))

    @given(st.lists(st.binary(max_size=5), max_size=6))
    def test_gives_back_the_bytes_it_was_made_of(self, values: list[bytes]) -> None:
        assert BytesColumn.of(values).to_list() == values

    def test_text_is_told_by_the_first_value(self) -> None:
        assert BytesColumn.of(["a"]).text
        assert not BytesColumn.of([b"a"]).text
        assert not BytesColumn.of([]).text

    def test_indexes_like_a_list(self) -> None:
        column = BytesColumn.of([b"a", b"", b"ccc"])

        assert (column[0], column[-1], column[np.int64(1)]) == (b"a", b"ccc", b"")
        for outside in (3, -4):
            with pytest.raises(IndexError):
                column[outside]

    @pytest.mark.parametrize("pick", PICKS, ids=str)
    def test_slices_and_arrays_pick_rows(self, pick: Any) -> None:
        rows = ["zero", "", "ünï", "three"]

        part = BytesColumn.of(rows)[pick]

        assert isinstance(part, BytesColumn)
        assert part.to_list() == picked(rows, pick)
        assert part.text

    def test_a_slice_does_not_copy(self) -> None:
        column = BytesColumn.of([b"abc", b"def", b"ghi"])

        assert np.shares_memory(column[1:].data, column.data)

    @pytest.mark.parametrize("pick", PICKS, ids=str)
    def test_rows_with_a_shape_stay_together(self, pick: Any) -> None:
        rows = [[[f"{r}{i}{j}" for j in range(3)] for i in range(2)] for r in range(4)]
        column = BytesColumn.of(np.array(rows).ravel().tolist()).reshape((4, 2, 3))

        part = column[pick]

        assert column.to_list() == rows
        assert part.to_list() == picked(rows, pick)
        assert part.shape == (len(picked(rows, pick)), 2, 3)

    def test_one_row_of_a_shape_is_a_column_of_it(self) -> None:
        column = BytesColumn.of(list("abcdef")).reshape((3, 2))

        assert column[1] == BytesColumn.of(["c", "d"])
        assert column[-1].to_list() == ["e", "f"]
        assert [row.to_list() for row in column] == [["a", "b"], ["c", "d"], ["e", "f"]]

    @pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0), (2, 0, 3)])
    def test_shapes_without_values(self, shape: tuple[int, ...]) -> None:
        column = BytesColumn.of([]).reshape(shape)

        assert (len(column), column.shape) == (shape[0], shape)
        assert column.to_list() == np.empty(shape).tolist()
        assert column[:1].shape == (min(shape[0], 1), *shape[1:])

    def test_a_shape_that_does_not_fit_is_refused(self) -> None:
        with pytest.raises(ValueError, match=r"^3 values do not fill the shape \(2, 2\)$"):
            BytesColumn.of([b"a", b"b", b"c"]).reshape((2, 2))

    def test_equal_columns_are_equal_whatever_their_buffers(self) -> None:
        shifted = BytesColumn(np.frombuffer(b"..ab", np.uint8), np.array([2, 3, 4]))

        assert shifted == BytesColumn.of([b"a", b"b"])
        assert shifted != BytesColumn.of(["a", "b"])
        assert shifted != BytesColumn.of([b"a", b"c"])
        assert shifted != [b"a", b"b"]
        with pytest.raises(TypeError):
            hash(shifted)

    def test_says_what_it_is(self) -> None:
        assert repr(BytesColumn.of(["ab", "c"])) == "BytesColumn(shape=(2,), text, 3 bytes)"


class TestRagged:
    @given(ROWS)
    def test_gives_back_its_rows(self, rows: list[list[int]]) -> None:
        column = ragged(rows)

        assert column.to_list() == rows
        assert [row.tolist() for row in column] == rows
        assert len(column) == len(rows)

    @given(ROWS)
    def test_padded_rows_begin_with_their_values(self, rows: list[list[int]]) -> None:
        padded = ragged(rows).to_padded(-1)

        longest = max(map(len, rows), default=0)
        assert padded.shape == (len(rows), longest)
        assert padded.tolist() == [row + [-1] * (longest - len(row)) for row in rows]

    @given(ROWS, st.data())
    def test_picks_rows_like_a_list(self, rows: list[list[int]], data: st.DataObject) -> None:
        rows_picked = data.draw(st.lists(st.integers(0, max(len(rows) - 1, 0)), max_size=8 if rows else 0))
        ends = st.integers(-7, 7)
        start, stop, step = data.draw(st.tuples(ends, ends, st.sampled_from([-2, -1, 1, 3])))

        column = ragged(rows)

        assert column[np.array(rows_picked, np.int64)].to_list() == [rows[i] for i in rows_picked]
        assert column[start:stop:step].to_list() == rows[start:stop:step]

    def test_indexes_like_a_list(self) -> None:
        column = ragged([[1, 2], [], [3]])

        assert (column[0].tolist(), column[-1].tolist(), column[np.int64(1)].tolist()) == ([1, 2], [3], [])
        for outside in (3, -4):
            with pytest.raises(IndexError):
                column[outside]

    def test_values_may_have_dimensions_of_their_own(self) -> None:
        column = Ragged(np.arange(8).reshape(4, 2), (np.array([0, 1, 1, 4]),))

        assert column[2].tolist() == [[2, 3], [4, 5], [6, 7]]
        assert column.to_list() == [[[0, 1]], [], [[2, 3], [4, 5], [6, 7]]]
        assert column.to_padded(9).shape == (3, 3, 2)
        assert column[[2, 0]].to_list() == [[[2, 3], [4, 5], [6, 7]], [[0, 1]]]

    def test_rows_of_bytes(self) -> None:
        column = Ragged(BytesColumn.of(["a", "b", "c"]), (np.array([0, 2, 2, 3]),))

        assert column.to_list() == [["a", "b"], [], ["c"]]
        assert column[0] == BytesColumn.of(["a", "b"])
        assert column[::-1].to_list() == [["c"], [], ["a", "b"]]
        assert column.to_padded("").tolist() == [["a", "b"], ["", ""], ["c", ""]]

    def test_says_what_it_is(self) -> None:
        assert repr(ragged([[1], [2, 3]])) == "Ragged(2 rows, 3 values of int64)"
        assert repr(Ragged(BytesColumn.of([b"a"]), (np.array([0, 1]),))) == "Ragged(1 rows, 1 values of bytes)"


class TestLevels:
    ROWS = [[[1, 2], []], [], [[3]], [[], [4, 5, 6], [7]]]

    def test_a_row_of_two_levels_is_ragged_itself(self) -> None:
        column = nested(self.ROWS)

        assert column.to_list() == self.ROWS
        assert isinstance(column[0], Ragged)
        assert [column[i].to_list() for i in range(-4, 4)] == self.ROWS * 2
        assert column[3][1].tolist() == [4, 5, 6]

    @pytest.mark.parametrize("pick", PICKS, ids=str)
    def test_slices_and_arrays_pick_rows(self, pick: Any) -> None:
        assert nested(self.ROWS)[pick].to_list() == picked(self.ROWS, pick)

    def test_padding_fills_every_level(self) -> None:
        padded = nested(self.ROWS).to_padded(0)

        assert padded.tolist() == [
            [[1, 2, 0], [0, 0, 0], [0, 0, 0]],
            [[0, 0, 0], [0, 0, 0], [0, 0, 0]],
            [[3, 0, 0], [0, 0, 0], [0, 0, 0]],
            [[0, 0, 0], [4, 5, 6], [7, 0, 0]],
        ]

    @given(st.lists(st.lists(st.lists(st.integers(0, 9), max_size=3), max_size=3), max_size=4))
    def test_any_nesting_comes_back(self, rows: list[list[list[int]]]) -> None:
        column = nested(rows)

        assert column.to_list() == rows
        assert column[::-1].to_list() == rows[::-1]

    def test_three_levels(self) -> None:
        deep = [[[[1], [2, 3]], []], [[[4]]]]
        column = Ragged(np.array([1, 2, 3, 4]), (np.array([0, 2, 3]), np.array([0, 2, 2, 3]), np.array([0, 1, 3, 4])))

        assert column.to_list() == deep
        assert column[[1, 0]].to_list() == deep[::-1]
        assert column.to_padded(0).shape == (2, 2, 2, 2)


class TestRectangular:
    ROWS = [np.arange(size).reshape(shape) for size, shape in ((4, (2, 2)), (3, (1, 3)), (0, (0, 5)), (0, (3, 0)))]

    def test_every_row_keeps_its_shape(self) -> None:
        column = rectangular(self.ROWS)

        assert [row.shape for row in column] == [(2, 2), (1, 3), (0, 5), (3, 0)]
        assert [row.tolist() for row in column] == [row.tolist() for row in self.ROWS]
        assert column.to_list() == [[[0, 1], [2, 3]], [[0, 1, 2]], [], [[], [], []]]

    @pytest.mark.parametrize("pick", PICKS, ids=str)
    def test_picked_rows_keep_theirs(self, pick: Any) -> None:
        part = rectangular(self.ROWS)[pick]

        expected = picked(self.ROWS, pick)
        assert [row.shape for row in part] == [row.shape for row in expected]
        assert part.to_list() == [row.tolist() for row in expected]

    def test_levels_follow_from_the_shapes(self) -> None:
        outer, inner = rectangular(self.ROWS).offsets

        assert outer.tolist() == [0, 2, 3, 3, 6]
        assert inner.tolist() == [0, 2, 4, 7, 7, 7, 7]

    def test_padding_reaches_the_largest_of_each_dimension(self) -> None:
        padded = rectangular(self.ROWS).to_padded(-1)

        assert padded.shape == (4, 3, 3)
        assert padded[0].tolist() == [[0, 1, -1], [2, 3, -1], [-1, -1, -1]]
        assert (padded[2:] == -1).all()

    def test_dimensions_that_do_not_vary_may_stay_in_the_values(self) -> None:
        values = np.arange(12).reshape(-1, 2)
        column = Ragged.rectangular(values, np.array([[1, 2, 2], [2, 2, 2]]))

        assert column[1].tolist() == values[2:].reshape(2, 2, 2).tolist()
        assert len(column.offsets) == 2

    def test_rows_of_text(self) -> None:
        column = Ragged.rectangular(BytesColumn.of(list("abcdef")), np.array([[2, 2], [1, 2], [0, 7]]))

        assert column.to_list() == [[["a", "b"], ["c", "d"]], [["e", "f"]], []]
        assert column[2].shape == (0, 7)

    @pytest.mark.parametrize("shape", [(2**32, 0), (2**20, 2**20, 0), (3, 2**40, 0)])
    def test_a_shape_of_too_many_empty_rows_takes_no_memory(self, shape: tuple[int, ...]) -> None:
        shapes = np.array([shape, (2,) * len(shape), shape])
        column = Ragged.rectangular(np.arange(2 ** len(shape)), shapes)

        assert [row.shape for row in column] == [shape, (2,) * len(shape), shape]
        assert [row.shape for row in column[[2, 1]]] == [shape, (2,) * len(shape)]
        assert column[1:][0].reshape(-1).tolist() == list(range(2 ** len(shape)))
        for refused in (lambda: column.offsets, column.to_list, column.to_padded):
            with pytest.raises(SchemaError, match="so many empty rows have no offsets or lists"):
                refused()

    @pytest.mark.parametrize(("rows", "allowed"), [(1 << 24, True), ((1 << 24) + 1, False)])
    def test_sixteen_million_empty_rows_have_offsets(self, rows: int, allowed: bool) -> None:
        column = Ragged.rectangular(np.array([], np.int64), np.array([[rows, 0]]))

        with nullcontext() if allowed else pytest.raises(SchemaError):
            assert [len(level) for level in column.offsets] == [2, rows + 1]

    def test_no_rows(self) -> None:
        column = Ragged.rectangular(np.array([], np.int64), np.empty((0, 2), np.int64))

        assert (len(column), column.to_list(), column.to_padded().shape) == (0, [], (0, 0, 0))


class TestBatch:
    def batch(self) -> Batch:
        columns: dict[str, Column] = {
            "label": np.array([1, 2, 3]),
            "name": BytesColumn.of(["a", "b", ""]),
            "ids": ragged([[1], [], [2, 3]]),
        }
        return Batch(columns, 3, {"name": np.array([True, True, False])})

    def test_is_a_mapping_of_columns(self) -> None:
        batch = self.batch()

        assert batch.names == batch.keys() == tuple(batch) == ("label", "name", "ids")
        assert len(batch) == 3
        assert "label" in batch
        assert "other" not in batch
        assert dict(batch)["name"] is batch["name"]
        with pytest.raises(KeyError):
            batch["other"]

    def test_says_which_rows_have_a_value(self) -> None:
        batch = self.batch()

        assert batch.valid("name").tolist() == [True, True, False]
        assert batch.valid("label").tolist() == [True, True, True]
        with pytest.raises(KeyError):
            batch.valid("other")

    def test_gives_rows_with_none_where_there_is_no_value(self) -> None:
        batch = self.batch()

        assert batch.row(0)["ids"].tolist() == [1]
        assert [(row["label"], row["name"]) for row in batch.rows()] == [(1, "a"), (2, "b"), (3, None)]
        assert batch.row(-1)["name"] is None
        with pytest.raises(IndexError):
            batch.row(3)

    def test_a_column_given_as_a_function_is_made_once_when_asked_for(self) -> None:
        made = []

        def make() -> Any:
            made.append(1)
            return np.array([1, 2])

        batch = Batch({"x": make, "y": np.array([3, 4])}, 2)
        before = list(made)
        first, second = batch["x"], batch["x"]

        assert (before, made) == ([], [1])
        assert first is second

    def test_a_failing_function_fails_again(self) -> None:
        batch = Batch({"x": lambda: 1 / 0}, 2)  # type: ignore[dict-item,return-value]

        for _ in range(2):
            with pytest.raises(ZeroDivisionError):
                batch["x"]

    def test_says_what_it_is(self) -> None:
        assert repr(self.batch()) == "Batch(3 rows: label, name, ids)"


class TestPadding:
    @pytest.mark.parametrize(
        "dtype", ["bool", "uint8", "int16", "float32", "int64", "complex128", "datetime64[ns]", "S3"]
    )
    @pytest.mark.parametrize("inner", [(), (2,), (0,)])
    @given(lengths=st.lists(st.integers(0, 5), max_size=6), first=st.integers(0, 3), fill=st.sampled_from([0, 1]))
    def test_is_every_row_with_the_fill_behind_it(
        self, dtype: str, inner: tuple[int, ...], lengths: list[int], first: int, fill: int
    ) -> None:
        offsets = first + np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        values = np.arange(offsets[-1] * int(np.prod(inner))).astype(dtype).reshape(offsets[-1], *inner)

        padded = Ragged(values, (offsets,)).to_padded(fill)

        assert (padded.dtype, padded.shape) == (values.dtype, (len(lengths), max(lengths, default=0), *inner))
        for row, start, stop in zip(padded, offsets, offsets[1:], strict=False):
            assert np.array_equal(row[: stop - start], values[start:stop])
            assert (row[stop - start :] == np.full((), fill, dtype)).all()

    def test_rows_of_values_that_lie_apart_are_filled_too(self) -> None:
        values = np.arange(12)[::2]

        assert Ragged(values, (np.array([0, 1, 4]),)).to_padded(-1).tolist() == [[0, -1, -1], [2, 4, 6]]

    @given(
        rows=st.lists(st.lists(st.integers(0, 99), max_size=5), max_size=9),
        size=st.integers(1, 10),
        texts=st.booleans(),
    )
    def test_in_batches_is_each_batch_by_itself(self, rows: list[list[int]], size: int, texts: bool) -> None:
        offsets = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
        flat = [value for row in rows for value in row]
        column = Ragged(BytesColumn.of(list(map(str, flat))) if texts else np.array(flat, np.int64), (offsets,))

        batches = column.padded_batches(size, "" if texts else -1)

        alone = [column[at : at + size].to_padded("" if texts else -1) for at in range(0, len(rows), size)]
        assert [batch.tolist() for batch in batches] == [batch.tolist() for batch in alone]
        assert [batch.shape for batch in batches] == [batch.shape for batch in alone]

    def test_more_rows_than_there_are_make_one_batch(self) -> None:
        ones = np.ones(3, np.uint8)

        batches = _core.pad(ones, np.array([0, 2, 3]), np.zeros(1, np.uint8), 2**64 - 1)

        assert [batch.tolist() for batch in batches] == [[1, 1, 1, 0]]

    def test_the_core_refuses_rows_that_do_not_fit(self) -> None:
        values, fill = np.zeros(4, np.uint8), np.zeros(1, np.uint8)

        for starts, rows in (([0, 5], 1), ([2, 1], 1), ([-1, 1], 1), ([], 1), ([0, 2], 0)):
            with pytest.raises(ValueError, match="do not fit"):
                _core.pad(values, np.array(starts, np.int64), fill, rows)


class TestRuns:
    @pytest.mark.parametrize("dtype", ["uint8", "float32", "int64", "U3", "O"])
    @pytest.mark.parametrize("inner", [(), (2,), (0,)])
    @given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 3)), max_size=6))
    def test_are_copied_in_any_order(self, dtype: str, inner: tuple[int, ...], runs: list[tuple[int, int]]) -> None:
        values = np.arange(9 * int(np.prod(inner))).astype(dtype).reshape(9, *inner)
        starts = np.array([start for start, _ in runs], np.int64)

        found = _bytes.picked(values, starts, _bytes.to_offsets(np.array([length for _, length in runs], np.int64)))

        expected = [row for start, length in runs for row in values[start : start + length].tolist()]
        assert (found.tolist(), found.dtype, found.shape[1:]) == (expected, values.dtype, inner)

    def test_the_core_refuses_runs_that_do_not_fit(self) -> None:
        values, out = np.zeros(4, np.uint8), np.zeros(2, np.uint8)

        for starts, offsets in (([3], [0, 2]), ([-1], [0, 2]), ([0], [0, 3]), ([0], [1, 2]), ([0, 0], [0, 3, 2])):
            with pytest.raises(ValueError, match="do not fit"):
                _core.pick_runs(values, np.array(starts), np.array(offsets), 1, out)
