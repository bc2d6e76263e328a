"""The messages of `tf.train`, for scripts that import the module that protobuf generates."""

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
