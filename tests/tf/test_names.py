"""Names: what is offered, what is said of what is not, and what importing costs."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from importlib import import_module
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordkit import errors
from recordkit import tf as ours
from recordkit.tf._names import nearest

MODULES = [
    "tf",
    "tf.data",
    "tf.data.experimental",
    "tf.errors",
    "tf.example_pb2",
    "tf.image",
    "tf.io",
    "tf.io.gfile",
    "tf.sparse",
    "tf.train",
]


class TestOffered:
    @pytest.mark.parametrize("name", MODULES)
    def test_every_name_is_there_and_described(self, name: str) -> None:
        module = import_module(f"recordkit.{name}")

        for offered in module.__all__:
            assert getattr(module, offered).__doc__ or offered == "newaxis"

    @pytest.mark.tensorflow
    @pytest.mark.parametrize("name", [name for name in MODULES if name != "tf.example_pb2"])
    def test_tensorflow_has_every_name_too(self, tf: object, name: str) -> None:
        theirs = tf
        for part in name.split(".")[1:]:
            theirs = getattr(theirs, part)

        assert [one for one in import_module(f"recordkit.{name}").__all__ if not hasattr(theirs, one)] == []

    def test_errors_are_the_packages(self) -> None:
        assert ours.errors.DataLossError is errors.DataLossError
        assert issubclass(errors.SchemaError, ours.errors.InvalidArgumentError)
        assert issubclass(errors.CorruptRecordError, ours.errors.DataLossError)
        assert issubclass(errors.WrongFileError, ours.errors.DataLossError)
        assert issubclass(errors.MalformedPayloadError, ours.errors.InvalidArgumentError | errors.CorruptRecordError)


class TestNotOffered:
    @pytest.mark.parametrize(
        ("name", "words"),
        [
            ("FixedLenFeature", "recordkit's tf has no 'FixedLenFeature'\n  There is tf.io.FixedLenFeature."),
            ("Example", "There is tf.train.Example."),
            ("constnat", "Did you mean 'constant'?"),
            ("keras", "models are for the framework you train with"),
            ("math", "Use NumPy functions on these tensors"),
            ("py_function", "call it directly"),
            ("zzz", "It offers what scripts about records use. To compute, use NumPy functions on these tensors."),
            ("train.Checkpoint", "It has BytesList, Example, Feature,"),
            ("cond", "use if and else"),
            ("range", "Use np.arange"),
            ("image.random_flip_up_down", "Use image[::-1] where"),
            ("io.parse_exmaple", "recordkit's tf.io has no 'parse_exmaple'\n  Did you mean 'parse_example'?"),
            ("io.gfile.exists", "Use os.path.exists."),
            ("train.Feautre", "Did you mean 'Feature'?"),
            ("errors.OutOfRangeError", "use a for loop"),
            ("TFRecordDataset", "There is tf.data.TFRecordDataset."),
            ("data.experimental.map_and_batch", "Use Dataset.map and Dataset.batch."),
            ("image.rezise", "Did you mean 'resize'?"),
        ],
    )
    def test_error_says_what_there_is_instead(self, name: str, words: str) -> None:
        *path, last = name.split(".")
        module = ours
        for part in path:
            module = getattr(module, part)

        with pytest.raises(AttributeError) as caught:
            getattr(module, last)

        assert words in str(caught.value)
        assert not hasattr(module, last)

    @pytest.mark.tensorflow
    @pytest.mark.parametrize("name", [name for name in [*MODULES, "tf.data.Dataset"] if name != "tf.example_pb2"])
    def test_no_name_of_tensorflow_is_taken_for_another_misspelt(self, tf: object, name: str) -> None:
        theirs: Any = tf
        mine: Any = ours
        for part in name.split(".")[1:]:
            theirs, mine = getattr(theirs, part), getattr(mine, part)
        mine = ours.data.Dataset.range(1) if name == "tf.data.Dataset" else mine  # a class cannot be asked
        said = {}
        for one in dir(theirs):
            try:
                getattr(mine, one)
            except AttributeError as error:
                said[one] = str(error)

        assert [one for one, words in said.items() if "Did you mean" in words or "There is" in words] == []
        assert [one for one, words in said.items() if not one.startswith("_") and "\n  " not in words] == []

    @given(st.data())
    def test_name_with_one_mistake_is_recognised(self, data: st.DataObject) -> None:
        module = import_module(f"recordkit.{data.draw(st.sampled_from(MODULES))}")
        name = data.draw(st.sampled_from([one for one in module.__all__ if len(one) > 3]))
        at = data.draw(st.integers(0, len(name) - 1))
        put = data.draw(st.sampled_from(["", "x", name[at] + "x"]))
        misspelt = name[:at] + put + name[at + 1 :]

        near = nearest(misspelt, module.__all__)

        assert near is not None or len(misspelt) < 4

    def test_unlike_names_are_not_recognised(self) -> None:
        assert [nearest(name, ours.__all__) for name in ("cond", "range", "abs", "zzz", "random_flip")] == [None] * 5


class TestImporting:
    def test_little_comes_along_until_it_is_used(self) -> None:
        program = """
            import sys
            before = set(sys.modules)
            import recordkit.tf as tf
            new = {name for name in set(sys.modules) - before if name.startswith("recordkit")}
            assert new == {"recordkit", "recordkit.errors", "recordkit.tf", "recordkit.tf._names"}, new
            tf.io.parse_example, tf.train.Example, tf.constant(1)
            assert "recordkit.storage" not in sys.modules  # which only files need
            third = {name.partition(".")[0] for name in set(sys.modules) - before} - set(sys.stdlib_module_names)
            assert third == {"numpy", "recordkit"}, third
            """

        subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=True, timeout=60)
