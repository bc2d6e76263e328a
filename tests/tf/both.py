"""One script, two modules: its text is run with TensorFlow as `tf`, and with recordkit's."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import Any

import numpy as np

from recordkit import tf as ours


def scripts(file: str) -> dict[str, str]:
    """The scripts of a file by name: a comment behind a blank line names each."""
    text = (Path(__file__).parent / "scripts" / f"{file}.txt").read_text("utf-8").strip()
    blocks = re.split(r"\n\n(?=# )", text)
    named = [block.removeprefix("# ").partition("\n")[::2] for block in blocks]
    assert len(dict(named)) == len(named), "two scripts have one name"
    return dict(named)


def run(script: str, tf: Any, **names: Any) -> Any:
    """What the script leaves in `result`, or what it raised, in a form that can be compared."""
    scope = {"tf": tf, "np": np, **names}
    try:
        exec(textwrap.dedent(script), scope)
    except Exception as error:
        return "raised", family(error)
    return plain(scope["result"])


def same(script: str, tensorflow: Any, **names: Any) -> Any:
    """Run the script with both, see that the results are equal, and return them."""
    mine, theirs = run(script, ours, **names), run(script, tensorflow, **names)
    assert mine == theirs, f"ours: {mine}\ntheirs: {theirs}"
    return mine


def family(error: Exception) -> str:
    """What a script would catch: TensorFlow's classes by name, ours by the parents they have in common."""
    if isinstance(error, ours.errors.InvalidArgumentError) or type(error).__name__ == "InvalidArgumentError":
        return "InvalidArgumentError"
    if type(error).__name__ == "UnicodeDecodeError":
        return "InvalidArgumentError"  # TensorFlow's, whose message quotes a payload that is no text
    for kind in (FileNotFoundError, KeyError, IndexError, AttributeError, TypeError, ValueError):
        if isinstance(error, kind) or (kind is FileNotFoundError and type(error).__name__ == "NotFoundError"):
            return kind.__name__
    raise error


def plain(value: Any) -> Any:
    """A value as lists, names and numbers."""
    kind = type(value).__name__
    if kind in ("DType", "TensorShape", "TensorSpec"):
        return kind, repr(value), str(value)
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(plain(one) for one in value)
    if kind == "SparseTensor":
        return kind, plain(value.indices), plain(value.values), plain(value.dense_shape), value.shape.as_list()
    if kind == "RaggedTensor":
        splits = [plain(one) for one in value.nested_row_splits]
        return kind, value.dtype.name, value.shape.as_list(), plain(value.flat_values), splits, value.to_list()
    if kind in ("Tensor", "EagerTensor"):
        return "Tensor", value.dtype.name, value.shape.as_list(), exact(value.numpy())
    if isinstance(value, np.ndarray | np.generic):
        return "array", str(value.dtype), exact(value)
    return value


def exact(value: Any) -> Any:
    """Values that compare as their bits do."""
    array = np.asarray(value)
    return array.tolist() if array.dtype == object else (array.shape, array.tobytes())
