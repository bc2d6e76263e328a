"""`tf.data`: datasets of elements, under TensorFlow's names.

>>> from recordkit import tf
>>> [int(n) for n in tf.data.Dataset.range(3).repeat(2)]
[0, 1, 2, 0, 1, 2]
"""

from typing import TYPE_CHECKING

from recordkit.tf import _names

if TYPE_CHECKING:
    from recordkit.tf.data import experimental

    from ._dataset import (
        AUTOTUNE,
        INFINITE_CARDINALITY,
        UNKNOWN_CARDINALITY,
        Dataset,
        Options,
        TFRecordDataset,
    )

__all__ = [
    "AUTOTUNE",
    "INFINITE_CARDINALITY",
    "UNKNOWN_CARDINALITY",
    "Dataset",
    "Options",
    "TFRecordDataset",
    "experimental",
]

# Where the names live that are looked up when they are first used.
_PLACES = {
    "AUTOTUNE": "data._dataset",
    "Dataset": "data._dataset",
    "INFINITE_CARDINALITY": "data._dataset",
    "Options": "data._dataset",
    "TFRecordDataset": "data._dataset",
    "UNKNOWN_CARDINALITY": "data._dataset",
    "experimental": "data.experimental",
}

__getattr__ = _names.getter("tf.data", globals(), _PLACES)


def __dir__() -> list[str]:
    return sorted(__all__)
