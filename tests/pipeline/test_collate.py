from __future__ import annotations

from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordkit.columns import Batch, BytesColumn, Ragged
from recordkit.errors import SchemaError
from recordkit.pipeline import collate
from recordkit.pipeline._sequential_steps import rows_of
from tests.pipeline.sources import plain, plain_all


class Pair(NamedTuple):
    left: Any
    right: Any


leaves = st.sampled_from(
    [
        st.integers(-(2**63), 2**63 - 1),
        st.floats(allow_nan=False),
        st.booleans(),
        st.binary(max_size=5),
        st.text(max_size=5),
        st.lists(st.integers(-(2**63), 2**63 - 1), max_size=4),
        st.lists(st.binary(max_size=3), max_size=3),
        st.lists(st.text(max_size=3), min_size=1, max_size=3),
        st.integers(0, 9).map(np.int16),
        st.lists(st.integers(0, 255), max_size=3).map(lambda values: np.array(values, np.uint8)),
    ]
)


def within(inner: Any) -> Any:
    """A strategy for strategies: dicts and tuples of elements of one structure."""
    return st.one_of(
        st.dictionaries(st.text("abc", min_size=1, max_size=2), inner, min_size=1, max_size=3).map(
            st.fixed_dictionaries
        ),
        st.lists(inner, min_size=1, max_size=3).map(lambda each: st.tuples(*each)),
    )


structures = st.recursive(leaves, within, max_leaves=5)


class TestLaw:
    @given(st.data())
    def test_a_batch_holds_what_its_elements_hold(self, data: Any) -> None:
        elements = data.draw(st.lists(data.draw(structures), min_size=1, max_size=5))

        batch = collate(elements)

        assert plain_all(rows_of(batch)) == plain_all(elements)


class TestStructure:
    def test_dicts_keep_their_names(self) -> None:
        batch = collate([{"a": 1, "b": {"c": 2.5}}, {"b": {"c": 3.5}, "a": 2}])

        assert plain(batch) == {"a": [1, 2], "b": {"c": [2.5, 3.5]}}

    def test_tuples_keep_their_places(self) -> None:
        assert plain(collate([(1, ("x", b"y")), (2, ("z", b""))])) == ([1, 2], (["x", "z"], [b"y", b""]))

    def test_named_tuples_keep_their_kind(self) -> None:
        batch = collate([Pair(1, "a"), Pair(2, "b")])

        assert isinstance(batch, Pair)
        assert batch.left.tolist() == [1, 2]
        assert list(rows_of(batch)) == [Pair(1, "a"), Pair(2, "b")]
        assert all(isinstance(row, Pair) for row in rows_of(batch))

    def test_columns_stay_columns(self) -> None:
        rows = Batch({"n": np.arange(3)}, 3)

        assert collate(rows) is rows

    def test_batches_of_batches_have_one_more_dimension(self) -> None:
        batch = collate([Batch({"n": np.arange(2)}, 2), Batch({"n": np.arange(2) + 5}, 2)])

        assert batch["n"].tolist() == [[0, 1], [5, 6]]

    def test_what_numpy_has_no_type_for_is_listed(self) -> None:
        assert collate([Decimal(1), Decimal(2)]) == [Decimal(1), Decimal(2)]
        assert collate([1, 2**70]) == [1, 2**70]


class TestValues:
    def test_equal_shapes_are_stacked(self) -> None:
        batch = collate([np.zeros((2, 3), np.float32), np.ones((2, 3), np.float32)])

        assert (batch.shape, batch.dtype) == ((2, 2, 3), np.float32)

    def test_unequal_shapes_are_ragged(self) -> None:
        batch = collate([np.zeros((2, 3)), np.ones((1, 2))])

        assert isinstance(batch, Ragged)
        assert plain(batch) == [[[0.0] * 3] * 2, [[1.0] * 2]]

    def test_text_and_bytes_are_columns_of_them(self) -> None:
        batch = collate([{"t": "é", "b": b"\0"}, {"t": "", "b": bytearray(b"x\0")}])

        assert isinstance(batch["t"], BytesColumn)
        assert batch["t"].text
        assert plain(batch) == {"t": ["é", ""], "b": [b"\0", b"x\0"]}

    def test_lists_of_bytes_keep_their_zeros(self) -> None:
        assert plain(collate([[b"a\0", b"b"], [b"c\0"]])) == [[b"a\0", b"b"], [b"c\0"]]

    def test_empty_lists_have_the_type_of_the_others(self) -> None:
        for elements in ([[], [2**62 + 1]], [[2**62 + 1], []]):
            batch = collate(elements)

            assert batch.values.dtype == np.int64
            assert plain(batch) == elements

    def test_dates_stay_dates(self) -> None:
        days = [np.datetime64("2024-02-29"), np.datetime64("1970-01-01")]

        assert collate(days).tolist() == [day.item() for day in days]


