"""Pictures: what a jpeg or png field takes, and how several of them come in one array."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from recordkit import images
from recordkit.errors import SchemaError
from recordkit.images import SIGNATURES
from recordkit.schema._errors import Misfit
from recordkit.wording import counted

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["SIGNATURES", "check_stack", "picture_bytes"]


def picture_bytes(value: Any, kind: str, quality: int | None = None) -> bytes:
    r"""Return the encoded picture that is stored for `value`: itself if it is one, else made of its pixels.

    >>> picture_bytes(b"\x89PNG\r\n\x1a\n...", "png")
    b'\x89PNG\r\n\x1a\n...'
    """
    if isinstance(value, bytes | bytearray | memoryview):
        return _checked(bytes(value), kind)
    if hasattr(value, "__array__"):
        return _encoded(value, kind, quality)
    found = "None" if value is None else type(value).__name__
    raise Misfit(found, f"Give the bytes of a {kind} file, or the pixels as an array.")


def _checked(picture: bytes, kind: str) -> bytes:
    found = images.kind(picture)
    if found != kind:
        what = "no picture" if found is None else f"a {found}"
        found_bytes = f"{counted(len(picture), 'byte')} that are {what}"
        raise Misfit(found_bytes, "Declare bytes to store any bytes.")
    return picture


def _encoded(array: Any, kind: str, quality: int | None) -> bytes:
    try:
        return images.encode(array, cast("images.Kind", kind), quality=quality)
    except SchemaError as error:
        advice = error.advice
        if np.ndim(array) > 3:
            advice = f"For several pictures in one field, declare their number or ?, such as {kind}[?]."
        raise Misfit(error.found or "", f"A {kind} takes {error.expected}. {advice}") from None


def check_stack(array: NDArray[Any], ndim: int) -> None:
    """Raise `Misfit` if an array is not surely pictures, with `ndim` dimensions before those of each.

    A picture in colour given where several were wanted would pass for as many narrow grey ones as it has rows.
    """
    rest = array.shape[ndim:]
    if ndim and len(rest) == 2 and rest[1] <= 4:
        shape = ",".join(map(str, array.shape))
        advice = "Is it one picture, or are they several in grey? Give [array] for one, array[..., None] for several."
        raise Misfit(found=f"an array of {array.dtype.name}, shape [{shape}]", advice=advice)
