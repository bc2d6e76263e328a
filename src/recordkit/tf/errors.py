"""`tf.errors`: the errors that scripts catch, which are recordkit's own."""

from recordkit.errors import DataLossError, InvalidArgumentError
from recordkit.tf import _names

__all__ = ["DataLossError", "InvalidArgumentError", "NotFoundError"]

NotFoundError = FileNotFoundError

__getattr__ = _names.getter("tf.errors", globals(), dict.fromkeys(__all__, ""))
