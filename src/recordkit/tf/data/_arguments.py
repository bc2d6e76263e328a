"""Arguments of the methods of tf.data: checks and conversions."""

from __future__ import annotations

import operator
import os
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from recordkit.engines import AUTO
from recordkit.engines import count as worker_count
from recordkit.errors import InvalidArgumentError
from recordkit.filesystems import given_path
from recordkit.tf.tensors import convert_to_tensor, string

if TYPE_CHECKING:
    from recordkit.engines import Workers

AUTOTUNE: Final = -1
INFINITE_CARDINALITY: Final = -1
UNKNOWN_CARDINALITY: Final = -2


def file_names(names: Any) -> list[str]:
    """Return file names, which may be paths or tensors, as text."""
    if isinstance(names, str | os.PathLike):
        return [given_path(names)]
    if isinstance(names, list | tuple):
        names = [os.fsencode(given_path(name)) if isinstance(name, str | os.PathLike) else name for name in names]
    tensor = convert_to_tensor(names, dtype_hint=string)
    if tensor.dtype != string and np.size(tensor):
        message = f"expected file names, found {tensor.dtype.name}"
        raise TypeError(message)
    return [os.fsdecode(name) for name in np.asarray(tensor).reshape(-1).tolist()]


def checked_function(function: Any) -> Any:
    if not callable(function):
        message = f"expected a function, found {type(function).__name__}"
        raise TypeError(message)
    return function


def cycle_length_of(length: Any, calls: Any, processors: int) -> int:
    """Return how many datasets to interleave at a time; by default as many as TensorFlow would."""
    if length not in (None, AUTOTUNE):
        cycle = positive(length, "cycle_length")
        if calls is not None and int(calls) > cycle:
            message = f"num_parallel_calls must be at most cycle_length ({cycle}), found {int(calls)}"
            raise InvalidArgumentError(message)
        return cycle
    if calls is None:
        return processors
    return -(-processors // 3) if int(calls) == AUTOTUNE else min(positive(calls, "num_parallel_calls"), processors)


def threads_of(calls: Any) -> Workers:
    """Return the number of threads that call a function."""
    if calls is None:
        return 1
    return worker_count(AUTO) if int(calls) == AUTOTUNE else positive(calls, "num_parallel_calls")


def whole_number(number: Any, what: str) -> int:
    """Return an integer; raise TypeError for anything else."""
    try:
        return operator.index(number)
    except TypeError:
        message = f"{what}: expected a whole number, found {number!r}"
        raise TypeError(message) from None


def positive(given: Any, what: str) -> int:
    number = whole_number(given, what)
    if number < 1:
        message = f"{what} must be greater than zero, found {number}"
        raise InvalidArgumentError(message)
    return number
