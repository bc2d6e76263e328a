"""Names: looked up when they are first used, so that importing is cheap.

For those that are not there, an error that says what to use instead.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

# What scripts ask for, and where it is; names of TensorFlow 1 first.
_INSTEAD: Final = {
    "tf.python_io": "tf.io has the writer, tf.data the datasets.",
    "tf.gfile": "tf.io.gfile.glob looks for files; open(), os and pathlib do the rest.",
    "tf.compat": "Only the names of TensorFlow 2 are offered.",
    "tf.keras": "recordkit reads and writes records; models are for the framework you train with.",
    "tf.nn": "recordkit reads and writes records; models are for the framework you train with.",
    "tf.function": "Functions run as they are: leave the decorator out.",
    "tf.py_function": "Functions run as they are: call it directly.",
    "tf.numpy_function": "Functions run as they are: call it directly.",
    "tf.math": "NumPy's functions take these tensors.",
    "tf.strings": "Use methods of bytes: tensor.numpy().decode().",
    "tf.random": "Use np.random.default_rng().",
    "tf.io.gfile": "Use open(), os and pathlib.",
    "tf.io.gfile.exists": "Use os.path.exists.",
    "tf.io.gfile.makedirs": "Use os.makedirs.",
    "tf.io.gfile.listdir": "Use os.listdir.",
    "tf.io.gfile.GFile": "Use open().",
    "tf.io.matching_files": "Use tf.io.gfile.glob.",
    "tf.io.tf_record_iterator": "Use tf.data.TFRecordDataset, or recordkit.open(path, raw=True).",
    "tf.data.Dataset.element_spec": "Look at the first element: next(iter(dataset)).",
    "tf.data.Dataset.make_one_shot_iterator": "Use iter(dataset).",
    "tf.data.experimental.parallel_interleave": "Use Dataset.interleave.",
    "tf.data.experimental.shuffle_and_repeat": "Use Dataset.shuffle and Dataset.repeat.",
    "tf.data.experimental.map_and_batch": "Use Dataset.map and Dataset.batch.",
    "tf.errors.OutOfRangeError": "Iterating ends by itself: use a for loop.",
}


def getter(module: str, namespace: dict[str, Any], places: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a module's `__getattr__`.

    Args:
        module: What it is called, such as `"tf.io"`.
        namespace: Its globals, where names are kept once they were looked up.
        places: The module that each name it offers is in, with a colon and its name there if that is another; a name
            that is a module is in itself.

    >>> get = getter("tf.io", {}, {"parse_example": "_parsing"})
    >>> get("parse_example").__name__
    'parse_example'
    >>> get("parse_exampel")
    Traceback (most recent call last):
        ...
    AttributeError: recordkit's tf.io has no 'parse_exampel'
      Did you mean 'parse_example'?
    """

    def get(name: str) -> Any:
        if name.startswith("_"):  # as Python asks for, before it looks for a module of that name
            raise AttributeError(name)
        if name not in places:
            message = f"recordkit's {module} has no {name!r}\n  {_hint(module, name, places)}"
            raise AttributeError(message, name=name)
        place, _, own_name = places[name].partition(":")
        found = import_module(f"recordkit.tf.{place}")
        is_module = place.rpartition(".")[2] == name
        value = namespace[name] = found if is_module else getattr(found, own_name or name)
        return value

    return get


def _hint(module: str, name: str, offered: Iterable[str]) -> str:
    """Return what to use instead of a name that is not there."""
    from recordkit.schema._words import did_you_mean  # not worth its import until something is wrong

    # What TensorFlow 1 had at its top, such as tf.FixedLenFeature, is found where it is now.
    inner = ("io", "train", "sparse", "data", "image") if module == "tf" else ()
    moved = [place for place in inner if name in import_module(f"recordkit.tf.{place}").__all__]
    hint = _INSTEAD.get(f"{module}.{name}") or " ".join(f"There is tf.{place}.{name}." for place in moved)
    return hint or did_you_mean(name, offered) or _INSTEAD.get(module) or f"It has {', '.join(sorted(offered))}."
