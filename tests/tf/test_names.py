"""Names: what is offered, what is said of what is not, and what importing costs."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from importlib import import_module

import pytest

from recordkit import errors
from recordkit import tf as ours

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
            ("math", "NumPy's functions take these tensors"),
            ("py_function", "call it directly"),
            ("zzz", "It has DType, RaggedTensor, RaggedTensorSpec, SparseTensor,"),
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
