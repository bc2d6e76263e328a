"""`tf.train`: Example, SequenceExample and their parts."""

from recordkit.tf import _names

from ._messages import (
    BytesList,
    Example,
    Feature,
    FeatureList,
    FeatureLists,
    Features,
    FloatList,
    Int64List,
    SequenceExample,
)

__all__ = [
    "BytesList",
    "Example",
    "Feature",
    "FeatureList",
    "FeatureLists",
    "Features",
    "FloatList",
    "Int64List",
    "SequenceExample",
]

__getattr__ = _names.getter("tf.train", globals(), dict.fromkeys(__all__, ""))
