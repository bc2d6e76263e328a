"""tf: TensorFlow's names for reading and writing records, without TensorFlow.

`from recordkit import tf` in the place of `import tensorflow as tf`, and scripts about TFRecords run as they are, on
NumPy and with recordkit's promises: checksums are verified, files appear whole, errors say where. A thin skin: what
is behind it is in `recordkit.storage`, `recordkit.examples` and `recordkit.schema`.

>>> from recordkit import tf
>>> label = tf.train.Feature(int64_list=tf.train.Int64List(value=[3]))
>>> payload = tf.train.Example(features=tf.train.Features(feature={"label": label})).SerializeToString()
>>> tf.io.parse_single_example(payload, {"label": tf.io.FixedLenFeature([], tf.int64)})["label"]
<tf.Tensor: shape=(), dtype=int64, numpy=3>
"""

from typing import TYPE_CHECKING

from recordkit.tf import _names

if TYPE_CHECKING:
    from recordkit.tf import data, errors, image, io, sparse, train
    from recordkit.tf._dtypes import (
        DType,
        as_dtype,
        bfloat16,
        complex64,
        complex128,
        double,
        float16,
        float32,
        float64,
        half,
        int8,
        int16,
        int32,
        int64,
        string,
        uint8,
        uint16,
        uint32,
        uint64,
    )
    from recordkit.tf._dtypes import bool_ as bool  # noqa: A004 - TensorFlow's name
    from recordkit.tf._ops import cast, concat, newaxis, reshape, shape, stack
    from recordkit.tf._ragged import RaggedTensor
    from recordkit.tf._shape import RaggedTensorSpec, SparseTensorSpec, TensorShape, TensorSpec
    from recordkit.tf._sparse import SparseTensor
    from recordkit.tf._tensor import Tensor, constant, convert_to_tensor

__all__ = [
    "DType",
    "RaggedTensor",
    "RaggedTensorSpec",
    "SparseTensor",
    "SparseTensorSpec",
    "Tensor",
    "TensorShape",
    "TensorSpec",
    "as_dtype",
    "bfloat16",
    "bool",
    "cast",
    "complex64",
    "complex128",
    "concat",
    "constant",
    "convert_to_tensor",
    "data",
    "double",
    "errors",
    "float16",
    "float32",
    "float64",
    "half",
    "image",
    "int8",
    "int16",
    "int32",
    "int64",
    "io",
    "newaxis",
    "reshape",
    "shape",
    "sparse",
    "stack",
    "string",
    "train",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]

# Where the names live that are looked up when they are first used.
_PLACES = {
    "DType": "_dtypes",
    "RaggedTensor": "_ragged",
    "RaggedTensorSpec": "_shape",
    "SparseTensor": "_sparse",
    "SparseTensorSpec": "_shape",
    "Tensor": "_tensor",
    "TensorShape": "_shape",
    "TensorSpec": "_shape",
    "as_dtype": "_dtypes",
    "bfloat16": "_dtypes",
    "bool": "_dtypes:bool_",
    "cast": "_ops",
    "complex128": "_dtypes",
    "complex64": "_dtypes",
    "concat": "_ops",
    "constant": "_tensor",
    "convert_to_tensor": "_tensor",
    "data": "data",
    "double": "_dtypes",
    "errors": "errors",
    "float16": "_dtypes",
    "float32": "_dtypes",
    "float64": "_dtypes",
    "half": "_dtypes",
    "image": "image",
    "int16": "_dtypes",
    "int32": "_dtypes",
    "int64": "_dtypes",
    "int8": "_dtypes",
    "io": "io",
    "newaxis": "_ops",
    "reshape": "_ops",
    "shape": "_ops",
    "sparse": "sparse",
    "stack": "_ops",
    "string": "_dtypes",
    "train": "train",
    "uint16": "_dtypes",
    "uint32": "_dtypes",
    "uint64": "_dtypes",
    "uint8": "_dtypes",
}

__getattr__ = _names.getter("tf", globals(), _PLACES)


def __dir__() -> list[str]:
    return sorted(__all__)
