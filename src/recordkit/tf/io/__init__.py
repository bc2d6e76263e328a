"""`tf.io`: files of records, parsing, and bytes to tensors and back, under TensorFlow's names.

>>> from recordkit import tf
>>> tf.io.parse_single_example(b"", {"tags": tf.io.VarLenFeature(tf.string)})["tags"].shape
TensorShape([0])
"""

from typing import TYPE_CHECKING

from recordkit.tf import _names

if TYPE_CHECKING:
    from recordkit.tf.image import decode_image, decode_jpeg, decode_png, encode_jpeg, encode_png
    from recordkit.tf.io import gfile

    from ._features import (
        FixedLenFeature,
        FixedLenSequenceFeature,
        RaggedFeature,
        SparseFeature,
        VarLenFeature,
    )
    from ._files import read_file, write_file
    from ._parsing import (
        parse_example,
        parse_sequence_example,
        parse_single_example,
        parse_single_sequence_example,
    )
    from ._raw import decode_raw, parse_tensor, serialize_tensor
    from ._writer import TFRecordOptions, TFRecordWriter

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
    "FixedLenFeature": "io._features",
    "FixedLenSequenceFeature": "io._features",
    "RaggedFeature": "io._features",
    "SparseFeature": "io._features",
    "TFRecordOptions": "io._writer",
    "TFRecordWriter": "io._writer",
    "VarLenFeature": "io._features",
    "decode_image": "image",
    "decode_jpeg": "image",
    "decode_png": "image",
    "decode_raw": "io._raw",
    "encode_jpeg": "image",
    "encode_png": "image",
    "gfile": "io.gfile",
    "parse_example": "io._parsing",
    "parse_sequence_example": "io._parsing",
    "parse_single_example": "io._parsing",
    "parse_single_sequence_example": "io._parsing",
    "parse_tensor": "io._raw",
    "read_file": "io._files",
    "serialize_tensor": "io._raw",
    "write_file": "io._files",
}

__getattr__ = _names.getter("tf.io", globals(), _PLACES)


def __dir__() -> list[str]:
    return sorted(__all__)
