"""Whole files, read and written."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recordkit.storage._disk import make_folder, replace_file

from ._raw import one_string, string_tensor

if TYPE_CHECKING:
    from ._tensor import Tensor


def read_file(filename: Any, name: str | None = None) -> Tensor:
    """Return the bytes of a file.

    Raises:
        FileNotFoundError: There is none; `tf.errors.NotFoundError` is the same.
    """
    return string_tensor(path_of(filename).read_bytes())


def write_file(filename: Any, contents: Any, name: str | None = None) -> None:
    """Write a file, which appears whole or not at all; folders are made where there are none."""
    path = path_of(filename)
    make_folder(path.parent)
    replace_file(path, one_string("write_file", contents))


def path_of(filename: Any) -> Path:
    """Return a file's name, which may be a tensor, as a path."""
    if isinstance(filename, os.PathLike):
        return Path(filename)
    return Path(os.fsdecode(one_string("a file's name", filename)))
