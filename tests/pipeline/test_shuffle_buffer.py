from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recordkit import _core
from recordkit.columns import Batch, BytesColumn, Ragged
from recordkit.pipeline import from_generator
from recordkit.pipeline._shuffle_buffer import ShuffleBuffer
from tests.pipeline.sources import plain

# What a column is made of, for rows of these numbers.
KINDS: dict[str, Any] = {
    "int64": lambda n: n,
    "float32": lambda n: n.astype(np.float32),
    "bool": lambda n: n % 2 == 1,
    "date": lambda n: n.astype("datetime64[s]"),
    "short text": lambda n: n.astype("U5"),
    "triple": lambda n: np.stack([n, -n, n + 1], axis=1),
    "by columns": lambda n: np.asfortranarray(np.stack([n, -n], axis=1)),
    "no width": lambda n: np.zeros((len(n), 0)),
    "objects": lambda n: np.array([("row", int(i)) for i in n] + [None], object)[:-1],
    "text": lambda n: BytesColumn.of([f"n{i}" * (i % 3) for i in n], text=True),
    "ragged": lambda n: Ragged(np.repeat(n, n % 4), (np.concatenate([[0], np.cumsum(n % 4)]),)),
}
kinds = st.sampled_from([*KINDS, "missing"])
# Those that may follow each other in a column.
ALIKE = (["int64", "float32", "bool", "missing"], ["triple", "ragged"])


def batch(numbers: np.ndarray[Any, Any], names: dict[str, str]) -> Batch:
    columns = {name: KINDS["int64" if kind == "missing" else kind](numbers) for name, kind in names.items()}
    valid = {name: numbers % 3 > 0 for name, kind in names.items() if kind == "missing"}
    return Batch({"id": numbers, **columns}, len(numbers), valid)


def listed(values: Any) -> list[Any]:
    return [plain(row) for row in (values.rows() if isinstance(values, Batch) else values)]


def swapped(held: list[Any], values: list[Any], slots: list[int]) -> list[Any]:
    """One after the other."""
    given = []
    for slot, value in zip(slots, values, strict=True):
        given.append(held[slot])
        held[slot] = value
    return given


class TestBuffer:
    @settings(max_examples=60)
    @given(st.data(), st.lists(st.sampled_from(ALIKE), max_size=3), st.integers(1, 9))
    def test_columns_may_change_on_the_way(self, data: st.DataObject, alike: list[list[str]], size: int) -> None:
        def drawn(first: int, count: int) -> Batch:
            return batch(np.arange(first, first + count), {f"{i}": data.draw(st.sampled_from(a)) for i, a in found})

        found = list(enumerate(alike))
        first = drawn(0, size)
        buffer, held = ShuffleBuffer(first), listed(first)
        for at in (20, 40, 60):
            parts = [drawn(at, data.draw(st.integers(1, 5))), drawn(at + 5, data.draw(st.integers(0, 5)))]
            rows = [row for part in parts for row in listed(part)]
            slots = data.draw(st.lists(st.integers(0, size - 1), min_size=len(rows), max_size=len(rows)))

            assert listed(buffer.swapped(parts, np.array(slots))) == swapped(held, rows, slots)
        assert listed(buffer.in_order(np.arange(size))) == held

    @given(st.data(), kinds, st.integers(1, 9))
    def test_every_value_comes_as_it_went_in(self, data: st.DataObject, kind: str, size: int) -> None:
        slots = np.array(data.draw(st.lists(st.integers(0, size - 1), max_size=20)), np.int64)
        buffer, came = (
            ShuffleBuffer(batch(np.arange(size), {"x": kind})),
            batch(np.arange(9, 9 + len(slots)), {"x": kind}),
        )
        held = listed(batch(np.arange(size), {"x": kind}))

        assert listed(buffer.swapped([came], slots)) == swapped(held, listed(came), slots.tolist())
        assert listed(buffer.in_order(np.arange(size))) == held

    def test_rows_of_other_names_make_a_list_of_it(self) -> None:
        buffer = ShuffleBuffer(Batch({"a": np.array([1, 2])}, 2))

        assert buffer.swapped([Batch({"b": np.array([3])}, 1), [4]], np.array([1, 1])) == [{"a": 2}, {"b": 3}]
        assert buffer.in_order(np.array([1, 0])) == [4, {"a": 1}]

    def test_what_went_in_is_left_as_it_was(self) -> None:
        column = np.array([1, 2])
        buffer = ShuffleBuffer(Batch({"a": column}, 2))

        found = buffer.swapped([Batch({"a": column}, 2)], np.array([0, 0]))

        assert listed(found) == [{"a": 1}, {"a": 1}]
        assert column.tolist() == [1, 2]

    def test_the_core_refuses_slots_that_do_not_fit(self) -> None:
        two = np.zeros((1, 2), np.uint8)
        for buffers, rows, width, slots in (
            (two, two, 1, [0, 2]),
            (two, two, 1, [0, -1]),
            (two, two, 1, [0]),
            (two, two, 0, [0]),
            (np.zeros((2, 2), np.uint8), two, 1, [0, 1]),
        ):
            with pytest.raises(ValueError, match="do not fit"):
                _core.swap_rows(buffers, rows, width, np.array(slots))


def test_rows_before_an_error_are_given_before_it() -> None:
    def some() -> Any:
        yield from ({"n": n} for n in range(100))
        message = "lost"
        raise RuntimeError(message)

    found: list[Any] = []
    with pytest.raises(RuntimeError, match="lost"):
        found.extend(iter(from_generator(some, {"n": "int64"}).shuffle(3, buffer=80)))

    assert len(found) == 20
