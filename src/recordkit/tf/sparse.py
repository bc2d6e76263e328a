"""`tf.sparse`: sparse tensors, and their conversion to dense ones."""

from recordkit.tf import _names
from recordkit.tf.tensors import SparseTensor, to_dense

__all__ = ["SparseTensor", "to_dense"]

__getattr__ = _names.getter("tf.sparse", globals(), dict.fromkeys(__all__, ""))
