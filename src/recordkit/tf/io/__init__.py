"""`tf.io`: files of records, parsing, and bytes to tensors and back, under TensorFlow's names.

>>> from recordkit import tf
>>> tf.io.parse_single_example(b"", {"tags": tf.io.VarLenFeature(tf.string)})["tags"].shape
TensorShape([0])
"""

from typing import TYPE_CHECKING

from recordkit.tf import _names

if TYPE_CHECKING:
    from recordkit.tf._features import (
        FixedLenFeature,
        FixedLenSequenceFeature,
        RaggedFeature,
        SparseFeature,
        VarLenFeature,
    )
    from recordkit.tf._files import read_file, write_file
    from recordkit.tf._parsing import (
        parse_example,
        parse_sequence_example,
        parse_single_example,
        parse_single_sequence_example,
    )
    from recordkit.tf._pictures import decode_image, decode_jpeg, decode_png, encode_jpeg, encode_png
    from recordkit.tf._raw import decode_raw, parse_tensor, serialize_tensor
    from recordkit.tf._writer import TFRecordOptions, TFRecordWriter
    from recordkit.tf.io import gfile

__all__ = [
    "FixedLenFeature",
    "FixedLenSequenceFeature",
    "RaggedFeature",
    "SparseFeature",
    "TFRecordOptions",
    "TFRecordWriter",
    "VarLenFeature",
    "decode_image",
    "decode_jpeg",
    "decode_png",
    "decode_raw",
    "encode_jpeg",
    "encode_png",
    "gfile",
    "parse_example",
    "parse_sequence_example",
    "parse_single_example",
    "parse_single_sequence_example",
    "parse_tensor",
    "read_file",
    "serialize_tensor",
    "write_file",
]

# Where the names live that are looked up when they are first used.
_PLACES = {
    "FixedLenFeature": "_features",
    "FixedLenSequenceFeature": "_features",
    "RaggedFeature": "_features",
    "SparseFeature": "_features",
    "TFRecordOptions": "_writer",
    "TFRecordWriter": "_writer",
    "VarLenFeature": "_features",
    "decode_image": "_pictures",
    "decode_jpeg": "_pictures",
    "decode_png": "_pictures",
    "decode_raw": "_raw",
    "encode_jpeg": "_pictures",
    "encode_png": "_pictures",
    "gfile": "io.gfile",
    "parse_example": "_parsing",
    "parse_sequence_example": "_parsing",
    "parse_single_example": "_parsing",
    "parse_single_sequence_example": "_parsing",
    "parse_tensor": "_raw",
    "read_file": "_files",
    "serialize_tensor": "_raw",
    "write_file": "_files",
}

__getattr__ = _names.getter("tf.io", globals(), _PLACES)


def __dir__() -> list[str]:
    return sorted(__all__)
