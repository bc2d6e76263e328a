"""`tf.data`: pipelines of elements.

>>> from recordkit import tf
>>> [int(n) for n in tf.data.Dataset.range(3).repeat(2)]
[0, 1, 2, 0, 1, 2]
"""

from recordkit.tf import _names

from . import experimental
from ._arguments import AUTOTUNE, INFINITE_CARDINALITY, UNKNOWN_CARDINALITY
from ._dataset import Dataset, Options, TFRecordDataset

__all__ = [
    "AUTOTUNE",
    "INFINITE_CARDINALITY",
    "UNKNOWN_CARDINALITY",
    "Dataset",
    "Options",
    "TFRecordDataset",
    "experimental",
]

__getattr__ = _names.getter("tf.data", globals(), dict.fromkeys(__all__, ""))
