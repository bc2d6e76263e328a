"""`tf.data.experimental`: earlier names of what tf.data now has, and a writer for whole datasets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from recordkit.tf import _names
from recordkit.tf.io import TFRecordWriter as _Writer
from recordkit.tf.tensors import Tensor, string

from ._arguments import AUTOTUNE, INFINITE_CARDINALITY, UNKNOWN_CARDINALITY
from ._dataset import Dataset

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["AUTOTUNE", "INFINITE_CARDINALITY", "UNKNOWN_CARDINALITY", "TFRecordWriter", "cardinality", "ignore_errors"]


class TFRecordWriter:
    """Writes the strings of a dataset to a file, which appears once it is complete.

    Args:
        filename: The file.
        compression_type: `"GZIP"`, `"ZLIB"`, or none.

    >>> import tempfile
    >>> from recordkit import tf
    >>> path = tempfile.mkdtemp() + "/numbers.tfrecord"
    >>> tf.data.experimental.TFRecordWriter(path).write(tf.data.Dataset.range(3).map(tf.io.serialize_tensor))
    >>> [int(tf.io.parse_tensor(payload, tf.int64)) for payload in tf.data.TFRecordDataset(path)]
    [0, 1, 2]
    """

    def __init__(self, filename: Any, compression_type: str | None = None) -> None:
        self._filename = filename
        self._compression_type = compression_type

    def write(self, dataset: Dataset) -> None:
        """Write all elements."""
        if not isinstance(dataset, Dataset):
            message = f"expected a tf.data.Dataset, found {type(dataset).__name__}"
            raise TypeError(message)
        with _Writer(self._filename, self._compression_type) as writer:
            for element in dataset:
                if not isinstance(element, Tensor) or element.ndim or element.dtype != string:
                    message = f"{self._filename}: expected a dataset of strings, found {_described(element)}"
                    raise TypeError(message)
                writer.write(element)


def _described(element: Any) -> str:
    if not isinstance(element, Tensor):
        return f"elements of type {type(element).__name__}\n  Serialize them in map."
    advice = "Serialize them in map, for example with tf.io.serialize_tensor."
    return f"{element.dtype.name} of shape {element.shape}\n  {advice}"


def cardinality(dataset: Dataset) -> Tensor:
    """Return the number of elements; -1 if they are infinite, -2 if it is unknown."""
    return dataset.cardinality()


def ignore_errors(log_warning: bool = False) -> Callable[[Dataset], Dataset]:
    """Return a function for `Dataset.apply` that drops elements which fail."""
    return lambda dataset: dataset.ignore_errors(log_warning)


__getattr__ = _names.getter("tf.data.experimental", globals(), dict.fromkeys(__all__, ""))
