"""Ragged tensors: what indices and slices take out of them, as TensorFlow has it and as Python has it of lists."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordkit import tf as ours
from tests.tf.both import same

TENSORS = {
    "rows": "R([1, 2, 3, 4, 5, 6], [0, 3, 3, 5, 6])",
    "rows of rows": "R(R([1, 2, 3, 4, 5, 6], [0, 3, 3, 5, 6]), [0, 2, 2, 4])",
    "rows of squares": "R(np.arange(24).reshape(6, 2, 2), [0, 3, 3, 6])",
    "text": "R(['a', 'b', 'c'], tf.constant([0, 1, 1, 3]))",
    "uniform": "R([1, 2, 3, 4, 5, 6], [0, 3, 3, 5, 6])[:, None]",
    "nothing": "R(np.zeros((0, 2)), [0, 0, 0])",
}
KEYS = """
0  -1  9  -9  1.5  'a'  ()  [0, 1]  tf.constant(1)  ...  None  0, 0  0, 9  0, 1:  0, ...
1:  ::2  ::-1  :0  -9:  3:1  ::0  :tf.constant(2)  2:0:-1, 1:  :0, 1:
:, 0  :, -1  :, 9  :, 1:  :, :1  :, -1:  :, :-1  :, ::2  :, ::-1  :, ::-2  :, 2:0:-1  :, 5:  :, -1:-3:-1
:, 5:1  :, 1:5:-1  :, -9:  :, :-9  :, 9::-1  :, -9::-1  :, ::0  :, 'a':  :, tf.constant(1):  :, None  :, ...
:, ..., :1  :, :, 0  :, :, :1  :, :, ::-1  :, 1:, :1  :, :, None  :, :, :, 0  :, :, :, :, :
..., 0  ..., :1  ..., -1:  ..., None  ..., 0, 0  ..., 9  0, :, 0
"""


@pytest.mark.tensorflow
@pytest.mark.parametrize("key", re.split(r"\n|  ", KEYS.strip()))
def test_takes_out_what_tensorflow_does(tf: Any, key: str) -> None:
    for made in TENSORS.values():
        same(f"R = tf.RaggedTensor.from_row_splits\nresult = ({made})[{key}]", tf)


numbers = st.none() | st.integers(-6, 6)
slices = st.builds(slice, numbers, numbers, numbers.filter(lambda step: step != 0))


@given(st.lists(st.lists(st.lists(st.integers(0, 9), max_size=5), max_size=4), max_size=4), slices, slices, slices)
def test_slices_are_as_those_of_lists(values: list[list[list[int]]], outer: slice, middle: slice, inner: slice) -> None:
    rows = [row for group in values for row in group]
    flat = ours.constant([number for row in rows for number in row], ours.int64)
    ragged = ours.RaggedTensor.from_row_lengths(flat, [len(row) for row in rows])
    nested = ours.RaggedTensor.from_row_lengths(ragged, [len(group) for group in values])

    taken = nested[outer, middle, inner]

    assert taken.to_list() == [[row[inner] for row in group[middle]] for group in values[outer]]


def test_index_of_an_inner_row_says_what_to_do() -> None:
    ragged = ours.RaggedTensor.from_row_splits([1, 2, 3], [0, 2, 3])

    with pytest.raises(ValueError, match="inner ragged dimension: not every row has this value\n  Use a slice"):
        ragged[:, 0]
