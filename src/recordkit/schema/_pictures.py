"""Pictures: what a jpeg or png field takes.

One function, so that a layer that can encode pictures has one place to plug in.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ._words import Misfit, counted

SIGNATURES: Final = {"jpeg": b"\xff\xd8\xff", "png": b"\x89PNG\r\n\x1a\n"}


def picture_bytes(value: Any, kind: str) -> bytes:
    r"""Return the encoded picture that is stored for `value`, which must already be one.

    >>> picture_bytes(b"\x89PNG\r\n\x1a\n...", "png")
    b'\x89PNG\r\n\x1a\n...'
    """
    if isinstance(value, np.ndarray):
        advice = f"Encode it first: recordkit.images makes {kind} of arrays."
        raise Misfit(found=f"an array of shape {list(value.shape)}", advice=advice)
    if not isinstance(value, bytes | bytearray | memoryview):
        raise Misfit(
            found="None" if value is None else type(value).__name__, advice=f"Give the bytes of a {kind} file."
        )
    picture = bytes(value)
    if not picture.startswith(SIGNATURES[kind]):
        raise Misfit(
            found=f"{counted(len(picture), 'byte')} that are {_what(picture)}",
            advice="Declare bytes to store any bytes.",
        )
    return picture


def _what(picture: bytes) -> str:
    for kind, signature in SIGNATURES.items():
        if picture.startswith(signature):
            return f"a {kind}"
    return "no picture"
