"""`tf.errors`: what TensorFlow's scripts catch. Our errors are these."""

from recordkit.errors import DataLossError, InvalidArgumentError
from recordkit.tf import _names

__all__ = ["DataLossError", "InvalidArgumentError", "NotFoundError"]

NotFoundError = FileNotFoundError

__getattr__ = _names.getter("tf.errors", globals(), dict.fromkeys(__all__, ""))
