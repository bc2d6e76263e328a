"""`tf.io`: writing records, parsing them, and conversions between bytes and tensors.

>>> from recordkit import tf
>>> tf.io.parse_single_example(b"", {"tags": tf.io.VarLenFeature(tf.string)})["tags"].shape
TensorShape([0])
"""

from typing import TYPE_CHECKING

from recordkit.tf import _names

from ._features import FixedLenFeature, FixedLenSequenceFeature, RaggedFeature, SparseFeature, VarLenFeature
from ._parsing import parse_example, parse_sequence_example, parse_single_example, parse_single_sequence_example
from ._raw import decode_raw, parse_tensor, serialize_tensor

if TYPE_CHECKING:
    from recordkit.tf.image import decode_image, decode_jpeg, decode_png, encode_jpeg, encode_png

    from . import gfile
    from ._files import read_file, write_file
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

_PICTURES = ("decode_image", "decode_jpeg", "decode_png", "encode_jpeg", "encode_png")

# What parsing does not need is looked up when it is first used.
_PLACES = dict.fromkeys(__all__, "") | dict.fromkeys(_PICTURES, "image")
_PLACES |= dict.fromkeys(("TFRecordOptions", "TFRecordWriter"), "io._writer") | {"gfile": "io.gfile"}
_PLACES |= dict.fromkeys(("read_file", "write_file"), "io._files")

__getattr__ = _names.getter("tf.io", globals(), _PLACES)


def __dir__() -> list[str]:
    return sorted(__all__)
