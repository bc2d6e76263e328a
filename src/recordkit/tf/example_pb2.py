"""The messages of `tf.train`, for scripts that import the module that protobuf generates."""

from recordkit.tf import _names
from recordkit.tf.train import *  # noqa: F403 - the same names
from recordkit.tf.train import __all__ as __all__

__getattr__ = _names.getter("tf.example_pb2", globals(), dict.fromkeys(__all__, ""))
