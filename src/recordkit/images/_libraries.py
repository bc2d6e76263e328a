"""The libraries of `recordkit[images]`, imported by whoever needs one, when it is needed."""

from __future__ import annotations

from typing import Any

from recordkit.errors import MissingExtraError


def simplejpeg(what: str) -> Any:
    """Return the module, or say that `what` needs it."""
    try:
        import simplejpeg
    except ImportError as error:
        raise MissingExtraError(what, "simplejpeg", "images") from error
    return simplejpeg


def pillow(what: str) -> Any:
    """Return its module Image, or say that `what` needs it."""
    try:
        from PIL import Image
    except ImportError as error:
        raise MissingExtraError(what, "Pillow", "images") from error
    return Image
