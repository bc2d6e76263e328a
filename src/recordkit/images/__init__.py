"""Pictures: encoded bytes to arrays of pixels and back, and common operations on pixels.

This room knows JPEG and PNG, but no fields; the schema says how a field stores pictures. Reading headers and resizing
need no library; encoding and decoding import those of `recordkit[images]` (docs/decisions/0005-image-libraries.md).
"""

from ._arrays import Direction, Method, PixelType, crop, flip, normalise, resize
from ._batch import decode_batch, decode_reduced
from ._decode import Dct, decode
from ._encode import QUALITY, checked_quality, encode
from ._headers import SIGNATURES, Kind, kind, size
from ._kernels import Kernel, resample

__all__ = [
    "QUALITY",
    "SIGNATURES",
    "Dct",
    "Direction",
    "Kernel",
    "Kind",
    "Method",
    "PixelType",
    "checked_quality",
    "crop",
    "decode",
    "decode_batch",
    "decode_reduced",
    "encode",
    "flip",
    "kind",
    "normalise",
    "resample",
    "resize",
    "size",
]
