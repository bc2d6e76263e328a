"""`tf.image`: decoding, encoding, resizing, cropping and flipping pictures.

>>> from recordkit import tf
>>> tf.image.decode_png(tf.image.encode_png([[[7]]])).shape
TensorShape([1, 1, 1])
"""

from recordkit.tf import _names

from ._pictures import decode_image, decode_jpeg, decode_png, encode_jpeg, encode_png
from ._pixels import (
    ResizeMethod,
    central_crop,
    convert_image_dtype,
    flip_left_right,
    per_image_standardization,
    random_flip_left_right,
    resize,
)

__all__ = [
    "ResizeMethod",
    "central_crop",
    "convert_image_dtype",
    "decode_image",
    "decode_jpeg",
    "decode_png",
    "encode_jpeg",
    "encode_png",
    "flip_left_right",
    "per_image_standardization",
    "random_flip_left_right",
    "resize",
]

__getattr__ = _names.getter("tf.image", globals(), dict.fromkeys(__all__, ""))
