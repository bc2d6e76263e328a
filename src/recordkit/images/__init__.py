"""Pictures: encoded bytes to arrays and back, and what is done to their pixels on the way.

Which picture a field holds, and how it is stored, is the schema's business; here are only JPEG and PNG themselves.
Headers are read, and arrays resized, without any library; encoding and decoding need those of `recordkit[images]`, and
import them then (docs/decisions/0005-image-libraries.md).
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
