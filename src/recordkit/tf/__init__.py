"""tf: TensorFlow's names for reading and writing records, without TensorFlow.

Replace `import tensorflow as tf` by `from recordkit import tf`, and scripts about TFRecords run unchanged, on NumPy and
with recordkit's guarantees: checksums are verified, files appear once they are complete, errors say where. This is a
thin layer over `recordkit.storage`, `recordkit.examples` and `recordkit.pipeline`.

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
    from recordkit.tf.tensors import (
        DType,
        RaggedTensor,
        RaggedTensorSpec,
        SparseTensor,
        SparseTensorSpec,
        Tensor,
        TensorShape,
        TensorSpec,
        as_dtype,
        bfloat16,
        cast,
        complex64,
        complex128,
        concat,
        constant,
        convert_to_tensor,
        double,
        float16,
        float32,
        float64,
        half,
        int8,
        int16,
        int32,
        int64,
        newaxis,
        reshape,
        shape,
        stack,
        string,
        uint8,
        uint16,
        uint32,
        uint64,
    )
    from recordkit.tf.tensors import bool_ as bool  # noqa: A004 - TensorFlow's name

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

_MODULES = ("data", "errors", "image", "io", "sparse", "train")

# Where each name is defined; it is looked up when it is first used.
_PLACES = dict.fromkeys(__all__, "tensors") | {name: name for name in _MODULES} | {"bool": "tensors:bool_"}

__getattr__ = _names.getter("tf", globals(), _PLACES)


def __dir__() -> list[str]:
    return sorted(__all__)