class TestPadding:
    def test_rows_are_filled_up(self) -> None:
        assert collate([[1, 2], [3]], pad=-1).tolist() == [[1, 2], [3, -1]]
        assert collate([np.ones((1, 2)), np.ones((2, 1))], pad=0).shape == (2, 2, 2)

    def test_each_name_has_its_own(self) -> None:
        batch = collate(
            [{"a": [1], "b": {"c": [1]}, "d": [1]}, {"a": [], "b": {"c": []}, "d": []}], {"a": 7, "b": {"c": 8}}
        )

        assert batch["a"].tolist() == [[1], [7]]
        assert batch["b"]["c"].tolist() == [[1], [8]]
        assert isinstance(batch["d"], Ragged)

    def test_columns_are_filled_up(self) -> None:
        ragged = Ragged(np.arange(3), (np.array([0, 2, 3]),))
        rows = Batch({"t": ragged, "u": ragged, "n": np.arange(2)}, 2)

        assert plain(collate(rows, pad=9)) == {"t": [[0, 1], [2, 9]], "u": [[0, 1], [2, 9]], "n": [0, 1]}
        assert plain(collate(rows, pad={"u": 5})["u"]) == [[0, 1], [2, 5]]
        assert isinstance(collate(rows, pad={"u": 5})["t"], Ragged)

    def test_text_is_filled_up(self) -> None:
        assert plain(collate([{"t": ["a", "b"]}, {"t": ["c"]}], pad="")) == {"t": [["a", "b"], ["c", ""]]}


class TestUnlike:
    @pytest.mark.parametrize(
        ("elements", "words"),
        [
            ([1, "a"], "expected a number as in the first, found text in element 1"),
            (["a", 1], "expected text as in the first, found int in element 1"),
            (["a", b"a"], "expected text as in the first, found bytes in element 1"),
            ([1, {"a": 1}], "expected a number as in the first, found an object in element 1"),
            ([{"a": 1}, 1], r"expected the names \['a'\] as in the first, found int"),
            ([{"a": 1}, {"b": 1}], r"expected the names \['a'\] as in the first, found \['b'\]"),
            ([(1, 2), (1,)], "expected a tuple of 2 as in the first, found a tuple of 1"),
            ([(1,), [1]], "expected a tuple of 1 as in the first, found list"),
            ([[1], [[1]]], "expected 1 dimensions as in the first, found 2 dimensions"),
            ([-1, 2**63], "expected int64 as in the first, found uint64 in element 1"),
            ([np.int64(-1), np.uint64(2**63)], "expected int64 as in the first, found uint64"),
            ([np.datetime64("2024-02-29"), 1], "expected datetime64"),
        ],
    )
    def test_elements_of_other_kinds_are_named(self, elements: list[Any], words: str) -> None:
        with pytest.raises(SchemaError, match=words):
            collate(elements)

    def test_place_within_the_structure_is_named(self) -> None:
        with pytest.raises(SchemaError, match=r"^a/1/b: elements of a batch must have the same structure"):
            collate([{"a": (1, {"b": 1})}, {"a": (1, {"b": "x"})}])

    def test_none_is_named(self) -> None:
        with pytest.raises(SchemaError, match=r"^a: element 1 of 2 is None\n  Give it a value"):
            collate([{"a": 1}, {"a": None}])
        with pytest.raises(SchemaError, match="element 0 of 1 is None"):
            collate([None])

    def test_no_value_is_printed(self) -> None:
        with pytest.raises(SchemaError) as caught:
            collate(["secret", 7])

        assert "secret" not in str(caught.value)
