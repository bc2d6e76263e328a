"""The messages of `tf.train` as a module, for scripts that import the ones protobuf generated."""

from recordkit.tf import _names
from recordkit.tf.train import (
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

__getattr__ = _names.getter("tf.example_pb2", globals(), dict.fromkeys(__all__, ""))
