"""Names, which are looked up when they are first used, so that importing is cheap.

For a name that is not supported, the error says what to use instead. It suggests another name only if that is the same
name spelt correctly: TensorFlow has many more names, and the nearest of ours seldom does the same.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

# What to use instead of names that scripts contain; those of TensorFlow 1 first.
_INSTEAD: Final = {
    "tf.python_io": "tf.io has the writer, tf.data the datasets.",
    "tf.gfile": "Use tf.io.gfile.glob to find files, and open(), os and pathlib for the rest.",
    "tf.compat": "Only names of TensorFlow 2 are supported.",
    "tf.keras": "recordkit reads and writes records; models are for the framework you train with.",
    "tf.nn": "recordkit reads and writes records; models are for the framework you train with.",
    "tf.function": "Functions run as ordinary Python: leave the decorator out.",
    "tf.py_function": "Functions run as ordinary Python: call it directly.",
    "tf.numpy_function": "Functions run as ordinary Python: call it directly.",
    "tf.math": "Use NumPy functions on these tensors.",
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
    "tf.errors.OutOfRangeError": "Iteration ends by itself: use a for loop.",
    "tf.case": "Functions run as ordinary Python: use if and elif.",
    "tf.cond": "Functions run as ordinary Python: use if and else.",
    "tf.while_loop": "Functions run as ordinary Python: use while or for.",
    "tf.map_fn": "Functions run as ordinary Python: use a for loop, or Dataset.map.",
    "tf.range": "Use np.arange, or tf.data.Dataset.range.",
    "tf.zeros": "Use np.zeros.",
    "tf.ones": "Use np.ones.",
    "tf.squeeze": "Use np.squeeze.",
    "tf.expand_dims": "Use np.expand_dims.",
    "tf.transpose": "Use np.transpose.",
    "tf.one_hot": "Use np.eye(depth)[indices].",
    "tf.unstack": "Use a for loop: iterating over a tensor gives its rows.",
    "tf.ragged": "Use the methods of tf.RaggedTensor.",
    "tf.experimental": "It is not supported.",
    "tf.image.flip_up_down": "Use image[::-1].",
    "tf.image.random_flip_up_down": "Use image[::-1] where np.random.default_rng().random() < 0.5.",
    "tf.image.rot90": "Use np.rot90.",
    "tf.image.rgb_to_grayscale": "Decode with channels=1.",
    "tf.sparse.reshape": "Use tf.sparse.to_dense, then tf.reshape.",
    "tf.sparse.concat": "Use tf.sparse.to_dense, then tf.concat.",
    "tf.data.Dataset.sample_from_datasets": "Use the mix step of recordkit's own pipelines.",
    "tf.data.Dataset.choose_from_datasets": "Use the mix step of recordkit's own pipelines.",
    "tf.data.Dataset.rebatch": "Use Dataset.unbatch and Dataset.batch.",
    "tf.data.Dataset.take_while": "Use itertools.takewhile on the dataset.",
    "tf.data.Dataset.get_single_element": "Use next(iter(dataset)).",
    "tf.data.TextLineDataset": "Open the file in a generator function, and pass that to Dataset.from_generator.",
}

# What to say about any other name that a module does not have.
_OTHERWISE: Final = {
    "tf": "It offers what scripts about records use. To compute, use NumPy functions on these tensors.",
    "tf.image": "It has {}. Use NumPy functions on these tensors.",
}

# Names of TensorFlow that look like one of ours misspelt, but are different.
_THEIRS: Final = frozenset(
    f"tf.{name}"
    for name in ("complex", "dtensor", "dtypes", "qint16", "qint32", "qint8", "quint16", "quint8", "shape_n")
)


def getter(module: str, namespace: dict[str, Any], places: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a module's `__getattr__`.

    Args:
        module: The name of the module, such as `"tf.io"`.
        namespace: Its globals, which keep the names that were looked up.
        places: For each name the module that defines it, with a colon and its name there if that differs; for a
            module, the module itself.

    >>> get = getter("tf.io", {}, {"parse_example": "io._parsing"})
    >>> get("parse_example").__name__
    'parse_example'
    >>> get("parse_exampel")
    Traceback (most recent call last):
        ...
    AttributeError: recordkit's tf.io has no 'parse_exampel'
      Did you mean 'parse_example'?
    """

    def get(name: str) -> Any:
        if name.startswith("_"):  # Python asks for these before it looks for a submodule
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
    """Return what to use instead of a name that is not supported."""
    # Names that TensorFlow 1 had at the top, such as tf.FixedLenFeature, are looked up where they are now.
    inner = ("io", "train", "sparse", "data", "image") if module == "tf" else ()
    moved = [place for place in inner if name in import_module(f"recordkit.tf.{place}").__all__]
    hint = _INSTEAD.get(f"{module}.{name}") or " ".join(f"There is tf.{place}.{name}." for place in moved)
    near = None if f"{module}.{name}" in _THEIRS else nearest(name, offered)
    if hint or near:
        return hint or f"Did you mean {near!r}?"
    return _INSTEAD.get(module) or _OTHERWISE.get(module, "It has {}.").format(", ".join(sorted(offered)))


def nearest(name: str, offered: Iterable[str]) -> str | None:
    """Return the name that this one misspells: one mistake is allowed in a name of four letters, two in one of six.

    Two swapped letters count as one mistake; case does not matter.

    >>> nearest("rezise", ["resize"]), nearest("cond", ["concat"]), nearest("tfrecorddatset", ["TFRecordDataset"])
    ('resize', None, 'TFRecordDataset')
    """
    most = 0 if len(name) < 4 else 1 if len(name) < 6 else 2
    mistakes = {each: _mistakes(name.lower(), each.lower()) for each in sorted(offered)}
    best = min(mistakes, key=mistakes.__getitem__, default=None)
    return best if best is not None and mistakes[best] <= most else None


def _mistakes(a: str, b: str) -> int:
    """Return how many letters to change, add, remove or swap with the next to turn one name into the other."""
    before: list[int] = []
    row = list(range(len(b) + 1))
    for i, letter in enumerate(a):
        above, last, row = row, before, [i + 1]
        for j, other in enumerate(b):
            least = min(above[j + 1] + 1, row[j] + 1, above[j] + (letter != other))
            if i and j and letter == b[j - 1] and a[i - 1] == other:
                least = min(least, last[j - 1] + 1)
            row.append(least)
        before = above
    return row[-1]
