from __future__ import annotations

import json
import math
import pickle
from collections import OrderedDict
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from recordkit.columns import Batch, BytesColumn, Ragged
from recordkit.errors import SchemaError, StateError
from recordkit.pipeline._cache_format import dump, load

if TYPE_CHECKING:
    from collections.abc import Callable


class Point(NamedTuple):
    x: int


def objects(values: list[Any]) -> Any:
    array = np.empty(len(values), object)
    for place, value in enumerate(values):
        array[place] = value
    return array


DTYPES = st.one_of(
    npst.boolean_dtypes(),
    npst.integer_dtypes(endianness="?"),
    npst.floating_dtypes(endianness="?"),
    npst.complex_number_dtypes(),
    npst.datetime64_dtypes(),
    npst.timedelta64_dtypes(),
    npst.byte_string_dtypes(max_len=5),
    npst.unicode_string_dtypes(max_len=5),
)
SHAPES = npst.array_shapes(min_dims=0, min_side=0)
ARRAYS = DTYPES.flatmap(lambda dtype: npst.arrays(dtype, SHAPES)) | st.one_of(
    npst.arrays("<u2", SHAPES).map(lambda array: array.view(ml_dtypes.bfloat16)),
    npst.arrays("u1", SHAPES).map(lambda array: array.view(ml_dtypes.float8_e4m3fn)),
    npst.arrays("u1", SHAPES).map(lambda array: array.view(ml_dtypes.float8_e5m2)),
)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary()
KEYS = st.text() | st.integers() | st.tuples(st.booleans(), st.binary())
BYTES_COLUMNS = st.lists(st.binary(max_size=9)).map(BytesColumn.of) | st.lists(st.text(max_size=9)).map(BytesColumn.of)
RAGGED = st.lists(st.lists(st.integers(-9, 9), max_size=4)).map(
    lambda rows: Ragged(
        np.array([n for row in rows for n in row], np.int64), (np.cumsum([0, *map(len, rows)], dtype=np.int64),)
    )
)
RECTANGULAR = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3))).map(
    lambda shapes: Ragged.rectangular(
        np.arange(sum(map(math.prod, shapes))), np.array(shapes, np.int64).reshape(len(shapes), 2)
    )
)
LEAVES = st.one_of(SCALARS, ARRAYS, BYTES_COLUMNS, RAGGED, RECTANGULAR, npst.from_dtype(np.dtype("float32")))
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(KEYS, inner, max_size=3)
        | st.lists(inner, max_size=3).map(objects)
    ),
    max_leaves=6,
)


def exact(value: Any) -> Any:
    """What can be compared in the place of a value: all of it, NaN and dtypes included."""
    if isinstance(value, np.ndarray | np.generic):
        values = list(map(exact, value.flat)) if value.dtype == object else value.tobytes()
        return type(value), value.dtype, np.shape(value), values
    if isinstance(value, BytesColumn):
        return BytesColumn, value.text, value.shape, value.to_list()
    if isinstance(value, Ragged):
        return Ragged, value.to_list(), value.shapes is None, exact(value.values[:0])
    if isinstance(value, Batch):
        return Batch, len(value), [(name, exact(value[name]), exact(value.valid(name))) for name in value]
    if isinstance(value, dict):
        return dict, [(exact(key), exact(item)) for key, item in value.items()]
    if isinstance(value, list | tuple):
        return type(value), list(map(exact, value))
    return type(value), value.hex() if isinstance(value, float) else value


