"""Reading and writing whole files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recordkit.filesystems import given_path, make_folder, open_regular, refusing, replace_file
from recordkit.tf.tensors import one_string, string_tensor

if TYPE_CHECKING:
    from recordkit.tf.tensors import Tensor


def read_file(filename: Any, name: str | None = None) -> Tensor:
    """Return the bytes of a file.

    Raises:
        FileNotFoundError: The file does not exist; `tf.errors.NotFoundError` is the same class.
    """
    path = path_of(filename)
    with refusing(path, "be read"), os.fdopen(open_regular(path), "rb") as file:
        return string_tensor(file.read())


def write_file(filename: Any, contents: Any, name: str | None = None) -> None:
    """Write a file atomically; missing folders are created."""
    path = path_of(filename)
    make_folder(path.parent)
    replace_file(path, one_string("write_file", contents))


def path_of(filename: Any) -> Path:
    """Return a file name, which may be a tensor, as a path."""
    if isinstance(filename, str | os.PathLike):
        return Path(given_path(filename))
    return Path(given_path(os.fsdecode(one_string("a file's name", filename))))
