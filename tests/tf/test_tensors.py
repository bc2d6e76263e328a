"""Tensors, shapes and dtypes: the same expressions, the same values."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from recordkit import tf as ours
from recordkit.columns import BytesColumn
from recordkit.errors import InvalidArgumentError
from recordkit.records import pack_many
from tests.tf.both import same, scripts

SCRIPTS = scripts("tensors")


@pytest.mark.tensorflow
class TestAsTensorFlow:
    @pytest.mark.parametrize("name", SCRIPTS)
    def test_script(self, tf: Any, name: str) -> None:
        same(SCRIPTS[name], tf)


class TestTensor:
    def test_what_numpy_has_is_there(self) -> None:
        tensor = ours.constant([[1.0, 2.0], [3.0, 4.0]])

        assert tensor.mean() == 2.5
        assert tensor.T.tolist() == [[1, 3], [2, 4]]
        assert np.concatenate([tensor, tensor]).shape == (4, 2)

    def test_numpy_gives_an_array_of_its_own(self) -> None:
        tensor = ours.constant([1, 2])

        tensor.numpy()[0] = 5

        assert tensor.numpy().tolist() == [1, 2]

    def test_array_that_was_given_may_be_used_again(self) -> None:
        buffer = np.array([1, 2])
        tensors = ours.constant(buffer), ours.convert_to_tensor(buffer[:1]), ours.constant(buffer, shape=[2, 1])

        buffer[:] = 9

        assert [tensor.numpy().ravel().tolist() for tensor in tensors] == [[1, 2], [1], [1, 2]]

    @pytest.mark.parametrize(
        "tensor",
        [
            ours.Tensor(BytesColumn.of([b"a", b"b\0"])),
            ours.Tensor(pack_many([b"a", b"b\0"])),
            ours.constant([b"a", b"b\0"]),
            ours.constant(np.array([b"a", b"b\0"], object)),
        ],
    )
    def test_strings_are_the_same_however_they_are_held(self, tensor: ours.Tensor) -> None:
        assert (tensor.shape, tensor.dtype) == ((2,), ours.string)
        assert list(tensor.chunk()) == [b"a", b"b\0"]
        assert tensor.numpy().tolist() == [b"a", b"b\0"]
        assert tensor[1].numpy() == b"b\0"

    def test_name_that_is_not_there_is_an_attribute_error(self) -> None:
        with pytest.raises(AttributeError):
            ours.constant(1).nope  # noqa: B018

    @pytest.mark.parametrize("value", [ours.constant(["a"]), ours.constant(1), ours.int64, ours.TensorShape([None, 2])])
    def test_values_are_pickled(self, value: Any) -> None:
        again = pickle.loads(pickle.dumps(value))

        assert repr(again) == repr(value)

    def test_strings_are_not_cast(self) -> None:
        with pytest.raises(InvalidArgumentError, match="cast: cannot cast string to int64\n  Use Python"):
            ours.cast("1", ours.int64)