def described(tree: Any, data: bytes = b"") -> bytes:
    """A record as a stranger might write it."""
    text = json.dumps(tree).encode()
    start = -(-(4 + len(text)) // 64) * 64
    return (len(text).to_bytes(4, "little") + text).ljust(start, b"\0") + data


class TestDumpAndLoad:
    @given(VALUES)
    def test_give_back_what_was_kept(self, value: Any) -> None:
        assert exact(load(dump(value))) == exact(value)

    @given(st.lists(st.tuples(st.integers(-5, 5), st.none() | st.text(max_size=5)), min_size=1), st.data())
    def test_give_back_batches_and_views_of_them(self, rows: list[tuple[int, str | None]], data: Any) -> None:
        texts = BytesColumn.of([text or "" for _, text in rows], text=True)
        valid = np.array([text is not None for _, text in rows])
        batch = Batch({"n": np.array([n for n, _ in rows]), "text": texts}, len(rows), {"text": valid})
        start = data.draw(st.integers(0, len(rows)))
        view = batch.take(slice(start, None))

        assert exact(load(dump(view))) == exact(view)

    def test_give_back_rows_of_steps(self) -> None:
        steps = Ragged(np.arange(4.0), (np.array([0, 2, 3]), np.array([0, 1, 1, 4])))

        assert load(dump(steps[:])).to_list() == steps.to_list()

    def test_arrays_can_be_written_to(self) -> None:
        array = load(dump(np.arange(3)))
        array += 1

        assert array.tolist() == [1, 2, 3]

    @pytest.mark.parametrize("value", [{1, 2}, object(), OrderedDict(), Point(1), np.zeros(2, "i4,i4"), len])
    def test_what_only_pickling_could_keep_is_refused(self, value: Any) -> None:
        with pytest.raises(StateError, match=r"a cache on disk cannot keep .*\n  .* before cache\(\)"):
            dump([value])

    def test_list_that_holds_itself_is_refused(self) -> None:
        endless: list[Any] = []
        endless.append(endless)

        with pytest.raises(StateError, match="hold themselves"):
            dump(endless)


def reads_or_refuses(data: bytes) -> None:
    try:
        found = load(data)
    except ValueError:
        return
    with suppress(SchemaError):  # a shape of too many empty rows to list
        exact(found)  # every value can be read, so none is outside the record


class TestHostileBytes:
    @given(st.binary(max_size=100))
    def test_any_bytes_are_values_or_refused(self, data: bytes) -> None:
        reads_or_refuses(data)

    @given(VALUES, st.data())
    def test_changed_bytes_are_values_or_refused(self, value: Any, data: Any) -> None:
        record = bytearray(dump(value))
        for _ in range(data.draw(st.integers(1, 4))):
            record[data.draw(st.integers(0, len(record) - 1))] = data.draw(st.integers(0, 255))

        reads_or_refuses(bytes(record))

    @given(VALUES, st.data())
    def test_changed_descriptions_are_values_or_refused(self, value: Any, data: Any) -> None:
        record = dump(value)
        size = int.from_bytes(record[:4], "little")
        tree = json.loads(record[4 : 4 + size])
        junk = st.none() | st.sampled_from([-1, 0, 1, 2**31, 2**62, 2**64, 1.5, "", "O", "<i8", "V8", [], {}])

        def changed(node: Any) -> Any:
            if data.draw(st.integers(0, 9)) == 0:
                return data.draw(junk)
            return list(map(changed, node)) if isinstance(node, list) else node

        reads_or_refuses(described(changed(tree), record[-(-(4 + size) // 64) * 64 :]))

    @pytest.mark.parametrize(
        "tree",
        [
            ["array", "<i8", [2**61], 0],
            ["array", "<i8", [1], 2**63],
            ["array", "<i8", [-1, -1], 0],
            ["array", "O", [1], 0],
            ["array", "i4,i4", [1], 0],
            ["bytes", 0, 10**9],
            ["column", ["array", "|u1", [8], 0], ["array", "<i8", [1], 0], False, [0]],
            ["__init__"],
            ["value", 1],
            ["dict", [["list"], 1]],
            ["ragged", ["array", "|u1", [8], 0], [], None],
        ],
        ids=str,
    )
    def test_lies_are_refused(self, tree: Any) -> None:
        with pytest.raises(ValueError, match="do not hold cached elements"):
            load(described(tree, bytes(range(1, 9))))

    def test_a_shape_of_too_many_empty_rows_takes_no_memory(self) -> None:
        shapes = np.array([[2**32, 0]])
        tree = ["ragged", ["array", "|u1", [0], 0], None, ["array", "<i8", [1, 2], 0]]

        column = load(described(tree, shapes.tobytes()))

        assert column[0].shape == (2**32, 0)
        with pytest.raises(SchemaError, match="so many empty rows"):
            column.to_list()

    def test_offsets_that_fall_are_refused(self) -> None:
        def column(offsets: list[int]) -> bytes:
            tree = ["column", ["array", "|u1", [4], 0], ["array", "<i8", [3], 64], False, [2]]
            return described(tree, b"abcd".ljust(64) + np.array(offsets, np.int64).tobytes())

        assert load(column([0, 1, 4])).to_list() == [b"a", b"bcd"]
        for offsets in ([0, 5, 4], [0, -1, 4], [1, 2, 4], [0, 2, 3]):
            with pytest.raises(ValueError, match=r"expected (offsets|bytes)"):
                load(column(offsets))

    def test_deep_lists_are_refused(self) -> None:
        text = b'["list",' * 20_000
        with pytest.raises(ValueError, match="do not hold cached elements"):
            load(len(text).to_bytes(4, "little") + text)

    def test_pickled_bytes_run_nothing(self) -> None:
        class Trap:
            def __reduce__(self) -> tuple[Callable[..., Any], tuple[str]]:
                return exec, ("raise SystemError('a cache was unpickled')",)

        with pytest.raises(ValueError, match="do not hold cached elements"):
            load(pickle.dumps(Trap()))
