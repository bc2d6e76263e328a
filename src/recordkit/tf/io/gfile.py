"""`tf.io.gfile`: finding files by pattern."""

from __future__ import annotations

import glob as _glob
import os
from typing import TYPE_CHECKING

from recordkit.tf import _names

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["glob"]


def glob(pattern: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> list[str]:
    """Return the names of the files and folders that match a pattern, or one of several, in order.

    The folders called `_recordkit`, where recordkit keeps indexes and manifests, are left out.

    >>> glob("no-such-folder/*.tfrecord")
    []
    """
    patterns = [pattern] if isinstance(pattern, str | bytes | os.PathLike) else list(pattern)
    found = (name for one in patterns for name in sorted(_glob.glob(os.fsdecode(one))))  # noqa: PTH207
    return [name for name in found if os.path.basename(name) != "_recordkit"]  # noqa: PTH119


__getattr__ = _names.getter("tf.io.gfile", globals(), dict.fromkeys(__all__, ""))
